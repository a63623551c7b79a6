"""The layout of a diagram: the sheets of its frames, each a layered drawing (`Layers`).

Each frame is laid out as a sheet of its own, from the inside out, and is then one node of the sheet
around it. A value that crosses the border of a frame has a pin there, where the lines inside and
outside meet. The diagram of a lattice grows upwards: its sheet is turned upside down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias
from unicodedata import east_asian_width

from graphir.drawing.diagram import Cluster, Diagram, Item, NodeBox
from graphir.drawing.layers import LANE, Edge, Layers, Node, Point

FONT, SMALL, LEADING = 12.0, 11.0, 15.0
"""The font size of a box's first line and of its other lines, and the distance between lines.

Labels are monospaced, because only then are their widths known.
"""

_CELL = 0.602  # the width of a letter, as a fraction of the font size
_PADDING = 9.0, 6.0  # from the text to the sides of its box, and to its head and foot
_POINT = 8.0  # the depth of the points at the sides of a cast's hexagon
_FRAME = 14.0  # from a frame's sides to its contents
_TITLE = 12.0  # the height of a frame's head, where its name is
_INSET = 8.0  # from a frame's head and foot, which lines cross, to its contents
_PORT = 15.0  # between lines that meet a box side by side

Ends: TypeAlias = tuple[int, int]
"""The numbers of a line's source box and target box."""


class Placement(NamedTuple):
    """A rectangle, given by its upper left corner and its size."""

    x: float
    y: float
    width: float
    height: float


class Frame(NamedTuple):
    """A layer's frame, its rectangle, and its depth: the number of frames around it."""

    cluster: Cluster
    place: Placement
    depth: int


class DiagramLayout(NamedTuple):
    """A picture's size, its boxes by number, its frames from the outermost, its lines.

    Points of a line come in pairs: it leans within a pair, and is vertical between pairs. y grows
    downwards.
    """

    width: float
    height: float
    boxes: dict[int, Placement]
    frames: list[Frame]
    lines: dict[Ends, list[Point]]


def layout(diagram: Diagram) -> DiagramLayout:
    """Return the layout of a diagram, with each box below the boxes that it needs.

    In the diagram of a lattice each box is above the boxes that it needs. The layout is
    deterministic.
    """
    root = _Sheet([_node(box) for box in diagram.boxes], diagram.items, [*diagram.links], None)
    plan = DiagramLayout(root.width, root.height, {}, [], {})
    root.put((0.0, 0.0), 0, plan)
    for ends in diagram.links:
        plan.lines[ends] = root.line(ends, (0.0, 0.0))
    _spread(plan, 0)
    _spread(plan, 1)
    if not diagram.is_lattice:
        return plan
    boxes = {
        i: Placement(x, plan.height - y - tall, wide, tall)
        for i, (x, y, wide, tall) in plan.boxes.items()
    }
    lines = {ends: [(x, plan.height - y) for x, y in plan.lines[ends]] for ends in plan.lines}
    return plan._replace(boxes=boxes, lines=lines)


def width(text: str, font: float = FONT) -> float:
    """Return the width of a line of text; wide East Asian characters count twice."""
    return sum(2 if east_asian_width(c) in "WF" else 1 for c in text) * _CELL * font


def _node(box: NodeBox) -> Node:
    first, *others = box.lines
    writing = max([width(first), *(width(line, SMALL) for line in others)])
    beside, above = _PADDING
    point = _POINT if box.look == "cast" else 0.0
    return Node(writing + 2 * (beside + point), len(box.lines) * LEADING + 2 * above - 2)


def _spread(plan: DiagramLayout, end: int) -> None:
    """Spread the lines that leave (end 0) or enter (1) each box, in their order from left to right.

    Lines that come from one lane have one port.
    """
    meeting: dict[int, list[tuple[Point, list[Point]]]] = {}
    for ends, line in plan.lines.items():
        meeting.setdefault(ends[end], []).append((line[-4 if end else 3], line))
    for box, lines in meeting.items():
        ports = {bend: i for i, bend in enumerate(sorted({bend for bend, _ in lines}))}
        middle = (len(ports) - 1) / 2
        room = plan.boxes[box].width / 2 - _PADDING[0] - _POINT
        step = min(_PORT, room / max(0.5, middle))
        for bend, line in lines:
            shift = (ports[bend] - middle) * step
            part = slice(-3, None) if end else slice(None, 3)
            line[part] = [(x + shift, y) for x, y in line[part]]


