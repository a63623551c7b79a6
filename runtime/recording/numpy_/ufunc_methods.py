"""Recording of the methods of universal functions: reduce, accumulate, outer and at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from graphir.numpy_api.dispatch import call_ufunc
from graphir.numpy_api.reductions import UNSET, ReductionArguments, reduced
from graphir.numpy_api.signatures import bound
from graphir.numpy_api.ufuncs import ACCUMULATIONS, REDUCTIONS
from graphir.public import DType, Op, Symbol, ops
from graphir.runtime.recording.builder import is_truncation
from graphir.runtime.recording.fallback import note_writes
from graphir.runtime.recording.numpy_.method_ops import (
    axis_of,
    in_memory_order,
    memory_order,
    sum_order,
)
from graphir.runtime.recording.numpy_.outs import outs_of, plain_kwargs, store
from graphir.runtime.recording.numpy_.ufunc_ops import emit
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.results import described
from graphir.runtime.recording.values import RecordedValue, UnrecordedError, plain, plains
from graphir.runtime.recording.views.indexing import add_at, adds_exactly
from graphir.semantics.sums import SumOrder


def at(recorder: Recorder, ufunc: np.ufunc, inputs: tuple[Any, ...]) -> None:
    """Call `ufunc.at`, the unbuffered x[places] op= y: sums at indices, or a new input for x."""
    target, name = inputs[0], f"{ufunc.__name__}.at"
    if isinstance(target, RecordedValue) and adds_exactly(target, ufunc, *inputs[2:]):
        add_at(recorder, ufunc, *inputs)
        return
    recorder.calls.measure(name)
    recorder.call(ufunc.at, map(plains, inputs), {})
    recorder.note(
        name,
        f"is taken as given: it has no op; got {', '.join(map(described, plains(inputs)))}; "
        f"use x[places] = np.{ufunc.__name__}(x[places], ...) where no place repeats, or "
        "np.bincount for sums",
    )
    if isinstance(target, RecordedValue):
        note_writes(recorder, name, [target])


def method_of(
    recorder: Recorder,
    ufunc: np.ufunc,
    method: str,
    inputs: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Any:
    """Return the result of a ufunc's method; record it as ops, or else as an input."""
    name = f"{ufunc.__name__}.{method}"
    # Before NumPy may write to them. The indices of reduceat are known values of this run.
    symbols: list[Any] = [recorder.before(operand) for operand in inputs]
    if method == "reduceat":
        symbols[1:] = [recorder.setting("an index", operand) for operand in inputs[1:]]
    real = recorder.call(getattr(ufunc, method), map(plains, inputs), plain_kwargs(kwargs))

    def enter() -> Symbol:
        if any(operand is None for operand in symbols):
            raise UnrecordedError(f"{name} is of what has no symbol")
        of_numpy = getattr(ufunc, method)
        places, settings = bound(of_numpy, _PARAMETERS[method], symbols, kwargs)
        settings.pop("out", None)
        return _on_symbols(recorder, ufunc, method, plains(inputs), *places, **settings)

    into = outs_of(kwargs.get("out"), 1)[0]
    if into is None:
        return recorder.outcome(name, real, enter)
    store(recorder, name, into, enter)
    return into


def _on_symbols(
    recorder: Recorder,
    ufunc: np.ufunc,
    method: str,
    values: Sequence[Any],
    x: Symbol,
    *others: Symbol,
    dtype: DTypeLike | None = None,
    **settings: Any,
) -> Symbol:
    """Return the result of a ufunc's method on symbols, by the table that traces use too.

    The settings are parameters of the method's row of `_PARAMETERS`.
    """
    op = _TABLES[method].get(ufunc) if method in _TABLES else None
    if method == "accumulate":
        settings.setdefault("axis", 0)
    if dtype is not None and op is not None and op in _OF_DTYPE:
        settings["dtype"] = to = recorder.dtype(np.dtype(dtype))
        if is_truncation(x.dtype, to):
            x = recorder.cast(x, to, op.operand(0), op.name)
    if method == "reduce":
        return _reduced(recorder, ufunc, op, values[0], x, **settings)
    if op is not None:
        return recorder.emit(op, (x,), **settings)
    if method == "outer":
        wide = recorder.reshaped(x, (*x.shape, *(1,) * others[0].rank))
        left = np.asarray(values[0])[(..., *(None,) * others[0].rank)]
        return emit(recorder, ufunc, (wide, *others), (left, np.asarray(values[1])))
    with recorder.graph.at(recorder.here):
        return call_ufunc(recorder.graph, ufunc, method, (x, *others), settings)


