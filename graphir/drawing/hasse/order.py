"""Crossing reduction: the order within each row of a Hasse diagram.

From several deterministic starts, sweeps sort each row by the mean place of its neighbours in the
row before (the barycenter heuristic), and swap adjacent numbers where that saves crossings.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from math import fsum
from typing import TypeAlias

from graphir.drawing.hasse.grid import Grid

Rows: TypeAlias = list[list[int]]
"""The numbers of a grid, row by row from below, from left to right."""

# Multiples of the numbers modulo a prime are a shuffle that is the same on every machine.
_STARTS, _PRIME, _SWEEPS = (1, 10006, 3, 7, 1009, 2003, 4001, 5003, 6007, 8009), 10007, 16


def orders(grid: Grid) -> Iterator[Rows]:
    """Yield orders of the rows with few crossings, each from another start.

    A large grid has fewer starts.
    """
    for step in _STARTS[: grid.effort(len(_STARTS))]:
        rows: Rows = [[] for _ in range(max(grid.row, default=-1) + 1)]
        for number in sorted(range(len(grid.row)), key=lambda number: number * step % _PRIME):
            rows[grid.row[number]].append(number)
        sweeps = [rows]
        for sweep in range(grid.effort(_SWEEPS, 4)):
            sweeps.append(_swept(grid, sweeps[-1], sweep % 2))
        yield min(sweeps, key=lambda rows: crossings(grid, rows))


def _swept(grid: Grid, rows: Rows, side: int) -> Rows:
    """Sweep once: sort each row by the mean place of its neighbours above (1) or below (0).

    Then swap neighbours in the row where that saves crossings.
    """
    after = [list(row) for row in rows]
    place = _places(after)
    for row in reversed(after) if side else after:
        row[:] = _by_place(grid, row, side, place)
        for i in range(len(row) - 1):
            left, right = row[i : i + 2]
            if _crossings_of(grid, place, left, right) > _crossings_of(grid, place, right, left):
                row[i : i + 2] = right, left
        place |= _places([row])
    return after


def _by_place(
    grid: Grid, row: Sequence[int], side: int, place: Mapping[int, float]
) -> Iterator[int]:
    """Yield a row sorted by the mean place of its neighbours; lanes go amid boxes of equal mean."""
    means = {
        number: _mean([place[other] for other in grid.near[number][side]], place[number])
        for number in row
    }
    for _, ties in groupby(sorted(row, key=means.__getitem__), means.__getitem__):
        boxes: list[int] = []
        lanes: list[int] = []
        for number in ties:
            (boxes if number < grid.nodes else lanes).append(number)
        half = len(boxes) // 2
        yield from (*boxes[:half], *lanes, *boxes[half:])


def _places(rows: Iterable[Sequence[int]]) -> dict[int, float]:
    """Return the place of each number in its row, from 0 to 1."""
    return {number: (i + 0.5) / len(row) for row in rows for i, number in enumerate(row)}


def _mean(values: Sequence[float], default: float) -> float:
    return fsum(values) / len(values) if values else default


def _crossings_of(grid: Grid, place: Mapping[int, float], left: int, right: int) -> int:
    """Return how many lines of two neighbours in a row cross, in this order of the two."""
    count = 0
    for lefts, rights in zip(grid.near[left], grid.near[right], strict=True):
        if lefts and rights:
            at = sorted(place[a] for a in lefts)
            count += sum(len(at) - bisect_right(at, place[b]) for b in rights)
    return count


def crossings(grid: Grid, rows: Rows) -> int:
    """Return the number of crossings: inversions between rows, counted with a Fenwick tree."""
    rank = [0] * len(grid.row)
    for row in rows:
        for i, number in enumerate(row, 1):
            rank[number] = i
    count = 0
    for row, above in pairwise(rows):
        tree = [0] * (len(above) + 1)
        for count_before, end in enumerate(
            end for number in row for end in _ends(grid, number, rank)
        ):
            below, at = 0, end
            while at:
                below += tree[at]
                at -= at & -at
            count += count_before - below
            while end < len(tree):
                tree[end] += 1
                end += end & -end
    return count


def _ends(grid: Grid, number: int, rank: Sequence[int]) -> list[int]:
    """Return the ranks at which a number's upward lines end, sorted: these lines do not cross."""
    return sorted(rank[other] for other in grid.near[number][1])
