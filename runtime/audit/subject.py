"""The subject of an audit: an explicit graph, its inputs, and its sites that may lose values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from graphir import DType, ExecutionError, Graph, ShapeError, Symbol, TensorType, ops
from graphir.conversions import convert
from graphir.ir.liveness import last_uses
from graphir.ops.dims import Size, evaluate
from graphir.passes.analysis.casts import CastReport, StepLoss
from graphir.passes.rewriter import is_conversion
from graphir.runtime.audit.blocked_run import BlockedRun
from graphir.runtime.audit.exact_arrays import wide_dtype
from graphir.runtime.audit.library_calls import CallRun, disagreement, is_choice
from graphir.runtime.audit.opaque import NOTHING, Beyond
from graphir.runtime.audit.wide import Array, WideRun, wide_operands, widen
from graphir.runtime.binding import bind


class Subject:
    """The explicit graph of a report, its input arrays and the sizes of its dims.

    `live` are the symbols that an output or an opaque step depends on. `sites` are the live symbols
    that the audit measures: casts, and constants whose dtype rounds the program's Python number.
    """

    def __init__(
        self,
        report: CastReport,
        arrays: Sequence[Array],
        sizes: dict[str, int],
        beyond: Beyond = NOTHING,
    ) -> None:
        self.graph, self.arrays, self.sizes = report.explicit, arrays, sizes
        self.report, self.beyond = report, beyond
        self.literals = _literals(report)
        self.last = last_uses(self.graph, beyond.watched)
        self.live = [symbol for symbol in self.graph.symbols if self.last[symbol.index] >= 0]
        self.sites = [x for x in self.live if is_conversion(x) or x.index in self.literals]
        self.kinds: Mapping[int, StepLoss] = {}
        """The kinds of the steps that lost values in the first run, by symbol index."""
        self._sizes_of: dict[TensorType, int] = {}
        self._users: list[list[int]] = [[] for _ in self.graph.symbols]
        for symbol in self.live:
            for arg in symbol.args:
                self._users[arg.index].append(symbol.index)
        self.masks = {**beyond.masks, **self._masked_operands()}

    def run(self) -> WideRun:
        """Return a new wide run, with its reference run beside it; neither has started."""
        beside = RecordedRun(self.graph, self.arrays, self.sizes, self.beyond.watched)
        beside.observed = {symbol.index: x for symbol, x in self.beyond.observed.items()}
        wide = WideRun(beside, self.literals, self.beyond.pins, self.masks)
        wide.kinds = self.kinds
        calls = {symbol.index: call for symbol, call in self.beyond.calls.items()}
        beside.calls = CallRun(calls, self.beyond.as_dtype)
        wide.set_calls(calls, beside.calls)
        return wide

    def _masked_operands(self) -> dict[Symbol, Symbol]:
        """Return the masks of the casts whose only user is a result under a mask."""
        return {
            x: mask
            for symbol, mask in self.beyond.masks.items()
            for x in symbol.args
            if is_conversion(x) and x.shape == symbol.shape
            if self._users[x.index] == [symbol.index]
        }

    def may_lose(self, site: Symbol) -> bool:
        """Whether a site is inexact; a cast to bool loses only by intent and does not count."""
        storage = self.graph.storage_dtype
        exact = all(storage(x).exact_in(storage(site)) for x in site.args) and site.args
        return not exact and storage(site).family != "bool"

    def cost(self, blame: bool, keep: bool) -> int:
        """Return the number of symbols that the audit runs; an upper bound with blame."""
        both = 2 * len(self.live)
        groups = self.together([site for site in self.sites if blame and self.may_lose(site)])
        return both + sum(len(self.path(group)) + (0 if keep else both) for group in groups)

    def path(self, starts: Sequence[Symbol]) -> list[Symbol]:
        """Return symbols and all their live dependents, in the order of the graph."""
        waiting = [start.index for start in starts]
        reached_places = set(waiting)
        while waiting:
            new = [user for user in self._users[waiting.pop()] if user not in reached_places]
            reached_places.update(new)
            waiting += new
        return [self.graph.symbols[at] for at in sorted(reached_places)]

    def reaches(self, start: Symbol, end: Symbol) -> bool:
        """Whether a live symbol depends on another."""
        return any(symbol is end for symbol in self.path([start]))

    def together(self, sites: Sequence[Symbol]) -> list[list[Symbol]]:
        """Return groups of sites to blame together.

        The lossy steps of one place and kind are a group, and so are the casts of one place if
        there are many; other casts are groups of one.
        """
        groups: dict[Any, list[Symbol]] = {}
        are_few = sum(site.index not in self.kinds for site in sites) <= MANY
        for site in sites:
            dtypes = (site.dtype, *(x.dtype for x in site.args))
            kind = self.kinds.get(site.index)
            is_single = kind is None and are_few
            place = site.index if is_single else (site.location, site.op, kind, *dtypes)
            groups.setdefault(place, []).append(site)
        return list(groups.values())

    def bytes_of(self, symbol: Symbol) -> int:
        """Return the bytes of a symbol's values in both runs."""
        size = (16 if symbol.dtype.is_complex else 8) + symbol.dtype.storage.itemsize
        return size * self.size_of(symbol)

    def size_of(self, symbol: Symbol) -> int:
        """Return the number of elements of a symbol."""
        size = self._sizes_of.get(symbol.type)
        if size is None:
            size = self._sizes_of[symbol.type] = math.prod(self.shape_of(symbol))
        return size

    def shape_of(self, symbol: Symbol) -> tuple[int, ...]:
        """Return the shape of a symbol in this run."""
        return tuple(_size(dim, self.sizes) for dim in symbol.shape)


