"""`audit`: run a graph with every cast measured, beside a reference run in wide arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir import DType, Graph, Symbol
from graphir.dtypes import DTypeLike
from graphir.ir.literals import native
from graphir.passes.analysis.casts import CastReport, Measured, report_with_kernels
from graphir.passes.analysis.casts.measured import parts_unseen, unique_parts
from graphir.passes.analysis.retype import retyped
from graphir.runtime.audit.blame import Blame
from graphir.runtime.audit.comparing import Output
from graphir.runtime.audit.library_calls import CallResult, LibraryCall, TracedCall, with_calls
from graphir.runtime.audit.losses import LossySteps
from graphir.runtime.audit.measuring import measure, merge
from graphir.runtime.audit.opaque import Beyond, OpaqueStep, Unknown
from graphir.runtime.audit.regions import Regions
from graphir.runtime.audit.subject import Subject, refuted
from graphir.runtime.audit.wide import WideRun
from graphir.runtime.binding import bind
from graphir.runtime.progress import Count, Watch, watcher
from graphir.runtime.results import owned, require_outputs
from graphir.runtime.unrolling import StepBeside, Unrolled, unrolled
from graphir.semantics.library_calls import NumPyCall


def audit(
    program: Graph | Callable[..., Any],
    /,
    *inputs: Any,
    blame: bool = True,
    progress: bool | Watch = False,
    memory: int = 1 << 30,
    as_dtype: DTypeLike | None = None,
    **keywords: Any,
) -> CastReport:
    """Measure the effect of a program's casts on inputs, and attribute the output errors to casts.

    The program is a graph, or a function on NumPy arrays, which `record` runs. The audit makes the
    graph explicit and runs it twice in step: as `interpret` does, and in wide arithmetic (see
    runtime.audit.wide). The report has the effect of each cast (`row.measured`), the error of each
    output against the wide run (`.outputs`), and the outputs (`.results`).

    With `blame` the report also has the share of each cast in each output's error (see
    Output.share). One backward sweep finds the shares to first order; for the largest, the audit
    repeats the wide run with the loss of that cast alone injected (see Blame). Casts whose errors
    the sweep cannot follow have unknown shares if there are too many for a run each. Values of the
    runs that take more than `memory` bytes are computed again.

    `as_dtype` asks what the same program would lose with all its floats in another dtype: it casts
    float inputs and constants to the dtype (see passes.analysis.retype). The wide run has the
    inputs as they are.

    Control flow is unrolled (see runtime.unrolling): the report has the graphs that ran.

    Dead symbols are not run and have no measurement. `progress` is a function that the audit calls
    with the number of finished and of all symbols; True shows a bar on stderr. Inputs are as for
    `interpret`; pass inputs that are named like a parameter of `audit` by position. Raises
    ExecutionError, and PromotionError if the rules refuse the program in the dtype.
    """
    if not isinstance(program, Graph) and callable(program):
        from graphir.runtime.recording import audit_function

        return audit_function(program, inputs, keywords, blame, progress, memory, as_dtype)
    require_outputs(program)
    if program.has_bodies:
        arrays, sizes = bind(program, inputs, keywords)
        run = unrolled(program, arrays, sizes)
        return _audit_unrolled(run, program, as_dtype, blame, progress, memory)
    graph = program if as_dtype is None else retyped(program, as_dtype).graph
    report = report_with_kernels(graph)
    arrays, sizes = bind(report.explicit, inputs, keywords)
    return _audited(Subject(report, arrays, sizes), blame, progress, memory)


def _audit_unrolled(
    run: Unrolled,
    program: Graph,
    as_dtype: DTypeLike | None,
    blame: bool,
    progress: bool | Watch,
    memory: int,
) -> CastReport:
    """Audit a run of a graph with control flow."""
    graph = run.graph
    beyond = Beyond(tuple(map(_opaque, run.steps)), arguments=tuple(graph.inputs[: run.arguments]))
    options = blame, progress, memory, as_dtype
    report = audit_recorded(graph, run.arrays, None, beyond, (), *options)
    if as_dtype is None:
        report.graph = program
    report.unseen = tuple(unique_parts([*report.unseen, *parts_unseen(program)]))
    return report


def _opaque(step: StepBeside) -> OpaqueStep:
    """Return an opaque step for a choice by a value, or for a call of another library."""
    what, location, results, operands = step[:4]
    if step.chooses:
        reason = "chooses by a value what runs"
        return OpaqueStep(
            what, location, reason, results, operands, steers=True, exact=True, truth=step.truth
        )
    # The graph says what a call casts: see parts_unseen.
    function = step.function
    call = TracedCall(function) if isinstance(function, NumPyCall) else function
    call = call if isinstance(call, LibraryCall) else None
    reason = "is computed by its library alone"
    data_of = None if call is None else call.data_of
    if call is None or data_of is None or operands is None:
        is_whole = operands is not None and len(results) == step.parts
        own = CallResult(call, 0) if call is not None and is_whole else None
        return OpaqueStep(
            what, location, reason, results, operands, compiled=True, promotes=False, call=own
        )
    operands = tuple(operands[i] for i in data_of)
    return OpaqueStep(
        what, location, reason, results, operands, exact=True, promotes=False, keeps=call.draws
    )


def audit_recorded(
    graph: Graph,
    inputs: Sequence[Any],
    outputs: Sequence[Any] | None,
    beyond: Beyond,
    names: Sequence[tuple[str, int]] = (),
    blame: bool = True,
    progress: bool | Watch = False,
    memory: int = 1 << 30,
    as_dtype: DTypeLike | None = None,
) -> CastReport:
    """Audit a program that was recorded as a graph: see `audit`.

    `outputs` are the results that NumPy computed in the recorded run; the report has their errors,
    under `names`, each with the number of rounds that it stacks. Without them, the outputs are
    those of the graph. `beyond` has the facts about the program that the graph lacks. If a step
    outside the graph may hide an error, the values that depend on the step have an unknown error,
    and the report's `.unseen` names the step.
    """
    recorded = graph
    graph, inputs, beyond = with_calls(graph, inputs, beyond)
    if as_dtype is not None:
        with np.errstate(all="ignore"):
            beyond = refuted(graph, inputs, beyond)
        rebuilt = retyped(graph, as_dtype)
        recorded = graph = rebuilt.graph
        outputs, beyond = None, beyond.retyped(rebuilt.twins, DType(as_dtype))
    extended_graph = graph.like()
    extended_graph.symbols, extended_graph.inputs = graph.symbols, graph.inputs
    extended_graph.input_names, extended_graph.outputs = (
        graph.input_names,
        (*graph.outputs, *beyond.symbols()),
    )
    report, count = report_with_kernels(extended_graph), len(graph.outputs)
    beyond = beyond.remap(report.explicit.outputs[count:])
    report.arguments, report.step_results = beyond.arguments, beyond.step_results
    report.output_names = tuple(name for name, _ in names)
    report.output_rounds = tuple(rounds for _, rounds in names)
    report.graph, report.explicit.outputs = recorded, report.explicit.outputs[:count]
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
    """Return the report of a subject; `outputs_made` are outputs from a recorded run, if any."""
    report, graph = subject.report, subject.graph
    regions = Regions(subject, memory, blame)
    watch = watcher(progress, "symbols")
    count = Count(watch, subject.cost(blame, regions.fits) if watch else 0)
    with np.errstate(all="ignore"):
        wide = subject.run()
        losses = LossySteps(wide)
        measures, same = _measured(subject, wide, regions, losses, count)
        losses.accumulations(subject.reaches, partial(regions.passes, wide))
        subject.kinds = wide.kinds = losses.kinds
        measures = {**measures, **losses.measures}
        real = (
            wide.beside.outputs() if outputs_made is None else list(map(_contiguous, outputs_made))
        )
        choices = [graph.symbols[place] for place in sorted(wide.choices)]
        hidden_errors = Unknown(graph, subject.beyond.steps, same, wide.lost_places, choices)
        outputs = _outputs(wide, real, report, outputs_made or real)
        errors = [
            output.unknown() if symbol in hidden_errors else output.error()
            for symbol, output in zip(graph.outputs, outputs, strict=True)
        ]
        if blame:
            sites = [x for x in subject.sites if subject.may_lose(x) and measures[x.index].changed]
            sites += [graph.symbols[place] for place in losses.kinds]
            runs = Blame(subject, wide, measures, count, regions)
            errors = runs.shared(sites, outputs, errors)
            losses.add_roundings(runs.roundings.values(), partial(regions.passes, wide))
            measures = {**measures, **losses.measures}
    count.finish()
    results, unseen = owned(real, subject.arrays), hidden_errors.unseen()
    return report.measured(measures, errors, results, unseen, losses.kinds)


def _measured(
    subject: Subject, wide: WideRun, regions: Regions, losses: LossySteps, count: Count
) -> tuple[Mapping[int, Measured], Mapping[tuple[int, bool], bool]]:
    """Compute both runs, and measure the sites and the lossy steps while their values exist.

    Returns the measurements by symbol index, and for each operand of an opaque step whether it is
    equal in both runs (see Unknown).
    """
    measures: dict[int, Measured] = {}
    same: dict[tuple[int, bool], bool] = {}
    places, reads = {site.index for site in subject.sites}, subject.beyond.reads_by_operand()

    def visit(run: WideRun, symbol: Symbol) -> None:
        at = symbol.index
        if at in places:
            measured = measure(*run.masked(symbol, run.effect(symbol)))
            measures[at] = merge(measures[at], measured) if at in measures else measured
        losses.scan(run, symbol)
        for truth in reads.get(at, ()):
            same[at, truth] = run.is_same(symbol, truth)

    for item in regions.walk(wide, visit):
        if isinstance(item, Symbol):
            losses.settle(item)
            count.step(2)
        else:
            suspects = losses.suspects(item.steps)
            for block, _ in item.blocks(wide) if suspects else ():
                for step in suspects:
                    losses.examine(block, step)
            losses.close(item.steps)
            count.step(2 * len(item.steps))
    return measures, same


def _outputs(
    wide: WideRun,
    real: Sequence[NDArray[Any]],
    report: CastReport,
    arrays: Sequence[Any],
) -> list[Output]:
    graph = wide.graph
    outputs: list[Output] = []
    for i, (symbol, array) in enumerate(zip(graph.outputs, real, strict=True)):
        unit = str(arrays[i].dtype) if arrays[i].dtype.kind in "mM" else ""
        dtype = graph.concrete_dtype(symbol.dtype)
        value = wide.cached_value(symbol)
        rounds = report.output_rounds[i] if report.output_rounds else 1
        outputs.append(Output(report.output_name(i), dtype, array, value, rounds, unit))
    return outputs


def _contiguous(value: Any) -> NDArray[Any]:
    """Return a NumPy result as a C-contiguous array in native byte order; of dates the counts."""
    array = np.array(native(np.asarray(value)), order="C")
    return array.view(np.int64) if array.dtype.kind in "mM" else array
