"""Casts inside regions, which hold narrow floats in float32 and round after every op.

No machine computes in some dtypes. A value of such a dtype lies in a register of `machine(dtype)`,
which represents it exactly: bfloat16, float16 and tensor_float32 values lie in float32, int4 values
in int8. A widening cast is therefore no instruction at all, and a narrowing cast is a rounding
within float32.

Rounding by bit arithmetic must keep NaN a NaN. The module tracks the spare bits of a register: the
trailing bits that are 0 in every NaN there (see `spare_bits`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir.conversions import convert, has_range_of_float32, round_fraction
from graphir.public import DType
from graphir.runtime.program.codegen.tracing import KernelTrace, Whole, trace
from graphir.semantics.evaluation import machine

_FRACTION = DType.float32.mantissa_bits
_F32, _U32, _U16 = np.dtype(np.float32), np.dtype(np.uint32), np.dtype(np.uint16)


def register(dtype: DType) -> np.dtype[Any]:
    """Return the dtype of the register that holds a value of `dtype`."""
    return machine(dtype).storage


@cache
def cast(source: DType, target: DType, tf32: str, bits: bool, spare: int = 0) -> KernelTrace:
    """Return the trace of a cast from register to register.

    `spare` is the least number of spare bits of a NaN in the operand. `tf32` says how to round ties
    to tensor_float32 ("even" or "away"). With `bits` the cast is bit arithmetic if it can be.
    """
    quiet = spare >= _FRACTION - target.mantissa_bits
    kernel = partial(_cast, source=source, target=target, tf32=tf32, bits=bits, quiet=quiet)
    return trace(kernel, [register(source)], register(target), bits)


@cache
def load(dtype: DType, bits: bool) -> KernelTrace:
    """Return the trace of the exact conversion from storage to register."""
    kernel = _from_float16 if bits and dtype is DType.float16 else partial(_load, dtype=dtype)
    return trace(kernel, [dtype.storage], register(dtype), bits)


def entering(dtype: DType, tf32: str) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Return the function that rounds an input of a dtype stored as float32, on load.

    The function takes the input as a float32 array or as an array of its bits. It returns the array
    itself if no value needs rounding.
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
    """Return the trace of the exact conversion from register to storage."""
    kernel = STORES.get(dtype, _by_cast(dtype)) if bits else _by_cast(dtype)
    return trace(kernel, [register(dtype)], dtype.storage, bits)


def _by_cast(dtype: DType) -> Callable[[Any], Any]:
    """Return the conversion by casts from register to storage, for values that are exact there."""
    if register(dtype) == dtype.storage:
        return lambda x: x
    if dtype in _NUMPY_ROUNDS:
        return lambda x: x.astype(dtype.storage)
    return partial(convert, source=machine(dtype), target=dtype)


def spare_bits(dtype: DType) -> int:
    """Return the number of trailing bits that are 0 in every NaN loaded from `dtype` as float32.

    If all bits that a rounding drops are 0 in a NaN, the rounding treats the NaN like a number and
    keeps it a NaN. Otherwise the carry may turn the NaN into infinity or into -0.0. A dtype without
    NaN has the full mantissa of spare bits.
    """
    if dtype.format is None:
        return _FRACTION
    widens = machine(dtype) is DType.float32 and dtype is not DType.float32
    return _FRACTION - dtype.mantissa_bits if widens else 0


def spare_after(source: DType, target: DType, spare: int) -> int:
    """Return the spare bits of a value after a cast; `spare` are those before the cast."""
    if has_range_of_float32(target) and target.bits < 32:
        return spare_bits(target)
    return spare if target.format and source.format else _FRACTION


def _load(x: NDArray[Any], dtype: DType) -> Any:
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
    """Return the float32 value of each of the 65,536 float16 bit patterns, indexed by pattern."""
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


def cast_to_integer(function: Callable[..., Any]) -> DType | None:
    """Return the dtype of a function that casts to integers, which NumPy's cast cannot; or None.

    Values that the dtype holds become their whole part.
    """
    kernel = function.kernel if isinstance(function, Whole) else None
    if not isinstance(kernel, partial) or kernel.func is not _cast:
        return None
    target: DType = kernel.keywords["target"]
    return target if target.is_integer and not target.narrow else None


def _by_numpy(source: DType, target: DType) -> bool:
    """Whether NumPy's own cast has the values of `convert`."""
    if source.is_complex or target.is_complex:
        return source.is_complex and target.is_complex
    return not (source.is_float and target.is_integer)


def _default_nan(x: NDArray[Any], out: NDArray[Any]) -> None:
    """Store float32 values with each NaN replaced by the default NaN, whose trailing bits are 0."""
    if out is not x:
        out[...] = x
    greatest = np.maximum.reduce(x, axis=None, initial=-np.inf)
    if greatest != greatest:
        out[np.isnan(x)] = np.nan


def rounds_in_register(dtype: DType) -> bool:
    """Whether `rounded_in_register` can round float32 to the values of `dtype`."""
    return dtype is DType.float16 or has_range_of_float32(dtype)


def rounded_in_register(dtype: DType, x: NDArray[Any], tf32: str) -> Any:
    """Return float32 values rounded to the values of a narrower float, as float32.

    Each NaN must have enough spare bits that the rounding keeps it a NaN.
    """
    if dtype is DType.float16:
        return _float16(x)
    ties = tf32 if dtype.emulated else "even"
    return round_fraction(x, dtype.mantissa_bits, ties, quiet=True)


def _float16(x: NDArray[Any]) -> Any:
    """Return float32 values rounded to the values of float16, as float32.

    To add 1.5 * 2**13 times the binade of x, and to subtract it again, rounds x to the 11
    significant bits of a float16. Below 2**-14 the binade is that of float16's subnormals. The
    factors 2**112 and 2**-112 then make 2**16 overflow as 2**128 does in float32. The last line
    restores the sign of a value that became 0.
    """
    u = x.view(_U32)
    binade = np.maximum((u & 0x7F800000).view(_F32), np.float32(2.0**-14))
    shift = np.minimum(binade, np.float32(2.0**16)) * np.float32(1.5 * 2.0**13)
    half = ((x + shift) - shift) * np.float32(2.0**112) * np.float32(2.0**-112)
    return (half.view(_U32) | (u & 0x80000000)).view(_F32)


def _store_bfloat16(x: NDArray[Any]) -> Any:
    return (x.view(_U32) >> 16).astype(_U16).view(DType.bfloat16.storage)


def _store_float16(x: NDArray[Any]) -> Any:
    """Return float32 values that are exact in float16 as float16.

    A float32 divided by 2**112 has the exponent field of the float16, for subnormals too.
    """
    magnitude = ((x * np.float32(2.0**-112)).view(_U32) >> 13) & 0x7FFF
    sign = (x.view(_U32) >> 16) & 0x8000
    return (magnitude | sign).astype(_U16).view(np.float16)


_NUMPY_ROUNDS = (DType.float16, DType.bfloat16)
"""The formats to which NumPy or ml_dtypes rounds a float32 as IEEE 754 prescribes."""

STORES: dict[DType, Callable[[Any], Any]] = {
    DType.bfloat16: _store_bfloat16,
    DType.float16: _store_float16,
}
