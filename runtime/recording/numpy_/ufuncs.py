"""Universal functions of NumPy, called by a program on what is recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from graphir import DType, GraphirError, Op, Symbol, ops
from graphir.ir.literals import is_literal
from graphir.location import ASSIGN
from graphir.numpy_api.ufuncs import COMPOUNDS, OPS, PARTS
from runtime.recording.builder import is_truncation
from runtime.recording.fallback import rescued
from runtime.recording.numpy_.outs import outs_of, plain_kwargs, returned, store
from runtime.recording.numpy_.ufunc_methods import at, method_of
from runtime.recording.numpy_.ufunc_ops import emit
from runtime.recording.recorder import Recorder
from runtime.recording.values import RecordedValue, UnrecordedError, plain, plains, recording

Kwargs: TypeAlias = Mapping[str, Any]


def _plainly(ufunc: np.ufunc, method: str, inputs: Any, kwargs: Kwargs) -> Any:
    real = getattr(ufunc, method)(*map(plains, inputs), **plain_kwargs(kwargs))
    return returned(kwargs.get("out"), real)


@rescued(_plainly)
def call(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A ufunc, called by a program on traced operands: NumPy's result, and its op recorded."""
    recorder = recording()
    recorder.locate()
    if method == "__call__" and not kwargs and ufunc.nout == 1:
        args = _operands(recorder, ufunc, inputs)
        values = [one.plain if isinstance(one, RecordedValue) else plain(one) for one in inputs]
        real = recorder.call(ufunc, values, {})
        return recorder.outcome(ufunc.__name__, real, lambda: emit(recorder, ufunc, args))
    if method == "__call__":
        return _call_with(recorder, ufunc, inputs, kwargs)
    if method == "at":
        return at(recorder, ufunc, inputs)
    return method_of(recorder, ufunc, method, inputs, kwargs)


def _operated(function: Callable[..., Any], ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    return function(*map(plain, inputs))


@rescued(_operated)
def operate(function: Callable[..., Any], ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    """An operator on NumPy scalars, which is a ufunc's in all but speed."""
    recorder = recording()
    recorder.locate()
    real = recorder.call(function, map(plain, inputs), {})
    if not hasattr(real, "dtype"):
        return real
    args = _operands(recorder, ufunc, inputs)
    return recorder.outcome(ufunc.__name__, real, lambda: emit(recorder, ufunc, args))


def _operands(
    recorder: Recorder, ufunc: np.ufunc, inputs: Sequence[Any]
) -> tuple[Symbol, ...] | None:
    """The operands as symbols, before NumPy may write to them."""
    op = OPS.get(ufunc)
    if op is None and ufunc not in COMPOUNDS and ufunc not in PARTS:
        return None
    try:
        return recorder.operands(op or ops.add, inputs)
    except GraphirError:
        return None


# -- calls with out=, where=, dtype=, or several results


def _call_with(recorder: Recorder, ufunc: np.ufunc, inputs: Sequence[Any], kwargs: Kwargs) -> Any:
    out = outs_of(kwargs.get("out"), ufunc.nout)
    args = _operands(recorder, ufunc, inputs)
    mask = kwargs.get("where", True)
    before = recorder.before(out[0]) if mask is not True else None
    condition = None if mask is True else recorder.before(mask)
    values = list(map(plain, inputs))
    real = recorder.call(ufunc, values, plain_kwargs(kwargs))
    if ufunc.nout > 1:
        return _several(recorder, ufunc, args, out, real)

    def symbolic() -> Symbol:
        found = emit(recorder, ufunc, _in_loop(recorder, ufunc, args, values, kwargs))
        return found if mask is True else _chosen(recorder, condition, found, before, out, mask)

    name = ufunc.__name__
    if out[0] is None:
        return recorder.outcome(name, real, symbolic)
    store(recorder, name, out[0], symbolic)
    return out[0]


def _in_loop(
    recorder: Recorder,
    ufunc: np.ufunc,
    args: tuple[Symbol, ...] | None,
    values: Sequence[Any],
    kwargs: Kwargs,
) -> tuple[Symbol, ...] | None:
    """The operands cast to the dtypes of the loop that dtype= or signature= ask for."""
    if args is None or kwargs.keys().isdisjoint(("dtype", "signature")):
        return args
    signature: Any = kwargs.get("signature")
    if signature is None:
        signature = (None,) * ufunc.nin + (_loop_dtype(kwargs["dtype"]),)
    types: Any = [type(v) if is_literal(v) else np.asarray(v).dtype for v in values]
    loop = ufunc.resolve_dtypes((*types, None), signature=signature, casting="unsafe")
    op = OPS.get(ufunc, ops.add)
    return tuple(
        recorder.cast(arg, DType.from_numpy(to), op.operand(i), op.name)
        for i, (arg, to) in enumerate(zip(args, loop, strict=False))
    )


def _loop_dtype(asked: Any) -> Any:
    """A dtype, or a class of them, as dtype= takes it."""
    if asked is None or isinstance(asked, type(np.dtype)):
        return cast("object", asked)
    return np.dtype(asked)


def _chosen(
    recorder: Recorder,
    condition: Symbol | None,
    found: Symbol,
    before: Symbol | None,
    out: Sequence[Any],
    mask: Any,
) -> Symbol:
    """The result where a mask is true, elsewhere what was there; nobody knows what without out=."""
    if condition is None:
        raise UnrecordedError("where= is of what has no symbol")
    if before is None:
        before = recorder.create(ops.full, dtype=found.dtype, value=0, shape=())
    elif before.dtype is not found.dtype:
        truncates = is_truncation(found.dtype, before.dtype)
        found = recorder.cast(found, before.dtype, "result", found.op.name, ASSIGN)
        recorder.masks[found] = condition
        if truncates:
            recorder.settled.add(found.index)
            found = recorder.broadcast(found, before.shape)
            found = recorder.pinned(found, plain(out[0]), plain(mask))
    return recorder.emit(ops.where, (condition, found, before))


def _several(
    recorder: Recorder,
    ufunc: np.ufunc,
    args: tuple[Symbol, ...] | None,
    out: Sequence[Any],
    real: tuple[Any, ...],
) -> tuple[Any, ...]:
    """The results of divmod, and of others as given."""
    parts = PARTS.get(ufunc, (None,) * len(real))
    shared = _share_memory([one for one in out if one is not None])
    found: list[Any] = []
    for one, part, into in zip(real, parts, out, strict=True):

        def symbolic(part: Op | None = part) -> Symbol:
            if shared:
                raise UnrecordedError("its results are written over each other")
            if part is None or args is None:
                raise UnrecordedError(f"{ufunc.__name__} has no op")
            return recorder.emit(part, args)

        if into is None:
            found.append(recorder.outcome(ufunc.__name__, one, symbolic))
        else:
            store(recorder, ufunc.__name__, into, symbolic)
            found.append(into)
    return tuple(found)


def _share_memory(arrays: Sequence[Any]) -> bool:
    real = list(map(plain, arrays))
    return any(np.may_share_memory(a, b) for i, a in enumerate(real) for b in real[:i])
