"""Kernels of movement and creation ops, for arrays of any storage dtype, ml_dtypes included.

The calling convention is that of kernels.py. Movement kernels compute nothing and keep every bit.
Their results may be views of the operands, perhaps read-only.
"""

from __future__ import annotations

from math import prod
from operator import index, mul
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from graphir.conversions import convert
from graphir.dtypes import DType
from graphir.errors import ExecutionError
from graphir.hints import Array

Sizes: TypeAlias = tuple[int, ...]


def alike(name: str, *arrays: Array) -> None:
    """Raise TypeError unless the arrays share a dtype.

    The check is the counterpart of casting="no" for functions that are not ufuncs.
    """
    if any(array.dtype != arrays[0].dtype for array in arrays):
        dtypes = ", ".join(str(array.dtype) for array in arrays)
        raise TypeError(f"{name} of {dtypes}: a cast to one dtype is missing")


# -- axes and shapes


def reshape(x: Array, shape: Sizes) -> Array:
    """Return the elements in row-major order, in another shape."""
    return x.reshape(shape)


def broadcast_to(x: Array, shape: Sizes) -> Array:
    """Return a read-only view of x, broadcast to a shape."""
    return np.broadcast_to(x, shape)


def rebind(x: Array, shape: Sizes) -> Array:
    """Return x unchanged; ExecutionError unless it has the asserted shape."""
    if x.shape != shape:
        raise ExecutionError(
            f"the asserted shape is {list(shape)}",
            op="rebind",
            got=f"an array of shape {list(x.shape)}",
        )
    return x


def permute(x: Array, dims: Sizes) -> Array:
    """Reorder the axes: axis i of the result is axis dims[i] of x."""
    return x.transpose(dims)


def shape_of(x: Array) -> Array:
    """Return the sizes of the axes, int64[x.ndim]."""
    return np.array(x.shape, dtype=np.int64)


# -- parts and repetitions


def sliced(x: Array, start: Sizes, stop: Sizes, step: Sizes) -> Array:
    """Slice x[start:stop:step] on every axis; ExecutionError unless 0 <= start <= stop <= size."""
    for axis, (low, high, size) in enumerate(zip(start, stop, x.shape, strict=True)):
        if not 0 <= low <= high <= size:
            raise ExecutionError(
                f"the range {low}:{high} exceeds axis {axis} of size {size}", op="slice"
            )
    return x[(*map(slice, start, stop, step), ...)]


def affine_view(x: Array, shape: Sizes, origin: Sizes, steps: tuple[Sizes, ...]) -> Array:
    """Return a read-only view of x: element i of the result is x[origin + i @ steps].

    Raises ExecutionError unless all positions lie in x.
    """
    if 0 in shape:
        return np.empty(shape, x.dtype)
    for axis, (first, size) in enumerate(zip(origin, x.shape, strict=True)):
        reaches = [step[axis] * (count - 1) for step, count in zip(steps, shape, strict=True)]
        low = first + sum(reach for reach in reaches if reach < 0)
        high = first + sum(reach for reach in reaches if reach > 0)
        if low < 0 or high >= size:
            raise ExecutionError(
                f"the positions {low} to {high} exceed axis {axis} of size {size}",
                op="affine_view",
            )
    strides = [sum(map(mul, step, x.strides)) for step in steps]
    if x.dtype.isbuiltin != 1:  # whose description as_strided does not understand
        bits = x.view(f"u{x.itemsize}")
        return affine_view(bits, shape, origin, steps).view(x.dtype)
    first_element = x[(*[slice(at, at + 1) for at in origin], ...)]
    return as_strided(first_element, shape, strides, writeable=False)


def slice_update(x: Array, updates: Array, start: Sizes, stop: Sizes, step: Sizes) -> Array:
    """Return a copy of x with `updates`, broadcast, written to x[start:stop:step] on every axis."""
    return write_slice(np.array(x, order="C"), updates, start, stop, step)


def write_slice(x: Array, updates: Array, start: Sizes, stop: Sizes, step: Sizes) -> Array:
    """Write `updates`, broadcast, to x[start:stop:step] on every axis, and return x."""
    alike("slice_update", x, updates)
    sliced(x, start, stop, step)[...] = updates
    return x


