"""The exact measurement of a cast's effect on an array, block by block."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir import DType
from graphir.conversions import convert
from graphir.dtypes import Float
from graphir.passes.analysis.casts.measured import Measured
from graphir.runtime.audit.exact import NO_LOW, ExactPart, Flags, Floats, Numbers, numbers

BLOCK = 1 << 15
"""The elements of a block, which bounds the size of temporaries."""


def blocks(count: int) -> Iterator[slice]:
    """Yield the slices of the blocks of a vector of `count` elements."""
    return (slice(start, start + BLOCK) for start in range(0, count, BLOCK))


@np.errstate(all="ignore")
def measure(before: NDArray[Any], after: NDArray[Any], source: DType, target: DType) -> Measured:
    """Measure the cast of `before`, of dtype `source`, to `after`, of dtype `target`.

    An element is `changed` if its value in the target differs, including zeros of the other sign
    and NaN that became a number. A finite element `overflowed` if it became inf or NaN; in a format
    without inf and NaN, if it is half a unit or more beyond the greatest value; in an integer, if
    its truncated value is outside the range. A nonzero element `underflowed` if rounding or
    truncation made it zero; wrapping does not count. Nothing overflows in a cast to bool.

    A unit in the last place (ulp) at x of a float format with m fraction bits is 2**(e - m), where
    e is floor(log2(|x|)), at least the least exponent of normal numbers and without an upper bound
    (Goldberg, What every computer scientist should know about floating-point arithmetic, 1991). The
    ulp of integers and bool is 1. For complex numbers, `ulps` is that of the worse part, and
    `relative` is |after - before| / |before|. Both are rounded once to float64, as
    `Numbers.relative` says.
    """
    if source.exact_in(target):
        return Measured(before.size)
    old, new = before.reshape(-1), after.reshape(-1)
    block_measures = (_block(old[at], new[at], source, target) for at in blocks(old.size))
    return reduce(merge, block_measures, Measured(0))


def merge(first: Measured, second: Measured) -> Measured:
    """Merge the measurements of one cast on two arrays."""
    worse = max((first, second), key=lambda m: (m.relative, m.worst is not None))
    return Measured(
        first.elements + second.elements,
        first.changed + second.changed,
        first.overflowed + second.overflowed,
        first.underflowed + second.underflowed,
        first.nan_made + second.nan_made,
        worse.relative,
        max(first.ulps, second.ulps),
        worse.worst,
        greatest=max(first.greatest, second.greatest),
    )


_ROUNDING = (DType.float16, DType.bfloat16, DType.float32)
"""Formats whose rounding keeps the signs of zeros."""


def _rounded_block(
    before: NDArray[Any], after: NDArray[Any], source: DType, target: DType
) -> Measured | None:
    """Measure a cast that rounds every element by less than half of it; None of other casts.

    Then the differences are exact (P. H. Sterbenz, Floating-Point Computation, 1974), and nothing
    overflowed or underflowed.
    """
    if target not in _ROUNDING or source.is_complex or not source.exact_in(DType.float64):
        return None
    old, new = (convert(x, d, DType.float64) for x, d in ((before, source), (after, target)))
    size = np.abs(old)
    error = np.subtract(new, old)
    np.abs(error, out=error)
    relative = error / size
    if not relative.max() <= 0.5:  # also without a number: zeros, inf, NaN
        relative = error / np.maximum(size, 5e-324)
        if not relative.max() <= 0.5:
            return None
    changed = int(np.count_nonzero(error))
    if not changed:
        return Measured(before.size)
    worst = int(relative.argmax())
    extreme, greatest = (before[worst].item(), after[worst].item()), float(relative[worst])
    assert target.format is not None
    units = np.bitwise_and(size.view(np.int64), _EXPONENT).view(np.float64)
    units *= 2.0**-target.format.mantissa
    np.maximum(units, target.format.least, out=units)
    ulps = np.divide(error, units, out=units).max()
    return Measured(before.size, changed, relative=greatest, ulps=float(ulps), worst=extreme)


_EXPONENT = 0x7FF << 52
"""The bits of the exponent of a float64; alone, they are the power of two at or below a size."""


def _block(before: NDArray[Any], after: NDArray[Any], source: DType, target: DType) -> Measured:
    measured = _rounded_block(before, after, source, target)
    if measured is not None:
        return measured
    parts = 1 + source.is_complex
    old, new = numbers(before, source, parts), numbers(after, target, parts)
    places = np.flatnonzero(~old.identical(new))
    if places.size < before.size:
        old, new = old.at(places), new.at(places)
    counts, greatest = _counts(old, new, target)
    usable = np.flatnonzero(old.finite & new.finite & ~old.zero)
    if not usable.size:
        return Measured(before.size, places.size, *counts, greatest=greatest)
    if usable.size < places.size:
        old, new = old.at(usable), new.at(usable)
    relative, ulps = _errors(old, new, target)
    worst = int(relative.argmax())
    at = places[usable[worst]]
    extreme = before[at].item(), after[at].item()
    error = float(relative[worst])
    return Measured(before.size, places.size, *counts, error, ulps, extreme, greatest=greatest)


def _counts(old: Numbers, new: Numbers, target: DType) -> tuple[tuple[int, int, int], float]:
    """Return the numbers of elements that overflowed, underflowed and became NaN.

    The second result is the greatest magnitude of an element that overflowed.
    """
    over = old.finite & (~new.finite | beyond(old.parts[0], target))
    under = old.finite & ~old.zero & new.zero & ~over
    nan = ~old.nan & new.nan
    greatest = float(abs(old.parts[0].high[over]).max(initial=0.0))
    return (int(over.sum()), int(under.sum()), int(nan.sum())), greatest


def _errors(old: Numbers, new: Numbers, target: DType) -> tuple[Floats, float]:
    """Return the relative error of each element, and the largest error in ulps."""
    difference = new.minus(old)
    ulps = [_ulps(x, y, target).max() for x, y in zip(difference.parts, old.parts, strict=True)]
    return difference.relative(old), float(max(ulps))


def beyond(x: ExactPart, target: DType) -> Flags:
    """Return the mask of values that wrap or saturate; inf and NaN results are tested elsewhere."""
    if target.is_integer:
        # x >= max + 1 or x <= min - 1; the differences have the right sign and side of -1.
        above = (x.high - 2.0**target.precision) + x.low >= 0
        return above | ((x.high - target.min) + x.low <= -1)
    if target.format and target.format.specials == "finite":
        greatest = np.array([target.max], np.float64)
        return abs(x.high) >= target.max + np.ldexp(0.5, _unit(greatest, target.format))
    return np.zeros(x.high.shape, np.bool_)


def _ulps(difference: ExactPart, x: ExactPart, target: DType) -> Floats:
    """Return |difference| in ulps of the target at x; an ulp is a power of two: exact scaling."""
    if not target.format:
        return abs(difference.high)
    near = x.high
    if x.low is not NO_LOW:
        # A high part that rounded up to a power of two would give the exponent of the binade above.
        below = x.low * np.sign(x.high) < 0
        near = np.where(below, np.nextafter(x.high, 0), x.high)
    return np.ldexp(abs(difference.high), -_unit(near, target.format))


def _unit(x: Floats, form: Float) -> NDArray[Any]:
    """Return the exponent of the ulp at x."""
    least = math.frexp(form.least)[1] - 1
    return np.maximum(np.where(x == 0, least, np.frexp(x)[1] - 1 - form.mantissa), least)
