"""Rows of the primitives that read and write slices at computed places.

XLA's gather reads a window of the operand at each start that the indices name, and scatter writes
one. Both become reads and writes at places in the flattened operand (openxla.org/xla, "Operation
semantics": Gather, Scatter, DynamicSlice).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from graphir import DType, Op, Symbol, ops
from graphir.runtime.sources.jax_.rows import Equation, Row, known_shape


def _dynamic_slice(e: Equation) -> Any:
    x, *starts = e.args
    for axis, (start, size) in enumerate(zip(starts, e.params["slice_sizes"], strict=True)):
        if size < known_shape(x)[axis]:
            x = e.emit(ops.gather, x, _window(e, start, known_shape(x)[axis], size), axis=axis)
    return x


def _dynamic_update_slice(e: Equation) -> Any:
    x, updates, *starts = e.args
    pairs = enumerate(zip(known_shape(x), known_shape(updates), strict=True))
    axes = [axis for axis, (whole, size) in pairs if size < whole]
    if len(axes) < 2:
        axis = axes[0] if axes else 0
        if not x.rank or known_shape(updates) == known_shape(x):
            return updates
        places = _window(e, starts[axis], known_shape(x)[axis], known_shape(updates)[axis])
        return e.emit(ops.index_update, x, updates, places, axis=axis)
    columns = [
        _along(e, _window(e, start, whole, size), axis, x.rank)
        for axis, (start, whole, size) in enumerate(
            zip(starts, known_shape(x), known_shape(updates), strict=True)
        )
    ]
    places = _flat(e, columns, known_shape(x), known_shape(updates))
    return e.emit(ops.index_update, x, updates, places, axis=None)


def _gather(e: Equation) -> Any:
    (x, indices), numbers = e.args, e.params["dimension_numbers"]
    if 0 in known_shape(x) or 0 in known_shape(e.type):
        return None
    windows = _Windows(
        tuple(e.params["slice_sizes"]),
        (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims),
        numbers.start_index_map,
        numbers.operand_batching_dims,
        numbers.start_indices_batching_dims,
        numbers.offset_dims,
    )
    mode = e.params["mode"].name
    starts = windows.starts(e, indices)
    whole_rows = [k for k, size in enumerate(windows.sizes) if size < known_shape(x)[k]]
    is_take = len(whole_rows) == 1 and whole_rows == [*windows.start_map] == [*windows.lacking_axes]
    if is_take and mode != "FILL_OR_DROP":
        (axis,) = whole_rows
        result = e.emit(
            ops.gather, x, _clamped(e, starts[axis], known_shape(x)[axis] - 1), axis=axis
        )
        return e.emit(ops.permute, result, dims=windows.order(axis, indices.rank - 1, x.rank))
    columns, inside = windows.columns(e, x, starts, e.type.rank)
    flat = e.emit(ops.reshape, x, shape=(prod(known_shape(x)),))
    result = e.emit(
        ops.gather, flat, _flat(e, columns, known_shape(x), known_shape(e.type)), axis=0
    )
    if mode == "FILL_OR_DROP":
        fill = e.number(_fill(e), e.type)
        for verdict in inside:
            result = e.emit(ops.where, verdict, result, fill)
    return result


def _scatter(op: Op, e: Equation, negates: bool = False) -> Any:
    """Update, or add to, windows of an operand; XLA applies one window after another.

    Updates beyond the operand go to an element behind its last, which is dropped.
    """
    (x, indices, updates), numbers = e.args, e.params["dimension_numbers"]
    lacking_axes = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    if 0 in known_shape(x) or 0 in known_shape(updates) or not x.rank:
        return None
    sizes = [1] * x.rank
    window_axes = [k for k in range(x.rank) if k not in lacking_axes]
    for k, axis in zip(window_axes, numbers.update_window_dims, strict=True):
        sizes[k] = known_shape(updates)[axis]
    windows = _Windows(
        tuple(sizes),
        lacking_axes,
        numbers.scatter_dims_to_operand_dims,
        numbers.operand_batching_dims,
        numbers.scatter_indices_batching_dims,
        numbers.update_window_dims,
    )
    columns, inside = windows.columns(e, x, windows.starts(e, indices), updates.rank)
    places, size = _flat(e, columns, known_shape(x), known_shape(updates)), prod(known_shape(x))
    if e.params["mode"].name == "FILL_OR_DROP":
        for verdict in inside:
            places = e.emit(ops.where, verdict, places, e.number(size, places))
    flat = e.emit(ops.reshape, x, shape=(size,))
    behind = e.emit(ops.slice, flat, start=(0,), stop=(1,), step=(1,))
    longer = e.emit(ops.concat, flat, behind, axis=0)
    if op is ops.index_add:
        e.params.read.add("update_jaxpr")  # which is what the name of the primitive says
    updates = e.emit(ops.negative, updates) if negates else updates
    order = [axis for axis in range(updates.rank) if axis not in windows.offsets]
    order += windows.offsets
    if order != sorted(order) and any(sizes[axis] > 1 for axis in windows.start_map):
        updates, places = (e.emit(ops.permute, each, dims=order) for each in (updates, places))
    updated_array = e.emit(op, longer, updates, places, axis=None)
    result = e.emit(ops.slice, updated_array, start=(0,), stop=(size,), step=(1,))
    return e.emit(ops.reshape, result, shape=known_shape(x))


class _Windows(NamedTuple):
    """The windows of a gather or scatter: their sizes, and how axes correspond.

    `lacking_axes` are the operand's axes that the result, or the updates, lack. `start_map` has the
    operand's axis of each index. `offsets` are the result's axes within a window; its other axes
    are those of the indices.
    """

    sizes: tuple[int, ...]
    lacking_axes: Sequence[int]
    start_map: Sequence[int]
    batch: Sequence[int]
    batch_of_indices: Sequence[int]
    offsets: Sequence[int]

    def starts(self, e: Equation, indices: Symbol) -> dict[int, Symbol]:
        """Return the starts of the windows by the operand's axes, with the indices' shape."""
        shape, last = known_shape(indices)[:-1], indices.rank - 1
        signed = (
            indices
            if indices.dtype.family == "int"
            else e.emit(ops.cast, indices, to=_places_dtype(e))
        )
        starts: dict[int, Symbol] = {}
        for i, axis in enumerate(self.start_map):
            part = e.emit(
                ops.slice,
                signed,
                start=(0,) * last + (i,),
                stop=(*shape, i + 1),
                step=(1,) * (last + 1),
            )
            starts[axis] = e.emit(ops.reshape, part, shape=shape)
        for axis, place in zip(self.batch, self.batch_of_indices, strict=True):
            places = _counting(e, shape[place], signed.dtype)
            starts[axis] = e.emit(
                ops.broadcast_to, _along(e, places, place, len(shape)), shape=shape
            )
        return starts

    def columns(
        self, e: Equation, x: Symbol, starts: dict[int, Symbol], rank: int
    ) -> tuple[list[Symbol], list[Symbol]]:
        """Return the places along each of the operand's axes, and what tests the starts.

        Both broadcast to the shape of the result, of rank `rank`.
        """
        batch_axes = [axis for axis in range(rank) if axis not in self.offsets]
        window_axes = [k for k in range(x.rank) if k not in self.lacking_axes]
        columns: list[Symbol] = []
        inside: list[Symbol] = []
        for k, (size, whole) in enumerate(zip(self.sizes, known_shape(x), strict=True)):
            start = starts.get(k)
            column: Symbol | None = None
            if start is not None:
                clamped = _clamped(e, start, whole - size)
                inside.append(_spread(e, e.emit(ops.equal, clamped, start), batch_axes, rank))
                column = _spread(e, clamped, batch_axes, rank)
            if k in window_axes:
                dtype = _places_dtype(e) if start is None else start.dtype
                steps = _along(
                    e, _counting(e, size, dtype), self.offsets[window_axes.index(k)], rank
                )
                column = steps if column is None else e.emit(ops.add, column, steps)
            assert column is not None  # an axis outside of the window has a start
            columns.append(column)
        return columns, inside

    def order(self, axis: int, count: int, rank: int) -> list[int]:
        """Return how to permute x[..., indices, ...], with `count` axes of indices at an axis."""
        result_rank = rank - 1 + count
        batch = iter(range(axis, axis + count))
        rest = iter([i for i in range(result_rank) if not axis <= i < axis + count])
        return [next(rest if i in self.offsets else batch) for i in range(result_rank)]


def _places_dtype(e: Equation) -> DType:
    return DType.int64 if e.graph.rules.base_name == "jax" else DType.int32


def _counting(e: Equation, size: Any, dtype: DType) -> Symbol:
    return e.emit(ops.range, dtype=dtype, start=0, step=1, size=size)


def _clamped(e: Equation, start: Symbol, most: int) -> Symbol:
    return e.emit(ops.clip, start, e.number(0, start), e.number(most, start))


def _window(e: Equation, start: Symbol, whole: int, size: int) -> Symbol:
    """Return the places of a window along an axis of `whole` elements, which it does not leave."""
    if start.dtype.family != "int":
        start = e.emit(ops.cast, start, to=_places_dtype(e))
    return e.emit(ops.add, _clamped(e, start, whole - size), _counting(e, size, start.dtype))


def _along(e: Equation, vector: Symbol, axis: int, rank: int) -> Symbol:
    """Return a vector as an array of a rank, along an axis."""
    shape = [vector.shape[0] if i == axis else 1 for i in range(rank)]
    return e.emit(ops.reshape, vector, shape=shape)


def _spread(e: Equation, x: Symbol, axes: Sequence[int], rank: int) -> Symbol:
    """Return an array with its axes at `axes` of an array of a rank."""
    sizes = dict(zip(axes, known_shape(x), strict=True))
    return e.emit(ops.reshape, x, shape=[sizes.get(i, 1) for i in range(rank)])


def _flat(e: Equation, columns: Sequence[Symbol], shape: Sequence[Any], to: Any) -> Symbol:
    """Return the places in a flattened array of a shape, for places along each axis."""
    dtype = _places_dtype(e)
    places: Symbol | None = None
    for axis, column in enumerate(columns):
        stride = prod(shape[axis + 1 :])
        part = column if column.dtype is dtype else e.emit(ops.cast, column, to=dtype)
        part = e.emit(ops.multiply, part, e.number(stride, part)) if stride != 1 else part
        places = part if places is None else e.emit(ops.add, places, part)
    assert places is not None
    return e.emit(ops.broadcast_to, places, shape=to)


def _fill(e: Equation) -> Any:
    """Return what a gather gives beyond the operand: NaN, the least int, the greatest uint."""
    value, dtype = e.params["fill_value"], e.type.dtype
    if value is not None:
        return np.asarray(value).item()
    if dtype.family == "int":
        return dtype.min
    return dtype.max if dtype.family == "uint" else True if dtype is DType.bool else float("nan")


INDEXING: dict[str, Row] = {
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "scatter": partial(_scatter, ops.index_update),
    "scatter-add": partial(_scatter, ops.index_add),
    "scatter-sub": partial(_scatter, ops.index_add, negates=True),
}
"""The rows, by the names of primitives."""
