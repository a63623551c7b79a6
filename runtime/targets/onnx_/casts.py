"""Casts in ONNX, and sort keys: integers that have the order of values."""

from __future__ import annotations

import math

import numpy as np

from graphir import DType
from graphir.conversions import Step, plain
from graphir.runtime.targets.casts import EngineConversions
from graphir.runtime.targets.onnx_.functions import greater, lesser
from graphir.runtime.targets.onnx_.values import OnnxValue


class OnnxConversions(EngineConversions):
    """Casts of values that have the dtypes which ONNX has for them."""

    def cast(self, source: DType, target: DType) -> Step:
        """The format's own conversion."""
        return lambda x: x.cast(DType.from_numpy(target.storage))

    def widen(self, source: DType) -> Step:
        """The format's own conversion, which is exact."""
        return self.cast(source, plain(source))

    def settled(self, target: DType, x: OnnxValue) -> OnnxValue:
        """Return float32 values that the format's conversion, and engines, convert correctly.

        A value that rounds beyond the greatest finite value becomes infinity, or NaN in formats
        without infinity. In float8_e8m0fnu, whose ties go up, non-positive values become NaN too.
        In formats without NaN, a NaN becomes -0.0.
        """
        assert target.format is not None  # a float dtype has a format
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


def cast_values(x: OnnxValue, source: DType, target: DType, tf32: str = "even") -> OnnxValue:
    """The values, which are of dtype `source`, in another, as graphir.conversions has it."""
    return OnnxConversions().convert(x, source, target, tf32)


def key(x: OnnxValue, nan: float = np.nan, *, zeros: bool = False) -> OnnxValue:
    """Return integers with the order of values: NaN is above all, or below all if `nan` is -NaN.

    Zeros have equal keys; with `zeros`, 0.0 is above -0.0.
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
    """Return the values of some keys; this is the inverse of `key`."""
    if dtype is DType.uint64:
        return (key ^ DType.int64.min).bits(DType.uint64)
    if not dtype.is_float:
        return key.cast(dtype)
    return (key < 0).where(key ^ key.dtype.max, key).bits(dtype)
