"""Attribution of output errors to casts and lossy steps.

One backward sweep gives every site its share of every output's error, to first order (see
runtime.audit.sweep). For the sites of the largest shares, a wide run with the loss of the site
alone shows its effect on the outputs; `Output.share` turns the effect into the share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from graphir import GraphirError, Symbol
from graphir.passes.analysis.casts import Measured, OutputError
from graphir.runtime.audit.comparing import Output
from graphir.runtime.audit.regions import Regions
from graphir.runtime.audit.subject import Subject
from graphir.runtime.audit.sweep import Sweep
from graphir.runtime.audit.wide import Array, WideRun
from graphir.runtime.progress import Count

LEAST = 30_000_000
"""The work of runs, in elements, that an audit may do besides its sweep: about 0.2 s."""
PART = 0.5
"""The same for large arrays, as a part of the work of one wide run."""
SYMBOL = 10_000
"""The work of one symbol besides its elements: the time of NumPy on so many elements."""

LINEAR = 2.0**-10
"""The relative error of an output below which the shares of the sweep are as good as of a run."""
VISIBLE = 2.0**-16
"""The relative error of an output whose plain roundings count: more than float32 usually leaves."""


class Blame:
    """The shares of a subject's sites in the errors of its outputs.

    `wide_run` has the values of the run without losses that `regions` says. A run of a site
    recomputes the dependents of the site; if it needs values that were not kept, the whole graph.
    The runs begin with the sites without a share, then come those of the largest shares. So the
    work is that of the program, times a constant. A site with neither a share of the sweep nor a
    run has an unknown share.
    """

    def __init__(
        self,
        subject: Subject,
        wide_run: WideRun,
        measures: Mapping[int, Measured],
        count: Count,
        regions: Regions,
    ) -> None:
        self.subject, self.wide_run, self.measures, self.count = subject, wide_run, measures, count
        self.regions = regions
        self.roundings: dict[int, Symbol] = {}

    def shared(
        self, sites: Sequence[Symbol], outputs: Sequence[Output], errors: Sequence[OutputError]
    ) -> list[OutputError]:
        """Return the errors of the outputs with the shares of `sites`; other sites have share 0.

        An unknown share is None. `roundings` has, by index, the steps whose plain roundings explain
        more of an output's error than each site; these have shares too.
        """
        numbers = [i for i, error in enumerate(errors) if error.is_known]
        shares: dict[int, dict[int, float | None]] = {
            i: dict.fromkeys((site.index for site in self.subject.sites), 0.0) for i in numbers
        }
        wrong = {i: shares[i] for i in numbers if errors[i].differing}
        is_visible = any((errors[i].norm or 0.0) >= VISIBLE for i in wrong)
        swept = self._sweep(sites, outputs, wrong, errors) if sites or is_visible else {}
        if wrong and sites:
            self._measure(sites, outputs, errors, wrong)
        self._add_roundings(sites, swept, shares, errors)
        rest = {i: sum(parts.values()) for i, parts in swept.items()}
        return [
            replace(error, shares=shares[i], rounding=rest.get(i), roundings=swept.get(i))
            if i in shares
            else error
            for i, error in enumerate(errors)
        ]

    def _sweep(
        self,
        sites: Sequence[Symbol],
        outputs: Sequence[Output],
        shares: Mapping[int, dict[int, float | None]],
        errors: Sequence[OutputError],
    ) -> dict[int, dict[int, float]]:
        """Set the shares of the sites in the outputs whose errors are numbers.

        Returns the shares of all other steps, by output number and symbol index.
        """
        linear = [i for i in shares if not errors[i].broken]
        symbols = self.subject.graph.outputs
        seeds = [(symbols[i], outputs[i].seed(errors[i])) for i in linear]
        sweep = Sweep(self.wide_run, self.subject.live, self.measures, seeds)
        if linear:
            self.regions.backwards(sweep)
        for i, swept in zip(linear, sweep.shares, strict=True):
            for site in sites:
                unknown = site.index in sweep.unswept
                shares[i][site.index] = None if unknown else swept.get(site.index, 0.0)
        places = {site.index for site in sites}
        for i in shares.keys() - set(linear):
            shares[i].update(dict.fromkeys(places, None))
        return {
            i: {place: share for place, share in swept.items() if place not in places}
            for i, swept in zip(linear, sweep.shares, strict=True)
        }

    def _add_roundings(
        self,
        sites: Sequence[Symbol],
        swept: dict[int, dict[int, float]],
        shares: Mapping[int, dict[int, float | None]],
        errors: Sequence[OutputError],
    ) -> None:
        """Move roundings of the worst line of each output from `swept` to `roundings` and `shares`.

        They move if they explain more of the error than the sites of each line do. An output whose
        error no site explains has none, unless its error is visible.
        """
        symbols = self.subject.graph.symbols
        for i, parts in swept.items():
            rows, steps = _Lines(), _Lines()
            for site in sites:
                rows.add(site, shares[i][site.index] or 0.0)
            for place, share in parts.items():
                steps.add(symbols[place], share)
            is_visible = any(rows.totals.values()) or (errors[i].norm or 0.0) >= VISIBLE
            worst = steps.worst()
            if is_visible and steps.part(worst) > rows.part(rows.worst()):
                self.roundings.update((x.index, x) for x in steps.symbols.get(worst, ()))
        for i, parts in swept.items():
            shares[i].update({place: parts.pop(place, 0.0) for place in self.roundings})

    def _measure(
        self,
        sites: Sequence[Symbol],
        outputs: Sequence[Output],
        errors: Sequence[OutputError],
        shares: Mapping[int, dict[int, float | None]],
    ) -> None:
        """Replace the shares of the worst sites by those that a run each measures."""

        def worst(group: Sequence[Symbol]) -> tuple[float, float]:
            parts = [shares[i][site.index] for i in shares for site in group]
            share = max((math.inf if part is None else abs(part) for part in parts), default=0.0)
            return share, self._change(group)

        left = max(LEAST, PART * self._work(self.subject.live))
        small = all((errors[i].norm or 0.0) < LINEAR and not errors[i].broken for i in shares)
        for group in sorted(self.subject.together(sites), key=worst, reverse=True):
            if small and self.regions.has_blocks and worst(group)[0] < math.inf:
                break  # of large arrays, a run costs as much as the program and tells no more
            path = self.subject.path(group)
            left -= self._work(path)
            if left < 0:
                break
            values = self._with_losses(group, path)
            for i in shares:
                symbol = self.subject.graph.outputs[i]
                if symbol.index in values:
                    share = outputs[i].share(errors[i], values[symbol.index])
                    _distribute(share, group, shares[i])

    def _work(self, symbols: Sequence[Symbol]) -> int:
        return sum(SYMBOL + self.subject.size_of(symbol) for symbol in symbols)

    def _change(self, group: Sequence[Symbol]) -> float:
        """Return the largest relative error of an element over a group of sites; NaN is inf."""
        errors = (self.measures[site.index].relative for site in group)
        return max(math.inf if math.isnan(error) else error for error in errors)

    def _with_losses(self, group: Sequence[Symbol], path: Sequence[Symbol]) -> Mapping[int, Array]:
        """Return the wide values of the outputs that depend on a group, with its losses."""
        places, values = {site.index for site in group}, dict[int, Array]()

        def compute(wide: WideRun, symbol: Symbol, values: dict[int, Array]) -> None:
            new = _again(wide, symbol, values)
            values[symbol.index] = wide.with_loss(symbol, new) if symbol.index in places else new

        if self.regions.fits and self.regions.has_blocks:
            self.regions.overlay(self.wide_run, {x.index for x in path}, values, compute)
            self.count.step(len(path))
            return values
        wide, symbols = self._run(path)
        for symbol in self.count.each(symbols):
            compute(wide, symbol, values)
            for arg in symbol.args:
                if self.subject.last[arg.index] == symbol.index:
                    values.pop(arg.index, None)
        return values

    def _run(self, path: Sequence[Symbol]) -> tuple[WideRun, Iterable[Symbol]]:
        """Return the wide run without losses, and the symbols of a path as it computes them."""
        if self.regions.fits:
            self.regions.complete(self.wide_run)
            return self.wide_run, path
        wide, places = self.subject.run(), {symbol.index for symbol in path}
        walk = self.count.each(wide.walk(), 2)
        return wide, (symbol for symbol in walk if symbol.index in places)


class _Lines:
    """The sums of shares by line of the program, and the symbols with a share."""

    def __init__(self) -> None:
        self.totals: dict[tuple[str, int], float] = {}
        self.symbols: dict[tuple[str, int], list[Symbol]] = {}

    def add(self, symbol: Symbol, share: float) -> None:
        """Add the share of a symbol to that of its line."""
        line = symbol.location.place[:2]
        self.totals[line] = self.totals.get(line, 0.0) + share
        if share:
            self.symbols.setdefault(line, []).append(symbol)

    def part(self, line: tuple[str, int]) -> float:
        """Return the size of a line's sum; 0 without one."""
        return abs(self.totals.get(line, 0.0))

    def worst(self) -> tuple[str, int]:
        """Return the line of the largest share; ("", 0) without shares."""
        return max(self.totals, key=lambda line: abs(self.totals[line]), default=("", 0))


def _distribute(share: float, group: Sequence[Symbol], shares: dict[int, float | None]) -> None:
    """Set the shares of a group so that they sum to `share`, with the differences of the sweep."""
    parts = [shares[site.index] or 0.0 for site in group]
    rest = (share - sum(parts)) / len(group)
    for site, part in zip(group, parts, strict=True):
        shares[site.index] = part + rest if len(group) > 1 else share


def _again(wide: WideRun, symbol: Symbol, values: Mapping[int, Array]) -> Array:
    """Recompute a symbol on changed operands; keep its wide value if the op fails on them."""
    if not any(x.index in values for x in symbol.args):
        return wide.cached_value(symbol)
    operands = [values[x.index] if x.index in values else wide.cached_value(x) for x in symbol.args]
    try:
        return wide.compute(symbol, operands)
    except GraphirError:
        return wide.cached_value(symbol)
