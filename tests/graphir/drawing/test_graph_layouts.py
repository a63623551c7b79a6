"""Where pictures of graphs put things, and what they fold: whatever the graph and its layers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphir import Graph, Symbol
from graphir.drawing import diagram
from graphir.drawing.diagram import (
    Cluster,
    Diagram,
    Fold,
    Group,
    Item,
    Part,
    graph_diagram,
    parts_of,
)
from graphir.drawing.layout import FONT, DiagramLayout, Placement, layout, width
from graphir.drawing.svg import curve
from tests.support.pictures import Rect, sampled

LAYERS = ("", "", "a", "b", "a/b", "a/b/c", "a/c", "b//c", "long layer's name")


@st.composite
def graphs(draw: Any, most: int = 40) -> Graph:
    """Sums of what is there, in layers that are entered, left and come back to."""
    g = Graph("drawn")
    symbols = [g.input("float32", name=f"x{i}") for i in range(draw(st.integers(1, 3)))]
    for _ in range(draw(st.integers(0, most))):
        layer = draw(st.sampled_from(LAYERS))
        near = st.integers(1, min(len(symbols), draw(st.sampled_from((2, 4, 100)))))
        a, b = symbols[-draw(near)], symbols[-draw(near)]
        if layer:
            with g.layer(layer):
                symbols.append(a + b if draw(st.booleans()) else a * 2.0)
        else:
            symbols.append(a - b)
    g.output(*(symbols[-i] for i in range(1, draw(st.integers(2, 4))) if i <= len(symbols)))
    return g


def inside(items: list[Item]) -> set[int]:
    return {
        box
        for item in items
        for box in (inside(item.items) if isinstance(item, Cluster) else {item})
    }


def rect(place: Placement) -> Rect:
    return Rect(place.x, place.y, place.x + place.width, place.y + place.height)


def holds(outer: Rect, inner: Rect) -> bool:
    return (
        outer.left <= inner.left
        and outer.top <= inner.top
        and inner.right <= outer.right
        and inner.bottom <= outer.bottom
    )


def check(drawn: Diagram) -> DiagramLayout:
    """The layout of a diagram, which must be right whatever the diagram."""
    plan = layout(drawn)
    boxes = {i: rect(place) for i, place in plan.boxes.items()}
    assert set(boxes) == set(range(len(drawn.boxes)))
    paper = Rect(-0.1, -0.1, plan.width + 0.1, plan.height + 0.1)
    for i, box in boxes.items():
        assert holds(paper, box)
        assert not [j for j, other in boxes.items() if j < i and box.grown(5).overlaps(other)]
        for line, size in zip(drawn.boxes[i].lines, (FONT, 11, 11, 11), strict=False):
            assert width(line, size) <= box.right - box.left - 8
    check_frames(plan, boxes)
    assert set(plan.lines) == set(drawn.links)
    for (a, b), points in plan.lines.items():
        check_line(plan, boxes, a, b, points)
    return plan


def check_frames(plan: DiagramLayout, boxes: dict[int, Rect]) -> None:
    frames = [(rect(frame.place), inside(frame.cluster.items)) for frame in plan.frames]
    for frame, members in frames:
        for i, box in boxes.items():
            assert holds(frame, box.grown(5)) if i in members else not frame.overlaps(box)
        for other, its in frames:
            nested = holds(frame, other) or holds(other, frame)
            assert nested if members & its else not frame.overlaps(other)


def check_line(
    plan: DiagramLayout, boxes: dict[int, Rect], a: int, b: int, points: list[tuple[float, float]]
) -> None:
    """A line goes down from the foot of one box to the head of another, past boxes and names."""
    (x, y), (to_x, to_y) = points[0], points[-1]
    assert y == pytest.approx(boxes[a].bottom) and boxes[a].left < x < boxes[a].right
    assert to_y == pytest.approx(boxes[b].top) and boxes[b].left < to_x < boxes[b].right
    assert all(high <= low + 1e-6 for (_, high), (_, low) in pairwise(points))
    assert all(
        abs(x - u) < 1e-6 for (x, _), (u, _) in zip(points[1:-1:2], points[2::2], strict=True)
    )
    way = sampled(curve(points))
    for i, box in boxes.items():
        room = box.grown(-0.2 if i in (a, b) else 2)
        assert not [p for p in way if room.holds(*p)], (a, b, i)
    for frame in plan.frames:
        left, top = frame.place.x + 12, frame.place.y + 17
        name = Rect(left, top - FONT * 0.8, left + width(frame.cluster.name), top + 3)
        assert not [p for p in way if name.holds(*p)], (a, b, frame.cluster.name)


@pytest.mark.exhaustive
@given(graphs())
def test_everything_has_its_place(g: Graph) -> None:
    check(graph_diagram(g))


def test_a_chain_is_upright() -> None:
    g = Graph("chain")
    x = g.input("float32", name="x")
    for i in range(60):
        with g.layer(f"layer{i // 6}"):
            x = -x
    g.output(x)
    plan = check(graph_diagram(g))
    assert max(abs(x - points[0][0]) for points in plan.lines.values() for x, _ in points) < 0.1


def test_rows_are_cut_where_they_are_full() -> None:
    g = Graph("wide")
    inputs = [g.input("float32", (3, 4, 5), name=f"a_long_name_of_input_{i}") for i in range(40)]
    g.output(*(-x for x in inputs[:20]))
    rows: dict[float, float] = {}
    for place in check(graph_diagram(g)).boxes.values():
        rows[place.y] = rows.get(place.y, 0.0) + place.width
    assert max(rows.values()) <= 1000 and len(rows) > 6


def test_many_operands_enter_one_box_side_by_side() -> None:
    from graphir import ops

    g = Graph("concat")
    inputs = [g.input("float32", (2,), name=f"x{i}") for i in range(30)]
    g.output(ops.concat(inputs))
    ends = [points[-1] for points in check(graph_diagram(g)).lines.values()]
    assert len(set(ends)) == len(ends)


# -- folding


def flat(parts: list[Part]) -> list[Symbol | Fold]:
    return [
        one for part in parts for one in (flat(part.parts) if isinstance(part, Group) else [part])
    ]


def members(part: Part) -> list[Symbol]:
    if isinstance(part, Group):
        return [symbol for inner in part.parts for symbol in members(inner)]
    return list(part.symbols) if isinstance(part, Fold) else [part]


def check_parts(g: Graph, parts: list[Part], prefix: tuple[str, ...] = ()) -> None:
    """Parts follow one another in the order of what they need, each within its layer."""
    seen: set[int] = set()
    mine = {symbol.index for part in parts for symbol in members(part)}
    for part in parts:
        here = {symbol.index for symbol in members(part)}
        assert here and not here & seen
        for symbol in members(part):
            needs = {arg.index for arg in symbol.args if arg.index in mine}
            assert needs <= seen | here
            if isinstance(part, Group) or (isinstance(part, Fold) and part.path):
                path = tuple(filter(None, symbol.location.layer.split("/")))
                assert path[: len(prefix) + 1] == tuple(part.path.split("/"))
        if isinstance(part, Group):
            check_parts(g, part.parts, tuple(part.path.split("/")))
        seen |= here


@given(graphs(), st.sampled_from((1, 5, 12, 300)))
def test_every_symbol_is_in_one_part(g: Graph, limit: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diagram, "LIMIT", limit)
        patch.setattr(diagram, "_FEW", 2)
        patch.setattr(diagram, "_PIECE", 3)
        patch.setattr(diagram, "_PIECES", 3)
        parts = parts_of(g)
        check(graph_diagram(g))
    check_parts(g, parts)
    assert sorted(s.index for part in parts for s in members(part)) == list(range(len(g)))
    if len(g) <= limit:
        assert not any(isinstance(one, Fold) for one in flat(parts))
    else:
        assert len(flat(parts)) <= max(limit, 6)


def blocks(count: int, layers: bool) -> Graph:
    """Blocks of 30 symbols; between them, one value."""
    g = Graph("blocks")
    x = g.input("float32", ("n",), name="x")
    for i in range(count):
        with g.layer(f"block{i}" if layers else "all"):
            halves = [x * 0.5 if i % 2 else x + 1.0 for i in range(4)]
            for _ in range(5):
                halves = [a + b for a, b in zip(halves, halves[1:] + halves[:1], strict=True)]
            x = halves[0] + halves[1] + halves[2]
    g.output(x)
    return g


def test_a_large_graph_is_folded_by_layer() -> None:
    g = blocks(50, layers=True)
    drawn = graph_diagram(g)
    assert len(g) > 1000 and len(drawn.boxes) == 52
    assert drawn.boxes[1].lines[0] == "block0 (30 symbols)"
    assert drawn.boxes[1].lines[1:] == ("24 add, 2 multiply",)
    assert all((i, i + 1) in drawn.links for i in range(51))


def test_layers_within_layers_are_told_apart_as_far_as_there_is_room() -> None:
    g = Graph("nested")
    x = g.input("float32", ("n",), name="x")
    for i in range(40):
        for j in range(5):
            with g.layer(f"outer{i}"), g.layer(f"inner{j}"):
                x = -(x + x)
    g.output(x)
    drawn = graph_diagram(g)
    assert sum(isinstance(item, Cluster) for item in drawn.items) == 40
    assert drawn.boxes[1].lines[0] == "inner0 (2 symbols)"
    for i in range(40):
        for j in range(20):
            with g.layer(f"outer{i}"), g.layer(f"more{j}"):
                x = -(x + x)
    drawn = graph_diagram(g)
    assert not any(isinstance(item, Cluster) for item in drawn.items)
    assert "outer0 (10 symbols)" in {box.lines[0] for box in drawn.boxes}


def test_what_has_no_layers_is_cut_into_pieces() -> None:
    g = Graph("plain")
    x = g.input("float32", ("n",), name="x")
    for _ in range(1000):
        x = -(x + x)
    g.output(x)
    drawn = graph_diagram(g)
    # One value goes from each piece to the next.
    assert list(drawn.links) == [(i, i + 1) for i in range(len(drawn.boxes) - 1)]
    assert len(drawn.boxes) == 25 and not any("\n" in title for title in drawn.links.values())
    assert all(box.lines[0].startswith("test_graph_layouts.py:") for box in drawn.boxes[:-1])


def test_a_layer_that_is_come_back_to_is_a_frame_each_time() -> None:
    g = Graph("twice")
    x, y = g.input("float32", name="x"), g.input("float32", name="y")
    with g.layer("a"):
        p = x + 1.0
    with g.layer("b"):
        q = y + 1.0
    with g.layer("a"):
        p = p * 2.0
    with g.layer("b"):
        q = q * p
    g.output(p, q)
    assert [part.path for part in parts_of(g) if isinstance(part, Group)] == ["a", "b", "a", "b"]


@pytest.mark.exhaustive
def test_100_000_symbols_are_drawn_as_a_few_boxes() -> None:
    g = Graph("huge")
    x = g.input("float32", ("n",), name="x")
    for i in range(50_000):
        with g.layer(f"l{i % 7}"):
            x = -(x + x)
    g.output(x)
    assert len(check(graph_diagram(g)).boxes) < 60


def test_many_outputs_share_a_box() -> None:
    g = Graph("many")
    x = g.input("float32", name="x")
    g.output(*(x + np.float32(i) for i in range(100)))
    assert graph_diagram(g).boxes[-1].lines == ("100 outputs", "f32")
