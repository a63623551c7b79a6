"""Indexing and assignment of recorded arrays: `x[key]` and `x[key] = value`.

Start at `get` and `put`. A basic key makes a view; any other key selects elements by positions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import DTypeLike

from graphir.hints import Indices
from graphir.ir.literals import is_literal
from graphir.location import ASSIGN
from graphir.numpy_api import view_steps as steps
from graphir.numpy_api.view_steps import Cut
from graphir.public import Symbol, ops
from graphir.runtime.recording.leaving import AS_TEXT, is_text
from graphir.runtime.recording.numpy_.dates import in_unit
from graphir.runtime.recording.numpy_.python_numbers import RecordedInt
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.structured import move_structured, parts_of
from graphir.runtime.recording.values import (
    Array,
    RecordedNumber,
    RecordedValue,
    RecordingTrace,
    TracedInt,
    TracedScalar,
    UnrecordedError,
    active,
    plain,
    plains,
    trace_of,
    view_of,
    view_trace,
)

Key: TypeAlias = "Indices | str | list[str]"
"""What a program passes between brackets."""
_BASIC = (int, slice, type(None), type(Ellipsis), np.integer)


def is_basic(key: Key) -> bool:
    """Whether a key is basic indexing, of ints, slices, None and `...`: a view or an element."""
    keys = _keys(key)
    return all(isinstance(x, _BASIC) and x is not True and x is not False for x in keys)


def get(x: RecordedValue, key: Key) -> Any:
    """Return x[key], and record it."""
    recorder, real_key = active(), plains(key)
    if type(key) in _OF_PYTHON:
        key = _recorded_key(recorder, key)
    real: Any = x.plain[real_key]
    if recorder is None:
        return real
    if x.plain.dtype.names:
        recorder.locate()
        return _get_structured(recorder, x, key, real)
    if is_text(x.plain.dtype):
        recorder.locate()
        recorder.setting("an index", key)
        return recorder.wrapped(real, None)
    is_array = isinstance(real, np.ndarray)
    is_read = is_array or not any(_is_computed(recorder, entry) for entry in _keys(key))
    if not (is_basic(key) and is_read):
        recorder.locate()
        return recorder.outcome("indexing", real, lambda: _picked(recorder, x, key, real_key))
    recorder.setting("an index", key)
    if isinstance(real, np.ndarray):  # the trace of a view is derived on first use
        return view_of(x, cast("Any", real))
    recorder.locate()
    return recorder.outcome(
        "indexing", real, lambda: element(trace_of(x, recorder), real_key).read()
    )


_OF_PYTHON = frozenset((tuple, list, RecordedInt))


def _recorded_key(recorder: Recorder | None, key: Key) -> Any:
    """Return a key of recorded arrays and scalars, in place of lists and integers of Python."""
    if recorder is None or not recorder.numbers.has_any:
        return key
    if type(key) is tuple:
        return tuple([_recorded_part(recorder, x) for x in cast("tuple[Any, ...]", key)])
    return _recorded_part(recorder, key)


def _recorded_part(recorder: Recorder, entry: Any) -> Any:
    if isinstance(entry, TracedInt):
        return entry.scalar
    is_list = type(entry) is list and any(
        isinstance(x, (TracedScalar, TracedInt)) for x in cast("list[Any]", entry)
    )
    real = np.asarray(plains(entry)) if is_list else None
    if real is None or real.ndim != 1 or real.dtype.kind not in "iu":
        return cast("Any", entry)
    symbol = recorder.before(entry)
    return cast("Any", entry) if symbol is None else recorder.wrapped(real, symbol)


def _get_structured(recorder: Recorder, x: RecordedValue, key: Key, real: Any) -> Any:
    """Return x[key] of a structured array: a field, a row, or a view or a copy of rows."""
    if isinstance(key, str):
        has_trace = real.dtype.names or recorder.has(real.dtype)
        return view_of(x, real) if has_trace else recorder.wrapped(real, None)
    if not is_basic(key) and not _is_names(key):
        return move_structured(recorder, x, real, lambda field: get(field, key))
    recorder.setting("an index", key)
    is_view = isinstance(real, np.ndarray)
    return view_of(x, cast("Any", real)) if is_view else recorder.row(x, plains(key))


def _is_names(key: Key) -> bool:
    return isinstance(key, list) and all(isinstance(x, str) for x in cast("list[Any]", key))


def element(trace: RecordingTrace, key: Key) -> RecordingTrace:
    """Return the trace of the view that a basic key makes; an element is a 0-d view."""
    keys = _keys(key)
    shape = trace.plain.shape
    if len(keys) != len(shape) or not all(isinstance(entry, (int, np.integer)) for entry in keys):
        return view_trace(trace, trace.plain[(*keys, *(() if Ellipsis in keys else (Ellipsis,)))])
    start = tuple(int(at) % size for at, size in zip(keys, shape, strict=True))
    stop = tuple(at + 1 for at in start)
    steps_found = (Cut(start, stop, (1,) * len(start), ()),)
    return RecordingTrace(trace.recorder, trace.plain[(*keys, Ellipsis)], None, trace, steps_found)


def _picked(recorder: Recorder, x: RecordedValue, key: Key, real_key: Any) -> Symbol:
    """Return the symbol of x[key] for advanced indexing.

    One array of integers along one axis is a gather by the symbol of these indices, and integers
    that the program computes along several axes are one by their positions; any other key selects
    elements by their row-major positions as of now.
    """
    symbol = recorder.symbol(x)
    axis = _one_axis(key)
    if axis is not None:
        return recorder.emit(ops.gather, (symbol, _indices(recorder, key, axis)), axis=axis)
    positions = _computed_positions(recorder, x, key)
    if positions is None:
        return steps.Pick(placed(recorder, x, key)).forward(recorder, symbol)
    flat = recorder.reshaped(symbol, (x.size,))
    return recorder.emit(ops.gather, (flat, positions), axis=0)


def _computed_positions(recorder: Recorder, x: RecordedValue, key: Key) -> Symbol | None:
    """Return the symbol of the row-major positions of the elements that a key selects.

    The answer is None for a key without integers that ops of the graph compute, or with a mask.
    """
    keys, real = _keys(key), list(plains(_keys(key)))
    indices = {
        at: recorder.symbol(entry)
        for at, entry in enumerate(keys)
        if isinstance(entry, RecordedValue) and _dtype(entry).kind in "iu" and entry.size
    }
    indices |= {at: entry.symbol for at, entry in enumerate(keys) if _is_computed(recorder, entry)}
    indices = {at: symbol for at, symbol in indices.items() if symbol.args}
    if not indices or not all(map(_is_whole, real)):
        return None
    recorder.setting("an index", [entry for at, entry in enumerate(keys) if at not in indices])
    if x.ndim == len(keys) == 1:
        return indices[0]
    origin = [0 * entry if at in indices else entry for at, entry in enumerate(real)]
    result = recorder.constant_array(places(x.plain, tuple(origin)))
    inner = sum(entry is not None and entry is not Ellipsis for entry in real)
    sizes: tuple[int, ...] = x.shape
    for at, index in indices.items():
        axis = sum(1 if y is not Ellipsis else x.ndim - inner for y in real[:at] if y is not None)
        offsets = _line(sizes[axis]) * prod(sizes[axis + 1 :])
        part = recorder.emit(ops.gather, (recorder.constant_array(offsets), index), axis=0)
        numbers = _line(real[at].size)  # of the indices, and for each element of the result
        column = numbers.reshape(-1, *[1] * (x.ndim - axis - 1))
        whole = np.broadcast_to(column, (*sizes[:axis], numbers.size, *sizes[axis + 1 :]))
        shaped = numbers.reshape(real[at].shape)
        picks: Array = whole[tuple([shaped if i == at else y for i, y in enumerate(origin)])]
        if not np.array_equal(picks, shaped):
            part = steps.Pick(np.ascontiguousarray(picks)).forward(recorder, part)
        result = recorder.emit(ops.add, (result, part))
    return result


def _is_computed(recorder: Recorder, entry: Any) -> bool:
    """Whether a part of a key is an integer that ops of the graph compute."""
    if not isinstance(entry, TracedScalar) or entry.recorder is not recorder:
        return False
    return entry.plain.dtype.kind in "iu" and bool(entry.symbol.args)


def _line(count: int) -> Array:
    return np.arange(count)


def _is_whole(entry: Any) -> bool:
    """Whether a part of a key is a slice, a new axis, or integers of NumPy."""
    if isinstance(entry, (np.ndarray, np.generic)):
        return cast("Any", entry).dtype.kind in "iu"
    is_part = isinstance(entry, (slice, int)) and not isinstance(entry, bool)
    return entry is None or entry is Ellipsis or is_part


def _indices(recorder: Recorder, key: Key, axis: int) -> Symbol:
    """Return the symbol of the only array in a key, and note the values of the other parts."""
    indices = _keys(key)[axis]
    recorder.setting("an index", [part for part in _keys(key) if part is not indices])
    return recorder.symbol(indices)


def _keys(key: Key) -> tuple[Any, ...]:
    return cast("tuple[Any, ...]", key) if type(key) is tuple else (key,)


def _one_axis(key: Key) -> int | None:
    """Return the axis of the only array in a key of whole slices and one integer array; or None."""
    keys = _keys(key)
    wholes = [isinstance(entry, slice) and entry == slice(None) for entry in keys]
    arrays = [i for i, is_whole in enumerate(wholes) if not is_whole]
    if len(arrays) != 1:
        return None
    entry: Any = keys[arrays[0]]
    return arrays[0] if isinstance(entry, np.ndarray) and _dtype(entry).kind in "iu" else None


def _dtype(array: Any) -> np.dtype[Any]:
    return array.dtype


def placed(recorder: Recorder, x: RecordedValue, key: Key) -> Any:
    """Return `places` of a key that may be recorded, and note that the key's values were read."""
    recorder.setting("an index", key)
    return places(x.plain, plains(key))


