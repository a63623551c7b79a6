"""The ledger: what the recordings of a test run saw, as data for other processes and for files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2s
from typing import Any, NamedTuple

from graphir.source_text import source_line


class CastFact(NamedTuple):
    """A cast at a line of a function.

    `kind` is that of a row of a cast report; `loss` says what the cast can lose, "" if nothing.
    `forbidden` is the word of a policy that forbids the cast, or "". `widens` says that an operand
    has a wider dtype after it, and `in_library` that NumPy's own code made it.
    """

    function: str
    file: str
    line: int
    column: int
    text: str
    op: str
    operand: str
    source: str
    target: str
    kind: str
    loss: str
    damage: float
    fix: str
    forbidden: str
    widens: bool
    in_library: bool
    is_accepted: bool = False
    """Whether a comment in its line accepts it, so that nothing forbids it."""

    @property
    def place(self) -> str:
        """The file, line and column."""
        return f"{self.file}:{self.line}:{self.column}"

    @property
    def is_silent(self) -> bool:
        """Whether the program does not spell the cast out."""
        return self.kind in ("implicit", "assignment")


class ResultOrigin(NamedTuple):
    """A line that gave a result its dtype."""

    function: str
    file: str
    line: int
    text: str


class Difference(NamedTuple):
    """A line whose result has another dtype under other rules, or which they refuse."""

    rules: str
    file: str
    line: int
    text: str
    op: str
    before: str
    after: str


@dataclass
class CallRecord:
    """The calls of one function with one signature.

    `results` has the lines that gave each dtype, by the path to the result and its dtype.
    """

    function: str
    arguments: str
    file: str = ""
    line: int = 0
    tests: list[str] = field(default_factory=list[str])
    recordings: int = 0
    recorded_in: list[str] = field(default_factory=list[str])
    """The tests whose shadows recorded the calls, in `tests` those that make them."""
    results: dict[str, dict[str, list[ResultOrigin]]] = field(
        default_factory=dict[str, dict[str, list[ResultOrigin]]]
    )
    casts: list[CastFact] = field(default_factory=list[CastFact])
    unseen: list[str] = field(default_factory=list[str])

    def forget_results(self) -> None:
        """Count as no recording, of which the casts alone are known."""
        self.recordings, self.recorded_in, self.results = 0, [], {}

    def add(self, other: CallRecord) -> None:
        """Add what other recordings of the same signature saw."""
        self.file, self.line = self.file or other.file, self.line or other.line
        self.recordings += other.recordings
        for path, dtypes in other.results.items():
            own = self.results.setdefault(path, {})
            for dtype, origins in dtypes.items():
                own[dtype] = _united(own.get(dtype, ()), origins)
        self.tests = _united(self.tests, other.tests)
        self.casts = _united(self.casts, other.casts)
        self.recorded_in = _united(self.recorded_in, other.recorded_in)
        self.unseen = _united(self.unseen, other.unseen)


def _united(first: Iterable[Any], other: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys((*first, *other)))


@dataclass
class Ledger:
    """The calls by function and signature, the functions that recordings could not follow.

    `refused` has the reason by function, `lost_calls` those for which recordings of functions
    came to nothing, `differences` the lines that differ under other rules, each with the
    functions that reach it; `sources` the lines of each function, as digests. `modules` is the
    number of those that were watched.
    """

    calls: dict[tuple[str, str], CallRecord] = field(
        default_factory=dict[tuple[str, str], CallRecord]
    )
    refused: dict[str, str] = field(default_factory=dict[str, str])
    lost_calls: dict[str, str] = field(default_factory=dict[str, str])
    differences: dict[Difference, None] = field(default_factory=dict[Difference, None])
    sources: dict[str, str] = field(default_factory=dict[str, str])
    modules: int = 0

    @property
    def called_functions(self) -> set[str]:
        """The functions that were called."""
        return {name for name, _ in self.calls} | self.refused.keys()

    @property
    def recorded_functions(self) -> set[str]:
        """The functions of which a recording ended."""
        return {call.function for call in self.calls.values() if call.recordings}

    @property
    def unseen_functions(self) -> dict[str, str]:
        """The functions that were called and never recorded, with the reasons, sorted."""
        reasons = {name: note for (name, _), call in self.calls.items() for note in call.unseen}
        reasons = {**reasons, **self.lost_calls, **self.refused}
        names = sorted(self.called_functions - self.recorded_functions)
        return {name: reasons.get(name, "no recording ended") for name in names}

    def add_call(self, call: CallRecord) -> None:
        """Add a call, or what it saw if there is one of its signature."""
        own = self.calls.setdefault((call.function, call.arguments), call)
        if own is not call:
            own.add(call)

    def add(self, other: Ledger) -> None:
        """Add the ledger of another process."""
        for call in other.calls.values():
            self.add_call(call)
        self.refused.update(other.refused)
        self.lost_calls.update(other.lost_calls)
        self.differences.update(other.differences)
        self.sources.update(other.sources)
        self.modules = max(self.modules, other.modules)


# -- digests of source lines

BLANK = "-"
"""Stands for a line without code in the digests of a function's lines."""


def source_digest(file: str, numbers: range) -> str:
    """Return short digests of the lines of a file with these numbers, separated by spaces."""
    return " ".join(_line_digest(source_line(file, number)) for number in numbers)


def _line_digest(line: str) -> str:
    text = line.strip()
    if not text or text.startswith("#"):
        return BLANK
    return blake2s(text.encode(), digest_size=3).hexdigest()
