"""Builders of the graph of a recording: ops, constants and inputs; notes and opaque steps.

`RecordingBuilder` appends what the graph computes. `NotingBuilder` also lists the actions of the
recorded program that the graph does not contain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from graphir.ir.literals import literal_array
from graphir.ir.operands import resolve_literal
from graphir.numpy_api.arrays.call_operands import converted_real
from graphir.numpy_api.dispatch import applied
from graphir.numpy_api.view_steps import ViewBuilder
from graphir.ops.attribute_record import TO_DTYPE, array_content
from graphir.promotion.scalars import WEAK
from graphir.public import DType, Graph, GraphirError, Location, Op, Origin, Symbol, TensorType, ops
from graphir.runtime.audit.library_calls import CallResult
from graphir.runtime.audit.opaque import OpaqueStep
from graphir.runtime.recording.leaving import operands as operands_of
from graphir.runtime.recording.leaving import traced_leaves
from graphir.runtime.recording.numpy_.dates import integers, is_dated
from graphir.runtime.recording.recorder_state import ArrayMemory
from graphir.runtime.recording.values import Array, RecordedValue, Result, TracedScalar, plains


class RecordingBuilder(ViewBuilder):
    """A builder of symbols at the location `here`; `inputs` are the arrays of the graph's inputs.

    The graph caches inference, and the builder caches constants, because a loop of the program
    repeats the same ops and constants.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.inputs: list[Array] = []
        self.pins: list[Symbol] = []
        """The symbols at which NumPy's results replace those of the graph (see RecordedFacts)."""
        self.masks: dict[Symbol, Symbol] = {}
        """For each cast of a result, the mask of `where=` that selects elements."""
        self.observed: dict[Symbol, Array] = {}
        """NumPy's own results of ops that the graph computes more exactly (see RecordedFacts)."""
        self.exact_truncations: set[int] = set()
        """The indices of float-to-integer casts whose results are certainly NumPy's."""
        self.has_dates = False
        """Whether the program has datetimes or timedeltas, whose symbols are int64 counts."""
        self.dated_results: set[int] = set()
        """The indices of symbols whose ops convert the units of dates as NumPy does."""
        self.here = Location.at("", 0)
        self._dtypes: dict[Any, DType] = {}
        self._own = frozenset(dtype.code for dtype in graph.rules.dtypes)

    # -- ops

    def emit(self, op: Op, args: tuple[Symbol, ...], **attrs: Any) -> Symbol:
        """Append an op on symbols, and return its symbol."""
        inference = self.graph.infer(op, args, attrs)
        return self.graph.append(op, args, inference.attrs, inference.type, self.here)

    def applied(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return the result of a NumPy function on symbols."""
        with self.graph.at(self.here):
            return applied(self.graph, function, args, kwargs)

    def cast(self, x: Symbol, to: DType, operand: str = "", op: str = "", rule: str = "") -> Symbol:
        """Return `x` cast to another dtype, or `x` itself if it has the dtype.

        Without `operand`, the user or the running NumPy function asked for the cast. With
        `operand`, the cast is implicit: it serves this operand of `op`, and its origin names
        `rule`, by default the rule set.
        """
        if x.dtype is to:
            return x
        if operand:
            rule = rule or self.graph.rules.name
            source = (Origin(operand, op, self.here, rule, x.dtype, to),)
        else:
            source = self.asker(x, to)
        if x.dtype.is_complex and not to.is_complex and to is not DType.bool:
            real = converted_real(self.emit(ops.real, (x,)), source)
            return self.cast(real, to, operand, op, rule)
        return self.graph.append(ops.cast, (x,), TO_DTYPE[to.code], x.type.cast(to), source)

    def asker(self, x: Symbol, to: DType) -> Location | tuple[Origin]:
        """Return the source of a cast without operand: the user's line."""
        return self.here

    def converted(
        self,
        x: Symbol,
        values: ArrayLike,
        to: DType,
        operand: str = "",
        op: str = "",
        real: Array | None = None,
        rule: str = "",
    ) -> Symbol:
        """Return the cast of `x`, whose values are `values`, with NumPy's results out of range.

        For a float beyond the range of an integer dtype, NumPy's result depends on the machine, so
        the symbol takes NumPy's result there. `real` are NumPy's results if the caller has them.
        """
        cast = self.cast(x, to, operand, op, rule)
        if not is_truncation(x.dtype, to):
            return cast
        self.exact_truncations.add(cast.index)
        array: Array = np.asarray(np.real(np.asarray(plains(values))))
        beyond = beyond_range(array, to)
        if not beyond.any():
            return cast
        result = None if real is None else _unbroadcast(real, array.shape)
        if result is None:
            with np.errstate(all="ignore"):
                result = array.astype(to.storage)
        return self.pinned(cast, result, beyond)

    def pinned(self, x: Symbol, values: Result, at: Array | bool = True) -> Symbol:
        """Return a symbol with NumPy's `values` where `at` is true, and those of `x` elsewhere."""
        places = cast("Array", np.broadcast_to(np.asarray(at), x.shape))  # pyright: ignore
        array: Array = np.asarray(values)
        pin = self.emit(ops.where, (self.input(places), self.input(array), x))
        self.pins.append(pin)
        return pin

    # -- dtypes and inputs

    def dtype(self, dtype: DTypeLike) -> DType:
        """Return the DType of a NumPy dtype.

        Raises a GraphirError if graphs under these rules lack the dtype.
        """
        dtype_ = self._dtypes.get(dtype)
        if dtype_ is None:
            if isinstance(dtype, np.dtype) and is_dated(cast("Any", dtype)):
                self.has_dates, dtype_ = True, DType.int64
            else:
                dtype_ = self.graph.rules.supported(DType.from_numpy(dtype))
            self._dtypes[dtype] = dtype_
        return dtype_

    @property
    def has_narrow_dtypes(self) -> bool:
        """Whether the program has numbers that are narrower than those of Python, so far."""
        return any(np.dtype(dtype).char not in _OF_PYTHON for dtype in self._dtypes)

    def has(self, dtype: DTypeLike) -> bool:
        """Whether graphs under these rules have a NumPy dtype."""
        try:
            return self.dtype(dtype).code in self._own
        except GraphirError:
            return False

    def is_plain_number(self, value: Any) -> bool:
        """Whether a value is a NumPy number, no duration, that is not recorded but could be."""
        kind = cast("type[Any]", type(value))
        is_other = issubclass(kind, (TracedScalar, np.timedelta64))
        return issubclass(kind, np.number) and not is_other and self.has(value.dtype)

    def input(self, array: Result, name: str | None = None) -> Symbol:
        """Add an input to the graph, with a copy of its values; return its symbol."""
        dtype = self.dtype(array.dtype)
        self.inputs.append(np.array(integers(array), order="C"))
        symbol = self.graph.input(TensorType(dtype, array.shape), name=name)
        symbol.source = self.here
        return symbol

    def array_symbol(self, array: Array) -> Symbol:
        """Return an input for values without writers, such as indices."""
        return self.input(array)

    # -- constants

    def constant(self, value: Any) -> Symbol:
        """Return the strong constant of a NumPy scalar, or of a Python scalar in NumPy's dtype."""
        array = np.asarray(value)
        dtype = self.dtype(array.dtype)
        key = dtype, *array_content(integers(array))
        if key not in self._constants:
            self._constants[key] = self._append_constant(dtype, integers(array), None)
        return self._constants[key]

    def literal(self, op: Op, operands: Sequence[Any], position: int) -> Symbol:
        """Return the constant that the rules make of a Python scalar operand of an op."""
        value = operands[position]
        exact = repr(value) if not value or value != value or type(value) is complex else value
        types = tuple([x.type if isinstance(x, Symbol) else x for x in operands])
        key: Any = op, type(value), exact, position, types
        if key not in self._constants:
            number, dtype = resolve_literal(self.graph.rules, op, operands, position)
            self._constants[key] = self.weak(number, dtype, value)
        return self._constants[key]

    def weak(self, number: complex, dtype: DType, literal: complex | None) -> Symbol:
        """Return the constant of a Python literal."""
        literal_dtype, array = literal_array(number, dtype, self.graph.rules)
        return self._append_constant(literal_dtype, array, literal)

    def _append_constant(self, dtype: DType, array: Array, literal: complex | None) -> Symbol:
        """Append a constant without inference, because its array has the dtype and shape."""
        value = np.array(array, order="C")
        value.setflags(write=False)
        attrs = {"dtype": dtype, "value": value, "literal": literal}
        return self.graph.append(ops.constant, (), attrs, TensorType(dtype, value.shape), self.here)

    def assigned_literal(self, value: complex, into: DType) -> Symbol:
        """Return the constant of a Python scalar that is assigned into an array of dtype `into`.

        The constant is weak, unless only the dtype of the array represents the value.
        """
        if isinstance(value, (bool, int)) and (into.is_integer or into is DType.bool):
            return self.constant(into.storage.type(value))
        weak = WEAK[type(value)]
        huge = isinstance(value, int) and not -(2**63) <= value < 2**63
        if huge or self.graph.concrete_dtype(weak) is into:
            return self.constant(into.storage.type(value))
        key = "assigned", weak, repr(value)
        if key not in self._constants:
            self._constants[key] = self.weak(value, weak, value)
        return self._constants[key]


_OF_PYTHON = frozenset("?lqdDMmUSOV")


def is_truncation(source: DType, to: DType) -> bool:
    """Whether a cast converts floats to integers; some floats are beyond the integer range."""
    return source.is_inexact and to.is_integer


def beyond_range(array: Array, to: DType) -> NDArray[np.bool_]:
    """Return the mask of floats that are NaN, or beyond an integer's range after truncation."""
    whole = np.trunc(array.astype(np.float64))
    return ~((whole >= float(to.min)) & (whole < 2.0**to.precision))


def _unbroadcast(real: Array, shape: tuple[int, ...]) -> Array | None:
    """Return the values of `shape` that broadcasting repeated in `real`; None if it has none."""
    if not real.size or real.ndim < len(shape):
        return None
    flat = real[(0,) * (real.ndim - len(shape))]
    part = np.asarray(flat)[tuple(slice(size) for size in shape)]
    return part if part.shape == shape else None


# -- what the graph does not contain

_LAST_STEPS = 8
"""The steps that a function of NumPy adds after a read of its own, at most."""


IS_WRITTEN = "writes a file"
"""The reason of the note on a method that saves an array, which is a value of the program."""
IS_DATA = "is taken as given: it is data"
"""The reason of the note on an array that comes from outside of the program."""


@dataclass(frozen=True, slots=True)
class Note:
    """A thing that could not be recorded, where it first occurred, and the recorder's fallback.

    NumPy's own code, of a function that is written in Python, did it if it is `in_numpy`.
    """

    what: str
    location: Location
    reason: str
    in_numpy: bool = False

    def __str__(self) -> str:
        return f"{self.what} at {self.location} {self.reason}"


class NotingBuilder(RecordingBuilder):
    """A builder that lists what its graph lacks: as notes for people, as steps for audits."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.notes: dict[str, Note] = {}
        self.steps: list[OpaqueStep] = []
        self.memory = ArrayMemory(self)
        self._reads: set[tuple[int, bool]] = set()
        self._read_places: dict[int, int] = {}
        """For each read among the steps, the number of symbols when it was last made."""

    def before(self, value: Any) -> Symbol | None:
        """Return the symbol of a value before NumPy may write to it; None if it has no symbol."""
        raise NotImplementedError

    def plain_array_symbol_if_typed(self, array: Array) -> Symbol | None:
        """Return the symbol of a plain array that the program brings along.

        The answer is None for a dtype that graphs lack.
        """
        raise NotImplementedError

    @property
    def in_numpy(self) -> bool:
        """Whether a function of NumPy that is written in Python runs."""
        return False

    def note(self, what: str, reason: str) -> None:
        """Add a note that a thing was not recorded, once for each thing."""
        if what not in self.notes:
            self.notes[what] = Note(what, self.here, reason, self.in_numpy)

    def note_order(self, what: str, symbol: Symbol, real: Result) -> None:
        """Note a result of floats that NumPy adds in another order than the op of its symbol.

        The audit takes NumPy's own result (see RecordedFacts).
        """
        self.observed[symbol] = np.array(integers(real), order="C")
        self.note(what, "adds in an order of its own: a run of the graph may have other last bits")

    def step(
        self,
        what: str,
        reason: str,
        results: Sequence[Symbol],
        operands: tuple[Symbol, ...] | None,
        exact: bool = False,
        result: CallResult | None = None,
    ) -> None:
        """Add an opaque step with its results, and the operands that it may have read.

        None for the operands means that the step may have read anything (see OpaqueStep). `result`
        is a call that computes the step, and the place of its one result.
        """
        facts = what, self.here, reason, tuple(results), operands
        self.steps.append(OpaqueStep(*facts, exact=exact, compiled=True, call=result))

    def read(self, what: str, value: Any, reason: str, truth: bool = False) -> None:
        """Note that the program's further course may depend on a recorded value.

        With `truth`, it depends only on whether the value is nonzero.
        """
        symbol = value if isinstance(value, Symbol) else None
        if isinstance(value, (RecordedValue, TracedScalar)):
            symbol = self.before(value)
        symbols = operands_of(self, value) if symbol is None else (symbol,)
        if symbols and self._reads.issuperset((symbol.index, truth) for symbol in symbols):
            return
        self._reads.update((symbol.index, truth) for symbol in symbols or ())
        if symbols != ():
            self._read_places[len(self.steps)] = len(self.graph.symbols)
            facts = what, self.here, reason, (), symbols
            self.steps.append(OpaqueStep(*facts, True, symbols is not None, truth))

    def forget_steps(self, since: int) -> None:
        """Drop the steps from a number on, so that equal reads count again."""
        for place in range(since, len(self.steps)):
            step = self.steps[place]
            if self._read_places.pop(place, None) is not None:
                self._reads.difference_update((x.index, step.truth) for x in step.operands or ())
        del self.steps[since:]

    def forget_read(self, what: str, symbol: Symbol) -> None:
        """Drop the read of one symbol among the last steps, if there is one."""
        for place in range(len(self.steps) - 1, max(len(self.steps) - _LAST_STEPS, 0) - 1, -1):
            if (self.steps[place].what, self.steps[place].operands) == (what, (symbol,)):
                del self.steps[place]
                self._reads.discard((symbol.index, False))
                for at in range(place, len(self.steps) + 1):
                    count = self._read_places.pop(at, None)
                    if at > place and count is not None:
                        self._read_places[at - 1] = count
                return

    def settled_steps(self) -> list[OpaqueStep]:
        """Return the steps of flat code: reads after which it computes nothing steer no values."""
        last = len(self.graph.symbols)
        return [
            replace(step, steers=False) if self._read_places.get(place) == last else step
            for place, step in enumerate(self.steps)
        ]

    def setting(self, what: str, value: Any) -> Any:
        """Return the plain value of an argument that is not an operand, and note the read."""
        for leaf in traced_leaves(value):
            self.read(what, leaf, "is read from recorded values")
        return plains(value)
