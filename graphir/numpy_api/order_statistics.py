"""NumPy's quantiles, orders by several keys and places of extremes on symbols, by sorting.

NumPy partitions where this module sorts. The selected elements are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphError, ShapeError
from graphir.ir.symbol import Symbol
from graphir.numpy_api.movement import as_symbols, axes_of, flat, moveaxis
from graphir.numpy_api.statistics import gathered_axes
from graphir.ops.op import Op

Function = Callable[..., Any]


def quantiles(
    arr: Symbol,
    quantiles: Any,
    axis: int = -1,
    method: str = "linear",
    weights: Any = None,
    weak_q: bool = False,
) -> Symbol:
    """Return quantiles along the first axis of the result, as NumPy's private `_quantile` does.

    NumPy's own tables give the places of the quantiles and the weights of the interpolation.
    """
    if weights is not None or isinstance(quantiles, Symbol):
        raise GraphError("the places of weighted or computed quantiles depend on values")
    try:
        numpy_impl: Any = import_module("numpy.lib._function_base_impl")
        table: Any = numpy_impl._QuantileMethods[method]
    except (ImportError, AttributeError):
        raise GraphError("this version of NumPy has no table of quantile methods") from None
    x = ops.sort(moveaxis(arr, axis, 0), axis=0)
    size = x.shape[0]
    if not isinstance(size, int) or not size:
        raise ShapeError("quantiles need an axis of known size above 0", got=str(arr.type))
    virtual: Any = np.asanyarray(table["get_virtual_index"](size, quantiles))
    whole = virtual.dtype.kind in "iu"
    if table["fix_gamma"] is None or (method == "linear" and whole):
        result = ops.gather(x, virtual, axis=0)
    else:
        before, after = numpy_impl._get_indexes(np.empty(size), virtual, size)
        gamma: Any = numpy_impl._get_gamma(virtual, before, table)
        weight = float(gamma) if weak_q else gamma.reshape(virtual.shape + (1,) * (x.rank - 1))
        low, high = (_picked(x, places) for places in (before, after))
        difference = high - low
        upper = np.asarray(gamma >= 0.5).reshape(virtual.shape + (1,) * (x.rank - 1))
        result = ops.where(upper, high - difference * (1 - weight), low + difference * weight)
    if not x.dtype.is_inexact:
        return result
    if result.dtype is not x.dtype and not result.rank:
        raise GraphError("the dtype depends on whether an element is NaN", fix="cast x first")
    last = x[-1].cast(result.dtype)
    return ops.where(ops.is_nan(last), last, result)


def _picked(x: Symbol, places: NDArray[Any]) -> Symbol:
    return ops.gather(x, np.where(places < 0, places + int(str(x.shape[0])), places), axis=0)


def _nanmedian(a: Symbol, axis: Any = None, *, keepdims: bool = False) -> Symbol:
    """Return the mean of the one or two middle elements that are not NaN."""
    if a.dtype is DType.float16 or not a.dtype.is_float:
        raise GraphError(f"nanmedian of {a.dtype} has no op", fix="cast x to float64 first")
    line, kept_shape = gathered_axes(a, axis)
    line = ops.sort(line, axis=-1)
    count = ops.sum(ops.logical_not(ops.is_nan(line)), axis=-1, keepdims=True, dtype="int64")
    low, high = (
        ops.take_along(line, ops.maximum((count + up) // 2 - 1 + (1 - up), 0), axis=-1)
        for up in (1, 0)
    )
    middle = ops.where((count & 1) == 1, low, (low + high) / 2)
    middle = ops.where(count == 0, a.graph.full(np.nan, (), a.dtype), middle)
    middle = ops.squeeze(middle, -1)
    return ops.reshape(middle, kept_shape) if keepdims else middle


def checked(places: Symbol, valid: Symbol, size: Any) -> Symbol:
    """Return places in an axis of a size; the run raises an error where `valid` is false."""
    line = places.graph.range(size, dtype="int64")
    return ops.gather(line, ops.where(valid, places, size), axis=0)


def demanded(x: Symbol, valid: Symbol) -> Symbol:
    """Return x; the run raises an error unless `valid`, a bool, is true."""
    return ops.gather(ops.unsqueeze(x, 0), ops.where(valid, 0, 1), axis=0)


def _nan_located(op: Op, least: float) -> Function:
    def locate(a: Symbol, axis: Any = None, *, keepdims: Any = False) -> Symbol:
        if not a.dtype.is_inexact:
            return op(a, axis=axis, keepdims=keepdims)
        missing = ops.is_nan(a)
        x = ops.where(missing, a.graph.full(least, (), a.dtype), a)
        valid = ops.logical_not(ops.all(missing, axis=axis, keepdims=keepdims))
        size = a.size if axis is None else a.shape[axes_of(a, axis)[0]]
        return checked(op(x, axis=axis, keepdims=keepdims), valid, size)

    return locate


def _lexsort(keys: Any, axis: int = -1) -> Symbol:
    """Return the order by the last key, then by the key before it: stable sorts in turn."""
    several: Sequence[Any] = (
        [keys[i] for i in range(int(str(keys.shape[0])))] if isinstance(keys, Symbol) else keys
    )
    first, *others = as_symbols(*several)
    order = ops.argsort(first, axis=axis)
    for key in others:
        by = ops.argsort(ops.take_along(key, order, axis=axis), axis=axis)
        order = ops.take_along(order, by, axis=axis)
    return order


def _partition(a: Any, kth: Any, axis: Any = -1) -> Symbol:
    raise GraphError(
        "NumPy leaves open in which order the elements of a part stand",
        fix="use np.sort(x), or np.sort(x)[k]",
    )


def _argpartition(a: Any, kth: Any, axis: Any = -1) -> Symbol:
    raise GraphError(
        "NumPy leaves open in which order the elements of a part stand",
        fix="use np.argsort(x, kind='stable')",
    )


def _isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
) -> Symbol:
    """Return whether each element equals one of others."""
    x, y = as_symbols(element, test_elements)
    y = flat(y)
    if isinstance(x.size, int) and isinstance(y.size, int) and x.size * y.size <= 2**22:
        hits = ops.any(ops.unsqueeze(x, x.rank) == y, axis=-1)
    else:
        raise GraphError("every pair of elements is compared: too many", got=f"{x.type}, {y.type}")
    return ops.logical_not(hits) if invert else hits


ORDER_STATISTICS: dict[str, Function] = {
    "nanmedian": _nanmedian,
    "nanargmax": _nan_located(ops.argmax, -np.inf),
    "nanargmin": _nan_located(ops.argmin, np.inf),
    "lexsort": _lexsort,
    "partition": _partition,
    "argpartition": _argpartition,
    "isin": _isin,
}
"""The implementations by the function's path in numpy."""