# -- frames


class _Sheet:
    """The sheet of one frame, or of the whole picture. `part` maps each box to its item here.

    A value that enters or leaves the frame has a pin on the border, where lines meet. `head` and
    `tail` map such a value to the number of its pin.
    """

    def __init__(
        self, boxes: Sequence[Node], items: Sequence[Item], lines: Sequence[Ends], title: str | None
    ) -> None:
        self.items = items
        self.part = {box: i for i, item in enumerate(items) for box in _inside(item)}
        part = self.part
        lines = [ends for ends in lines if part.keys() & {*ends}]
        self.inner = {
            i: _Sheet(boxes, item.items, lines, item.name)
            for i, item in enumerate(items)
            if isinstance(item, Cluster)
        }
        heads = list(dict.fromkeys(a for a, _ in lines if a not in part))
        tails = list(dict.fromkeys(a for a, b in lines if b not in part))
        titles = [] if title is None else [Node(width(title), _TITLE)]
        first = len(items) + len(titles)
        self.head = {value: first + i for i, value in enumerate(heads)}
        self.tail = {value: first + len(heads) + i for i, value in enumerate(tails)}
        self.nodes = [
            self.inner[i].framed() if isinstance(item, Cluster) else boxes[item]
            for i, item in enumerate(items)
        ]
        nodes = [*self.nodes, *titles, *[Node(LANE, 0.0)] * (len(heads) + len(tails))]
        edges = [e for e in dict.fromkeys(map(self._edge, lines)) if e.source != e.target]
        layers = Layers(nodes, edges, len(titles) + len(heads), len(tails))
        self.width, self.height, self.corners, self.lines = layers.placed()

    def _edge(self, ends: Ends) -> Edge:
        """Return the line between two nodes of this sheet that is a part of a line."""
        a, b = ends
        source = self.part[a] if a in self.part else self.head[a]
        target = self.part[b] if b in self.part else self.tail[a]
        return Edge(a, source, target)

    def framed(self) -> Node:
        """Return the frame as a node whose ports are the pins on its border."""
        ins, outs = (
            {value: self.corners[pin][0] + (LANE - self.width) / 2 for value, pin in pins.items()}
            for pins in (self.head, self.tail)
        )
        return Node(self.width + 2 * _FRAME, self.height + 2 * _INSET, ins, outs)

    def put(self, at: Point, depth: int, plan: DiagramLayout) -> None:
        """Add the rectangles of the boxes and frames inside to a layout."""
        for i, item in enumerate(self.items):
            x, y = self._corner(i, at)
            place = Placement(x, y, self.nodes[i].width, self.nodes[i].height)
            if isinstance(item, Cluster):
                plan.frames.append(Frame(item, place, depth))
                self.inner[i].put((x + _FRAME, y + _INSET), depth + 1, plan)
            else:
                plan.boxes[item] = place

    def line(self, ends: Ends, at: Point) -> list[Point]:
        """Return the points of a line's part inside this frame."""
        edge = self._edge(ends)
        own = [(x + at[0], y + at[1]) for x, y in self.lines.get(edge, ())]
        before, after = self._within(edge.source, ends, at), self._within(edge.target, ends, at)
        return before if edge.source == edge.target else [*before, *own, *after]

    def _within(self, i: int, ends: Ends, at: Point) -> list[Point]:
        x, y = self._corner(i, at)
        return self.inner[i].line(ends, (x + _FRAME, y + _INSET)) if i in self.inner else []

    def _corner(self, i: int, at: Point) -> Point:
        x, y = self.corners[i]
        return x + at[0], y + at[1]


def _inside(item: Item) -> Iterator[int]:
    if isinstance(item, Cluster):
        for inner in item.items:
            yield from _inside(inner)
    else:
        yield item
