"""NumPy's statistics on symbols: reductions without NaN, medians, quantiles, averages, counts.

An error of NumPy that depends on values, as a count of a place beyond the result, is an error of
the run.
"""

from __future__ import annotations

import operator
from importlib import import_module
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir import ops
from graphir.dtypes import DType, DTypeLike, numpy_code
from graphir.errors import GraphError, PromotionError, ShapeError
from graphir.hints import ArrayOrNumber, Ints, NumPyCode
from graphir.ir.symbol import Symbol
from graphir.numpy_api import reductions
from graphir.numpy_api.movement import as_symbols, axes_of, checked, flat, moveaxis
from graphir.numpy_api.products import wide
from graphir.numpy_api.reductions import ReductionArguments
from graphir.numpy_api.ufuncs import DirectAdder
from graphir.ops.dims import Size
from graphir.ops.op import Op
from graphir.semantics.library_calls import Function


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
        return reductions.reduced(
            DirectAdder(a.graph), op, a, ReductionArguments(axis, keepdims, dtype)
        )

    return reduce


def _nan_choosing(op: Op, least: float) -> Function:
    """Return the function of an extreme without NaN; it gives NaN where all elements are NaN."""

    def reduce(a: Symbol, axis: Ints | None = None, *, keepdims: bool = False) -> Symbol:
        if not a.dtype.is_inexact:
            return op(a, axis=axis, keepdims=keepdims)
        none = ops.all(ops.is_nan(a), axis=axis, keepdims=keepdims)
        extreme = op(_without_nan(a, least), axis=axis, keepdims=keepdims)
        return ops.where(none, _like(a, np.nan), extreme)

    return reduce


def _count(a: Symbol, axis: Ints | None, keepdims: bool) -> Symbol:
    """Return the number of elements that are not NaN."""
    there = ops.logical_not(ops.is_nan(a))
    return ops.sum(there, axis=axis, keepdims=keepdims, dtype="int64")


def _nanmean(a: Symbol, axis: Any = None, dtype: Any = None, *, keepdims: Any = False) -> Symbol:
    build = DirectAdder(a.graph)
    if not a.dtype.is_inexact:
        to = None if dtype is None else DType(dtype)
        return reductions.mean(build, a, ReductionArguments(axis, keepdims, to))
    arguments = ReductionArguments(axis, keepdims, dtype)
    total = reductions.reduced(build, ops.sum, _without_nan(a, 0), arguments)
    return reductions.shared_out(build, total, _count(a, axis, keepdims))


def _nanvar(
    a: Symbol, axis: Any = None, dtype: Any = None, *, ddof: int = 0, keepdims: Any = False
) -> Symbol:
    build, to = DirectAdder(a.graph), spread_dtype(a, dtype)
    if not a.dtype.is_inexact:
        return reductions.spread(build, ops.var, a, ReductionArguments(axis, keepdims, to), ddof)
    a = a if to is None else a.cast(to)
    off = ops.where(ops.is_nan(a), _like(a, 0), a - _nanmean(a, axis, keepdims=True))
    squares = ops.real(off * ops.conj(off)) if a.dtype.is_complex else off * off
    total, freedom = (
        ops.sum(squares, axis=axis, keepdims=keepdims),
        _count(a, axis, keepdims) - ddof,
    )
    mean = reductions.shared_out(build, total, freedom)
    return ops.where(freedom > 0, mean, _like(total, np.nan))


def _nanstd(
    a: Symbol, axis: Any = None, dtype: Any = None, *, ddof: int = 0, keepdims: Any = False
) -> Symbol:
    variance = _nanvar(a, axis, dtype, ddof=ddof, keepdims=keepdims)
    return ops.sqrt(variance).cast(variance.dtype)


# -- order statistics


def gathered_axes(a: Symbol, axis: Ints | None) -> tuple[Symbol, tuple[Size, ...]]:
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


