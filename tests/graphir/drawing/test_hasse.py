"""Pictures of lattices: geometry, exhaustively over all lattices there are; marks; determinism."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

import graphir
from graphir import Lattice, lattice, lattices, rule_sets
from graphir.drawing.formats import lattice_dot, lattice_svg
from tests.support.partial_orders import orders
from tests.support.pictures import SVG, Picture, Rect, cross, sampled
from tests.support.tables import every

KNOWN: dict[str, Lattice[Any]] = {
    **{name: lattice(name) for name in lattices()},
    **{one.name: one.lattice for one in rule_sets() if one.lattice is not None},
}
ALL = sorted(KNOWN)


def check(order: Lattice[Any]) -> Picture:
    """The picture of a lattice, whose geometry must be right whatever the lattice."""
    found = Picture(lattice_svg(order))
    paper = Rect(-0.1, -0.1, found.width, found.height)
    assert set(found.boxes) == {str(node) for node in order}
    for name, box in found.boxes.items():
        assert paper.holds(box.left, box.top) and paper.holds(box.right, box.bottom), name
        assert not [n for n, other in found.boxes.items() if n != name and box.overlaps(other)]
    assert set(found.lines) == {(str(low), str(high)) for low, high in order.pairs()}
    for (low, high), points in found.lines.items():
        check_line(found, low, high, points)
    return found


def check_line(found: Picture, low: str, high: str, points: list[tuple[float, float]]) -> None:
    """A line goes from the top of the lower box up to the foot of the higher, past all others."""
    (x, y), (to_x, to_y) = points[0], points[-1]
    lower, higher = found.boxes[low], found.boxes[high]
    assert higher.bottom < lower.top
    assert y == pytest.approx(lower.top, abs=0.11) and lower.left < x < lower.right
    assert to_y == pytest.approx(higher.bottom, abs=0.11) and higher.left < to_x < higher.right
    assert all(b <= a + 1e-9 for (_, a), (_, b) in pairwise(points))
    for name, box in found.boxes.items():
        # Its own boxes it only touches; from others it keeps away.
        room = box.grown(-0.2 if name in (low, high) else 4)
        assert not [p for p in points if room.holds(*p)], (low, high, name)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ALL)
def test_boxes_lie_apart_and_lines_pass_them(name: str):
    check(KNOWN[name])


@given(orders())
@settings(max_examples=60, deadline=None)
def test_so_they_do_for_random_orders(edges: dict[int, list[int]]):
    check(Lattice("random", edges))


def test_so_they_do_where_rows_are_full():
    wide = {f"a node with a long name, number {i}": ["top"] for i in range(9)}
    found = check(Lattice("wide", {"bottom": [*wide], **wide}))
    assert len({box.top for box in found.boxes.values()}) == 5
    check(Lattice("wider", {"x" * 200: ["y" * 100], "z" * 90: ["y" * 100]}))
    check(Lattice("apart", {f"node {i:040}": [] for i in range(12)}))


def test_so_they_do_for_a_lattice_of_many_nodes():
    near = {f"n{i}": [f"n{j}" for j in (i + 1, i + 3, i * 2) if i < j < 50] for i in range(50)}
    check(Lattice("many", near))


@every("name", [*lattices(), "max", "python"])
def test_labels_are_legible_400_pixels_wide(name: str):
    found = Picture(lattice_svg(KNOWN[name]))
    size = float(next(g.attrib["font-size"] for g in found.root.iter() if "font-size" in g.attrib))
    assert size * min(1, 400 / found.width) >= 9
    for text, box in found.boxes.items():
        # A letter of a monospaced font is about 0.6 of its size wide.
        assert 0 < (box.right - box.left) - 0.6 * size * len(text) < 20
        middle = float(found.texts[text].attrib["x"])
        assert middle == pytest.approx((box.left + box.right) / 2, abs=0.11)
        assert box.top < float(found.texts[text].attrib["y"]) - 3 < box.bottom - 6


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["max", "max_strict", "python", *lattices()])
def test_hardly_any_lines_cross(name: str):
    # The first cannot be drawn otherwise; fewer in the second would be welcome.
    most = {"jep_not_lattice_right": 1, "jep_int_float_numpy_like": 3}
    assert Picture(lattice_svg(KNOWN[name])).crossings() <= most.get(name, 0)


def test_lines_that_must_cross_are_seen_to():
    assert Picture(lattice_svg(lattice("jep_not_lattice_right"))).crossings() == 1


def test_segments_that_cross_are_found():
    assert cross((0, 0), (2, 2), (0, 2), (2, 0))
    assert not cross((0, 0), (2, 2), (0, 1), (-1, 4))
    [start, *_, end] = sampled("M0,0 V2 C0,5 9,5 9,10 V20")
    assert (start, end) == ((0, 0), (9, 20))


def test_a_chain_is_upright():
    found = Picture(lattice_svg(lattice("jep_python")))
    assert len({round(x) for points in found.lines.values() for x, _ in points}) == 1


# -- what the picture says besides


def test_the_picture_is_one_that_scales_and_is_told_of():
    found = Picture(lattice_svg(lattice("jax_doc")))
    root = found.root
    assert root.attrib["role"] == "img" and root.attrib["aria-label"] == "Lattice jax_doc"
    title = root.find(f"{SVG}title")
    assert title is not None and title.text == "Lattice jax_doc"
    assert "max-width:100%" in root.attrib["style"]
    assert (float(root.attrib["width"]), float(root.attrib["height"])) == (
        found.width,
        found.height,
    )


def test_the_picture_needs_nothing_from_elsewhere_and_styles_nothing_else():
    text = lattice_svg(lattice("max"))
    assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<script|<image|@import|url\(| class=.(?!paper|graphir)| id=", text)


def test_the_paper_is_light_and_covers_the_picture():
    found = Picture(lattice_svg(lattice("max")))
    paper = next(r for r in found.root.iter(f"{SVG}rect") if r.attrib.get("class") == "paper")
    assert paper.attrib["fill"] == "#ffffff"
    assert (float(paper.attrib["width"]), float(paper.attrib["height"])) == (
        found.width,
        found.height,
    )


def test_names_are_escaped():
    order = Lattice('<"odd" & name>', {"a<b": ['"c" & d'], '"c" & d': ["e\x00\n\ud800"]})
    svg = lattice_svg(order)
    svg.encode("utf-8")
    found = {element.text for element in ElementTree.fromstring(svg).iter()}
    assert {"a<b", '"c" & d', "e\ufffd\ufffd\ufffd", 'Lattice <"odd" & name>'} <= found
    assert r'"a\"b" -> "c d" [' in lattice_dot(Lattice("odd", {'a"b': ["c d"]}))


def test_an_empty_lattice_is_an_empty_picture():
    found = Picture(lattice_svg(Lattice("empty", {})))
    assert (found.boxes, found.lines) == ({}, {}) and found.width > 0 and found.height > 0


def test_the_same_bytes_every_time():
    code = (
        "from graphir import lattice; from graphir.drawing.formats import LATTICE_FORMATS\n"
        "for name in ('max', 'max_strict', 'jep_int_float_numpy_like'):\n"
        "    for draw in LATTICE_FORMATS.values(): print(draw(lattice(name)))"
    )
    root = Path(graphir.__file__).parents[1]
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(told) == 1 and b"<svg" in told.pop()
