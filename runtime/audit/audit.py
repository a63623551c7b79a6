"""Running a graph with every cast measured, beside the same in wide arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphir import Graph, Symbol, ops
from passes.casts import CastReport, Measured, OutputError, cast_report
from runtime.audit.comparing import Output
from runtime.audit.measuring import measure
from runtime.audit.uses import Uses
from runtime.audit.wide import Array, WideRun
from runtime.binding import bind
from runtime.interpreter import Run
from runtime.progress import Count, Watch, watcher
from runtime.results import REFUSED, owned, require_outputs


def audit(
    graph: Graph,
    /,
    *inputs: Any,
    blame: bool = True,
    progress: bool | Watch = False,
    memory: int = 1 << 30,
    **named: Any,
) -> CastReport:
    """What the casts of a graph do to these inputs, and how much of each output's error is theirs.

    The graph is made explicit, run as `interpret` does, and beside that in wide arithmetic (see
    runtime.audit.wide). The report has what each cast did (`row.measured`), how far each output is
    from the wide one (`.outputs`), and the outputs themselves (`.results`). With `blame` it also
    has the share of each cast in each output's error (see Output.share), for which the wide run is
    done once more for every cast that changed something, with the loss of that cast alone put in:
    only what depends on it, if the values of one wide run take at most `memory` bytes; else all of
    it. `progress` is called with the symbols that have been run and those there are; True shows
    them on stderr. Inputs are given as to `interpret`, those named like a parameter here by
    position. Raises ExecutionError.
    """
    require_outputs(graph)
    report = cast_report(graph)
    arrays, sizes = bind(report.explicit, inputs, named)
    with np.errstate(all="ignore"):
        run = _Audit(report, arrays, sizes, memory)
        measures, errors = run.audited(blame, watcher(progress, "symbols"))
        results = owned([output.real for output in run.outputs], arrays)
    return report.measured(measures, errors, results)


class _Audit:
    """An explicit graph, what it is run on, and the values of its runs that are kept.

    What is measured is its casts, and constants whose dtype rounds the number that was written.
    """

    def __init__(
        self, report: CastReport, arrays: Sequence[Array], sizes: dict[str, int], memory: int
    ) -> None:
        self.graph, self.arrays, self.sizes = report.explicit, arrays, sizes
        self.literals = {
            row.symbol.index: row.witness
            for row in report
            if row.symbol.op is ops.constant and row.witness is not None and row.kind == "literal"
        }
        self.uses = Uses(self.graph)
        self.casts = [
            symbol
            for symbol in self.uses.live
            if symbol.op is ops.cast or symbol.index in self.literals
        ]
        self.keep = self.uses.bytes(sizes) <= memory
        self.outputs: list[Output] = []
        self.losses: dict[int, tuple[Array, Array]] = {}

    def audited(
        self, blame: bool, watch: Watch | None
    ) -> tuple[dict[int, Measured], list[OutputError]]:
        """What each cast did, by its place, and the error of each output."""
        blamed = [cast for cast in self.casts if blame and self._may_lose(cast)]
        self.count = Count(watch, self._cost(blamed) if watch else 0)
        self.wide = self._runs()
        measures = self._measured()
        errors = [output.error() for output in self.outputs]
        if blame:
            self._blame([cast for cast in blamed if measures[cast.index].changed], errors)
        self.count.finish()
        return measures, errors

    def _runs(self) -> WideRun:
        """Both runs, before their first symbol."""
        return WideRun(Run(self.graph, self.arrays, self.sizes), self.literals)

    def _measured(self) -> dict[int, Measured]:
        """Run the graph and its wide twin, measuring every cast while its values are there."""
        measures: dict[int, Measured] = {}
        wide, casts = self.wide, {cast.index for cast in self.casts}
        for symbol in self._beside(wide):
            if symbol.index in casts:
                before, source = wide.before(symbol)
                after = wide.beside.known(symbol)
                found = measure(before, after, source, self.graph.stored(symbol))
                measures[symbol.index] = found
                if self.keep and found.changed:
                    self.losses[symbol.index] = before, after
        for symbol, real in zip(self.graph.outputs, wide.beside.outputs(), strict=True):
            dtype = self.graph.committed(symbol.dtype)
            self.outputs.append(Output(symbol.name, dtype, real, wide.known(symbol)))
        return measures

    def _beside(self, wide: WideRun) -> Iterator[Symbol]:
        """The symbols, each run and then run in wide arithmetic."""
        for symbol, _ in zip(wide.beside.walk(), wide.walk(self.keep), strict=True):
            self.count.step(2)
            yield symbol

    def _blame(self, casts: Iterable[Symbol], errors: list[OutputError]) -> None:
        """Write into the errors what share of them each cast has."""
        shares = [dict.fromkeys((cast.index for cast in self.casts), 0.0) for _ in errors]
        for cast in casts if any(error.differing for error in errors) else ():
            values = self._with_loss(cast)
            for i, symbol in enumerate(self.graph.outputs):
                if symbol.index in values:
                    value = values[symbol.index]
                    shares[i][cast.index] = self.outputs[i].share(errors[i], value)
        errors[:] = [replace(one, shares=found) for one, found in zip(errors, shares, strict=True)]

    def _with_loss(self, cast: Symbol) -> dict[int, Array]:
        """The wide values of outputs that depend on a cast, with its loss put in."""
        wide, path = self.wide, self.uses.path(cast)
        symbols: Iterable[Symbol] = path
        if not self.keep:
            wide = self._runs()
            places = {symbol.index for symbol in path}
            symbols = (symbol for symbol in self._beside(wide) if symbol.index in places)
        values: dict[int, Array] = {}
        for symbol in symbols:
            if symbol is cast:
                values[symbol.index] = wide.with_loss(cast, *self._loss(wide, cast))
            else:
                values[symbol.index] = _again(wide, symbol, values)
            for arg in symbol.args:
                if self.uses.last[arg.index] == symbol.index:
                    values.pop(arg.index, None)
            self.count.step()
        return values

    def _cost(self, casts: Sequence[Symbol]) -> int:
        """The number of symbols that are run in all, if each of the casts loses something."""
        run = 2 * len(self.uses.live)
        whole = 0 if self.keep else run
        return run + sum(whole + len(self.uses.path(cast)) for cast in casts)

    def _loss(self, wide: WideRun, cast: Symbol) -> tuple[Array, Array]:
        """What went into a cast and what came out, which was kept or is at hand."""
        kept = self.losses.get(cast.index)
        return kept or (wide.before(cast)[0], wide.beside.known(cast))

    def _may_lose(self, cast: Symbol) -> bool:
        """Whether a cast can lose something that is not what it is for."""
        target = self.graph.stored(cast)
        if not cast.args:
            return True
        return target.kind != "bool" and not self.graph.stored(cast.args[0]).exact_in(target)


def _again(wide: WideRun, symbol: Symbol, values: Mapping[int, Array]) -> Array:
    """The wide value of a symbol on other operands; where it has none, the one that it had."""
    operands = [
        values[arg.index] if arg.index in values else wide.known(arg) for arg in symbol.args
    ]
    try:
        return wide.computed(symbol, operands)
    except REFUSED:
        return wide.known(symbol)
