"""Notes and opaque steps: the actions of a recorded program that its graph does not contain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphir.public import Graph, Location, Symbol
from graphir.runtime.audit.library_calls import CallResult
from graphir.runtime.audit.opaque import OpaqueStep
from graphir.runtime.recording.builder import RecordingBuilder
from graphir.runtime.recording.numpy_.dates import integers
from graphir.runtime.recording.operands import operands as operands_of
from graphir.runtime.recording.operands import traced_leaves
from graphir.runtime.recording.recorder_state import ArrayMemory
from graphir.runtime.recording.values import Array, RecordedValue, Result, TracedScalar, plains

_LATELY = 8
"""The steps that a function of NumPy adds after a read of its own, at most."""


@dataclass(frozen=True, slots=True)
class Note:
    """A thing that could not be recorded, where it first occurred, and the recorder's fallback."""

    what: str
    location: Location
    reason: str

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

    def of_plain(self, array: Array) -> Symbol | None:
        """Return the symbol of a plain array that the program brings along.

        The answer is None for a dtype that graphs lack.
        """
        raise NotImplementedError

    def note(self, what: str, reason: str) -> None:
        """Add a note that a thing was not recorded, once for each thing."""
        if what not in self.notes:
            self.notes[what] = Note(what, self.here, reason)

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
        self.steps.append(
            OpaqueStep(
                *(what, self.here, reason, tuple(results), operands),
                exact=exact,
                compiled=True,
                call=result,
            )
        )

    def read(self, what: str, value: Any, reason: str, truth: bool = False) -> None:
        """Note that the program's further course may depend on a recorded value.

        With `truth`, it depends only on whether the value is nonzero.
        """
        if isinstance(value, Symbol):
            symbols: tuple[Symbol, ...] | None = (value,)
        else:
            symbol = (
                self.before(value) if isinstance(value, (RecordedValue, TracedScalar)) else None
            )
            symbols = operands_of(self, value) if symbol is None else (symbol,)
        if symbols and self._reads.issuperset((symbol.index, truth) for symbol in symbols):
            return
        self._reads.update((symbol.index, truth) for symbol in symbols or ())
        if symbols != ():
            self._read_places[len(self.steps)] = len(self.graph.symbols)
            self.steps.append(
                OpaqueStep(what, self.here, reason, (), symbols, True, symbols is not None, truth)
            )

    def forget_steps(self, since: int) -> None:
        """Drop the steps from a number on, so that equal reads count again."""
        for place in range(since, len(self.steps)):
            step = self.steps[place]
            if self._read_places.pop(place, None) is not None:
                self._reads.difference_update((x.index, step.truth) for x in step.operands or ())
        del self.steps[since:]

    def forget_read(self, what: str, symbol: Symbol) -> None:
        """Drop the read of one symbol among the last steps, if there is one."""
        for place in range(len(self.steps) - 1, max(len(self.steps) - _LATELY, 0) - 1, -1):
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
