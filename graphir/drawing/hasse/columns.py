"""The places within the rows of a picture: lines upright, dtypes of a kind in columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate, count, pairwise
from math import fsum, inf  # sum() rounds in other ways from Python 3.12 on

from graphir.drawing.hasse.grid import Grid
from graphir.drawing.hasse.order import Rows

_ROUNDS = 40
_BROKEN_UP = 40  # times that columns which would cross are looked for one by one


def spread(grid: Grid, rows: Rows) -> list[float]:
    """The middle of each number, such that lines lean as little as the order and gaps allow.

    Rows in turn, again and again, move to the least squares of their lines' lean.
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
    """How far all lines go sideways together."""
    return fsum(abs(x[a] - x[b]) for chain in grid.chains for a, b in pairwise(chain))


def straightened(grid: Grid, rows: Rows, *, lanes: bool) -> list[float]:
    """The middle of each number with every column upright, where its lines to others lean least.

    Long lines are columns too, if `lanes`.
    """
    x = spread(grid, rows)
    columns = _from_left_to_right(_columns(grid, lanes), rows)
    left = {b: (a, grid.distance(a, b)) for row in rows for a, b in pairwise(row)}
    right = {a: (b, grid.distance(a, b)) for row in rows for a, b in pairwise(row)}
    for sweep in range(grid.effort(_ROUNDS, 4)):
        for column in reversed(columns) if sweep % 2 else columns:
            least = max((x[a] + far for a, far in _of(left, column)), default=-inf)
            most = min((x[b] - far for b, far in _of(right, column)), default=inf)
            # The first time there may be no room: then what is further right makes it.
            at = max(least, min(most, _aim(grid, x, column)[0]))
            for number in column:
                x[number] = at
    return x


def _of(beside: dict[int, tuple[int, float]], column: Iterable[int]) -> list[tuple[int, float]]:
    return [beside[number] for number in column if number in beside]


def _columns(grid: Grid, lanes: bool) -> list[list[int]]:
    """All numbers, those together that should stand upright: dtypes of a kind, or a long line."""
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
    """The columns, each after all that stand left of it; those that would cross are broken up.

    After _BROKEN_UP attempts all are.
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
    """Where a column would stand best by its lines to others, and how much that weighs."""
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
    """How much a line wants to be upright: one between dtypes of a kind most, then a long one."""
    if kind == other:
        return {"lane": 9, "": 1}.get(kind, 16)
    return 3 if "lane" in (kind, other) else 1


def apart(aims: Sequence[tuple[float, float]], steps: Sequence[float]) -> list[float]:
    """Coordinates at least `steps` apart, as near their weighted aims as that allows.

    Least squares by pooling: whatever would come too near its neighbour moves as one with it.
    """
    offsets = list(accumulate(steps, initial=0.0))
    pools: list[tuple[float, float, int]] = []  # where a pool is, its weight, how many it has
    for (aim, weight), offset in zip(aims, offsets, strict=True):
        pool = (aim - offset, weight, 1)
        while pools and pools[-1][0] > pool[0]:
            at, other, count = pools.pop()
            both = other + pool[1]
            pool = (at * other + pool[0] * pool[1]) / both, both, count + pool[2]
        pools.append(pool)
    middles = [at for at, _, count in pools for _ in range(count)]
    return [at + offset for at, offset in zip(middles, offsets, strict=True)]
