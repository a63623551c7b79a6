"""Recorder: what is known of a running program's values, and what could not be recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias, cast
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from graphir import DType, Graph, GraphirError, Op, Symbol, ops
from graphir.ir.literals import is_literal
from runtime.recording.builder import beyond_range, is_truncation
from runtime.recording.captured import Brought
from runtime.recording.notes import NotingBuilder
from runtime.recording.operands import holds_traced, is_wide, leaves, traced_leaves
from runtime.recording.operands import operands as operands_of
from runtime.recording.sites import CallSites
from runtime.recording.values import (
    RecordedValue,
    RecordingTrace,
    TracedScalar,
    UnrecordedError,
    plain,
    plains,
    recording_with,
    trace_of,
    view_trace,
)

Array: TypeAlias = NDArray[Any]
UNDONE: Any = object()
"""The result of a call that has not been made."""


class Recorder(NotingBuilder):
    """Knows the symbols of a program's values, and makes those of its results.

    `array` and `scalars` are the classes in which results go on: an ndarray's, and those of NumPy
    scalars by their own.
    """

    array: type[RecordedValue] = RecordedValue
    scalars: Mapping[type[Any], type[Any]] = MappingProxyType({})

    def __init__(self, graph: Graph, sites: CallSites) -> None:
        super().__init__(graph)
        self.sites = sites
        self.enter()
        self.call_result: Any = UNDONE
        self.error_id = 0
        """What the call that is being recorded has returned, and what it raised, by id."""
        self.faults: list[Exception] = []
        """Errors of this project's own, which tests look at."""
        self.calls: list[str] = []
        """The NumPy functions written in Python that run now, the user's call first."""
        self.numbers: dict[int, tuple[Any, Any]] = {}
        """Python numbers that recorded values have become, by id, with those values."""
        self.containers: list[tuple[Any, Any]] = []
        """Lists among the arguments, each with the one that the program got instead."""
        self.writes = 0
        """How often something recorded has been written to."""
        self.resized_arrays: dict[int, tuple[RecordedValue, Array]] = {}
        """Arrays with other memory than they began with, by id, with what they began with."""
        self._arguments: list[RecordedValue] = []
        self._outside: dict[int, tuple[Array, Array, Symbol]] = {}
        self.brought = Brought(())
        self._owners: dict[int, ref[RecordingTrace]] = {}

    # -- where, and what could not be

    def enter(self) -> None:
        """Enter what follows under the line that asked for the recording."""
        self.here, self._call = self.sites.here(2)

    def locate(self) -> bool:
        """Enter what follows under the user's line; False while a module is being imported."""
        site = self.sites.here(3)
        self.here, self._call = site
        return site is not self.sites.importing

    def call(self, function: Callable[..., Any], args: Iterable[Any], kwargs: Any) -> Any:
        """What NumPy makes of a call at the user's line; what is raised here is the program's."""
        try:
            real = self.call_result = self._call(function, args, kwargs)
        except Exception as error:
            self.error_id = id(error)
            raise
        return real

    def failed(self, error: Exception) -> None:
        """Remember an error that is none of those by which recording says what it cannot."""
        if not isinstance(error, GraphirError):
            self.faults.append(error)

    # -- values that enter

    def given(self, array: Array, parent: Symbol | None = None) -> Symbol:
        """An input for values that memory alone knows; of a `parent` they are other bits."""
        what = f"an array of {array.dtype}{list(array.shape)}"
        reason = "is taken as given: it was made by what is not recorded"
        symbol = self.input(array)
        if parent is not None:
            self.step(
                what, "is taken as given: it has the bits of another", (symbol,), (parent,), True
            )
        elif array not in self.brought:
            fix = "; pass it as an argument if it is data"
            self.step(what, f"{reason}{fix}", (symbol,), None)
        self.note(what, reason)
        return symbol

    def retaken(self, array: Array) -> Symbol | None:
        """The same, or None of a dtype that graphs do not have."""
        return self.given(array) if self.has(array.dtype) else None

    def outside(self, array: Array) -> Symbol:
        """The symbol of a plain array that the program brings along: its values as they are now."""
        if not array.ndim:
            return self.constant(array)
        owner = self.owner(array)
        if owner is not None:
            return view_trace(owner, array).read()
        entry = self._outside.get(id(array))
        if entry is not None and entry[0] is array and _same(entry[1], array):
            return entry[2]
        symbol = self.given(array)
        self._outside[id(array)] = array, self.inputs[-1], symbol
        return symbol

    def of_plain(self, array: Array) -> Symbol | None:
        """The symbol of a plain array as `outside` has it; None of a dtype that graphs lack."""
        if not self.has(array.dtype):
            return None
        with recording_with(None):
            return self.outside(array)

    def owner(self, array: Array) -> RecordingTrace | None:
        """The trace of the array of this recording in whose memory a plain one lies."""
        base: Any = array
        while base is not None:
            entry = self._owners.get(id(base))
            trace = entry and entry()
            if trace is not None and trace.plain is base:
                return trace
            base = getattr(base, "base", None)
        return None

    def counted(self) -> int:
        """The number of a write that is made now."""
        self.writes += 1
        return self.writes

    def written(self, array: Array, symbol: Symbol | None) -> None:
        """Note that a plain array has been given these values."""
        if symbol is None:
            self._outside.pop(id(array), None)
        else:
            self._outside[id(array)] = array, np.array(array), symbol

    def symbol(self, value: Any) -> Symbol:
        """The symbol of an array or scalar; UnrecordedError of what can have none."""
        if isinstance(value, RecordedValue):
            return trace_of(value, self).read()
        if isinstance(value, TracedScalar):
            return value.symbol if value.recorder is self else self.constant(value.plain)
        if type(value) is np.ndarray:
            return self.outside(value)
        if isinstance(value, (np.generic, bool, int, float, complex)):
            return self.constant(value)
        if isinstance(value, (list, tuple)):
            return self.listed(value)
        raise UnrecordedError(f"a {type(value).__name__} is no operand")

    def before(self, value: Any) -> Symbol | None:
        """The symbol of what is there before NumPy may write to it, if it has one."""
        try:
            with recording_with(None):
                return None if value is None else self.symbol(value)
        except Exception as error:  # the program goes on, whatever it is
            self.failed(error)
            return None

    def operands(self, op: Op, values: Sequence[Any]) -> tuple[Symbol, ...]:
        """What an op is called on, as symbols."""
        symbols: list[Any] = []
        literals = False
        for value in values:
            if isinstance(value, RecordedValue):
                symbol = trace_of(value, self).read()
            elif is_literal(value):
                symbol, literals = value, True
            else:
                symbol = self.symbol(value)
            symbols.append(symbol)
        if literals:
            symbols = [
                symbol_ if isinstance(symbol_, Symbol) else self.literal(op, symbols, i)
                for i, symbol_ in enumerate(symbols)
            ]
        return tuple(symbols)

    def listed(self, values: Any) -> Symbol:
        """The symbol of the array that NumPy makes of a list; promoted as a stack of its leaves."""
        array = np.asarray(plains(values))
        if not holds_traced(values):
            return self.held(array)
        symbols = tuple(self.symbol(leaf) for leaf in leaves(values))
        stack = self.emit(ops.stack, symbols, axis=0)
        return self.reshaped(stack, array.shape)

    # -- results

    def wrapped(self, real: Any, symbol: Symbol | None) -> Any:
        """A result as the program goes on with it."""
        kind = cast("Any", type(real))
        if symbol is None:
            return real
        if kind is np.ndarray:
            view = real.view(self.array)
            view.recording_trace = trace = RecordingTrace(self, real, symbol)
            view._plain = real  # pyright: ignore[reportPrivateUsage]
            self._owners[id(real)] = ref(trace)
            return view
        scalar_type = self.scalars.get(kind)
        if scalar_type is None:
            return real
        scalar = scalar_type(real)
        scalar.symbol, scalar.recorder, scalar.plain = symbol, self, real
        return scalar

    def argument(self, value: Any, name: str | None) -> Any:
        """An argument as the program gets it: the same array, the same object."""
        for argument_ in self._arguments:
            if argument_.plain is value:
                return argument_
        wrapper = self.wrapped(value, self.input(value, name))
        if not isinstance(wrapper, RecordedValue):
            return wrapper
        self._arguments.append(wrapper)
        return wrapper

    def written_arguments(self) -> list[RecordedValue]:
        """The arguments that hold something else than what the program was called on."""
        input_places = {symbol.index for symbol in self.graph.inputs}
        symbols = ((argument, self.before(argument)) for argument in self._arguments)
        return [
            argument
            for argument, symbol_ in symbols
            if symbol_ is not None and symbol_.index not in input_places
        ]

    def adopt(self, array: RecordedValue, name: str, symbolic: Callable[[], Symbol]) -> None:
        """Note that an array has other memory now."""
        array._plain = array.source = None  # pyright: ignore[reportPrivateUsage]
        symbol = self.checked(name, array.plain, symbolic)
        array.recording_trace = trace = RecordingTrace(self, array.plain, symbol)
        self._owners[id(array.plain)] = ref(trace)

    def moved_back(self) -> None:
        """Give the arrays that began elsewhere what became of them."""
        for array, original in self.resized_arrays.values():
            original.resize(array.shape, refcheck=False)
            original[...] = array.plain
            array._plain = original  # pyright: ignore[reportPrivateUsage]

    def viewed(self, real: Any, trace: RecordingTrace) -> Any:
        """A plain view of recorded memory as the program goes on with it."""
        view = real.view(self.array)
        view.recording_trace, view._plain = trace, real  # pyright: ignore[reportPrivateUsage]
        return view

    def outcome(self, name: str, real: Any, symbolic: Callable[[], Symbol]) -> Any:
        """A result with the symbol that `symbolic` enters, or taken as given."""
        return self.wrapped(real, self.checked(name, real, symbolic))

    def checked(self, name: str, real: Any, symbolic: Callable[[], Symbol]) -> Symbol | None:
        """The symbol that `symbolic` enters, if it is of the dtype and shape of the result.

        Else one that is given; None of what cannot have one.
        """
        if not self.has(real.dtype):
            self.read(name, self.arguments, f"makes {real.dtype}, which no graph has")
            return None
        if type(real) is np.bool_:  # which has no subclasses
            self._decide(name, symbolic)
            return None
        try:
            symbols = self.graph.symbols
            since = len(symbols)
            with recording_with(None):
                symbol = symbolic()
            dtype = self.dtype(real.dtype)
            if symbol.type.dtype is dtype and symbol.type.shape == real.shape:
                simple = not symbol.attrs and len(symbols) <= since + 1
                return symbol if simple else self._settled(symbol, real, since)
            why = f"NumPy makes it {dtype}{list(real.shape)}, {symbol.op.name} {symbol.type}"
        except Exception as error:  # the program goes on, whatever it is
            self.failed(error)
            why = str(error)
        return self.taken_as_given(name, real, why)

    def _settled(self, symbol: Symbol, real: Any, since: int) -> Symbol:
        """A result, NumPy's own where floats may be beyond the range of an integer on the way."""
        for each in self.graph.symbols[since:]:
            narrowing = each.op is ops.cast or each.attrs.get("dtype") is not None
            if narrowing and each.args and each.index not in self.exact_truncations:
                source, to = each.args[0].dtype, each.dtype
                if is_truncation(source, to) and self._may_leave(to):
                    return self.pinned(symbol, real)
        return symbol

    def _may_leave(self, to: DType) -> bool:
        """Whether a float among the arguments of the call is beyond the range of an integer."""
        arrays = [plain(leaf) for leaf in traced_leaves(list(self.arguments[-1:]))]
        floats = [np.real(array) for array in arrays if array.dtype.kind in "fc"]
        return not floats or any(beyond_range(np.asarray(array), to).any() for array in floats)

    def taken_as_given(self, name: str, real: Any, why: str = "it is compiled") -> Symbol:
        """An input for the result of what has no op."""
        what = self.calls[0] if self.calls else name
        symbol, operands = self.input(real), operands_of(self, self.arguments)
        exact = is_wide(what, self._function(), operands, real)
        self.step(what, f"is taken as given: {why}", (symbol,), operands, exact)
        self.note(what, f"is taken as given: {why}")
        return symbol

    def _function(self) -> Any:
        """The function that the program called, or the array whose method."""
        args = self.arguments[0][0] if self.arguments else ()
        return args[0] if args else None

    def _decide(self, name: str, symbolic: Callable[[], Symbol]) -> None:
        """Note that the program gets a bool, by which it may go on."""
        reason = "is a bool by which the program may go on"
        try:
            with recording_with(None):
                self.read(name, symbolic(), reason, truth=True)
        except Exception as error:  # the program goes on, whatever it is
            self.failed(error)
            self.read(name, self.arguments, reason)


def _same(copy: Array, array: Array) -> bool:
    return copy.tobytes() == array.tobytes()
