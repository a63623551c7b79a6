"""The command that draws a graph."""

from __future__ import annotations

from pathlib import Path

from graphir import Graph
from graphir.drawing.formats import GRAPH_FORMATS
from graphir.passes import draw
from tests.support.commands import cli, refused
from tests.support.pictured_graphs import mixed


def test_draw_prints_or_writes(tmp_path: Path) -> None:
    mixed().save(tmp_path / "mixed.gir")
    for name in GRAPH_FORMATS:
        status, out, err = cli("draw", tmp_path / "mixed.gir", "--format", name)
        assert (status, err) == (0, "")
        assert out == draw(Graph.load(tmp_path / "mixed.gir"), name) + "\n"
        target = tmp_path / f"out.{name}"
        assert cli("draw", tmp_path / "mixed.gir", "--format", name, "-o", target) == (0, "", "")
        assert target.read_text(encoding="utf-8") == out


def test_draw_fails_on_what_was_not_to_be(tmp_path: Path) -> None:
    def status(g: Graph, *argv: str) -> int:
        g.save(tmp_path / "g.gir")
        found, out, err = cli("draw", tmp_path / "g.gir", *argv)
        assert out.startswith("<svg") and err == ""
        return found

    exact = Graph("exact")
    exact.output(exact.input("int16", name="x") + exact.input("float32", name="y"))
    written = Graph("written")
    written.output(written.input("float64", name="x").cast("float32"))
    for g, any_, lossy in ((mixed(), 1, 1), (exact, 1, 0), (written, 0, 0)):
        assert status(g) == 0
        assert status(g, "--fail-on", "any") == any_
        assert status(g, "--fail-on", "lossy") == lossy


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    assert "invalid choice" in refused(2, "draw", "x.gir", "--format", "png")
    assert "No such file" in refused(3, "draw", tmp_path / "none.gir")
    mixed().save(tmp_path / "g.gir")
    assert "No such file" in refused(3, "draw", tmp_path / "g.gir", "-o", tmp_path / "no" / "x")


def test_a_script_may_make_the_graph(tmp_path: Path) -> None:
    code = "from graphir import Graph\ng = Graph('made')\ng.output(g.input('int8', name='x') * 2)\n"
    (tmp_path / "made.py").write_text(code)
    status, out, err = cli("draw", f"{tmp_path / 'made.py'}:g", "--format", "mermaid")
    assert (status, err) == (0, "") and 'n1["2<br/>i8"]' in out
    assert "defines no 'h'" in refused(3, "draw", f"{tmp_path / 'made.py'}:h")


def test_the_ending_of_a_file_names_its_format(tmp_path: Path) -> None:
    graph = tmp_path / "mixed.gir"
    mixed().save(graph)
    for ending, start in {"svg": "<svg", "dot": "digraph", "mmd": "flowchart"}.items():
        target = tmp_path / f"mixed.{ending}"
        assert cli("draw", graph, "-o", target) == (0, "", "")
        assert target.read_text(encoding="utf-8").startswith(start)
    assert "'.png'; got --output" in refused(2, "draw", graph, "-o", tmp_path / "mixed.png")
    assert not (tmp_path / "mixed.png").exists()
    assert cli("casts", graph, "-o", tmp_path / "casts.sarif") == (0, "", "")
    assert '"version": "2.1.0"' in (tmp_path / "casts.sarif").read_text(encoding="utf-8")
