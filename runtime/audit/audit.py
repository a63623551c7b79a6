"""`audit`: run a graph with every cast measured against a run in wide arithmetic.

An audit is a sequence of passes over one `AuditState` (see `run_passes`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphir.dtypes import DTypeLike
from graphir.ir.literals import native
from graphir.passes.analysis.casts import CastReport, Measured, OutputError, Unseen
from graphir.passes.analysis.explanations.causes import LossCause
from graphir.public import Graph, Symbol
from graphir.runtime.audit.blame import Blame, Output
from graphir.runtime.audit.effects import is_same, masked_effect, measure
from graphir.runtime.audit.fix_trials import with_measured_fixes
from graphir.runtime.audit.losses import LossySteps
from graphir.runtime.audit.opaque import RecordedFacts, Unknown
from graphir.runtime.audit.regions import Regions
from graphir.runtime.audit.subject import AuditedProgram, AuditOptions, Subject, subject_of
from graphir.runtime.audit.unrolling import unrolled
from graphir.runtime.audit.wide_run import WideRun
from graphir.runtime.binding import bind
from graphir.runtime.progress import Progress, stage
from graphir.runtime.results import owned, require_outputs


def audit(
    program: Graph | Callable[..., Any],
    /,
    *inputs: Any,
    blame: bool = True,
    memory: int = 1 << 30,
    as_dtype: DTypeLike | None = None,
    **keywords: Any,
) -> CastReport:
    """Measure the effect of a program's casts on inputs, and attribute the output errors to casts.

    The program is a graph, or a function on NumPy arrays, which `record` runs. The audit makes the
    graph explicit and runs it twice in step: as `interpret` does, and in wide arithmetic (see
    runtime.audit.wide_arithmetic). The report has the effect of each cast (`row.measured`), the
    error of each output against the wide run (`.outputs`), and the outputs (`.results`).

    With `blame` the report also has the share of each cast in each output's error (see
    Output.share). One backward sweep finds the shares to first order; for the largest, the audit
    repeats the wide run with the loss of that cast alone injected (see Blame). Casts whose errors
    the sweep cannot follow have unknown shares if there are too many for a run each. Values of the
    runs that take more than `memory` bytes are computed again.

    `as_dtype` asks what the same program would lose with all its floats in another dtype: it casts
    float inputs and constants to the dtype (see passes.analysis.rebuild). The wide run has the
    inputs as they are.

    Control flow is unrolled (see runtime.audit.unrolling): the report has the graphs that ran.

    Dead symbols are not run and have no measurement. Inputs are as for `interpret`; pass inputs
    that are named like a parameter of `audit` by position. Raises ExecutionError, and
    PromotionError if the rules refuse the program in the dtype.
    """
    options = AuditOptions(blame, memory, as_dtype)
    if not isinstance(program, Graph) and callable(program):
        from graphir.runtime.recording.reports import audit_function

        return audit_function(program, inputs, keywords, options)
    require_outputs(program)
    return audit_graph(AuditedProgram(program, inputs, keywords=keywords), options)


def audit_graph(program: AuditedProgram, options: AuditOptions) -> CastReport:
    """Audit the graph of a program, with its control flow unrolled and its calls as steps."""
    graph, steps = program.graph, program.facts.steps
    if not graph.has_bodies:
        return audit_program(program, options)
    operands = [x for step in steps for x in step.operands or ()]
    ends = graph.with_outputs((*graph.outputs, *operands))
    run = unrolled(ends, *bind(graph, program.inputs, program.keywords))
    twins = run.graph.outputs[len(graph.outputs) :]
    run.graph.set_interface(outputs=run.graph.outputs[: len(graph.outputs)])
    mapping = {x.index: twin for x, twin in zip(operands, twins, strict=True)}
    arguments = tuple(run.graph.inputs[: run.arguments])
    steps = (*run.steps, *(step.remap(mapping) for step in steps))
    facts = RecordedFacts(steps, arguments=arguments)
    unrolled_program = program._replace(
        graph=run.graph, inputs=run.arrays, facts=facts, keywords={}
    )
    report = audit_program(unrolled_program, options)
    return report.of_graph(graph if options.as_dtype is None else report.graph, graph)


def audit_program(program: AuditedProgram, options: AuditOptions) -> CastReport:
    """Audit a program as a graph: see `audit`.

    If a step outside the graph may hide an error, the values that depend on the step have an
    unknown error, and the report's `.unseen` names the step.
    """
    return run_passes(AuditState(subject_of(program, options.as_dtype), options))


class AuditState:
    """The state of an audit: its two runs, and the findings of the passes so far.

    `measures` has the measurements of casts and of lossy steps by symbol index, and `same` for each
    operand of an opaque step whether it is equal in both runs (see Unknown). `results` are the
    outputs of the program, `outputs` the same with their wide values, `errors` their errors.
    """

    def __init__(self, subject: Subject, options: AuditOptions) -> None:
        self.subject, self.options = subject, options
        self.regions = Regions(subject, options.memory, options.blame)
        self.wide = subject.run()
        self.measures: dict[int, Measured] = {}
        self.losses = LossySteps(self.wide, self.regions, subject.kinds, self.measures)
        self.same: dict[tuple[int, bool], bool] = {}
        self.results: Sequence[NDArray[Any]] = ()
        self.outputs: list[Output] = []
        self.errors: list[OutputError] = []
        self.causes: Sequence[LossCause] = ()
        self.unseen: Sequence[Unseen] = ()
        self.progress = Progress("the audit begins", "nothing was measured")


def run_passes(state: AuditState) -> CastReport:
    """Run the passes of an audit, and return its report: of what it found until Ctrl-C ends it."""
    with np.errstate(all="ignore"), stage(lambda: state.progress) as passes:
        run_in_step(state)
        state.losses.find_accumulations()
        state.errors = compare_outputs(state)
        attribute_errors(state)
    subject, measures = state.subject, state.measures
    results = owned(state.results, subject.arrays)
    for place in subject.kinds.keys() - measures.keys():  # the step at which Ctrl-C came
        del subject.kinds[place]
    report = subject.report.measured(
        measures, state.errors, results, state.unseen, subject.kinds, state.causes
    )
    report.references = tuple(state.outputs)
    if passes.interrupt is not None or subject.program is None:
        return report
    state.progress = Progress("fixes run", "fixes were not run")
    with stage(lambda: state.progress):
        return with_measured_fixes(state, report)
    return report


def run_in_step(state: AuditState) -> None:
    """Compute both runs, and measure the sites and the lossy steps while their values exist."""
    subject, losses, measures = state.subject, state.losses, state.measures
    places, reads = {site.index for site in subject.sites}, subject.facts.reads_by_operand()

    def visit(run: WideRun, symbol: Symbol) -> None:
        at = symbol.index
        if at in places:
            measured = measure(*masked_effect(run, symbol))
            measures[at] = Measured.merge(*filter(None, (measures.get(at), measured)))
        losses.scan(run, symbol)
        for truth in reads.get(at, ()):
            state.same[at, truth] = is_same(run, symbol, truth)

    count = len(subject.graph.symbols)
    for item in state.regions.walk(state.wide, visit):
        losses.finish(item)
        done = f"{item.steps[-1].index + 1:,} of {count:,} steps are measured"
        state.progress = Progress(done, "the others and the errors of results were not measured")
    state.progress = Progress(
        "errors of results are attributed", "the causes of errors were not found"
    )


def compare_outputs(state: AuditState) -> list[OutputError]:
    """Compare the outputs with their wide values; without the run's own, those of the graph."""
    errors: list[OutputError] = []
    subject, wide = state.subject, state.wide
    graph, made, rounds = subject.graph, subject.outputs, subject.rounds
    state.results = wide.actual_run.outputs() if made is None else list(map(_contiguous, made))
    choices = [graph.symbols[place] for place in sorted(wide.choices)]
    hidden_errors = Unknown(graph, subject.facts.steps, state.same, wide.lost_places, choices)
    for i, (symbol, array) in enumerate(zip(graph.outputs, state.results, strict=True)):
        dtype = (made or state.results)[i].dtype
        output = Output(
            subject.report.output_name(i),
            graph.concrete_dtype(symbol.dtype),
            array,
            wide.cached_value(symbol),
            rounds[i] if rounds else 1,
            str(dtype) if dtype.kind in "mM" else "",
        )
        state.outputs.append(output)
        errors.append(output.unknown() if symbol in hidden_errors else output.error())
    state.unseen = hidden_errors.unseen()
    return errors


def attribute_errors(state: AuditState) -> None:
    """Attribute the errors of the outputs to casts, lossy steps and plain roundings."""
    if not state.options.blame:
        return
    subject, measures = state.subject, state.measures
    sites = [x for x in subject.sites if subject.may_lose(x) and measures[x.index].changed]
    sites += [subject.graph.symbols[place] for place in subject.kinds]
    runs = Blame(subject, state.wide, measures, state.regions)
    state.errors = runs.shared(sites, state.outputs, state.errors)
    state.losses.add_roundings(runs.roundings.values())
    state.causes = runs.causes


def _contiguous(value: ArrayLike) -> NDArray[Any]:
    """Return a NumPy result as a C-contiguous array in native byte order; of dates the counts."""
    array = np.array(native(np.asarray(value)), order="C")
    return array.view(np.int64) if array.dtype.kind in "mM" else array