def flip(x: Array, axis: Sizes) -> Array:
    """Reverse the elements along axes."""
    return np.flip(x, axis) if x.ndim else x[...]  # np.flip of a 0-d array returns a scalar


def roll(x: Array, shift: int, axis: int) -> Array:
    """Move element i to place i + shift along an axis; elements wrap around at the ends."""
    return np.roll(np.ascontiguousarray(x), shift, axis)


def pad(x: Array, padding: tuple[tuple[int, int], ...], value: Array) -> Array:
    """Pad x on each axis with (before, after) elements of `value`, a 0-d array."""
    alike("pad", x, value)
    sizes = [before + n + after for (before, after), n in zip(padding, x.shape, strict=True)]
    result = np.full(sizes, value, value.dtype)
    inner = (slice(before, before + n) for (before, _), n in zip(padding, x.shape, strict=True))
    result[tuple(inner)] = x
    return result


def tile(x: Array, repeats: Sizes) -> Array:
    """Repeat the whole array `repeats[i]` times along axis i."""
    return np.tile(x, repeats)


def concat(*arrays: Array, axis: int) -> Array:
    """Join arrays end to end along an existing axis."""
    shape = list(arrays[0].shape)
    shape[axis] = sum([x.shape[axis] for x in arrays])
    out = np.empty(shape, arrays[0].dtype)  # NumPy's own result may be in column-major order
    return np.concatenate(arrays, axis, out, casting="no")


def stack(*arrays: Array, axis: int) -> Array:
    """Join arrays of one shape along a new axis."""
    shape = list(arrays[0].shape)
    shape.insert(axis if axis >= 0 else axis + len(shape) + 1, len(arrays))
    out = np.empty(shape, arrays[0].dtype)
    return np.stack(arrays, axis, out, casting="no")


# -- indexing: indices may have any integer dtype, and negative indices count from the end


def gather(x: Array, indices: Array, axis: int) -> Array:
    """Return x at `indices` along an axis; the shape of `indices` replaces the axis."""
    places = _places(indices)
    try:
        return np.asarray(x.take(places, axis))
    except IndexError:
        raise _index_error("gather", indices, x, axis) from None


def take_along(x: Array, indices: Array, axis: int) -> Array:
    """Return one element of x for each index along an axis, as np.take_along_axis."""
    try:
        return np.take_along_axis(x, _places(indices), axis)
    except IndexError:
        raise _index_error("take_along", indices, x, axis) from None


def scatter(x: Array, updates: Array, indices: Array, axis: int) -> Array:
    """Return a copy of x with `updates` written at `indices` along an axis.

    The last of several updates to one place wins.
    """
    alike("scatter", x, updates)
    result = x.copy()
    try:
        np.put_along_axis(result, _places(indices), updates, axis)
    except IndexError:
        raise _index_error("scatter", indices, x, axis) from None
    return result


def index_update(x: Array, updates: Array, indices: Array, axis: int | None) -> Array:
    """Return a copy of x with `updates`, broadcast, written at `indices` along an axis.

    With axis None the indices count the elements in row-major order. The last of several updates
    to one place wins.
    """
    return write_indices(np.array(x, order="C"), updates, indices, axis)


def write_indices(x: Array, updates: Array, indices: Array, axis: int | None) -> Array:
    """Write to an array as `index_update` does to a copy, and return the array."""
    alike("index_update", x, updates)
    whole = x.reshape(-1) if axis is None else x  # a copy of an array that is not row-major
    try:
        whole[(*[slice(None)] * (axis or 0), _places(indices))] = updates
    except IndexError:
        raise _index_error("index_update", indices, whole, axis or 0) from None
    return x if whole is x or np.may_share_memory(x, whole) else whole.reshape(x.shape)


def index_add(x: Array, updates: Array, indices: Array, axis: int | None) -> Array:
    """Return a copy of x with `updates`, broadcast, added at `indices` along an axis.

    With axis None the indices count the elements in row-major order. The updates of one place are
    added in the row-major order of the indices, and each sum is rounded.
    """
    return add_at_indices(np.array(x, order="C"), updates, indices, axis)


