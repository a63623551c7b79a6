"""The command `doctor`."""

from __future__ import annotations

from importlib import metadata
from typing import Any, cast

import numpy as np
import pytest

from graphir import rules
from graphir.runtime.cli import doctor
from graphir.runtime.native import probe
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
    assert found["NumPy tier"] == ("ok", "a region of 3 ops has the values of NumPy")
    expected = {"graphir", "Python", *doctor.CORE, *doctor.USES, "native tier", "cache"}
    assert expected <= found.keys()
    assert all(verdict in ("ok", "note") for verdict, _ in found.values())
    lines_to_type = [text.split("pip install ")[-1] for _, text in found.values()]
    assert not any(line.strip("'").startswith("graphir") for line in lines_to_type)


def test_missing_packages_have_the_line_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor.metadata, "version", missing)
    status, found = lines()
    assert status == 1 and found["numpy"] == ("fails", "not installed: pip install 'numpy>=2.4'")
    for name, use in doctor.USES.items():
        verdict, text = found[name]
        assert verdict == "note" and text.startswith(f"not installed, for {use}: pip install ")
        assert name in text.split("pip install ")[1]


def test_versions_are_compared_with_those_of_the_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = doctor.requirements()
    assert wanted["numpy"] == ">=2.4" and wanted["llvmlite"].startswith(">=0.4")
    assert wanted["torch"].startswith("==") and wanted["dask"].startswith(">=20")
    monkeypatch.setattr(doctor.metadata, "version", lambda name: "1.4.0+local")
    status, found = lines()
    assert status == 1  # numpy 1.4
    assert found["torch"] == ("note", f"1.4.0+local; measured with torch{wanted['torch']}")
    assert found["ipython"] == ("ok", "1.4.0+local")


def test_a_library_newer_than_what_was_measured_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.metadata, "version", lambda name: "99.1.0")
    _, found = lines()
    for name, added in doctor.ADDED.items():
        newest = list(rules(cast("Any", name)).releases)[-1]
        assert found[name] == (
            "note",
            f"99.1.0, newer than {newest}, the newest that was measured: graphs have rules "
            f"{name}@{newest}; {added}",
        )


def test_without_machine_code_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise probe.UnusableError("no executable memory here")

    monkeypatch.setattr(doctor, "tier", lambda mode: (None, ""))
    monkeypatch.setattr(doctor, "engine", fails)
    status, found = lines()
    assert status == 0
    assert found["native tier"] == ("note", "no machine code: no executable memory here")


def test_a_core_that_fails_has_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "Program", lambda graph, native: lambda values: values)
    status, found = lines()
    assert status == 1 and found["NumPy tier"][0] == "fails"
    assert "other values than NumPy" in found["NumPy tier"][1]
