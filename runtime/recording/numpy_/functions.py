"""Recording of NumPy's functions on recorded arrays: `call`, by `__array_function__`.

A function with an entry in a table, `_HANDLERS` or `_SYMBOLIC`, becomes ops. Any other function
that is written in Python runs, and the recording records its inner calls. A compiled function is an
opaque call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FunctionType
from typing import Any, cast

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, DTypeLike, NDArray

from graphir.numpy_api.functions import FUNCTIONS
from graphir.numpy_api.products import summed_labels
from graphir.numpy_api.reductions import UNSET
from graphir.numpy_api.signatures import bound
from graphir.ops.dims import ShapeLike
from graphir.public import DType, GraphError, Symbol, ops
from graphir.runtime.recording.fallback import (
    OF_TYPES,
    arrays_of,
    note_writes,
    opaque,
    repeatable,
    with_fallback,
    wrap_result,
)
from graphir.runtime.recording.numpy_.dates import in_unit
from graphir.runtime.recording.numpy_.method_ops import filled, in_ops, product
from graphir.runtime.recording.numpy_.python_numbers import read_number
from graphir.runtime.recording.numpy_.ufunc_ops import stored
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.subscripts import assigned
from graphir.runtime.recording.values import (
    RecordedNumber,
    RecordedValue,
    Result,
    TracedInt,
    UnrecordedError,
    plain,
    plains,
    recording,
    recording_with,
    view_of,
    view_trace,
)
from graphir.semantics.library_calls import mapped

Symbolic = Callable[..., Symbol]


def _call_numpy(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return function(*plains(tuple(args)), **plains(dict(kwargs)))


@with_fallback(_call_numpy, "function")
def call(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a NumPy function on arguments with recorded values among them, and record it."""
    recorder = recording()
    recorder.locate()
    if function in _HANDLERS and _has_all_parameters(function, _HANDLERS[function], args, kwargs):
        args, kwargs = bound(function, _HANDLERS[function], args, kwargs, leading=1)
        return _HANDLERS[function](recorder, *args, **kwargs)
    if function in _SYMBOLIC:
        return _computed(recorder, function, args, dict(kwargs))
    if isinstance(function._implementation, FunctionType) and function not in _OPAQUE:
        return _run(recorder, function, args, kwargs)
    if function in FUNCTIONS:
        return _computed(recorder, function, args, dict(kwargs))
    if function in _SAVING:
        recorder.leaving.add_saved([args, kwargs])
    return opaque(recorder, _name(function), _call_numpy, (function, args, kwargs), {})


