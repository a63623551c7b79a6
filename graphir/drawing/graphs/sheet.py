"""The layout of one sheet: the positions of its tiles, and the lines between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import add, sub
from typing import NamedTuple

from graphir.drawing.graphs.places import places
from graphir.drawing.graphs.web import Tile, Web, Wire
from graphir.drawing.hasse import Point

_BETWEEN = 24.0, 64.0  # the least and the greatest distance between rows


class Sheet(NamedTuple):
    """A sheet's size, its tiles, the upper left corner of each, and lines by value and target.

    The points of a line come in pairs. A line leans within a pair, and is vertical between pairs.
    """

    width: float
    height: float
    tiles: Sequence[Tile]
    corners: list[Point]
    lines: dict[tuple[int, int], list[Point]]


def sheet(tiles: Sequence[Tile], wires: Sequence[Wire], heads: int = 0, tails: int = 0) -> Sheet:
    """Lay out tiles in rows, with the wires between them.

    The last `heads + tails` tiles form the first and the last row. The first head stays left of the
    others.
    """
    return _Drawing(Web(tiles, wires, heads, tails)).sheet()


class _Drawing:
    """The state of building a sheet: the web, the middle of each number, the rows and heights."""

    def __init__(self, web: Web) -> None:
        self._web = web
        self._rows, x = places(web)
        halves = [width / 2 for width in web.widths]
        left = min(map(sub, x, halves), default=0.0)
        self._x = [each - left for each in x]
        self._width = max(map(add, self._x, halves), default=0.0)
        self._heights = [self._height(row) for row in self._rows]
        gaps = [self._gap(row) for row in self._rows]
        self._tops = list(accumulate(map(add, self._heights, gaps), initial=0.0))
        self._corners = [self._corner(i, tile) for i, tile in enumerate(web.tiles)]

    def sheet(self) -> Sheet:
        chains = self._web.chains
        lines = {ends: self._line(ends[0], chain) for ends, chain in chains.items()}
        height = self._foot(len(self._rows) - 1) if self._rows else 0.0
        return Sheet(self._width, height, self._web.tiles, self._corners, lines)

    def _height(self, row: Sequence[int]) -> float:
        tiles = self._web.tiles
        return max((tiles[i].height for i in row if i < len(tiles)), default=0.0)

    def _gap(self, row: Sequence[int]) -> float:
        """Return the distance below a row: greater where many lines lean, or lines lean far."""
        leans = [
            abs(self._x[i] + link.here - self._x[link.other] - link.there)
            for i in row
            for link in self._web.links[1][i]
        ]
        least, most = _BETWEEN
        return min(most, least + max(leans, default=0.0) / 8 + len(leans) / 2)

    def _foot(self, row: int) -> float:
        return self._tops[row] + self._heights[row]

    def _corner(self, i: int, tile: Tile) -> Point:
        row = self._web.row[i]
        spare = self._heights[row] - tile.height if tile.low else 0.0
        return self._x[i] - tile.width / 2, self._tops[row] + spare

    def _line(self, value: int, chain: Sequence[int]) -> list[Point]:
        """Return a line's points, from the foot of the source tile to the head of the target tile.

        The line is vertical inside rows and leans between rows.
        """
        web, first, last = self._web, chain[0], chain[-1]
        x = self._x[first] + web.port(first, value, 1)
        points = [(x, self._corners[first][1] + web.tiles[first].height)]
        points.append((x, self._foot(web.row[first])))
        for high, low in pairwise(chain):
            points.append((self._x[high] + web.port(high, value, 1), self._foot(web.row[high])))
            points.append((self._x[low] + web.port(low, value, 0), self._tops[web.row[low]]))
        x, y = points[-1]
        return [*points, (x, y), (x, self._corners[last][1])]
