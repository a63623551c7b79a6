"""The exit statuses of commands, and the tracebacks of errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphir import Graph
from graphir.runtime.cli import graphs_and_casts
from graphir.runtime.cli.main import Status
from tests.support.commands import cli, refused

ROOT = Path(__file__).parents[3]
PROGRAM = """\
import sys
from pathlib import Path
import numpy as np
from graphir import Graph

def build():
    g = Graph("g")
    g.output(g.input("int8") + g.input("complex64"))
    return g

def scale(x):
    return np.reshape(x, (5, 7)) * 2

def opens():
    Path("absent.txt").read_text()

def ends():
    sys.exit("no data")

def asks():
    raise KeyboardInterrupt
"""


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "failing_of_tests.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRAPHIR_TRACEBACK", raising=False)


def test_the_page_has_every_status() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    section = page[page.index("## Status") :]
    numbers = [line.split(" | ")[0] for line in section.splitlines() if line[2:3].isdigit()]
    assert numbers == [f"| {status.value}" for status in Status]


@pytest.mark.parametrize(
    ("name", "line", "last"),
    [
        ("scale", "line 12, in scale", "ValueError: cannot reshape array of size 1"),
        ("opens", "line 15, in opens", "FileNotFoundError: "),
    ],
)
def test_an_error_of_the_program_has_its_traceback(name: str, line: str, last: str) -> None:
    argv = ("audit", f"failing_of_tests.py:{name}", *(["--input", "3.0"] * (name == "scale")))
    status, out, err = cli(*argv)
    assert (status, out) == (Status.REFUSED, "")
    assert line in err and err.splitlines()[-1].startswith(last)
    frames = [text for text in err.splitlines() if text.startswith("  File ")]
    assert not any(
        f"{ROOT / layer}/" in text for text in frames for layer in ("runtime", "graphir")
    )


def test_refusals_in_a_program_are_one_line() -> None:
    assert "failing_of_tests.py:8" in refused(3, "casts", "failing_of_tests.py:build")
    assert "'no data'" in refused(3, "casts", "failing_of_tests.py:ends")
    assert cli("casts", "failing_of_tests.py:asks")[0] == Status.INTERRUPTED


@pytest.mark.parametrize("name", ["build", "opens", "ends"])
def test_all_frames_where_they_are_asked_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHIR_TRACEBACK", "1")
    status, _, err = cli("casts", f"failing_of_tests.py:{name}")
    assert status == Status.REFUSED and err.startswith("Traceback") and "/runtime/cli/" in err


def test_a_defect_has_a_status_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    Graph("g").save("g.gir")
    monkeypatch.setattr(graphs_and_casts, "load_graph", int)  # takes no arguments
    status, _, err = cli("lower", "g.gir")
    assert status == Status.DEFECT and err.startswith("Traceback") and "in run_lower" in err