def add_at_indices(x: Array, updates: Array, indices: Array, axis: int | None) -> Array:
    """Add to a row-major array as `index_add` does to a copy, and return the array."""
    alike("index_add", x, updates)
    before, after = ((), ()) if axis is None else (x.shape[:axis], x.shape[axis + 1 :])
    whole = x.reshape(-1) if axis is None else x
    outer, size, inner = prod(before), whole.shape[axis or 0], prod(after)
    places = _places(indices).reshape(-1)
    values = np.broadcast_to(updates, (*before, *indices.shape, *after))
    values = values.reshape(outer, places.size, inner)
    try:
        if outer * inner == 1:
            np.add.at(x.reshape(-1), places, values.reshape(-1))
            return x
        rows = np.arange(size)[places]
    except IndexError:
        raise _index_error("index_add", indices, whole, axis or 0) from None
    lines = x.reshape(outer, size, inner)
    if outer * inner < _LONG_ROW:
        flat = np.arange(x.size).reshape(lines.shape)[:, rows]
        np.add.at(x.reshape(-1), flat.reshape(-1), values.reshape(-1))
        return x
    for number, row in enumerate(rows.tolist()):
        lines[:, row] += values[:, number]
    return x


_LONG_ROW = 512
"""The elements of a row from which one call of np.add a row is faster than np.add.at of all."""


def _places(indices: Array) -> NDArray[np.intp]:
    """Return indices as NumPy takes them; a uint64 beyond intp is out of range for any array."""
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(np.iinfo(np.intp).max))
    return indices.astype(np.intp, copy=False)


def _index_error(name: str, indices: Array, x: Array, axis: int) -> ExecutionError:
    """Return the error for the first index that is out of range."""
    size = x.shape[axis]
    index = next(
        index_value
        for index_value in map(int, indices.reshape(-1))
        if not -size <= index_value < size
    )
    where = f"axis {axis}, whose size is {size}" if x.ndim > 1 else f"an array of {size} elements"
    return ExecutionError(
        f"index {index} is out of range for {where}",
        op=name,
        fix=f"use indices from {-size} to {size - 1}" if size else "",
    )


# -- creation


def constant(value: Array) -> Array:
    """Return the array of the constant, read-only."""
    return value


def full(value: Array, shape: Sizes) -> Array:
    """Return an array of a shape filled with one value, which is a 0-d array."""
    return np.full(shape, value, value.dtype)


def eye(dtype: DType, rows: int, columns: int, offset: int) -> Array:
    """Return a matrix of `dtype` with ones where column - row is `offset`, and zeros elsewhere."""
    return convert(np.eye(rows, columns, offset, dtype=np.bool), DType.bool, dtype)


def ranged(dtype: DType, start: Any, step: Any, size: int) -> Array:
    """Return the vector start + i * step for 0 <= i < size.

    The result is exact for integers. For floats and complex numbers it is float64 or complex128,
    which the caller rounds to `dtype`. Raises ExecutionError for an integer outside the range of
    `dtype`, and for a start or step of another kind than `dtype`.
    """
    return part_of_range(dtype, start, step, 0, size)


def part_of_range(dtype: DType, start: Any, step: Any, first: int, size: int) -> Array:
    """Return `size` elements of the vector of `ranged`, from i = `first` on."""
    try:
        if dtype.is_complex:
            return _complexes(complex(start), complex(step), size, first)
        if dtype.is_float:
            return _line(float(start), float(step), size, first)
        return _integers(dtype, index(start) + index(step) * first, index(step), size)
    except (TypeError, OverflowError):
        raise ExecutionError(
            f"{start!r} and {step!r} are not both numbers that {dtype} is for",
            op="range",
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
                f"{value} does not fit {dtype}", op="range", fix="give it a wider dtype"
            )
    # Both ends fit the dtype, so every element between them fits too. Arithmetic modulo 2**64 is
    # then exact.
    values = np.arange(size, dtype=np.uint64) * np.uint64(step % 2**64)
    values += np.uint64(start % 2**64)
    return values.view(np.int64) if dtype.family == "int" else values
