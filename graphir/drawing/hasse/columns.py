"""Positions within the rows of a Hasse diagram: vertical lines, and dtype families in columns.

Sweeps move each row towards the weighted mean of its neighbours' positions. `apart` keeps the least
distances: it solves a weighted least squares problem with order constraints by pooling adjacent
violators. Afterwards chains of dtypes of one family become vertical columns that move as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate, count, pairwise
from math import fsum, inf  # sum() rounds in other ways from Python 3.12 on

from graphir.drawing.hasse.grid import Grid
from graphir.drawing.hasse.order import Rows

_ROUNDS = 40
_BROKEN_UP = 40  # after so many attempts to find crossing columns all columns are broken up


def spread(grid: Grid, rows: Rows) -> list[float]:
    """Return the middle of each number, such that lines lean as little as order and gaps allow.

    Repeated sweeps move one row at a time to the least squares solution for its lines' lean.
    """
    x = [0.0] * len(grid.row)
    for sweep in range(grid.effort(_ROUNDS, 4)):
        for row in rows if sweep % 2 else reversed(rows):
            aims = [_aim(grid, x, [number]) for number in row]
            steps = [grid.distance(a, b) for a, b in pairwise(row)]
            for number, place in zip(row, apart(aims, steps), strict=True):
                x[number] = place
    return x


def lean(grid: Grid, x: Sequence[float]) -> float:
    """Return the sum of the horizontal distances of all line segments."""
    return fsum(abs(x[a] - x[b]) for chain in grid.chains for a, b in pairwise(chain))


def straightened(grid: Grid, rows: Rows, *, lanes: bool) -> list[float]:
    """Return the middle of each number with every column vertical.

    Each column stands where its lines to other columns lean least. With `lanes` long lines are
    columns too.
    """
    x = spread(grid, rows)
    columns = _from_left_to_right(_columns(grid, lanes), rows)
    left = {b: (a, grid.distance(a, b)) for row in rows for a, b in pairwise(row)}
    right = {a: (b, grid.distance(a, b)) for row in rows for a, b in pairwise(row)}
    for sweep in range(grid.effort(_ROUNDS, 4)):
        for column in reversed(columns) if sweep % 2 else columns:
            least = max((x[a] + far for a, far in _of(left, column)), default=-inf)
            most = min((x[b] - far for b, far in _of(right, column)), default=inf)
            # In the first sweep there may be no room; the columns further right then move.
            at = max(least, min(most, _aim(grid, x, column)[0]))
            for number in column:
                x[number] = at
    return x


def _of(beside: dict[int, tuple[int, float]], column: Iterable[int]) -> list[tuple[int, float]]:
    return [beside[number] for number in column if number in beside]


def _columns(grid: Grid, lanes: bool) -> list[list[int]]:
    """Group all numbers into columns: chains of dtypes of one family, long lines, single boxes."""
    above: dict[int, int] = {}
    for number in range(len(grid.row) if lanes else grid.nodes):
        high = grid.alike(number, 1)
        if high is not None and grid.alike(high, 0) == number:
            above[number] = high
    highs = set(above.values())
    columns = [[number] for number in range(len(grid.row)) if number not in highs]
    for column in columns:
        while column[-1] in above:
            column.append(above[column[-1]])
    return columns


def _from_left_to_right(columns: list[list[int]], rows: Rows) -> list[list[int]]:
    """Order the columns from left to right, and break up columns that would cross.

    An attempt breaks up the columns of one cycle. After _BROKEN_UP attempts all are broken up.
    """
    for attempt in count(1):
        where = {number: i for i, column in enumerate(columns) for number in column}
        order: TopologicalSorter[int] = TopologicalSorter(dict.fromkeys(range(len(columns)), ()))
        for row in rows:
            for a, b in pairwise(row):
                order.add(where[b], where[a])
        try:
            return [columns[i] for i in order.static_order()]
        except CycleError as error:
            cycle: set[int] = set(error.args[1])
        if attempt >= _BROKEN_UP:
            cycle = set(range(len(columns)))
        uncrossed = [column for i, column in enumerate(columns) if i not in cycle]
        columns = [*uncrossed, *([number] for i in sorted(cycle) for number in columns[i])]
    raise AssertionError  # rows of single numbers have an order


def _aim(grid: Grid, x: Sequence[float], column: Sequence[int]) -> tuple[float, float]:
    """Return the best position of a column by its lines to other columns, and its weight."""
    own = set(column)
    others = [
        (_firmness(grid.kinds[number], grid.kinds[other]), x[other])
        for number in column
        for side in grid.near[number]
        for other in side
        if other not in own
    ]
    weight = fsum(w for w, _ in others)
    return (fsum(w * at for w, at in others) / weight, weight) if others else (x[column[0]], 0.01)


def _firmness(kind: str, other: str) -> int:
    """Return the weight of a line: greatest within a dtype family, then for long lines."""
    if kind == other:
        return {"lane": 9, "": 1}.get(kind, 16)
    return 3 if "lane" in (kind, other) else 1


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
