"""Cells of Python scalars: between two limits of dtypes, every library treats them alike.

What a library makes of a number beside an array depends on which dtypes hold it: not on 5 or 6,
but on 127 or 128. So a program that was traced for one number serves all others of its cell.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from graphir.dtypes import DType
from graphir.promotion.scalars import int_range

EXPONENTS = (-1, 0, 1, 2)
"""The exponents that libraries treat one by one."""


def _int_edges() -> Iterator[int]:
    """The first int of each cell but the lowest."""
    for exponent in EXPONENTS:
        yield from (exponent, exponent + 1)
    for bits in (63, 64):
        yield from (-(2**bits), 2**bits)
    largest = 2**1024 - 2**970  # the least that is too large to round to a float
    yield from (1 - largest, largest)
    for dtype in DType:
        low, high = int_range(dtype)
        yield from (low, high + 1, -high)  # an unsigned dtype takes ints down to -high in torch
        yield from (low + 1, high)  # the limits themselves clip nothing
        if dtype.format is not None:
            greatest = int(dtype.part.max)
            yield from (-greatest, greatest + 1)


class Interval(NamedTuple):
    """The ints from `low` up to `high`, which is none of them; an end may be an infinity."""

    low: float
    high: float


INT_EDGES = tuple(sorted(set(_int_edges())))
_INTERVALS = tuple(map(Interval, (-math.inf, *INT_EDGES), (*INT_EDGES, math.inf)))
FLOAT_EDGES = tuple(
    sorted({float(dtype_.part.max) for dtype_ in DType if dtype_.format is not None})
)
"""The greatest finite magnitude of each cell but the last."""


def cell_of(value: Any) -> Hashable:
    """The cell of a Python scalar of a given type: ints of one interval, floats of one magnitude.

    Infinities and NaN, and floats that are one of EXPONENTS or 0.5, have cells of their own.
    """
    if type(value) is int:
        return _INTERVALS[bisect_right(INT_EDGES, value)]
    if type(value) is complex:
        return cell_of(value.real), cell_of(value.imag)
    if not math.isfinite(value) or value == 0.5 or value in EXPONENTS:
        return repr(float(value))
    return bisect_left(FLOAT_EDGES, abs(value)), value < 0
