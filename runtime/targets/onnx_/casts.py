"""What conversions become in ONNX, and the integers in whose order values are."""

from __future__ import annotations

import math

import numpy as np

from graphir import DType
from runtime.targets.onnx_.functions import greater, lesser
from runtime.targets.onnx_.values import OnnxValue


def converted(x: OnnxValue, target: DType, tf32: str = "even") -> OnnxValue:
    """The values in another dtype, rounded once, as graphir.conversions has it."""
    source = x.dtype
    if target is source:
        return x
    if source.narrow:
        return converted(x.cast(_plain(source)), target, tf32)
    if target.is_integer and source.is_float:
        return _truncated(x, target)
    if target.is_float and target.bits < 32 and not source.exact_in(target):
        return _narrowed(x, target, tf32)
    return x.cast(DType.from_numpy(target.storage))


def _plain(dtype: DType) -> DType:
    """The dtype of no less than 8 bits, 32 for a float, that has all values of another."""
    if dtype.is_float:
        return DType.float32 if dtype.bits < 32 else dtype
    small = DType.int8 if dtype.family == "int" else DType.uint8
    return small if dtype.narrow else DType.from_numpy(dtype.storage)


def _truncated(x: OnnxValue, target: DType) -> OnnxValue:
    """Floats as integers, saturating, NaN as 0: what is out of range the format leaves open."""
    x, plain = x.cast(_plain(x.dtype)), _plain(target)
    low, above = float(target.min), 2.0**target.precision
    inside = (x >= low) & (x < above)
    whole = inside.where(x, 0).cast(plain)
    found = (x >= above).where(target.max, (x < low).where(target.min, whole))
    return found.cast(DType.from_numpy(target.storage))


def _narrowed(x: OnnxValue, target: DType, tf32: str) -> OnnxValue:
    """Rounded once, from float32 that is exact or was rounded to odd."""
    wide = x.cast(DType.float32) if x.dtype.exact_in(DType.float32) else _to_odd(x)
    if target is DType.tensor_float32:
        return rounded_to_tf32(wide, tf32)
    return _limited(wide, target).cast(target)


def _limited(x: OnnxValue, target: DType) -> OnnxValue:
    """Float32 as the format's conversion takes it: what it leaves open, or engines err at, settled.

    What rounds beyond the greatest value is infinity, or NaN where there is none; so is what is not
    positive in float8_e8m0fnu, whose ties go up. Formats that have no NaN take -0.0.
    """
    assert target.format is not None  # of a float
    greatest, specials = float(target.max), target.format.specials
    if specials == "scale":
        inside = (x > 0) & (x < 1.5 * greatest)
        return inside.where(lesser(greater(x, target.min), greatest), np.nan)
    if specials == "finite":
        return x.nan().where(-0.0, x)
    if not target.narrow:
        return x
    half = greatest + 2.0 ** (math.frexp(greatest)[1] - target.precision - 1)
    inside = abs(x) <= half if specials == "fn" else abs(x) < half  # to even
    return inside.where(x, x * np.inf if specials == "ieee" else np.nan)


def _to_odd(x: OnnxValue) -> OnnxValue:
    """As float32, cut off towards zero, the last bit set where anything was cut off."""
    x = (_sticky(x) if x.dtype.is_integer and x.dtype.bits == 64 else x).cast(DType.float64)
    near = x.cast(DType.float32)
    wide, bits = near.cast(DType.float64), near.bits(DType.int32)
    bits = bits - (abs(wide) > abs(x)).cast(DType.int32)
    return (bits | (~wide.equal(x)).cast(DType.int32)).bits(DType.float32)


def _sticky(x: OnnxValue) -> OnnxValue:
    """64-bit integers as float64, on the same side of every number of at most 41 bits."""
    exact, low = x.cast(DType.float64), x & 0xFFF
    kept = (abs(exact) < 2.0**53) | low.equal(0)
    return kept.where(exact, (x - low + 0x800).cast(DType.float64))


def rounded_to_tf32(x: OnnxValue, tf32: str) -> OnnxValue:
    """Float32 rounded to the 10 fraction bits of tensor_float32."""
    bits = x.bits(DType.uint32)
    even = (bits.op("BitShift", 13, direction="RIGHT") & 1) + 0xFFF
    rounded = (bits + (0x1000 if tf32 == "away" else even)) & 0xFFFFE000
    return x.nan().where(x, rounded.bits(DType.float32))


def key(x: OnnxValue, nan: float = np.nan, *, zeros: bool = False) -> OnnxValue:
    """Integers in the order of values: NaN above all, or below if `nan` is -NaN.

    Zeros are alike, or where `zeros` says so 0.0 is above -0.0.
    """
    dtype = x.dtype
    if dtype is DType.uint64:
        return x.bits(DType.int64) ^ DType.int64.min
    if dtype is DType.uint32:
        return x.cast(DType.int64)
    if not dtype.is_float:
        return x if dtype.bits >= 32 else x.cast(DType.int32)
    x = x.nan().where(nan, x if zeros else x.equal(0).where(0, x))
    bits = x.pattern()
    return (bits < 0).where(bits ^ bits.dtype.max, bits)


def unkeyed(key: OnnxValue, dtype: DType) -> OnnxValue:
    """The values that have these keys."""
    if dtype is DType.uint64:
        return (key ^ DType.int64.min).bits(DType.uint64)
    if not dtype.is_float:
        return key.cast(dtype)
    return (key < 0).where(key ^ key.dtype.max, key).bits(dtype)
