"""The effects of casts and lossy steps: those of a run, their exact measurement, and injection."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphir.conversions import convert
from graphir.dtypes import Float
from graphir.passes.analysis.casts import Measured, StepLoss
from graphir.passes.rewriter import is_conversion
from graphir.public import DType, Symbol
from graphir.runtime.audit import exact_arrays as exact
from graphir.runtime.audit.blocked_run import Array
from graphir.runtime.audit.double_double import (
    NO_LOW,
    ExactPart,
    Flags,
    Floats,
    Numbers,
    blocks,
    numbers,
    round_numbers,
)
from graphir.runtime.audit.exact_arrays import fits_int64, is_exact_array, numbers_at, wide_dtype
from graphir.runtime.audit.wide_arithmetic import apply_cast, widen
from graphir.runtime.audit.wide_run import WideRun

TOTAL: frozenset[StepLoss] = frozenset(("cancellation", "invalid"))
"""The losses that are measured by the whole error of a step: its operands' and its own."""


class Effect(NamedTuple):
    """The effect of a cast or a lossy step: `before`, of `source`, became `after`, of `target`."""

    before: Array
    after: Array
    source: DType
    target: DType


def effect_of(run: WideRun, site: Symbol) -> Effect:
    """Return a cast's input and output in the reference run; a number and its constant else."""
    after, to = run.actual_run.cached_value(site), run.graph.storage_dtype(site)
    if site.index in run.kinds:
        local = run.local(site)
        return Effect(local, after, wide_dtype(local), to)
    if is_conversion(site):
        (x,) = site.args
        pin = run.pins.get(site.index)
        if pin is not None:
            at, pinned_value, _ = map(run.actual_run.cached_value, (*pin.args[:2], site))
            after = np.where(at, pinned_value, after)
        return Effect(run.actual_run.cached_value(x), after, run.graph.storage_dtype(x), to)
    number = run.literal(site)
    return Effect(number, after, wide_dtype(number), to)


def masked_effect(run: WideRun, site: Symbol) -> Effect:
    """Return the part of the effect of a cast that the condition of `where=` selects."""
    effect, at = effect_of(run, site), mask_of(run, site)
    if at is None:
        return effect
    at = np.broadcast_to(at, effect.before.shape)
    return effect._replace(before=effect.before[at], after=effect.after[at])


def mask_of(run: WideRun, symbol: Symbol) -> Array | None:
    """Return the mask of the elements that `where=` has computed; None for all of them."""
    mask = run.masks.get(symbol)
    return None if mask is None else run.actual_run.values[mask.index]


def is_same(run: WideRun, symbol: Symbol, truth: bool) -> bool:
    """Whether a symbol has equal values in both runs; for `truth`, equal zeros."""
    wide, actual = run.cached_value(symbol), run.actual_run.cached_value(symbol)
    parts, storage = 1 + wide_dtype(wide).is_complex, run.graph.storage_dtype(symbol)
    for at in blocks(wide.size):
        new = numbers_at(wide.reshape(-1)[at], parts)
        old = numbers(actual.reshape(-1)[at], storage, parts)
        if not (new.zero == old.zero if truth else new.identical(old)).all():
            return False
    return True


def with_loss(run: WideRun, site: Symbol, wide: Array) -> Array:
    """Return the wide value of a cast plus its loss: actual output minus the cast's purpose.

    A fraction that the user truncates is thus no loss. The loss of a step of arithmetic is its
    local loss. If the difference is not finite, the result is the actual output. The same holds
    for a number that became a constant, and for the losses in TOTAL.
    """
    before, after, source, target = effect_of(run, site)
    kind = run.kinds.get(site.index)
    if kind in TOTAL or (not is_conversion(site) and kind is None):
        return widen(after, target)
    if any(map(is_exact_array, (wide, before, after))) and wide.size <= exact.ELEMENTS:
        old = widen(before, source)
        purpose = old if kind else apply_cast(site, old)
        return exact.with_difference(wide, purpose, widen(after, target))
    dtype = _dtype_off(round_numbers(wide), before, after, source)
    result = np.empty(wide.shape, dtype.storage)
    flat = [array.reshape(-1) for array in (wide, before, after, result)]
    for at in blocks(wide.size):
        value, old, new, out = (array[at] for array in flat)
        purpose = widen(old, source) if kind else apply_cast(site, widen(old, source))
        terms = map(round_numbers, (value, purpose, widen(new, target)))
        out[:] = _off(*(convert(term, wide_dtype(term), dtype) for term in terms))
    return result


def _dtype_off(wide: Array, before: Array, after: Array, source: DType) -> DType:
    """Return the wide dtype for a value plus a loss: int64 if all terms fit, else a float."""
    is_complex = any(x.dtype.kind == "c" for x in (wide, before, after))
    if is_complex or wide.dtype != np.int64 or source.is_float:
        return DType.complex128 if is_complex else DType.float64
    return DType.int64 if all(map(fits_int64, (before, after))) else DType.float64


def _off(value: Array, exact: Array, actual: Array) -> Array:
    # If the int64 difference wraps, the sum wraps back.
    loss = actual - exact
    same = (actual == exact) | (np.isnan(actual) & np.isnan(exact))
    return np.where(same, value, np.where(np.isfinite(loss), value + loss, actual))


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
    block_measures = [_block(old[at], new[at], source, target) for at in blocks(old.size)]
    return Measured.merge(*block_measures) if block_measures else Measured(0)


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
    over = old.finite & (~new.finite | exceeds_range(old.parts[0], target))
    under = old.finite & ~old.zero & new.zero & ~over
    nan = ~old.nan & new.nan
    greatest = float(abs(old.parts[0].high[over]).max(initial=0.0))
    return (int(over.sum()), int(under.sum()), int(nan.sum())), greatest


def _errors(old: Numbers, new: Numbers, target: DType) -> tuple[Floats, float]:
    """Return the relative error of each element, and the largest error in ulps."""
    difference = new.minus(old)
    ulps = [_ulps(x, y, target).max() for x, y in zip(difference.parts, old.parts, strict=True)]
    return difference.relative(old), float(max(ulps))


def exceeds_range(x: ExactPart, target: DType) -> Flags:
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
