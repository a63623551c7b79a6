"""Layered graph drawing: rows, the order within rows, and positions (Sugiyama's method).

A node stands in a row below all nodes that it needs. A line between distant rows gets a lane, a
dummy node, in each row between them, so that the later steps see lines between neighbouring rows.
Sweeps down and up sort each row by the mean position of its neighbours (the barycenter heuristic)
and swap neighbours where that saves crossings. Then sweeps move the rows to the weighted medians at
which lines are vertical, with the distances kept (`apart`).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Hashable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate, pairwise
from math import fsum, inf  # sum() rounds in other ways from Python 3.12 on
from operator import add, sub
from typing import Any, NamedTuple, TypeAlias

from graphir.errors import GraphError

LANE = 8.0
"""The width of a lane."""

STARTS = (1, 10006, 3, 7, 1009, 2003, 4001, 5003, 6007, 8009)
_PRIME = 10007  # multiples of the numbers modulo a prime are a shuffle, the same on every machine
SMALL_SIZE = 300
"""Up to this many numbers and segments, all STARTS are tried; of larger pictures fewer, and from
three times as many on with fewer sweeps, so that the work grows as the picture does."""

_GAP = 18.0  # between two boxes of a row
_BETWEEN = 24.0, 64.0  # the least and the greatest distance between rows
_SWEEPS, _ROUNDS = 24, 30  # the most for the order, and those for the positions
_AXIS = 100.0  # the weight that keeps frames in one column

Point: TypeAlias = tuple[float, float]
Near: TypeAlias = list[tuple[list[int], list[int]]]
"""For each number its neighbours before it and after it."""


class Settings(NamedTuple):
    """The width that a row may fill, how many first orders are tried, and the most numbers."""

    full: float = 1000.0
    starts: int = 1
    largest: float = inf


class Node(NamedTuple):
    """A rectangle with ports: the offsets from its middle where each route enters and leaves.

    A `low` node stands at the foot of its row, not at the head. Nodes of one `family` that follow
    one another stand in a column.
    """

    width: float
    height: float
    ins: Mapping[Any, float] = {}
    outs: Mapping[Any, float] = {}
    low: bool = False
    family: str = ""


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
        self,
        nodes: Sequence[Node],
        edges: Sequence[Edge],
        heads: int,
        tails: int,
        settings: Settings,
    ) -> None:
        self.count, self.nodes = len(nodes), list(nodes)
        self.row = _rows(nodes, edges, heads, tails, settings.full)
        self.anchor = len(nodes) - heads - tails if heads else -1
        self._lanes: dict[tuple[Hashable, int], int] = {}
        self.chains: dict[Edge, list[int]] = {}
        for edge in edges:
            between = range(self.row[edge.source] + 1, self.row[edge.target])
            lanes = [self._lane(edge.route, row) for row in between]
            self.chains[edge] = [edge.source, *lanes, edge.target]
            if len(self.row) > settings.largest:
                raise GraphError(
                    "svg: the picture is too large",
                    got=f"{len(nodes):,} nodes and {len(edges):,} edges, which pass through more "
                    f"than {settings.largest:,} places",
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
        self.columns = self._columns()
        self.x: list[float] = [0.0] * len(self.row)
        size = max(len(segments) + len(self.row), SMALL_SIZE)
        part = min(1.0, 3 * SMALL_SIZE / size)
        starts = max(1, settings.starts * SMALL_SIZE // size)
        self._order(starts, max(4, int(_SWEEPS * part)))
        self._straighten(max(4, int(_ROUNDS * part)))
        if len({*self.columns}) < len(self.columns):
            self._align()

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

    def _columns(self) -> list[int]:
        """Return the column of each number: the first number of a chain of nodes of one family."""
        columns = list(range(len(self.row)))
        for number in sorted(range(self.count), key=self.row.__getitem__):
            after = self._akin(number, 1)
            if after >= 0 and self._akin(after, 0) == number:
                columns[after] = columns[number]
        return columns

    def _akin(self, number: int, side: int) -> int:
        """Return the one neighbour above (0) or below (1) of the same family; else -1."""
        family = self.nodes[number].family
        akin = {b for b, _, _ in self.links[side][number] if family == self.nodes[b].family}
        return akin.pop() if family and len(akin) == 1 else -1

    def _lanes_among(self, a: int, b: int) -> int:
        return (a >= self.count) + (b >= self.count)

    # -- the order within rows

    def _order(self, starts: int, sweeps: int) -> None:
        """Reduce crossings by sweeps, from several first orders; the best order of all is kept.

        The horizontal lengths of lines break ties.
        """
        best: tuple[tuple[float, float], list[list[int]], list[float]] | None = None
        for step in STARTS[:starts]:
            self.rows: list[list[int]] = [[] for _ in range(max(self.row, default=-1) + 1)]
            for number in sorted(
                range(len(self.row)), key=lambda i: (i != self.anchor, i * step % _PRIME)
            ):
                self.rows[self.row[number]].append(number)
            for row in self.rows:
                self._place(row, [(0.0, 1.0)] * len(row))
            for sweep in range(sweeps + 1):
                if sweep:
                    for row in reversed(self.rows) if not sweep % 2 else self.rows:
                        self._sort(row, (sweep + 1) % 2)
                badness = self._crossings(), self._lean() if starts > 1 else 0.0
                if best is None or badness < best[0]:
                    best = badness, [list(row) for row in self.rows], list(self.x)
                if not best[0][0] and starts == 1:
                    break
        if best:
            _, self.rows, self.x = best

    def _sort(self, row: list[int], side: int) -> None:
        aims = {number: self._mean(number, side) for number in row}
        row.sort(key=lambda number: (number != self.anchor, aims[number]))
        for i, (left, right) in enumerate(pairwise(list(row))):
            left = row[i]
            if left != self.anchor and self._crossed(left, right) > self._crossed(right, left):
                row[i : i + 2] = right, left
        self._place(row, [(aims[number], 1.0) for number in row])

    def _mean(self, number: int, side: int) -> float:
        links = self.links[side][number]
        if not links:
            return self.x[number]
        return fsum(self.x[at] + there - here for at, here, there in links) / len(links)

    def _crossed(self, left: int, right: int) -> int:
        """Return how many lines of two neighbours in a row cross, in this order of the two."""
        count, x = 0, self.x
        for side in self.links:
            ends = sorted(x[link.other] + link.there for link in side[left])
            for link in side[right] if ends else ():
                count += len(ends) - bisect_right(ends, x[link.other] + link.there)
        return count

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

    def _lean(self) -> float:
        return round(fsum(abs(a - b) for row in self.rows for a, b in self._segments(row)), 3)

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

    def _align(self) -> None:
        """Move columns from left to right such that each is vertical, unless columns cross."""
        order: TopologicalSorter[int] = TopologicalSorter()
        members: dict[int, list[int]] = {}
        least: dict[int, tuple[int, float]] = {}
        for row in self.rows:
            order.add(self.columns[row[0]])
            for a, b in pairwise(row):
                order.add(self.columns[b], self.columns[a])
                least[b] = a, self._distance(a, b)
            for number in row:
                members.setdefault(self.columns[number], []).append(number)
        try:
            columns = [*order.static_order()]
        except CycleError:
            return
        for numbers in map(members.__getitem__, columns):
            pushes = [self.x[least[b][0]] + least[b][1] for b in numbers if b in least]
            at = max(fsum(self.x[b] for b in numbers) / len(numbers), *pushes, -inf)
            for number in numbers:
                self.x[number] = at

    def _aim(self, number: int, sides: Sequence[int]) -> tuple[float, float]:
        """Return the weighted median of the positions where a number's lines are vertical.

        The second result is its weight.
        """
        if self.nodes[number].ins or self.nodes[number].outs:
            return 0.0, _AXIS
        aims = sorted(
            (self.x[at] + there - here, self._firmness(number, at))
            for side in sides
            for at, here, there in self.links[side][number]
        )
        if number == self.anchor or not aims:
            return self.x[number], 0.01
        weight = sum(firm for _, firm in aims)
        return _median(aims, weight), weight

    def _firmness(self, number: int, other: int) -> float:
        if self.columns[number] == self.columns[other]:
            return 32.0
        return (2.0, 1.0, 8.0)[self._lanes_among(number, other)]

    def placed(self) -> tuple[float, float, list[Point], dict[Edge, list[Point]]]:
        """Return the size, the upper left corner of each node, and the points of each edge."""
        halves = [node.width / 2 for node in self.nodes]
        left = min(map(sub, self.x, halves), default=0.0)
        self.x = [x - left for x in self.x]
        heights = [max((self.nodes[i].height for i in row), default=0.0) for row in self.rows]
        gaps = map(self._gap, self.rows)
        tops = list(accumulate(map(add, heights, gaps), initial=0.0))
        feet = list(map(add, tops, heights))
        corners = [
            (self.x[i] - node.width / 2, (feet[row] - node.height) if node.low else tops[row])
            for i, (node, row) in enumerate(zip(self.nodes[: self.count], self.row, strict=False))
        ]
        lines = {edge: self._line(edge, corners, tops, feet) for edge in self.chains}
        return max(map(add, self.x, halves), default=0.0), max(feet, default=0.0), corners, lines

    def _gap(self, row: Sequence[int]) -> float:
        """Return the distance below a row: greater where many lines lean, or lines lean far."""
        leans = [abs(a - b) for a, b in self._segments(row)]
        least, most = _BETWEEN
        return min(most, least + max(leans, default=0.0) / 8 + len(leans) / 2)

    def _line(
        self, edge: Edge, corners: Sequence[Point], tops: Sequence[float], feet: Sequence[float]
    ) -> list[Point]:
        """Return a line's points, from the foot of the source to the head of the target.

        The line is vertical inside rows and leans between rows.
        """
        x = self.x[edge.source] + self._port(edge.source, edge.route, 1)
        points = [(x, corners[edge.source][1] + self.nodes[edge.source].height)]
        points.append((x, feet[self.row[edge.source]]))
        for high, low in pairwise(self.chains[edge]):
            points.append((self.x[high] + self._port(high, edge.route, 1), feet[self.row[high]]))
            points.append((self.x[low] + self._port(low, edge.route, 0), tops[self.row[low]]))
        x, y = points[-1]
        return [*points, (x, y), (x, corners[edge.target][1])]


def _median(aims: Sequence[tuple[float, float]], weight: float) -> float:
    """Return the weighted median of sorted positions; the midpoint where two positions qualify."""
    passed_weight = 0.0
    for i, (at, firm) in enumerate(aims):
        passed_weight += firm
        if passed_weight * 2 > weight:
            return at
        if passed_weight * 2 == weight:
            return (at + aims[i + 1][0]) / 2
    return 0.0


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


def _rows(
    nodes: Sequence[Node], edges: Sequence[Edge], heads: int, tails: int, full: float
) -> list[int]:
    """Return the row of each node, below the rows of all nodes that it needs.

    The nodes of a row fill at most the width `full`. Nodes at the head of the longest chains choose
    first. Then nodes with more neighbours after than before move towards those, and so do the nodes
    of chains that start without inputs, which have one user at each step.
    """
    count = len(nodes) - heads - tails
    near: Near = [([], []) for _ in range(count)]
    pins = {number for edge in edges for number in edge[1:] if max(edge[1:]) >= count}
    for _, source, target in edges:
        if source < count and target < count:
            near[source][1].append(target)
            near[target][0].append(source)
    order = [*TopologicalSorter({i: before for i, (before, _) in enumerate(near)}).static_order()]
    depth = [0] * count
    loose: set[int] = set()
    for i in reversed(order):
        depth[i] = 1 + max((depth[after] for after in near[i][1]), default=0)
    for i in order:
        before, after = near[i]
        if i not in pins and len(after) == 1 and len(before) <= 1 and loose.issuperset(before):
            loose.add(i)
    row, used = [-1] * count, dict[int, float]()

    def move(number: int, rows: range) -> None:
        """Put a node into the first of the rows that has room; an empty row has room for any."""
        used[row[number]] = used.get(row[number], 0.0) - nodes[number].width - _GAP
        # The tolerance lets a row count as empty in spite of the rounding of its used width.
        room = max(0.0, full - nodes[number].width) + 1e-6
        row[number] = next(i for i in rows if used.get(i, 0.0) <= room)
        used[row[number]] = used.get(row[number], 0.0) + nodes[number].width + _GAP

    order = sorted(range(count), key=lambda i: (-depth[i], -sum(map(len, near[i]))))
    for i in order:
        move(i, range(1 + max((row[before] for before in near[i][0]), default=-1), count + 1))
    for i in reversed(order):
        if len(near[i][1]) > len(near[i][0]) or i in loose:
            move(i, range(min(row[after] for after in near[i][1]) - 1, row[i] - 1, -1))
    dense = {place: i + bool(heads) for i, place in enumerate(sorted(set(row)))}
    last = len(dense) + bool(heads) if count else 1
    return [*(dense[place] for place in row), *[0] * heads, *[last] * tails]
