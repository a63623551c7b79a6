"""Rows of writes that combine with what is there: each place reduces the updates that name it.

The updates are compared with all places, so that memory is their number times that of places. An op
beyond MOST of these is a call.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from graphir import DType, Symbol, ops
from runtime.sources.torch_.rows import RowCall, cut_like, indexed_axis, row, sizes
from runtime.sources.torch_.windows import ROWS

__all__ = ["ROWS"]

MOST = 1 << 24
"""The most comparisons of an update with a place, times the elements of each."""

_REDUCTIONS = {
    "sum": (ops.sum, ops.add, 0),
    "mean": (ops.sum, ops.add, 0),
    "prod": (ops.prod, ops.multiply, 1),
    "amax": (ops.max, ops.maximum, float("-inf")),
    "amin": (ops.min, ops.minimum, float("inf")),
}


def _reduced(
    e: RowCall, x: Symbol, axis: int, index: Symbol, updates: Symbol, way: str, own: bool = True
) -> Symbol | None:
    """Return x with the updates that name each place along an axis reduced, with x if `own`.

    `index` has the rank of x; its other axes broadcast to those of `updates`.
    """
    reduction, combine, start = _REDUCTIONS[way]
    size, shape = sizes(x)[axis], (*sizes(updates)[:axis], *sizes(updates)[axis + 1 :])
    if shape != (*sizes(x)[:axis], *sizes(x)[axis + 1 :]):
        return None
    if prod(sizes(updates)) * size > MOST or (way == "mean" and not x.dtype.is_float):
        return None
    if x.dtype.is_integer:
        limits = np.iinfo(x.dtype.storage)
        start = {"amax": limits.min, "amin": limits.max}.get(way, start)
    places = e.shaped(e.places(np.arange(size)), (size, *[1] * (x.rank - axis)))
    mask = e(ops.equal, e(ops.unsqueeze, index, axis=axis), places)
    fill = e.graph.constant_of((x.dtype, np.asarray(start, x.dtype.storage)))
    values = e(ops.where, mask, e(ops.unsqueeze, updates, axis=axis), fill)
    dtype = {"dtype": x.dtype} if x.dtype.is_integer and way in ("sum", "prod") else {}
    result = e(reduction, values, axis=(axis + 1,), **dtype)
    if own:
        total = e(combine, x, result)
        is_signed = x.dtype.is_float and way == "sum"  # -0.0 stays where nothing is added
        result = e(ops.where, e(ops.equal, result, 0), x, total) if is_signed else total
    updates_any = e(ops.any, mask, axis=(axis + 1,))
    if way == "mean":
        count = e(ops.sum, mask, axis=(axis + 1,))
        count = e(ops.add, count, 1) if own else e(ops.maximum, count, 1)
        result = e(ops.divide, result, count)
    return result if own else e(ops.where, updates_any, result, x)


@row("scatter_add")
def _scatter_add(e: RowCall, x: Any, dim: int, index: Any, updates: Any) -> Any:
    return _scatter_reduce(e, x, dim, index, updates, "sum")


@row("scatter_reduce")
def _scatter_reduce(
    e: RowCall, x: Any, dim: int, index: Any, updates: Any, way: str, include_self: bool = True
) -> Any:
    if not x.rank or not index.rank:
        return None
    axis: int = dim % x.rank
    updates = cut_like(e, updates, index)
    return _reduced(e, x, axis, index, updates, way, include_self)


@row("index_add")
def _index_add(e: RowCall, x: Any, dim: int, index: Any, updates: Any, *, alpha: Any = 1) -> Any:
    if not x.rank:
        return None
    axis: int = dim % x.rank
    updates = updates if alpha == 1 else e(ops.multiply, updates, alpha)
    shape = (*[1] * axis, sizes(updates)[axis], *[1] * (x.rank - axis - 1))
    return _reduced(e, x, axis, e.shaped(index, shape), updates, "sum")


def accumulated(e: RowCall, x: Any, indices: Any, values: Any) -> Symbol | None:
    """Return x with values added at indices."""
    parts = indexed_axis(e, x, indices)
    if parts is None:
        return None
    whole, axis, places = parts
    before, after = sizes(whole)[:axis], sizes(whole)[axis + 1 :]
    values = e.spread(values, (*before, *sizes(places), *after))
    count = prod(sizes(places))
    values, places = e.shaped(values, (*before, count, *after)), e.shaped(places, (count,))
    if len([index for index in indices if index is not None]) == 1:
        negative = e(ops.less, places, 0)
        places = e(ops.where, negative, e(ops.add, places, sizes(whole)[axis]), places)
    result = _index_add(e, whole, axis, places, values)
    return None if result is None else e.shaped(result, x.shape)


_index_put = ROWS["index_put"]


@row("index_put", "_unsafe_index_put", "_index_put_impl")
def _put(
    e: RowCall, x: Any, indices: Any, values: Any, accumulate: bool = False, unsafe: bool = False
) -> Any:
    return accumulated(e, x, indices, values) if accumulate else _index_put(e, x, indices, values)


@row("embedding_dense_backward")
def _embedding_backward(
    e: RowCall, grad: Any, indices: Any, count: int, padding_index: int, by_frequency: bool
) -> Any:
    if by_frequency:
        return None
    width = sizes(grad)[-1]
    places = e.cast(e.shaped(indices, (prod(sizes(indices)),)), DType.int64)
    rows = e.shaped(grad, (*sizes(places), width))
    if padding_index >= 0:
        is_padding = e.shaped(e(ops.equal, places, padding_index), (*sizes(places), 1))
        rows = e(ops.where, is_padding, e.graph.full(0, (), grad.dtype), rows)
    zeros = e.graph.full(0, (count, width), grad.dtype)
    return _index_add(e, zeros, 0, places, rows)
