"""Recording of the methods of universal functions: reduce, accumulate, outer and at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from graphir import DType, Op, Symbol, ops
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
    symbolic, name = _METHODS.get(method, _reduceat), f"{ufunc.__name__}.{method}"
    symbols: list[Any] = [
        recorder.before(operand) for operand in inputs
    ]  # before NumPy may write to them
    real = recorder.call(getattr(ufunc, method), map(plains, inputs), plain_kwargs(kwargs))

    def enter() -> Symbol:
        if any(operand is None for operand in symbols):
            raise UnrecordedError(f"{name} is of what has no symbol")
        return symbolic(recorder, ufunc, *symbols, **kwargs)

    into = outs_of(kwargs.get("out"), 1)[0]
    if into is None:
        return recorder.outcome(name, real, enter)
    store(recorder, name, into, enter)
    return into


def _reduceat(recorder: Recorder, ufunc: np.ufunc, *_: Any, **__: Any) -> Symbol:
    raise UnrecordedError("reduceat has no op")


def _reduce(
    recorder: Recorder,
    ufunc: np.ufunc,
    x: Symbol,
    *,
    axis: Any = 0,
    dtype: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
    out: Any = None,
) -> Symbol:
    """Emit a reduction over axes; elements that `where=` excludes become the neutral element."""
    op = op_of(REDUCTIONS, ufunc)
    if type(initial) is type(np._NoValue):  # pyright: ignore
        initial = None
    if where is not True:
        x = _masked(recorder, ufunc, x, recorder.symbol(where), initial)
    to: dict[str, Any] = {}
    if op is ops.sum or op is ops.prod:
        to["dtype"] = None if dtype is None else recorder.dtype(np.dtype(dtype))
        x = _truncated(recorder, op, x, to["dtype"])
    axes = axis_of(axis, x.rank)
    reduction = recorder.emit(op, (x,), axis=axes, keepdims=bool(keepdims), **to)
    if initial is None or (ufunc.identity is not None and initial == ufunc.identity):
        return reduction
    binary = op_of(OPS, ufunc)
    return recorder.emit(binary, recorder.operands(binary, (reduction, initial)))


def _masked(recorder: Recorder, ufunc: np.ufunc, x: Symbol, mask: Symbol, initial: Any) -> Symbol:
    neutral = initial if ufunc.identity is None else ufunc.identity
    filler = recorder.create(ops.full, dtype=x.dtype, value=plain(neutral), shape=())
    return recorder.emit(ops.where, (mask, x, filler))


def axis_of(axis: Any, rank: int) -> tuple[int, ...]:
    """Return axes as a sorted tuple of non-negative ints; None stands for all axes."""
    if axis is None:
        return tuple(range(rank))
    axes = cast("tuple[Any, ...]", axis if isinstance(axis, tuple) else (axis,))
    return tuple(sorted(int(each) % max(rank, 1) for each in axes)) if rank else ()


def _accumulate(
    recorder: Recorder, ufunc: np.ufunc, x: Symbol, *, axis: Any = 0, dtype: Any = None, **_: Any
) -> Symbol:
    op = op_of(ACCUMULATIONS, ufunc)
    to = None if dtype is None else recorder.dtype(np.dtype(dtype))
    x = _truncated(recorder, op, x, to)
    return recorder.emit(op, (x,), axis=int(axis) % x.rank, dtype=to)


def _truncated(recorder: Recorder, op: Op, x: Symbol, to: DType | None) -> Symbol:
    """Return x cast to the integer dtype of `dtype=` if x is float; else x itself."""
    if to is None or not is_truncation(x.dtype, to):
        return x
    return recorder.cast(x, to, op.operand(0), op.name)


def _outer(recorder: Recorder, ufunc: np.ufunc, x: Symbol, y: Symbol, **_: Any) -> Symbol:
    op = op_of(OPS, ufunc)
    return recorder.emit(op, (recorder.reshaped(x, (*x.shape, *(1,) * y.rank)), y))


_METHODS = {"reduce": _reduce, "accumulate": _accumulate, "outer": _outer}
