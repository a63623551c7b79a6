"""Universal functions of NumPy as ops: calls, reductions and the other methods that they have."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from graphir import DType, GraphirError, Op, Symbol, ops
from graphir.literals import is_literal
from runtime.recording.recorder import Recorder
from runtime.recording.steps import UnrecordedError
from runtime.recording.values import Traced, active, plain, plains, trace_of

Kwargs: TypeAlias = Mapping[str, Any]
Compound: TypeAlias = Callable[..., Symbol]

_CLIP: np.ufunc = np._core.umath.clip  # pyright: ignore

OPS: dict[np.ufunc, Op] = {
    **{getattr(np, name): op for name, op in ops.CATALOGUE.items() if name in dir(np)
       and isinstance(getattr(np, name), np.ufunc)},
    np.power: ops.pow,
    np.absolute: ops.abs,
    _CLIP: ops.clip,
    np.rint: ops.round,
    np.arcsin: ops.asin,
    np.arccos: ops.acos,
    np.arctan: ops.atan,
    np.arcsinh: ops.asinh,
    np.arccosh: ops.acosh,
    np.arctanh: ops.atanh,
    np.arctan2: ops.atan2,
    np.isnan: ops.is_nan,
    np.isinf: ops.is_inf,
    np.isfinite: ops.is_finite,
    np.invert: ops.bitwise_invert,
    np.conjugate: ops.conj,
}  # fmt: skip
REDUCTIONS: dict[np.ufunc, Op] = {
    np.add: ops.sum,
    np.multiply: ops.prod,
    np.maximum: ops.max,
    np.minimum: ops.min,
    np.logical_or: ops.any,
    np.logical_and: ops.all,
}
ACCUMULATIONS: dict[np.ufunc, Op] = {np.add: ops.cumulative_sum, np.multiply: ops.cumulative_prod}
_NEUTRAL: dict[Any, Any] = {
    np.add: 0,
    np.multiply: 1,
    np.logical_or: False,
    np.logical_and: True,
}


def call(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A ufunc, called by a program on traced operands: NumPy's result, and its op recorded."""
    recorder = active()
    function = ufunc if method == "__call__" else getattr(ufunc, method)
    if recorder is None:
        real = function(*map(plain, inputs), **_plain_kwargs(kwargs))
        return _returned(kwargs.get("out"), real)
    recorder.locate()
    if method == "__call__" and not kwargs and ufunc.nout == 1:
        args = _operands(recorder, ufunc, inputs)
        real = ufunc(*[one.plain if isinstance(one, Traced) else plain(one) for one in inputs])
        return recorder.outcome(ufunc.__name__, real, lambda: _emit(recorder, ufunc, args))
    if method == "__call__":
        return _call_with(recorder, ufunc, inputs, kwargs)
    if method == "at":
        return _at(recorder, ufunc, inputs)
    return _method(recorder, ufunc, method, inputs, kwargs)


