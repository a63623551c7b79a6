"""The command `doctor`."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import numpy as np
import pytest

from graphir import rules
from graphir.runtime.cli import demo_and_doctor as doctor
from tests.support.commands import cli


def lines() -> tuple[int, dict[str, tuple[str, str]]]:
    """The status, and for each subject its verdict and its text."""
    status, out, err = cli("doctor")
    assert err == ""
    found = [line.split(maxsplit=1) for line in out.splitlines()]
    rows = [(verdict, *rest.split("  ", 1)) for verdict, rest in found]
    return status, {subject: (verdict, text.strip()) for verdict, subject, text in rows}


def test_each_thing_has_a_line() -> None:
    status, found = lines()
    assert status == 0
    followed = rules("numpy").of_release(np.__version__).name
    assert found["numpy"] == ("ok", f"{np.__version__}, rules {followed}")
    expected = {"graphir", "Python", *doctor.CORE, *doctor.USES, "native tier", "cache"}
    assert expected == found.keys()
    assert all(verdict in ("ok", "note") for verdict, _ in found.values())


def test_missing_packages_have_the_line_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor.metadata, "version", missing)
    status, found = lines()
    assert status == 1 and found["numpy"] == ("fails", "not installed: pip install numpy")
    for name, use in doctor.USES.items():
        assert found[name] == ("note", f"not installed, for {use}: pip install {name}")


def test_without_machine_code_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise MemoryError("no executable memory here")

    monkeypatch.setattr(doctor, "tier", lambda mode: (None, ""))
    monkeypatch.setattr(doctor, "Program", fails)
    status, found = lines()
    assert status == 0
    text = "no machine code: MemoryError: no executable memory here"
    assert found["native tier"] == ("note", text)
