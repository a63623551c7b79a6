"""The rows of a layered layout: tiles in rows, and lanes for lines that pass through rows.

A line between tiles in distant rows gets a lane, a dummy node, in each row between them. Later
steps then see lines between neighbouring rows only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from graphir.drawing.hasse.grid import Near, rows_of

GAP = 18.0
"""The room between two tiles of a row."""

LANE = 8.0
"""The width that a line takes of a row through which it passes."""

_FULL = 1000.0  # the width that the tiles of a row may fill


class Tile(NamedTuple):
    """A rectangle with ports: the offsets from its middle where each value enters and leaves."""

    width: float
    height: float
    ins: Mapping[int, float] = {}
    outs: Mapping[int, float] = {}
    low: bool = False
    """Whether the tile stands at the foot of its row, not at the head."""


class Wire(NamedTuple):
    """A value that goes from a source tile to target tiles."""

    value: int
    source: int
    targets: Sequence[int]


class Link(NamedTuple):
    """A segment of a line between neighbouring rows, seen from one end.

    `other` is the number at the other end; `here` and `there` are the port offsets at both ends.
    """

    other: int
    here: float
    there: float


class Web:
    """Tiles in rows, each below the tiles that it needs, and the lanes of lines within rows.

    Tiles and lanes share one numbering, tiles first. The last `heads + tails` tiles form the first
    and the last row. The first head, the `anchor`, stays left of the others. For each number, `row`
    has its row, `widths` its width, and `links` its segments to the row above and to the row below.
    `chains` has, for each value and target, the numbers along the line from end to end.
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
        """Return the source tile of a value, the lanes through the rows between, and the target.

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
        """Return the port offset, from the middle, where a value enters (0) or leaves (1)."""
        if number >= len(self.tiles):
            return 0.0
        tile = self.tiles[number]
        return (tile.outs if side else tile.ins).get(value, 0.0)

    def lanes_among(self, number: int, other: int) -> int:
        """Return how many of two numbers are lanes."""
        return (number >= len(self.tiles)) + (other >= len(self.tiles))

    def has_ports(self, number: int) -> bool:
        """Answer whether a number is a tile with ports."""
        return number < len(self.tiles) and bool(self.tiles[number].ins or self.tiles[number].outs)

    def distance(self, left: int, right: int) -> float:
        """Return the least distance between the middles of two neighbours in a row."""
        lanes = self.lanes_among(left, right)
        return (self.widths[left] + self.widths[right]) / 2 + GAP * (1, 0.6, 0.2)[lanes]


def _rows(tiles: Sequence[Tile], wires: Sequence[Wire], heads: int, tails: int) -> list[int]:
    """Return the row of each tile."""
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
    """Return the tiles of chains that start without inputs and have one user at each step.

    Such a tile may move to the row beside its user's row. Tiles with pins are excluded.
    """
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