def _median(a: Symbol, axis: Ints | None = None, *, keepdims: bool = False) -> Symbol:
    """Return the mean of the one or two middle elements, or NaN if an element is NaN."""
    line, kept_shape = gathered_axes(a, axis)
    line, count = ops.sort(line, axis=-1), int(str(line.shape[-1]))
    middle = ops.mean(line[..., max(count - 1, 0) // 2 : count // 2 + 1], axis=-1)
    if count and a.dtype.is_inexact:
        middle = ops.where(ops.is_nan(line[..., -1]), _like(middle, np.nan), middle)
    return ops.reshape(middle, kept_shape) if keepdims else middle


def quantiles(
    arr: Symbol,
    quantiles: ArrayOrNumber,
    axis: int = -1,
    method: str = "linear",
    weights: ArrayOrNumber | None = None,
    weak_q: bool = False,
) -> Symbol:
    """Return quantiles along the first axis of the result, as NumPy's private `_quantile` does.

    NumPy partitions where this function sorts; the selected elements are the same.
    """
    if weights is not None or isinstance(quantiles, Symbol):
        raise GraphError("the places of weighted or computed quantiles depend on values")
    x = ops.sort(moveaxis(arr, axis, 0), axis=0)
    size = x.shape[0]
    if not isinstance(size, int) or not size:
        raise ShapeError("quantiles need an axis of known size above 0", got=str(arr.type))
    places, neighbours = _quantile_places(method, size, quantiles)
    if neighbours is None:
        result = ops.gather(x, places, axis=0)
    else:
        before, after, gamma = neighbours
        shape = places.shape + (1,) * (x.rank - 1)
        weight = float(gamma) if weak_q else gamma.reshape(shape)
        low, high = (_picked(x, indices) for indices in (before, after))
        difference = high - low
        upper = np.asarray(gamma >= 0.5).reshape(shape)
        result = ops.where(upper, high - difference * (1 - weight), low + difference * weight)
    if not x.dtype.is_inexact:
        return result
    if result.dtype is not x.dtype and not result.rank:
        raise GraphError("the dtype depends on whether an element is NaN", fix="cast x first")
    last = x[-1].cast(result.dtype)
    return ops.where(ops.is_nan(last), last, result)


def _quantile_places(method: str, size: int, quantiles: ArrayOrNumber) -> tuple[Any, Any]:
    """Return the places of quantiles among `size` sorted elements, by NumPy's private tables.

    Beside the places stand None, or for places between elements: the elements before and after
    each place, and the weight of the latter. Nothing else here reads what is private to NumPy.
    """
    try:
        numpy_impl: Any = import_module("numpy.lib._function_base_impl")
        table: Any = numpy_impl._QuantileMethods[method]
    except (ImportError, AttributeError):
        raise GraphError("this version of NumPy has no table of quantile methods") from None
    places: Any = np.asanyarray(table["get_virtual_index"](size, quantiles))
    if table["fix_gamma"] is None or (method == "linear" and places.dtype.kind in "iu"):
        return places, None
    before, after = numpy_impl._get_indexes(np.empty(size), places, size)
    return places, (before, after, numpy_impl._get_gamma(places, before, table))


def _picked(x: Symbol, places: NDArray[Any]) -> Symbol:
    return ops.gather(x, np.where(places < 0, places + int(str(x.shape[0])), places), axis=0)


# -- weighted sums


def _average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    if weights is None:
        mean = reductions.mean(DirectAdder(a.graph), a, ReductionArguments(axis, keepdims))
        count = a.size if axis is None else prod(a.shape[i] for i in axes_of(a, axis))
        return (mean, ops.broadcast_to(_like(mean, count), mean.shape)) if returned else mean
    a, weights = as_symbols(a, weights)
    if weights.shape != a.shape:
        if not isinstance(axis, int) or weights.shape != (a.shape[axis],):
            raise ShapeError(
                f"weights of {weights.type} for {a.type}", fix="give the one axis they lie on"
            )
        along = [1] * a.rank
        along[axis] = weights.shape[0]  # pyright: ignore[reportArgumentType, reportCallIssue]
        weights = ops.reshape(weights, tuple(along))
    products = wide(a) * weights
    if weights.shape != a.shape:
        weights = ops.broadcast_to(weights, a.shape)
    build = DirectAdder(weights.graph)
    arguments = ReductionArguments(axis, keepdims, products.dtype)
    total = reductions.reduced(build, ops.sum, weights, arguments)
    mean = ops.sum(products, axis=axis, keepdims=keepdims) / total
    return (mean, total) if returned else mean


def spread_dtype(a: Symbol, dtype: DTypeLike | NumPyCode | None) -> DType | None:
    """The dtype that the caller names for a variance, a real float; None for none."""
    if dtype is None:
        return None
    to = DType(numpy_code(dtype))
    if not to.is_float or a.dtype.is_complex:
        raise PromotionError(
            f"no op computes a variance of {a.dtype} in {to}", fix="use x.astype(...) first"
        )
    return to


# -- counts


def _bincount(x: ArrayOrNumber, weights: ArrayOrNumber | None = None, minlength: Any = 0) -> Symbol:
    size = operator.index(minlength)
    places, *rest = as_symbols(x, *([] if weights is None else [weights]))
    if places.rank != 1 or any(w.shape != places.shape or w.dtype.is_complex for w in rest):
        raise ShapeError("bincount takes a vector, and as many real weights")
    if places.dtype is DType.uint64 or not (places.dtype.is_integer or places.dtype is DType.bool):
        raise GraphError(f"bincount does not count {places.dtype}", fix="use .astype(int)")
    if size < 1:
        raise GraphError(
            "the size of the result depends on values",
            fix="pass minlength=, above every element, as in np.bincount(x, minlength=256)",
        )
    if places.dtype is not DType.bool or size < 2:
        places = places.cast("int64")
        places = checked(places, (places >= 0) & (places < size), size)
    places = places.cast("int64")
    if not rest:
        return ops.index_add(places.graph.full(0, (size,), "int64"), 1, places)
    zeros = places.graph.full(0.0, (size,), "float64")
    return ops.index_add(zeros, rest[0].cast("float64"), places)


def _isin(
    element: ArrayOrNumber,
    test_elements: ArrayOrNumber,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | bytes | None = None,
) -> Symbol:
    """Return whether each element equals one of others."""
    x, y = as_symbols(element, test_elements)
    y = flat(y)
    if isinstance(x.size, int) and isinstance(y.size, int) and x.size * y.size <= 2**22:
        hits = ops.any(ops.unsqueeze(x, x.rank) == y, axis=-1)
    else:
        raise GraphError("every pair of elements is compared: too many", got=f"{x.type}, {y.type}")
    return ops.logical_not(hits) if invert else hits


STATISTICS: dict[str, Function] = {
    "nansum": _nan_adding(ops.sum, 0),
    "nanprod": _nan_adding(ops.prod, 1),
    "nanmax": _nan_choosing(ops.max, -np.inf),
    "nanmin": _nan_choosing(ops.min, np.inf),
    "nanmean": _nanmean,
    "nanvar": _nanvar,
    "nanstd": _nanstd,
    "median": _median,
    "average": _average,
    "bincount": _bincount,
    "isin": _isin,
}
"""The implementations by the function's path in numpy."""
