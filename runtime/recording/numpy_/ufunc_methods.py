"""Recording of the methods of universal functions: reduce, accumulate, outer and at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from graphir import Symbol, ops
from graphir.numpy_api.dispatch import call_ufunc
from graphir.numpy_api.ufuncs import ACCUMULATIONS, OPS, REDUCTIONS
from runtime.recording.builder import is_truncation
from runtime.recording.numpy_.outs import outs_of, plain_kwargs, store
from runtime.recording.numpy_.ufunc_ops import op_of
from runtime.recording.recorder import Recorder
from runtime.recording.values import RecordedValue, UnrecordedError, plain, plains, trace_of


def at(recorder: Recorder, ufunc: np.ufunc, inputs: tuple[Any, ...]) -> None:
    """Call `ufunc.at`, the unbuffered x[places] op= y; the new values of x become an input."""
    recorder.call(ufunc.at, map(plains, inputs), {})
    target = inputs[0]
    recorder.note(f"{ufunc.__name__}.at", "is taken as given: it has no op")
    if isinstance(target, RecordedValue):
        trace_of(target, recorder).write(None)


def method_of(
    recorder: Recorder,
    ufunc: np.ufunc,
    method: str,
    inputs: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Any:
    """Return the result of a ufunc's method; record it as ops, or else as an input."""
    name = f"{ufunc.__name__}.{method}"
    symbols: list[Any] = [
        recorder.before(operand) for operand in inputs
    ]  # before NumPy may write to them
    real = recorder.call(getattr(ufunc, method), map(plains, inputs), plain_kwargs(kwargs))

    def enter() -> Symbol:
        if any(operand is None for operand in symbols):
            raise UnrecordedError(f"{name} is of what has no symbol")
        return _on_symbols(recorder, ufunc, method, *symbols, **kwargs)

    into = outs_of(kwargs.get("out"), 1)[0]
    if into is None:
        return recorder.outcome(name, real, enter)
    store(recorder, name, into, enter)
    return into


def _on_symbols(
    recorder: Recorder,
    ufunc: np.ufunc,
    method: str,
    x: Symbol,
    *others: Symbol,
    dtype: Any = None,
    initial: Any = None,
    where: Any = True,
    out: Any = None,
    **settings: Any,
) -> Symbol:
    """Return the result of a ufunc's method on symbols, by the table that traces use too.

    Elements that `where=` excludes become the neutral element.
    """
    op = _TABLES[method].get(ufunc) if method in _TABLES else None
    if type(initial) is type(np._NoValue):  # pyright: ignore
        initial = None
    if where is not True:
        x = _masked(recorder, ufunc, x, recorder.symbol(where), initial)
    if method == "reduce":
        axis, keepdims = settings.get("axis", 0), bool(settings.get("keepdims"))
        settings = {"axis": axis_of(axis, x.rank), "keepdims": keepdims}
    elif method == "accumulate":
        settings.setdefault("axis", 0)
    if dtype is not None and op is not None and op in _OF_DTYPE:
        settings["dtype"] = to = recorder.dtype(np.dtype(dtype))
        if is_truncation(x.dtype, to):
            x = recorder.cast(x, to, op.operand(0), op.name)
    if op is not None:
        result = recorder.emit(op, (x,), **settings)
    elif method == "outer":
        wide = recorder.reshaped(x, (*x.shape, *(1,) * others[0].rank))
        result = recorder.emit(op_of(OPS, ufunc), (wide, *others))
    else:
        with recorder.graph.at(recorder.here):
            result = call_ufunc(recorder.graph, ufunc, method, (x, *others), settings)
    if initial is None or (ufunc.identity is not None and initial == ufunc.identity):
        return result
    op = op_of(OPS, ufunc)
    return recorder.emit(op, recorder.operands(op, (result, initial)))


def _masked(recorder: Recorder, ufunc: np.ufunc, x: Symbol, mask: Symbol, initial: Any) -> Symbol:
    neutral = initial if ufunc.identity is None else ufunc.identity
    filler = recorder.filled(plain(neutral), (), x.dtype)
    return recorder.emit(ops.where, (mask, x, filler))


def axis_of(axis: Any, rank: int) -> tuple[int, ...]:
    """Return axes as a sorted tuple of non-negative ints; None stands for all axes."""
    if axis is None:
        return tuple(range(rank))
    axes = cast("tuple[Any, ...]", axis if isinstance(axis, tuple) else (axis,))
    return tuple(sorted(int(each) % max(rank, 1) for each in axes)) if rank else ()


_TABLES = {"reduce": REDUCTIONS, "accumulate": ACCUMULATIONS}
_OF_DTYPE = (ops.sum, ops.prod, ops.cumulative_sum, ops.cumulative_prod)
