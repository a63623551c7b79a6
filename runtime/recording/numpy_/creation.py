"""Recording of NumPy's array constructors, which do not dispatch on the class of an argument.

`CONSTRUCTORS` has the recorder of each: of `np.array` and its kind `_record_array`, of arrays of
one value and of lines `_constructor`. `LIST_FUNCTIONS` has those of functions to which a program
gives lists, which become arrays first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from graphir.hints import Number
from graphir.numpy_api.signatures import bound
from graphir.public import DType, Symbol, ops
from graphir.runtime.recording.leaving import traced_leaves
from graphir.runtime.recording.numpy_ import dates
from graphir.runtime.recording.numpy_.functions import filling, full_of
from graphir.runtime.recording.numpy_.outside_data import wrap_outside
from graphir.runtime.recording.numpy_.stand_ins import Maker
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.structured import zeros_of
from graphir.runtime.recording.values import (
    RecordedValue,
    TracedScalar,
    UnrecordedError,
    plains,
    recording_with,
    view_of,
)
from graphir.semantics.library_calls import leaves

_ASARRAY = np.asarray

# -- arrays of values


def _record_array(recorder: Recorder, original: Maker, *args: Any, **kwargs: Any) -> Any:
    """Record np.array, np.asarray and similar constructors.

    The result is the argument itself, a view, a copy, a cast, or the array of a list.
    """
    value: Any = args[0] if args else kwargs.get("object", kwargs.get("a"))
    if type(value) is np.ma.MaskedArray:
        return _record_masked_array(recorder, original, value, args[1:], kwargs)
    with recording_with(None):
        real = recorder.call(original, plains(args), plains(kwargs))
    if isinstance(value, RecordedValue):
        if real is value.plain:
            return value
        if np.may_share_memory(real, value.plain):
            return view_of(value, real)
    elif type(value) is np.ndarray and (real is value or np.may_share_memory(real, value)):
        return real
    recorder.locate()
    if type(real) is not np.ndarray:
        return real
    if not isinstance(value, (np.ndarray, np.generic, list, tuple, int, float, complex)):
        is_numpy = str(type(value).__module__).partition(".")[0] == "numpy"
        return real if is_numpy else wrap_outside(recorder, original.__name__, real)

    table = _structured_array(recorder, value, real) if real.dtype.names else None
    if table is not None:
        return table

    def enter() -> Symbol:
        bound(original, _array_parameters, args, kwargs)
        return array_symbol(recorder, value, real)

    return recorder.outcome(original.__name__, real, enter)


def _structured_array(recorder: Recorder, value: Any, real: NDArray[Any]) -> Any:
    """Return the structured array of a list of tuples, assigned field by field; or None."""
    rows = cast("list[Any]", value) if isinstance(value, list) else []
    if not all(isinstance(row, tuple) for row in rows) or not traced_leaves(rows):
        return None
    table = zeros_of(recorder, real)
    for name, column in zip(real.dtype.names or (), zip(*rows, strict=True), strict=True):
        table[name] = list(column)
    return table if table.plain.tobytes() == real.tobytes() else None


def _record_masked_array(
    recorder: Recorder,
    original: Maker,
    value: np.ma.MaskedArray[Any, Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    """Record np.array and similar constructors of a masked array: of its data, and of its mask."""
    real, mask = original(value, *args, **kwargs), cast("Any", np.ma.getmask(value))
    if real is value or np.shape(real) != value.shape:
        return real
    kwargs = {name: x for name, x in kwargs.items() if name != "subok"}
    data = _record_array(recorder, original, np.ma.getdata(value), *args, **kwargs)
    if type(real) is not np.ma.MaskedArray:
        return data
    result = data.view(np.ma.MaskedArray)
    result._update_from(value)
    if mask is not np.ma.nomask:
        result._mask = mask.copy()
    return result


def _array_parameters(
    value: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    ndmin: int = 0,
) -> None:
    """The parameters of np.array and similar constructors that a cast and a reshape stand for."""


def array_symbol(recorder: Recorder, value: Any, real: Any) -> Symbol:
    """Return the symbol of a value as an array or a scalar of the dtype and shape of `real`."""
    if type(value) is np.ndarray and not recorder.has(value.dtype):
        raise UnrecordedError(recorder.objects.reason)
    if isinstance(value, (list, tuple)) and isinstance(next(iter(leaves(value)), None), str):
        return recorder.constant_array(real)  # texts are data
    to, values = recorder.dtype(real.dtype), plains(value)
    symbol = recorder.symbol(value)
    if isinstance(value, np.ndarray) and (
        dates.is_dated(values.dtype) or dates.is_dated(real.dtype)
    ):
        cast = dates.converted(recorder, symbol, values, real.reshape(values.shape))
    else:
        cast = recorder.converted(symbol, values, to, real=real)
    return recorder.reshaped(cast, real.shape)


# -- arrays of one value, and lines


def _constructor(symbolic: Callable[..., Symbol], operand: int | None = None) -> Callable[..., Any]:
    """Return the recorder of a constructor, whose symbol `symbolic` enters.

    `operand` is the position of the argument that is an operand; the other arguments are settings.
    """

    def record(recorder: Recorder, original: Maker, *args: Any, **kwargs: Any) -> Any:
        with recording_with(None):
            real = recorder.call(original, plains(args), plains(kwargs))
        if type(real) is not np.ndarray:
            return real
        recorder.locate()
        settings = [value for at, value in enumerate(args) if at != operand]
        keywords = {name: value for name, value in kwargs.items() if name != "fill_value"}
        recorder.setting(f"an argument of {original.__name__}", [settings, keywords])

        def enter() -> Symbol:
            places, settings = bound(original, symbolic, args, kwargs, leading=2)
            return symbolic(recorder, real, *places, **settings)

        return recorder.outcome(original.__name__, real, enter)

    return record


def _arange_symbol(
    recorder: Recorder,
    real: NDArray[Any],
    start: Number,
    stop: Number | None = None,
    step: Number = 1,
    dtype: DTypeLike | None = None,
) -> Symbol:
    if real.dtype.kind not in "iu" or not real.size:
        return recorder.input(real)
    by = int(real[1]) - int(real[0]) if real.size > 1 else 1
    to = DType.from_numpy(real.dtype)
    return recorder.emit(ops.range, (), dtype=to, start=int(real[0]), step=by, size=real.size)


def _eye_symbol(
    recorder: Recorder,
    real: NDArray[Any],
    rows: int | None = None,
    M: int | None = None,  # noqa: N803 -- NumPy's name
    k: int = 0,
    dtype: DTypeLike | None = None,
    order: str | None = None,
) -> Symbol:
    """Record np.eye and np.identity; NumPy's result has the shape and the dtype."""
    attrs = {"rows": real.shape[0], "columns": real.shape[1], "offset": int(k)}
    return recorder.emit(ops.eye, (), dtype=DType.from_numpy(real.dtype), **attrs)


