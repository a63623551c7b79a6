"""What a recorded program does that its graph does not contain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphir import Graph, Location, Symbol
from runtime.audit.opaque import OpaqueStep
from runtime.recording.builder import RecordingBuilder
from runtime.recording.operands import operands as operands_of
from runtime.recording.operands import traced_leaves
from runtime.recording.values import Array, RecordedValue, RecordingTrace, TracedScalar, plains


@dataclass(frozen=True, slots=True)
class Note:
    """What could not be recorded, where it was met first, and what was done instead."""

    what: str
    location: Location
    reason: str

    def __str__(self) -> str:
        return f"{self.what} at {self.location} {self.reason}"


class NotingBuilder(RecordingBuilder):
    """A builder that knows what its graph does not contain: notes for people, steps for audits."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.notes: dict[str, Note] = {}
        self.steps: list[OpaqueStep] = []
        self.arguments: list[Any] = []
        """The arguments of the calls that are being recorded, the user's first."""
        self._reads: set[tuple[int, bool]] = set()

    def before(self, value: Any) -> Symbol | None:
        """The symbol of what is there before NumPy may write to it, if it has one."""
        raise NotImplementedError

    def owner(self, array: Array) -> RecordingTrace | None:
        """The trace of the array of this recording in whose memory a plain one lies."""
        raise NotImplementedError

    def of_plain(self, array: Array) -> Symbol | None:
        """The symbol of a plain array that the program brings along, if graphs have its dtype."""
        raise NotImplementedError

    def note(self, what: str, reason: str) -> None:
        """Say once of a thing that it was not recorded."""
        if what not in self.notes:
            self.notes[what] = Note(what, self.here, reason)

    def step(
        self,
        what: str,
        reason: str,
        results: Sequence[Symbol],
        operands: tuple[Symbol, ...] | None,
        exact: bool = False,
    ) -> None:
        """Note a step with such results, that may have read such operands (see OpaqueStep)."""
        self.steps.append(
            OpaqueStep(
                what, self.here, reason, tuple(results), operands, exact=exact, compiled=True
            )
        )

    def read(self, what: str, value: Any, reason: str, truth: bool = False) -> None:
        """Note that the program goes on by a recorded value, or by whether it is nonzero."""
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
            self.steps.append(
                OpaqueStep(what, self.here, reason, (), symbols, True, symbols is not None, truth)
            )

    def setting(self, what: str, value: Any) -> Any:
        """The plain value of an argument that is no operand: the program goes on by it."""
        for leaf in traced_leaves(value):
            self.read(what, leaf, "is read from recorded values")
        return plains(value)