def places(array: Array, key: Any) -> Any:
    """Return the row-major positions of the elements that a key selects, as int64."""
    return np.asarray(np.arange(array.size).reshape(array.shape)[key])


def put(
    x: RecordedValue, key: Key, value: Any, write: Callable[..., None] = operator.setitem
) -> None:
    """Assign x[key] = value, and record it; `write(array, key, value)` is NumPy's assignment."""
    recorder, real_key = active(), plains(key)
    if type(key) in _OF_PYTHON:
        key = _recorded_key(recorder, key)
    if recorder is None or not recorder.has(x.dtype):
        _put_structured(x, key, value, write)
        return
    recorder.locate()
    trace = trace_of(x, recorder)
    # Some symbols are read from memory alone, so their reads come before the write.
    before = trace.read()
    value_symbol = recorder.before(value) if isinstance(value, (np.ndarray, list, tuple)) else None
    is_list = isinstance(value, (list, tuple))  # NumPy assigns the rows of a list one by one
    aliases = _reads(key, x) or (is_list and _reads(value, x))
    recorder.call(write, (x.plain, real_key, plains(value)), {})
    if aliases:
        enter = _unknown
    elif is_basic(key):
        recorder.setting("an index", key)
        trace = element(trace, real_key)
        enter = partial(assigned, recorder, value, value_symbol, trace.plain, trace.plain)
    else:
        enter = partial(_scattered, recorder, x, before, key, value, value_symbol)
    trace.write(recorder.result_symbol("assignment", trace.plain, enter))


