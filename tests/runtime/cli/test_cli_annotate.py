"""`graphir annotate`: programs of each kind, its formats, and a terminal."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from graphir.passes.reports.json_ import schema
from graphir.runtime.cli.main import main
from tests.support.commands import cli, refused

SCRIPT = """\
import sys
import numpy as np
from graphir import Graph

def f(x, gain=1.5):
    ramp = np.arange(len(x)) / len(x)
    return x * ramp * gain

def build():
    g = Graph("built", rules="numpy")
    x = g.input("int16", ("n",), name="x")
    g.output(x * np.float32(2))
    return g

if __name__ == "__main__":
    data = np.load(sys.argv[1])
    print(f(data).sum())
"""
F_TEXT = """\
program.py
5 | def f(x, gain=1.5):                    # x: float32[4]
6 |     ramp = np.arange(len(x)) / len(x)  # ramp: float64[4]
  |            ^^^^^^^^^^^^^^^^^ int64 -> float64, can lose precision
7 |     return x * ramp * gain             # float64[4]
  |            ^ float32 -> float64
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "program.py").write_text(SCRIPT)
    np.save(tmp_path / "x.npy", np.ones(4, np.float32))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "program", raising=False)
    return tmp_path


@pytest.mark.parametrize("value", ["x.npy", "float32[4]"])
def test_a_function_of_numpy_on_values_and_types(value: str) -> None:
    status, out, _ = cli("annotate", "program.py:f", "--input", value)
    assert (status, out) == (0, F_TEXT)


def test_a_graph_and_the_same_in_text() -> None:
    status, out, err = cli("annotate", "program.py:build")
    assert (status, err) == (0, "")
    assert "11 |     x = g.input" in out and "# x: int16[n]" in out
    assert cli("lower", "program.py:build", "-o", "built.gir")[0] == 0
    assert "12:14  float32[n]  int16 -> float32" in cli("annotate", "built.gir")[1]
    assert "12 |     g.output(x * " in cli("annotate", "built.gir", "--sources", ".")[1]


def test_a_script_with_arguments() -> None:
    status, out, err = cli("annotate", "program.py", "--", "x.npy")
    assert (status, err) == (0, "2.25\n")  # what a file has is data
    assert "16 |     data = np.load(sys.argv[1])  # data: float32[4]" in out
    assert "17 |     print(f(data).sum())\n   |           ^^^^^^^^^^^^^ float64[]" in out


def test_the_formats() -> None:
    argv = ("annotate", "program.py:f", "--input", "x.npy")
    document = json.loads(cli(*argv, "--format", "json")[1])
    pytest.importorskip("jsonschema").validate(document, schema("annotated"))
    assert next(iter(document)) == "version" and document["version"] == 1
    assert cli(*argv, "-o", "out.html") == (0, "", "")
    assert 'title="float64[4]"' in Path("out.html").read_text()
    assert cli(*argv, "-o", "out.txt") == (0, "", "")
    assert Path("out.txt").read_text() == F_TEXT
    assert "no format of this command has the ending" in refused(2, *argv, "-o", "out.md")


def test_a_model_of_onnx_has_no_lines(folder: Path) -> None:
    (folder / "m.onnx").write_bytes(b"")
    assert "a model of ONNX has no source lines" in refused(3, "annotate", "m.onnx")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("no_color", ["", "1"])
@pytest.mark.parametrize("columns", [50, 80, 120])
def test_a_terminal_has_lines_that_fit_it_without_colours(
    columns: int, no_color: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert main(["annotate", "program.py:f", "--input", "x.npy"]) == 0
    text = sys.stdout.getvalue()  # pyright: ignore
    assert max(map(len, text.splitlines())) <= columns and "\x1b" not in text
    assert (text == F_TEXT) is (columns > 50)
