"""The layout of a diagram: the sheets of its frames, each a layered drawing (Sugiyama's method).

Each frame is laid out as a sheet of its own, from the inside out, and is then one node of the sheet
around it. A value that crosses the border of a frame has a pin there, where the lines inside and
outside meet. The diagram of a lattice grows upwards: its sheet is turned upside down.

In a layered drawing (`Layers`) a node stands in a row below all nodes that it needs. A line between
distant rows gets a lane, a dummy node, in each row between them, so that the later steps see lines
between neighbouring rows. Sweeps down and up sort each row by the mean position of its neighbours
(the barycenter heuristic). Then sweeps move the rows to the weighted medians at which lines are
vertical, with the distances kept (`apart`).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Hashable, Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from itertools import accumulate, pairwise
from math import fsum  # sum() rounds in other ways from Python 3.12 on
from operator import add, sub
from statistics import median
from typing import Any, NamedTuple, TypeAlias
from unicodedata import east_asian_width

from graphir.drawing.diagram import Cluster, Diagram, Item, NodeBox
from graphir.errors import GraphError

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


# -- layered drawings

LANE = 8.0
"""The width of a lane."""

LARGEST = 50_000
"""The most nodes and lanes of a picture; a folded graph has no more."""

_STARTS = (1, 10006, 3, 7)
_PRIME = 10007  # multiples of the numbers modulo a prime are a shuffle, the same on every machine
_SMALL = 300
"""Up to this many numbers and segments, all _STARTS are tried; of larger pictures fewer, and from
three times as many on with fewer sweeps, so that the work grows as the picture does."""

_FULL = 1000.0  # the width that the nodes of a row may fill
_GAP = 18.0  # between two boxes of a row
_BETWEEN = 24.0, 64.0  # the least and the greatest distance between rows
_SWEEPS, _ROUNDS = 24, 30  # the most for the order, and those for the positions
_AXIS = 100.0  # the weight that keeps frames in one column

Point: TypeAlias = tuple[float, float]


class Node(NamedTuple):
    """A rectangle with ports: the offsets from its middle where each route enters and leaves."""

    width: float
    height: float
    ins: Mapping[Any, float] = {}
    outs: Mapping[Any, float] = {}


class Edge(NamedTuple):
    """A line between two nodes. Edges of one route share lanes."""

    route: Hashable
    source: int
    target: int


class Link(NamedTuple):
    """A segment of a line between neighbouring rows, seen from one end.

    `other` is the number at the other end; `here` and `there` are the port offsets at both ends.
    """

    other: int
    here: float
    there: float


class Layers:
    """Nodes in rows, each below the nodes that it needs, and the lanes of lines within rows.

    Nodes and lanes share one numbering, nodes first. The last `heads + tails` nodes form the first
    and the last row. The first head, the `anchor`, stays left of the others. For each number, `row`
    has its row, `x` its middle, and `links` its segments to the row before and to the row after.
    `chains` has the numbers along each edge, from end to end.
    """

    def __init__(
        self, nodes: Sequence[Node], edges: Sequence[Edge], heads: int, tails: int
    ) -> None:
        self.count, self.nodes = len(nodes), list(nodes)
        self.row = _rows(nodes, edges, heads, tails)
        self.anchor = len(nodes) - heads - tails if heads else -1
        self._lanes: dict[tuple[Hashable, int], int] = {}
        self.chains: dict[Edge, list[int]] = {}
        for edge in edges:
            between = range(self.row[edge.source] + 1, self.row[edge.target])
            lanes = [self._lane(edge.route, row) for row in between]
            self.chains[edge] = [edge.source, *lanes, edge.target]
            if len(self.row) > LARGEST:
                raise GraphError(
                    "svg: the picture is too large",
                    got=f"{len(nodes):,} nodes and {len(edges):,} edges, which pass through more "
                    f"than {LARGEST:,} places",
                    fix='use format "dot", which Graphviz lays out, "mermaid" or "text"',
                )
        segments = {
            (edge.route, *pair): None
            for edge, chain in self.chains.items()
            for pair in pairwise(chain)
        }
        self.links: list[list[list[Link]]] = [[[] for _ in self.row] for _ in range(2)]
        for route, high, low in segments:
            leaves, enters = self._port(high, route, 1), self._port(low, route, 0)
            self.links[1][high].append(Link(low, leaves, enters))
            self.links[0][low].append(Link(high, enters, leaves))
        self.x: list[float] = [0.0] * len(self.row)
        size = max(len(segments) + len(self.row), _SMALL)
        part = min(1.0, 3 * _SMALL / size)
        self._order(max(1, len(_STARTS) * _SMALL // size), max(4, int(_SWEEPS * part)))
        self._straighten(max(4, int(_ROUNDS * part)))

    def _lane(self, route: Hashable, row: int) -> int:
        if (route, row) not in self._lanes:
            self._lanes[route, row] = len(self.row)
            self.row.append(row)
            self.nodes.append(Node(LANE, 0.0))
        return self._lanes[route, row]

    def _port(self, number: int, route: Hashable, side: int) -> float:
        """Return the port offset, from the middle, where a route enters (0) or leaves (1)."""
        node = self.nodes[number]
        return (node.outs if side else node.ins).get(route, 0.0)

    def _lanes_among(self, a: int, b: int) -> int:
        return (a >= self.count) + (b >= self.count)

    # -- the order within rows

    def _order(self, starts: int, sweeps: int) -> None:
        """Reduce crossings by sweeps, from several first orders; the best order of all is kept."""
        fewest: int | None = None
        best: tuple[list[list[int]], list[float]] = [], self.x
        for step in _STARTS[:starts]:
            self.rows: list[list[int]] = [[] for _ in range(max(self.row, default=-1) + 1)]
            for number in sorted(
                range(len(self.row)), key=lambda i: (i != self.anchor, i * step % _PRIME)
            ):
                self.rows[self.row[number]].append(number)
            for row in self.rows:
                self._place(row, [(0.0, 1.0)] * len(row))
            for sweep in range(sweeps + 1):
                if sweep:
                    for row in self.rows if sweep % 2 else reversed(self.rows):
                        self._sort(row, (sweep + 1) % 2)
                crossings = self._crossings()
                if fewest is None or crossings < fewest:
                    fewest, best = crossings, ([list(row) for row in self.rows], list(self.x))
                if not fewest:
                    break
        self.rows, self.x = best

    def _sort(self, row: list[int], side: int) -> None:
        aims = {number: self._mean(number, side) for number in row}
        row.sort(key=lambda number: (number != self.anchor, aims[number]))
        self._place(row, [(aims[number], 1.0) for number in row])

    def _mean(self, number: int, side: int) -> float:
        links = self.links[side][number]
        if not links:
            return self.x[number]
        return fsum(self.x[at] + there - here for at, here, there in links) / len(links)

    def _segments(self, row: Sequence[int]) -> list[tuple[float, float]]:
        """Return the ends, in this row and in the next, of the segments below a row."""
        x = self.x
        return [
            (x[number] + link.here, x[link.other] + link.there)
            for number in row
            for link in self.links[1][number]
        ]

    def _crossings(self) -> int:
        """Return the number of crossings between all neighbouring rows."""
        count = 0
        for row in self.rows:
            ends: list[float] = []
            for _, end in sorted(self._segments(row)):
                count += len(ends) - bisect_right(ends, end)
                insort(ends, end)
        return count

    # -- positions

    def _place(self, row: Sequence[int], aims: Sequence[tuple[float, float]]) -> None:
        steps = [self._distance(a, b) for a, b in pairwise(row)]
        for number, place in zip(row, apart(aims, steps), strict=True):
            self.x[number] = place

    def _distance(self, left: int, right: int) -> float:
        """Return the least distance between the middles of two neighbours in a row."""
        gap = _GAP * (1, 0.6, 0.2)[self._lanes_among(left, right)]
        return (self.nodes[left].width + self.nodes[right].width) / 2 + gap

    def _straighten(self, rounds: int) -> None:
        """Move the rows by sweeps to the positions where lines lean least, long lines first.

        Frames stay in the middle; otherwise each would shift against the frame before it.
        """
        for sweep in range(rounds):
            # A sweep down aligns with the row above, a sweep up with the row below. The last half
            # of the sweeps align with both.
            sides = (0, 1) if sweep >= rounds // 2 else (sweep % 2,)
            for row in reversed(self.rows) if sweep % 2 else self.rows:
                self._place(row, [self._aim(number, sides) for number in row])

    def _aim(self, number: int, sides: Sequence[int]) -> tuple[float, float]:
        """Return the weighted median of the positions where a number's lines are vertical.

        The second result is its weight.
        """
        if self.nodes[number].ins or self.nodes[number].outs:
            return 0.0, _AXIS
        aims = [
            self.x[at] + there - here
            for side in sides
            for at, here, there in self.links[side][number]
            for _ in range((2, 1, 8)[self._lanes_among(number, at)])
        ]
        if number == self.anchor or not aims:
            return self.x[number], 0.01
        return median(aims), float(len(aims))

    def placed(self) -> tuple[float, float, list[Point], dict[Edge, list[Point]]]:
        """Return the size, the upper left corner of each node, and the points of each edge."""
        halves = [node.width / 2 for node in self.nodes]
        left = min(map(sub, self.x, halves), default=0.0)
        self.x = [x - left for x in self.x]
        heights = [max((self.nodes[i].height for i in row), default=0.0) for row in self.rows]
        tops = list(accumulate(map(add, heights, map(self._gap, self.rows)), initial=0.0))
        feet = list(map(add, tops, heights))
        corners = [
            (self.x[i] - self.nodes[i].width / 2, tops[self.row[i]]) for i in range(self.count)
        ]
        lines = {edge: self._line(edge, tops, feet) for edge in self.chains}
        return max(map(add, self.x, halves), default=0.0), max(feet, default=0.0), corners, lines

    def _gap(self, row: Sequence[int]) -> float:
        """Return the distance below a row: greater where many lines lean, or lines lean far."""
        leans = [abs(a - b) for a, b in self._segments(row)]
        least, most = _BETWEEN
        return min(most, least + max(leans, default=0.0) / 8 + len(leans) / 2)

    def _line(self, edge: Edge, tops: Sequence[float], feet: Sequence[float]) -> list[Point]:
        """Return a line's points, from the foot of the source to the head of the target.

        The line is vertical inside rows and leans between rows.
        """
        x = self.x[edge.source] + self._port(edge.source, edge.route, 1)
        top = tops[self.row[edge.source]] + self.nodes[edge.source].height
        points = [(x, top), (x, feet[self.row[edge.source]])]
        for high, low in pairwise(self.chains[edge]):
            points.append((self.x[high] + self._port(high, edge.route, 1), feet[self.row[high]]))
            points.append((self.x[low] + self._port(low, edge.route, 0), tops[self.row[low]]))
        return [*points, points[-1], points[-1]]


def apart(aims: Sequence[tuple[float, float]], steps: Sequence[float]) -> list[float]:
    """Return coordinates at least `steps` apart that are nearest to weighted aims, in order.

    `aims` are (position, weight). The result is the least squares solution, found by pooling
    adjacent violators: coordinates that would come too near move together as one pool.
    """
    offsets = list(accumulate(steps, initial=0.0))
    pools: list[tuple[float, float, int]] = []  # a pool's position, weight and size
    for (aim, weight), offset in zip(aims, offsets, strict=True):
        pool = (aim - offset, weight, 1)
        while pools and pools[-1][0] > pool[0]:
            at, other, count = pools.pop()
            both = other + pool[1]
            pool = (at * other + pool[0] * pool[1]) / both, both, count + pool[2]
        pools.append(pool)
    middles = [at for at, _, count in pools for _ in range(count)]
    return [at + offset for at, offset in zip(middles, offsets, strict=True)]


# -- rows


def _rows(nodes: Sequence[Node], edges: Sequence[Edge], heads: int, tails: int) -> list[int]:
    """Return the row of each node, below the rows of all nodes that it needs.

    The nodes of a row fill at most the width _FULL. Then nodes that need no others, such as
    constants, move down to the row above their first user.
    """
    count = len(nodes) - heads - tails
    before: list[list[int]] = [[] for _ in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    for _, source, target in edges:
        if source < count and target < count:
            after[source].append(target)
            before[target].append(source)
    row, used = [0] * count, dict[int, float]()

    def move(number: int, rows: range) -> None:
        """Put a node into the first of the rows that has room; an empty row has room for any."""
        # The tolerance lets a row count as empty in spite of the rounding of its used width.
        room = max(0.0, _FULL - nodes[number].width) + 1e-6
        row[number] = next(i for i in rows if used.get(i, 0.0) <= room)
        used[row[number]] = used.get(row[number], 0.0) + nodes[number].width + _GAP

    for i in TopologicalSorter(dict(enumerate(before))).static_order():
        move(i, range(1 + max((row[at] for at in before[i]), default=-1), count + 1))
    fed = {edge.target for edge in edges}
    for i in range(count):
        if after[i] and i not in fed:
            used[row[i]] -= nodes[i].width + _GAP
            move(i, range(min(row[at] for at in after[i]) - 1, -1, -1))
    dense = {place: i + bool(heads) for i, place in enumerate(sorted(set(row)))}
    last = len(dense) + bool(heads) if count else 1
    return [*(dense[place] for place in row), *[0] * heads, *[last] * tails]
