"""Running a graph with every cast measured, beside the same in wide arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir import Graph, Symbol
from graphir.ir.literals import native
from passes.analysis.casts import CastReport, Measured, cast_report
from runtime.audit.blame import Blame
from runtime.audit.comparing import Output
from runtime.audit.congruence import moduli
from runtime.audit.measuring import measure
from runtime.audit.opaque import Beyond, Unknown
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
    it. Of very many places the shares of those that changed their values least are unknown (see
    Blame). What no output depends on is not run, and has no measure. `progress` is called with the
    symbols that have been run and those there are; True shows a bar on stderr. Inputs are given as
    to `interpret`, those named like a parameter here by position. Raises ExecutionError.
    """
    require_outputs(graph)
    report = cast_report(graph)
    arrays, sizes = bind(report.explicit, inputs, named)
    return _audited(Subject(report, arrays, sizes), blame, progress, memory)


def audit_recorded(
    graph: Graph,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    beyond: Beyond,
    blame: bool = True,
    progress: bool | Watch = False,
    memory: int = 1 << 30,
) -> CastReport:
    """The audit of a program that was recorded as a graph: see `audit`.

    `outputs` are what NumPy made of the program, whose error is told; `beyond` is what the graph
    does not say. Where a step that the graph does not contain may hide an error, the error of what
    depends on it is unknown, and `.unseen` of the report names the step.
    """
    extended_graph = graph.like()
    extended_graph.symbols, extended_graph.inputs = graph.symbols, graph.inputs
    extended_graph.input_names, extended_graph.outputs = (
        graph.input_names,
        (*graph.outputs, *beyond.symbols()),
    )
    report, count = cast_report(extended_graph), len(graph.outputs)
    beyond = beyond.moved(report.explicit.outputs[count:])
    report.graph, report.explicit.outputs = graph, report.explicit.outputs[:count]
    arrays, sizes = bind(report.explicit, inputs, {})
    subject = Subject(report, arrays, sizes, beyond)
    return _audited(subject, blame, progress, memory, outputs)


def _audited(
    subject: Subject,
    blame: bool,
    progress: bool | Watch,
    memory: int,
    outputs_made: Sequence[Any] | None = None,
) -> CastReport:
    """The report of a subject; `made` are its outputs where they were computed elsewhere."""
    report, graph = subject.report, subject.graph
    keep = blame and subject.bytes() <= memory
    watch = watcher(progress, "symbols")
    count = Count(watch, subject.cost(blame, keep) if watch else 0)
    with np.errstate(all="ignore"):
        wide = subject.run()
        measures, same = _measured(subject, wide, count.each(wide.walk(keep), 2), keep)
        real = (
            wide.beside.outputs() if outputs_made is None else list(map(_contiguous, outputs_made))
        )
        bits = moduli(graph, wide.rounded)
        lost_places = wide.lost | {
            x.index for x in graph.outputs if _is_vague(wide.known(x), x, bits)
        }
        sure = {key: equal and key[0] not in bits for key, equal in same.items()}
        hidden_errors = Unknown(graph, subject.beyond.steps, sure, lost_places)
        outputs = _outputs(wide, real, bits)
        errors = [
            output.unknown() if symbol in hidden_errors else output.error()
            for symbol, output in zip(graph.outputs, outputs, strict=True)
        ]
        if blame:
            sites = [x for x in subject.sites if subject.may_lose(x) and measures[x.index].changed]
            runs = Blame(subject, wide if keep else None, measures, count)
            errors = runs.shared(sites, outputs, errors)
    count.finish()
    return report.measured(measures, errors, owned(real, subject.arrays), hidden_errors.unseen())


def _measured(
    subject: Subject, wide: WideRun, walk: Iterable[Symbol], keep: bool
) -> tuple[Mapping[int, Measured], Mapping[tuple[int, bool], bool]]:
    """What each site did to the values of the run, by place, measured while they are there.

    And of each operand of a step whether it is the same in both runs (see Unknown).
    """
    measures: dict[int, Measured] = {}
    same: dict[tuple[int, bool], bool] = {}
    places, reads = {site.index for site in subject.sites}, subject.beyond.asked()
    for symbol in walk:
        at = symbol.index
        if at in places:
            effect = wide.effect(symbol)
            measures[at] = measure(*wide.masked(symbol, effect))
            if keep and measures[at].changed:
                wide.effects[at] = effect
        for truth in reads.get(at, ()):
            same[at, truth] = wide.is_same(symbol, truth)
    return measures, same


def _outputs(
    wide: WideRun, real: Sequence[NDArray[Any]], moduli: Mapping[int, int | None]
) -> list[Output]:
    graph = wide.graph
    outputs: list[Output] = []
    for i, (symbol, array) in enumerate(zip(graph.outputs, real, strict=True)):
        bits = moduli.get(symbol.index)
        far = 0.0 if bits is None else 2.0**bits
        dtype = graph.concrete_dtype(symbol.dtype)
        outputs.append(Output(f"output{i}", dtype, array, wide.known(symbol), far))
    return outputs


def _is_vague(wide: NDArray[Any], symbol: Symbol, bits: Mapping[int, int | None]) -> bool:
    """Whether nobody knows how far integers are from their exact values, which float64 rounded."""
    if symbol.index not in bits:
        return False
    modulus = bits[symbol.index]
    # It rounds by 2**-52 of a value at most, but for sums of many.
    return modulus is None or bool(wide.size and abs(wide).max() >= 2.0 ** (modulus + 40))


def _contiguous(value: Any) -> NDArray[Any]:
    """A result of NumPy's as a run has it."""
    return np.array(native(np.asarray(value)), order="C")
