"""Recording of calls of NumPy's universal functions on recorded values.

`call` is for ufuncs, by `__array_ufunc__`; `operate` for operators of scalars. The ops are those of
`ufunc_ops`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from sys import getrefcount
from typing import Any, TypeAlias, cast
from warnings import catch_warnings

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from graphir.ir.literals import is_literal, native
from graphir.location import ASSIGN
from graphir.numpy_api.arrays.temporaries import ELIDING, LEAST_BYTES, elided, runs_operator
from graphir.numpy_api.signatures import bound, without_usual_axes
from graphir.numpy_api.ufuncs import COMPOUNDS, OPS, PARTS
from graphir.public import DType, GraphirError, Symbol, ops
from graphir.runtime.recording.builder import is_truncation
from graphir.runtime.recording.fallback import with_fallback
from graphir.runtime.recording.numpy_ import dates, objects
from graphir.runtime.recording.numpy_.ufunc_ops import (
    call_at,
    call_ufunc_method,
    emit,
    outs_of,
    plain_kwargs,
    returned,
    store,
)
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.sites import program_frame
from graphir.runtime.recording.values import (
    RecordedValue,
    Result,
    UnrecordedError,
    plain,
    plains,
    recording,
)
from graphir.semantics.numpy_loops import adds_in_memory_order, has_op_bits

Kwargs: TypeAlias = Mapping[str, Any]


def _call_numpy_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Kwargs) -> Any:
    real = getattr(ufunc, method)(*map(plains, inputs), **plain_kwargs(kwargs))
    return returned(kwargs.get("out"), real)


@with_fallback(_call_numpy_ufunc, "ufunc")
def call(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a ufunc, or a method of a ufunc, on recorded operands; record the ops of its result."""
    recorder = recording()
    recorder.locate()
    if (recorder.objects.has_numbers or ufunc not in OPS) and objects.is_on_objects(ufunc, inputs):
        return objects.call(ufunc, method, inputs, kwargs)
    if method == "__call__" and not kwargs and ufunc.nout == 1:
        args = _operands(recorder, ufunc, inputs)
        if args is None and np.ma.MaskedArray in map(type, inputs):
            return call_on_masked(ufunc, inputs)
        values = [
            operand.plain if isinstance(operand, RecordedValue) else plain(operand)
            for operand in inputs
        ]
        counts = [getrefcount(value) for value in inputs] if ufunc in ELIDING else ()
        real = recorder.call(ufunc, values, {})
        if counts and type(real) is np.ndarray and real.nbytes >= LEAST_BYTES:
            real = _as_elided(ufunc, inputs, counts, values, real)
        symbolic = partial(_emitted, recorder, ufunc, args, values, real)
        return recorder.outcome(ufunc.__name__, real, symbolic)
    if method == "__call__":
        return _call_with(recorder, ufunc, inputs, kwargs)
    if method == "at":
        return call_at(recorder, ufunc, inputs)
    return call_ufunc_method(recorder, ufunc, method, inputs, kwargs)


_REFLECTED: dict[Any, str] = {
    np.add: "__radd__", np.subtract: "__rsub__", np.multiply: "__rmul__", np.power: "__rpow__",
    np.divide: "__rtruediv__", np.floor_divide: "__rfloordiv__", np.equal: "__eq__",
    np.not_equal: "__ne__", np.less: "__gt__", np.less_equal: "__ge__", np.greater: "__lt__",
    np.greater_equal: "__le__",
}  # fmt: skip
"""The methods of a masked right operand, which Python asks before those of a plain array."""


def call_on_masked(ufunc: np.ufunc, inputs: Sequence[Any]) -> Any:
    """Return a ufunc of masked arrays: the method of the operator, or the ufunc of their data."""
    masked = next(x for x in inputs if type(x) is np.ma.MaskedArray)
    if ufunc in _REFLECTED and masked is inputs[-1] and runs_operator(program_frame()):
        return getattr(masked, _REFLECTED[ufunc])(inputs[0])
    data = [np.ma.getdata(x) if type(x) is np.ma.MaskedArray else x for x in inputs]
    result = ufunc(*data)
    return masked.__array_wrap__(result, (ufunc, tuple(inputs), 0))


