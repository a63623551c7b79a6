"""The ops that recording emits for NumPy's universal functions, their methods and their `out=`.

`emit` is for calls, `call_ufunc_method` for `reduce` and the like, `store` for results in `out=`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import EllipsisType
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from graphir.ir.operators.powers import power, power_of_arrays
from graphir.location import ASSIGN
from graphir.numpy_api.dispatch import call_ufunc
from graphir.numpy_api.reductions import UNSET, ReductionArguments, reduced
from graphir.numpy_api.signatures import bound
from graphir.numpy_api.ufuncs import ACCUMULATIONS, COMPOUNDS, OPS, REDUCTIONS, OpAdder
from graphir.public import DType, Op, Symbol, ops
from graphir.runtime.recording.builder import is_truncation
from graphir.runtime.recording.fallback import arrays_of, note_writes
from graphir.runtime.recording.numpy_.method_ops import (
    axis_of,
    in_memory_order,
    memory_order,
    product_attributes,
    sum_order,
)
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.results import described
from graphir.runtime.recording.subscripts import add_at, adds_exactly
from graphir.runtime.recording.values import RecordedValue, Result, UnrecordedError, plain, plains
from graphir.semantics.numpy_loops import CLIP, LIKE_POWERS, has_op_bits, loop_attribute
from graphir.semantics.sums import SumOrder


def emit(
    recorder: Recorder,
    ufunc: np.ufunc,
    args: tuple[Symbol, ...] | None,
    values: Sequence[Any] = (),
    scalars: bool = False,
    outs: Sequence[Any] = (),
) -> Symbol:
    """Emit the ops of a ufunc on operands, and return the symbol of the result.

    `values` are the operands' arrays, and `outs` those of `out=`, or None in place of a new array:
    their layouts decide how products and functions of floats round. `scalars` says that an operator
    of NumPy's scalars ran in place of the ufunc's loop.

    Raises UnrecordedError if `args` is None: the operands have no symbols, or the ufunc has no op.
    """
    op = OPS[ufunc]
    if args is None:
        raise UnrecordedError("it has no op, or not on these operands")
    short = _power(*args) if op is ops.pow else None
    if short is not None:
        return short
    is_product = ufunc is np.matmul and len(values) > 0
    attrs: Mapping[str, Any] = product_attributes("matmul", values) if is_product else {}
    if loop := _loop(ufunc, op, values, outs):
        attrs = {"loop": loop}
    if op is None:
        result = COMPOUNDS[ufunc](_WithLoop(recorder, loop) if loop else recorder, *args)
    else:
        result = recorder.emit(op, args, **attrs)
    return result if scalars else power_of_arrays(result)


def _loop(ufunc: np.ufunc, op: Op | None, values: Sequence[Any], outs: Sequence[Any]) -> Any:
    """Return the attribute of NumPy's loop where another has other bits, or may have; or None.

    A replay may have exponents 2.0 where the recorded array has none.
    """
    has_axes = any(np.ndim(value) for value in values)
    if not values or not (has_axes or ufunc is np.reciprocal):
        return None
    if op is None:
        name = ufunc.__name__ if ufunc in LIKE_POWERS else None
    else:
        name = op.name if ufunc in (CLIP, getattr(np, op.name, None)) else None
    may_square = ufunc is np.power and np.ndim(values[1]) > 0
    if name is None or (not may_square and has_op_bits(ufunc, values, outs)):
        return None
    return loop_attribute(ufunc, name, values, outs)


class _WithLoop:
    """An OpAdder whose ops have an attribute `loop`."""

    def __init__(self, build: OpAdder, loop: Any) -> None:
        self.graph, self.cast, self.operands = build.graph, build.cast, build.operands
        self._build, self._loop = build, loop

    def emit(self, op: Op, args: tuple[Symbol, ...], **attrs: Any) -> Symbol:
        """Add an op on symbols and return its symbol."""
        return self._build.emit(op, args, **attrs, loop=self._loop)


def _power(base: Symbol, exponent: Symbol) -> Symbol | None:
    """Return the symbol of a special case of np.power, such as a root or a reciprocal; or None.

    NumPy applies these cases to a 0-d exponent.
    """
    literal = exponent.op is ops.constant and exponent.weak and not exponent.rank
    number = exponent.attrs["value"].item() if literal else exponent
    return power(base, number, operator=False)


# -- arrays of the program that receive results by `out=`

Outs: TypeAlias = (
    "NDArray[Any] | tuple[NDArray[Any] | EllipsisType | None, ...] | EllipsisType | None"
)
"""The argument `out` of a function of NumPy; `...` asks for a 0-d array instead of a scalar."""


def outs_of(out: Outs, count: int) -> tuple[Any, ...]:
    """Return the arrays of `out=` as a tuple of `count`, with None for each new array.

    `...` also stands for a new array: it asks NumPy for a 0-d array instead of a scalar.
    """
    if out is None or out is ...:
        return (None,) * count
    outs = cast("tuple[Any, ...]", out if isinstance(out, tuple) else (out,))
    return tuple(None if each is ... else each for each in outs)


def plain_kwargs(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of a call with plain values, in NumPy's form."""
    settings = {name: plains(value) for name, value in kwargs.items()}
    out = settings.get("out")
    if isinstance(out, tuple) and out[0] is ...:
        settings["out"] = ...
    return settings


