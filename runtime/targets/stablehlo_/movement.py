"""Movement ops in StableHLO: slices, padding, concatenation, gather and scatter."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from graphir.public import DType, TensorType
from graphir.runtime.targets.stablehlo_.values import (
    HloValue,
    Sizes,
    cast_values,
    fields,
    ints,
    where,
    widened,
)


def permute(x: HloValue, dims: Sequence[int]) -> HloValue:
    """Return x with permuted axes: axis i of the result is axis dims[i] of x."""
    type_ = TensorType(x.dtype, tuple(x.shape[i] for i in dims))
    return x.body.emit("transpose", [x], type_, permutation=ints(dims))


def axis_moved(x: HloValue, source: int, target: int) -> HloValue:
    """Return x with one axis moved; the other axes keep their order."""
    order = [i for i in range(x.rank) if i != source]
    order.insert(target, source)
    return permute(x, order)


def sliced(x: HloValue, start: Sizes, stop: Sizes, step: Sizes) -> HloValue:
    """Return x[start:stop:step] on every axis."""
    for low, high, size in zip(start, stop, x.shape, strict=True):
        if not 0 <= low <= high <= size:
            raise NotImplementedError(f"has no elements {low}:{high} of an axis of {size}")
    bounds = zip(start, stop, step, strict=True)
    shape = tuple(len(range(*each)) for each in bounds)
    parts = {"start_indices": ints(start), "limit_indices": ints(stop), "strides": ints(step)}
    return x.body.emit("slice", [x], TensorType(x.dtype, shape), **parts)


def flip(x: HloValue, axis: Sizes) -> HloValue:
    """Return x reversed along axes."""
    return x.body.emit("reverse", [x], x.type, dimensions=ints(axis))


def pad(x: HloValue, padding: Sequence[tuple[int, int]], value: Any) -> HloValue:
    """Return x with (before, after) elements of a value added on each axis."""
    edges = zip(padding, x.shape, strict=True)
    shape = tuple(before + size + after for (before, after), size in edges)
    low, high = (ints(edge[i] for edge in padding) for i in (0, 1))
    inside = {"edge_padding_low": low, "edge_padding_high": high}
    operands = [x, x.body.constant(value, x.dtype)]
    none = ints([0] * x.rank)
    return x.body.emit("pad", operands, TensorType(x.dtype, shape), **inside, interior_padding=none)


def concat(*arrays: HloValue, axis: int) -> HloValue:
    """Return the concatenation along an axis; dtypes below a byte widen, as XLA aborts on them."""
    dtype = arrays[0].dtype
    if dtype.bits < 8 and dtype is not DType.bool:
        wide = [widened(array) for array in arrays]
        return cast_values(concat(*wide, axis=axis), dtype)
    shape = list(arrays[0].shape)
    shape[axis] = sum(array.shape[axis] for array in arrays)
    type_ = TensorType(arrays[0].dtype, tuple(shape))
    return arrays[0].body.emit("concatenate", arrays, type_, dimension=f"{axis} : i64")


def rebind(x: HloValue, shape: Sizes) -> HloValue:
    """Return the value itself, which must have the shape."""
    if x.shape != shape:
        raise NotImplementedError(f"has {x.type} there at these sizes")
    return x


# -- indices: of any integer dtype, negative ones counting from the end


def _places(x: HloValue, indices: HloValue, axis: int) -> HloValue:
    wide = cast_values(indices, DType.int64)
    return where(wide < 0, wide + x.shape[axis], wide)


def gather(x: HloValue, indices: HloValue, axis: int) -> HloValue:
    """Return the slices of x at indices; the shape of the indices replaces the axis."""
    return picked(x, _places(x, indices, axis), axis)


def picked(x: HloValue, places: HloValue, axis: int) -> HloValue:
    """Return the slices of x at non-negative indices."""
    shape = (*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])
    if not math.prod(x.shape):
        return x.number(0, shape)
    sizes = [1 if i == axis else size for i, size in enumerate(x.shape)]
    after = range(axis + places.rank, len(shape))
    numbers = fields(
        "gather",
        offset_dims=(*range(axis), *after),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
        index_vector_dim=places.rank,
    )
    return _gathered(x, places, shape, sizes, numbers)


def _gathered(
    x: HloValue, places: HloValue, shape: Sizes, sizes: Sequence[int], numbers: str
) -> HloValue:
    operands, type_ = [x, places], TensorType(x.dtype, shape)
    return x.body.emit(
        "gather",
        operands,
        type_,
        dimension_numbers=numbers,
        slice_sizes=ints(sizes),
        indices_are_sorted="false",
    )


def take_along(x: HloValue, indices: HloValue, axis: int) -> HloValue:
    """Return the elements of x at indices along an axis, one element for each index."""
    if not math.prod(x.shape):
        return x.number(0, indices.shape)
    batch = [i for i in range(x.rank) if i != axis]
    numbers = fields(
        "gather",
        collapsed_slice_dims=(axis,),
        operand_batching_dims=batch,
        start_indices_batching_dims=batch,
        start_index_map=(axis,),
        index_vector_dim=x.rank,
    )
    return _gathered(x, _places(x, indices, axis), indices.shape, [1] * x.rank, numbers)


def scatter(x: HloValue, updates: HloValue, indices: HloValue, axis: int) -> HloValue:
    """Return x with updates at indices along an axis; of updates to one element the last wins.

    Engines apply updates in any order. A first scatter therefore stores, for each element, the
    greatest position of its updates, or -1 for none; a gather then takes the updates.
    """
    if not math.prod(x.shape) or not math.prod(updates.shape):
        return x
    mine = x.body.iota(DType.int64, updates.shape, axis)
    last = _maximum_at(mine.number(-1, x.shape), mine, _places(x, indices, axis), axis)
    last_updates = take_along(updates, where(last < 0, 0, last), axis)
    return where(last < 0, x, last_updates)


def index_add(x: HloValue, updates: HloValue, indices: HloValue, axis: int | None) -> HloValue:
    """Return x with updates added at indices along an axis; None counts the elements of x.

    Engines may add the updates of one element in any order, as they may in a sum; XLA on the CPU
    adds them in the order of the indices.
    """
    if axis is None:
        flat = index_add(x.reshape((math.prod(x.shape),)), updates, indices, 0)
        return flat.reshape(x.shape)
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    if not math.prod(x.shape) or not math.prod(shape):
        return x
    numbers = fields(
        "scatter",
        update_window_dims=(*range(axis), *range(axis + indices.rank, len(shape))),
        inserted_window_dims=(axis,),
        scatter_dims_to_operand_dims=(axis,),
        index_vector_dim=indices.rank,
    )
    places = _places(x, indices, axis)
    return _scattered(x, updates.broadcast(shape), places, operator.add, numbers)


def _maximum_at(x: HloValue, updates: HloValue, places: HloValue, axis: int) -> HloValue:
    """Return the elementwise maximum of x and of the updates at indices along an axis."""
    batch = [i for i in range(x.rank) if i != axis]
    numbers = fields(
        "scatter",
        inserted_window_dims=(axis,),
        input_batching_dims=batch,
        scatter_indices_batching_dims=batch,
        scatter_dims_to_operand_dims=(axis,),
        index_vector_dim=x.rank,
    )
    return _scattered(x, updates, places, lambda x, other: x.op("maximum", other), numbers)


def _scattered(
    x: HloValue,
    updates: HloValue,
    places: HloValue,
    combine: Callable[[HloValue, HloValue], HloValue],
    numbers: str,
) -> HloValue:
    region = x.body.region([TensorType(x.dtype)] * 2, combine)
    operands = [x, places, updates]
    return x.body.emit("scatter", operands, x.type, region, scatter_dimension_numbers=numbers)
