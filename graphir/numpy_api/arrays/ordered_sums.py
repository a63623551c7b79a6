"""Sums in the order of memory: NumPy adds along the axes in the order of their strides.

A sum of an array whose axes lie in another order is that of its transpose. Where strides or masks
decide how NumPy adds floats, the op numpy_sum has the layout as an attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from graphir.dtypes import DType
from graphir.numpy_api import reductions
from graphir.numpy_api.arrays.memory import ArrayValue, LayoutUse, OrderError, TraceMemory
from graphir.numpy_api.movement import axes_of
from graphir.numpy_api.ufuncs import DirectAdder
from graphir.semantics.library_calls import Function, Keywords
from graphir.semantics.sums import SumOrder, layout_of_sum, rounds_each_sum

_SUMS = np.sum, np.prod, np.mean, np.var, np.std
_SKIPPING_NAN: dict[Callable[..., Any], Callable[..., Any]] = {
    np.nansum: np.sum,
    np.nanprod: np.prod,
    np.nanmean: np.mean,
    np.nanvar: np.var,
    np.nanstd: np.std,
}
"""The sums that skip NaN, each with the function that adds a copy without NaN, whose axes lie in
the order of the original's."""
_REDUCTIONS: dict[np.ufunc, Callable[..., Any]] = {np.add: np.sum, np.multiply: np.prod}
_SETTINGS = {"axis", "dtype", "keepdims", "ddof", "correction", "where", "initial"} | {
    *("offset", "axis1", "axis2")  # of np.trace
}
"""The parameters of the functions that add in the order of memory."""


def sum_of_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Keywords) -> Any:
    """Return the result of a reduction in the order of memory, or None for other calls."""
    if method != "reduce" or ufunc not in _REDUCTIONS:
        return None
    return _in_memory_order(_REDUCTIONS[ufunc], inputs, {"axis": 0, **kwargs})


def sum_of_function(function: Function, args: Sequence[Any], kwargs: Keywords) -> Any:
    """Return the result of a function that adds in the order of memory, or None for other calls."""
    if not kwargs.keys() <= _SETTINGS:
        return None
    if function is np.trace:
        return _trace(*args, **kwargs)
    if function not in _SUMS and function not in _SKIPPING_NAN:
        return None
    return _in_memory_order(function, args, kwargs)


def _in_memory_order(function: Function, args: Sequence[Any], kwargs: Keywords) -> Any:
    """Return a sum over the axes of an array in the order of its memory, as NumPy adds.

    The result is None where the op adds so. The order of checks:

    - Vectors, and operands other than arrays of a known layout, have no order of axes.
    - A function that skips NaN adds a copy, whose layout the later checks take. Integers have no
      NaN, and no copy.
    - Axes that lie in order, or are broadcast, leave the decision to the strides (`_strided`).
    - So do sums of axes out of order with a mask or a start. Such products have no op.
    - All other sums are those of the transpose whose axes lie in order.
    """
    x: Any = args[0] if args else None
    if not isinstance(x, ArrayValue) or len(args) > 2:
        return None
    array, view = cast("Any", x), x.layout
    if view is None or (view.ndim < 2 and view.flags.aligned):
        return None
    if function in _SKIPPING_NAN:
        if not array.element.is_inexact:  # without NaN, nor copies
            return _in_memory_order(_SKIPPING_NAN[function], args, kwargs)
        view = np.empty_like(view)
    order = sorted(range(view.ndim), key=lambda i: -abs(view.strides[i]))
    if 0 in view.strides or order == [*range(view.ndim)]:
        return _strided(function, args, kwargs)
    whole = kwargs.get("where", True) is True and kwargs.get("initial") is None
    if not whole and function in _SUMS and function is not np.prod:
        return _strided(function, args, kwargs)
    if not whole and (function is not np.prod or array.element.is_inexact):
        raise OrderError(
            f"np.{function.__name__} with where= or initial= adds along the axes as they lie in "
            "memory",
            fix="pass x.copy()",
        )
    if not {*kwargs} <= {"axis", "dtype", "keepdims", "ddof"}:
        return None
    axis: Any = args[1] if len(args) > 1 else kwargs.get("axis")
    return _transposed(function, array, order, axis, kwargs)


def _transposed(
    function: Function, array: Any, order: Sequence[int], axis: Any, kwargs: Keywords
) -> Any:
    """Return a sum of an array by that of its transpose, whose axes `order` puts in order."""
    rank, keeps = len(order), bool(kwargs.get("keepdims"))
    reordered = array.transpose(order)
    if axis is None:
        result = function(reordered, **{**kwargs, "keepdims": False})
        return result.reshape((1,) * rank) if keeps else result
    several = cast("tuple[int, ...]", axis if isinstance(axis, tuple) else (axis,))
    axes = tuple(each % rank for each in several)
    places = tuple(order.index(each) for each in axes)
    result = function(reordered, **{**kwargs, "axis": places, "keepdims": True})
    result = result.transpose([order.index(each) for each in range(rank)])
    return result if keeps else result.squeeze(axes)[()]


def _strided(function: Function, args: Sequence[Any], kwargs: Keywords) -> Any:
    """Return a sum of floats over a view whose strides decide how NumPy adds; None for others."""
    array, axis = args[0], args[1] if len(args) > 1 else kwargs.get("axis")
    view, where = array.layout, kwargs.get("where", True)
    axes = range(view.ndim) if axis is None else axes_of(array.read(), axis)
    is_rounded = array.element is DType.float16 and function is not np.mean
    if is_rounded and rounds_each_sum(view.shape, axes):
        raise OrderError(
            "NumPy rounds each step of a float16 sum along an axis before the last",
            fix="write x.sum(axis, dtype=np.float32).astype(np.float16)",
        )
    dtype = np.dtype(kwargs.get("dtype") or view.dtype)
    is_exact = dtype.kind not in "fc" and function is np.sum
    if is_exact or function is np.prod or function not in _SUMS:
        return None
    memory: TraceMemory = array.memory
    mask: Any = where
    if isinstance(where, ArrayValue):
        mask, where = where.layout, where.read()
    layout = layout_of_sum(view, axes, np.asarray(mask))
    memory.reads_layouts(LayoutUse.STRIDES)
    buffered = not view.flags.aligned
    if layout is None and not buffered:
        return None
    settings = {**kwargs, "axis": tuple(axes), "where": where}
    order = SumOrder(layout=layout, buffered=buffered)
    result = reductions.reduction_in_order(
        DirectAdder(memory.graph), function.__name__, array.read(), settings, order
    )
    return memory.value_of(result, scalar=True)


def _trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Any:
    """Return the trace as NumPy adds it: a sum over a view of the diagonals."""
    diagonals = np.diagonal(a, offset, axis1, axis2)
    return np.sum(np.moveaxis(diagonals, -1, 0), axis=0, dtype=dtype, out=out)
