"""The ops of ndarray methods that do not dispatch to a ufunc, and of products.

Each recording function takes `(recorder, values, x, *args, **kwargs)`: the values of the array, its
symbol, and the arguments of the method. It returns the symbol of the result. Products record the
memory layouts by which BLAS rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature, signature
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphir.numpy_api.functions import FUNCTIONS
from graphir.numpy_api.reductions import reduction_in_order
from graphir.numpy_api.view_steps import Pick
from graphir.public import Symbol, ops
from graphir.runtime.recording.numpy_ import dates
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.values import Result, UnrecordedError, plain, plains
from graphir.semantics.library_calls import leaves
from graphir.semantics.matrix_products import layout_of, uses_blas
from graphir.semantics.sums import SumOrder, layout_of_sum

Symbolic = Callable[..., Symbol]


# -- methods that are functions


def in_ops(function: Callable[..., Any], operands: int = 1) -> Symbolic:
    """Return the function that records a NumPy function by its counterpart on symbols.

    The first `operands` arguments are operands, and so are arrays among the others; all else are
    settings.
    """
    takes = _signature(function)

    def enter(recorder: Recorder, real: Result, *args: Any, **kwargs: Any) -> Symbol:
        bound = takes.bind(*args, **kwargs)
        bound.arguments.pop("casting", None)  # NumPy has checked the casts already
        symbols: list[Any] = []
        settings: dict[str, Any] = {}
        for place, (name, value) in enumerate(bound.arguments.items()):
            kind = takes.parameters[name].kind
            operand: Any
            if function is np.concatenate and not place:
                operand = [
                    dates.in_unit(recorder, recorder.symbol(part), part, real.dtype)
                    for part in value
                ]
            elif place < operands:
                operand = recorder.symbol(value)
            else:
                operand = _operand(recorder, function, value)
            if kind is Parameter.VAR_POSITIONAL:
                symbols += operand
            elif kind is Parameter.VAR_KEYWORD:
                settings |= operand
            elif place < max(operands, 1):
                symbols.append(operand)
            else:
                settings[name] = operand
        return recorder.applied(function, *symbols, **numpy_settings(recorder, settings))

    return enter


def _operand(recorder: Recorder, function: Callable[..., Any], value: Any) -> Any:
    """Return the symbol of an array, a list of them, or the plain value of a setting."""
    if isinstance(value, (np.ndarray, Symbol)):
        return recorder.symbol(value)
    if isinstance(value, (list, tuple)) and any(isinstance(x, np.ndarray) for x in leaves(value)):
        return [_operand(recorder, function, part) for part in cast("Sequence[Any]", value)]
    return recorder.setting(f"an argument of {function.__name__}", value)


def memory_order(values: ArrayLike, rank: int) -> list[int]:
    """Return the axes of an array from the longest stride to the shortest."""
    strides = getattr(values, "strides", ())
    if len(strides) != rank or 0 in strides:
        return list(range(rank))
    return sorted(range(rank), key=lambda axis: -abs(strides[axis]))


def in_memory_order(
    recorder: Recorder,
    order: Sequence[int],
    x: Symbol,
    axes: Sequence[int],
    keepdims: bool,
    reduce: Callable[[Symbol, tuple[int, ...]], Symbol],
) -> Symbol:
    """Return a reduction that adds along the axes in the order of memory, as NumPy does.

    `reduce(x, axes)` returns the reduction of a symbol without the axes.
    """
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
    line = recorder.emit(ops.permute, (x,), dims=tuple(order))
    result = reduce(line, tuple(sorted(order.index(axis) for axis in axes)))
    others = [axis for axis in order if axis not in axes]
    back = tuple(others.index(axis) for axis in sorted(others))
    if others != sorted(others):
        result = recorder.emit(ops.permute, (result,), dims=back)
    return recorder.reshaped(result, shape) if keepdims else result


def adding(function: Callable[..., Any]) -> Symbolic:
    """Return the function that records a mean or a variance, which adds in the order of memory."""
    record = in_ops(function)
    takes = _signature(function)
    first = next(iter(takes.parameters))

    def enter(
        recorder: Recorder, values: NDArray[Any], x: Symbol, *args: Any, **kwargs: Any
    ) -> Symbol:
        settings = takes.bind(x, *args, **kwargs).arguments
        unknown = settings.keys() - {first, *_SPREADS}
        if unknown:
            raise UnrecordedError(f"{', '.join(sorted(unknown))}= has no op")
        axes = axis_of(settings.get("axis"), x.rank)
        if dates.is_dated(values.dtype):
            names = {name for name, value in settings.items() if value is not None}
            if function.__name__ != "mean" or names - {first, "axis", "keepdims"}:
                raise UnrecordedError("it has no op on dates")
            return dates.mean(recorder, x, axes, settings.get("keepdims", False))
        where = settings.get("where", True)
        addition = sum_order(values, axes, where)
        order = memory_order(values, x.rank)
        if addition and (order == sorted(order) or where is not True):
            del settings[first]
            settings |= {"axis": axes, "where": where if where is True else recorder.symbol(where)}
            return reduction_in_order(recorder, function.__name__, x, settings, addition)
        if order == sorted(order):
            return record(recorder, values, x, *args, **kwargs)
        settings.pop("axis", None)
        keepdims = settings.pop("keepdims", 0)

        def reduce(line: Symbol, axes: tuple[int, ...]) -> Symbol:
            in_order = {**settings, "axis": axes}
            del in_order[first]
            return enter(recorder, np.transpose(values, order), line, **in_order)

        return in_memory_order(recorder, order, x, axes, bool(keepdims), reduce)

    return enter


_SPREADS = "axis", "dtype", "ddof", "correction", "keepdims", "where"
"""The parameters of means and variances that have ops."""


def sum_order(values: ArrayLike, axes: Sequence[int], where: ArrayLike) -> SumOrder | None:
    """Return the order in which NumPy adds an array of floats; None for that of a copy."""
    array = np.asarray(plain(values))
    layout = None if array.ndim < 2 else layout_of_sum(array, axes, np.asarray(plain(where)))
    buffered = not array.flags.aligned and array.dtype.kind in "fc"
    return SumOrder(layout=layout, buffered=buffered) if layout or buffered else None


def axis_of(axis: int | tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    """Return axes as a sorted tuple of non-negative ints; None stands for all axes."""
    if axis is None:
        return tuple(range(rank))
    axes = cast("tuple[Any, ...]", axis if isinstance(axis, tuple) else (axis,))
    return tuple(sorted(int(each) % max(rank, 1) for each in axes)) if rank else ()


def numpy_settings(recorder: Recorder, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with `dtype` as a DType; NumPy's codes and Python's types are converted."""
    dtype = settings.get("dtype")
    if dtype is None:
        return settings
    return {**settings, "dtype": recorder.dtype(np.dtype(dtype))}


