"""Casts inside regions, where narrow floats are kept in float32 and rounded after every op.

A value of a dtype that no machine computes in lies in a register of `machine(dtype)`, in which it
is exact: bfloat16, float16 and tensor_float32 in float32, int4 in int8. So casts that only widen
are nothing, and those that narrow are a rounding within float32.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir import DType
from graphir.conversions import convert, has_range_of_float32, round_fraction
from graphir.semantics.evaluation import machine
from runtime.program.codegen.tracing import KernelTrace, trace

_FRACTION = DType.float32.mantissa_bits
_F32, _U32, _U16 = np.dtype(np.float32), np.dtype(np.uint32), np.dtype(np.uint16)


def register(dtype: DType) -> np.dtype[Any]:
    """The dtype of the register in which a value lies."""
    return machine(dtype).storage


@cache
def cast(source: DType, target: DType, tf32: str, bits: bool, spare: int = 0) -> KernelTrace:
    """From register to register, NaN having at least so many spare bits."""
    quiet = spare >= _FRACTION - target.mantissa_bits
    kernel = partial(_cast, source=source, target=target, tf32=tf32, bits=bits, quiet=quiet)
    return trace(kernel, [register(source)], register(target), bits)


@cache
def load(dtype: DType, bits: bool) -> KernelTrace:
    """From storage to register, exactly."""
    kernel = _from_float16 if bits and dtype is DType.float16 else partial(_load, dtype=dtype)
    return trace(kernel, [dtype.storage], register(dtype), bits)


def entering(dtype: DType, tf32: str) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """The function that rounds an input of a dtype that lies in float32, given as such or as bits.

    It gives an array itself if its values need no rounding.
    """
    cut = 2 ** (_FRACTION - dtype.mantissa_bits) - 1 if has_range_of_float32(dtype) else None

    def round_entry(array: NDArray[Any]) -> NDArray[Any]:
        by_bits = cut is not None and array.flags.c_contiguous
        if by_bits and not np.bitwise_or.reduce(array.view(_U32), axis=None) & cut:
            return array
        return convert(array.view(_F32), DType.float32, dtype, tf32).view(array.dtype)

    return round_entry


@cache
def store(dtype: DType, bits: bool) -> KernelTrace:
    """From register to storage, exactly."""
    kernel = STORES.get(dtype, _by_cast(dtype)) if bits else _by_cast(dtype)
    return trace(kernel, [register(dtype)], dtype.storage, bits)


def _by_cast(dtype: DType) -> Callable[[Any], Any]:
    """The conversion to storage of what is exact there."""
    if register(dtype) == dtype.storage:
        return lambda x: x
    if dtype in _NUMPY_ROUNDS:
        return lambda x: x.astype(dtype.storage)
    return partial(convert, source=machine(dtype), target=dtype)


def spare_bits(dtype: DType) -> int:
    """How many of the last bits of a float32 are 0 in a NaN that was loaded from a dtype.

    A NaN all of whose bits below those kept are 0 is rounded like a number and stays one; another
    may become infinite, or be carried over into -0.0.
    """
    if dtype.format is None:
        return _FRACTION
    widens = machine(dtype) is DType.float32 and dtype is not DType.float32
    return _FRACTION - dtype.mantissa_bits if widens else 0


def spare_after(source: DType, target: DType, spare: int) -> int:
    """The same of a value that was cast, having had `spare` before."""
    if has_range_of_float32(target) and target.bits < 32:
        return spare_bits(target)
    return spare if target.format and source.format else _FRACTION


def _load(x: Any, dtype: DType) -> Any:
    wide = machine(dtype)
    if x.dtype == wide.storage:
        return x
    if dtype in _NUMPY_ROUNDS:
        return x.astype(wide.storage)
    return convert(x, dtype, wide)


def _from_float16(x: NDArray[Any]) -> NDArray[Any]:
    return halves().take(x.view(_U16), mode="wrap")


@cache
def halves() -> NDArray[np.float32]:
    """The value of every float16, by its bits."""
    return np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)


def _cast(x: Any, source: DType, target: DType, tf32: str, bits: bool, quiet: bool) -> Any:
    wide, target_wide = machine(source), machine(target)
    if wide is target_wide and source.exact_in(target):
        return x
    if target is target_wide or target_wide.is_integer:
        if _by_numpy(wide, target_wide) and (target is target_wide or not target.narrow):
            return x.astype(target_wide.storage)
    elif source.exact_in(DType.float32) and rounds_in_register(target):
        x = x if wide is target_wide else x.astype(_F32)
        if source.exact_in(target):
            return x
        if not bits and target in _NUMPY_ROUNDS:
            return x.astype(target.storage).astype(_F32)
        x = x if quiet else x.tracer.emit(_default_nan, [x], _F32)
        return rounded_in_register(target, x, tf32)
    return convert(convert(x, wide, target, tf32), target, target_wide)


def _by_numpy(source: DType, target: DType) -> bool:
    """Whether NumPy's own cast is what `convert` computes."""
    if source.is_complex or target.is_complex:
        return source.is_complex and target.is_complex
    return not (source.is_float and target.is_integer)


def _default_nan(x: Any, out: Any) -> None:
    """Float32 with every NaN the default one, whose last bits are 0."""
    if out is not x:
        out[...] = x
    greatest = np.maximum.reduce(x, axis=None, initial=-np.inf)
    if greatest != greatest:
        out[np.isnan(x)] = np.nan


def rounds_in_register(dtype: DType) -> bool:
    """Whether `rounded_in_register` rounds float32 to the values of a narrower float."""
    return dtype is DType.float16 or has_range_of_float32(dtype)


def rounded_in_register(dtype: DType, x: Any, tf32: str) -> Any:
    """Float32 rounded to a narrower float, in float32; no NaN may become infinite."""
    if dtype is DType.float16:
        return _float16(x)
    ties = tf32 if dtype.emulated else "even"
    return round_fraction(x, dtype.mantissa_bits, ties, quiet=True)


def _float16(x: Any) -> Any:
    """Adding 1.5 * 2**13 of its binade, and taking it away, leaves x at the 11 bits of a half.

    Below 2**-14 the binade is that of subnormals. What is 2**16 then overflows as 2**128 would,
    and the sign of what became 0 is put back.
    """
    u = x.view(_U32)
    binade = np.maximum((u & 0x7F800000).view(_F32), np.float32(2.0**-14))
    shift = np.minimum(binade, np.float32(2.0**16)) * np.float32(1.5 * 2.0**13)
    half = ((x + shift) - shift) * np.float32(2.0**112) * np.float32(2.0**-112)
    return (half.view(_U32) | (u & 0x80000000)).view(_F32)


def _store_bfloat16(x: Any) -> Any:
    return (x.view(_U32) >> 16).astype(_U16).view(DType.bfloat16.storage)


def _store_float16(x: Any) -> Any:
    """Divided by 2**112 a float32 has the exponent of a half, subnormals too."""
    magnitude = ((x * np.float32(2.0**-112)).view(_U32) >> 13) & 0x7FFF
    sign = (x.view(_U32) >> 16) & 0x8000
    return (magnitude | sign).astype(_U16).view(np.float16)


_NUMPY_ROUNDS = (DType.float16, DType.bfloat16)
"""The formats to which NumPy, or ml_dtypes, rounds a float32 as IEEE 754 says."""

STORES: dict[DType, Callable[[Any], Any]] = {
    DType.bfloat16: _store_bfloat16,
    DType.float16: _store_float16,
}
