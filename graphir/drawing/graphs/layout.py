"""The layout of a graph's picture: positions of boxes, frames and lines.

Each frame is laid out as a sheet of its own, from the inside out, and is then one tile of the sheet
around it. A value that crosses the border of a frame has a pin there, where the lines inside and
outside meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias
from unicodedata import east_asian_width

from graphir.drawing.graphs.diagram import Cluster, Diagram, Item, NodeBox
from graphir.drawing.graphs.sheet import sheet
from graphir.drawing.graphs.web import LANE, Tile, Wire
from graphir.drawing.hasse import Point

FONT = 12.0
"""The font size of labels. Labels are monospaced, because only then are their widths known."""

SMALL = 11.0
"""The font size of all lines of text in a box but the first."""

LEADING = 15.0
"""The distance from one line of text to the next."""

_CELL = 0.602  # the width of a letter, as a fraction of the font size
_PADDING = 9.0, 6.0  # from the text to the sides of its box, and to its head and foot
_POINT = 8.0  # the depth of the points at the sides of a cast's hexagon
_FRAME = 14.0  # from a frame's sides to its contents
_TITLE = 12.0  # the height of a frame's head, where its name is
_INSET = 8.0  # from a frame's head and foot, which lines cross, to its contents
_PORT = 15.0  # between lines that enter a box side by side

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


class GraphLayout(NamedTuple):
    """A picture's size, its boxes by number, its frames from the outermost, its lines.

    Points of a line come in pairs, as in a sheet; y grows downwards.
    """

    width: float
    height: float
    boxes: dict[int, Placement]
    frames: list[Frame]
    lines: dict[tuple[int, int], list[Point]]


def layout(diagram: Diagram) -> GraphLayout:
    """Return the layout of a diagram, with each box below the boxes that it needs.

    The layout is deterministic.
    """
    targets = {to for _, to in diagram.links}
    tiles = [_tile(box, low=i not in targets) for i, box in enumerate(diagram.boxes)]
    root = _Node(tiles, diagram.items, list(diagram.links), None)
    placement = GraphLayout(root.sheet.width, root.sheet.height, {}, [], {})
    root.put((0.0, 0.0), 0, placement)
    for ends in diagram.links:
        placement.lines[ends] = root.line(*ends, (0.0, 0.0))
    _spread(placement)
    return placement


def width(text: str, font: float = FONT) -> float:
    """Return the width of a line of text; wide East Asian characters count twice."""
    return sum(2 if east_asian_width(c) in "WF" else 1 for c in text) * _CELL * font


def _tile(box: NodeBox, low: bool) -> Tile:
    first, *rest = box.lines
    writing = max(width(first), *(width(line, SMALL) for line in rest), 30.0)
    beside, above = _PADDING
    point = _POINT if box.look == "cast" else 0.0
    return Tile(writing + 2 * (beside + point), len(box.lines) * LEADING + 2 * above - 2, low=low)


class _Node:
    """The sheet of one frame, or of the whole picture. `part` maps each box to its item here.

    A value that enters or leaves the frame has a pin on the border, where lines meet.
    """

    def __init__(
        self, boxes: Sequence[Tile], items: Sequence[Item], links: Sequence[Ends], title: str | None
    ) -> None:
        self.items = items
        self.part = {box: i for i, item in enumerate(items) for box in _inside(item)}
        part = self.part
        mine = [(a, b) for a, b in links if a in part or b in part]
        self.inner = {
            i: _Node(boxes, item.items, mine, item.name)
            for i, item in enumerate(items)
            if isinstance(item, Cluster)
        }
        heads = list(dict.fromkeys(a for a, _ in mine if a not in part))
        tails = list(dict.fromkeys(a for a, b in mine if b not in part))
        place = len(items) + (title is not None)
        self.head = {value: place + i for i, value in enumerate(heads)}
        self.tail = {value: place + len(heads) + i for i, value in enumerate(tails)}
        titles = [] if title is None else [Tile(width(title), _TITLE)]
        pins = [Tile(LANE, 0.0)] * (len(heads) + len(tails))
        self.sheet = sheet(
            [*(self._tile(boxes, i) for i in range(len(items))), *titles, *pins],
            self._wires(mine),
            len(titles) + len(heads),
            len(tails),
        )

    def _tile(self, boxes: Sequence[Tile], i: int) -> Tile:
        item = self.items[i]
        return self.inner[i].framed() if isinstance(item, Cluster) else boxes[item]

    def _wires(self, links: Sequence[Ends]) -> list[Wire]:
        targets: dict[int, dict[int, None]] = {}
        for a, b in links:
            source, target = self._ends(a, b)
            if source != target:
                targets.setdefault(a, {})[target] = None
        return [Wire(a, self._source(a), list(ends)) for a, ends in targets.items()]

    def _source(self, value: int) -> int:
        return self.part[value] if value in self.part else self.head[value]

    def _ends(self, source: int, to: int) -> Ends:
        """Return the two tiles of this sheet that a line connects."""
        return self._source(source), self.part[to] if to in self.part else self.tail[source]

    def framed(self) -> Tile:
        """Return the frame as a tile whose ports are the pins on its border."""
        size = self.sheet.width + 2 * _FRAME, self.sheet.height + 2 * _INSET
        corners, middle = self.sheet.corners, self.sheet.width / 2
        ins, outs = (
            {value: corners[pin][0] + LANE / 2 - middle for value, pin in pins.items()}
            for pins in (self.head, self.tail)
        )
        return Tile(*size, ins, outs)

    def put(self, at: Point, depth: int, layout: GraphLayout) -> None:
        """Add the rectangles of the boxes and frames inside to a layout."""
        for i, item in enumerate(self.items):
            x, y = self._corner(i, at)
            if isinstance(item, Cluster):
                tile = self.inner[i].framed()
                layout.frames.append(Frame(item, Placement(x, y, tile.width, tile.height), depth))
                self.inner[i].put((x + _FRAME, y + _INSET), depth + 1, layout)
            else:
                tile = self.sheet.tiles[i]
                layout.boxes[item] = Placement(x, y, tile.width, tile.height)

    def line(self, source: int, to: int, at: Point) -> list[Point]:
        """Return the points of a line's part inside this frame."""
        first, last = self._ends(source, to)
        if first == last:
            return self._within(first, source, to, at)
        own = [(x + at[0], y + at[1]) for x, y in self.sheet.lines[source, last]]
        return [
            *self._within(first, source, to, at),
            *own,
            *self._within(last, source, to, at),
        ]

    def _within(self, i: int, source: int, to: int, at: Point) -> list[Point]:
        if i not in self.inner:
            return []
        x, y = self._corner(i, at)
        return self.inner[i].line(source, to, (x + _FRAME, y + _INSET))

    def _corner(self, i: int, at: Point) -> Point:
        x, y = self.sheet.corners[i]
        return x + at[0], y + at[1]


def _inside(item: Item) -> Iterator[int]:
    if isinstance(item, Cluster):
        for each in item.items:
            yield from _inside(each)
    else:
        yield item


def _spread(layout: GraphLayout) -> None:
    """Spread the lines that enter each box, in their order from left to right above."""
    entering: dict[int, list[list[Point]]] = {}
    for (_, to), line in layout.lines.items():
        entering.setdefault(to, []).append(line)
    for to, lines in entering.items():
        lines.sort(key=lambda line: line[-4])
        room = layout.boxes[to].width - 2 * _PADDING[0] - 2 * _POINT
        step = min(_PORT, room / max(1, len(lines) - 1))
        for i, line in enumerate(lines):
            aside = (i - (len(lines) - 1) / 2) * step
            line[-3:] = [(x + aside, y) for x, y in line[-3:]]
