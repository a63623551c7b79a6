"""The commands on a program: `lower run plan export casts audit draw diff`."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np

from graphir.display import printable
from graphir.drawing.formats import GRAPH_FORMATS
from graphir.passes import CastReport, GraphDiff, RulesDiff, cast_report, diff, draw, lower
from graphir.passes.analysis.policies.hits import forbid_edits
from graphir.passes.analysis.policies.patterns import (
    WRONG,
    cast_kind,
    forbidden_rows,
    gate_word,
)
from graphir.passes.reports import DTYPE_FORMATS, REPORT_FORMATS, phrases
from graphir.passes.reports.text import SCREEN, answers_text, report_details, report_text
from graphir.public import DType, ExecutionError, Graph, GraphError, PromotionRules, TensorType
from graphir.rule_reports.terminal import on_screen, terminal_width
from graphir.runtime import targets
from graphir.runtime.audit import audit
from graphir.runtime.cli.arguments import UsageError, output_format, report_error, write_text
from graphir.runtime.cli.main import Status
from graphir.runtime.cli.programs import (
    BY_INPUT,
    Draws,
    ProgramCall,
    file_of,
    following,
    is_model,
    load_call,
    load_graph,
    load_run,
    require_arguments,
)
from graphir.runtime.cli.projects import read_programs
from graphir.runtime.program import Program
from graphir.runtime.program.program import execute
from graphir.runtime.progress import LongWork, long_work
from graphir.runtime.recording.flat_code import Script
from graphir.runtime.recording.recording import Recording
from graphir.runtime.sources.libraries import library_of_script
from graphir.runtime.sources.programs import record_program
from graphir.runtime.targets.emission import specialized
from graphir.runtime.value_files import write_outputs
from graphir.source_text import displayed_path
from graphir.text.atomic_files import replace_file
from graphir.text.printer import large_constants


def _note(text: str) -> None:
    print(f"graphir: note: {text}", file=sys.stderr)


def run_lower(args: argparse.Namespace) -> None:
    """Print or save a graph as a machine runs it."""
    output_format(args, ("graph",), "graph")
    lowered_graph = lower(load_graph(args))
    if args.output:
        lowered_graph.save(args.output)
        return
    write_text(str(lowered_graph), args)
    if large := large_constants(lowered_graph):
        _note(f"the values of {', '.join(large)} are too large for text; --output saves them too")


def run_run(args: argparse.Namespace) -> None:
    """Print or save the outputs of a graph."""
    output_format(args, ("arrays",), "arrays")
    graph, values = load_run(args)
    outputs = execute(graph, *values)
    arrays = (outputs,) if len(graph.outputs) == 1 else tuple(outputs)
    if args.output:
        for line in write_outputs(args.output, arrays):
            _note(line)
    else:
        write_text(_arrays_text(graph, arrays), args)


def run_plan(args: argparse.Namespace) -> None:
    """Print the steps of a run."""
    output_format(args, ("text",), "text")
    graph, values = load_run(args, needs_values=False)
    program = Program(graph, native=args.native)
    text = program.explain(*values) if args.ir is None else program.ir(args.ir, *values)
    write_text(str(text), args)


def _arrays_text(graph: Graph, arrays: Iterable[Any]) -> str:
    width = terminal_width(sys.stdout) or np.get_printoptions()["linewidth"]
    with np.printoptions(linewidth=width):
        return "\n".join(
            f"output{i}: {symbol.dtype}{list(array.shape)}\n{array}"
            for i, (symbol, array) in enumerate(zip(graph.outputs, arrays, strict=True))
        )


# -- the casts of a program


def run_casts(args: argparse.Namespace) -> int:
    """Print the casts of a program, or of each program of the project."""
    if args.program is None:
        return _run_project(args)
    return _write_report(*_load_casts(args), args)


def _load_casts(args: argparse.Namespace) -> tuple[CastReport, LongWork]:
    with long_work(sys.stderr) as work:
        report = load_report(args)
    if args.kind == "legalization":
        report = cast_report(lower(report.graph))
    return report, work


def _run_project(args: argparse.Namespace) -> int:
    """Print the casts of each program of the project, and return the worst status."""
    programs = read_programs(args)
    name = output_format(args, REPORT_FORMATS, "text")
    is_list = name in ("concise", "github")
    if len(programs) > 1 and name in ("html", "json", "sarif"):
        formats = ", ".join(x for x in REPORT_FORMATS if x not in ("html", "json", "sarif"))
        fix = (f"take one of {formats}", "name one program")
        raise UsageError(f"a document in {name} has one program", got=f"{len(programs)}", fix=fix)
    statuses, reports = [Status.FINE], list[tuple[CastReport, LongWork, argparse.Namespace]]()
    for each in programs:
        each.output, each.format = None, name
        try:
            reports.append((*_load_casts(each), each))
        except (Exception, SystemExit) as error:  # of a program, which does not stop the others
            statuses.append(report_error(error))
        if reports and reports[-1][1].interrupted:
            break
    accepted = frozenset(x for report, *_ in reports for x in report.without_accepted().accepted)
    shown = io.StringIO()
    for place, (report, work, each) in enumerate(reports):
        if len(programs) > 1 and not is_list:
            print(*[""][:place], f"{each.program}:", sep="\n", file=shown if args.output else None)
        with redirect_stdout(shown) if is_list or args.output else nullcontext():
            statuses.append(Status(_write_report(report, work, each, accepted)))
    text = shown.getvalue()
    if is_list or args.output:  # programs share findings
        write_text("\n".join(dict.fromkeys(text.splitlines()) if is_list else [text]), args, True)
    return max(statuses)


def run_audit(args: argparse.Namespace) -> int:
    """Print the measured effects of the casts of a program."""
    names: Sequence[str] = (args.as_dtype or "").split(",")
    if args.as_dtype is not None and args.baseline:
        raise UsageError("--baseline is of the program as it is", fix="leave --as-dtype out")
    if len(names) > 1:
        return _write_comparison(names, args)
    with long_work(sys.stderr) as work:
        report = load_audit(args, blame=not args.no_blame)(as_dtype=args.as_dtype)
    return _write_report(report, work, args)


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


def _write_comparison(names: Sequence[str], args: argparse.Namespace) -> int:
    """Audit in each dtype of --as-dtype, and write the comparison."""
    name = output_format(args, DTYPE_FORMATS, "text")
    if name not in DTYPE_FORMATS:
        raise UsageError(
            f"--as-dtype of several dtypes has the formats {' and '.join(DTYPE_FORMATS)}",
            got=f"--format {name}",
            fix="name one dtype",
        )
    run = load_audit(args, blame=not args.no_blame)
    dtypes = [DType(name) for name in names]
    reports = {str(dtype): selected(run(as_dtype=dtype), args) for dtype in dict.fromkeys(dtypes)}
    write_text(DTYPE_FORMATS[name](reports), args, fits=True)
    return max(status(report, args) for report in reports.values())


def selected(report: CastReport, args: argparse.Namespace) -> CastReport:
    """Return the report of the rows that pass the filters, compared with the rules of --against."""
    exact = False if args.lossy else None
    if args.keep is not None:
        report = report.keeping(args.keep)
    report = report.without_accepted()
    report = report.only(args.kind, exact, args.layer, args.dtype, args.loss, args.only)
    report = report.in_full() if args.all else report
    words = getattr(args, "fail_on", [])  # a cell has no gate
    forbid_edits(forbidden_rows(report, words), words)
    return report.compared(args.against, bool(words)) if args.against else report


def _write_report(
    report: CastReport,
    work: LongWork,
    args: argparse.Namespace,
    elsewhere: frozenset[tuple[str, int, str]] = frozenset(),
) -> int:
    """Print or write the rows that pass the filters; return the status of these for --fail-on.

    What Ctrl-C left undone comes first, on stderr. `elsewhere` are the files, lines and codes of
    findings that comments accept in other programs.
    """
    for done, unseen in work.interrupted:
        print(f"graphir: interrupted: {done}; {unseen}", file=sys.stderr, flush=True)
    name = output_format(args, REPORT_FORMATS, "text")
    report = selected(report, args).gated(args.fail_on)
    report.unused = tuple(x for x in report.unused if not x.is_used(elsewhere))
    if not report.graph.provenance.file:
        report.graph.describe(file=displayed_path(file_of(args.program)))
    width = None if args.output else terminal_width(sys.stdout)
    if args.quiet and name in ("text", "details"):
        text = answers_text(report, width)
        print_not_recorded(report)
    elif name == "text":
        screen = None if args.verbose or width is None else SCREEN
        text = report_text(
            report.in_full() if args.verbose else report, width, args.verbose, screen
        )
    elif name == "details":
        text = report_details(report, width=width)
    else:
        text = REPORT_FORMATS[name](report)
    write_text(text, args, fits=True)
    if name in ("json", "sarif", "concise", "github"):
        print_not_recorded(report)
    if name in ("concise", "github"):
        accepted = [phrases.accepted(report)] if report.accepted else []
        for note in (*report.graph.notes, *accepted):
            _note(printable(note, None))
    if work.interrupted:
        return Status.INTERRUPTED
    is_text = name in ("text", "details") and not args.output
    changes = _since_baseline(report, args, sys.stdout if is_text else sys.stderr)
    return status(report, args, changes)


def _since_baseline(report: CastReport, args: argparse.Namespace, stream: TextIO) -> bool | None:
    """Print what changed since the file of --baseline, and return whether anything did.

    None if there was nothing to compare with.
    """
    if not args.baseline:
        return None
    from graphir.runtime.testing.baseline import changed_lines
    from graphir.runtime.testing.facts import ledger_of

    name = os.path.normpath(args.program)
    lines = changed_lines(Path(args.baseline), ledger_of(report.unfiltered, name))
    text = f"wrote {name} to the baseline {args.baseline}" if lines is None else "\n".join(lines)
    text = f"no dtype is wider and no loss is new since {args.baseline}" if lines == [] else text
    sys.stdout.flush()
    print(on_screen(printable(text, None, keep="\n"), stream), file=stream)
    return None if lines is None else bool(lines)


def print_not_recorded(report: CastReport) -> None:
    """Print on stderr what a recording has no ops for, which a format without it leaves out."""
    if report.given:
        print(f"graphir: not recorded: {phrases.first_of(report.given)}", file=sys.stderr)


def run_draw(args: argparse.Namespace) -> int:
    """Write the picture of a graph; return status 1 if --fail-on forbids its implicit casts."""
    report = load_report(args)
    write_text(draw(report, output_format(args, GRAPH_FORMATS, "svg")), args)
    return status(report.without_accepted(), args)


# -- the command `export`: write a graph for another engine


def _onnx(graph: Graph) -> bytes:
    return targets.onnx(graph).SerializeToString()


WRITERS: dict[str, Callable[[Graph], str | bytes]] = {
    "python": targets.python,
    "stablehlo": targets.stablehlo,
    "onnx": _onnx,
}
"""The writer of each target; it returns a text, or the bytes of a file."""

_TITLES = {"python": "Python", "stablehlo": "StableHLO", "onnx": "ONNX"}


def run_export(args: argparse.Namespace) -> None:
    """Print or write a graph for another engine."""
    target = output_format(args, WRITERS, "", "to")
    if not target:
        raise UsageError(
            "no target is named", fix=(f"give --to {', '.join(WRITERS)}", "-o model.onnx")
        )
    lowered_graph = lower(load_graph(args))
    sizes = {} if is_model(args.program) else dict(args.sizes)
    graph = specialized(_TITLES[target], lowered_graph, sizes) if sizes else lowered_graph
    if target == "python" and args.output:
        targets.write_python(graph, args.output)
        return
    try:
        content = WRITERS[target](graph)
    except ImportError as error:
        raise ExecutionError(str(error)) from None
    if isinstance(content, str):
        write_text(content.rstrip("\n"), args)
    elif args.output:
        replace_file(args.output, content)
    else:
        raise ExecutionError(f"{target} is a binary format", fix=f"name a file: -o model.{target}")


# -- the command `diff`


def run_diff(args: argparse.Namespace) -> int:
    """Print the difference between two rule sets; return status 1 if there is any."""
    subject: PromotionRules | Path = args.subject
    difference: GraphDiff | RulesDiff
    others = [x for x in (args.before, args.after, args.other) if x is not None]
    if len(others) > 2:
        raise GraphError("diff compares two rule sets", got="three", fix="leave --rules out")
    if isinstance(subject, Path):
        load = argparse.Namespace(**{**vars(args), "program": str(subject)})
        report = load_report(load)
        difference = diff(report.graph, *others)
    else:
        report, difference = None, diff(subject, *others)
    name = output_format(args, ("text", "json"), "text")
    write_text(difference.to_json() if name == "json" else str(difference), args)
    besides = isinstance(difference, RulesDiff) and (difference.facts or difference.ops)
    return gate_status(bool(len(difference) or besides), report, args.unseen, "diff")


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
    if isinstance(program, Script):
        library = args.library or library_of_script(Path(program.path).read_bytes())
        call = ProgramCall(program, library, [], {})
    else:
        call = program
        require_arguments(args.program, call.function, call.positional, call.keywords, BY_INPUT)
    with redirect_stdout(sys.stderr):  # stdout has the report alone
        try:
            recording = record_program(*call, args.rules)
        except GraphError as error:
            if not isinstance(program, Script) or call.library != "torch" or args.library:
                raise
            raise ExecutionError(  # no second run: a script may write, send or delete
                f"{args.program} imports torch, and is recorded as its program: {error.problem}",
                fix="record what NumPy computes of it: --library numpy",
            ) from error
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


# -- gates


def gate_words(text: str) -> list[str]:
    """Return the words of --fail-on, which commas separate."""
    return _words(gate_word, text)


def policy_words(text: str) -> list[str]:
    """Return the words of --only, which commas separate."""
    return _words(cast_kind, text)


def _words(word: Callable[[str], str], text: str) -> list[str]:
    try:
        return [word(each) for each in text.split(",")]
    except GraphError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def status(report: CastReport, args: argparse.Namespace, changes: bool | None = None) -> Status:
    """Return the status that --fail-on asks for of the report that the command has written.

    `changes` is whether anything changed since a baseline; None without one.

    FINDINGS if a row of the report is forbidden; UNSEEN if none is, and a part of the program that
    may hide one was not seen, unless --unseen lets that pass.
    """
    if not args.fail_on and changes is None:
        return Status.FINE
    if WRONG in args.fail_on and not report.outputs:
        got, fix = f"--fail-on {WRONG}", "use it with graphir audit"
        raise UsageError("only a run shows wrong results", got=got, fix=fix)
    words_text = f"--fail-on {','.join(args.fail_on)}" if args.fail_on else "--baseline"
    is_wrong = WRONG in args.fail_on and any(x.outputs for x in report.loss_causes)
    finds = bool(changes or is_wrong or forbidden_rows(report, args.fail_on))
    return gate_status(finds, report, args.unseen, words_text, "a part of the program was not seen")


def gate_status(
    finds: bool, report: CastReport | None, unseen: str, gate: str, reason: str = ""
) -> Status:
    """Return the status of a gate that finds something or not in the program of a report.

    Says on stderr that it is UNSEEN, and why: what was not seen, or a `reason` if the command has
    printed that.
    """
    if finds:
        return Status.FINDINGS
    if report is None or not report.hidden or unseen == "pass":
        return Status.FINE
    sys.stdout.flush()  # the report stands before the message where both go to one pipe
    print(
        f"graphir: {gate}: status {Status.UNSEEN:d}: {reason or phrases.unseen(report)}; "
        "--unseen pass lets that pass",
        file=sys.stderr,
    )
    return Status.UNSEEN
