"""The command that writes a graph for another engine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from graphir import Graph
from graphir.runtime import targets
from tests.support.commands import cli, refused


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    g = Graph("mixed")
    g.output(g.input("int16", ("n",), name="x") * g.input("float32", ("n",), name="w"))
    g.save(tmp_path / "mixed.gir")
    return tmp_path / "mixed.gir"


def test_python_is_printed_or_written(mixed: Path, tmp_path: Path) -> None:
    source = targets.python(Graph.load(mixed))
    assert cli("export", mixed, "--to", "python") == (0, source, "")
    assert cli("export", mixed, "--to", "python", "-o", tmp_path / "mixed.py") == (0, "", "")
    assert (tmp_path / "mixed.py").read_text() == source


def test_sizes_are_bound(mixed: Path) -> None:
    text = targets.stablehlo(Graph.load(mixed), {"n": 4})
    assert cli("export", mixed, "--to", "stablehlo", "--size", "n=4") == (0, text, "")
    text = refused(3, "export", mixed, "--to", "stablehlo")
    assert "StableHLO needs the sizes of n" in text and "in the shell --size n=4" in text
    text = refused(3, "export", mixed, "--to", "python", "--size", "m=4", "--size", "n=4")
    assert "graph 'mixed' has no dim m; it has n" in text
    assert "n=4" in refused(2, "export", mixed, "--to", "python", "--size", "n")


def test_what_is_traced_is_a_graph(tmp_path: Path) -> None:
    script = tmp_path / "traced.py"
    script.write_text(
        "from graphir import trace\n"
        "def double(x):\n    return x * 2\n"
        "net = trace(double, ('float32', (3,)))\n"
        "def made():\n    return net\n"
    )
    for name in ("net", "made"):
        status, text, _ = cli("export", f"{script}:{name}", "--to", "python")
        assert status == 0 and "def double(x: NDArray[np.float32]) ->" in text
    text = refused(3, "export", f"{script}:double", "--to", "python")
    assert "name a function without arguments that returns a graph" in text


def test_onnx_goes_to_a_file(mixed: Path, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="ONNX is not installed, so there is no model")
    assert cli("export", mixed, "--to", "onnx", "-o", tmp_path / "mixed.onnx") == (0, "", "")
    model = onnx.load(tmp_path / "mixed.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert [x.name for x in model.graph.input] == ["x", "w"]
    assert "-o model.onnx" in refused(3, "export", mixed, "--to", "onnx")


def test_sizes_are_those_of_dims() -> None:
    g = Graph("plain")
    g.output(g.input("int16", (2,)) + 1)
    with pytest.raises(targets.TargetError, match="'plain' has no dim k, n, nor any other by name"):
        targets.stablehlo(g, {"n": 4, "k": 2})


def test_a_missing_package_is_named(mixed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("onnx", "onnx.helper"):
        monkeypatch.setitem(sys.modules, module, None)
    assert "'onnx', which is not installed" in refused(3, "export", mixed, "--to", "onnx")