def returned(out: Outs, real: Any) -> Any:
    """Return the result of a call with `out=`: the arrays of `out`, and new results elsewhere."""
    if not isinstance(real, tuple):
        into = outs_of(out, 1)[0]
        scalar = isinstance(cast("object", real), np.generic)  # np.dot returns one despite out=
        return real if into is None or scalar else into
    results = cast("tuple[Any, ...]", real)
    outs = outs_of(out, len(results))
    return tuple(r if o is None else o for o, r in zip(outs, results, strict=True))


def store(recorder: Recorder, name: str, out: NDArray[Any], symbolic: Callable[[], Symbol]) -> None:
    """Note that NumPy stored a result in an array, after an implicit cast to its dtype."""

    real = plain(out)

    def enter() -> Symbol:
        result, to = symbolic(), recorder.dtype(out.dtype)
        cast = recorder.cast(result, to, "result", result.op.name, ASSIGN)
        if is_truncation(result.dtype, to):  # the uncast result, and so its range, is unknown
            recorder.exact_truncations.add(cast.index)
            return recorder.pinned(recorder.broadcast(cast, out.shape), real)
        return recorder.broadcast(cast, out.shape)

    symbol = recorder.result_symbol(name, real, enter)
    recorder.note_write(out, symbol)


def stored(
    recorder: Recorder, name: str, out: NDArray[Any], real: Result, symbolic: Callable[[], Symbol]
) -> Any:
    """Note that NumPy stored a result in an array, and return the result of the call."""
    store(recorder, name, out, symbolic)
    return returned(out, recorder.wrapped(real, recorder.before(out)))


# -- the methods reduce, accumulate, outer and at


def call_at(recorder: Recorder, ufunc: np.ufunc, inputs: tuple[Any, ...]) -> None:
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
    note_writes(recorder, name, arrays_of(target))


def call_ufunc_method(
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
    recorder: Recorder,
    op: Op,
    dtype: DType | None,
    values: ArrayLike,
    x: Symbol,
    axes: tuple[int, ...],
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
    x: Symbol,
    indices: ArrayLike,
    axis: int = 0,
    dtype: DTypeLike | None = None,
    out: NDArray[Any] | None = None,
) -> None: ...
def _of_outer(
    x: Symbol, y: Symbol, dtype: DTypeLike | None = None, out: NDArray[Any] | None = None
) -> None: ...


_PARAMETERS: dict[str, Any] = {
    "reduce": _of_reduce,
    "accumulate": _of_accumulate,
    "reduceat": _of_reduceat,
    "outer": _of_outer,
}
"""By method: a function with the parameters that a recording names."""
_TABLES = {"reduce": REDUCTIONS, "accumulate": ACCUMULATIONS}
_OF_DTYPE = (ops.sum, ops.prod, ops.cumulative_sum, ops.cumulative_prod)
