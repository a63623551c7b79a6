"""The rows of a Hasse diagram: the row of every node, and the lanes of long edges in each row."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from graphir.dtype_lattices.order import Lattice
from graphir.dtypes import DType
from graphir.errors import GraphError

FONT = 13.0
"""The font size of labels. Labels are monospaced, because only then are their widths known."""

PADDING = 7.0
"""The room between a label and the ends of its box."""

GAP = 14.0
"""The room between two boxes of a row."""

LANE = 9.0
"""The width that a line takes of a row through which it passes."""


LARGEST = 8_000
"""The most nodes and lanes of a picture."""

_SMALL = 300  # up to this size of a grid all attempts at a better picture run

_HUB = 4  # as many edges on one side make a hub

Near: TypeAlias = list[tuple[list[int], list[int]]]
"""For each number its neighbours below it and above it."""


class Grid:
    """The nodes in rows, and lanes through the rows that longer edges cross.

    Edges on the same side of a hub, a node with many edges there, share lanes. Nodes and lanes have
    one numbering: first the nodes, in the lattice's order. For each number, `row` has its row
    counted from below, `widths` its width, `kinds` its dtype family, "lane" or "", and `near` its
    neighbours in the row below and in the row above. `chains` has, for each edge in the order of
    `edges`, the numbers from end to end. `full` is the width that a row may hold. Raises GraphError
    for a picture of more than LARGEST nodes and lanes.
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
        """Return how many of `most` attempts at a better picture a grid of this size allows."""
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
        """Return the least distance between the middles of two neighbours in a row."""
        lanes = (left >= self.nodes) + (right >= self.nodes)
        return (self.widths[left] + self.widths[right]) / 2 + GAP * (1, 0.5, 0)[lanes]

    def alike(self, number: int, side: int) -> int | None:
        """Return the neighbour above (1) or below (0) that continues a dtype family or a line.

        The result is None unless exactly one neighbour qualifies.
        """
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
    """Return a row for each number, above the rows of all numbers below it.

    The boxes of a row fill at most the width `full`. Numbers at the foot of the longest chains
    choose first. Then numbers with more neighbours above than below move up towards those, and so
    do the `loose` numbers.
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
    """The state of filling rows: the row of each number, and the used width of each row."""

    def __init__(self, widths: Sequence[float], full: float) -> None:
        self.row = [-1 for _ in widths]
        self._widths, self._full = widths, full
        self._used_width: dict[int, float] = {}

    def move(self, number: int, rows: Iterable[int]) -> None:
        """Put a box into the first of the rows that has room. An empty row has room for any box."""
        self._fill(number, -1)
        # The tolerance lets a row count as empty in spite of the rounding of its used width.
        room = max(0.0, self._full - self._widths[number]) + 1e-6
        self.row[number] = next(row for row in rows if self._used_width.get(row, 0.0) <= room)
        self._fill(number, 1)

    def _fill(self, number: int, sign: int) -> None:
        row = self.row[number]
        self._used_width[row] = self._used_width.get(row, 0.0) + sign * (self._widths[number] + GAP)


def _longest_first(near: Near) -> list[int]:
    """Sort all numbers by the longest chain above each, so that lower numbers come first.

    Among numbers with equal chains, the numbers with most edges come first.
    """
    depth = [0] * len(near)
    left = [len(above) for _, above in near]
    ready = [number for number, count in enumerate(left) if not count]
    for number in ready:  # the list grows: a number enters it after all numbers above it
        for low in near[number][0]:
            depth[low] = max(depth[low], depth[number] + 1)
            left[low] -= 1
            if not left[low]:
                ready.append(low)
    return sorted(
        range(len(near)), key=lambda number: (-depth[number], -sum(map(len, near[number])))
    )
