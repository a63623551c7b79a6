"""The commands on files and scripts whose graphs have control flow."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from graphir import Graph
from graphir.passes import cast_report
from graphir.passes.reports.json_ import schema
from graphir.runtime import interpret
from tests.support.commands import cli

SCRIPT = """
import numpy as np
from graphir import Graph, control

g = Graph("loops", rules="numpy")
x = g.input("float32", ("n",), name="x")
table = np.linspace(0, 1e-3, 3000)
step = np.float64(0.1)

def body(state):
    i, v = state
    return i + 1, (v * step + (v[0] * g.constant(table)).sum()).cast("float32")

i, y = control.while_loop(lambda s: s[0] < 4, body, (np.int32(0), x))
total, _ = control.scan(lambda c, r: (c + r.cast("float16"), ()), np.float16(0), y)
g.output(i, total)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loops.py").write_text(SCRIPT)
    np.save("x.npy", np.array([1, 2, 300], np.float32))
    status, out, err = cli("lower", "loops.py:g", "--output", "low.gir")
    assert (status, out, err) == (0, "", "")
    return tmp_path


def test_lower_saves_large_constants_of_bodies(folder: Path) -> None:
    text = (folder / "low.gir").read_text()
    assert 'npz("' in text and text.count("graph @") == 4
    graph = Graph.load("low.gir").verify()
    first, second = interpret(graph, np.load("x.npy"))
    assert first == 4 and second.dtype == np.float16


@pytest.mark.parametrize("form", ["text", "details", "markdown", "html", "sarif"])
def test_casts_name_the_body(folder: Path, form: str) -> None:
    status, out, err = cli("casts", "loops.py:g", "--format", form)
    assert (status, err) == (0, "")
    assert "body of while_loop" in out and "body of scan" in out


def test_casts_as_json(folder: Path) -> None:
    _, out, _ = cli("casts", "loops.py:g", "--format", "json")
    document = json.loads(out)
    pytest.importorskip("jsonschema").validate(document, schema())
    sizes = {(cast["location"]["layer"], str(cast["bytes_added"])) for cast in document["casts"]}
    assert ("body of while_loop", "8*n*while_loop_runs") in sizes
    assert ("body of scan", "2*n") in sizes


def test_audit_run_and_plan(folder: Path) -> None:
    status, out, _ = cli("audit", "loops.py:g", "--input", "x.npy")
    assert status == 0 and "[body of scan]" in out and " %" in out
    for subject in ("loops.py:g", "low.gir"):
        status, out, err = cli("run", subject, "--input", "x=x.npy")
        assert (status, err) == (0, "") and "float16" in out
        assert cli("plan", subject)[0] == 0


def test_diff(folder: Path) -> None:
    status, out, _ = cli("diff", "loops.py:g", "jax_x32")
    assert status == 1 and "[body of while_loop]" in out and "float32" in out


@pytest.mark.parametrize("form", ["svg", "dot", "mermaid"])
def test_draw(folder: Path, form: str) -> None:
    status, out, _ = cli("draw", "low.gir", "--format", form)
    assert status == 0 and "body of while" in out


def test_a_report_of_a_lowered_graph_is_that_of_the_graph(folder: Path) -> None:
    report = cast_report(Graph.load("low.gir"))
    assert {row.layer for row in report} == {
        "condition of while_loop",
        "body of while_loop",
        "body of scan",
    }
