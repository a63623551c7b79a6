"""Conversions in machine code: what graphir.conversions and NumPy's own casts compute, to the bit.

They are functions of NumPy on what is being written, `LlvmValue`. A value lies in a register of
its machine dtype, as in runtime/program/codegen/casting.py, whose roundings these are.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from graphir import DType
from graphir.conversions import narrow_patterns, narrow_values, round_to_odd, sticky
from graphir.semantics.evaluation import machine
from runtime.native.code import NativeConversion
from runtime.native.vectors import ConstantTable, where
from runtime.program.codegen.casting import ROUNDINGS, STORES, halves, register

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_U16, _U32 = np.dtype(np.uint16), np.dtype(np.uint32)


def converted(made: NativeConversion, x: Any) -> Any:
    """The result of a conversion."""
    if made.kind == "load":
        return _loaded(made.source, x)
    return _stored(made.target, x) if made.kind == "store" else _cast(made, x)


# -- storage


def _loaded(dtype: DType, x: Any) -> Any:
    """Exactly from storage."""
    if dtype is DType.bfloat16:
        return (x.view(_U16).astype(_U32) << 16).view(_F32)
    if dtype is DType.float16 and x.code.has("f16c"):
        return x.astype(_F32)
    if dtype.is_integer:
        return _last_bits(dtype, x)
    values = halves() if dtype is DType.float16 else narrow_values(dtype)
    found = x.view(f"u{x.dtype.itemsize}").astype(_U32).looked_up(ConstantTable.of(values))
    return found.astype(register(dtype))


def _stored(dtype: DType, x: Any) -> Any:
    """Exactly to storage."""
    if dtype is DType.float16 and x.code.has("f16c"):
        return x.astype(np.float16)
    if dtype in STORES:
        return STORES[dtype](x)
    if dtype.is_integer:
        return x & x.dtype.type((1 << dtype.bits) - 1)
    return _upper(x.astype(_F32)).looked_up(ConstantTable.of(narrow_patterns(dtype)))


def _last_bits(dtype: DType, x: Any) -> Any:
    """The last bits of a byte, with the sign that they have."""
    unused = 8 - dtype.bits
    return (x.view(register(dtype)) << unused) >> unused


# -- casts


def _cast(made: NativeConversion, x: Any) -> Any:
    source, target = made.source, made.target
    if source.is_complex or target.is_complex:
        return _complex(made, x)
    wanted = register(target)
    if target.is_integer:
        found = _saturated(target, x) if source.is_float else x.astype(wanted)
        return _last_bits(target, found) if target.narrow else found
    if target is machine(target):
        return x.astype(wanted)
    return _rounded(made, _single(source, x)).astype(wanted)


def _saturated(target: DType, x: Any) -> Any:
    """A float as an integer, cut off, within the range of its dtype; NaN is 0."""
    low, above = float(target.min), 2.0**target.precision
    inside = (x >= low) & (x < above)
    found = where(inside, x, 0.0).astype(register(target))
    return where(x < low, target.min, where(x >= above, target.max, found))


def _single(source: DType, x: Any) -> Any:
    """As float32, exactly or rounded to odd."""
    if source.exact_in(DType.float32):
        return x.astype(_F32)
    wide = source.is_integer and source.bits == 64
    return round_to_odd(sticky(x) if wide else x.astype(_F64))


def _rounded(made: NativeConversion, x: Any) -> Any:
    """Float32 rounded to a narrower format, within float32."""
    target = made.target
    if made.source.exact_in(target):
        return x
    if target.narrow:
        return _upper(x).looked_up(_rounded_values(target))
    if target is DType.float16:
        by_half = x.code.has("f16c")
        return x.astype(np.float16).astype(_F32) if by_half else ROUNDINGS[target](x, made.tf32)
    if not made.quiet:  # its last bits could carry NaN over into inf or -0.0
        x = where(np.isnan(x), np.copysign(_NAN, x), x)
    return ROUNDINGS[target](x, made.tf32)


_NAN = np.float32(np.nan)


def _complex(made: NativeConversion, x: Any) -> Any:
    """The parts converted each; of a real number the imaginary one is 0."""
    source, target = made.source, made.target
    if not source.is_complex:
        real = _part(made, source, x)
        return real.with_imaginary(real.constant(0, real.dtype), register(target))
    parts = [x.part(imaginary) for imaginary in (False, True)]
    if target is DType.bool:
        return (parts[0] != 0) | (parts[1] != 0)
    real, imaginary = (_part(made, source.part, part) for part in parts)
    return real.with_imaginary(imaginary, register(target))


def _part(made: NativeConversion, source: DType, x: Any) -> Any:
    part = made.target.part
    return x if source is part else _cast(made._replace(source=source, target=part), x)


# -- tables


def _upper(x: Any) -> Any:
    """The upper half of the bits, odd where the lower is not 0."""
    u = x.view(_U32)
    return (u >> 16) | ((u & 0xFFFF) != 0)


@cache
def _rounded_values(dtype: DType) -> ConstantTable:
    return ConstantTable.of(narrow_values(dtype).take(narrow_patterns(dtype)))
