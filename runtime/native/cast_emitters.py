"""Conversions in machine code, with the bits of graphir.conversions and of NumPy's own casts.

A conversion is written as NumPy functions on an `LlvmValue`, each of which emits instructions. A
value lies in a register of its machine dtype, as in runtime/program/codegen/casting.py, and the
roundings are those of that module.
"""

from __future__ import annotations

from functools import cache, partial
from operator import methodcaller

import numpy as np

from graphir.conversions import (
    Conversions,
    Step,
    has_range_of_float32,
    narrow_patterns,
    narrow_values,
    rounding,
    same_value,
    upper_half,
)
from graphir.public import DType
from graphir.runtime.native.assembly import ConstantTable, Vector, where
from graphir.runtime.native.instruction_selection import NarrowFunction, NativeConversion
from graphir.runtime.program.codegen.casting import (
    STORES,
    halves,
    register,
    rounded_in_register,
    rounds_in_register,
)

_F32 = np.dtype(np.float32)
_U16, _U32 = np.dtype(np.uint16), np.dtype(np.uint32)


def emit_conversion(conversion: NativeConversion, x: Vector) -> Vector:
    """Emit a conversion of `x`, and return its result."""
    if conversion.kind == "load":
        return _load(conversion.source, x)
    if conversion.kind == "store":
        return _store(conversion.target, x)
    return RegisterConversions(conversion).convert(
        x, conversion.source, conversion.target, conversion.tf32
    )


def emit_narrow(function: NarrowFunction, x: Vector) -> Vector:
    """Emit a function of float32 values that are exact in a narrower dtype, as a look-up."""
    if function.half:
        pattern = _store(DType.float16, x).view(_U16).astype(_U32)
    else:
        pattern = x.view(_U32) >> 16
    return pattern.gather_from(function.table)


# -- storage


def _load(dtype: DType, x: Vector) -> Vector:
    """Emit the exact conversion from storage to register."""
    if has_range_of_float32(dtype):
        return (x.view(_U16).astype(_U32) << 16).view(_F32)
    if dtype is DType.float16 and x.code.has("f16c"):
        return x.astype(_F32)
    if dtype.is_integer:
        return _last_bits(dtype, x)
    values = halves() if dtype is DType.float16 else narrow_values(dtype)
    values_loaded = (
        x.view(f"u{x.dtype.itemsize}").astype(_U32).gather_from(ConstantTable.of(values))
    )
    return values_loaded.astype(register(dtype))


def _store(dtype: DType, x: Vector) -> Vector:
    """Emit the exact conversion from register to storage."""
    if dtype is DType.float16 and x.code.has("f16c"):
        return x.astype(np.float16)
    if dtype in STORES:
        return STORES[dtype](x)
    if dtype.is_integer:
        return x & x.dtype.type((1 << dtype.bits) - 1)
    return upper_half(x.astype(_F32)).gather_from(ConstantTable.of(narrow_patterns(dtype)))


def _last_bits(dtype: DType, x: Vector) -> Vector:
    """Emit the value of the last `dtype.bits` bits of a byte, with sign extension if signed."""
    unused_bits = 8 - dtype.bits
    return (x.view(register(dtype)) << unused_bits) >> unused_bits


# -- casts


class RegisterConversions(Conversions):
    """The steps of a cast from register to register, where registers hold widened values."""

    natively = frozenset({DType.bool, DType.float32, DType.float64, DType.weak_float})

    def __init__(self, conversion: NativeConversion) -> None:
        self.quiet, self.exact = conversion.quiet, conversion.source.exact_in(conversion.target)

    def cast(self, source: DType, target: DType) -> Step:
        """Return the step of LLVM's own conversion; a complex number converts part by part."""
        if source.is_complex or target.is_complex:
            return partial(_complex, source, target)
        if target.is_integer and target.narrow:
            return partial(_last_bits, target)
        return methodcaller("astype", register(target))

    def widen(self, source: DType) -> Step:
        """Return the identity, because a register holds the widened value already."""
        return same_value

    def narrow(self, target: DType, tf32: str) -> Step:
        """Return the step that rounds float32 to a narrower format, whose register it fills."""

        def round_value(x: Vector) -> Vector:
            if target is DType.float16 and x.code.has("f16c"):
                x = x.astype(np.float16).astype(_F32)
            elif rounds_in_register(target):
                if not self.quiet:  # the carry could turn a NaN into inf or -0.0
                    x = where(np.isnan(x), np.copysign(_NAN, x), x)
                x = rounded_in_register(target, x, tf32)
            elif target.emulated:
                x = rounding(target)(x)
            else:
                x = upper_half(x).gather_from(_rounded_values(target))
            return x.astype(register(target))

        return methodcaller("astype", register(target)) if self.exact else round_value


_NAN = np.float32(np.nan)


def _complex(source: DType, target: DType, x: Vector) -> Vector:
    """Emit a conversion of each part; the imaginary part of a real number is 0."""
    if not source.is_complex:
        return x.with_imaginary(x.constant(0, x.dtype), register(target))
    parts = [x.part(imaginary) for imaginary in (False, True)]
    if target is DType.bool:
        return (parts[0] != 0) | (parts[1] != 0)
    real, imaginary = (part.astype(register(target.part)) for part in parts)
    return real.with_imaginary(imaginary, register(target))


@cache
def _rounded_values(dtype: DType) -> ConstantTable:
    return ConstantTable.of(narrow_values(dtype).take(narrow_patterns(dtype)))
