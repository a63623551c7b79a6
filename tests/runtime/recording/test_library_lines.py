"""Steps inside an installed package are at the line of the user that calls it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from graphir.runtime import record

LIBRARY = """
import numpy as np

def scaled(x):
    y = x * np.float64(3)
    return y + np.float64(1)

def applied(function, x):
    return function(x)
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "installed_scaling.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(str(folder))
    yield __import__("installed_scaling")
    sys.modules.pop("installed_scaling", None)


X = np.ones(3, np.float32)


def test_the_line_is_that_of_the_call(library) -> None:
    def program(x):
        return library.scaled(x)  # one line

    report = record(program, X).audit()
    lines = {row.location.line for row in report}
    assert lines == {program.__code__.co_firstlineno + 1}
    assert all(row.location.compound and row.location.file.endswith(".py") for row in report)
    assert not any(row.fix for row in report)


def test_a_function_of_the_user_that_a_library_calls_keeps_its_lines(library) -> None:
    def doubled(x):
        return x * np.float64(2)

    def program(x):
        return library.applied(doubled, x)

    (row,) = record(program, X).audit()
    assert row.location.line == doubled.__code__.co_firstlineno + 1
    assert not row.location.compound


def test_a_library_s_own_function_keeps_its_lines(library) -> None:
    lines = [row.location.line for row in record(library.scaled, X).report().in_order()]
    assert lines == [5]
