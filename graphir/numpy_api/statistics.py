"""NumPy's statistics on symbols: reductions without NaN, and medians."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from graphir import ops
from graphir.dtypes import DType, numpy_code
from graphir.errors import PromotionError, ShapeError
from graphir.ir.symbol import Symbol
from graphir.numpy_api.movement import axes_of
from graphir.numpy_api.reductions import masked
from graphir.numpy_api.ufuncs import DirectAdder
from graphir.ops.dims import Size
from graphir.ops.op import Op

Function = Callable[..., Any]


def _like(x: Symbol, value: float) -> Symbol:
    """Return a number as a symbol in the dtype of a symbol."""
    return x.graph.full(value, (), x.dtype)


# -- without NaN


def _without_nan(a: Symbol, instead: float) -> Symbol:
    """Return a symbol with each NaN replaced by a number."""
    return ops.where(ops.is_nan(a), _like(a, instead), a) if a.dtype.is_inexact else a


def _nan_adding(op: Op, neutral: int) -> Function:
    def reduce(a: Symbol, axis: Any = None, dtype: Any = None, *, keepdims: Any = False) -> Symbol:
        a = _without_nan(a, neutral)
        return masked.reduced(DirectAdder(a.graph), op, a, axis, keepdims, dtype)

    return reduce


def _nan_choosing(op: Op, least: float) -> Function:
    """Return the function of an extreme without NaN; it gives NaN where all elements are NaN."""

    def reduce(a: Symbol, axis: Any = None, *, keepdims: Any = False) -> Symbol:
        if not a.dtype.is_inexact:
            return op(a, axis=axis, keepdims=keepdims)
        none = ops.all(ops.is_nan(a), axis=axis, keepdims=keepdims)
        extreme = op(_without_nan(a, least), axis=axis, keepdims=keepdims)
        return ops.where(none, _like(a, np.nan), extreme)

    return reduce


def _count(a: Symbol, axis: Any, keepdims: Any) -> Symbol:
    """Return the number of elements that are not NaN."""
    there = ops.logical_not(ops.is_nan(a))
    return ops.sum(there, axis=axis, keepdims=keepdims, dtype="int64")


def _shared_out(total: Symbol, count: Symbol) -> Symbol:
    wider = DType.complex128 if total.dtype.is_complex else DType.float64
    return (total.cast(wider) / count.cast(wider)).cast(total.dtype)


def _nanmean(a: Symbol, axis: Any = None, dtype: Any = None, *, keepdims: Any = False) -> Symbol:
    build = DirectAdder(a.graph)
    if not a.dtype.is_inexact:
        to = None if dtype is None else DType(dtype)
        return masked.mean(build, a, axis, keepdims, to)
    total = masked.reduced(build, ops.sum, _without_nan(a, 0), axis, keepdims, dtype)
    return _shared_out(total, _count(a, axis, keepdims))


def _nanvar(
    a: Symbol, axis: Any = None, dtype: Any = None, *, ddof: int = 0, keepdims: Any = False
) -> Symbol:
    to = spread_dtype(a, dtype)
    if not a.dtype.is_inexact:
        return masked.spread(DirectAdder(a.graph), ops.var, a, axis, keepdims, to, correction=ddof)
    a = a if to is None else a.cast(to)
    off = ops.where(ops.is_nan(a), _like(a, 0), a - _nanmean(a, axis, keepdims=True))
    squares = ops.real(off * ops.conj(off)) if a.dtype.is_complex else off * off
    total, freedom = (
        ops.sum(squares, axis=axis, keepdims=keepdims),
        _count(a, axis, keepdims) - ddof,
    )
    return ops.where(freedom > 0, _shared_out(total, freedom), _like(total, np.nan))


def _nanstd(
    a: Symbol, axis: Any = None, dtype: Any = None, *, ddof: int = 0, keepdims: Any = False
) -> Symbol:
    variance = _nanvar(a, axis, dtype, ddof=ddof, keepdims=keepdims)
    return ops.sqrt(variance).cast(variance.dtype)


# -- order statistics


def gathered_axes(a: Symbol, axis: Any) -> tuple[Symbol, tuple[Size, ...]]:
    """Return a symbol with the given axes as one last axis, and the shape that keeps them as 1."""
    axes = list(range(a.rank)) if axis is None else axes_of(a, axis)
    other_axes = [i for i in range(a.rank) if i not in axes]
    sizes: list[Size] = [a.shape[i] for i in axes]
    if not all(isinstance(size, int) for size in sizes):
        raise ShapeError("the median needs an axis of known size", got=str(a.type))
    count = prod(int(str(size)) for size in sizes)
    shape = tuple(a.shape[i] for i in other_axes)
    line = ops.reshape(ops.permute(a, (*other_axes, *axes)), (*shape, count))
    return line, tuple(1 if i in axes else size for i, size in enumerate(a.shape))


def _median(a: Symbol, axis: Any = None, *, keepdims: bool = False) -> Symbol:
    """Return the mean of the one or two middle elements, or NaN if an element is NaN."""
    line, kept_shape = gathered_axes(a, axis)
    line, count = ops.sort(line, axis=-1), int(str(line.shape[-1]))
    middle = ops.mean(line[..., max(count - 1, 0) // 2 : count // 2 + 1], axis=-1)
    if count and a.dtype.is_inexact:
        middle = ops.where(ops.is_nan(line[..., -1]), _like(middle, np.nan), middle)
    return ops.reshape(middle, kept_shape) if keepdims else middle


def spread_dtype(a: Symbol, dtype: Any) -> DType | None:
    """The dtype that the caller names for a variance, a real float; None for none."""
    if dtype is None:
        return None
    to = DType(numpy_code(dtype))
    if not to.is_float or a.dtype.is_complex:
        raise PromotionError(
            f"no op computes a variance of {a.dtype} in {to}", fix="use x.astype(...) first"
        )
    return to


STATISTICS: dict[str, Function] = {
    "nansum": _nan_adding(ops.sum, 0),
    "nanprod": _nan_adding(ops.prod, 1),
    "nanmax": _nan_choosing(ops.max, -np.inf),
    "nanmin": _nan_choosing(ops.min, np.inf),
    "nanmean": _nanmean,
    "nanvar": _nanvar,
    "nanstd": _nanstd,
    "median": _median,
}
"""The implementations by the function's path in numpy."""