def _put_structured(x: RecordedValue, key: Any, value: Any, write: Callable[..., None]) -> None:
    """Assign x[key] = value for elements without symbols; record it field by field if possible."""
    recorder, names = active(), x.plain.dtype.names
    if recorder is None or not names:
        if recorder is not None and recorder.locate():
            recorder.setting("an index", key)
            recorder.leaving.hand_out("assignment", value, AS_TEXT)
        write(x.plain, plains(key), plains(value))
        return
    if isinstance(key, str):
        x[key][...] = value
        return
    parts = parts_of(value, names) if write is operator.setitem else None
    if parts is not None and len(parts) == len(names) and not _is_names(key):
        for name, part in zip(names, parts, strict=True):
            x[name][key] = part
        return
    recorder.locate()
    write(x.plain, plains(key), plains(value))
    trace_of(x, recorder).write(None)


def _reads(value: Any, x: RecordedValue) -> bool:
    """Whether a key, or an array in a list, shares memory with the array that is written."""
    if isinstance(value, (list, tuple)):
        return any(_reads(item, x) for item in cast("list[Any]", value))
    return isinstance(value, np.ndarray) and np.may_share_memory(plain(value), x.plain)


def _unknown() -> Symbol:
    raise UnrecordedError("it reads what it writes")


