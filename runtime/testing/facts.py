"""What a recording tells about the functions that ran in it: their results and casts.

A recorded run has a span for each call of a watched function: the steps of the graph between the
call and its return. A cast belongs to the innermost span whose function has the cast's line, so the
facts about a function do not depend on the function that the recording began with.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias, cast

from graphir.passes import CastReport, Policy
from graphir.passes.analysis.casts.conversion import CastWalk
from graphir.passes.analysis.casts.rows import CastRow, ImpliedUses
from graphir.passes.analysis.casts.sites import CastSite
from graphir.passes.analysis.diff import GraphDiff
from graphir.passes.analysis.policies.hits import forbid_edits
from graphir.passes.reports.phrases import witness
from graphir.public import DType, Graph, Location, Symbol, ops, rules
from graphir.runtime.testing.instrument import WatchedFunction
from graphir.runtime.testing.ledger import CallRecord, CastFact, Difference, Ledger, ResultOrigin
from graphir.source_text import source_line

_FIX_LENGTH = 120
_MOST_ORIGINS = 6
_MOST_VISITS = 300


@dataclass(eq=False)
class Span:
    """One call of a watched function in a recording; `end` is -1 until it returns.

    `results` has the symbol of each array or number in the result, by path and dtype.
    """

    function: WatchedFunction
    arguments: str
    start: int
    end: int = -1
    results: dict[str, tuple[str, Symbol | None]] = field(
        default_factory=dict[str, "tuple[str, Symbol | None]"]
    )
    counts: bool = True
    """Whether the call is among the first of its signature, whose facts the ledger keeps."""


class PackagePlaces:
    """The places of the package under test, as texts relative to a directory."""

    def __init__(self, root: str, functions: Sequence[WatchedFunction]) -> None:
        self._root = os.path.join(root, "")
        self._files = {function.file: function.module for function in functions}

    def file(self, path: str) -> str:
        """Return a path relative to the root directory if it is inside."""
        return path.removeprefix(self._root)

    def has(self, location: Location) -> bool:
        """Whether a location is in the package under test."""
        return location.source in self._files

    def function(self, location: Location) -> str:
        """Return the function at a location, with its module."""
        return f"{self._files[location.source]}:{location.function}"

    def text(self, location: Location) -> str:
        """Return the source line at a location."""
        return source_line(location.source, location.line).strip()

    def origin(self, location: Location) -> ResultOrigin:
        """Return a location as the origin of a result."""
        return ResultOrigin(
            self.function(location), self.file(location.source), location.line, self.text(location)
        )


class Facts:
    """Reads the facts of recordings of a package."""

    def __init__(
        self, places: PackagePlaces, policy: Policy | None, against: Sequence[str]
    ) -> None:
        self._places, self._policy, self._against = places, policy, against
        self._origins_by_symbol: dict[int, list[ResultOrigin]] = {}

    def calls(
        self, graph: Graph, first: int, spans: Sequence[Span], notes: Sequence[str]
    ) -> list[CallRecord]:
        """Return the calls of a recorded run, whose steps are the symbols from `first` on."""
        self._origins_by_symbol = {}
        calls = {id(span): self._call(span) for span in spans if span.counts}
        symbols = graph.symbols[first:] if calls else []
        owners = _owners(first, len(symbols), spans)
        for symbol, fact in self._casts(graph, symbols):
            call = calls.get(id(_owner(owners[symbol.index - first], spans, symbol, fact)))
            if call is not None and fact not in call.casts:
                call.casts.append(fact)
        if spans and spans[0].counts:
            calls[id(spans[0])].unseen = list(notes)[:8]
        return list(calls.values())

    def differences(self, graph: Graph) -> Iterator[Difference]:
        """Yield the first causes of differences under other rules."""
        for name in self._against:
            for change in GraphDiff(graph, graph.rules, rules(cast("Any", name))).causes:
                location = change.symbol.location
                if self._places.has(location):
                    ends = [
                        str(x) if isinstance(x, DType) else "refused"
                        for x in (change.before, change.after)
                    ]
                    file, text = self._places.file(location.source), self._places.text(location)
                    op = change.symbol.op.name
                    yield Difference(name, file, location.line, text, op, *ends)

    def _call(self, span: Span) -> CallRecord:
        function = span.function
        results: dict[str, dict[str, list[ResultOrigin]]] = {}
        for path, (dtype, symbol) in span.results.items():
            origins: list[ResultOrigin] = []
            if symbol is not None:
                origins = self._origins_by_symbol.get(symbol.index) or list(self._origins(symbol))
                self._origins_by_symbol[symbol.index] = origins
            results.setdefault(path, {})[dtype] = origins
        file = self._places.file(function.file)
        return CallRecord(
            function.name, span.arguments, file, function.line, recordings=1, results=results
        )

    def _casts(self, graph: Graph, symbols: Sequence[Symbol]) -> Iterator[tuple[Symbol, CastFact]]:
        uses, walk = ImpliedUses(graph), CastWalk(graph)
        places: set[tuple[int, int]] = set()
        for use in chain(walk.casts(symbols), walk.literals(symbols)):
            conversion, location, symbol, _ = use
            key = id(conversion), id(location)
            if key in places or not self._places.has(location):
                continue
            places.add(key)
            row = uses.row(*use)
            forbidden = self._forbidden(row)
            if row.kind in ("implicit", "assignment") or forbidden:
                if forbidden and self._policy is not None:
                    forbid_edits([row], self._policy.forbid)
                yield symbol, _fact(row, self._at(row.location), forbidden)

    def _forbidden(self, row: CastRow) -> str:
        """Return the words of the policy that forbid a cast, or ""."""
        if self._policy is None or not row.conversion.is_silent or row.accepting_line:
            return ""
        verdict = self._policy.judge(row.source, row.target, row.loss)
        return ", ".join(verdict.why) if verdict.action == "forbid" else ""

    def _at(self, location: Location) -> _Place:
        places = self._places
        function, file = places.function(location), places.file(location.source)
        return function, file, location.line, location.column, places.text(location)

    def _origins(self, symbol: Symbol) -> Iterator[ResultOrigin]:
        """Yield the lines that gave a value its dtype: the last step that promoted, then others."""
        dtype, pending, visited = symbol.type.dtype, [symbol], {symbol.index}
        origins: set[ResultOrigin] = set()
        while pending and len(visited) < _MOST_VISITS and len(origins) < _MOST_ORIGINS:
            step = pending.pop(0)
            same = [x for x in step.args if _dtype(x) is dtype]
            is_move = step.op.kind == "movement"
            mixed = not is_move and any(_dtype(x) not in (dtype, DType.bool) for x in step.args)
            if step.op is not ops.input and (mixed or not same) and self._places.has(step.location):
                origin = self._places.origin(step.location)
                if origin not in origins:
                    origins.add(origin)
                    yield origin
            for arg in same:
                if arg.index not in visited:
                    visited.add(arg.index)
                    pending.append(arg)


_Place: TypeAlias = tuple[str, str, int, int, str]
"""The first fields of a CastFact: its function, file, line, column and text."""


def _fact(row: CastRow, place: _Place, forbidden: str = "") -> CastFact:
    try:
        fix = row.fix
    except Exception:  # a fix is a courtesy, and no fault of it may stop the report
        fix = ""
    return CastFact(
        *place,
        row.op,
        row.operand,
        str(row.source),
        str(row.target),
        row.kind,
        "" if row.exact else witness(CastSite(row)),
        row.damage,
        fix if len(fix) <= _FIX_LENGTH else "",
        forbidden,
        row.kind == "implicit" and row.target.is_inexact and row.target.bits > row.source.bits,
        row.location.compound,
        bool(row.accepting_line),
    )


def _dtype(symbol: Symbol) -> DType | None:
    return getattr(symbol.type, "dtype", None)


def _owners(first: int, count: int, spans: Sequence[Span]) -> list[Span | None]:
    """Return the innermost span of so many symbols from `first` on; inner spans come later."""
    owners: list[Span | None] = [None] * count
    for span in spans:
        start, end = span.start - first, count if span.end < 0 else span.end - first
        owners[start:end] = [span] * (end - start)
    return owners


def _owner(owner: Span | None, spans: Sequence[Span], symbol: Symbol, fact: CastFact) -> Span:
    """Return the span that a fact belongs to: that of its function, also if steps came late.

    `owner` is the innermost span of the symbol.
    """
    if owner is not None and _is_in(fact.function, owner):
        return owner
    before = [x for x in spans if _is_in(fact.function, x) and x.start <= symbol.index]
    return before[-1] if before else owner or spans[0]


def _is_in(function: str, span: Span) -> bool:
    name = span.function.name
    return function == name or function.startswith(f"{name}.<")


# -- the facts of a report


def ledger_of(report: CastReport, name: str) -> Ledger:
    """Return the ledger of one call of the program of a report: its results, and its casts.

    The signature has the dtypes and ranks of the arguments. The line that gave a result its dtype
    is that of the sentence about it.
    """
    arguments = report.program.arguments
    if arguments is None:
        named = zip(report.graph.input_names, report.graph.inputs, strict=True)
        arguments = tuple(symbol for each, symbol in named if each not in report.graph.defaults)
    types = (f"{x.type.dtype}[{','.join(':' * len(x.type.shape))}]" for x in arguments)
    call = CallRecord(name, ", ".join(types), name.partition(":")[0], recordings=1)
    for number, symbol in enumerate(report.graph.outputs):
        if dtype := _dtype(symbol):
            places = [x.place for x in report.dtype_causes if number in x.outputs]
            origins = [ResultOrigin(*_at(x)[:3], _at(x)[4]) for x in places]
            call.results[report.output_name(number)] = {str(dtype): origins}
    rows = (site.row for site in report.sites)
    call.casts = [_fact(x, _at(x.location)) for x in rows if x.conversion.is_silent]
    return Ledger({(call.function, call.arguments): call})


def _at(location: Location) -> _Place:
    text = source_line(location.source, location.line).strip() or location.layered
    function = f"{location.file}:{location.function}"
    return function, location.file, location.line, location.column, text
