"""Where a picture of a lattice puts its boxes and lines: `layout` says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import add, sub
from typing import Any, NamedTuple, TypeAlias

from graphir.drawing.hasse.columns import lean, spread, straightened
from graphir.drawing.hasse.grid import FONT, GAP, PADDING, Grid
from graphir.drawing.hasse.order import Rows, crossings, orders
from graphir.lattice.order import Lattice

__all__ = ["FONT", "HEIGHT", "LatticeBox", "LatticeLayout", "Point", "layout"]

HEIGHT = 26.0
"""The height of a box, and so of a row."""

_FULL = (470.0, 420.0, 370.0, 320.0, 270.0, 220.0)  # what boxes may fill of a row, tried in turn
_ENOUGH = 575.0  # the width of a picture whose labels are still read when it is 400 pixels wide
_BETWEEN = 22.0, 48.0  # the least and the most room between rows
_PORT = 10.0  # between lines that leave a box side by side

Point: TypeAlias = tuple[float, float]


class LatticeBox(NamedTuple):
    """A node's box, by its middle and its width."""

    x: float
    y: float
    width: float


class LatticeLayout(NamedTuple):
    """A picture's size, its boxes and its lines; y grows downwards.

    A line is a list of points from the top of the lower box to the bottom of the higher one, in
    pairs: it leans within a pair, between two rows, and is upright between pairs, through a row.
    """

    width: float
    height: float
    boxes: dict[Any, LatticeBox]
    lines: dict[tuple[Any, Any], list[Point]]


def layout(lattice: Lattice[Any]) -> LatticeLayout:
    """Where everything goes, the least at the bottom; the same for the same lattice.

    The first plan that is narrow enough, or else the narrowest.
    """
    plans: list[LatticeLayout] = []
    for plan in _plans(lattice):
        if plan.width <= _ENOUGH:
            return plan
        plans.append(plan)
    return min(plans, key=lambda plan: plan.width)


def _plans(lattice: Lattice[Any]) -> Iterator[LatticeLayout]:
    """Pictures with fuller rows before others, and those with straight long lines before bent."""
    first = Grid(lattice, _FULL[0])
    for full in _FULL[: first.effort(len(_FULL))]:
        grid = first if full == _FULL[0] else Grid(lattice, full)
        rows = _tidiest(grid)
        for lanes in (True, False):
            yield _drawn(lattice, grid, rows, straightened(grid, rows, lanes=lanes))


def _tidiest(grid: Grid) -> Rows:
    """The order with the fewest crossings, and among those the most upright lines."""

    def ugliness(rows: Rows) -> tuple[int, float]:
        return crossings(grid, rows), round(lean(grid, spread(grid, rows)), 3)

    return min(orders(grid), key=ugliness)


def _drawn(lattice: Lattice[Any], grid: Grid, rows: Rows, x: Sequence[float]) -> LatticeLayout:
    halves = [width / 2 for width in grid.widths]
    left = min(map(sub, x, halves), default=0.0) - GAP
    right = max(map(add, x, halves), default=0.0) + GAP
    x = [each - left for each in x]
    y, height = _heights(grid, rows, x)
    boxes = [LatticeBox(x[i], y[grid.row[i]], grid.widths[i]) for i in range(grid.nodes)]
    ports = _Ports(grid, x)
    lines = [_line(ports, chain, y) for chain in grid.chains]
    return LatticeLayout(
        right - left,
        height,
        dict(zip(lattice.nodes, boxes, strict=True)),
        dict(zip(grid.edges, lines, strict=True)),
    )


def _heights(grid: Grid, rows: Rows, x: Sequence[float]) -> tuple[list[float], float]:
    """The middle of each row, and the height of all; more room where lines lean far."""
    least, most = _BETWEEN
    down = [GAP + HEIGHT / 2]
    for row in rows[-2::-1]:
        far = max(
            (abs(x[number] - x[to]) for number in row for to in grid.near[number][1]), default=0.0
        )
        down.append(down[-1] + HEIGHT + min(most, least + far / 6))
    return down[::-1], down[-1] + HEIGHT / 2 + GAP


def _line(ports: _Ports, chain: Sequence[int], y: Sequence[float]) -> list[Point]:
    points: list[Point] = []
    row = ports.grid.row
    for low, high in pairwise(chain):
        points.append((ports.of(low, 1)[high], y[row[low]] - HEIGHT / 2))
        points.append((ports.of(high, 0)[low], y[row[high]] + HEIGHT / 2))
    return points


class _Ports:
    """Where lines leave boxes: lines that leave one side of a box together are spread a little.

    The line to a dtype of the same kind, if it is the only one, stays in the middle.
    """

    def __init__(self, grid: Grid, x: Sequence[float]) -> None:
        self.grid, self._x = grid, x
        self._cache: dict[tuple[int, int], dict[int, float]] = {}

    def of(self, number: int, side: int) -> dict[int, float]:
        """The ports of a side of a number, by the number to which the line goes."""
        ports = self._cache.get((number, side))
        if ports is None:
            ports = self._cache[number, side] = self._spread(number, side)
        return ports

    def _spread(self, number: int, side: int) -> dict[int, float]:
        grid, x = self.grid, self._x
        near = sorted(grid.near[number][side], key=lambda each: x[each])
        place = {each: i for i, each in reversed([*enumerate(near)])}
        alike = grid.alike(number, side)
        middle = (len(near) - 1) / 2 if alike is None else place[alike]
        room = grid.widths[number] / 2 - PADDING
        step = min(_PORT, max(0.0, room) / max(1, middle, len(near) - 1 - middle))
        return {each: x[number] + (i - middle) * step for each, i in place.items()}
