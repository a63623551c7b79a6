"""The grid of a lattice's picture: the row of every node, and what passes through each row."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from graphir.dtypes import DType
from graphir.errors import GraphError
from graphir.lattice.order import Lattice

FONT = 13.0
"""The size of labels, which are in a monospaced font: that alone has widths to count on."""

PADDING = 7.0
"""The room between a label and the ends of its box."""

GAP = 14.0
"""The room between two boxes of a row."""

LANE = 9.0
"""The width that a line takes of a row through which it passes."""


LARGEST = 8_000
"""The most nodes and lanes of a picture."""

_SMALL = 300  # the size of a grid for which every attempt at a better picture is made

_HUB = 4  # as many edges on one side make a hub

Near: TypeAlias = list[tuple[list[int], list[int]]]
"""For each number its neighbours below it and above it."""


class Grid:
    """The nodes in rows and, for edges that span several rows, lanes through those between.

    Edges from or to a hub, a node that has many of them there, share a lane. Nodes and lanes are
    numbered, nodes first, in the lattice's order. For each number `row` has its row, counted from
    below, `widths` its width, `kinds` the kind of its dtype, if it is one, and `near` its
    neighbours along the edges, in the row below and in the row above. `chains` has the numbers from
    end to end of each edge, in the order of `edges`. `full` is what a row may hold.
    """

    def __init__(self, lattice: Lattice[Any], full: float) -> None:
        number = {node: i for i, node in enumerate(lattice.nodes)}
        self.nodes = len(number)
        self.edges = lattice.pairs()
        ends = [(number[low], number[high]) for low, high in self.edges]
        self.widths = [_width(node) for node in lattice.nodes]
        self.kinds = [node.family if isinstance(node, DType) else "" for node in lattice.nodes]
        near = _neighbours(ends, len(number))
        self.row = rows_of(near, self.widths, full)
        self._lanes: dict[tuple[int, int, int], int] = {}
        self.chains = [self._chain(near, low, high) for low, high in ends]
        segments = dict.fromkeys(pair for chain in self.chains for pair in pairwise(chain))
        self.near = _neighbours(segments, len(self.row))
        self._size = len(segments) + len(self.row)

    def effort(self, most: int, least: int = 1) -> int:
        """How many of `most` attempts at a better picture the size of the grid allows."""
        return max(least, most * _SMALL // max(self._size, _SMALL))

    def _chain(self, near: Near, low: int, high: int) -> list[int]:
        out, into = len(near[low][1]), len(near[high][0])
        ends = (low, -1) if out >= max(into, _HUB) else (-1, high) if into >= _HUB else (low, high)
        between = range(self.row[low] + 1, self.row[high])
        return [low, *(self._lane(*ends, row) for row in between), high]

    def _lane(self, low: int, high: int, row: int) -> int:
        if (low, high, row) not in self._lanes:
            if len(self.row) >= LARGEST:
                raise GraphError(
                    "svg: the picture is too large",
                    got=f"{self.nodes:,} nodes and {len(self.edges):,} edges, which pass through "
                    f"more than {LARGEST:,} places",
                    fix='use format "dot", which Graphviz lays out, "mermaid" or "text"',
                )
            self._lanes[low, high, row] = len(self.row)
            self.row.append(row)
            self.widths.append(LANE)
            self.kinds.append("lane")
        return self._lanes[low, high, row]

    def distance(self, left: int, right: int) -> float:
        """How far apart the middles of two neighbours in a row must be."""
        lanes = (left >= self.nodes) + (right >= self.nodes)
        return (self.widths[left] + self.widths[right]) / 2 + GAP * (1, 0.5, 0)[lanes]

    def alike(self, number: int, side: int) -> int | None:
        """The only one above (1) or below (0) that is a dtype of its kind or the same line."""
        kind = self.kinds[number]
        candidates = [each for each in self.near[number][side] if kind and self.kinds[each] == kind]
        return candidates[0] if len(candidates) == 1 else None


def _width(node: Any) -> float:
    cells = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in str(node))
    return cells * 0.602 * FONT + 2 * PADDING


def _neighbours(edges: Iterable[tuple[int, int]], count: int) -> Near:
    near: Near = [([], []) for _ in range(count)]
    for low, high in edges:
        near[low][1].append(high)
        near[high][0].append(low)
    return near


def rows_of(
    near: Near, widths: Sequence[float], full: float, loose: Collection[int] = ()
) -> list[int]:
    """A row for each number, above the rows of all below it; none has more boxes than `full` holds.

    Those at the foot of the longest chains choose first; then what has more above it than below
    moves up to that, and what is `loose` does too.
    """
    rows = _Rows(widths, full)
    order = _longest_first(near)
    for number in order:
        least = 1 + max((rows.row[low] for low in near[number][0]), default=-1)
        rows.move(number, range(least, len(widths) + 1))
    for number in reversed(order):
        if len(near[number][1]) > len(near[number][0]) or number in loose:
            most = min(rows.row[high] for high in near[number][1]) - 1
            rows.move(number, range(most, rows.row[number] - 1, -1))
    dense = {row: i for i, row in enumerate(sorted(set(rows.row)))}
    return [dense[row] for row in rows.row]


class _Rows:
    """Rows as they fill."""

    def __init__(self, widths: Sequence[float], full: float) -> None:
        self.row = [-1 for _ in widths]
        self._widths, self._full = widths, full
        self._used_width: dict[int, float] = {}

    def move(self, number: int, rows: Iterable[int]) -> None:
        """Put a box in the first of the rows that has room; an empty one has, for any box."""
        self._fill(number, -1)
        room = max(0.0, self._full - self._widths[number]) + 1e-6  # what rounding leaves is empty
        self.row[number] = next(row for row in rows if self._used_width.get(row, 0.0) <= room)
        self._fill(number, 1)

    def _fill(self, number: int, sign: int) -> None:
        row = self.row[number]
        self._used_width[row] = self._used_width.get(row, 0.0) + sign * (self._widths[number] + GAP)


def _longest_first(near: Near) -> list[int]:
    """All numbers by the longest chain above each, so that what is below comes before.

    Of those with chains as long, the ones with most edges come first.
    """
    depth = [0] * len(near)
    left = [len(above) for _, above in near]
    ready = [number for number, count in enumerate(left) if not count]
    for number in ready:  # which grows: each number when all above it are done
        for low in near[number][0]:
            depth[low] = max(depth[low], depth[number] + 1)
            left[low] -= 1
            if not left[low]:
                ready.append(low)
    return sorted(
        range(len(near)), key=lambda number: (-depth[number], -sum(map(len, near[number])))
    )
