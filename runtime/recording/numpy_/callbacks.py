"""Functions of the program that `np.vectorize` calls with numbers of Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from graphir import Symbol
from graphir.ir.literals import is_literal
from graphir.location import ASSIGN
from graphir.runtime.recording.notes import NotingBuilder
from graphir.runtime.recording.numpy_.python_numbers import is_watched, numbers_of
from graphir.runtime.recording.operands import is_text, traced_leaves
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.values import (
    RecordedNumber,
    RecordedValue,
    TracedScalar,
    UnrecordedError,
    plain,
    plains,
    recording_with,
)


def vectorized(
    recorder: Recorder, original: Any, vectorize: np.vectorize, func: Any, args: Sequence[Any]
) -> Any:
    """Call a np.vectorize object, which calls the user's function with Python numbers.

    NumPy's code runs beside the recording, and the user's function in it, with recorded numbers.
    Where there are none, what the function does with Python numbers is not recorded. If it asks
    nothing of NumPy, it computes as Python does, and its results are those of the numbers that it
    reads. If it does, it must return recorded numbers, and get no data but by what it captures.
    """
    if vectorize.signature is not None:
        return recorder.call(original, (vectorize, func, args), {})
    returned: list[Any] = []
    user = vectorize.pyfunc
    numbers_at = _numbers_by_call(recorder, vectorize, args) if is_watched(user) else None
    name = f"{getattr(user, '__name__', type(user).__name__)} (vectorized)"

    def called(*numbers: Any) -> Any:
        with recording_with(recorder):
            result: Any = func(*(numbers if numbers_at is None else numbers_at(len(returned))))
        returned.append(result)
        return result

    values = plains(list(args))
    symbols = [recorder.before(arg) for arg in traced_leaves(list(args))]
    has_data = numbers_at is None and any(
        symbol is None or _depends_on_input(recorder, symbol) for symbol in symbols
    )
    calls = recorder.located
    with recording_with(None):
        real = recorder.call(original, (vectorize, called, values), {})
    is_of_python = recorder.located == calls
    recorder.locate()
    if has_data:  # beside its results, the function may keep what it makes of the numbers
        reason = "is called with Python numbers, by which it may go on"
        for value in [*args] if is_of_python else [recorder.arguments]:
            NotingBuilder.read(recorder, name, value, reason)
    parts: Sequence[Any] = cast("Any", real) if isinstance(real, tuple) else (real,)

    def enter(place: int, part: NDArray[Any]) -> Symbol:
        results = returned[len(returned) - part.size :]
        elements = [x[place] if isinstance(real, tuple) else x for x in results]
        numbers = np.asarray(plains(elements)).astype(part.dtype).reshape(part.shape)
        if not np.array_equal(numbers, part, equal_nan=part.dtype.kind in "fc"):
            raise UnrecordedError("it orders the results of Python's functions by itself")
        are_recorded = not has_data and all(
            isinstance(x, TracedScalar) or (numbers_at is not None and is_literal(plain(x)))
            for x in elements
        )
        if not (are_recorded or (is_of_python and all(map(_is_of_python, elements)))):
            raise UnrecordedError("NumPy calls it with Python numbers, which are not recorded")
        kinds: set[Any] = {type(plain(x)) for x in elements}
        is_mixed = are_recorded and len(kinds) > 1
        if is_mixed:
            raise UnrecordedError("its results have several dtypes")
        symbol, to = recorder.list_symbol(elements), recorder.dtype(part.dtype)
        flat = part.reshape(-1)
        cast = recorder.converted(symbol, elements, to, "result", "vectorize", flat, ASSIGN)
        return recorder.reshaped(cast, part.shape)

    results = [
        recorder.wrapped(part, None)
        if is_text(part.dtype) and is_of_python
        else recorder.outcome(name, part, partial(enter, place, part))
        for place, part in enumerate(parts)
    ]
    return tuple(results) if isinstance(real, tuple) else results[0]


def _is_of_python(value: Any) -> bool:
    """Whether a value is a number of Python, or one of NumPy that is as wide."""
    real = plain(value)
    return is_literal(real) or type(real) in (np.float64, np.complex128, np.bool_, np.int64)


def _depends_on_input(recorder: Recorder, symbol: Symbol) -> bool:
    """Whether a symbol depends on an input of the graph."""
    inputs = {x.index for x in recorder.graph.inputs}
    reached, waiting = {symbol.index}, [symbol]
    while waiting:
        new = [x for x in waiting.pop().args if x.index not in reached]
        reached.update(x.index for x in new)
        waiting += new
    return not inputs.isdisjoint(reached)


def _numbers_by_call(
    recorder: Recorder, vectorize: np.vectorize, args: Sequence[Any]
) -> Callable[[int], list[Any]] | None:
    """Return a function from the number of a call to recorded numbers in place of its arguments.

    The answer is None without recorded numbers, or where NumPy may order the calls by the memory.
    If it has no dtypes of results, NumPy calls the function with the first elements of the arrays
    before it loops over them.
    """
    shapes = {np.shape(plain(x)) for x in args} - {()}
    arrays = [plain(x) for x in args if isinstance(x, (np.ndarray, RecordedValue))]
    if len(shapes) > 1 or not all(x.flags.c_contiguous for x in arrays):
        return None
    columns = [_column(x) for x in args]
    if not any(isinstance(x, (RecordedValue, TracedScalar, RecordedNumber)) for x in args):
        return None
    if any(column is None for column in columns):
        return None
    is_asked = vectorize.otypes is None
    first = [x.reshape(-1)[0] if is_asked and np.ndim(x) else x for x in args]

    def numbers_at(call: int) -> list[Any]:
        if is_asked and not call:
            return first
        at = call - (is_asked and not vectorize.cache)
        return [column[at if len(column) > 1 else 0] for column in cast("Any", columns)]

    return numbers_at


def _column(value: Any) -> list[Any] | None:
    """Return the elements of an argument as numbers of Python, recorded if the argument is."""
    if isinstance(value, RecordedValue):
        numbers = numbers_of(value)
        return None if numbers is None else numbers.reshape(-1).tolist()
    is_number = isinstance(value, (TracedScalar, RecordedNumber)) or is_literal(value)
    return [value] if is_number else None