class RecordedRun(BlockedRun):
    """A reference run with the `observed` results of a recorded run (see Beyond), by index.

    Without one, the result of a library's call is its wide result on the operands, rounded once.
    """

    observed: Mapping[int, Array] = MappingProxyType({})
    calls: CallRun

    def value(self, symbol: Symbol) -> Array:
        """Return the observed value of a symbol, or compute it."""
        value = self.observed.get(symbol.index)
        if value is not None:
            return value
        call, storage = self.calls.of(symbol), self.graph.storage_dtype(symbol)
        if call is None:
            return super().value(symbol)
        try:
            wide = self.calls.result(symbol, wide_operands(self, symbol))
        except ExecutionError as error:
            self.calls.failures[symbol.index] = error.summary
            return convert(call.real, DType.from_numpy(call.real.dtype), storage, self.graph.tf32)
        return convert(wide, wide_dtype(wide), storage, self.graph.tf32)


def refuted(graph: Graph, arrays: Sequence[Array], beyond: Beyond) -> Beyond:
    """Return the same facts; calls that give other results than those of the run are refuted."""
    run = RecordedRun(graph, *bind(graph, arrays, {}))
    run.observed = {symbol.index: x for symbol, x in beyond.observed.items()}
    places = {symbol.index: call for symbol, call in beyond.calls.items()}
    calls, run.calls = dict(beyond.calls), CallRun(places)
    for symbol in run.walk() if calls else ():
        if symbol.index in places:
            storage = graph.storage_dtype(symbol)
            try:
                local = run.calls.result(symbol, wide_operands(run, symbol))
                actual = widen(run.cached_value(symbol), storage)
                why = disagreement(local, actual, symbol, places[symbol.index].call.precision)
            except ExecutionError as error:
                why = "" if is_choice(symbol) else error.summary
            calls[symbol] = calls[symbol]._replace(refuted=why)
    return beyond._replace(calls=calls)


MANY = 100
"""The most sites that an audit blames one by one; more sites are grouped by location."""


def _literals(report: CastReport) -> dict[int, complex]:
    """Return the Python numbers of constants whose dtype rounds them, by symbol index."""
    return {
        row.symbol.index: row.witness
        for row in report
        if row.kind == "literal" and row.symbol.op is ops.constant and row.witness is not None
    }


def _size(dim: Size, sizes: Mapping[str, int]) -> int:
    try:
        return evaluate(dim, sizes)
    except ShapeError:  # the run raises the same error at the op
        return 0
