"""The commands `casts`, `audit` and `draw`: cast reports of a graph and of a run, and pictures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import partial
from typing import Any, cast, get_args

from graphir.display import printable
from graphir.drawing.formats import GRAPH_FORMATS
from graphir.loss import LOSS_KINDS
from graphir.passes import CastReport, cast_report, draw, lower
from graphir.passes.analysis.casts import Kind, StepLoss
from graphir.passes.reports import DTYPE_FORMATS, REPORT_FORMATS
from graphir.passes.reports.phrases import step_place
from graphir.passes.reports.terminal import terminal_width
from graphir.passes.reports.text import answers_text, report_details, report_text
from graphir.public import DType, ExecutionError, Graph, TensorType
from graphir.runtime.audit import audit
from graphir.runtime.cli.arguments import (
    UsageError,
    add_fail_on,
    add_only,
    add_output,
    add_program,
    output_format,
    rule_set,
    status,
    write_text,
)
from graphir.runtime.cli.programs import (
    BY_INPUT,
    Draws,
    ProgramCall,
    file_of,
    following,
    load_call,
    load_graph,
    load_run,
    require_arguments,
)
from graphir.runtime.recording.flat_code import Script
from graphir.runtime.recording.recording import Recording
from graphir.runtime.sources.programs import record_program
from graphir.source_text import displayed_path


def add_casts(command: Callable[..., Any]) -> None:
    """Add the commands `casts` and `audit`."""
    doc = "Report the casts of a graph: where, why, by which rule, at what loss."
    casts = command("casts", _casts, doc, "model.gir --kind implicit --lossy")
    doc = "Run a graph, or a function on NumPy arrays, and report what casts did to its data."
    audit_parser = command("audit", _audit, doc, "script.py:function --input x.npy --against jax")
    add_program(casts)
    add_program(
        audit_parser, "a graph, or a program of NumPy, JAX or torch; SCRIPT.py alone: its lines"
    )
    for each in (casts, audit_parser):
        each.add_argument(
            "--seed", type=int, default=0, help="of the values that are drawn for types: --input"
        )
        add_output(each, REPORT_FORMATS, "text")
        add_fail_on(each)
        add_filters(each)
        add_extent(each)
    add_run_options(audit_parser)


def add_run_options(command: argparse.ArgumentParser) -> None:
    """Add the options of an audit's run."""
    command.add_argument("--no-blame", action="store_true", help="only measure each cast")
    command.add_argument(
        "--as-dtype",
        metavar="DTYPE[,DTYPE...]",
        help="what the program would lose with all its floats of a dtype, such as bfloat16; of "
        "several: a table, by layer",
    )


def add_extent(command: argparse.ArgumentParser) -> None:
    """Add the options for more and for less than a report says by itself: -v and -q."""
    extent = command.add_mutually_exclusive_group()
    extent.add_argument(
        "-v", "--verbose", action="store_true", help="name each part that was not seen"
    )
    extent.add_argument("-q", "--quiet", action="store_true", help="the answer alone, as text")


def add_filters(command: argparse.ArgumentParser) -> None:
    """Add the options that select rows of a report, and --against."""
    add_only(command)
    command.add_argument(
        "--keep",
        metavar="DTYPE",
        help="the dtype that results should have: names each line that makes a wider one",
    )
    command.add_argument(
        "--kind",
        choices=(*get_args(Kind), *get_args(StepLoss)),
        help="one kind; legalization lowers",
    )
    command.add_argument("--lossy", action="store_true", help="those that can lose something only")
    command.add_argument("--loss", choices=LOSS_KINDS, help="those that can lose this")
    command.add_argument("--layer", help="those of a layer and its parts")
    command.add_argument(
        "--all", action="store_true", help="exact numbers too, and casts that change nothing"
    )
    command.add_argument("--dtype", help="those from or to a dtype")
    command.add_argument(
        "--against", type=rule_set, metavar="RULES", help="what would change under other rules"
    )


def _casts(args: argparse.Namespace) -> int:
    report = load_report(args)
    if args.kind == "legalization":
        report = cast_report(lower(report.graph))
    return _write_report(report, args)


def _audit(args: argparse.Namespace) -> int:
    return _write_reports(load_audit(args, blame=not args.no_blame), args)


def load_audit(args: argparse.Namespace, blame: bool = True) -> Callable[..., CastReport]:
    """Return the audit of what a command names on its inputs, which takes `as_dtype`."""
    draws = Draws(args.seed)
    program = load_call(args, draws)
    if args.arguments and not isinstance(program, Script):
        raise ExecutionError(
            f"{args.program} takes no arguments after --", fix="give its inputs by --input VALUE"
        )
    if isinstance(program, Graph) or (
        isinstance(program, ProgramCall) and program.library == "jax"
    ):
        graph, values = load_run(args, program, draws=draws)
        return partial(audit, graph, *values, blame=blame)
    call = draws.call(program) if isinstance(program, ProgramCall) else program
    recording = load_recording(args, call, draws.notes)
    return partial(recording.audit, blame=blame)


