"""The steps of a recorded program that its graph does not contain, and the errors they may hide.

A recorded program computes in code that is not recorded, and goes on by values that it reads: it
branches, or takes a Python number. The graph has the results of that as they were in the run. Wide
arithmetic would have handed such a step other operands, unless those have no error. So the error of
what depends on the step is unknown but where all of its operands are the same in both runs, and its
own arithmetic is wide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

from graphir import Graph, Location, Symbol
from passes.analysis.casts import Unseen


@dataclass(frozen=True, slots=True, eq=False)
class OpaqueStep:
    """A step of a program that its recorded graph does not contain.

    `results` are the inputs of the graph that hold what the step made, and `operands` all that the
    step may have read: None where nobody knows. A step `steers` that the program goes on by: every
    later symbol depends on it. It is `exact` if it gives in wide arithmetic what it gave in the
    run, for the same operands. Of a `truth` only whether the operand is nonzero was read. What is
    `compiled` is named in reports though it hides nothing.
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

    def moved(self, twins: Mapping[int, Symbol]) -> OpaqueStep:
        """The step in another graph, whose symbols are given by their place in this one."""
        results = tuple(twins[x.index] for x in self.results)
        operands = self.operands and tuple(twins[x.index] for x in self.operands)
        return replace(self, results=results, operands=operands)


class Beyond(NamedTuple):
    """What is known of a recorded program besides its graph, in terms of the graph's symbols.

    `pins` are `where` symbols that put NumPy's own results in the place of what the graph computes,
    as its casts of floats beyond the range of an integer are; in wide arithmetic they are what the
    graph computes. A cast that is the last operand of one has it under its own place. `masks` are
    the conditions of where=, each by the place of the cast of a result: elsewhere is none.
    """

    steps: tuple[OpaqueStep, ...] = ()
    pins: Mapping[int, Symbol] = MappingProxyType({})
    masks: Mapping[Symbol, Symbol] = MappingProxyType({})

    @property
    def watched(self) -> frozenset[int]:
        """The places of the operands of steps."""
        operands = (symbol for step in self.steps for symbol in step.operands or ())
        return frozenset(symbol.index for symbol in operands)

    def asked(self) -> Mapping[int, set[bool]]:
        """What of the operands of steps was read, by their place: truth alone, or the values."""
        reads: dict[int, set[bool]] = {}
        for step in self.steps:
            for symbol in step.operands or ():
                reads.setdefault(symbol.index, set()).add(step.truth)
        return reads

    def symbols(self) -> tuple[Symbol, ...]:
        """All the symbols of the graph that this names."""
        symbols_named = [
            symbol for step in self.steps for symbol in (*step.results, *(step.operands or ()))
        ]
        return (*symbols_named, *self.pins.values(), *self.masks, *self.masks.values())

    def moved(self, new: Iterable[Symbol]) -> Beyond:
        """The same of another graph, where `new` is what `symbols()` are there, in their order."""
        twins = {old.index: twin for old, twin in zip(self.symbols(), new, strict=True)}
        pins = (twins[pin.index] for pin in self.pins.values())
        return Beyond(
            tuple(step.moved(twins) for step in self.steps),
            {pin.args[-1].index: pin for pin in pins},
            {twins[cast.index]: twins[mask.index] for cast, mask in self.masks.items()},
        )


NOTHING = Beyond()
"""Of a graph that was not recorded."""


class Unknown:
    """The symbols of a graph whose error is unknown, and the steps that hide it.

    `same` says of each operand of a step whether it was the same in both runs, and `lost` are the
    symbols that have no value in wide arithmetic, by place.
    """

    def __init__(
        self,
        graph: Graph,
        steps: Sequence[OpaqueStep],
        same: Mapping[tuple[int, bool], bool],
        lost_places: Set[int],
    ) -> None:
        self._same, self._steps = same, steps
        self._lost_symbols = [symbol for symbol in graph.symbols if symbol.index in lost_places]
        self._flags = [symbol.index in lost_places for symbol in graph.symbols]
        self._making: dict[int, list[OpaqueStep]] = {}
        for step in steps:
            for symbol in step.results:
                self._making.setdefault(symbol.index, []).append(step)
        self.hiding: set[OpaqueStep] = set()
        # One pass is enough where each step makes new inputs, and a further one sees that it was.
        while self._spread(graph):
            pass
        self.everything = any(step.steers for step in self.hiding)

    def __contains__(self, symbol: Symbol) -> bool:
        return self.everything or self._flags[symbol.index]

    def unseen(self) -> list[Unseen]:
        """The steps as a report names them: those of one kind at one place once, at its first."""
        entries: dict[tuple[str, str], Unseen] = {}
        for step in sorted(self._steps, key=self.hiding.__contains__, reverse=True):
            hides = step in self.hiding
            if hides or step.compiled:
                entry = Unseen(step.what, step.location, step.reason, hides)
                entries.setdefault((step.what, str(step.location)), entry)
        for symbol in self._lost_symbols:
            entry = Unseen(symbol.op.name, symbol.location, "has no value in wide arithmetic", True)
            entries.setdefault((entry.what, str(entry.location)), entry)
        return list(entries.values())

    def _spread(self, graph: Graph) -> bool:
        """Pass the flags on from operands to users; whether a further step hides something."""
        flags, before = self._flags, len(self.hiding)
        for symbol in graph.symbols:
            steps = self._making.get(symbol.index, ())
            self.hiding.update(step for step in steps if self._hides(step))
            if any(flags[arg.index] for arg in symbol.args) or not self.hiding.isdisjoint(steps):
                flags[symbol.index] = True
        self.hiding.update(step for step in self._steps if not step.results and self._hides(step))
        return len(self.hiding) > before

    def _hides(self, step: OpaqueStep) -> bool:
        if step.operands is None or not step.exact:
            return True
        return any(
            self._flags[x.index] or not self._same[x.index, step.truth] for x in step.operands
        )
