"""Rows of the ops that move values, and of those that make them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from graphir.ops.dims import Dim, Size
from graphir.ops.shape_rules import broadcast_shapes
from graphir.public import DType, Graph, Symbol, ops
from graphir.runtime.sources.onnx_.model import LARGEST
from graphir.runtime.sources.onnx_.node_rows import NodeCall, axis_of, matrix_shape, row
from graphir.runtime.sources.onnx_.static_values import positions
from graphir.runtime.sources.op_rows import Attribute, Emitted, SymbolOrNone, flat_scatter

# -- creation


@row("Shape")
def _shape(e: NodeCall, x: Symbol, start: int = 0, end: int | None = None) -> Emitted:
    sizes = e(ops.shape_of, x, dtype=DType.int64)
    first, last, _ = slice(start, end).indices(x.rank)
    if (first, last) == (0, x.rank):
        return sizes
    return e.cut(sizes, 0, first, max(first, last))


@row("Size")
def _size(e: NodeCall, x: Symbol) -> Emitted:
    return e(ops.prod, e(ops.shape_of, x, dtype=DType.int64), axis=(0,), dtype=DType.int64)


@row("ConstantOfShape")
def _constant_of_shape(e: NodeCall, shape: Symbol, value: SymbolOrNone = None) -> Emitted:
    number = e.constant(np.zeros(1, np.float32)) if value is None else value
    return e.spread(e.shaped(number, ()), e.ints(shape))


@row("EyeLike")
def _eye_like(e: NodeCall, x: Symbol, k: int, **_: Attribute) -> Emitted:
    rows, columns = x.shape
    attrs = {"dtype": e.type.dtype, "rows": rows, "columns": columns, "offset": k}
    return e.graph.emit(ops.eye, (), attrs)


@row("Range")
def _range(e: NodeCall, start: Symbol, limit: Symbol, delta: Symbol, **_: Attribute) -> Emitted:
    first, last, step = (e.ints(x)[0] for x in (start, limit, delta))
    if isinstance(first, Dim) or isinstance(step, Dim):
        return None
    if isinstance(last, Dim):
        return e.graph.range(first, last, step, dtype=start.dtype)
    count = max(int(np.ceil((last - first) / step)), 0)
    line = positions(count).astype(start.dtype.storage)
    if not start.dtype.is_float:
        return e.constant((first + positions(count) * step).astype(start.dtype.storage))
    places = e.constant(line)
    return e(ops.add, e(ops.multiply, places, delta), start) if count else places


@row("OneHot")
def _one_hot(e: NodeCall, places: Symbol, depth: Symbol, values: Symbol, axis: int) -> Emitted:
    count = int(e.ints(depth)[0])
    axis = axis_of(axis, places.rank + 1)
    index = e.cast(places, DType.int64)
    index = e(ops.unsqueeze, index, axis=axis)
    is_out = e(ops.logical_or, e(ops.less, index, -count), e(ops.greater_equal, index, count))
    index = e(ops.where, is_out, e.number(-1, index), e(ops.remainder, index, max(count, 1)))
    line = e.line(count, axis, index.rank)
    low, high = (e.shaped(e.cut(values, 0, i, i + 1), ()) for i in (0, 1))
    return e(ops.where, e(ops.equal, index, line), high, low)


# -- shapes


@row("Reshape")
def _reshape(
    e: NodeCall, x: Symbol, shape: Symbol, *, allowzero: int = 0, **_: Attribute
) -> Emitted:
    sizes = e.ints(shape)
    if not allowzero:
        sizes = [x.shape[i] if size == 0 else size for i, size in enumerate(sizes)]
    if 0 in x.shape and -1 in sizes:
        return None
    return e.shaped(x, sizes) if -1 not in sizes else e(ops.reshape, x, shape=sizes)


@row("Flatten")
def _flatten(e: NodeCall, x: Symbol, axis: int) -> Emitted:
    return e.shaped(x, matrix_shape(x, axis))


@row("Squeeze")
def _squeeze(e: NodeCall, x: Symbol, axes: SymbolOrNone = None) -> Emitted:
    places = [axis_of(axis, x.rank) for axis in e.ints(axes)]
    if axes is None:
        if any(not isinstance(size, int) for size in x.shape):
            return None
        places = [i for i, size in enumerate(x.shape) if size == 1]
    for axis in sorted(places, reverse=True):
        x = e(ops.squeeze, x, axis=axis)
    return x


@row("Unsqueeze")
def _unsqueeze(e: NodeCall, x: Symbol, axes: Symbol) -> Emitted:
    places = e.ints(axes)
    rank = x.rank + len(places)
    for axis in sorted(axis_of(axis, rank) for axis in places):
        x = e(ops.unsqueeze, x, axis=axis)
    return x


@row("Transpose")
def _transpose(e: NodeCall, x: Symbol, perm: Sequence[int] | None = None) -> Emitted:
    dims = [*range(x.rank)][::-1] if perm is None else [*perm]
    return e(ops.permute, x, dims=dims)


@row("Expand")
def _expand(e: NodeCall, x: Symbol, shape: Symbol) -> Emitted:
    return e.spread(x, broadcast_shapes((x.shape, tuple(e.ints(shape)))))


@row("Tile")
def _tile(e: NodeCall, x: Symbol, repeats: Symbol) -> Emitted:
    return e(ops.tile, x, repeats=e.ints(repeats)) if x.rank else x


@row("Concat")
def _concat(e: NodeCall, *args: Symbol, axis: int = 1) -> Emitted:
    return e(ops.concat, *args, axis=axis)


@row("Split")
def _split(
    e: NodeCall, x: Symbol, split: SymbolOrNone = None, *, axis: int = 0, **attrs: Attribute
) -> Emitted:
    axis = axis_of(axis, x.rank)
    parts = e.ints(split)
    if not parts:
        whole, count = x.shape[axis], attrs.get("num_outputs") or len(e.types)
        if not isinstance(whole, int):
            return None
        part = -(-whole // count)
        parts = [max(min(part, whole - i * part), 0) for i in range(count)]
    starts = [sum(parts[:i]) for i in range(len(parts))]
    return [e.cut(x, axis, start, start + n) for start, n in zip(starts, parts, strict=True)]


@row("Slice")
def _slice(
    e: NodeCall,
    x: Symbol,
    starts: Symbol,
    ends: Symbol,
    axes: SymbolOrNone = None,
    steps: SymbolOrNone = None,
) -> Emitted:
    """A slice; one with a negative step is a slice of the flipped array."""
    first, last = e.ints(starts), e.ints(ends)
    places = e.ints(axes) or range(len(first))
    by = e.ints(steps) or [1] * len(first)
    for axis, start, stop, step in zip(places, first, last, by, strict=True):
        axis = axis_of(axis, x.rank)
        size = x.shape[axis]
        limits = _limits(size, start, stop, step, e.graph)
        if limits is None:
            return None
        start, stop = limits
        if step < 0:
            x = e(ops.flip, x, axis=(axis,))
        if (start, stop, step) != (0, size, 1):
            x = e.cut(x, axis, start, stop, abs(step))
    return x


def _limits(size: Size, start: Any, stop: Any, step: int, graph: Graph) -> tuple[Any, Any] | None:
    """Return start and stop of a slice, in the flipped array for a negative step; None if unknown.

    ONNX cuts bounds at the ends of the axis. Bounds of a symbolic size are unknown unless they are
    its ends, or one element from an end. That element is missing in an empty array, so a size that
    a run computes has no such bound.
    """
    if isinstance(size, int) and isinstance(start, int) and isinstance(stop, int):
        first, last, _ = slice(start, _end(stop, step), step).indices(size)
        if step < 0:
            first, last = size - 1 - first, size - 1 - last
        return first, max(first, last)
    are_numbers = isinstance(start, int) and isinstance(stop, int)
    if step < 0:
        is_whole = are_numbers and start == -1 and stop <= -_BEYOND
        return (0, size) if is_whole else None
    stop = size if isinstance(stop, int) and stop >= _BEYOND else stop
    numbers = [x for x in (start, stop) if isinstance(x, int) and x]
    first, last = (size + x if isinstance(x, int) and x < 0 else x for x in (start, stop))
    is_near = len(numbers) == 1 and abs(numbers[0]) == 1 and not _is_late(size, graph)
    return (first, last) if not numbers or is_near else None


_BEYOND = 10**9
"""The least bound of a slice that means "to the end" of a symbolic size."""


def _is_late(size: Size, graph: Graph) -> bool:
    """Whether a size depends on values: no input has its names."""
    names = {
        name
        for x in graph.inputs
        for dim in x.shape
        if isinstance(dim, Dim)
        for name in dim.names()
    }
    return isinstance(size, Dim) and not names.issuperset(size.names())


def _end(stop: int, step: int) -> int | None:
    return None if step < 0 and stop < -(2**31) + 1 else stop


@row("Pad")
def _pad(
    e: NodeCall,
    x: Symbol,
    pads: SymbolOrNone = None,
    value: SymbolOrNone = None,
    axes: SymbolOrNone = None,
    **attrs: Attribute,
) -> Emitted:
    mode = attrs.get("mode", "constant")
    sizes = e.ints(pads)
    number: Any = e.ints(value)[0] if isinstance(value, Symbol) else value or 0.0
    places = [axis_of(axis, x.rank) for axis in e.ints(axes)] or [*range(x.rank)]
    padding, half = [(0, 0)] * x.rank, len(sizes) // 2
    for i, axis in enumerate(places):
        padding[axis] = sizes[i], sizes[half + i]
    start = [max(-before, 0) for before, _ in padding]
    stop = [size - max(-after, 0) for size, (_, after) in zip(x.shape, padding, strict=True)]
    if any(start) or stop != [*x.shape]:
        x = e(ops.slice, x, start=start, stop=stop, step=[1] * x.rank)
    padding = [(max(before, 0), max(after, 0)) for before, after in padding]
    if mode != "constant":
        for axis, pair in enumerate(padding):
            line: Any = positions(x.shape[axis])
            places = np.pad(line, pair, mode)
            x = e(ops.gather, x, e.constant(places), axis=axis) if any(pair) else x
        return x
    number = (
        number if x.dtype.is_inexact else bool(number) if x.dtype is DType.bool else int(number)
    )
    return e(ops.pad, x, padding=padding, value=number)


@row("DepthToSpace")
def _depth_to_space(e: NodeCall, x: Symbol, blocksize: int, mode: str = "DCR") -> Emitted:
    n, c, h, w = x.shape
    inner = c // blocksize**2
    if mode == "DCR":
        shape, dims = (n, blocksize, blocksize, inner, h, w), (0, 3, 4, 1, 5, 2)
    else:
        shape, dims = (n, inner, blocksize, blocksize, h, w), (0, 1, 4, 2, 5, 3)
    x = e(ops.permute, e.shaped(x, shape), dims=dims)
    return e.shaped(x, (n, inner, h * blocksize, w * blocksize))


@row("SpaceToDepth")
def _space_to_depth(e: NodeCall, x: Symbol, blocksize: int, mode: str = "DCR") -> Emitted:
    if mode != "DCR":
        return None
    n, c, h, w = x.shape
    x = e.shaped(x, (n, c, h // blocksize, blocksize, w // blocksize, blocksize))
    x = e(ops.permute, x, dims=(0, 3, 5, 1, 2, 4))
    return e.shaped(x, (n, c * blocksize**2, h // blocksize, w // blocksize))


@row("Trilu")
def _trilu(e: NodeCall, x: Symbol, k: SymbolOrNone = None, upper: int = 1) -> Emitted:
    offset, keep = (e.ints(k)[0] if k is not None else 0), np.triu if upper else np.tril
    rows, columns = x.shape[-2:]
    if not (isinstance(rows, int) and isinstance(columns, int)) or rows * columns > LARGEST:
        return None
    offset = max(min(offset, rows + columns), -rows - columns)
    return e(ops.where, e.constant(keep(np.ones((rows, columns), bool), offset)), x, e.number(0, x))


# -- indexing


@row("Gather")
def _gather(e: NodeCall, x: Symbol, places: Symbol, axis: int) -> Emitted:
    return e(ops.gather, x, places, axis=axis)


@row("GatherElements")
def _gather_elements(e: NodeCall, x: Symbol, places: Symbol, axis: int) -> Emitted:
    return e.take(x, places, axis_of(axis, x.rank))


@row("GatherND")
def _gather_nd(e: NodeCall, x: Symbol, places: Symbol, batch_dims: int = 0) -> Emitted:
    if batch_dims or not all(isinstance(size, int) for size in x.shape):
        return None
    flat, shape = _flattened(e, x, places)
    return e.shaped(e(ops.gather, flat, shape, axis=0), e.type.shape)


def _flattened(e: NodeCall, x: Symbol, places: Symbol) -> tuple[Symbol, Symbol]:
    """Return x with its indexed axes as one, and the places along it, without their last axis."""
    count: Any = places.shape[-1]
    sizes: list[Any] = [*x.shape[:count]]
    strides = [prod(sizes[i + 1 :]) for i in range(count)]
    places = e.cast(places, DType.int64)
    whole = e(
        ops.where,
        e(ops.less, places, 0),
        e(ops.add, places, e.constant(np.array(sizes, np.int64))),
        places,
    )
    flat = e(ops.multiply, whole, e.constant(np.array(strides, np.int64)))
    along = e(ops.sum, flat, axis=(flat.rank - 1,), dtype=DType.int64)
    return e.shaped(x, (prod(sizes), *x.shape[count:])), along


@row("ScatterND")
def _scatter_nd(
    e: NodeCall, x: Symbol, places: Symbol, updates: Symbol, reduction: str = "none"
) -> Emitted:
    op = _SCATTERS.get(reduction)
    if op is None or not all(isinstance(size, int) for size in x.shape):
        return None
    flat, along = _flattened(e, x, places)
    return e.shaped(e(op, flat, updates, along, axis=0), x.shape)


@row("ScatterElements", "Scatter")
def _scatter_elements(
    e: NodeCall, x: Symbol, places: Symbol, updates: Symbol, axis: int, reduction: str = "none"
) -> Emitted:
    axis = axis_of(axis, x.rank)
    sizes = [*zip(x.shape, places.shape, strict=True)]
    if reduction == "add" and all(isinstance(a, int) and isinstance(b, int) for a, b in sizes):
        x, new, at, order = flat_scatter(e, x, updates, e.cast(places, DType.int64), axis)
        return e(ops.permute, e(ops.index_add, x, new, at, axis=None), dims=order)
    if reduction != "none" or any(a != b for i, (a, b) in enumerate(sizes) if i != axis):
        return None
    return e(ops.scatter, x, updates, places, axis=axis)


_SCATTERS = {"none": ops.index_update, "add": ops.index_add}
"""The ops of scatters, by their reduction; those of onnxruntime lose sums where threads meet."""