class _Temporary(np.ndarray[Any, Any]):
    """An array whose operators return the reference counts of their operands, as `call` sees."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _reference_counts(ufunc, method, inputs, kwargs)


def _reference_counts(
    ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Kwargs
) -> list[int]:
    return [getrefcount(value) for value in inputs]


@cache
def _temporary_counts() -> Any:
    """Return the counts of operands that nothing but the expression references.

    The first is that of the operand whose method NumPy calls.
    """
    return _Temporary(1) + _Temporary(1)


def _as_elided(
    ufunc: np.ufunc,
    inputs: Sequence[Any],
    counts: Sequence[int],
    values: Sequence[Any],
    real: NDArray[Any],
) -> NDArray[Any]:
    """Return the result of an operator in the layout of a temporary into which NumPy writes it.

    NumPy itself takes no recorded array for a temporary, because `plain` is a second reference.
    """
    if not runs_operator(program_frame()):
        return real
    caller = next(i for i, value in enumerate(inputs) if isinstance(value, RecordedValue))
    alone = [_temporary_counts()[i != caller] for i in range(len(inputs))]
    place = elided(ufunc, values, [a == b for a, b in zip(counts, alone, strict=True)], real.dtype)
    if place is None or values[place].strides == real.strides:
        return real
    result = np.empty_like(values[place])
    result[...] = real
    return result


def _emitted(
    recorder: Recorder,
    ufunc: np.ufunc,
    args: tuple[Symbol, ...] | None,
    values: Sequence[Any],
    real: Result,
    outs: Sequence[Any] = (),
) -> Symbol:
    """Return the symbol of a ufunc; note NumPy's results where its loop has other bits."""
    if _has_dates(recorder, (*values, real)):
        on_counts = partial(emit, recorder, ufunc)
        return dates.emitted(recorder, ufunc, args, values, real, on_counts)
    result = emit(recorder, ufunc, args, values, outs=outs)
    if adds_in_memory_order(ufunc, values):
        recorder.note_order(ufunc.__name__, result, real)
    elif not has_op_bits(ufunc, values, outs):
        recorder.observed[result] = np.array(native(np.asarray(real)), order="C")
    return result


