"""Rows of the primitives that read and write slices at computed places.

XLA's gather reads a window of the operand at each start that the indices name, and scatter writes
one. Both become reads and writes at places in the flattened operand (openxla.org/xla, "Operation
semantics": Gather, Scatter, DynamicSlice).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from graphir.public import DType, Op, Symbol, ops
from graphir.runtime.sources.jax_.lax_rows import ROWS, Equation, known_shape, row
from graphir.runtime.sources.op_rows import Attribute, Emitted


@row("dynamic_slice")
def _dynamic_slice(e: Equation, x: Symbol, *starts: Symbol, slice_sizes: Sequence[int]) -> Emitted:
    for axis, (start, size) in enumerate(zip(starts, slice_sizes, strict=True)):
        if size < known_shape(x)[axis]:
            x = e(ops.gather, x, _window(e, start, known_shape(x)[axis], size), axis=axis)
    return x


@row("dynamic_update_slice")
def _dynamic_update_slice(e: Equation, x: Symbol, updates: Symbol, *starts: Symbol) -> Emitted:
    pairs = enumerate(zip(known_shape(x), known_shape(updates), strict=True))
    axes = [axis for axis, (whole, size) in pairs if size < whole]
    if len(axes) < 2:
        axis = axes[0] if axes else 0
        if not x.rank or known_shape(updates) == known_shape(x):
            return updates
        places = _window(e, starts[axis], known_shape(x)[axis], known_shape(updates)[axis])
        return e(ops.index_update, x, updates, places, axis=axis)
    columns = [
        e.along(_window(e, start, whole, size), axis, x.rank)
        for axis, (start, whole, size) in enumerate(
            zip(starts, known_shape(x), known_shape(updates), strict=True)
        )
    ]
    places = _flat(e, columns, known_shape(x), known_shape(updates))
    return e(ops.index_update, x, updates, places, axis=None)


@row("gather")
def _gather(
    e: Equation,
    x: Symbol,
    indices: Symbol,
    *,
    dimension_numbers: Attribute,
    slice_sizes: Sequence[int],
    mode: Attribute,
    fill_value: Attribute = None,
) -> Emitted:
    numbers = dimension_numbers
    if 0 in known_shape(x) or 0 in known_shape(e.type):
        return None
    windows = _Windows(
        tuple(slice_sizes),
        (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims),
        numbers.start_index_map,
        numbers.operand_batching_dims,
        numbers.start_indices_batching_dims,
        numbers.offset_dims,
    )
    starts = windows.starts(e, indices)
    whole_rows = [k for k, size in enumerate(windows.sizes) if size < known_shape(x)[k]]
    is_take = len(whole_rows) == 1 and whole_rows == [*windows.start_map] == [*windows.lacking_axes]
    if is_take and mode.name != "FILL_OR_DROP":
        (axis,) = whole_rows
        result = e(ops.gather, x, _clamped(e, starts[axis], known_shape(x)[axis] - 1), axis=axis)
        return e(ops.permute, result, dims=windows.order(axis, indices.rank - 1, x.rank))
    columns, inside = windows.columns(e, x, starts, e.type.rank)
    flat = e(ops.reshape, x, shape=(prod(known_shape(x)),))
    result = e(ops.gather, flat, _flat(e, columns, known_shape(x), known_shape(e.type)), axis=0)
    if mode.name == "FILL_OR_DROP":
        fill = e.number(_fill(e.type.dtype, fill_value), e.type)
        for verdict in inside:
            result = e(ops.where, verdict, result, fill)
    return result


def _scatter(
    op: Op,
    negates: bool,
    e: Equation,
    x: Symbol,
    indices: Symbol,
    updates: Symbol,
    *,
    dimension_numbers: Attribute,
    mode: Attribute,
    update_jaxpr: Attribute = None,
) -> Emitted:
    """Update, or add to, windows of an operand; XLA applies one window after another.

    Updates beyond the operand go to an element behind its last, which is dropped.
    """
    numbers = dimension_numbers
    lacking_axes = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    if op is ops.index_update and update_jaxpr is not None:
        return None  # of an addition it is what the name of the primitive says
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
    if mode.name == "FILL_OR_DROP":
        for verdict in inside:
            places = e(ops.where, verdict, places, e.number(size, places))
    flat = e(ops.reshape, x, shape=(size,))
    behind = e(ops.slice, flat, start=(0,), stop=(1,), step=(1,))
    longer = e(ops.concat, flat, behind, axis=0)
    updates = e(ops.negative, updates) if negates else updates
    order = [axis for axis in range(updates.rank) if axis not in windows.offsets]
    order += windows.offsets
    if order != sorted(order) and any(sizes[axis] > 1 for axis in windows.start_map):
        updates, places = (e(ops.permute, each, dims=order) for each in (updates, places))
    updated_array = e(op, longer, updates, places, axis=None)
    result = e(ops.slice, updated_array, start=(0,), stop=(size,), step=(1,))
    return e(ops.reshape, result, shape=known_shape(x))


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
            indices if indices.dtype.family == "int" else e(ops.cast, indices, to=_places_dtype(e))
        )
        starts: dict[int, Symbol] = {}
        for i, axis in enumerate(self.start_map):
            part = e(
                ops.slice,
                signed,
                start=(0,) * last + (i,),
                stop=(*shape, i + 1),
                step=(1,) * (last + 1),
            )
            starts[axis] = e(ops.reshape, part, shape=shape)
        for axis, place in zip(self.batch, self.batch_of_indices, strict=True):
            places = _counting(e, shape[place], signed.dtype)
            starts[axis] = e(ops.broadcast_to, e.along(places, place, len(shape)), shape=shape)
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
                inside.append(_spread(e, e(ops.equal, clamped, start), batch_axes, rank))
                column = _spread(e, clamped, batch_axes, rank)
            if k in window_axes:
                dtype = _places_dtype(e) if start is None else start.dtype
                axis = self.offsets[window_axes.index(k)]
                steps = e.along(_counting(e, size, dtype), axis, rank)
                column = steps if column is None else e(ops.add, column, steps)
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


def _counting(e: Equation, size: int, dtype: DType) -> Symbol:
    return e(ops.range, dtype=dtype, start=0, step=1, size=size)


def _clamped(e: Equation, start: Symbol, most: int) -> Symbol:
    return e(ops.clip, start, e.number(0, start), e.number(most, start))


def _window(e: Equation, start: Symbol, whole: int, size: int) -> Symbol:
    """Return the places of a window along an axis of `whole` elements, which it does not leave."""
    if start.dtype.family != "int":
        start = e(ops.cast, start, to=_places_dtype(e))
    return e(ops.add, _clamped(e, start, whole - size), _counting(e, size, start.dtype))


def _spread(e: Equation, x: Symbol, axes: Sequence[int], rank: int) -> Symbol:
    """Return an array with its axes at `axes` of an array of a rank."""
    sizes = dict(zip(axes, known_shape(x), strict=True))
    return e(ops.reshape, x, shape=[sizes.get(i, 1) for i in range(rank)])


def _flat(
    e: Equation, columns: Sequence[Symbol], shape: Sequence[int], to: Sequence[int]
) -> Symbol:
    """Return the places in a flattened array of a shape, for places along each axis."""
    dtype = _places_dtype(e)
    places: Symbol | None = None
    for axis, column in enumerate(columns):
        stride = prod(shape[axis + 1 :])
        part = column if column.dtype is dtype else e(ops.cast, column, to=dtype)
        part = e(ops.multiply, part, e.number(stride, part)) if stride != 1 else part
        places = part if places is None else e(ops.add, places, part)
    assert places is not None
    return e(ops.broadcast_to, places, shape=to)


def _fill(dtype: DType, value: ArrayLike | None) -> complex:
    """Return what a gather gives beyond the operand: NaN, the least int, the greatest uint."""
    if value is not None:
        return np.asarray(value).item()
    if dtype.family == "int":
        return dtype.min
    return dtype.max if dtype.family == "uint" else True if dtype is DType.bool else float("nan")


for _name, _op, _negates in (
    ("scatter", ops.index_update, False),
    ("scatter-add", ops.index_add, False),
    ("scatter-sub", ops.index_add, True),
):
    ROWS[_name] = partial(_scatter, _op, _negates)
