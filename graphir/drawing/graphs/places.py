"""The order and the positions of tiles and lanes within rows, as in layered graph drawing.

Crossings are reduced first: sweeps down and up sort each row by the mean position of its neighbours
(the barycenter heuristic) and swap adjacent tiles where that saves crossings. Then sweeps move the
rows to the weighted medians at which lines are vertical, with the distances kept (`apart`).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from itertools import pairwise
from math import fsum  # sum() rounds in other ways from Python 3.12 on
from typing import TypeAlias

from graphir.drawing.graphs.web import Web
from graphir.drawing.hasse.columns import apart

_SWEEPS, _ROUNDS = 24, 30
_AXIS = 100.0  # the weight that keeps tiles with ports in one column

Rows: TypeAlias = list[list[int]]
"""The numbers of a web, row by row from above, from left to right."""


def places(web: Web) -> tuple[Rows, list[float]]:
    """Return the order within each row, and the middle of each number."""
    placement = _Places(web)
    placement.order()
    placement.straighten()
    return placement.rows, placement.x


class _Places:
    """The state of placing: the rows, and the middle of each number."""

    def __init__(self, web: Web) -> None:
        self._web = web
        self.x = [0.0] * len(web.row)
        self.rows: Rows = [[] for _ in range(max(web.row, default=-1) + 1)]
        for number in sorted(
            range(len(web.row)), key=lambda number: (number != web.anchor, number)
        ):
            self.rows[web.row[number]].append(number)

    def order(self) -> None:
        """Reduce crossings by sweeps down and up that sort each row by its neighbours' positions.

        The best order of all sweeps is kept.
        """
        for row in self.rows:
            self._place(row, [(0.0, 1.0)] * len(row))
        best = self._crossings(), [list(row) for row in self.rows], list(self.x)
        for sweep in range(_SWEEPS):
            side = sweep % 2
            for row in reversed(self.rows) if side else self.rows:
                self._sort(row, side)
            count = self._crossings()
            if count < best[0]:
                best = count, [list(row) for row in self.rows], list(self.x)
            if not best[0]:
                break
        _, self.rows, self.x = best

    def _sort(self, row: list[int], side: int) -> None:
        aims = {number: self._mean(number, side) for number in row}
        row.sort(key=lambda number: (number != self._web.anchor, aims[number]))
        for i in range(len(row) - 1):
            left, right = row[i : i + 2]
            if left != self._web.anchor and self._crossings_of(left, right) > self._crossings_of(
                right, left
            ):
                row[i : i + 2] = right, left
        self._place(row, [(aims[number], 1.0) for number in row])

    def _mean(self, number: int, side: int) -> float:
        links = self._web.links[side][number]
        if not links:
            return self.x[number]
        return fsum(self.x[at] + there - here for at, here, there in links) / len(links)

    def _crossings_of(self, left: int, right: int) -> int:
        """Return how many lines of two neighbours in a row cross, in this order of the two."""
        x = self.x
        return sum(
            x[a.other] + a.there > x[b.other] + b.there
            for links in self._web.links
            for a in links[left]
            for b in links[right]
        )

    def _crossings(self) -> int:
        """Return the number of crossings between all neighbouring rows."""
        count = 0
        for row in self.rows:
            ends: list[float] = []
            lines = [
                (self.x[number] + link.here, self.x[link.other] + link.there)
                for number in row
                for link in self._web.links[1][number]
            ]
            for _, end in sorted(lines):
                count += len(ends) - bisect_right(ends, end)
                insort(ends, end)
        return count

    def _place(self, row: Sequence[int], aims: Sequence[tuple[float, float]]) -> None:
        steps = [self._web.distance(a, b) for a, b in pairwise(row)]
        for number, place in zip(row, apart(aims, steps), strict=True):
            self.x[number] = place

    def straighten(self) -> None:
        """Move the rows by sweeps to the positions where lines lean least, long lines first.

        Tiles with ports stay in the middle; otherwise each would shift against the tile before it.
        """
        for sweep in range(_ROUNDS):
            # A sweep down aligns with the row above, a sweep up with the row below. The last half
            # of the sweeps align with both.
            sides = (0, 1) if sweep >= _ROUNDS // 2 else (sweep % 2,)
            for row in reversed(self.rows) if sweep % 2 else self.rows:
                self._place(row, [self._aim(number, sides) for number in row])

    def _aim(self, number: int, sides: Sequence[int]) -> tuple[float, float]:
        """Return the weighted median of the positions where a tile's lines are vertical.

        The second result is its weight.
        """
        if number == self._web.anchor:
            return self.x[number], 0.01
        if self._web.has_ports(number):
            return 0.0, _AXIS
        aims = sorted(
            (self.x[at] + there - here, self._firmness(number, at))
            for side in sides
            for at, here, there in self._web.links[side][number]
        )
        weight = sum(firm for _, firm in aims)
        return (_median(aims, weight), weight) if aims else (self.x[number], 0.01)

    def _firmness(self, number: int, other: int) -> float:
        return (2.0, 1.0, 8.0)[self._web.lanes_among(number, other)]


def _median(aims: Sequence[tuple[float, float]], weight: float) -> float:
    """Return the weighted median of sorted positions; the midpoint where two positions qualify."""
    passed_weight = 0.0
    for i, (at, firm) in enumerate(aims):
        passed_weight += firm
        if passed_weight * 2 > weight:
            return at
        if passed_weight * 2 == weight:
            return (at + aims[i + 1][0]) / 2
    return 0.0