def _has_all_parameters(
    function: Callable[..., Any],
    handler: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> bool:
    """Whether a handler names all parameters of a call; any other call takes another way."""
    try:
        bound(function, handler, args, kwargs, leading=1)
    except GraphError:
        return False
    return True


def _run(recorder: Recorder, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Run a function that is written in Python, whose inner calls are recorded."""
    numbers = recorder.numbers
    is_read = numbers.has_integers and not any(function is x for x in OF_TYPES)
    if is_read:  # code of NumPy may read the memory of integers, as `range(n)` does
        args, kwargs = mapped(_integer_of_python, (tuple(args), dict(kwargs)))
    if function in _ASKING_TYPES and numbers.python_count and _has_narrow_floats((args, kwargs)):
        args, kwargs = mapped(_number_of_python, (tuple(args), dict(kwargs)))
    recorder.calls.name_function(_name(function))
    before, since, steps = recorder.memory.writes, len(recorder.graph.symbols), len(recorder.steps)
    try:
        result = recorder.call(function._implementation, args, kwargs)
        if len(recorder.steps) > steps and repeatable(recorder, (args, kwargs), before):
            whole = recorder.opaque.as_one_step(_name(function), result, steps)
            if whole is not None:
                return whole
        scalar = _converted_scalar(recorder, result, since)
        return _entered(recorder, function, args, kwargs, result) if scalar is None else scalar
    except Exception:
        if not repeatable(recorder, (args, kwargs), before):
            raise
    finally:
        recorder.calls.name_function("")
    # The function may have failed on a recorded array alone: if not, it fails again here.
    return opaque(recorder, _name(function), _call_numpy, (function, args, kwargs), {})


def _has_narrow_floats(values: Any) -> bool:
    return any(array.plain.dtype.char in "efF" for array in arrays_of(values))


def _integer_of_python(value: Any) -> Any:
    """Return a recorded integer as `_number_of_python` does; other values as they are."""
    return _number_of_python(value) if isinstance(value, TracedInt) else value


def _number_of_python(value: Any) -> Any:
    """Return a recorded number as one of Python, and note the read; other values as they are."""
    read_number("a function of NumPy", value)
    return plain(value) if isinstance(value, RecordedNumber) else value


_ASKING_TYPES = {np.quantile, np.percentile, np.nanquantile, np.nanpercentile, np.select}
"""Functions that ask for the type of a number: they promote a float of Python as a weak one."""


def _name(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__name__}"


def _converted_scalar(recorder: Recorder, result: Any, since: int) -> Any:
    """Return a plain scalar as a conversion of the last recorded one; None of other results.

    NumPy's functions convert a result by `x.dtype.type(result)`, which calls no method of it.
    `since` is the number of symbols before the function.
    """
    last = recorder.numbers.last_scalar
    if last is None or last.symbol.index < since or not recorder.is_plain_number(result):
        return None
    value = np.asarray(last.plain)
    if not np.can_cast(value.dtype, result.dtype, "same_kind"):
        return None
    with np.errstate(all="ignore"):
        value = value.astype(result.dtype)
    if value.tobytes() != result.tobytes():
        return None
    recorder.forget_read("float", last.symbol)  # by the conversion
    return recorder.outcome(
        "", result, lambda: recorder.cast(last.symbol, recorder.dtype(result.dtype))
    )


def _entered(
    recorder: Recorder,
    function: Callable[..., Any] | None,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    result: Any,
) -> Any:
    """Return a result whose plain arrays and scalars, made by compiled code, become symbols.

    They are views, ops or inputs.
    """
    kind: Any = cast("object", type(result))
    if recorder.has(result.dtype) if kind is np.ndarray else recorder.is_unknown_number(result):
        owner = recorder.memory.owner(result)
        if owner is not None:
            return recorder.viewed(result, view_trace(owner, result))

        def enter() -> Symbol:
            if function is None or function not in FUNCTIONS:
                raise UnrecordedError("it is compiled")
            return in_ops(function, 0)(recorder, result, *args, **kwargs)

        return recorder.outcome("", result, enter)
    if kind is tuple or kind is list:
        parts = [_entered(recorder, None, (), {}, item) for item in result]  # pyright: ignore
        return kind(parts)  # pyright: ignore
    return result


def _computed(
    recorder: Recorder, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """Call a function of the table _SYMBOLIC, and record its ops."""
    with recording_with(None):
        real = recorder.call(function, plains(tuple(args)), plains(kwargs))
    out = kwargs.pop("out", None)

    overlap = out is not None and _sharing(plain(out), args) is not None

    def enter() -> Symbol:
        if overlap:
            raise UnrecordedError("it writes to what it reads")
        symbolic = _SYMBOLIC.get(function) or in_ops(function, 0)
        places, settings = bound(function, symbolic, args, kwargs, leading=2)
        return symbolic(recorder, real, *places, **settings)

    if out is None:
        whole = None if getattr(real, "base", None) is None else _sharing(real, args)
        if whole is not None:
            return view_of(whole, real)
        if not isinstance(real, (np.ndarray, np.generic)):
            return wrap_result(recorder, _name(function), real, arrays_of((args, kwargs)))
        return recorder.outcome(_name(function), real, enter)
    return stored(recorder, _name(function), out, real, enter)


def _sharing(real: Any, args: Sequence[Any]) -> RecordedValue | None:
    """Return the argument with which a result shares memory, or None."""
    if type(real) is not np.ndarray:
        return None
    return next((x for x in arrays_of(args) if np.may_share_memory(real, x.plain)), None)


# -- functions that are ops


def _where(
    recorder: Recorder, real: NDArray[Any], condition: ArrayLike, x: ArrayLike, y: ArrayLike
) -> Symbol:
    test, *choices = recorder.operands(ops.where, (condition, x, y))
    pairs = zip(choices, (x, y), strict=True)
    choices = [in_unit(recorder, symbol, value, real.dtype) for symbol, value in pairs]
    return recorder.emit(ops.where, (test, *choices))


def _einsum(recorder: Recorder, real: Result, subscripts: str, *args: Any, **kwargs: Any) -> Symbol:
    result = in_ops(np.einsum, 0)(recorder, real, subscripts, *args, **kwargs)
    if real.dtype.kind in "fc" and summed_labels(subscripts):
        recorder.note_order("numpy.einsum", result, real)
    return result


def full_of(
    recorder: Recorder,
    real: NDArray[Any],
    of: ArrayLike | None = None,
    fill_value: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    shape: ShapeLike | None = None,
) -> Symbol:
    """Record np.full, and np.full_like of an array `of`; NumPy's result has the other settings."""
    return assigned(recorder, fill_value, None, real, real)


def filling(value: int, is_empty: bool = False) -> Symbolic:
    """Return the function that records an array of one value, whatever its shape and dtype.

    An empty array is filled, in memory and in the graph: any values are valid, and with equal ones
    on both sides the recording detects later writes.
    """

    def enter(
        recorder: Recorder,
        real: NDArray[Any],
        of: ArrayLike | None = None,
        dtype: DTypeLike | None = None,
        order: str | None = None,
        *,
        shape: ShapeLike | None = None,
    ) -> Symbol:
        if is_empty:
            real.fill(value)
        return filled(recorder, real, value)

    return enter


_SYMBOLIC: dict[Any, Symbolic] = {
    np.where: _where,
    np.empty_like: filling(0, is_empty=True),
    np.zeros_like: filling(0),
    np.ones_like: filling(1),
    np.full_like: full_of,
    np.dot: product(np.dot),
    np.inner: product(np.inner),
    np.einsum: _einsum,
    **{function: in_ops(function) for function in (np.concatenate, np.roll, np.diagflat)},
    **{function: in_ops(function, 2) for function in (np.vdot, np.convolve, np.correlate)},
    np.take_along_axis: in_ops(np.take_along_axis, 2),
}


# -- functions that write to their arguments, or dispatch on the form of the call


def _copyto(
    recorder: Recorder,
    dst: NDArray[Any],
    src: ArrayLike,
    casting: str = "same_kind",
    where: ArrayLike = True,
) -> None:
    source_symbol = recorder.before(src) if isinstance(src, np.ndarray) else None
    mask, before = recorder.before(where), recorder.before(dst)
    settings = {"casting": casting, "where": plains(where)}
    recorder.call(np.copyto, plains((dst, src)), settings)

    def enter() -> Symbol:
        new = assigned(recorder, src, source_symbol, dst, plain(dst))
        if where is True:
            return new
        if mask is None or before is None:
            raise UnrecordedError("a mask or what it masks has no symbol")
        return recorder.emit(ops.where, (mask, new, before))

    new = recorder.result_symbol("copyto", plain(dst), enter)
    recorder.note_write(dst, new)


def _isin(
    recorder: Recorder,
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> Any:
    """Record np.isin as comparisons of all pairs, which NumPy makes exactly.

    NumPy's own steps read the range of integers, to choose an algorithm by it.
    """
    x, y = np.asarray(plains(element)), np.asarray(plains(test_elements))
    args, settings = (element, test_elements), {"invert": invert}
    kinds = {x.dtype.kind, y.dtype.kind}
    is_alike = x.dtype == y.dtype or (kinds <= _WHOLE and np.result_type(x, y).kind in _WHOLE)
    if not is_alike or not recorder.has(x.dtype) or assume_unique or x.size * y.size > _MOST_PAIRS:
        keywords = {"assume_unique": assume_unique, **settings, "kind": kind}
        return _run(recorder, np.isin, args, keywords)
    with recording_with(None):
        real = recorder.call(np.isin, plains(args), {**settings, "kind": kind})
    symbolic = in_ops(np.isin, 2)
    return recorder.outcome("isin", real, lambda: symbolic(recorder, real, *args, **settings))


_MOST_PAIRS = 2**16
_WHOLE = frozenset("biu")


def _put(
    recorder: Recorder, a: NDArray[Any], ind: ArrayLike, v: ArrayLike, mode: str = "raise"
) -> None:
    if isinstance(a, RecordedValue):
        a.put(ind, v, mode=mode)  # pyright: ignore[reportArgumentType]
    else:
        np.put(plain(a), plains(ind), plains(v), mode=mode)  # pyright: ignore


def _place(recorder: Recorder, arr: NDArray[Any], mask: ArrayLike, vals: ArrayLike) -> None:
    """Call np.place; whether it writes depends on the values of the mask."""
    recorder.calls.measure("numpy.place")
    recorder.call(np.place, plains((arr, mask, vals)), {})
    note_writes(recorder, "numpy.place", arrays_of(arr))


def _where_or_nonzero(
    recorder: Recorder, condition: ArrayLike, x: ArrayLike = UNSET, y: ArrayLike = UNSET
) -> Any:
    """Return np.where: an op for three arguments, the indices of true elements for one."""
    if x is UNSET and y is UNSET:
        array = condition if isinstance(condition, RecordedValue) else np.asarray(condition)
        return array.nonzero()
    values = (x,) if y is UNSET else (x, y)
    return _computed(recorder, np.where, (condition, *values), {})


def _cross(recorder: Recorder, a: ArrayLike, b: ArrayLike, *axes: Any, **keywords: Any) -> Any:
    """Return np.cross, by way of matrices for two vectors of length 3.

    For vectors NumPy asks its ufuncs for 0-d arrays by out=..., which dispatch does not pass on.
    """
    vectors = np.shape(a) == np.shape(b) == (3,) and not axes and not keywords
    if not vectors:
        return _run(recorder, np.cross, (a, b, *axes), keywords)
    return _run(recorder, np.cross, (np.reshape(a, (1, 3)), b), {})[0]


def _sliding_windows(recorder: Recorder, x: ArrayLike, *args: Any, **kwargs: Any) -> Any:
    """Return a view of sliding windows; NumPy's Python body would record tests of its arguments."""
    recorder.setting("the window of sliding_window_view", [args, kwargs])
    with recording_with(None):
        real = recorder.call(sliding_window_view, plains((x, *args)), plains(kwargs))
    return view_of(x, real) if isinstance(x, RecordedValue) else real


def _unravel_index(
    recorder: Recorder, indices: ArrayLike, shape: int | tuple[int, ...], order: str = "C"
) -> tuple[Any, ...]:
    """Return np.unravel_index in row-major order, by division."""
    sizes = plains(shape) if isinstance(shape, tuple) else (shape,)
    real = recorder.call(np.unravel_index, (plains(indices), plains(shape), order), {})
    recorder.setting("the shape of unravel_index", shape)
    axes = range(len(sizes)) if order == "C" else range(len(sizes) - 1, -1, -1)
    symbol, steps, step = recorder.before(indices), [1] * len(sizes), 1
    for axis in reversed(axes):
        steps[axis], step = step, step * int(sizes[axis])

    def enter(axis: int) -> Symbol:
        if symbol is None:
            raise UnrecordedError("the indices have no symbol")
        counts = [recorder.constant(np.int64(x)) for x in (steps[axis], int(sizes[axis]))]
        whole = recorder.emit(ops.floor_divide, (recorder.cast(symbol, DType.int64), counts[0]))
        return recorder.emit(ops.remainder, (whole, counts[1]))

    name, parts = "numpy.unravel_index", enumerate(real)
    return tuple([recorder.outcome(name, part, partial(enter, axis)) for axis, part in parts])


_HANDLERS: dict[Any, Callable[..., Any]] = {
    sliding_window_view: _sliding_windows,
    np.copyto: _copyto,
    np.unravel_index: _unravel_index,
    np.put: _put,
    np.place: _place,
    np.where: _where_or_nonzero,
    np.cross: _cross,
    np.isin: _isin,
}
_SAVING = {np.save, np.savetxt, np.savez, np.savez_compressed}
_OPAQUE = {np.einsum_path, np.array2string, np.array_repr, np.array_str, *_SAVING}
