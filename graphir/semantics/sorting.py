"""Kernels of sort and argsort, by NumPy's vectorized sorts, which are not stable.

Equal elements of a sort differ only as zeros of both signs do: they are put back in the order of
the operand. A stable argsort sorts integers that have the element in their high bits and its place
in the low ones, which makes all of them different. 64-bit elements leave no room for places: equal
ones are ordered by place in a second sort, after an unstable argsort.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from graphir.hints import Array

_SHORT = 16
"""The most elements of a row of bytes that insertion sort sorts faster than radix sort: kernels,
sorts."""

_FEW = 256
"""The most floats that a stable sort orders before the repair of zeros would be done: kernels,
sorts."""

_LONG = 500
"""The least elements of a row of 8 or 16 bits whose order NumPy's radix sort finds faster: kernels,
sorts."""


def sort(x: Array, axis: int, descending: bool, stable: bool = True) -> Array:
    """Sort along an axis, NaN last. `descending` reverses the result, so that NaN comes first.

    Zeros of both signs, which compare equal, keep their order; an unstable sort leaves them as
    NumPy's quicksort does, by the machine's instructions.
    """
    result = np.empty(x.shape, x.dtype)
    sort_into(result, x, axis, stable)
    return np.flip(result, axis).copy() if descending else result


def sort_into(result: Array, x: Array, axis: int, stable: bool = True) -> None:
    """Sort along an axis as `sort` does, ascending, and write the elements into an array."""
    stable = stable or x.dtype.kind not in "fc"  # equal integers are the same
    if x.dtype.char in "hH" and _widens_16_bits():
        result[...] = np.sort(x.astype(np.int32), axis=axis)
        return
    is_long = x.itemsize == 1 and x.shape[axis] > _SHORT
    is_few = x.dtype.kind == "c" or (x.dtype.kind == "f" and x.size <= _FEW)
    result[...] = x
    result.sort(axis=axis, kind="stable" if stable and (is_long or is_few) else None)
    if stable and x.dtype.kind == "f" and not is_few and _has_negative_zero(x):
        rows, sorted_rows = x.swapaxes(axis, -1), result.swapaxes(axis, -1)
        sorted_rows[sorted_rows == 0] = rows[rows == 0]


@cache
def _widens_16_bits() -> bool:
    """Whether NumPy's vectorized sorts take 32 bits, but not 16, on this processor.

    Integers of 16 bits then take 0.1 to 0.4 times as long if they are sorted as integers of 32
    bits: kernels, sorts.
    """
    module: Any = import_module("numpy._core._multiarray_umath")
    features: dict[str, bool] = getattr(module, "__cpu_features__", {})
    return features.get("AVX2", False) and not features.get("AVX512_ICL", False)


def _has_negative_zero(x: Array) -> bool:
    bits = x.view(f"i{x.itemsize}")
    return bool(x.size) and bits.min() == np.iinfo(bits.dtype).min


def argsort(x: Array, axis: int, descending: bool, stable: bool = True) -> Array:
    """Return the indices (int64) that sort along an axis; descending puts NaN first.

    An unstable sort leaves equal values as NumPy's quicksort does, by the machine's instructions.
    """
    if descending:
        return x.shape[axis] - 1 - np.flip(argsort(np.flip(x, axis), axis, False), axis)
    by_radix = x.itemsize <= 2 and x.shape[axis] >= _LONG
    if not stable or by_radix or x.dtype.kind not in "iuf" or x.shape[axis] < 2:
        kind = "stable" if stable else None
        return np.argsort(x, axis=axis, kind=kind).astype(np.int64, copy=False)
    order = _order(_keys(np.ascontiguousarray(x.swapaxes(axis, -1))))
    return np.ascontiguousarray(order.swapaxes(axis, -1))


def _keys(x: Array) -> Array:
    """Return unsigned integers in the order of the elements, equal where these compare equal.

    All NaN are equal, and come last.
    """
    dtype = f"u{x.itemsize}"
    if x.dtype.kind == "u":
        return x
    sign = np.array(1 << 8 * x.itemsize - 1, dtype)
    if x.dtype.kind == "i":
        return x.view(dtype) ^ sign
    positive_zeros = x + x.dtype.type(0)  # 0.0 of -0.0
    np.copyto(positive_zeros, np.nan, where=np.isnan(x))
    bits = positive_zeros.view(f"i{x.itemsize}")
    flips = bits >> bits.dtype.type(8 * x.itemsize - 1)  # all bits of the negative ones
    return positive_zeros.view(dtype) ^ (flips.view(dtype) | sign)


def _order(keys: Array) -> Array:
    """Return the stable order (int64) of the last axis of unsigned integers, at least two."""
    width, places = 8 * keys.itemsize, (keys.shape[-1] - 1).bit_length()
    if width + places > 64 and keys.size:
        least = keys.min()
        width = int(keys.max() - least).bit_length()
        if width + places <= 64:
            keys = keys - least
    if width + places <= 64:
        at = np.arange(keys.shape[-1], dtype=np.uint32 if width + places <= 32 else np.uint64)
        return _unpack(keys.astype(at.dtype) << at.dtype.type(places) | at, places)
    order = np.argsort(keys, axis=-1)
    ordered = np.take_along_axis(keys, order, -1)
    is_new = ordered[..., 1:] != ordered[..., :-1]
    if is_new.all():
        return order.astype(np.int64, copy=False)
    runs = np.zeros(keys.shape, np.uint64)
    np.cumsum(is_new, axis=-1, out=runs[..., 1:])
    return _unpack(runs << np.uint64(places) | order.astype(np.uint64), places)


def _unpack(packed: Array, places: int) -> Array:
    """Sort integers along the last axis, and return (int64) the `places` low bits of each."""
    packed.sort(axis=-1)
    packed &= packed.dtype.type((1 << places) - 1)
    return packed.view(np.int64) if packed.itemsize == 8 else packed.astype(np.int64)
