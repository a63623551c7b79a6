"""Attribution of output errors to casts.

For each cast, a wide run with the loss of that cast alone shows its effect on the outputs;
`Output.share` turns the effect into a share of the output's error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from graphir import GraphirError, Symbol
from passes.analysis.casts import Measured, OutputError
from runtime.audit.comparing import Output
from runtime.audit.subject import Subject
from runtime.audit.wide import Array, WideRun
from runtime.progress import Count

MOST = 500_000
"""The most symbols to run for shares, besides the last wide run: about 6 s."""


class Blame:
    """Wide runs of a subject, each with the loss of one site alone injected.

    If there are very many sites, as from a loop, one run injects the losses of all sites at one
    location, and each of these sites gets an equal part of their share. If `wide_run` has the
    values of the run without losses, a run recomputes only the dependents of the sites; else it
    recomputes the whole graph. The sites whose values changed most come first. The sites left after
    MOST symbols have unknown shares: so the work of an audit is proportional to the program.
    """

    def __init__(
        self,
        subject: Subject,
        wide_run: WideRun | None,
        measures: Mapping[int, Measured],
        count: Count,
    ) -> None:
        self.subject, self.wide_run, self.measures, self.count = subject, wide_run, measures, count
        self.work = 0

    def shared(
        self, sites: Sequence[Symbol], outputs: Sequence[Output], errors: Sequence[OutputError]
    ) -> list[OutputError]:
        """Return the errors of the outputs with the shares of `sites`; other sites have share 0.

        An unknown share is None.
        """
        shares_by_output: list[dict[int, float | None]] = [
            dict.fromkeys((site.index for site in self.subject.sites), 0.0) for _ in errors
        ]
        results = [
            result
            for result in zip(
                self.subject.graph.outputs, outputs, errors, shares_by_output, strict=True
            )
            if result[2].is_known
        ]
        groups = self.subject.together(sites) if any(error.differing for error in errors) else []
        for group in sorted(groups, key=self._change, reverse=True):
            if self.work >= MOST:
                for *_, shares in results:
                    shares.update(dict.fromkeys((site.index for site in group), None))
                continue
            values = self._with_losses(group)
            for symbol, output, error, shares in results:
                if symbol.index in values:
                    share = output.share(error, values[symbol.index]) / len(group)
                    shares.update(dict.fromkeys((site.index for site in group), share))
        return [
            replace(error, shares=shares) if error.is_known else error
            for error, shares in zip(errors, shares_by_output, strict=True)
        ]

    def _change(self, group: Sequence[Symbol]) -> float:
        """Return the largest relative error of an element over a group of sites; NaN is inf."""
        errors = (self.measures[site.index].relative for site in group)
        return max(math.inf if math.isnan(error) else error for error in errors)

    def _with_losses(self, group: Sequence[Symbol]) -> Mapping[int, Array]:
        """Return the wide values of the outputs that depend on a group, with its losses."""
        wide, symbols = self._run(group)
        places = {site.index for site in group}
        values: dict[int, Array] = {}
        for symbol in self.count.each(symbols):
            new = _again(wide, symbol, values)
            values[symbol.index] = wide.with_loss(symbol, new) if symbol.index in places else new
            for arg in symbol.args:
                if self.subject.last[arg.index] == symbol.index:
                    values.pop(arg.index, None)
        return values

    def _run(self, group: Sequence[Symbol]) -> tuple[WideRun, Iterable[Symbol]]:
        """Return the wide run without losses, and the symbols that depend on a group of sites."""
        path = self.subject.path(group)
        self.work += len(path) if self.wide_run is not None else 2 * len(self.subject.live)
        if self.wide_run is not None:
            return self.wide_run, path
        wide, places = self.subject.run(), {symbol.index for symbol in path}
        walk = self.count.each(wide.walk(), 2)
        return wide, (symbol for symbol in walk if symbol.index in places)


def _again(wide: WideRun, symbol: Symbol, values: Mapping[int, Array]) -> Array:
    """Recompute a symbol on changed operands; keep its wide value if the op fails on them."""
    if not any(x.index in values for x in symbol.args):
        return wide.cached_value(symbol)
    operands = [values[x.index] if x.index in values else wide.cached_value(x) for x in symbol.args]
    try:
        return wide.compute(symbol, operands)
    except GraphirError:
        return wide.cached_value(symbol)
