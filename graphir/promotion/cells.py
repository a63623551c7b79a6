"""Cells of Python scalars: sets of values that every library promotes alike.

The dtype that a library gives a Python scalar depends on the dtypes that hold the scalar. It
changes between 127 and 128, but not between 5 and 6. The limits of the dtypes therefore cut the
numbers into cells, and a program traced for one number serves every other number of its cell.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from graphir.dtypes import DType
from graphir.promotion.scalars import int_range

EXPONENTS = (-1, 0, 1, 2)
"""The exponents that libraries treat individually. Each exponent has a cell of its own."""


def _int_edges() -> Iterator[int]:
    """Yield the first int of each cell except the lowest cell."""
    for exponent in EXPONENTS:
        yield from (exponent, exponent + 1)
    for bits in (63, 64):
        yield from (-(2**bits), 2**bits)
    largest = 2**1024 - 2**970  # the least int that rounds to no finite float64
    yield from (1 - largest, largest)
    for dtype in DType:
        low, high = int_range(dtype)
        yield from (low, high + 1, -high)  # an unsigned dtype takes ints down to -high in torch
        yield from (low + 1, high)  # the limits themselves clip nothing
        if dtype.format is not None:
            greatest = int(dtype.part.max)
            yield from (-greatest, greatest + 1)


class Interval(NamedTuple):
    """The half-open interval of ints `low <= value < high`; either end may be an infinity."""

    low: float
    high: float


INT_EDGES = tuple(sorted(set(_int_edges())))
_INTERVALS = tuple(map(Interval, (-math.inf, *INT_EDGES), (*INT_EDGES, math.inf)))
FLOAT_EDGES = tuple(
    sorted({float(dtype_.part.max) for dtype_ in DType if dtype_.format is not None})
)
"""The greatest finite magnitude of each cell but the last."""


def cell_of(value: Any) -> Hashable:
    """Return the cell of a Python scalar, a key to compare with the cells of scalars of its type.

    The cell of an int is an interval between two neighbours in INT_EDGES. The cell of a float is
    its sign and a range of magnitudes. Infinities, NaN, 0.5 and floats equal to one of EXPONENTS
    have cells of their own. The cell of a complex number is the pair of its parts' cells.
    """
    if type(value) is int:
        return _INTERVALS[bisect_right(INT_EDGES, value)]
    if type(value) is complex:
        return cell_of(value.real), cell_of(value.imag)
    if not math.isfinite(value) or value == 0.5 or value in EXPONENTS:
        return repr(float(value))
    return bisect_left(FLOAT_EDGES, abs(value)), value < 0
