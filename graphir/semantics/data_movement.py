"""Kernels that move values or make them, for arrays of any storage dtype, ml_dtypes ones too.

They are called as kernels.py says. Nothing is computed here, so bits stay as they are; results of
movement may be views of the operands, perhaps read-only.
"""

from __future__ import annotations

from operator import index
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.conversions import convert
from graphir.dtypes import DType
from graphir.errors import ExecutionError

Array: TypeAlias = NDArray[Any]
Sizes: TypeAlias = tuple[int, ...]


def alike(name: str, *arrays: Array) -> None:
    """TypeError unless arrays share a dtype: the casting="no" of what is not a ufunc."""
    if any(array.dtype != arrays[0].dtype for array in arrays):
        dtypes = ", ".join(str(array.dtype) for array in arrays)
        raise TypeError(f"{name} of {dtypes}: a cast to one dtype is missing")


# -- axes and shapes


def reshape(x: Array, shape: Sizes) -> Array:
    """The same elements in row-major order."""
    return x.reshape(shape)


def broadcast_to(x: Array, shape: Sizes) -> Array:
    """A read-only view of that shape."""
    return np.broadcast_to(x, shape)


def rebind(x: Array, shape: Sizes) -> Array:
    """The array itself; ExecutionError unless it has that shape."""
    if x.shape != shape:
        raise ExecutionError(
            f"rebind: the array has shape {list(x.shape)}, not {list(shape)} as was asserted"
        )
    return x


def transpose(x: Array, axis1: int, axis2: int) -> Array:
    """Two axes exchanged."""
    return np.swapaxes(x, axis1, axis2)


def permute(x: Array, dims: Sizes) -> Array:
    """Axis i of the result is axis dims[i] of x."""
    return x.transpose(dims)


def squeeze(x: Array, axis: int) -> Array:
    """Without an axis of size 1."""
    return np.squeeze(x, axis)


def unsqueeze(x: Array, axis: int) -> Array:
    """With a new axis of size 1 at that place."""
    return np.expand_dims(x, axis)


def shape_of(x: Array) -> Array:
    """The sizes of the axes, int64."""
    return np.array(x.shape, dtype=np.int64)


# -- parts and repetitions


def sliced(x: Array, start: Sizes, stop: Sizes, step: Sizes) -> Array:
    """x[start:stop:step] on every axis; ExecutionError unless 0 <= start <= stop <= size."""
    for axis, (low, high, size) in enumerate(zip(start, stop, x.shape, strict=True)):
        if not 0 <= low <= high <= size:
            raise ExecutionError(
                f"slice: {low}:{high} is out of range for axis {axis} of size {size}"
            )
    return x[(*map(slice, start, stop, step), ...)]


def flip(x: Array, axis: Sizes) -> Array:
    """Backwards along axes."""
    return np.flip(x, axis) if x.ndim else x[...]  # of no axes NumPy gives a scalar


def roll(x: Array, shift: int, axis: int) -> Array:
    """Element i moved to place i + shift, around the end."""
    return np.roll(x, shift, axis)


def pad(x: Array, padding: tuple[tuple[int, int], ...], value: Array) -> Array:
    """Surrounded by (before, after) elements of `value` on each axis."""
    alike("pad", x, value)
    sizes = [before + n + after for (before, after), n in zip(padding, x.shape, strict=True)]
    result = np.full(sizes, value, value.dtype)
    inner = (slice(before, before + n) for (before, _), n in zip(padding, x.shape, strict=True))
    result[tuple(inner)] = x
    return result


def tile(x: Array, repeats: Sizes) -> Array:
    """The whole, so many times on each axis."""
    return np.tile(x, repeats)


def repeat(x: Array, repeats: int, axis: int) -> Array:
    """Each element so many times along an axis."""
    return np.repeat(x, repeats, axis)


def concat(*arrays: Array, axis: int) -> Array:
    """One after another along an axis."""
    return np.concatenate(arrays, axis, dtype=arrays[0].dtype, casting="no")


