"""`Recorder`: the state of one recording, which gives a symbol to each value of a running program.

NumPy computes every value of the program. Beside that, the recorder enters an op for each result
into the graph, and checks that the inferred dtype and shape are NumPy's. A result that no op
describes becomes an input of the graph, with a note.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from types import MappingProxyType
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from graphir.ir.literals import is_literal
from graphir.numpy_api.dispatch import origin_in_call
from graphir.public import DType, Graph, GraphirError, Location, Op, Origin, Symbol, ops
from graphir.runtime.recording.builder import NotingBuilder
from graphir.runtime.recording.captured import arrays_of_numpy
from graphir.runtime.recording.leaving import LeavingValues, is_text, traced_leaves
from graphir.runtime.recording.noted_results import OpaqueResults, ResultRounding
from graphir.runtime.recording.numpy_ import dates
from graphir.runtime.recording.program_arrays import ProgramArrays
from graphir.runtime.recording.recorder_state import ProgramCalls, ProgramNumbers, ProgramObjects
from graphir.runtime.recording.sites import CallSites
from graphir.runtime.recording.values import (
    RecordedNumber,
    RecordedValue,
    RecordingTrace,
    Result,
    TracedScalar,
    UnrecordedError,
    plain,
    plains,
    recording_with,
    trace_of,
    view_trace,
)
from graphir.semantics.library_calls import leaves

Array: TypeAlias = NDArray[Any]
_DATES = np.datetime64, np.timedelta64


_OF_COMPILED_PARTS = ("numpy.linalg.", "numpy.fft.")
"""The modules of NumPy whose functions are calls of LAPACK and of an FFT."""


class Recorder(NotingBuilder):
    """The recorder of one program: it finds symbols of operands and wraps results.

    `array` is the class of wrapped arrays. `scalars` maps each NumPy scalar type to the class of
    wrapped scalars. `row(array, key)` returns an element of a structured array.
    """

    array: type[RecordedValue] = RecordedValue
    row: Callable[[RecordedValue, Any], Any]
    scalars: Mapping[type[Any], type[Any]] = MappingProxyType({})

    def __init__(self, graph: Graph, sites: CallSites) -> None:
        super().__init__(graph)
        self.sites = sites
        self.located = 0
        """The number of steps of the program that the recorder has met so far."""
        self.enter()
        self.faults: list[Exception] = []
        """Errors of the recording itself, for tests."""
        self.calls = ProgramCalls(self)
        self.numbers = ProgramNumbers()
        self.objects = ProgramObjects()
        self.program_arrays = ProgramArrays(self)
        self.leaving = LeavingValues(self)
        self.opaque = OpaqueResults(self)
        self.rounding = ResultRounding(self)

    # -- locations and faults

    def enter(self) -> None:
        """Locate the next symbols at the line that asked for the recording."""
        self.here, self._call = self.sites.here(2)

    def locate(self) -> bool:
        """Locate the next symbols at the user's line; return False if the call is not the user's.

        That is one during a module's import, or of a library that compiles programs.
        """
        self.located += 1
        site = self.sites.here(3)
        self.here, self._call = site
        return site is not self.sites.unrecorded

    def call(
        self, function: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """Return NumPy's result of a call, made as if from the user's line.

        An exception that the call raises belongs to the program.
        """
        running = self.calls.running
        try:
            real = self._call(function, args, kwargs)
        except Exception as error:
            if running is not None:
                running.error = error
            raise
        if running is not None:
            running.result = real
        return real

    def add_fault(self, error: Exception) -> None:
        """Store an error as a fault, unless it is a GraphirError: a refusal of the recording."""
        if not isinstance(error, GraphirError):
            self.faults.append(error)

    # -- symbols of operands

    @property
    def in_numpy(self) -> bool:
        """Whether a function of NumPy runs that is written in Python, but for linalg and fft."""
        name = self.calls.function_name()
        return name != "" and not name.startswith(_OF_COMPILED_PARTS)

    def add_unrecorded_input(
        self, array: Array, parent: Symbol | None = None, is_written: bool = False
    ) -> Symbol:
        """Add an input for an array whose values no recorded op has computed; return its symbol.

        With `parent`, the values are the bits of the parent read in another way. `is_written`
        tells a recorded array, to which unrecorded code has written, from an array of such code.
        """
        shape = list(array.shape)
        what = f"an array of {array.dtype}{shape}" if shape else f"a {array.dtype}"
        reason = "is taken as given: it was made by what is not recorded"
        if is_written:
            name = self.program_arrays.argument_name(array)
            what = what if name is None else f"the argument {name}"
            reason = "is taken as given: it was written to in a way that is not recorded"
        elif self.objects.makers:
            reason = f"is taken as given: {self.objects.reason}"
        symbol = self.input(array)
        if parent is None and id(array) in arrays_of_numpy(len(sys.modules)):
            return symbol
        if parent is not None:
            shared = "is taken as given: it has the bits of another"
            self.step(what, shared, (symbol,), (parent,), True)
        elif is_written or array not in self.program_arrays.captured:
            is_given = is_written or self.objects.makers
            fix = "" if is_given else "; pass it as an argument if it is data"
            self.step(what, f"{reason}{fix}", (symbol,), None)
        self.note(what, reason)
        return symbol

    def is_unknown_number(self, value: Any) -> bool:
        """Whether a value is a NumPy scalar without a symbol that could have one."""
        if not issubclass(cast("Any", type(value)), _DATES):
            return self.is_plain_number(value)
        return self.numbers.source(value) is None and self.has(value.dtype)

    def bit_view_symbol(self, array: Array, root: RecordingTrace) -> Symbol:
        """Return the symbol of an array with the bits of another, its root.

        Integers of equal size convert by a cast that wraps; other bits are a new input.
        """
        whole, symbol = root.plain, root.last_symbol
        same = array.shape == whole.shape and array.strides == whole.strides
        integers = array.dtype.kind in "iumM" and whole.dtype.kind in "iumM"
        if symbol is not None and same and integers and array.itemsize == whole.itemsize:
            return self.cast(symbol, self.dtype(array.dtype))
        if symbol is None and is_text(whole.dtype):  # the bytes of texts are data, as these are
            return self.program_arrays.add_data(array, None)
        return self.add_unrecorded_input(array, symbol)

    def add_unrecorded_input_if_typed(
        self, array: Array, is_written: bool = False
    ) -> Symbol | None:
        """Add an input as `add_unrecorded_input` does; return None for a dtype that graphs lack."""
        is_typed = self.has(array.dtype)
        return self.add_unrecorded_input(array, is_written=is_written) if is_typed else None

    def plain_array_symbol(self, array: Array) -> Symbol:
        """Return the symbol of the current values of a plain array from outside the recording."""
        owner = self.memory.owner(array)
        if owner is not None:
            return view_trace(owner, array).read()
        if not array.ndim:
            return self.constant(array)
        symbol = self.memory.outside_symbol(array)
        if symbol is None:
            symbol = self.add_unrecorded_input(array)
            self.memory.note_plain_write(array, symbol, self.inputs[-1])
        return symbol

    def plain_array_symbol_if_typed(self, array: Array) -> Symbol | None:
        """Return `plain_array_symbol` of an array, or None if graphs lack its dtype."""
        if not self.has(array.dtype):
            return None
        with recording_with(None):
            return self.plain_array_symbol(array)

    def symbol(self, value: Any) -> Symbol:
        """Return the symbol of an array, a scalar or a list.

        Raises UnrecordedError for other values.
        """
        if isinstance(value, Symbol):
            return value
        if isinstance(value, RecordedValue):
            return trace_of(value, self).read()
        if isinstance(value, TracedScalar):
            return value.symbol if value.recorder is self else self.constant(value.plain)
        if type(value) is np.ndarray:
            return self.plain_array_symbol(value)
        if isinstance(value, RecordedNumber):
            return value.scalar.symbol
        if isinstance(value, (np.generic, bool, int, float, complex)):
            source = self.numbers.source(value) if isinstance(value, _DATES) else None
            if source is not None:
                return self.symbol(source)
            if isinstance(value, np.bool_) and self.numbers.has_bools:
                self.note("a bool of NumPy", "is taken as given: NumPy's two bools have no symbols")
            return self.constant(value)
        if isinstance(value, (list, tuple)):
            return self.list_symbol(value)
        raise UnrecordedError(f"a {type(value).__name__} is no operand")

    def before(self, value: Any) -> Symbol | None:
        """Return the symbol of a value before NumPy may write to it; None if it has no symbol."""
        try:
            with recording_with(None):
                return None if value is None else self.symbol(value)
        except Exception as error:  # no fault of the recording may stop the program
            self.add_fault(error)
            return None

    def operands(self, op: Op, values: Sequence[Any]) -> tuple[Symbol, ...]:
        """Return the operands of an op as symbols; Python scalars become weak constants."""
        symbols: list[Any] = []
        literals = False
        for value in values:
            if isinstance(value, RecordedValue):
                symbol = trace_of(value, self).read()
            elif is_literal(value):
                symbol, literals = plain(value), True
            else:
                symbol = self.symbol(value)
            symbols.append(symbol)
        if literals:
            symbols = [
                symbol_ if isinstance(symbol_, Symbol) else self.literal(op, symbols, i)
                for i, symbol_ in enumerate(symbols)
            ]
            if any(isinstance(value, RecordedNumber) for value in values):
                self._trace_floats(op, values, symbols)
        return tuple(symbols)

    def _trace_floats(self, op: Op, values: Sequence[Any], symbols: list[Any]) -> None:
        """Replace the literals of recorded Python floats by their values, cast as literals are."""
        dtypes = self.graph.infer(op, tuple(symbols), {}).operands
        for i, (value, to) in enumerate(zip(values, dtypes, strict=False)):
            if isinstance(value, RecordedNumber):
                symbols[i] = self.cast(value.scalar.symbol, to, op.operand(i), op.name)

    def list_symbol(self, values: Any) -> Symbol:
        """Return the symbol of the array that NumPy makes of a list.

        The graph promotes the leaves of the list as operands of a stack.
        """
        array = np.asarray(plains(values))
        if not traced_leaves(values):
            given = self.constant_array(array)
            integers = _lost_integers(values, array)
            if integers is None:
                return given
            mask, exact = map(self.constant_array, integers)
            cast = self.cast(exact, given.dtype, "object", "np.array")
            return self.emit(ops.where, (mask, cast, given))
        symbols = tuple(self.symbol(leaf) for leaf in leaves(values))
        stack = self.emit(ops.stack, symbols, axis=0)
        return self.reshaped(stack, array.shape)

    def asker(self, x: Symbol, to: DType) -> Location | tuple[Origin]:
        """Return the source of a cast without operand: the user's line, or the NumPy function.

        A cast is the function's own if the function's code, and not the user's, has asked for it.
        """
        name = self.calls.function_name() if self.here.compound else ""
        if not name:
            return self.here
        outermost = self.calls.outermost
        if outermost is None or outermost.form in ("method", "operator"):
            return self.here
        function, *_, args, kwargs = outermost.args
        try:
            bound = signature(function).bind(*args, **kwargs).arguments
        except (TypeError, ValueError):  # NumPy has no text signature of the function
            return self.here
        values = {parameter: _symbol_now(value) for parameter, value in bound.items()}
        return origin_in_call(name.removeprefix("numpy."), values, x, to, self.here)

    # -- results

    def wrapped(self, real: Any, symbol: Symbol | None) -> Any:
        """Return a result in the form that the program gets; without symbol it stays plain.

        An array of texts is recorded without a symbol, so that what NumPy makes of it is.
        """
        kind = cast("Any", type(real))
        if symbol is None:
            has_texts = kind is np.ndarray and is_text(real.dtype)
            return self._array(real, None) if has_texts else real
        if kind is np.ndarray:
            return self._array(real, symbol)
        scalar_type = self.scalars.get(kind)
        if scalar_type is None:
            if issubclass(kind, _DATES):
                self._date_scalar(real, symbol)
            return real
        scalar = kind.__new__(scalar_type, real)
        scalar.symbol, scalar.recorder, scalar.plain = symbol, self, real
        self.numbers.add_scalar(scalar)
        return scalar

    def _date_scalar(self, real: Result, symbol: Symbol) -> None:
        """Note a date or duration that the program gets: NumPy makes no scalars of subclasses.

        The scalar keeps its symbol, but what the program computes of it alone is not recorded.
        """
        array = self._array(np.asarray(real), symbol)
        self.numbers.add_plain(real, array)
        reason = "is a NumPy scalar, by which the program may go on"
        self.leaving.hand_out(f"a {type(real).__name__}", array, reason)

    def _array(self, real: Array, symbol: Symbol | None) -> RecordedValue:
        return self.traced(real, RecordingTrace(self, real, symbol))

    def traced(self, real: Array, trace: RecordingTrace) -> RecordedValue:
        """Return an array that owns its memory, in the form that the program gets."""
        self.memory.add_owner(real, trace)
        return self.viewed(real, trace)

    def replace_memory(
        self, array: RecordedValue, name: str, symbolic: Callable[[], Symbol]
    ) -> None:
        """Note that an array has other memory now, whose values have the symbol of `symbolic()`."""
        array._plain = array.source = None  # pyright: ignore[reportPrivateUsage]
        symbol = self.result_symbol(name, array.plain, symbolic)
        array.recording_trace = trace = RecordingTrace(self, array.plain, symbol)
        self.memory.add_owner(array.plain, trace)

    def note_write(self, array: Array, symbol: Symbol | None) -> None:
        """Note that NumPy wrote the values of a symbol to an array; None stands for unknown ones.

        An array that is not recorded is one that the program brings along.
        """
        if isinstance(array, RecordedValue):
            trace_of(array, self).write(symbol)
        else:
            self.memory.note_plain_write(array, symbol)

    def viewed(self, real: Array, trace: RecordingTrace) -> Any:
        """Return a plain view of recorded memory, wrapped with its trace."""
        view = real.view(self.array)
        view.recording_trace, view._plain = trace, real  # pyright: ignore[reportPrivateUsage]
        return view

    def outcome(self, name: str, real: Any, symbolic: Callable[[], Symbol]) -> Any:
        """Return a result, wrapped with the symbol that `symbolic` enters or with a new input."""
        if type(real) is np.ndarray and real.dtype.names:
            return self.opaque.structured(name, real)
        return self.wrapped(real, self.result_symbol(name, real, symbolic))

    def result_symbol(
        self, name: str, real: Result, symbolic: Callable[[], Symbol]
    ) -> Symbol | None:
        """Return the symbol that `symbolic` enters, if it has the dtype and shape of the result.

        Otherwise return a new input with the values of the result. The answer is None for a result
        that cannot have a symbol: one of a dtype that graphs lack, and a NumPy bool.
        """
        if not self.has(real.dtype):
            if real.dtype.kind == "O":
                self.objects.add_maker(name)
            # A function of the user that a ufunc calls may keep what it gets.
            is_shown = real.dtype.kind in "USO" and not isinstance(self.calls.target, np.ufunc)
            note = self.leaving.hand_out if is_shown else self.read
            note(name, self.calls.arguments, f"makes {real.dtype}, which no graph has")
            return None
        if type(real) is np.bool_:  # np.bool_ allows no subclass, so it cannot be wrapped
            self._decide(name, real, symbolic)
            return None
        try:
            symbols = self.graph.symbols
            since = len(symbols)
            with recording_with(None):
                symbol = symbolic()
            dtype = self.dtype(real.dtype)
            if symbol.type.dtype is dtype and symbol.type.shape == real.shape:
                if self.has_dates and symbol.index not in self.dated_results:
                    dates.require_one_unit(self, symbols[since:], self.calls.arguments[-1:], real)
                if dtype is DType.float16:
                    self.rounding.note_halves(name, symbol, real, [symbol, *symbols[since:]])
                simple = not symbol.attrs and len(symbols) <= since + 1
                return symbol if simple else self.rounding.pinned(symbol, real, since)
            why = f"NumPy makes it {dtype}{list(real.shape)}, {symbol.op.name} {symbol.type}"
        except Exception as error:  # no fault of the recording may stop the program
            self.add_fault(error)
            if isinstance(error, GraphirError):
                error.location = None  # the note has the user's
            why = str(error)
        return self.opaque.add(name, real, why)

    def _decide(self, name: str, real: np.bool_, symbolic: Callable[[], Symbol]) -> None:
        """Note that the program gets a bool: an output, if it only leaves the program.

        Else the control flow may depend on it.
        """
        self.numbers.add_bool()
        reason = "is a bool by which the program may go on"
        try:
            with recording_with(None):
                symbol = symbolic()
                if symbol.dtype is DType.bool and self.sites.is_bool_escape():
                    self.leaving.add_symbol(None, real, symbol, True, 0)
                else:
                    self.read(name, symbol, reason, truth=True)
        except Exception as error:  # no fault of the recording may stop the program
            self.add_fault(error)
            self.read(name, self.calls.arguments, reason)


def _lost_integers(values: Any, array: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return which leaves of a list of numbers are integers, and these, if floats lost any."""
    if array.dtype.kind != "f":
        return None
    numbers = list(leaves(values))
    mask = np.array([type(x) is int for x in numbers])
    if len(numbers) != array.size or not mask.any():
        return None
    integers = [x if is_integer else 0 for x, is_integer in zip(numbers, mask, strict=True)]
    floats = array.reshape(-1)
    pairs = zip(integers, floats.tolist(), strict=True)
    is_lost = any(x != y for x, y in pairs if x)  # Python compares integers and floats exactly
    if not is_lost or not all(-(2**63) <= x < 2**63 for x in integers):
        return None
    return mask.reshape(array.shape), np.array(integers, np.int64).reshape(array.shape)


def _symbol_now(value: Any) -> Any:
    """Return the current symbol of a recorded array, or of its memory; other values unchanged."""
    trace = value.recording_trace if isinstance(value, RecordedValue) else None
    if trace is None:
        return value
    return trace.symbol if isinstance(trace.symbol, Symbol) else (trace.root or trace).symbol