def operate(function: Callable[..., Any], ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    """An operator on NumPy scalars, which is a ufunc's in all but speed."""
    real = function(*map(plain, inputs))
    recorder = active()
    if recorder is None or not hasattr(real, "dtype") or type(real) is np.bool_:
        return real
    recorder.locate()
    args = _operands(recorder, ufunc, inputs)
    return recorder.outcome(ufunc.__name__, real, lambda: _emit(recorder, ufunc, args))


def _operands(
    recorder: Recorder, ufunc: np.ufunc, inputs: Sequence[Any]
) -> tuple[Symbol, ...] | None:
    """The operands as symbols, before NumPy may write to them."""
    op = OPS.get(ufunc)
    if op is None and ufunc not in _COMPOUNDS and ufunc not in _PARTS:
        return None
    try:
        return recorder.operands(op or ops.add, inputs)
    except GraphirError:
        return None


def _emit(recorder: Recorder, ufunc: np.ufunc, args: tuple[Symbol, ...] | None) -> Symbol:
    op = OPS.get(ufunc)
    if args is None:
        raise UnrecordedError(f"{ufunc.__name__} has no op, or not on these operands")
    return recorder.emit(op, args) if op else _COMPOUNDS[ufunc](recorder, *args)


def _returned(out: Any, real: Any) -> Any:
    """What a call with out= returns: the arrays it was given."""
    if not isinstance(real, tuple):
        into = _outs(out, 1)[0]
        return real if into is None else into
    results = cast("tuple[Any, ...]", real)
    given = _outs(out, len(results))
    return tuple(r if o is None else o for o, r in zip(given, results, strict=True))


def _plain_kwargs(kwargs: Kwargs) -> dict[str, Any]:
    """The settings of a call as NumPy takes them."""
    found = {name: plains(value) for name, value in kwargs.items()}
    out = found.get("out")
    if isinstance(out, tuple) and out[0] is ...:
        found["out"] = ...
    return found


def _outs(out: Any, count: int) -> tuple[Any, ...]:
    """The arrays given for results; None for new ones, of which `...` asks that they be arrays."""
    if out is None or out is ...:
        return (None,) * count
    given = cast("tuple[Any, ...]", out if isinstance(out, tuple) else (out,))
    return tuple(None if one is ... else one for one in given)


# -- calls with out=, where=, dtype=, or several results


def _call_with(recorder: Recorder, ufunc: np.ufunc, inputs: Sequence[Any], kwargs: Kwargs) -> Any:
    out = _outs(kwargs.get("out"), ufunc.nout)
    args = _operands(recorder, ufunc, inputs)
    mask = kwargs.get("where", True)
    before = recorder.before(out[0]) if mask is not True else None
    condition = None if mask is True else recorder.before(mask)
    values = list(map(plain, inputs))
    real = ufunc(*values, **_plain_kwargs(kwargs))
    if ufunc.nout > 1:
        return _several(recorder, ufunc, args, out, real)

    def symbolic() -> Symbol:
        found = _emit(recorder, ufunc, _in_loop(recorder, ufunc, args, values, kwargs))
        return found if mask is True else _chosen(recorder, condition, found, before)

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
    return asked if asked is None or isinstance(asked, type(np.dtype)) else np.dtype(asked)


def _chosen(
    recorder: Recorder, condition: Symbol | None, found: Symbol, before: Symbol | None
) -> Symbol:
    """The result where a mask is true, elsewhere what was there; nobody knows what without out=."""
    if condition is None:
        raise UnrecordedError("where= is of what has no symbol")
    if before is None:
        before = recorder.create(ops.full, dtype=found.dtype, value=0, shape=())
    elif before.dtype is not found.dtype:
        found = recorder.cast(found, before.dtype, "result", found.op.name)
    return recorder.emit(ops.where, (condition, found, before))


def store(recorder: Recorder, name: str, out: Any, symbolic: Callable[[], Symbol]) -> None:
    """Note that a result went into an array, cast to its dtype as NumPy did silently."""

    def cast() -> Symbol:
        found, to = symbolic(), recorder.dtype(out.dtype)
        if found.dtype.is_float and to.is_integer:
            raise UnrecordedError("the values before their truncation are not known")
        found = recorder.cast(found, to, "result", found.op.name)
        return recorder.broadcast(found, out.shape)

    real = plain(out)
    symbol = recorder.checked(name, real, cast)
    if isinstance(out, Traced):
        trace_of(out, recorder).write(symbol)
    else:
        recorder.written(out, symbol)


def _several(
    recorder: Recorder,
    ufunc: np.ufunc,
    args: tuple[Symbol, ...] | None,
    out: Sequence[Any],
    real: tuple[Any, ...],
) -> tuple[Any, ...]:
    """The results of divmod, and of others as given."""
    parts = _PARTS.get(ufunc, (None,) * len(real))
    found: list[Any] = []
    for one, part, into in zip(real, parts, out, strict=True):

        def symbolic(part: Op | None = part) -> Symbol:
            if part is None or args is None:
                raise UnrecordedError(f"{ufunc.__name__} has no op")
            return recorder.emit(part, args)

        if into is None:
            found.append(recorder.outcome(ufunc.__name__, one, symbolic))
        else:
            store(recorder, ufunc.__name__, into, symbolic)
            found.append(into)
    return tuple(found)


_PARTS: dict[np.ufunc, tuple[Op, Op]] = {np.divmod: (ops.floor_divide, ops.remainder)}


# -- the methods of ufuncs


def _at(recorder: Recorder, ufunc: np.ufunc, inputs: tuple[Any, ...]) -> None:
    """x[places] op= y, unbuffered: what it leaves in x is taken as given."""
    ufunc.at(*map(plains, inputs))
    target = inputs[0]
    recorder.note(f"{ufunc.__name__}.at", "has no op: what it leaves is taken as given")
    if isinstance(target, Traced):
        trace_of(target, recorder).write(None)


def _method(
    recorder: Recorder, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: Kwargs
) -> Any:
    symbolic, name = _METHODS.get(method, _reduceat), f"{ufunc.__name__}.{method}"
    symbols: list[Any] = [recorder.before(one) for one in inputs]  # before NumPy may write to them
    real = getattr(ufunc, method)(*map(plains, inputs), **_plain_kwargs(kwargs))

    def found() -> Symbol:
        if any(one is None for one in symbols):
            raise UnrecordedError(f"{name} is of what has no symbol")
        return symbolic(recorder, ufunc, *symbols, **kwargs)

    into = _outs(kwargs.get("out"), 1)[0]
    if into is None:
        return recorder.outcome(name, real, found)
    store(recorder, name, into, found)
    return into


def _op(table: Mapping[np.ufunc, Op], ufunc: np.ufunc) -> Op:
    if ufunc not in table:
        raise UnrecordedError(f"{ufunc.__name__} has no op of this kind")
    return table[ufunc]


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
    """A reduction over axes; masked elements count as the neutral one."""
    op = _op(REDUCTIONS, ufunc)
    if type(initial) is type(np._NoValue):  # pyright: ignore
        initial = None
    if where is not True:
        x = _masked(recorder, ufunc, x, recorder.symbol(where), initial)
    to: dict[str, Any] = {}
    if op is ops.sum or op is ops.prod:
        to["dtype"] = None if dtype is None else DType.from_numpy(dtype)
    axes = axis_of(axis, x.rank)
    found = recorder.emit(op, (x,), axis=axes, keepdims=bool(keepdims), **to)
    if initial is None or (ufunc in _NEUTRAL and initial == _NEUTRAL[ufunc]):
        return found
    return recorder.emit(OPS[ufunc], recorder.operands(OPS[ufunc], (found, initial)))


def _masked(recorder: Recorder, ufunc: np.ufunc, x: Symbol, mask: Symbol, initial: Any) -> Symbol:
    neutral = _NEUTRAL.get(ufunc, initial)
    filler = recorder.create(ops.full, dtype=x.dtype, value=plain(neutral), shape=())
    return recorder.emit(ops.where, (mask, x, filler))


def axis_of(axis: Any, rank: int) -> tuple[int, ...]:
    """Axes as ops have them: all where it is None."""
    if axis is None:
        return tuple(range(rank))
    given = cast("tuple[Any, ...]", axis if isinstance(axis, tuple) else (axis,))
    return tuple(sorted(int(one) % max(rank, 1) for one in given)) if rank else ()


def _accumulate(
    recorder: Recorder, ufunc: np.ufunc, x: Symbol, *, axis: Any = 0, dtype: Any = None, **_: Any
) -> Symbol:
    op = _op(ACCUMULATIONS, ufunc)
    to = None if dtype is None else DType.from_numpy(dtype)
    return recorder.emit(op, (x,), axis=int(axis) % x.rank, dtype=to)


def _outer(recorder: Recorder, ufunc: np.ufunc, x: Symbol, y: Symbol, **_: Any) -> Symbol:
    op = _op(OPS, ufunc)
    return recorder.emit(op, (recorder.reshaped(x, (*x.shape, *(1,) * y.rank)), y))


_METHODS = {"reduce": _reduce, "accumulate": _accumulate, "outer": _outer}


# -- ufuncs that are several ops


def _fabs(recorder: Recorder, x: Symbol) -> Symbol:
    return recorder.emit(ops.abs, (x,))


def _scaled(factor: float) -> Compound:
    def scale(recorder: Recorder, x: Symbol) -> Symbol:
        args = recorder.operands(ops.multiply, (x, factor))
        return recorder.emit(ops.multiply, args)

    return scale


def _exp2(recorder: Recorder, x: Symbol) -> Symbol:
    args = recorder.operands(ops.pow, (2.0, x))
    return recorder.emit(ops.pow, args)


def _known_of(op: Op) -> Compound:
    """Fmax and fmin: of the two, the one that is no NaN."""

    def choose(recorder: Recorder, x: Symbol, y: Symbol) -> Symbol:
        both = recorder.emit(op, (x, y))
        left = recorder.emit(ops.where, (recorder.emit(ops.is_nan, (x,)), y, both))
        return recorder.emit(ops.where, (recorder.emit(ops.is_nan, (y,)), x, left))

    return choose


def _float_power(recorder: Recorder, x: Symbol, y: Symbol) -> Symbol:
    wide = DType.complex128 if x.dtype.is_complex or y.dtype.is_complex else DType.float64
    args = recorder.cast(x, wide, "lhs", "pow"), recorder.cast(y, wide, "rhs", "pow")
    return recorder.emit(ops.pow, args)


def _vecdot(recorder: Recorder, x: Symbol, y: Symbol) -> Symbol:
    x = recorder.emit(ops.conj, (x,)) if x.dtype.is_complex else x
    found = recorder.emit(ops.multiply, (x, y))
    return recorder.emit(ops.sum, (found,), axis=(found.rank - 1,), keepdims=False, dtype=None)


_COMPOUNDS: dict[np.ufunc, Compound] = {
    np.fabs: _fabs,
    np.deg2rad: _scaled(math.pi / 180),
    np.radians: _scaled(math.pi / 180),
    np.rad2deg: _scaled(180 / math.pi),
    np.degrees: _scaled(180 / math.pi),
    np.exp2: _exp2,
    np.fmax: _known_of(ops.maximum),
    np.fmin: _known_of(ops.minimum),
    np.float_power: _float_power,
    np.vecdot: _vecdot,
}