def _write_reports(run: Callable[..., CastReport], args: argparse.Namespace) -> int:
    """Audit in each dtype of --as-dtype, and write the report, or the comparison of several."""
    names = [None] if args.as_dtype is None else args.as_dtype.split(",")
    if len(names) == 1:
        return _write_report(run(as_dtype=names[0]), args)
    name = output_format(args, DTYPE_FORMATS, "text")
    if name not in DTYPE_FORMATS:
        raise UsageError(
            f"--as-dtype of several dtypes has the formats {' and '.join(DTYPE_FORMATS)}",
            got=f"--format {name}",
            fix="name one dtype",
        )
    dtypes = [DType(name) for name in names]
    reports = {str(dtype): selected(run(as_dtype=dtype), args) for dtype in dict.fromkeys(dtypes)}
    write_text(DTYPE_FORMATS[name](reports), args, fits=True)
    return max(status(report, args) for report in reports.values())


def selected(report: CastReport, args: argparse.Namespace) -> CastReport:
    """Return the report of the rows that pass the filters, compared with the rules of --against."""
    exact = False if args.lossy else None
    if args.keep is not None:
        report = report.keeping(args.keep)
    report = report.only(args.kind, exact, args.layer, args.dtype, args.loss, args.only)
    report = report.in_full() if args.all else report
    return report.compared(args.against) if args.against else report


def _write_report(report: CastReport, args: argparse.Namespace) -> int:
    """Print or write the rows that pass the filters; return the status of these for --fail-on."""
    name = output_format(args, REPORT_FORMATS, "text")
    report = selected(report, args)
    if not report.graph.provenance.file:
        report.graph.describe(file=displayed_path(file_of(args.program)))
    width = None if args.output else terminal_width(sys.stdout)
    if args.quiet and name in ("text", "details"):
        text = answers_text(report, width)
    elif name == "text":
        text = report_text(report, width, args.verbose)
    elif name == "details":
        text = report_details(report, width=width)
    else:
        text = REPORT_FORMATS[name](report)
    write_text(text, args, fits=True)
    if name in ("json", "sarif"):
        print_not_recorded(report)
    return status(report, args)


def print_not_recorded(report: CastReport) -> None:
    """Print on stderr what a recording has no ops for, which a format without it leaves out."""
    for part in report.given:
        print(f"graphir: {step_place(part)} {printable(part.reason)}", file=sys.stderr)


def add_draw(command: Callable[..., Any]) -> None:
    """Add the command `draw`; `command` adds a subcommand to the parser."""
    doc = "Draw a graph: its layers, and every cast in the colour of what it loses."
    parser = command("draw", _draw, doc, "model.gir -o model.svg")
    add_program(parser)
    add_output(parser, GRAPH_FORMATS, "svg")
    add_fail_on(parser)


def _draw(args: argparse.Namespace) -> int:
    """Write the picture of a graph; return status 1 if --fail-on forbids its implicit casts."""
    report = load_report(args)
    write_text(draw(report, output_format(args, GRAPH_FORMATS, "svg")), args)
    return status(report, args)


# -- the report of a graph, or of a recording of it


def load_report(
    args: argparse.Namespace, program: Graph | Script | ProgramCall | None = None
) -> CastReport:
    """Return the report of the casts of what a command names: of `program`, if it is loaded.

    A function of NumPy or torch is recorded on the values of its inputs, as `audit` does; with
    types among them, the graph is that for all values. Where a function has no such graph, or NumPy
    computes a part of it at once, it is recorded on values that are drawn for the types, if it runs
    on them.
    """
    program = program or load_call(args)
    if not isinstance(program, ProgramCall) or program.library == "jax" or args.rules is not None:
        return cast_report(load_graph(args, program))
    if program.library == "numpy" and not args.inputs:
        return cast_report(load_graph(args, program))
    if not _has_types((program.positional, program.keywords)):
        return load_recording(args, program).report()
    graph: Graph | None = None
    refusal: Exception | None = None
    raised: Exception | None = None
    try:
        graph = load_graph(args, program)
    except Exception as error:  # the program's own errors too: it may run on values alone
        refusal = error
    if graph is None or (program.library == "numpy" and graph.provenance.unseen):
        draws = Draws(getattr(args, "seed", 0))
        try:
            return load_recording(args, draws.call(program), draws.notes).report()
        except Exception as error:  # named sizes, and the program's own errors on what was drawn
            raised = error
    if graph is None:
        assert refusal is not None
        raise raised if hasattr(raised, "__notes__") and raised is not None else refusal
    return cast_report(graph)


def load_recording(
    args: argparse.Namespace, program: Script | ProgramCall, draw_notes: Sequence[str] = ()
) -> Recording:
    """Return the recording of a script, or of a call of a function of NumPy or torch.

    What the program prints is on stderr. Notes about values that were drawn are those of its
    graph, for reports of it.
    """
    call = program if isinstance(program, ProgramCall) else ProgramCall(program, "numpy", [], {})
    if call is program:
        require_arguments(args.program, call.function, call.positional, call.keywords, BY_INPUT)
    with redirect_stdout(sys.stderr):  # stdout has the report alone
        recording = record_program(*call, args.rules)
    if call.library != "numpy":
        following(args.rules, recording.graph)
    recording.graph.describe(notes=[*recording.graph.notes, *draw_notes])
    return recording


def _has_types(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_types, cast("dict[str, Any]", value).values()))
    if isinstance(value, (tuple, list)):
        return any(map(_has_types, cast("Sequence[Any]", value)))
    return isinstance(value, TensorType)
