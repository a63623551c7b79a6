"""NumPy's public functions, called in three forms under jit and record: its value, or a reason."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.numpy_reference.calls import base_calls, calls, targets
from tests.numpy_reference.known import DEVIATES
from tests.numpy_reference.outcomes import FRONT_ENDS
from tests.numpy_reference.table import BAD, FILE, PAGE, page, row, unlisted, word

TABLE = json.loads(FILE.read_text(encoding="utf-8"))
COMMAND = "python -m tests.numpy_reference.table"
pytestmark = pytest.mark.skipif(
    np.__version__ != TABLE["numpy"], reason=f"the table is of NumPy {TABLE['numpy']}"
)


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", targets())
@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_calls_give_numpys_value_or_a_reason(front_end, path):
    """Those with required arguments alone; the exhaustive test has the rest."""
    results = [(call, FRONT_ENDS[front_end](call)) for call in base_calls(path)]
    assert list(unlisted(front_end, path, results)) == []
    status = word(results)
    assert status == TABLE["functions"][path][front_end][0], f"if it is right: {COMMAND}"


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", targets())
@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_all_calls_give_numpys_value_or_a_reason(front_end, path):
    results = [(call, FRONT_ENDS[front_end](call)) for call in calls(path)]
    assert list(unlisted(front_end, path, results)) == []
    if path in DEVIATES[front_end]:
        assert any(outcome.word in BAD for _, outcome in results), "right now: remove it"
    assert row(path, results) == TABLE["functions"][path][front_end], f"if it is right: {COMMAND}"


def test_the_page_is_that_of_the_table():
    assert PAGE.read_text(encoding="utf-8") == page(TABLE), f"run {COMMAND}"


def test_every_function_is_called_but_those_of_files_and_other_objects():
    assert [path for path in targets() if not base_calls(path)] == TABLE["uncalled"]
    assert set(TABLE["functions"]) == set(targets())
    files = ("load", "save", "fromfile", "fromregex", "fromstring", "genfromtxt")
    others = [p for p in TABLE["uncalled"] if not p.removeprefix("np.").startswith(files)]
    assert others == ["np.datetime_data", "np.nested_iters", "np.setbufsize"]


def test_the_deviations_name_targets():
    assert set(DEVIATES) == set(FRONT_ENDS)
    assert all(set(paths) <= set(targets()) for paths in DEVIATES.values())
