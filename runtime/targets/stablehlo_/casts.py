"""Conversions in StableHLO: the values of one dtype in another, rounded once."""

from __future__ import annotations

import math

from graphir import DType
from runtime.targets.stablehlo_.values import HloValue, where


def converted(x: HloValue, to: DType, tf32: str = "even") -> HloValue:
    """The values in another dtype, as graphir.conversions has it.

    What StableHLO leaves to engines is written out: floats beyond an integer's range, 64 bits to
    formats below float32, what the narrow floats lack. A rounding below float32 is behind a
    barrier, as engines would otherwise keep more than was asked for.
    """
    source = x.dtype
    if source is to:
        return x
    if source.storage == to.storage and to is not DType.tensor_float32:
        return HloValue(x.body, x.name, x.type.cast(to))
    if to is DType.bool:
        return widened(x).ne(0)
    if to.is_complex:
        return _complex(x, to, tf32)
    if to.is_integer:
        return _integer(widened(x), to)
    wide = widened(x)
    if to in (DType.float32, DType.float64):
        return wide.convert(to)
    return _rounded(_single(wide), to, tf32)


def widened(x: HloValue) -> HloValue:
    """Exactly, in a dtype that every engine computes in."""
    if x.dtype is DType.tensor_float32:
        return converted(x, DType.float32)
    if x.dtype is DType.float8_e8m0fnu:  # of which engines convert NaN to inf
        return where(x.bitcast(DType.uint8).eq(0xFF), math.nan, x.convert(DType.float32))
    if x.dtype.is_float and x.dtype.bits < 32:
        return x.convert(DType.float32)
    if x.dtype.is_integer and x.dtype.narrow:
        return x.convert(DType.int8 if x.dtype.family == "int" else DType.uint8)
    return x


def _complex(x: HloValue, to: DType, tf32: str) -> HloValue:
    if x.dtype.is_complex:
        return x.convert(to)
    return converted(x, to.part, tf32).op("complex", 0, to=to)


def _integer(x: HloValue, to: DType) -> HloValue:
    """Integers wrap; floats truncate and saturate, NaN being 0."""
    plain = (DType.int8 if to.family == "int" else DType.uint8) if to.narrow else to
    if not x.dtype.is_float:
        made = x.convert(plain)
    else:
        low, above = float(to.min), 2.0**to.precision
        inside = (x >= low) & (x < above)
        made = where(inside, x, 0).convert(plain)
        made = where(x < low, to.min, where(x >= above, to.max, made))
    return made.convert(to)


def _single(x: HloValue) -> HloValue:
    """As float32: exact, or cut off towards zero with the last bit set where anything was."""
    if x.dtype.exact_in(DType.float32):
        return x.convert(DType.float32)
    wide = _sticky(x) if x.dtype.bits == 64 and x.dtype.is_integer else x
    wide = wide.convert(DType.float64)
    near = wide.convert(DType.float32)
    again, bits = near.convert(DType.float64), near.bitcast(DType.uint32)
    beyond = again.op("abs") > wide.op("abs")
    bits = bits - beyond.convert(DType.uint32)
    return (bits | again.ne(wide).convert(DType.uint32)).bitcast(DType.float32)


def _sticky(x: HloValue) -> HloValue:
    """64-bit integers as float64, on the same side of every number of at most 41 bits."""
    exact, low = x.convert(DType.float64), x & 0xFFF
    kept = (exact.op("abs") < 2.0**53) | low.eq(0)
    return where(kept, exact, (x - low + 0x800).convert(DType.float64))


def _rounded(x: HloValue, to: DType, tf32: str) -> HloValue:
    """Float32, perhaps rounded to odd, in a format that has less."""
    if to is DType.tensor_float32:
        return _tf32(x, tf32)
    made = _special(x, to).convert(to)
    return made.op("optimization_barrier")


def _tf32(x: HloValue, tf32: str) -> HloValue:
    bits = x.bitcast(DType.uint32)
    half = 0x1000 if tf32 == "away" else (bits.op("shift_right_logical", 13) & 1) + 0xFFF
    rounded = ((bits + half) & 0xFFFFE000).bitcast(DType.float32)
    made = where(x.ne(x), x, rounded)
    return HloValue(x.body, made.name, made.type.cast(DType.tensor_float32))


def _special(x: HloValue, to: DType) -> HloValue:
    """With what a format lacks as its row in graphir.conversions says."""
    assert to.format is not None
    if to.format.specials == "finite":
        most = to.format.max
        return where(x.ne(x), -0.0, x.op("minimum", most).op("maximum", -most))
    if to.format.specials == "scale":
        return where(x.bitcast(DType.int32) > 0, x, math.nan)  # comparisons flush subnormals
    return x