def _call_operator(function: Callable[..., Any], ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    return function(*map(plain, inputs))


@with_fallback(_call_operator, "operator")
def operate(function: Callable[..., Any], ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    """Apply an operator to NumPy scalars, which is faster than its ufunc, and record the ufunc."""
    recorder = recording()
    recorder.locate()
    if type(inputs[-1]) is np.ma.MaskedArray:
        return NotImplemented
    if recorder.objects.has_numbers and objects.is_on_objects(ufunc, inputs):
        return objects.call(ufunc, "__call__", inputs, {})
    real = recorder.call(function, map(plain, inputs), {})
    if not hasattr(real, "dtype"):
        return real
    args = _operands(recorder, ufunc, inputs)

    def symbolic() -> Symbol:
        if _has_dates(recorder, (*inputs, real)):
            return _emitted(recorder, ufunc, args, list(map(plain, inputs)), real)
        return emit(recorder, ufunc, args, scalars=True)

    return recorder.outcome(ufunc.__name__, real, symbolic)


def _operands(
    recorder: Recorder, ufunc: np.ufunc, inputs: Sequence[Any]
) -> tuple[Symbol, ...] | None:
    """Return the operands as symbols, before NumPy may write to them; None if they have none."""
    op = OPS[ufunc]
    if op is None and ufunc not in COMPOUNDS and ufunc not in PARTS and ufunc is not np.isnat:
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
    if mask is np._NoValue:  # pyright: ignore[reportPrivateUsage] -- a default that is true
        mask = True
    before = [None if mask is True else recorder.before(into) for into in out]
    condition = None if mask is True else recorder.before(mask)
    values = list(map(plain, inputs))
    has_dates = _has_dates(recorder, (*values, *out))
    operands = list(map(_copied, values)) if has_dates else values
    real = recorder.call(ufunc, values, plain_kwargs(kwargs))
    shared = _share_memory([into for into in out if into is not None])

    def symbolic(place: int) -> Symbol:
        bound(ufunc, _settings, inputs, without_usual_axes(ufunc, kwargs))
        if shared:
            raise UnrecordedError("its results are written over each other")
        if has_dates and (mask is not True or not kwargs.keys().isdisjoint(("dtype", "signature"))):
            raise UnrecordedError("it computes some dates, or in another unit")
        cast_args, cast_values = _in_loop(recorder, ufunc, args, operands, kwargs)
        views = list(map(plain, out))
        if ufunc.nout == 1 and cast_args is args and mask is True:
            return _emitted(recorder, ufunc, args, operands, real, views)
        if has_dates:
            raise UnrecordedError("it has several results")
        result = _result(recorder, ufunc, cast_args, place, cast_values, views)
        if mask is True:
            return result
        return _masked_result(recorder, condition, result, before[place], out[place], mask)

    results: list[Any] = []
    outputs: Any = real if ufunc.nout > 1 else (real,)
    for place, (value, into) in enumerate(zip(outputs, out, strict=True)):
        if into is None:
            results.append(recorder.outcome(ufunc.__name__, value, partial(symbolic, place)))
        else:
            store(recorder, ufunc.__name__, into, partial(symbolic, place))
            results.append(into)
    return tuple(results) if ufunc.nout > 1 else results[0]


def _has_dates(recorder: Recorder, values: Sequence[Any]) -> bool:
    """Whether datetimes or timedeltas are among the operands and results of a ufunc."""
    return recorder.has_dates and any(
        isinstance(x, (np.ndarray, np.generic)) and dates.is_dated(cast("Any", x).dtype)
        for x in values
    )


def _copied(value: Any) -> Any:
    """Return a copy of an array, to which the ufunc may write; other values as they are."""
    return cast("Any", value).copy() if isinstance(value, np.ndarray) else value


def _settings(
    *inputs: Any,
    out: tuple[NDArray[Any] | None, ...] | None = None,
    where: ArrayLike = True,
    casting: str = "same_kind",
    order: str = "K",
    dtype: DTypeLike | None = None,
    signature: str | tuple[Any, ...] | None = None,
) -> None:
    """The parameters of ufuncs that a recording names; NumPy has checked `casting`."""


def _result(
    recorder: Recorder,
    ufunc: np.ufunc,
    args: tuple[Symbol, ...] | None,
    place: int,
    values: Sequence[Any],
    outs: Sequence[Any],
) -> Symbol:
    """Return the symbol of result number `place`; divmod has the quotient, then the remainder."""
    if ufunc.nout == 1:
        return emit(recorder, ufunc, args, values, outs=outs)
    if ufunc not in PARTS or args is None:
        raise UnrecordedError(f"{ufunc.__name__} has no op")
    return recorder.emit(PARTS[ufunc][place], args)


def _in_loop(
    recorder: Recorder,
    ufunc: np.ufunc,
    args: tuple[Symbol, ...] | None,
    values: Sequence[Any],
    kwargs: Kwargs,
) -> tuple[tuple[Symbol, ...] | None, Sequence[Any]]:
    """Return operands cast to the dtypes of the inner loop that dtype= or signature= selects.

    The arrays `values` are cast likewise.
    """
    if args is None or kwargs.keys().isdisjoint(("dtype", "signature")):
        return args, values
    signature: Any = kwargs.get("signature")
    if signature is None:
        signature = (None,) * ufunc.nin + (_loop_dtype(kwargs["dtype"]),) * ufunc.nout
    types: Any = [type(v) if is_literal(v) else np.asarray(v).dtype for v in values]
    all_types = (*types, *[None] * ufunc.nout)
    loop = ufunc.resolve_dtypes(all_types, signature=signature, casting="unsafe")
    op = OPS[ufunc] or ops.add
    casts = tuple(
        recorder.cast(arg, DType.from_numpy(to), op.operand(i), op.name)
        for i, (arg, to) in enumerate(zip(args, loop, strict=False))
    )
    if ufunc.signature:  # a product, whose casts are in C order
        return casts, ()
    with np.errstate(all="ignore"), catch_warnings(action="ignore"):
        pairs = zip(values, loop, strict=False)
        return casts, [np.asarray(value).astype(to, copy=False) for value, to in pairs]


def _loop_dtype(dtype: Any) -> Any:
    """Return the value of `dtype=` as a dtype or a class of dtypes; or None."""
    if dtype is None or isinstance(dtype, type(np.dtype)):
        return cast("object", dtype)
    return np.dtype(dtype)


def _masked_result(
    recorder: Recorder,
    condition: Symbol | None,
    result: Symbol,
    before: Symbol | None,
    into: NDArray[Any] | None,
    mask: NDArray[Any] | bool,
) -> Symbol:
    """Return the result where a mask is true, and the former values of `out` elsewhere.

    Without `out=` NumPy leaves these elements uninitialized, and the graph has zeros there.
    """
    if condition is None:
        raise UnrecordedError("the condition of where= has no symbol")
    recorder.masks[result] = condition
    if before is None:
        before = recorder.filled(0, (), result.dtype)
    elif before.dtype is not result.dtype:
        truncates = is_truncation(result.dtype, before.dtype)
        result = recorder.cast(result, before.dtype, "result", result.op.name, ASSIGN)
        recorder.masks[result] = condition
        if truncates:
            recorder.exact_truncations.add(result.index)
            result = recorder.broadcast(result, before.shape)
            result = recorder.pinned(result, plain(into), plain(mask))
    return recorder.emit(ops.where, (condition, result, before))


def _share_memory(arrays: Sequence[Any]) -> bool:
    real = list(map(plain, arrays))
    return any(np.may_share_memory(a, b) for i, a in enumerate(real) for b in real[:i])
