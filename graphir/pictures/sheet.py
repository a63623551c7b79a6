"""One sheet of a picture: tiles in rows, each below all that it needs, and lines between them."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from graphir.hasse import Point
from graphir.hasse.columns import apart
from graphir.hasse.grid import rows_of

GAP = 18.0
"""The room between two tiles of a row."""

LANE = 8.0
"""The width that a line takes of a row through which it passes."""

_FULL = 1000.0  # what the tiles of a row may fill
_BETWEEN = 24.0, 64.0  # the least and the most room between rows
_SWEEPS, _ROUNDS = 24, 30
_AXIS = 100.0  # how much tiles with ports want to stand one below the other

Rows: TypeAlias = list[list[int]]


class Tile(NamedTuple):
    """Something of a size, and where the lines of values enter and leave it, from its middle."""

    width: float
    height: float
    ins: Mapping[int, float] = {}
    outs: Mapping[int, float] = {}
    low: bool = False
    """Whether it stands at the foot of its row, not at the head."""

    @property
    def ports(self) -> bool:
        """Whether lines have places of their own on it."""
        return bool(self.ins or self.outs)


class Wire(NamedTuple):
    """A value on its way from a tile to others."""

    value: int
    source: int
    targets: Sequence[int]


class Sheet(NamedTuple):
    """A sheet's size, its tiles, the upper left corner of each, and lines by value and target.

    Points come in pairs: a line leans within a pair and is upright between pairs.
    """

    width: float
    height: float
    tiles: Sequence[Tile]
    corners: list[Point]
    lines: dict[tuple[int, int], list[Point]]


class _Link(NamedTuple):
    """A piece of a line between neighbouring rows, seen from one end: the other end, both ports."""

    other: int
    here: float
    there: float


def sheet(tiles: Sequence[Tile], wires: Sequence[Wire], heads: int = 0, tails: int = 0) -> Sheet:
    """Where everything goes; the last `heads + tails` tiles are the first and the last row.

    The first of the heads stays left of the others.
    """
    return _Sheet(tiles, wires, heads, tails).drawn()


class _Sheet:
    """A sheet in the making. Tiles and lanes, the places of lines within rows, are numbered."""

    def __init__(
        self, tiles: Sequence[Tile], wires: Sequence[Wire], heads: int, tails: int
    ) -> None:
        self.tiles, self.wires = tiles, wires
        self.widths = [tile.width for tile in tiles]
        self.row = _rows(tiles, wires, heads, tails)
        self.anchor = len(tiles) - heads - tails if heads else -1
        self.lanes: dict[tuple[int, int], int] = {}
        self.chains = {(w.value, to): self._chain(w, to) for w in wires for to in w.targets}
        self.links: tuple[list[list[_Link]], list[list[_Link]]] = (
            [[] for _ in self.row],
            [[] for _ in self.row],
        )
        self._link()
        self.rows: Rows = [[] for _ in range(max(self.row, default=-1) + 1)]
        for one in sorted(range(len(self.row)), key=lambda one: (one != self.anchor, one)):
            self.rows[self.row[one]].append(one)
        self.x = [0.0] * len(self.row)

    def _chain(self, wire: Wire, to: int) -> list[int]:
        """The tile that a value comes from, the lanes through the rows between, the one it goes to.

        All lines of a value share its lanes.
        """
        between = range(self.row[wire.source] + 1, self.row[to])
        return [wire.source, *(self._lane(wire.value, row) for row in between), to]

    def _lane(self, value: int, row: int) -> int:
        if (value, row) not in self.lanes:
            self.lanes[value, row] = len(self.row)
            self.row.append(row)
            self.widths.append(LANE)
        return self.lanes[value, row]

    def _link(self) -> None:
        pairs = {
            (value, *pair): None
            for (value, _), chain in self.chains.items()
            for pair in pairwise(chain)
        }
        for value, high, low in pairs:
            leaves, enters = self._port(high, value, 1), self._port(low, value, 0)
            self.links[1][high].append(_Link(low, leaves, enters))
            self.links[0][low].append(_Link(high, enters, leaves))

    def _port(self, one: int, value: int, side: int) -> float:
        if one >= len(self.tiles):
            return 0.0
        tile = self.tiles[one]
        return (tile.outs if side else tile.ins).get(value, 0.0)

    def drawn(self) -> Sheet:
        self._order()
        self._straighten()
        left = min((x - w / 2 for x, w in zip(self.x, self.widths, strict=True)), default=0.0)
        right = max((x + w / 2 for x, w in zip(self.x, self.widths, strict=True)), default=0.0)
        self.x = [x - left for x in self.x]
        tops, heights = self._heights()
        corners: list[Point] = []
        for i, tile in enumerate(self.tiles):
            spare = heights[self.row[i]] - tile.height if tile.low else 0.0
            corners.append((self.x[i] - tile.width / 2, tops[self.row[i]] + spare))
        lines = {
            ends: self._line(ends[0], chain, tops, heights, corners)
            for ends, chain in self.chains.items()
        }
        height = tops[-1] + heights[-1] if tops else 0.0
        return Sheet(right - left, height, self.tiles, corners, lines)

    # -- the order within rows

    def _order(self) -> None:
        """Rows in turn, down and up, in the order of what they hang on; the best is kept."""
        for row in self.rows:
            self._place(row, [(0.0, 1.0)] * len(row))
        best = self._crossings(), [list(row) for row in self.rows], list(self.x)
        for sweep in range(_SWEEPS):
            side = sweep % 2
            for row in reversed(self.rows) if side else self.rows:
                self._sort(row, side)
            found = self._crossings()
            if found < best[0]:
                best = found, [list(row) for row in self.rows], list(self.x)
            if not best[0]:
                break
        _, self.rows, self.x = best

    def _sort(self, row: list[int], side: int) -> None:
        aims = {one: self._mean(one, side) for one in row}
        row.sort(key=lambda one: (one != self.anchor, aims[one]))
        for i in range(len(row) - 1):
            left, right = row[i : i + 2]
            if left != self.anchor and self._crossed(left, right) > self._crossed(right, left):
                row[i : i + 2] = right, left
        self._place(row, [(aims[one], 1.0) for one in row])

    def _mean(self, one: int, side: int) -> float:
        links = self.links[side][one]
        if not links:
            return self.x[one]
        return sum(self.x[at] + there - here for at, here, there in links) / len(links)

    def _crossed(self, left: int, right: int) -> int:
        """How many lines at two of a row cross, if they stand so."""
        x = self.x
        return sum(
            x[a.other] + a.there > x[b.other] + b.there
            for links in self.links
            for a in links[left]
            for b in links[right]
        )

    def _crossings(self) -> int:
        """How often lines cross, all in all."""
        found = 0
        for row in self.rows:
            ends: list[float] = []
            lines = [
                (self.x[one] + link.here, self.x[link.other] + link.there)
                for one in row
                for link in self.links[1][one]
            ]
            for _, end in sorted(lines):
                found += len(ends) - bisect_right(ends, end)
                insort(ends, end)
        return found

    # -- the places within rows

    def _place(self, row: Sequence[int], aims: Sequence[tuple[float, float]]) -> None:
        steps = [self._distance(a, b) for a, b in pairwise(row)]
        for one, found in zip(row, apart(aims, steps), strict=True):
            self.x[one] = found

    def _distance(self, left: int, right: int) -> float:
        lanes = (left >= len(self.tiles)) + (right >= len(self.tiles))
        return (self.widths[left] + self.widths[right]) / 2 + GAP * (1, 0.6, 0.2)[lanes]

    def _straighten(self) -> None:
        """Rows in turn move to where their lines lean least, those of long lines above all.

        Tiles with ports are kept in the middle, or each would stand aside of the one before.
        """
        for sweep in range(_ROUNDS):
            # By what is above in going down, and back; at last by what is on both sides.
            sides = (0, 1) if sweep >= _ROUNDS // 2 else (sweep % 2,)
            for row in reversed(self.rows) if sweep % 2 else self.rows:
                self._place(row, [self._aim(one, sides) for one in row])

    def _aim(self, one: int, sides: Sequence[int]) -> tuple[float, float]:
        """The weighted median of where a tile's lines would be upright, and its weight."""
        if one == self.anchor:
            return self.x[one], 0.01
        if one < len(self.tiles) and self.tiles[one].ports:
            return 0.0, _AXIS
        aims = sorted(
            (self.x[at] + there - here, self._firmness(one, at))
            for side in sides
            for at, here, there in self.links[side][one]
        )
        weight = sum(firm for _, firm in aims)
        return (_median(aims, weight), weight) if aims else (self.x[one], 0.01)

    def _firmness(self, one: int, other: int) -> float:
        lanes = (one >= len(self.tiles)) + (other >= len(self.tiles))
        return (2.0, 1.0, 8.0)[lanes]

    # -- heights, lines

    def _heights(self) -> tuple[list[float], list[float]]:
        """The top of each row and its height; more room between rows where lines lean far."""
        tops: list[float] = []
        heights: list[float] = []
        at = 0.0
        for row in self.rows:
            tall = max((self.tiles[i].height for i in row if i < len(self.tiles)), default=0.0)
            leans = [
                abs(self.x[i] + link.here - self.x[link.other] - link.there)
                for i in row
                for link in self.links[1][i]
            ]
            tops.append(at)
            heights.append(tall)
            least, most = _BETWEEN
            at += tall + min(most, least + max(leans, default=0.0) / 8 + len(leans) / 2)
        return tops, heights

    def _line(
        self,
        value: int,
        chain: Sequence[int],
        tops: Sequence[float],
        heights: Sequence[float],
        corners: Sequence[Point],
    ) -> list[Point]:
        """From the foot of a tile, upright to the foot of its row, and so on to another's head."""
        first, last = chain[0], chain[-1]
        x = self.x[first] + self._port(first, value, 1)
        points: list[Point] = [(x, corners[first][1] + self.tiles[first].height)]
        points.append((x, tops[self.row[first]] + heights[self.row[first]]))
        for high, low in pairwise(chain):
            x = self.x[high] + self._port(high, value, 1)
            points.append((x, tops[self.row[high]] + heights[self.row[high]]))
            x = self.x[low] + self._port(low, value, 0)
            points.append((x, tops[self.row[low]]))
        points.append((x, tops[self.row[last]]))
        points.append((x, corners[last][1]))
        return points


def _median(aims: Sequence[tuple[float, float]], weight: float) -> float:
    """The place with as much weight on both sides; amid two that share it, between them."""
    passed = 0.0
    for i, (at, firm) in enumerate(aims):
        passed += firm
        if passed * 2 > weight:
            return at
        if passed * 2 == weight:
            return (at + aims[i + 1][0]) / 2
    return 0.0


def _rows(tiles: Sequence[Tile], wires: Sequence[Wire], heads: int, tails: int) -> list[int]:
    """The row of each tile."""
    count = len(tiles) - heads - tails
    near: list[tuple[list[int], list[int]]] = [([], []) for _ in range(count)]
    for wire in wires:
        for to in wire.targets:
            if wire.source < count and to < count and to not in near[wire.source][1]:
                near[wire.source][1].append(to)
                near[to][0].append(wire.source)
    inner = [row + bool(heads) for row in rows_of(near, [t.width for t in tiles[:count]], _FULL)]
    last = max(inner, default=0) + 1
    return [*inner, *[0] * heads, *[last] * tails]