def _reduced(
    recorder: Recorder,
    ufunc: np.ufunc,
    op: Op | None,
    values: ArrayLike,
    x: Symbol,
    axis: int | tuple[int, ...] | None = 0,
    keepdims: bool = False,
    dtype: DType | None = None,
    initial: complex = UNSET,
    where: NDArray[Any] | bool = True,
) -> Symbol:
    axes = axis_of(axis, x.rank)
    initial = UNSET if initial is np._NoValue else plain(initial)  # pyright: ignore
    rounds = x.dtype.is_inexact or (dtype is not None and dtype.is_float)
    adds = x.rank > 1 and rounds and op in (ops.sum, ops.prod)
    order = memory_order(values, x.rank) if adds else []
    plain_sum = initial is UNSET and where is True
    addition = sum_order(values, axes, where) if rounds and op is ops.sum else None
    if op is not None and order != sorted(order) and not (addition and not plain_sum):
        if not plain_sum:
            raise UnrecordedError("NumPy multiplies masked elements as they lie in memory")

        reduce = partial(_sum_over, recorder, op, dtype, np.transpose(values, order))
        return in_memory_order(recorder, order, x, axes, keepdims, reduce)
    if op is not None and plain_sum and dtype is None and addition is None:
        return recorder.emit(op, (x,), axis=axes, keepdims=bool(keepdims))
    if op is not None:
        mask = where if where is True else recorder.symbol(where)
        arguments = ReductionArguments(axes, keepdims, dtype, initial, mask, addition or SumOrder())
        return reduced(recorder, op, x, arguments)
    settings = {"axis": axes, "keepdims": bool(keepdims), "initial": initial, "where": where}
    with recorder.graph.at(recorder.here):
        return call_ufunc(recorder.graph, ufunc, "reduce", (x,), settings)


def _sum_over(
    recorder: Recorder, op: Op, dtype: Any, values: ArrayLike, x: Symbol, axes: tuple[int, ...]
) -> Symbol:
    addition = sum_order(values, axes, True) if op is ops.sum else None
    arguments = ReductionArguments(axes, dtype=dtype, order=addition or SumOrder())
    return reduced(recorder, op, x, arguments)


def _of_reduce(
    x: Symbol,
    axis: int | tuple[int, ...] | None = 0,
    dtype: DTypeLike | None = None,
    out: NDArray[Any] | None = None,
    keepdims: bool = False,
    initial: complex = UNSET,
    where: NDArray[Any] | bool = True,
) -> None: ...
def _of_accumulate(
    x: Symbol, axis: int = 0, dtype: DTypeLike | None = None, out: NDArray[Any] | None = None
) -> None: ...
def _of_reduceat(
    x: Symbol, indices: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: Any = None
) -> None: ...
def _of_outer(x: Symbol, y: Symbol, dtype: DTypeLike | None = None, out: Any = None) -> None: ...


_PARAMETERS: dict[str, Any] = {
    "reduce": _of_reduce,
    "accumulate": _of_accumulate,
    "reduceat": _of_reduceat,
    "outer": _of_outer,
}
"""By method: a function with the parameters that a recording names."""
_TABLES = {"reduce": REDUCTIONS, "accumulate": ACCUMULATIONS}
_OF_DTYPE = (ops.sum, ops.prod, ops.cumulative_sum, ops.cumulative_prod)