def _scattered(
    recorder: Recorder,
    x: RecordedValue,
    before: Symbol,
    key: Key,
    value: Any,
    value_symbol: Symbol | None,
) -> Symbol:
    """Return the symbol of the whole array x after an assignment by a mask or by indices."""
    if _is_mask(key, x) and np.ndim(plain(value)) == 0:
        first_value = x.plain[plains(key)][:1]
        scalar_symbol = assigned(recorder, value, value_symbol, np.empty((), x.dtype), first_value)
        return recorder.emit(ops.where, (recorder.symbol(key), scalar_symbol, before))
    axis, real = _one_axis(key), x.plain[plains(key)]
    new = assigned(recorder, value, value_symbol, real, real)
    indices = None if axis is None else _indices(recorder, key, axis)
    indices = _computed_positions(recorder, x, key) if indices is None else indices
    if indices is None:
        return steps.Pick(placed(recorder, x, key)).backward(recorder, before, new)
    return recorder.emit(ops.index_update, (before, new, indices), axis=axis)


def _is_mask(key: Key, x: RecordedValue) -> bool:
    is_mask = isinstance(key, np.ndarray) and _dtype(key) == np.bool_
    return is_mask and np.shape(cast("Any", key)) == x.shape


def assigned(
    recorder: Recorder,
    value: Any,
    value_symbol: Symbol | None,
    into: Array,
    real: Array | None = None,
) -> Symbol:
    """Return the symbol of a value assigned into an array: implicitly cast, and broadcast.

    `value_symbol` is the symbol before NumPy wrote, or None of a value that no write changes.
    `into` has the dtype and shape of the destination. `real` are the values that NumPy has stored.
    """
    to = recorder.dtype(into.dtype)
    if isinstance(value, RecordedNumber):
        value = value.scalar
    if is_literal(value):
        symbol = recorder.assigned_literal(value, to)
    else:
        symbol = recorder.symbol(value) if value_symbol is None else value_symbol
    symbol = in_unit(recorder, symbol, value, into.dtype)
    cast = recorder.converted(symbol, value, to, "value", ASSIGN, real, ASSIGN)
    return recorder.broadcast(cast, into.shape)


def adds_exactly(x: RecordedValue, ufunc: np.ufunc, value: Any) -> bool:
    """Whether `ufunc.at` adds to x in its own dtype.

    NumPy computes each sum in the dtype of both, and rounds it to that of x. For a number that x
    holds exactly, such a sum is rounded as one in the dtype of x.
    """
    values, dtype = np.asarray(plains(value)), _dtype(x.plain)
    ranks = [_RANKS.get(each.kind, 9) for each in (values.dtype, dtype)]
    if ufunc not in (np.add, np.subtract) or max(ranks) == 9:
        return False
    if not is_literal(value):
        return np.result_type(dtype, values.dtype) == dtype
    with np.errstate(all="ignore"):
        return ranks[0] <= ranks[1] and bool(values.astype(dtype) == values)


