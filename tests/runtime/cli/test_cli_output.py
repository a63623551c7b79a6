"""Where commands write: files by their endings, and lines that fit a terminal."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

from graphir.runtime.cli.main import main
from tests.support.commands import cli, refused

PROGRAM = """\
import numpy as np
from graphir import Graph

def build():
    g = Graph("step", rules="jax")
    with g.layer("a_layer_of_a_network/of_some_depth"):
        x = g.input("int32", ("n",), name="x")
        total = x * g.input("bfloat16", ("n",), name="some_scale_of_x")
    g.output(total + 1, total.sum())
    return g

graph = build()

def normalised(x):
    spread = x.astype(np.float16).std() + np.float64(0.125)
    return (x - x.mean()) / spread
"""
GRAPH = "program_of_tests.py:build"
FUNCTION = ("program_of_tests.py:normalised", "--input", "x.npy")
RUN = ("program_of_tests.py:graph", "--input", "x=i.npy", "--input", "some_scale_of_x=b.npz:b")
COMMANDS = [
    *(("rules",), ("rules", "jax"), ("promote", "int16", "float32"), ("demo",), ("doctor",)),
    *(("table",), ("table", "--rules", "numpy"), ("lattice", "jax")),
    *(("laws", "jep_option1", "--all"), ("laws", "torch"), ("diff", "max", "numpy")),
    *(("diff", GRAPH, "torch"), ("diff", GRAPH, "max_strict"), ("lower", GRAPH), ("plan", GRAPH)),
    *(("casts", GRAPH), ("casts", GRAPH, "--against", "max_strict"), ("run", *RUN)),
    *(("casts", GRAPH, "--format", "details"), ("audit", *FUNCTION), ("audit", *RUN)),
    ("audit", *FUNCTION, "--as-dtype", "bfloat16,float16"),
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "program_of_tests.py").write_text(PROGRAM)
    np.save(tmp_path / "x.npy", np.linspace(1, 2, 1000, dtype=np.float32))
    np.save(tmp_path / "i.npy", np.arange(1000, dtype=np.int32))
    ml_dtypes = pytest.importorskip("ml_dtypes")
    np.savez(tmp_path / "b.npz", b=np.ones(1000, ml_dtypes.bfloat16))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


# -- the width of a terminal


@pytest.mark.parametrize("width", [60, 80, 132])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_lines_fit_a_terminal(command, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    assert main([str(part) for part in command]) in (0, 1)
    lines = re.sub("\x1b\\[[0-9;]*m", "", screen.getvalue()).splitlines()
    lines = [x for x in lines if not re.match(r" +(write: |and: |= fix  )", x)]
    assert lines and max(map(len, lines)) <= width, max(lines, key=len)


def test_columns_are_left_out_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    assert main(["audit", *FUNCTION]) == 0
    lines = screen.getvalue().splitlines()
    (header,) = (line.split() for line in lines if line.startswith("where"))
    assert header == ["where", "operand", "from", "to", "loss"]
    omitted = " ".join(lines).split("(columns without room: ")[1].split(")")[0]
    assert [*map(str.strip, omitted.split(","))][-3:] == ["changed", "error", "times"]


def test_a_pipe_has_whole_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for command in (("rules",), ("table",), ("casts", GRAPH), ("laws", "numpy")):
        assert max(map(len, cli(*command)[1].splitlines())) > 100, command


def test_columns_of_a_narrow_table_are_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    whole = [line.split() for line in cli("table")[1].splitlines()[:17]]
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    assert main(["table"]) == 0
    *blocks, notes = screen.getvalue().split("\n\n")
    rows = [[line.split() for line in block.splitlines()] for block in blocks]
    assert len(blocks) == 3 and "pairs" in notes
    for i, row in enumerate(whole):
        assert rows[0][i] + rows[1][i][i > 0 :] + rows[2][i][i > 0 :] == row


# -- the ending of a file


@pytest.mark.parametrize(
    ("command", "ending", "start"),
    [
        (("table",), "md", "|  | bool"),
        (("table",), "svg", "<svg"),
        (("table",), "txt", "  "),
        (("lattice", "max"), "dot", "digraph"),
        (("promote", "int8", "int16"), "txt", "int8 and int16"),
        (("lattice", "max"), "mmd", "flowchart"),
        (("casts", GRAPH), "sarif", "{"),
        (("casts", GRAPH), "MD", "#"),
        (("audit", *FUNCTION), "html", "<!"),
        (("draw", GRAPH), "svg", "<svg"),
        (("export", GRAPH), "py", '"""'),
        (("export", GRAPH, "--size", "n=3"), "mlir", "module"),
        (("lower", GRAPH), "gir", "graphir 1"),
        (("plan", GRAPH), "txt", "program step"),
        (("rules",), "txt", "name"),
        (("diff", "max", "jax"), "json", "{"),
        (("run", *RUN), "npz", "PK"),
    ],
)
def test_the_ending_names_the_format(command, ending: str, start: str) -> None:
    status, out, err = cli(*command, "-o", f"out.{ending}")
    assert (status in (0, 1), out) == (True, ""), err
    assert Path(f"out.{ending}").read_bytes().startswith(start.encode())


@pytest.mark.parametrize(
    ("command", "endings"),
    [
        (("casts", GRAPH), ".txt, .details, .md, .html, .json, .sarif"),
        (("export", GRAPH), ".py, .mlir, .onnx"),
        (("draw", GRAPH), ".svg, .dot, .mmd"),
        (("diff", "max", "jax"), ".txt, .json"),
        (("run", *RUN), ".npz"),
        (("lower", GRAPH), ".gir"),
        (("laws", "max"), ".txt"),
    ],
)
def test_an_unknown_ending_is_refused(command, endings: str) -> None:
    assert f"the ending '.png'; got --output out.png; end it in {endings}" in refused(
        2, *command, "-o", "out.png"
    )
    assert not Path("out.png").exists()


def test_a_format_and_another_ending() -> None:
    message = refused(2, "casts", GRAPH, "--format", "sarif", "-o", "out.json")
    assert "--format sarif is not the format of the ending '.json'" in message
    assert "--to python is not" in refused(2, "export", GRAPH, "--to", "python", "-o", "m.onnx")
    assert "no target is named" in refused(2, "export", GRAPH)
    assert cli("casts", GRAPH, "--format", "json", "-o", "report.log")[0] == 0
    assert json.loads(Path("report.log").read_text())
