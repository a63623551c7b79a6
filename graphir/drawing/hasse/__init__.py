"""The layout of a lattice's Hasse diagram, as in layered graph drawing.

The steps are: rows (`grid`), the order within rows (`order`), and positions (`columns`). `layout`
tries several row widths, and takes the first picture that is narrow enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import add, sub
from typing import Any, NamedTuple, TypeAlias

from graphir.drawing.hasse.columns import lean, spread, straightened
from graphir.drawing.hasse.grid import FONT, GAP, PADDING, Grid
from graphir.drawing.hasse.order import Rows, crossings, orders
from graphir.dtype_lattices.order import Lattice

__all__ = ["FONT", "HEIGHT", "LatticeBox", "LatticeLayout", "Point", "layout"]

HEIGHT = 26.0
"""The height of a box, and so of a row."""

_FULL = (470.0, 420.0, 370.0, 320.0, 270.0, 220.0)  # widths that boxes may fill, tried in turn
_ENOUGH = 575.0  # a picture of this width is still legible when shrunk to 400 pixels
_BETWEEN = 22.0, 48.0  # the least and the greatest distance between rows
_PORT = 10.0  # between lines that leave a box side by side

Point: TypeAlias = tuple[float, float]


class LatticeBox(NamedTuple):
    """A node's box, given by its middle and its width."""

    x: float
    y: float
    width: float


class LatticeLayout(NamedTuple):
    """A picture's size, its boxes and its lines; y grows downwards.

    A line is a list of points from the top of the lower box to the bottom of the higher box. The
    points come in pairs. A line leans within a pair, between two rows, and is vertical between
    pairs, through a row.
    """

    width: float
    height: float
    boxes: dict[Any, LatticeBox]
    lines: dict[tuple[Any, Any], list[Point]]


def layout(lattice: Lattice[Any]) -> LatticeLayout:
    """Return the layout of a lattice with the least nodes at the bottom.

    The result is the first plan that is narrow enough, or else the narrowest plan. It is
    deterministic.
    """
    plans: list[LatticeLayout] = []
    for plan in _plans(lattice):
        if plan.width <= _ENOUGH:
            return plan
        plans.append(plan)
    return min(plans, key=lambda plan: plan.width)


def _plans(lattice: Lattice[Any]) -> Iterator[LatticeLayout]:
    """Yield layouts, from full rows to sparse rows, each with straight and then bent long lines."""
    first = Grid(lattice, _FULL[0])
    for full in _FULL[: first.effort(len(_FULL))]:
        grid = first if full == _FULL[0] else Grid(lattice, full)
        rows = _tidiest(grid)
        for lanes in (True, False):
            yield _draw(lattice, grid, rows, straightened(grid, rows, lanes=lanes))


def _tidiest(grid: Grid) -> Rows:
    """Return the order with the fewest crossings; the least lean of lines breaks ties."""

    def ugliness(rows: Rows) -> tuple[int, float]:
        return crossings(grid, rows), round(lean(grid, spread(grid, rows)), 3)

    return min(orders(grid), key=ugliness)


def _draw(lattice: Lattice[Any], grid: Grid, rows: Rows, x: Sequence[float]) -> LatticeLayout:
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
    """Return the middle of each row, and the total height; rows with leaning lines are farther."""
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
    """The ports of boxes: several lines on one side of a box are spread a little.

    The line to a dtype of the same family, if there is just one such line, stays in the middle.
    """

    def __init__(self, grid: Grid, x: Sequence[float]) -> None:
        self.grid, self._x = grid, x
        self._cache: dict[tuple[int, int], dict[int, float]] = {}

    def of(self, number: int, side: int) -> dict[int, float]:
        """Return the ports of one side of a number, by the number at the line's other end."""
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