_RANKS = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def add_at(recorder: Recorder, ufunc: np.ufunc, x: RecordedValue, key: Key, value: Any) -> None:
    """Call `ufunc.at` of add or subtract, whose repeated places accumulate, and record it."""
    trace = trace_of(x, recorder)
    before = trace.read()
    value_symbol = recorder.before(value)
    recorder.call(ufunc.at, (x.plain, plains(key), plains(value)), {})
    aliases = _reads(key, x)

    def enter() -> Symbol:
        if aliases:
            return _unknown()
        axis, into = _one_axis(key), x.plain[plains(key)]
        new = assigned(recorder, value, value_symbol, np.asarray(into))
        new = recorder.emit(ops.negative, (new,)) if ufunc is np.subtract else new
        if axis is None:
            indices = recorder.constant_array(placed(recorder, x, key))
        else:
            indices = _indices(recorder, key, axis)
        return recorder.emit(ops.index_add, (before, new, indices), axis=axis)

    trace.write(recorder.result_symbol(f"{ufunc.__name__}.at", x.plain, enter))


def put_flat(
    x: RecordedValue, write: Callable[..., None], args: Sequence[Any], key: Any, value: Any
) -> None:
    """Call `write(*args)`, which assigns values at row-major positions, and record it.

    `key` selects the positions. NumPy repeats or truncates the values to the number of positions.
    """
    recorder, values = active(), np.asarray(plains(value))
    if recorder is None or not recorder.has(x.dtype):
        write(*args)
        if recorder is not None and x.plain.dtype.names:
            recorder.locate()
            trace_of(x, recorder).write(None)
        return
    recorder.locate()
    trace = trace_of(x, recorder)
    before, value_symbol = trace.read(), recorder.before(value)
    overlap = np.may_share_memory(values, x.plain)
    recorder.call(write, args, {})
    if not values.size:
        return

    def enter() -> Symbol:
        if value_symbol is None or overlap:
            raise UnrecordedError("what is written has no symbol, or is changed meanwhile")
        at = np.arange(x.size)[key].reshape(-1)
        into: Any = np.broadcast_to(np.empty((), x.dtype), at.shape)
        if is_literal(value):
            new = assigned(recorder, value, value_symbol, into)
        else:
            order = np.arange(at.size) % values.size
            picked_symbol = steps.Pick(order).forward(recorder, value_symbol)
            real = x.plain.reshape(-1)[at]
            new = assigned(recorder, values.reshape(-1)[order], picked_symbol, into, real)
        return steps.Pick(at).backward(recorder, before, new)

    trace.write(recorder.result_symbol("assignment", x.plain, enter))


class FlatIterator:
    """`x.flat` of a recorded array: its elements in row-major order."""

    def __init__(self, array: RecordedValue) -> None:
        self._array = array
        self.plain: Any = array.plain.flat
        """NumPy's iterator at the same position."""

    @property
    def base(self) -> RecordedValue:
        """The array whose elements the iterator yields."""
        return self._array

    def __getitem__(self, key: Any) -> Any:
        result: Any = self._array.reshape(-1)[key]
        # NumPy's flat iterator never returns a view.
        return result.copy() if isinstance(result, RecordedValue) else result

    def __setitem__(self, key: Any, value: Any) -> None:
        array, at = self._array, plains(key)
        put_flat(array, operator.setitem, (array.plain.flat, at, plains(value)), at, value)

    def __len__(self) -> int:
        return self._array.size

    def __iter__(self) -> Any:
        return iter(self._array.reshape(-1))

    def __next__(self) -> Any:
        at = self.index
        next(self.plain)
        return self[at]

    @property
    def index(self) -> int:
        """The row-major position of the next element."""
        return self.plain.index

    @property
    def coords(self) -> tuple[int, ...]:
        """The indices of the next element."""
        return self.plain.coords

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Any:
        return np.array(self._array.plain.reshape(-1), dtype)

    def copy(self) -> Any:
        """Return the elements as a vector."""
        return self._array.flatten()