def _record_fromiter(
    recorder: Recorder,
    original: Maker,
    iter: Iterable[Any],  # noqa: A002 -- NumPy's name
    dtype: DTypeLike | None,
    count: int = -1,
) -> Any:
    values: list[Any] = listed(recorder, islice(iter, count) if count >= 0 else chain(iter))
    with recording_with(None):
        real = recorder.call(original, (plains(values), dtype, count), {})
    if not recorder.has(real.dtype):
        return real
    recorder.locate()
    return recorder.outcome("fromiter", real, lambda: array_symbol(recorder, values, real))


def listed(recorder: Recorder, value: Any) -> Any:
    """Return a list in place of an iterator, which allows one pass; other values as they are."""
    if not isinstance(value, Iterator):
        return value
    values = recorder.call(list, (cast("Iterator[Any]", value),), {})  # the iterator is the user's
    recorder.calls.forget_result()
    return values


# -- functions that do not dispatch on the class


def as_recorded(recorder: Recorder, value: Any) -> Any:
    """Return an operand of a function as a recorded array; the call of the function is to come."""
    array = _record_array(recorder, _ASARRAY, value)
    recorder.calls.forget_result()
    return array


def _record_of_list(recorder: Recorder, original: Maker, *args: Any, **kwargs: Any) -> Any:
    """Call np.sum or a similar function; a list of rows or of recorded numbers becomes an array.

    NumPy does not dispatch on a list.
    """
    rows = cast("Sequence[Any]", args[0] if args and isinstance(args[0], (list, tuple)) else ())
    if traced_leaves(rows) or any(isinstance(row, (list, tuple)) for row in rows):
        args = (as_recorded(recorder, args[0]), *args[1:])
    return original(*args, **kwargs)


