"""Rows of reads and writes at places: indexing, gathers, scatters.

Sums add one update after another, in the order of PyTorch's kernels on the CPU. For products and
extremes the updates are compared with all places, so that memory is their number times that of
places; beyond MOST of these an op is a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from graphir.public import DType, Symbol, ops
from graphir.runtime.sources.op_rows import Attribute, Emitted, flat_scatter
from graphir.runtime.sources.torch_.aten_rows import AtenCall, Operand, row, sizes

MOST = 1 << 24
"""The most comparisons of an update with a place, times the elements of each."""

_REDUCTIONS = {
    "prod": (ops.prod, ops.multiply, 1),
    "amax": (ops.max, ops.maximum, float("-inf")),
    "amin": (ops.min, ops.minimum, float("inf")),
}


@row("_pack_padded_sequence")
def _pack(e: AtenCall, x: Symbol, lengths: Operand, batch_first: bool) -> Emitted:
    """The steps of the sequences that have not ended, one after another.

    The lengths depend on no input (see the recorder).
    """
    counts = e.results[1].tolist()
    sequence, step = (sizes(x)[1], 1) if batch_first else (1, sizes(x)[1])
    places = [i * sequence + t * step for t, count in enumerate(counts) for i in range(count)]
    flat = e.shaped(x, (sizes(x)[0] * sizes(x)[1], *sizes(x)[2:]))
    batch_sizes = e.places(counts)
    return [e(ops.gather, flat, e.places(places), axis=0), batch_sizes]


@row("gather")
def _gather(e: AtenCall, x: Symbol, dim: int, index: Symbol, **_: Attribute) -> Emitted:
    return e(ops.take_along, _like(e, x, index, dim), index, axis=dim) if x.rank else None


def _like(e: AtenCall, x: Symbol, index: Symbol, dim: int) -> Symbol:
    """Return x cut to the sizes of an index, but along an axis."""
    for axis, size in enumerate(sizes(index)):
        x = x if axis == dim % x.rank else e.cut(x, axis, 0, size)
    return x


def _cut_like(e: AtenCall, x: Symbol, index: Symbol) -> Symbol:
    """Return x cut to the sizes of an index."""
    for axis, size in enumerate(sizes(index)):
        x = e.cut(x, axis, 0, size)
    return x


@row("scatter")
def _scatter(
    e: AtenCall, x: Symbol, dim: int, index: Symbol, value: Operand, **more: Attribute
) -> Emitted:
    if more or not x.rank or _like(e, x, index, dim) is not x:
        return None
    if isinstance(value, Symbol):
        updates = _cut_like(e, value, index)
    else:
        updates = e.graph.full(value, index.shape, x.dtype)
    return e(ops.scatter, x, updates, index, axis=dim)


def _indexed_axis(
    e: AtenCall, x: Symbol, indices: Sequence[Any]
) -> tuple[Symbol, int, Symbol] | None:
    """Return an array, an axis and one index along it for integer indices on adjacent axes."""
    axes = [axis for axis, index in enumerate(indices) if index is not None]
    tensors = [index for index in indices if index is not None]
    if not axes or axes != [*range(axes[0], axes[0] + len(axes))]:
        return None
    if any(not index.dtype.is_integer or index.dtype is DType.uint8 for index in tensors):
        return None
    if len(axes) == 1:
        return x, axes[0], e.cast(tensors[0], DType.int64)
    places: Any = None
    for axis, index in zip(axes, tensors, strict=True):
        index, size = e.cast(index, DType.int64), sizes(x)[axis]
        index = e(ops.where, e(ops.less, index, 0), e(ops.add, index, size), index)
        places = index if places is None else e(ops.add, e(ops.multiply, places, size), index)
    whole = int(np.prod([sizes(x)[axis] for axis in axes]))
    shape = (*sizes(x)[: axes[0]], whole, *sizes(x)[axes[-1] + 1 :])
    return e.shaped(x, shape), axes[0], places


@row("index", "_unsafe_index")
def _index_get(e: AtenCall, x: Symbol, indices: Operand) -> Emitted:
    parts = _indexed_axis(e, x, indices)
    return None if parts is None else e(ops.gather, parts[0], parts[2], axis=parts[1])


# -- writes that combine with what is there


def _reduced(
    e: AtenCall, x: Symbol, axis: int, index: Symbol, updates: Symbol, way: str, own: bool
) -> Symbol | None:
    """Return x with the updates that name each place along an axis reduced, with x if `own`."""
    reduction, combine, start = _REDUCTIONS[way]
    size, shape = sizes(x)[axis], (*sizes(updates)[:axis], *sizes(updates)[axis + 1 :])
    if shape != (*sizes(x)[:axis], *sizes(x)[axis + 1 :]) or prod(sizes(updates)) * size > MOST:
        return None
    if x.dtype.is_integer:
        limits = np.iinfo(x.dtype.storage)
        start = {"amax": limits.min, "amin": limits.max}.get(way, start)
    places = e.shaped(e.places(np.arange(size)), (size, *[1] * (x.rank - axis)))
    mask = e(ops.equal, e(ops.unsqueeze, index, axis=axis), places)
    fill = e.graph.constant_of((x.dtype, np.asarray(start, x.dtype.storage)))
    values = e(ops.where, mask, e(ops.unsqueeze, updates, axis=axis), fill)
    dtype = {"dtype": x.dtype} if x.dtype.is_integer and way == "prod" else {}
    result = e(reduction, values, axis=(axis + 1,), **dtype)
    if own:
        return e(combine, x, result)
    return e(ops.where, e(ops.any, mask, axis=(axis + 1,)), result, x)


def _added(
    e: AtenCall, x: Symbol, updates: Symbol, places: Symbol, axis: int | None, once: bool
) -> Symbol:
    """Return x with updates added at places, one after another; of halves, rounded `once`."""
    if once and e.is_half:
        wide = e(ops.index_add, e.wide(x), e.wide(updates), places, axis=axis)
        return e.narrow(wide)
    return e(ops.index_add, x, updates, places, axis=axis)


def _sums(
    e: AtenCall, x: Symbol, axis: int, index: Symbol, updates: Symbol, way: str, own: bool
) -> Symbol | None:
    """Return x with the sums, or means, of the updates that name each place along an axis."""
    if way == "mean" and not x.dtype.is_float:
        return None
    x, updates, places, order = flat_scatter(e, x, updates, index, axis)
    zero = e.graph.full(0, (), x.dtype)
    start = x if own else e(ops.index_update, x, zero, places, axis=None)
    result = _added(e, start, updates, places, None, True)
    if way == "mean":
        start, ones = e.graph.full(int(own), x.shape, x.dtype), e.graph.full(1, (), x.dtype)
        count = _added(e, start, ones, places, None, True)
        result = e(ops.divide, result, count if own else e(ops.maximum, count, 1))
    return e(ops.permute, result, dims=order)


@row("scatter_add")
def _scatter_add(e: AtenCall, x: Symbol, dim: int, index: Symbol, updates: Symbol) -> Emitted:
    return _scatter_reduce(e, x, dim, index, updates, "sum")


@row("scatter_reduce")
def _scatter_reduce(
    e: AtenCall,
    x: Symbol,
    dim: int,
    index: Symbol,
    updates: Symbol,
    way: str,
    include_self: bool = True,
) -> Emitted:
    if not x.rank or not index.rank:
        return None
    axis: int = dim % x.rank
    updates = _cut_like(e, updates, index)
    reduce = _reduced if way in _REDUCTIONS else _sums
    return reduce(e, x, axis, index, updates, way, include_self)


@row("index_add")
def _index_add(
    e: AtenCall, x: Symbol, dim: int, index: Symbol, updates: Symbol, *, alpha: Operand = 1
) -> Emitted:
    """PyTorch rounds each sum, unless it fuses the product by alpha, as it does of several axes.

    It rounds once the sums of halves along the first or last of several axes, by int64 (2.13).
    """
    if not x.rank:
        return None
    updates = updates if alpha == 1 else e(ops.multiply, updates, alpha)
    axis: int = dim % x.rank
    index = e.shaped(index, (sizes(updates)[axis],))
    once = x.rank > 1 and axis in (0, x.rank - 1) and index.dtype is DType.int64
    return _added(e, x, updates, index, axis, once)


@row("index_put", "_unsafe_index_put", "_index_put_impl")
def _index_put(
    e: AtenCall,
    x: Symbol,
    indices: Operand,
    values: Operand,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Emitted:
    """On several threads PyTorch adds float32 in any order; otherwise one after another."""
    mask = indices[0]
    if len(indices) == 1 and mask.dtype is DType.bool and not values.rank and not accumulate:
        mask = e.shaped(mask, (*sizes(mask), *[1] * (x.rank - mask.rank)))
        return e(ops.where, mask, values, x)
    parts = _indexed_axis(e, x, indices)
    if parts is None:
        return None
    op = ops.index_add if accumulate else ops.index_update
    return e.shaped(e(op, parts[0], values, parts[2], axis=parts[1]), x.shape)


@row("embedding_dense_backward")
def _embedding_backward(
    e: AtenCall, grad: Symbol, indices: Symbol, count: int, padding_index: int, by_frequency: bool
) -> Emitted:
    if by_frequency:
        return None
    width = sizes(grad)[-1]
    places = e.cast(e.shaped(indices, (prod(sizes(indices)),)), DType.int64)
    rows = e.shaped(grad, (*sizes(places), width))
    if padding_index >= 0:
        is_padding = e.shaped(e(ops.equal, places, padding_index), (*sizes(places), 1))
        rows = e(ops.where, is_padding, e.graph.full(0, (), grad.dtype), rows)
    zeros = e.graph.full(0, (count, width), grad.dtype)
    return e(ops.index_add, zeros, rows, places, axis=0)