def stack(*arrays: Array, axis: int) -> Array:
    """Side by side along a new axis."""
    return np.stack(arrays, axis, dtype=arrays[0].dtype, casting="no")


# -- indices: of any integer dtype, negative ones counting from the end


def gather(x: Array, indices: Array, axis: int) -> Array:
    """The slices of x that indices name, their shape in place of the axis."""
    return np.asarray(x.take(_places("gather", indices, x, axis), axis))


def take_along(x: Array, indices: Array, axis: int) -> Array:
    """The elements of x that indices name along an axis, one for each index."""
    return np.take_along_axis(x, _places("take_along", indices, x, axis), axis)


def scatter(x: Array, updates: Array, indices: Array, axis: int) -> Array:
    """A copy of x with updates at indices along an axis; of those to one place the last wins."""
    alike("scatter", x, updates)
    result = x.copy()
    np.put_along_axis(result, _places("scatter", indices, x, axis), updates, axis)
    return result


def _places(name: str, indices: Array, x: Array, axis: int) -> NDArray[np.intp]:
    # The small integers of ml_dtypes have no min and max of their own; uint64 does not fit int64.
    wide = indices if indices.dtype == np.uint64 else indices.astype(np.int64, copy=False)
    size = x.shape[axis]
    if wide.size:
        low, high = int(wide.min()), int(wide.max())
        if low < -size or high >= size:
            raise ExecutionError(
                f"{name}: index {high if high >= size else low} is out of range for axis {axis}, "
                f"whose size is {size}"
            )
    return wide.astype(np.intp, copy=False)


# -- creation


def constant(value: Array) -> Array:
    """The values themselves, read-only."""
    return value


def full(value: Array, shape: Sizes) -> Array:
    """One value, given as a 0-d array, everywhere."""
    return np.full(shape, value, value.dtype)


def eye(dtype: DType, rows: int, columns: int, offset: int) -> Array:
    """Ones where column - row is `offset`, zeros elsewhere, both as `dtype` has them."""
    return convert(np.eye(rows, columns, offset, dtype=np.bool), DType.bool, dtype)


def ranged(dtype: DType, start: Any, step: Any, size: int) -> Array:
    """The vector of start + i * step: exact integers, else float64 or complex128, to be rounded.

    ExecutionError for an integer outside of `dtype`, and for a start or step of another kind.
    """
    return part_of_range(dtype, start, step, 0, size)


def part_of_range(dtype: DType, start: Any, step: Any, first: int, size: int) -> Array:
    """So many elements of such a vector, from the one of i = `first` on."""
    try:
        if dtype.is_complex:
            return _complexes(complex(start), complex(step), size, first)
        if dtype.is_float:
            return _line(float(start), float(step), size, first)
        return _integers(dtype, index(start) + index(step) * first, index(step), size)
    except (TypeError, OverflowError):
        raise ExecutionError(
            f"range: {start!r} and {step!r} are not both numbers that {dtype} is for",
            fix="give it another dtype",
        ) from None


def _line(start: float, step: float, size: int, first: int = 0) -> NDArray[np.float64]:
    return start + np.arange(first, first + size, dtype=np.float64) * step


def _complexes(start: complex, step: complex, size: int, first: int = 0) -> Array:
    values = np.empty(size, np.complex128)
    values.real = _line(start.real, step.real, size, first)
    values.imag = _line(start.imag, step.imag, size, first)
    return values


def _integers(dtype: DType, start: int, step: int, size: int) -> Array:
    for value in (start, start + step * (size - 1)) if size else ():
        if not dtype.min <= value <= dtype.max:
            raise ExecutionError(
                f"range: {value} does not fit {dtype}", fix="give it a wider dtype"
            )
    # Both ends fit, so what is between them does: modulo 2**64 it comes out exact.
    values = np.arange(size, dtype=np.uint64) * np.uint64(step % 2**64)
    values += np.uint64(start % 2**64)
    return values.view(np.int64) if dtype.family == "int" else values
