"""Running a graph with every cast measured, beside the same in wide arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from graphir import Graph, Symbol
from passes.casts import CastReport, Measured, cast_report
from runtime.audit.blame import Blame
from runtime.audit.comparing import Output
from runtime.audit.measuring import measure
from runtime.audit.subject import Subject
from runtime.audit.wide import WideRun
from runtime.binding import bind
from runtime.progress import Count, Watch, watcher
from runtime.results import owned, require_outputs


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
    it. What no output depends on is not run, and has no measure. `progress` is called with the
    symbols that have been run and those there are; True shows a bar on stderr. Inputs are given as
    to `interpret`, those named like a parameter here by position. Raises ExecutionError.
    """
    require_outputs(graph)
    report = cast_report(graph)
    arrays, sizes = bind(report.explicit, inputs, named)
    subject = Subject(report, arrays, sizes)
    keep = blame and subject.bytes() <= memory
    watch = watcher(progress, "symbols")
    count = Count(watch, subject.cost(blame, keep) if watch else 0)
    with np.errstate(all="ignore"):
        wide = subject.run()
        measures = _measured(wide, subject.sites, count.each(wide.walk(keep), 2), keep)
        outputs = _outputs(wide)
        errors = [output.error() for output in outputs]
        if blame:
            sites = [x for x in subject.sites if subject.may_lose(x) and measures[x.index].changed]
            runs = Blame(subject, wide if keep else None, count)
            errors = runs.shared(sites, outputs, errors)
    count.finish()
    results = owned([output.real for output in outputs], arrays)
    return report.measured(measures, errors, results)


def _measured(
    wide: WideRun, sites: Iterable[Symbol], walk: Iterable[Symbol], keep: bool
) -> Mapping[int, Measured]:
    """What each site did to the values of the run, by place, measured while they are there."""
    measures: dict[int, Measured] = {}
    places = {site.index for site in sites}
    for symbol in walk:
        if symbol.index in places:
            effect = wide.effect(symbol)
            measures[symbol.index] = measure(*effect)
            if keep and measures[symbol.index].changed:
                wide.effects[symbol.index] = effect
    return measures


def _outputs(wide: WideRun) -> list[Output]:
    graph = wide.graph
    return [
        Output(f"output{i}", graph.committed(symbol.dtype), real, wide.known(symbol))
        for i, (symbol, real) in enumerate(zip(graph.outputs, wide.beside.outputs(), strict=True))
    ]
