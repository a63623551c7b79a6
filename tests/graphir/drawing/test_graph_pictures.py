"""Pictures of graphs: what they show, that three formats say the same, and that names are safe."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given

import graphir
from graphir import DType, Graph, GraphError, ops
from graphir.conversions import convert
from graphir.drawing.diagram import Cluster, Diagram, graph_diagram
from graphir.drawing.formats import (
    GRAPH_FORMATS,
    graph_dot,
    graph_html,
    graph_mermaid,
    graph_svg,
)
from graphir.drawing.loss_levels import KINDS, Mark, level
from graphir.loss import loss
from graphir.passes import cast_report, draw, implicit_cast, lower
from graphir.passes.reports import marks_of
from tests.support.drawing import Program, programs
from tests.support.pictured_graphs import hostile, mixed
from tests.support.pictures import SVG
from tests.support.reports import assigned
from tests.support.strategies import STRONG
from tests.support.tables import every


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def titles(svg: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(svg).iter(f"{SVG}title")]


def shown(drawn: Diagram) -> list[tuple[str, ...]]:
    return [box.lines for box in drawn.boxes]


def names(items: list[Any]) -> list[str]:
    """The names of frames, from the first to the last and from outside in."""
    found: list[str] = []
    for item in items:
        if isinstance(item, Cluster):
            found += [item.name, *names(item.items)]
    return found


# -- what is shown


def test_boxes_say_what_they_are_and_casts_what_they_lose() -> None:
    drawn = graph_diagram(implicit_cast(mixed()))
    assert shown(drawn) == [
        ("x", "i16[n]"),
        ("w", "f16[n]"),
        ("i16 → f16", "loses precision"),
        ("multiply", "f16[n]"),
        ("y", "f32[n]"),
        ("f16 → f32", "exact"),
        ("add", "f32[n]"),
        ("0.5", "f32"),
        ("multiply", "f32[n]"),
        ("cast f32 → f16", "loses range"),
        ("cast f32 → u8", "loses value"),
        ("sum", "f32"),
        ("output 0", "f16[n]"),
        ("output 1", "u8[n]"),
        ("output 2", "f32"),
    ]
    encoder = next(item for item in drawn.items if isinstance(item, Cluster))
    attention = encoder.items[-1]
    assert isinstance(attention, Cluster) and (encoder.name, attention.name) == (
        "encoder",
        "attention",
    )
    assert attention.path == "encoder/attention" and attention.items == [7, 8]
    assert (0, 2) in drawn.links and (2, 3) in drawn.links and (8, 12) not in drawn.links


def test_titles_tell_the_line_of_text_the_place_and_the_reason() -> None:
    found = titles(draw(mixed()))
    [cast] = [title for title in found if "{to=float16}" in title and "of multiply" in title]
    text, lost, use = cast.split("\n")
    assert text == "%0 = cast(%x) {to=float16} : float16[n]"
    assert lost.startswith("loses precision: 2049 becomes 2048")
    assert use.startswith("lhs of multiply at tests/support/pictured_graphs.py:")
    assert use.endswith("[encoder], max: int16 -> float16")
    assert any(re.search(r"= sum\(.*\nat tests/support/pictured_graphs.py:\d+", t) for t in found)
    assert "layer encoder/attention" in found


def test_a_cast_that_serves_many_uses_tells_a_few() -> None:
    g = Graph("shared")
    x, y = g.input("int16", name="x"), g.input("float32", name="y")
    for _ in range(40):
        y = y + x
    g.output(y)
    [title] = [title for title in titles(draw(g)) if "{to=float32}" in title and "rhs" in title]
    assert title.count("rhs of add") == 6 and title.endswith("and 34 more uses")


def dashes(svg: str) -> set[str]:
    """How the frames of casts are broken, those in the legend too."""
    polygons = ElementTree.fromstring(svg).iter(f"{SVG}polygon")
    return {polygon.attrib.get("stroke-dasharray", "") for polygon in polygons}


def test_kinds_of_casts_differ_without_colour() -> None:
    assert dashes(draw(mixed())) == {KINDS["implicit"].dashes, KINDS["explicit"].dashes}
    g = Graph("narrow")
    x = g.input("bfloat16", name="x")
    g.output(x + x)
    legal = draw(lower(g))
    assert dashes(legal) == {KINDS["legalization"].dashes, ""}  # those of the levels are whole
    assert "legalize bf16 → f32" in texts(legal) and "cast f32 → f16" in texts(draw(mixed()))
    assert KINDS["assignment"].dashes in dashes(draw(assigned().graph))
    assert len({style.dashes for style in KINDS.values()}) == 5


def test_the_legend_tells_what_there_is() -> None:
    assert texts(draw(mixed()))[-6:] == [
        *("exact", "loses precision", "loses range", "loses value"),
        *("implicit", "written by the user"),
    ]
    g = Graph("plain")
    g.output(g.input("float32", name="x") + 1)
    assert texts(draw(g)) == ["x", "f32", "1.0", "f32", "add", "f32", "output 0", "f32"]


def test_marks_from_outside_prevail() -> None:
    g = implicit_cast(mixed())
    place = next(s.index for s in g.symbols if s.op is ops.cast)
    svg = graph_svg(g, {place: Mark("range", "because of <this>"), 0: Mark("value", "this too")})
    assert any("because of <this>" in title for title in titles(svg))
    assert texts(svg)[:2] == ["encoder", "attention"]
    drawn = graph_diagram(g, {place: Mark("exact", "it fits")})
    assert drawn.boxes[place].lines == ("i16 → f16", "exact")
    assert graph_diagram(g, {0: Mark("value", "gone")}).boxes[0].level == "value"


def test_a_number_that_survives_is_an_exact_cast() -> None:
    g = Graph("number", rules="numpy")
    g.output(g.input("float16", name="x") + g.constant(np.int32(7)))
    assert ("i32 → f64", "exact") in shown(graph_diagram(implicit_cast(g)))
    g = Graph("cast")
    g.output(g.scalar[DType.int32](7).cast("int8"), g.scalar[DType.int32](300).cast("int8"))
    svg = texts(draw(g))
    assert svg.count("exact") == 2 and svg.count("loses value") == 2  # a box and the legend


def test_constants_that_casts_were_folded_into_keep_the_colour() -> None:
    g = Graph("folded")
    g.output(g.input("float16", ("n",), name="x") * g.constant(np.array([1, 2049], np.int16))[0])
    [constant] = [s for s in lower(g).symbols if s.op is ops.constant and s.origins]
    assert graph_diagram(lower(g)).boxes[constant.index].level is None
    box = graph_diagram(lower(g), marks_of(cast_report(lower(g)))).boxes[constant.index]
    assert box.look == "constant" and box.level == "precision" and "2049 becomes" in box.title


@every("source", [d for d in STRONG if not d.is_complex])
@every("target", [d for d in STRONG if not d.is_complex])
def test_levels_are_what_conversions_do(source: DType, target: DType) -> None:
    found = level(loss(source, target), source, target)
    assert (found == "exact") == source.exact_in(target)
    # The greatest power of two of a float, the greatest integer; their negatives; 1 and 0.
    top = np.ldexp(0.5, np.frexp(float(source.max))[1]) if source.is_float else source.max
    low = max(-top, source.min) if source.is_float else source.min
    given = [x for x in (top, low, 1, 0) if source.min <= x]
    with np.errstate(all="ignore"):
        array = np.array([np.array(x).astype(source.storage) for x in given])
        made = convert(array, source, target).astype(np.float64)
        was = array.astype(np.float64)
    # Nothing here rounds downwards but at the end of a range.
    overflown = (~np.isfinite(made) | (np.abs(made) < np.abs(was))).any()
    if found == "range":
        assert target.is_float and overflown
    if found in ("exact", "precision"):
        assert not overflown
    if found == "precision":
        assert target.is_float and (np.sign(made) == np.sign(was)).all()
    if found == "value":
        special = loss(source, target).kinds == ("special",)
        assert special or not target.is_float or (np.sign(made) != np.sign(was)).any()


# -- three formats, one diagram


def quoted(text: str) -> str:
    """A DOT string as Graphviz shows it."""
    escapes = {"n": "\n", '"': '"', "\\": "\\"}
    body = re.sub(r"\\(.)", lambda found: escapes[found[1]], text[1:-1], flags=re.S)
    assert not re.search(r"&(?!amp;)", body)
    return body.replace("&amp;", "&")


def dot_labels(text: str) -> list[str]:
    """The labels of DOT text, which must be tokens of its grammar and nothing else."""
    token = re.compile(r'\s*("(?:[^"\\]|\\.)*"|->|[A-Za-z_]\w*|\d+|[{}\[\]=,;])', re.S)
    tokens, at = [], 0
    while at < len(text.rstrip()):
        found = token.match(text, at)
        assert found, text[at : at + 40]
        tokens.append(found[1])
        at = found.end()
    assert tokens.count("{") == tokens.count("}") and tokens.count("[") == tokens.count("]")
    return [quoted(tokens[i + 2]) for i, each in enumerate(tokens) if each == "label"]


def mermaid_labels(text: str) -> list[str]:
    """The labels of Mermaid text, whose lines must be of a few strict forms."""
    label = r'"((?:[\w .,:→…+-]|#\d+;|<br/>)*)"'
    shapes = r"(?:\(\[|\[\[|\{\{|\[|\()"
    ends = r"(?:\]\)|\]\]|\}\}|\]|\))"
    style = r"fill:#\w{6},stroke:#\w{6},color:#\w{6}(,stroke-dasharray:[\d. ]+)?"
    forms = [
        "flowchart TB",
        rf" +subgraph layer[_\d]+\[{label}\]",
        rf" +n\d+{shapes}{label}{ends}",
        r" +end",
        r"  n\d+ --> n\d+",
        rf"  style n\d+ {style}",
    ]
    found: list[str] = []
    for line in text.split("\n"):
        matches = [match for form in forms if (match := re.fullmatch(form, line))]
        assert matches, line
        if '"' in line:
            told = matches[0][1].replace("<br/>", "\n")
            found.append(re.sub(r"#(\d+);", lambda number: chr(int(number[1])), told))
    return found


@every("make", [mixed, hostile])
def test_all_formats_show_the_same(make: Any) -> None:
    g = implicit_cast(make())
    drawn = graph_diagram(g)
    expected = sorted(["\n".join(box.lines) for box in drawn.boxes] + names(drawn.items))
    assert sorted(dot_labels(graph_dot(g))) == expected
    assert sorted(mermaid_labels(graph_mermaid(g))) == expected
    lines = [line for box in drawn.boxes for line in box.lines]
    frames = names(drawn.items)
    assert texts(graph_svg(g))[: len(frames) + len(lines)] == [*frames, *lines]
    for a, b in drawn.links:
        assert f"  n{a} --> n{b}\n" in graph_mermaid(g)
        assert f"  n{a} -> n{b} [" in graph_dot(g)


@every("draws", GRAPH_FORMATS.values())
def test_hostile_names_are_cut_short_and_stay_text(draws: Any) -> None:
    text = draws(implicit_cast(hostile()), None)
    text.encode("utf-8")
    assert len(text) < 40_000
    assert not set("\x00\x1b\u202e") & set(text)
    for box in graph_diagram(hostile()).boxes:
        assert max(map(len, box.lines)) <= 60
        assert max(map(len, box.title.split("\n"))) <= 240


def test_hostile_names_are_text_in_svg_and_on_pages() -> None:
    g = hostile()
    root = ElementTree.fromstring(graph_svg(g))
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= {
        *("svg", "title", "style", "rect", "polygon", "path", "g", "text")
    }
    assert any('<script>alert("x")<' in title for title in titles(graph_svg(g)))

    class Page(HTMLParser):
        tags: set[str] = set()  # noqa: RUF012

        def handle_starttag(self, tag: str, attrs: Any) -> None:
            self.tags.add(tag)
            assert not [name for name, _ in attrs if name.startswith("on")]

    page = Page()
    page.feed(graph_html(g))
    assert "script" not in page.tags and {"details", "pre", "svg"} <= page.tags


@pytest.mark.skipif(not shutil.which("dot"), reason="Graphviz is not installed")
@pytest.mark.parametrize("make", [mixed, hostile])
def test_graphviz_reads_it(make: Any) -> None:
    text = graph_dot(implicit_cast(make()))
    run = subprocess.run(["dot", "-Tplain"], input=text, encoding="utf-8", capture_output=True)
    assert (run.returncode, run.stderr) == (0, "")


@given(programs())
def test_any_graph_is_drawn(program: Program) -> None:
    for draws in GRAPH_FORMATS.values():
        assert draws(program.graph, None)
    ElementTree.fromstring(draw(program.graph))
    dot_labels(draw(program.graph, "dot"))
    mermaid_labels(draw(program.graph, "mermaid"))


def test_the_same_bytes_every_time() -> None:
    code = (
        "from tests.support.pictured_graphs import hostile, mixed\n"
        "from graphir.passes import draw\n"
        "for g in (mixed(), hostile()):\n"
        "    for format in ('svg', 'dot', 'mermaid'): print(draw(g, format))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(graphir.__file__).parents[1],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(told) == 1 and b"<svg" in told.pop()


# -- pages, schemes


def test_the_picture_needs_nothing_from_elsewhere_and_styles_only_itself() -> None:
    svg = draw(mixed())
    assert set(re.findall(r"https?://[^\"]*", svg)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<script|<image|@import|url\(| id=", svg)
    [style] = [each.text or "" for each in ElementTree.fromstring(svg).iter(f"{SVG}style")]
    light, dark = style.split("@media (prefers-color-scheme:dark)")
    selectors = re.findall(r"([^{}]+)\{", light + dark[1:])
    assert selectors and all(re.match(r"\.graphir\b", each) for each in selectors)
    assert style in draw(hostile())  # so that pictures that share a page agree


def test_a_notebook_shows_the_picture_and_the_text() -> None:
    g = mixed()
    html = g._repr_html_()
    assert html == graph_html(g) and html.count("<svg") == 1
    assert f"{str(g).splitlines()[0].replace('>', '&gt;')}" in html
    long = Graph("long")
    x = long.input("float32", name="x")
    for _ in range(1500):
        x = x + x
    long.output(x)
    told = long._repr_html_()
    assert "print(graph) shows all" in told and "%20 = add" in told and "%40 = add" not in told


def test_pictures_are_loaded_when_drawn() -> None:
    code = "import sys, graphir; sys.exit(any('pictures' in name for name in sys.modules))"
    root = Path(graphir.__file__).parents[1]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


def test_what_is_no_format_is_refused() -> None:
    with pytest.raises(GraphError, match="drawn as svg, dot, mermaid; got 'png'"):
        draw(mixed(), "png")
