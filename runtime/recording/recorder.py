"""Recorder: the graph of a program in the making, and all that is entered into it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias, cast
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from graphir import DType, Graph, GraphirError, Location, Op, Origin, Symbol, TensorType, ops
from graphir.arguments import taken
from graphir.conversions import convert
from graphir.literals import is_literal, literal_array, native
from graphir.op import Inferred
from graphir.promotion.scalars import WEAK
from runtime.recording.sites import Sites
from runtime.recording.steps import UnrecordedError
from runtime.recording.values import (
    Trace,
    Traced,
    TracedScalar,
    plain,
    recording_with,
    trace_of,
    view_trace,
)

Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Note:
    """What could not be recorded, where it was met first, and what was done instead."""

    what: str
    location: Location
    reason: str

    def __str__(self) -> str:
        return f"{self.what} at {self.location} {self.reason}"


class Recorder:
    """Enters ops, constants and inputs into a graph, each under the user's line.

    `array` and `scalars` are the classes in which results go on: an ndarray's, and those of NumPy
    scalars by their own.
    """

    array: type[Traced] = Traced
    scalars: Mapping[type[Any], type[Any]] = MappingProxyType({})

    def __init__(self, graph: Graph, sites: Sites) -> None:
        self.graph = graph
        self.inputs: list[Array] = []
        self.notes: dict[str, Note] = {}
        self.sites = sites
        self.here = Location.at("", 0)
        self.faults: list[Exception] = []
        """Errors of this project's own, which tests look at."""
        self.calls: list[str] = []
        """The NumPy functions written in Python that run now, the user's call first."""
        self._inferred: dict[Any, Inferred] = {}
        self._types: dict[Any, TensorType] = {}
        self._dtypes: dict[Any, DType] = {}
        self._constants: dict[Any, Symbol] = {}
        self.numbers: dict[int, tuple[Any, Any]] = {}
        """Python numbers that recorded values have become, by id, with those values."""
        self._outside: dict[int, tuple[Array, Array, Symbol]] = {}
        self._owners: dict[int, ref[Trace]] = {}

    # -- where, and what could not be

    def locate(self) -> bool:
        """Enter what follows under the user's line; False while a module is being imported."""
        self.here = self.sites.here(3)
        return self.here is not self.sites.importing

    def note(self, what: str, reason: str) -> None:
        """Say once of a thing that it was not recorded."""
        if what not in self.notes:
            self.notes[what] = Note(what, self.here, reason)

    # -- ops

    def emit(self, op: Op, args: tuple[Symbol, ...], **attrs: Any) -> Symbol:
        """An op on symbols; attributes are hashable."""
        key: list[Any] = [op]
        for arg in args:
            key.append(arg.type)
        if attrs:
            key += attrs.items()
        known = tuple(key)
        inferred = self._inferred.get(known)
        if inferred is None:
            inferred = self._inferred[known] = self.graph.infer(op, args, attrs)
        return self.graph.append(op, args, inferred.attrs, inferred.type, self.here)

    def create(self, op: Op, **attrs: Any) -> Symbol:
        """A symbol of no operands."""
        inferred = op.infer(self.graph.rules, (), attrs)
        return self.graph.append(op, (), inferred.attrs, inferred.type, self.here)

    def reshaped(self, x: Symbol, shape: Iterable[Any]) -> Symbol:
        """The same in another shape, if it is another."""
        wanted = tuple(shape)
        return x if x.shape == wanted else self.emit(ops.reshape, (x,), shape=wanted)

    def broadcast(self, x: Symbol, shape: Iterable[Any]) -> Symbol:
        """The same repeated to a shape, as assignment does; leading axes of 1 may go."""
        wanted = tuple(shape)
        if x.rank > len(wanted):
            x = self.reshaped(x, x.shape[x.rank - len(wanted) :])
        return x if x.shape == wanted else self.emit(ops.broadcast_to, (x,), shape=wanted)

    def cast(self, x: Symbol, to: DType, operand: str = "", op: str = "") -> Symbol:
        """The same in another dtype: as the user asked, or silently, for the operand of an op."""
        if x.dtype is to:
            return x
        source: Any = self.here
        if operand:
            source = (Origin(operand, op, self.here, self.graph.rules.name, x.dtype, to),)
        if x.dtype.is_complex and not to.is_complex and to is not DType.bool:
            x = self.emit(ops.real, (x,))  # as NumPy does, with a warning
        return self.graph.append(ops.cast, (x,), {"to": to}, x.type.cast(to), source)

    def converted(
        self, x: Symbol, values: Any, to: DType, operand: str = "", op: str = ""
    ) -> Symbol:
        """The cast of x, whose values are known; refused where NumPy makes others of them."""
        if x.dtype.is_float and to.is_integer:
            array = np.asarray(plain(values))
            with np.errstate(all="ignore"):
                same = array.astype(to.storage) == convert(native(array), x.dtype, to)
            if not same.all():
                raise UnrecordedError(f"NumPy casts values outside of {to} as its machine does")
        return self.cast(x, to, operand, op)

    # -- values that enter

    def dtype(self, dtype: Any) -> DType:
        """The DType of a NumPy dtype; UnrecordedError where graphs under these rules have none."""
        found = self._dtypes.get(dtype)
        if found is None:
            found = self._dtypes[dtype] = self.graph.rules.known(DType.from_numpy(dtype))
        return found

    def has(self, dtype: Any) -> bool:
        """Whether graphs under these rules have a NumPy dtype."""
        try:
            return self.dtype(dtype) in self.graph.rules.dtypes
        except GraphirError:
            return False

    def input(self, array: Any, name: str | None = None) -> Symbol:
        """A new input of the graph, with a copy of its values."""
        dtype = self.dtype(array.dtype)
        self.inputs.append(np.array(native(np.asarray(array)), order="C"))
        symbol = self.graph.input(TensorType(dtype, array.shape), name=name)
        symbol.source = self.here
        return symbol

    def given(self, array: Array) -> Symbol:
        """An input for values that memory alone knows."""
        self.note(
            f"an array of {array.dtype}{list(array.shape)}",
            "was made by what is not recorded: it is taken as given",
        )
        return self.input(array)

    def retaken(self, array: Array) -> Symbol | None:
        """The same, or None of a dtype that graphs do not have."""
        return self.given(array) if self.has(array.dtype) else None

    def held(self, array: Array) -> Symbol:
        """An input for values that nobody writes to, such as places; equal ones share it."""
        key = "held", array.dtype, array.shape, array.tobytes()
        if key not in self._constants:
            self._constants[key] = self.input(array)
        return self._constants[key]

    def outside(self, array: Array) -> Symbol:
        """The symbol of a plain array that the program brings along: its values as they are now."""
        if not array.ndim:
            return self.constant(array)
        owner = self.owner(array)
        if owner is not None:
            return view_trace(owner, array).read()
        known = self._outside.get(id(array))
        if known is not None and known[0] is array and _same(known[1], array):
            return known[2]
        symbol = self.given(array) if known is None else self.input(array)
        self._outside[id(array)] = array, self.inputs[-1], symbol
        return symbol

    def owner(self, array: Array) -> Trace | None:
        """The trace of the array of this recording in whose memory a plain one lies."""
        base: Any = array
        while base is not None:
            known = self._owners.get(id(base))
            trace = known and known()
            if trace is not None and trace.plain is base:
                return trace
            base = getattr(base, "base", None)
        return None

    def written(self, array: Array, symbol: Symbol | None) -> None:
        """Note that a plain array has been given these values."""
        if symbol is None:
            self._outside.pop(id(array), None)
        else:
            self._outside[id(array)] = array, np.array(array), symbol

    def constant(self, value: Any) -> Symbol:
        """A NumPy scalar, which is strong, or a Python scalar as NumPy's arrays have it."""
        array = np.asarray(value)
        dtype = self.dtype(array.dtype)
        key = dtype, array.tobytes()
        if key not in self._constants:
            self._constants[key] = self.create(ops.constant, dtype=dtype, value=native(array))
        return self._constants[key]

    def literal(self, op: Op, operands: Sequence[Any], position: int) -> Symbol:
        """A Python scalar among the operands of an op, as the rules take it."""
        value = operands[position]
        exact = repr(value) if not value or value != value or type(value) is complex else value
        types = tuple(one.type if isinstance(one, Symbol) else one for one in operands)
        key: Any = op, type(value), exact, position, types
        if key not in self._constants:
            number, dtype = taken(self.graph.rules, op, operands, position)
            self._constants[key] = self.weak(number, dtype, value)
        return self._constants[key]

    def weak(self, number: Any, dtype: DType, literal: Any) -> Symbol:
        """The constant that a literal is."""
        found, array = literal_array(number, dtype, self.graph.rules)
        return self.create(ops.constant, dtype=found, value=array, literal=literal)

    def assigned_literal(self, value: Any, into: DType) -> Symbol:
        """A Python scalar that is put into an array, weak but for what only the dtype holds."""
        if isinstance(value, (bool, int)) and (into.is_integer or into is DType.bool):
            return self.constant(into.storage.type(value))
        weak = WEAK[type(value)]
        huge = isinstance(value, int) and not -(2**63) <= value < 2**63
        if huge or self.graph.committed(weak) is into:
            return self.constant(into.storage.type(value))
        key = "assigned", weak, repr(value)
        if key not in self._constants:
            self._constants[key] = self.weak(value, weak, value)
        return self._constants[key]

    def symbol(self, value: Any) -> Symbol:
        """The symbol of an array or scalar; UnrecordedError of what can have none."""
        if isinstance(value, Traced):
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
        except GraphirError:
            return None

    def operands(self, op: Op, values: Sequence[Any]) -> tuple[Symbol, ...]:
        """What an op is called on, as symbols."""
        found: list[Any] = []
        literals = False
        for value in values:
            if isinstance(value, Traced):
                symbol = trace_of(value, self).read()
            elif is_literal(value):
                symbol, literals = value, True
            else:
                symbol = self.symbol(value)
            found.append(symbol)
        if literals:
            found = [
                one if isinstance(one, Symbol) else self.literal(op, found, i)
                for i, one in enumerate(found)
            ]
        return tuple(found)

    def listed(self, values: Any) -> Symbol:
        """The symbol of the array that NumPy makes of a list; promoted as a stack of its leaves."""
        made = np.asarray(values_of(values))
        if not holds_traced(values):
            return self.held(made)
        leaves = tuple(self.symbol(one) for one in _leaves(values))
        stacked = self.emit(ops.stack, leaves, axis=0)
        return self.reshaped(stacked, made.shape)

    def places(self, start: int, step: int, axis: int, shape: tuple[Any, ...]) -> Symbol:
        """The indices start, start + step, ... along an axis, for each element of a shape."""
        key = "places", start, step, axis, shape
        if key not in self._constants:
            along = [1] * len(shape)
            along[axis] = shape[axis]
            line = self.create(
                ops.range, dtype=DType.int64, start=start, step=step, size=shape[axis]
            )
            self._constants[key] = self.broadcast(self.reshaped(line, along), shape)
        return self._constants[key]

    # -- results

    def wrapped(self, real: Any, symbol: Symbol | None) -> Any:
        """A result as the program goes on with it."""
        kind = cast("Any", type(real))
        if symbol is None:
            return real
        if kind is np.ndarray:
            made = real.view(self.array)
            made.known = trace = Trace(self, real, symbol)
            made._plain = real  # pyright: ignore[reportPrivateUsage]
            self._owners[id(real)] = ref(trace)
            return made
        traced = self.scalars.get(kind)
        if traced is None:
            return real
        scalar = traced(real)
        scalar.symbol, scalar.recorder, scalar.plain = symbol, self, real
        return scalar

    def watched(self, made: Any) -> Any:
        """A new array, which may be a buffer for compiled code to fill."""
        if isinstance(made, Traced) and made.known is not None:
            made.known.watch()
        return made

    def viewed(self, real: Any, trace: Trace) -> Any:
        """A plain view of recorded memory as the program goes on with it."""
        made = real.view(self.array)
        made.known, made._plain = trace, real  # pyright: ignore[reportPrivateUsage]
        return made

    def outcome(self, name: str, real: Any, symbolic: Callable[[], Symbol]) -> Any:
        """A result with the symbol that `symbolic` enters, or taken as given."""
        return self.wrapped(real, self.checked(name, real, symbolic))

    def checked(self, name: str, real: Any, symbolic: Callable[[], Symbol]) -> Symbol | None:
        """The symbol that `symbolic` enters, if it is of the dtype and shape of the result.

        Else one that is given; None of what cannot have one.
        """
        if not self.has(real.dtype) or type(real) is np.bool_:  # which has no subclasses
            return None
        try:
            with recording_with(None):
                symbol = symbolic()
            dtype = self.dtype(real.dtype)
            if symbol.type.dtype is dtype and symbol.type.shape == real.shape:
                return symbol
        except Exception as error:  # the program goes on, whatever it is
            if not isinstance(error, GraphirError):
                self.faults.append(error)
        return self.taken_as_given(name, real)

    def taken_as_given(self, name: str, real: Any) -> Symbol:
        """An input for the result of what has no op."""
        self.note(self.calls[0] if self.calls else name, "has no op: its result is taken as given")
        return self.input(real)


def _same(kept: Array, array: Array) -> bool:
    return kept.tobytes() == array.tobytes()


def _leaves(value: Any) -> Iterable[Any]:
    if isinstance(value, (list, tuple)):
        for one in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _leaves(one)
    else:
        yield value


def holds_traced(value: Any) -> bool:
    """Whether something recorded is among the leaves of lists."""
    return any(isinstance(one, (Traced, TracedScalar)) for one in _leaves(value))


def values_of(value: Any) -> Any:
    """Nested lists with plain leaves."""
    if isinstance(value, (list, tuple)):
        return [values_of(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return plain(value)
