"""What a sheet of a picture consists of: tiles in rows, and lanes of lines between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from graphir.drawing.hasse.grid import Near, rows_of

GAP = 18.0
"""The room between two tiles of a row."""

LANE = 8.0
"""The width that a line takes of a row through which it passes."""

_FULL = 1000.0  # what the tiles of a row may fill


class Tile(NamedTuple):
    """Something of a size, and where the lines of values enter and leave it, from its middle."""

    width: float
    height: float
    ins: Mapping[int, float] = {}
    outs: Mapping[int, float] = {}
    low: bool = False
    """Whether it stands at the foot of its row, not at the head."""


class Wire(NamedTuple):
    """A value on its way from a tile to others."""

    value: int
    source: int
    targets: Sequence[int]


class Link(NamedTuple):
    """A piece of a line between neighbouring rows, seen from one end: the other end, both ports."""

    other: int
    here: float
    there: float


class Web:
    """Tiles in rows, each below all that it needs, and lanes, the places of lines within rows.

    Tiles and lanes are numbered, tiles first; the last `heads + tails` tiles are the first and the
    last row, and the first of the heads, the `anchor`, stays left of the others. For each number
    `row` has its row, `widths` its width and `links` its neighbours in the row above and in the row
    below. `chains` has the numbers from end to end of the line of each value to each target.
    """

    def __init__(
        self, tiles: Sequence[Tile], wires: Sequence[Wire], heads: int, tails: int
    ) -> None:
        self.tiles = tiles
        self.widths = [tile.width for tile in tiles]
        self.row = _rows(tiles, wires, heads, tails)
        self.anchor = len(tiles) - heads - tails if heads else -1
        self.lanes: dict[tuple[int, int], int] = {}
        self.chains = {(w.value, to): self._chain(w, to) for w in wires for to in w.targets}
        self.links: tuple[list[list[Link]], list[list[Link]]] = (
            [[] for _ in self.row],
            [[] for _ in self.row],
        )
        self._link()

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
            leaves, enters = self.port(high, value, 1), self.port(low, value, 0)
            self.links[1][high].append(Link(low, leaves, enters))
            self.links[0][low].append(Link(high, enters, leaves))

    def port(self, number: int, value: int, side: int) -> float:
        """Where the line of a value enters (0) or leaves (1), from the middle."""
        if number >= len(self.tiles):
            return 0.0
        tile = self.tiles[number]
        return (tile.outs if side else tile.ins).get(value, 0.0)

    def lanes_among(self, number: int, other: int) -> int:
        """How many of two are lanes."""
        return (number >= len(self.tiles)) + (other >= len(self.tiles))

    def has_ports(self, number: int) -> bool:
        """Whether it is a tile on which lines have places of their own."""
        return number < len(self.tiles) and bool(self.tiles[number].ins or self.tiles[number].outs)

    def distance(self, left: int, right: int) -> float:
        """How far apart the middles of two neighbours in a row must be."""
        lanes = self.lanes_among(left, right)
        return (self.widths[left] + self.widths[right]) / 2 + GAP * (1, 0.6, 0.2)[lanes]


def _rows(tiles: Sequence[Tile], wires: Sequence[Wire], heads: int, tails: int) -> list[int]:
    """The row of each tile."""
    count = len(tiles) - heads - tails
    near: Near = [([], []) for _ in range(count)]
    pins: set[int] = set()
    for wire in wires:
        for to in wire.targets:
            if wire.source < count and to < count:
                near[wire.source][1].append(to)
                near[to][0].append(wire.source)
            pins |= {wire.source, to} if max(wire.source, to) >= count else set()
    widths = [tile.width for tile in tiles[:count]]
    inner = [row + bool(heads) for row in rows_of(near, widths, _FULL, _loose(near, pins))]
    last = max(inner, default=0) + 1
    return [*inner, *[0] * heads, *[last] * tails]


def _loose(near: Near, pins: set[int]) -> set[int]:
    """Tiles that one other alone needs, and all that leads to them: they may stand beside it."""
    loose: set[int] = set()
    waiting = [i for i, (above, below) in enumerate(near) if not above and len(below) == 1]
    while waiting:
        number = waiting.pop()
        if number in pins:
            continue
        loose.add(number)
        [to] = near[number][1]
        if len(near[to][0]) == 1 and len(near[to][1]) == 1:
            waiting.append(to)
    return loose
