"""Object arrays of recorded Python numbers, and functions that NumPy calls with their elements.

A ufunc of `np.frompyfunc` calls a function of the program with Python numbers, and puts what the
function returns in an object array. Recorded arrays become object arrays of recorded numbers for
it. NumPy's loops over objects call their operators, which record the arithmetic of each element; a
cast of the object array is one of the list of its elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, SupportsIndex, cast

import numpy as np
from numpy.typing import DTypeLike

from graphir.ir.literals import is_literal
from graphir.public import Symbol
from graphir.runtime.recording.captured import user_functions
from graphir.runtime.recording.leaving import AS_NUMBER
from graphir.runtime.recording.numpy_.python_numbers import fits, is_watched, numbers_of
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.values import (
    Array,
    RecordedNumber,
    RecordedValue,
    RecordingTrace,
    TracedScalar,
    UnrecordedError,
    active,
    plain,
    plains,
    recording_with,
)

_OF_PYTHON = " (vectorized)"
"""The end of the names of ufuncs that call a function of the program."""


class ObjectTrace(RecordingTrace):
    """The trace of an object array: its symbol is that of the list of its present elements."""

    __slots__ = ()

    def __init__(self, recorder: Recorder, plain: Array) -> None:
        super().__init__(recorder, plain, None)

    def read(self) -> Symbol:
        """Return the symbol of the elements, which are numbers of one type."""
        return symbol_of_list(self.recorder, self.plain.reshape(-1).tolist())

    def view_of_part(self, view: Array) -> RecordingTrace | None:
        """Return the trace of a view."""
        return ObjectTrace(self.recorder, view)

    def write(self, symbol: Symbol | None) -> None:
        """Objects in the array have symbols of their own."""


def symbol_of_list(recorder: Recorder, elements: list[Any]) -> Symbol:
    """Return the symbol of a list of numbers of one type, some of which are recorded."""
    types = {_type(x) for x in elements}
    if len(types) != 1 or not all(map(fits, elements)):
        raise UnrecordedError("its elements are no numbers of one type")
    return recorder.list_symbol(elements)


def _type(value: Any) -> Any:
    """Return the type of a number."""
    real: Any = plain(value)
    if not is_literal(real) and not isinstance(real, np.generic):
        raise UnrecordedError("its elements are no numbers")
    return cast("Any", type(cast("Any", real)))


class RecordedObjects(RecordedValue):
    """An object array whose elements may be recorded numbers."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return call(ufunc, method, inputs, kwargs)

    def __array_function__(
        self,
        function: Any,
        types: Iterable[type[Any]],
        args: Iterable[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        recorder, run = active(), function._implementation
        if recorder is None or hasattr(run, "__code__"):
            return run(*args, **kwargs)
        recorder.locate()
        recorder.read(function.__name__, [args, kwargs], AS_NUMBER)
        return _wrapped(recorder, run(*plains(args), **plains(kwargs)))

    def astype(self, dtype: DTypeLike, *args: Any, **kwargs: Any) -> Any:
        """Return the array cast to another dtype: a recorded array of its elements."""
        recorder = active()
        with recording_with(None):
            real = self.plain.astype(plain(dtype), *args, **kwargs)
        if recorder is None or type(real) is not np.ndarray:
            return real
        recorder.locate()
        if real.dtype.kind == "O":
            return wrapped_objects(recorder, real)
        return recorder.outcome("astype", real, lambda: cast_objects(recorder, self.plain, real))

    def __repr__(self) -> str:
        return repr(self.plain)

    def __str__(self) -> str:
        return str(self.plain)

    def __format__(self, spec: str) -> str:
        return format(self.plain, spec)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return self.plain.__reduce_ex__(protocol)


def cast_objects(recorder: Recorder, objects: Array, real: Array) -> Symbol:
    """Return the symbol of an object array in another dtype, where its values are `real`."""
    elements = objects.reshape(-1).tolist()
    symbol = symbol_of_list(recorder, elements)
    numbers = np.asarray(plains(elements))
    with np.errstate(all="ignore"):
        values = numbers.astype(real.dtype).reshape(real.shape)
    if not np.array_equal(values, real, equal_nan=real.dtype.kind in "fc"):
        raise UnrecordedError("NumPy converts its objects by their own methods")
    cast = recorder.converted(symbol, numbers, recorder.dtype(real.dtype), real=real.reshape(-1))
    return recorder.reshaped(cast, real.shape)


def is_on_objects(ufunc: np.ufunc, inputs: Sequence[Any]) -> bool:
    """Whether a call of a ufunc on recorded values is one on recorded numbers of Python.

    A function of the program must ask before it reads them.
    """
    if RecordedObjects in map(type, inputs):
        return True
    return ufunc.__name__.endswith(_OF_PYTHON) and any(map(is_watched, user_functions(ufunc)))


def call(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call a ufunc on objects; the operators of its elements record what it computes."""
    recorder = active()
    outs = kwargs.get("out") or ()
    kwargs = {name: plains(value) for name, value in kwargs.items()}
    if recorder is None:
        real = getattr(ufunc, method)(*plains(list(inputs)), **kwargs)
        return outs[0] if len(outs) == 1 else real
    recorder.locate()
    operands = [_as_objects(recorder, ufunc.__name__, x) for x in inputs]
    real = recorder.call(getattr(ufunc, method), operands, kwargs)
    for into in outs:
        if isinstance(into, RecordedValue) and type(into) is not RecordedObjects:
            cast("RecordingTrace", into.recording_trace).write(None)
    return outs[0] if len(outs) == 1 else _wrapped(recorder, real)


def _as_objects(recorder: Recorder, name: str, value: Any) -> Any:
    """Return an operand with recorded numbers of Python in place of recorded values."""
    if type(value) is RecordedObjects:
        return value.plain
    if isinstance(value, (RecordedValue, TracedScalar)):
        numbers = numbers_of(value)
        if numbers is None:
            recorder.read(name, value, "makes object, which no graph has")
        return plain(value) if numbers is None else numbers
    if isinstance(value, RecordedNumber):
        number = np.empty((), object)
        number[()] = value
        return number
    return value


def wrapped_objects(recorder: Recorder, real: Array) -> RecordedObjects:
    """Return an object array in the form that the program gets."""
    recorder.objects.add_numbers()
    result = real.view(RecordedObjects)
    result._plain, result.recording_trace = real, ObjectTrace(recorder, real)  # pyright: ignore[reportPrivateUsage]
    return result


def _wrapped(recorder: Recorder, real: Any) -> Any:
    if isinstance(real, tuple):
        return tuple([_wrapped(recorder, x) for x in cast("tuple[Any, ...]", real)])
    if type(real) is not np.ndarray:
        return real
    if real.dtype.kind == "O":
        return wrapped_objects(recorder, real)
    # Python's bools are decisions by recorded numbers, which are noted.
    return recorder.wrapped(real, recorder.constant_array(real) if real.dtype == bool else None)