def _signature(of: Callable[..., Any]) -> Signature:
    try:
        return signature(of)
    except ValueError:  # a compiled function, in a NumPy without text signatures
        return signature(FUNCTIONS[of])


def places_of(x: Symbol) -> Any:
    """Return the row-major position of each element of x, as an array with the shape of x."""
    shape: Any = x.shape
    line: Any = np.arange(math.prod(shape))
    return line.reshape(shape)


def filled(recorder: Recorder, real: Result, value: complex) -> Symbol:
    """Return a symbol with one value everywhere, of the dtype and shape of `real`."""
    return recorder.filled(value, real.shape, recorder.dtype(real.dtype))


def not_an_op(
    recorder: Recorder, values: ArrayLike, x: Symbol, *args: Any, **kwargs: Any
) -> Symbol:
    """Raise UnrecordedError for a method without an op, so that its result becomes an input."""
    raise UnrecordedError("it has no op")


# -- order


def sorting(
    recorder: Recorder,
    values: NDArray[Any],
    x: Symbol,
    axis: int = -1,
    kind: str | None = None,
    *,
    stable: bool | None = None,
    descending: bool | None = None,
) -> Symbol:
    """Record argsort; `heapsort` has an order of equal values of its own."""
    if kind == "heapsort" and not np.array_equal(values.argsort(axis, kind), values.argsort(axis)):
        raise UnrecordedError("equal values are not in the order of the default sort")
    settings = {"kind": kind, "stable": stable, "descending": descending}
    by = {name: value for name, value in settings.items() if value}
    return recorder.applied(np.argsort, x, axis, **by)


# -- moved elements


def by_places(name: str) -> Symbolic:
    """Return the function that records a method which only moves elements.

    The function applies the method to the positions of the elements, and gathers by the result.
    """

    def enter(recorder: Recorder, _: NDArray[Any], x: Symbol, *args: Any, **kwargs: Any) -> Symbol:
        recorder.setting(f"an argument of {name}", [args, kwargs])
        new_places = getattr(places_of(x), name)(*plains(args), **plains(kwargs))
        return Pick(np.asarray(new_places)).forward(recorder, x)

    return enter


# -- products

_MATRIX = 2


def product_attributes(function: str, operands: Sequence[Any]) -> Mapping[str, Any]:
    """Return the attributes of matmul for a product of arrays by np.matmul or np.dot."""
    x, y = map(np.asarray, operands)
    dtype = np.result_type(x, y)
    return {"layout": layout_of(function, x, y, dtype)} if uses_blas(dtype) else {}


def product(function: Callable[..., Any]) -> Callable[..., Symbol]:
    """Return the function that records np.dot or np.inner: one matmul by a vector or matrix."""
    by_table = in_ops(function, 2)

    def enter(recorder: Recorder, _: Result, a: ArrayLike, b: ArrayLike) -> Symbol:
        x, y = np.asarray(plain(a)), np.asarray(plain(b))
        if not _is_matmul(x, y):
            return by_table(recorder, _, a, b)
        right = recorder.symbol(b)
        if function is np.inner and y.ndim == _MATRIX:
            y, right = y.T, recorder.emit(ops.permute, (right,), dims=(1, 0))
        return _emitted(recorder, x, recorder.symbol(a), y, right)

    return enter


def _is_matmul(x: NDArray[Any], y: NDArray[Any]) -> bool:
    """Whether np.dot of two arrays is a product of vectors or matrices of several elements."""
    is_number = x.size == y.size == 1 and x.ndim <= _MATRIX
    return bool(x.ndim) and 0 < y.ndim <= _MATRIX and not is_number


def dot_method(recorder: Recorder, x: NDArray[Any], symbol: Symbol, other: ArrayLike) -> Symbol:
    """Record the method `dot` of an array x, whose symbol is given."""
    y = np.asarray(plain(other))
    if not _is_matmul(x, y):
        return in_ops(np.dot, 2)(recorder, x, symbol, other)
    return _emitted(recorder, x, symbol, y, recorder.symbol(other))


def _emitted(
    recorder: Recorder, x: NDArray[Any], left: Symbol, y: NDArray[Any], right: Symbol
) -> Symbol:
    return recorder.emit(ops.matmul, (left, right), **product_attributes("dot", (x, y)))
