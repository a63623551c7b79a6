"""Opaque steps: the steps of a recorded program outside its graph, and the errors they may hide.

A recorded program also computes in code that the recorder does not see, and reads values: it
branches on a value, or takes it as a Python number. The graph contains the results of such steps as
constants or inputs of that run. In wide arithmetic the step would have had other operands, unless
its operands have no error. So the values that depend on a step have an unknown error, unless all
operands of the step are equal in both runs and its own arithmetic is wide.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from graphir.passes.analysis.casts import Unseen
from graphir.passes.analysis.casts.measured import conversion_inside, unique_parts
from graphir.public import DType, Graph, Location, Symbol

if TYPE_CHECKING:
    from graphir.runtime.audit.library_calls import CallResult


@dataclass(frozen=True, slots=True, eq=False)
class OpaqueStep:
    """A step of a program that its recorded graph does not contain.

    `results` are the inputs of the graph that hold the step's results. `operands` are the symbols
    that the step may have read; None if unknown. `steers` is True if the program's control flow
    depends on the step, so that every later symbol depends on it. `exact` is True if, on equal
    operands, the step gives the same results in wide arithmetic as in the run. `truth` is True if
    the step read only whether the operand is nonzero. Reports name a `compiled` step even if it
    hides no error. A step that `promotes` may cast inside, as functions of NumPy do. The results of
    a step that `keeps` its choices, such as random draws, are those of the run whatever the errors
    of its operands. `call` computes the step in wide arithmetic, on `operands` in order; its place
    is that of the first result. A step without one cannot be measured (see
    runtime.audit.library_calls).
    """

    what: str
    location: Location
    reason: str
    results: tuple[Symbol, ...] = ()
    operands: tuple[Symbol, ...] | None = None
    steers: bool = False
    exact: bool = False
    truth: bool = False
    compiled: bool = False
    promotes: bool = True
    keeps: bool = False
    call: CallResult | None = None

    @property
    def casts_inside(self) -> bool:
        """Whether the step may cast: it computes of unknown operands, or of other dtypes."""
        if self.operands is None or not self.promotes:
            return self.promotes and not self.steers
        dtypes = [x.type.dtype for x in self.operands], [x.type.dtype for x in self.results]
        return bool(self.results) and not self.exact and conversion_inside(*dtypes) != ""

    def within(self, places: Container[int]) -> OpaqueStep:
        """Return the step with the operands whose indices are among some."""
        kept = self.operands and tuple(x for x in self.operands if x.index in places)
        return replace(self, operands=kept)

    def remap(self, twins: Mapping[int, Symbol]) -> OpaqueStep:
        """Return the step in another graph; `twins` maps the indices here to symbols there."""
        results = tuple(twins[x.index] for x in self.results)
        operands = self.operands and tuple(twins[x.index] for x in self.operands)
        return replace(self, results=results, operands=operands)


class RecordedFacts(NamedTuple):
    """The facts about a recorded program that its graph lacks, in terms of the graph's symbols.

    `pins` are `where` symbols that replace values of the graph by NumPy's own results, such as
    casts of floats beyond an integer's range; in wide arithmetic a pin has the graph's value. The
    mapping is keyed by the index of the pinned cast, the pin's last operand. `masks` maps the
    result of an op, and its cast, to the condition of the call's `where=`: NumPy computes only the
    elements where the condition holds.
    `observed` has NumPy's own results of ops that the graph computes in another way: reductions of
    float16, which NumPy rounds at each step, and functions of arrays that lie backwards in memory,
    say, for which NumPy has another loop. `arguments` are the inputs that are data of the
    program: its arguments, and the arrays that it loads; None if all inputs are. `calls` has the
    measured calls whose results are symbols of the graph (see runtime.audit.library_calls), and
    `as_dtype` is the dtype of all floats in a graph that was retyped.
    """

    steps: tuple[OpaqueStep, ...] = ()
    pins: Mapping[int, Symbol] = MappingProxyType({})
    masks: Mapping[Symbol, Symbol] = MappingProxyType({})
    observed: Mapping[Symbol, NDArray[Any]] = MappingProxyType({})
    arguments: tuple[Symbol, ...] | None = None
    calls: Mapping[Symbol, CallResult] = MappingProxyType({})
    as_dtype: DType | None = None

    @property
    def watched(self) -> frozenset[int]:
        """The indices of the operands of steps."""
        operands = (symbol for step in self.steps for symbol in step.operands or ())
        return frozenset(symbol.index for symbol in operands)

    def reads_by_operand(self) -> Mapping[int, set[bool]]:
        """Return, by operand index, the reads by steps: True for truth only, False for values."""
        reads: dict[int, set[bool]] = {}
        for step in self.steps:
            for symbol in step.operands or ():
                reads.setdefault(symbol.index, set()).add(step.truth)
        return reads

    @property
    def step_results(self) -> tuple[Symbol, ...]:
        """The inputs that are results of steps with operands."""
        return tuple(x for step in self.steps if step.operands for x in step.results)

    def symbols(self) -> tuple[Symbol, ...]:
        """Return all symbols of the graph that the steps, pins and masks refer to."""
        symbols_named = [
            symbol for step in self.steps for symbol in (*step.results, *(step.operands or ()))
        ]
        named = (*symbols_named, *self.pins.values(), *self.masks, *self.masks.values())
        return (*named, *self.observed, *(self.arguments or ()), *self.calls)

    def remap(self, new: Iterable[Symbol]) -> RecordedFacts:
        """Return the same facts for another graph; `new` are the twins of `symbols()`, in order."""
        twins = {old.index: twin for old, twin in zip(self.symbols(), new, strict=True)}
        pins = (twins[pin.index] for pin in self.pins.values())
        return RecordedFacts(
            tuple(step.remap(twins) for step in self.steps),
            {pin.args[-1].index: pin for pin in pins},
            {twins[cast.index]: twins[mask.index] for cast, mask in self.masks.items()},
            {twins[symbol.index]: array for symbol, array in self.observed.items()},
            self.arguments and tuple(twins[x.index] for x in self.arguments),
            {twins[symbol.index]: call for symbol, call in self.calls.items()},
            self.as_dtype,
        )

    def retyped(self, twins: Sequence[Symbol | None], dtype: DType) -> RecordedFacts:
        """Return the steps for a graph whose floats have a dtype.

        `twins` has its symbol for each symbol here.
        """
        mapping = {place: twin for place, twin in enumerate(twins) if twin is not None}
        calls = {mapping[symbol.index]: call for symbol, call in self.calls.items()}
        steps = tuple(step.within(mapping).remap(mapping) for step in self.steps)
        return RecordedFacts(steps, calls=calls, as_dtype=dtype)


NO_FACTS = RecordedFacts()
"""The RecordedFacts of a graph that was not recorded."""


NO_VALUE = "has no value in wide arithmetic"
DECIDES = "is decided by values that have errors; the errors are those of the run's choice"


class Unknown:
    """The symbols of a graph whose error is unknown, and the steps that hide the error.

    `same` maps (operand index, truth) to whether the operand was equal in both runs. `lost_places`
    maps the indices of the symbols without a value in wide arithmetic to the reasons, and `choices`
    has the results of calls that wide arithmetic would choose otherwise.
    """

    def __init__(
        self,
        graph: Graph,
        steps: Sequence[OpaqueStep],
        same: Mapping[tuple[int, bool], bool],
        lost_places: Mapping[int, str],
        choices: Iterable[Symbol] = (),
    ) -> None:
        self._same, self._steps = same, steps
        self._without_value = [(graph.symbols[at], lost_places[at]) for at in sorted(lost_places)]
        self._choices = list(choices)
        self._flags = [symbol.index in lost_places for symbol in graph.symbols]
        self._making: dict[int, list[OpaqueStep]] = {}
        for step in steps:
            for symbol in step.results:
                self._making.setdefault(symbol.index, []).append(step)
        self.hiding: set[OpaqueStep] = set()
        # Iterate to the fixed point. One pass suffices if each step makes new inputs; a second
        # pass confirms it.
        while self._spread(graph):
            pass
        self.everything = any(step.steers for step in self.hiding)

    def __contains__(self, symbol: Symbol) -> bool:
        return self.everything or self._flags[symbol.index]

    def unseen(self) -> list[Unseen]:
        """Return the report's entries for the steps; equal steps at one location share an entry."""
        entries: list[Unseen] = []
        for step in sorted(self._steps, key=self.hiding.__contains__, reverse=True):
            hides, casts = step in self.hiding, step.casts_inside
            decides = step.keeps and self._differs(step)
            if hides or step.compiled or decides or casts:
                reason = DECIDES if decides else step.reason
                entries.append(Unseen(step.what, step.location, reason, hides, casts, decides))
        entries += [
            Unseen(symbol.op.name, symbol.location, reason, True)
            for symbol, reason in self._without_value
        ]
        entries += [
            Unseen(symbol.op.name, symbol.location, DECIDES, decides=True)
            for symbol in self._choices
        ]
        return unique_parts(entries)

    def _spread(self, graph: Graph) -> bool:
        """Propagate flags from operands to users; return whether a further step hides errors."""
        flags, before = self._flags, len(self.hiding)
        for symbol in graph.symbols:
            steps = self._making.get(symbol.index, ())
            self.hiding.update(step for step in steps if self._hides(step))
            if any(flags[arg.index] for arg in symbol.args) or not self.hiding.isdisjoint(steps):
                flags[symbol.index] = True
        self.hiding.update(step for step in self._steps if not step.results and self._hides(step))
        return len(self.hiding) > before

    def _hides(self, step: OpaqueStep) -> bool:
        if step.keeps:
            return False
        return step.operands is None or not step.exact or self._differs(step)

    def _differs(self, step: OpaqueStep) -> bool:
        """Whether an operand of a step differs in wide arithmetic."""
        return step.operands is None or any(
            self._flags[x.index] or not self._same[x.index, step.truth] for x in step.operands
        )
