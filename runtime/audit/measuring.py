"""What a cast did to an array: every element of it, exactly, a block at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir import DType
from graphir.dtypes import Float
from passes.analysis.casts.measured import Measured
from runtime.audit.exact import ExactPart, Flags, Floats, Numbers, numbers

BLOCK = 1 << 16
"""Elements that are looked at together: temporaries are no larger."""


def blocks(count: int) -> Iterator[slice]:
    """The places of the blocks of a vector, one after another."""
    return (slice(start, start + BLOCK) for start in range(0, count, BLOCK))


@np.errstate(all="ignore")
def measure(before: NDArray[Any], after: NDArray[Any], source: DType, target: DType) -> Measured:
    """What the cast of `before`, of dtype `source`, to `after`, of dtype `target`, did to it.

    An element is `changed` if the target's value is another, zeros of other sign and NaN that is
    no NaN any more among them. Finite ones are `overflowed` if they became inf or NaN; in a format
    that has neither if they are half a unit or more beyond its greatest value; in an integer if
    they are, truncated, outside of its range. `underflowed` are nonzero ones that became zero by
    rounding or truncation, and so not by wrapping. To bool nothing overflows.

    A unit in the last place of a float format with m fraction bits is 2**(e - m) about x, e being
    floor(log2(|x|)), at least the least exponent of its normal numbers and without a greatest
    (Goldberg, What every computer scientist should know about floating-point arithmetic, 1991);
    of integers and bool it is 1. Of complex numbers `ulps` is that of the worse part and `relative`
    |after - before| / |before|. Both are rounded once to float64, as `Numbers.relative` says.
    """
    if source.exact_in(target):
        return Measured(before.size)
    old, new = before.reshape(-1), after.reshape(-1)
    block_measures = (_block(old[at], new[at], source, target) for at in blocks(old.size))
    return reduce(merged, block_measures, Measured(0))


def merged(first: Measured, second: Measured) -> Measured:
    """What a cast did to the elements of two arrays."""
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
    )


def _block(before: NDArray[Any], after: NDArray[Any], source: DType, target: DType) -> Measured:
    parts = 1 + source.is_complex
    old, new = numbers(before, source, parts), numbers(after, target, parts)
    places = np.flatnonzero(~old.identical(new))
    old, new = old.at(places), new.at(places)
    counts = _counts(old, new, target)
    usable = np.flatnonzero(old.finite & new.finite & ~old.zero)
    if not usable.size:
        return Measured(before.size, places.size, *counts)
    relative, ulps = _errors(old.at(usable), new.at(usable), target)
    worst = int(relative.argmax())
    at = places[usable[worst]]
    extreme = before[at].item(), after[at].item()
    return Measured(before.size, places.size, *counts, float(relative[worst]), ulps, extreme)


def _counts(old: Numbers, new: Numbers, target: DType) -> tuple[int, int, int]:
    """How many overflowed, underflowed and became NaN."""
    over = old.finite & (~new.finite | _beyond(old.parts[0], target))
    under = old.finite & ~old.zero & new.zero & ~over
    nan = ~old.nan & new.nan
    return int(over.sum()), int(under.sum()), int(nan.sum())


def _errors(old: Numbers, new: Numbers, target: DType) -> tuple[Floats, float]:
    """The relative error of each element, and the largest in ulps."""
    difference = new.minus(old)
    ulps = [_ulps(x, y, target).max() for x, y in zip(difference.parts, old.parts, strict=True)]
    return difference.relative(old), float(max(ulps))


def _beyond(x: ExactPart, target: DType) -> Flags:
    """Which values wrap or saturate: those that become inf or NaN show by themselves."""
    if target.is_integer:
        # x >= max + 1 or x <= min - 1; the differences have the right sign and side of -1.
        above = (x.high - 2.0**target.precision) + x.low >= 0
        return above | ((x.high - target.min) + x.low <= -1)
    if target.format and target.format.specials == "finite":
        greatest = np.array([target.max], np.float64)
        return abs(x.high) >= target.max + np.ldexp(0.5, _unit(greatest, target.format))
    return np.zeros(x.high.shape, np.bool_)


def _ulps(difference: ExactPart, x: ExactPart, target: DType) -> Floats:
    """|lost| in units that the target has at x: powers of two, so that only the loss is rounded."""
    if not target.format:
        return abs(difference.high)
    # A high part that was rounded up to a power of two is of the binade above.
    below = x.low * np.sign(x.high) < 0
    near = np.where(below, np.nextafter(x.high, 0), x.high)
    return np.ldexp(abs(difference.high), -_unit(near, target.format))


def _unit(x: Floats, form: Float) -> NDArray[Any]:
    """The exponent of the unit in the last place about x."""
    least = math.frexp(form.least)[1] - 1
    return np.maximum(np.where(x == 0, least, np.frexp(x)[1] - 1 - form.mantissa), least)