def _record_wrapit(
    recorder: Recorder, original: Maker, values: Any, method: str, *args: Any, **kwargs: Any
) -> Any:
    """Call `_wrapit`, by which np.cumsum and others call the method of a list's array."""
    return getattr(as_recorded(recorder, values), method)(*args, **kwargs)


def _record_lerp(
    recorder: Recorder,
    original: Maker,
    a: ArrayLike,
    b: ArrayLike,
    t: ArrayLike,
    out: NDArray[Any] | None = None,
) -> Any:
    """Call `_lerp`; for numbers the operands become vectors of one element.

    For numbers NumPy asks for a 0-d array by out=..., which dispatch does not pass on.
    """
    if np.ndim(a) or np.ndim(b) or np.ndim(t) or out is not None:
        return original(a, b, t, out=out)
    a, b = (as_recorded(recorder, operand).reshape(1) for operand in (a, b))
    return original(a, b, t)[0]


def _record_get_indexes(
    recorder: Recorder, original: Maker, x: ArrayLike, at: ArrayLike, count: ArrayLike
) -> Any:
    """Call `_get_indexes`; one number becomes a vector, for the reason given in `_record_lerp`."""
    if np.ndim(at):
        return original(x, at, count)
    places = original(x, as_recorded(recorder, at).reshape(1), count)
    return tuple(place.reshape(()) for place in places)


def _record_array_converter(recorder: Recorder, original: Maker, *args: Any) -> Any:
    """Call the class by which np.linspace and others read scalars as plain arrays.

    The result of np.linspace is an array for arrays without axes too, which stay recorded.
    """
    running = recorder.calls.running
    if (
        running is not None
        and running.outer is not None
        and running.outer.function == "numpy.linspace"
    ):
        args = tuple(as_recorded(recorder, x) if isinstance(x, TracedScalar) else x for x in args)
    for scalar in [x for x in args if isinstance(x, TracedScalar)]:
        recorder.setting("a scalar", scalar)
    return recorder.call(original, args, {})


CONSTRUCTORS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(
        ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray"), _record_array
    ),
    "asarray_chkfinite": _record_array,
    "zeros": _constructor(filling(0)),
    "empty": _constructor(filling(0, is_empty=True)),
    "ones": _constructor(filling(1)),
    "full": _constructor(full_of, 1),
    "arange": _constructor(_arange_symbol),
    "eye": _constructor(_eye_symbol),
    "identity": _constructor(_eye_symbol),
    "fromiter": _record_fromiter,
}
"""The recorders of NumPy's array constructors, by path in numpy."""
LIST_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("sum", "prod", "mean", "std", "var", "median"), _record_of_list),
    **dict.fromkeys(("max", "min", "amax", "amin", "linalg.norm"), _record_of_list),
    "_core.fromnumeric._wrapit": _record_wrapit,
    "lib._function_base_impl._array_converter": _record_array_converter,
    "lib._function_base_impl._lerp": _record_lerp,
    "lib._function_base_impl._get_indexes": _record_get_indexes,
}
"""The recorders of functions that get lists or numbers without dispatch, by path in numpy."""
