"""Functions of the program that `np.vectorize` calls with numbers of Python.

Start at `vectorized`, which runs NumPy's code with a `_VectorizedCall` in the function's place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import partial
from typing import Any, cast

import numpy as np

from graphir.ir.literals import is_literal
from graphir.location import ASSIGN
from graphir.public import Symbol
from graphir.runtime.recording.builder import NotingBuilder
from graphir.runtime.recording.leaving import is_text, traced_leaves
from graphir.runtime.recording.numpy_.python_numbers import is_watched, numbers_of
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.values import (
    Array,
    RecordedNumber,
    RecordedValue,
    TracedScalar,
    UnrecordedError,
    plain,
    plains,
    recording_with,
)


class _Numbers(Enum):
    """The numbers that the user's function gets from NumPy."""

    RECORDED = auto()
    """Recorded numbers: its steps are recorded, and a literal among its results is a constant."""
    CONSTANT = auto()
    """Numbers of Python that depend on no input: it may return what it records by itself."""
    DATA = auto()
    """Numbers of Python that depend on inputs: no result of it is recorded."""


def vectorized(
    recorder: Recorder,
    original: Callable[..., Any],
    vectorize: np.vectorize,
    func: Callable[..., Any],
    args: Sequence[Any],
) -> Any:
    """Call a np.vectorize object, which calls the user's function with Python numbers.

    NumPy's code runs beside the recording, and the user's function in it, with recorded numbers.
    Where there are none, what the function does with Python numbers is not recorded. If it asks
    nothing of NumPy, it computes as Python does, and its results are those of the numbers that it
    reads. If it does, it must return recorded numbers, and get no data but by what it captures.
    """
    if vectorize.signature is not None:
        return recorder.call(original, (vectorize, func, args), {})
    call = _VectorizedCall(recorder, vectorize, func, args)
    real = call.run(original, vectorize)
    if not isinstance(real, tuple):
        return call.result(real, None)
    parts = enumerate(cast("tuple[Array, ...]", real))
    return tuple(call.result(part, place) for place, part in parts)


class _VectorizedCall:
    """A call of a np.vectorize object: it runs once, and then gives its results one by one."""

    def __init__(
        self,
        recorder: Recorder,
        vectorize: np.vectorize,
        func: Callable[..., Any],
        args: Sequence[Any],
    ) -> None:
        self._recorder, self._func, self._args = recorder, func, args
        user = vectorize.pyfunc
        self._name = f"{getattr(user, '__name__', type(user).__name__)} (vectorized)"
        self._numbers_at = _numbers_by_call(vectorize, args) if is_watched(user) else None
        symbols = [recorder.before(arg) for arg in traced_leaves(list(args))]
        if self._numbers_at is not None:
            self._numbers = _Numbers.RECORDED
        elif any(symbol is None or _depends_on_input(recorder, symbol) for symbol in symbols):
            self._numbers = _Numbers.DATA
        else:
            self._numbers = _Numbers.CONSTANT
        self._returned: list[Any] = []
        """What the user's function has returned, call by call."""
        self._asks_numpy = False
        """Whether the user's function has called NumPy."""

    def run(self, original: Callable[..., Any], vectorize: np.vectorize) -> Any:
        """Return NumPy's result of the call, which is an array or a tuple of arrays."""
        recorder, steps = self._recorder, self._recorder.located
        with recording_with(None):
            real = recorder.call(original, (vectorize, self._call, plains(list(self._args))), {})
        self._asks_numpy = recorder.located != steps
        recorder.locate()
        if self._numbers is _Numbers.DATA:
            # beside its results, the function may keep what it makes of the numbers
            reason = "is called with Python numbers, by which it may go on"
            for value in [recorder.calls.arguments] if self._asks_numpy else self._args:
                NotingBuilder.read(recorder, self._name, value, reason)
        return real

    def _call(self, *numbers: Any) -> Any:
        """Call the user's function in NumPy's stead, with recorded numbers if there are some."""
        if self._numbers_at is not None:
            numbers = tuple(self._numbers_at(len(self._returned)))
        with recording_with(self._recorder):
            result: Any = self._func(*numbers)
        self._returned.append(result)
        return result

    def result(self, part: Array, place: int | None) -> Any:
        """Return a result in the form that the program gets; `place` is None of the only one."""
        if is_text(part.dtype) and not self._asks_numpy:
            return self._recorder.wrapped(part, None)
        return self._recorder.outcome(self._name, part, partial(self._symbol, part, place))

    def _symbol(self, part: Array, place: int | None) -> Symbol:
        """Return the symbol of a result.

        Raises UnrecordedError if the elements are not what NumPy has made the result of, or if the
        function may have made them in steps that are not recorded.
        """
        recorder, returned = self._recorder, self._returned[len(self._returned) - part.size :]
        elements = returned if place is None else [x[place] for x in returned]
        numbers = np.asarray(plains(elements)).astype(part.dtype).reshape(part.shape)
        if not np.array_equal(numbers, part, equal_nan=part.dtype.kind in "fc"):
            raise UnrecordedError("it orders the results of Python's functions by itself")
        if all(map(self._is_recorded, elements)):
            kinds: set[Any] = {type(plain(x)) for x in elements}
            if len(kinds) > 1:
                raise UnrecordedError("its results have several dtypes")
        elif self._asks_numpy or not all(map(_is_of_python, elements)):
            raise UnrecordedError("NumPy calls it with Python numbers, which are not recorded")
        symbol, to = recorder.list_symbol(elements), recorder.dtype(part.dtype)
        flat = part.reshape(-1)
        cast = recorder.converted(symbol, elements, to, "result", "vectorize", flat, ASSIGN)
        return recorder.reshaped(cast, part.shape)

    def _is_recorded(self, element: Any) -> bool:
        """Whether the graph has all steps by which the function has made an element."""
        match self._numbers:
            case _Numbers.RECORDED:
                return isinstance(element, TracedScalar) or is_literal(plain(element))
            case _Numbers.CONSTANT:
                return isinstance(element, TracedScalar)
            case _Numbers.DATA:
                return False


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
    vectorize: np.vectorize, args: Sequence[Any]
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
