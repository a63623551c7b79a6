"""The commands that show and edit the source of a program: `annotate` and `fix`."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from itertools import combinations, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from graphir.display import count_text, printable
from graphir.import_names import optional
from graphir.passes import CastReport, annotate
from graphir.passes.analysis.casts.measured import plain
from graphir.passes.analysis.casts.sites import size_of
from graphir.passes.analysis.explanations.causes import Cause, DtypeCause, Remedy
from graphir.passes.reports import phrases
from graphir.passes.reports.annotated import ANNOTATED_FORMATS
from graphir.passes.reports.json_ import fix_json
from graphir.public import DType, ExecutionError, Graph, GraphirError
from graphir.rule_reports.tables import aligned
from graphir.rule_reports.terminal import on_screen
from graphir.runtime.audit.audit import audit
from graphir.runtime.cli.arguments import output_format, write_text
from graphir.runtime.cli.graphs_and_casts import (
    load_audit,
    load_recording,
    load_report,
    print_not_recorded,
)
from graphir.runtime.cli.main import FIX_FORMATS, Status
from graphir.runtime.cli.programs import (
    Draws,
    ProgramCall,
    is_model,
    load_call,
    load_run,
    of_function,
    own_arrays,
    program_name,
)
from graphir.runtime.model_trials import ModelTrials
from graphir.runtime.recording.flat_code import Script
from graphir.runtime.source_trials import (
    EditedFile,
    OutputChange,
    ProgramRun,
    Promise,
    SourceTrials,
    WrongOutput,
    edited_files,
)
from graphir.source_text import displayed_path
from graphir.text.atomic_files import Replacement


def run_annotate(args: argparse.Namespace) -> None:
    """Print the source of a program with the dtype of each expression."""
    if is_model(args.program):
        fix = f"graphir casts {args.program} names its nodes"
        raise ExecutionError(f"{args.program}: a model of ONNX has no source lines", fix=fix)
    program = load_call(args)
    if isinstance(program, Script):
        report = load_recording(args, program).report()
    else:
        report = load_report(args, program)
    annotated = annotate(report)
    name = output_format(args, ANNOTATED_FORMATS, "text")
    fits = name == "text" and not args.output  # the lines of a terminal
    write_text(str(annotated) if fits else ANNOTATED_FORMATS[name](annotated), args)
    print_not_recorded(report)


# -- the command `fix`


class Candidate(NamedTuple):
    """The remedy of one or several causes, and what it promises."""

    remedy: Remedy
    promise: Promise


class FixAnswer(NamedTuple):
    """The remedy that the command offers, or why there is none; or why its grade is no better.

    `files` have its edits, and `refused` the remedies that do not hold, each with its problem.
    """

    remedy: Remedy | None
    reason: str
    files: tuple[EditedFile, ...] = ()
    outputs: tuple[OutputChange, ...] = ()
    refused: tuple[tuple[Remedy, str], ...] = ()

    @property
    def is_tried(self) -> bool:
        """Whether the edited source has run, and holds."""
        return self.remedy is not None and self.remedy.grade == "tried"

    @property
    def diff(self) -> str:
        """The edits as a unified diff."""
        return "".join(file.diff for file in self.files).removesuffix("\n")


def run_fix(args: argparse.Namespace) -> Status:
    """Print the edits that hold; return status 1 if none was run and holds."""
    if is_model(args.program):
        return _fix_model(args)
    program = load_call(args)
    if isinstance(program, Graph):
        fix = f"graphir casts {args.program} names its nodes"
        raise ExecutionError(f"{args.program}: a graph has no source lines to edit", fix=fix)
    output_format(args, FIX_FORMATS, "text")
    audited = load_audit(args, blame=args.keep is None)
    report = audited()
    report = report if args.keep is None else report.keeping(args.keep)
    causes: list[Cause] = [*report.loss_causes, *report.dtype_causes]
    causes = [x for x in causes if args.line is None or _touches(x, args.line)]
    candidates = list(islice(_candidates(report, causes), MOST_TRIALS))
    if not candidates:
        line = "" if args.line is None else f" in line {args.line}"
        texts = [x for x in report.sentences if x not in report.graph.notes][:MOST_SENTENCES]
        known = f"no edit is known: {'; '.join(texts)}"
        answer = FixAnswer(
            None, known if causes else f"no cause of a wide or wrong result is known{line}"
        )
    elif isinstance(program, Script) and not args.rerun:
        answer = _untried(candidates, "a script runs again only with --rerun")
    elif not candidates[0].promise.outputs:
        answer = _untried(candidates, "no result shows the dtype of steps inside of the program")
    else:
        answer = _tried(_source_trials(args, program, audited), candidates)
    if args.write and answer.is_tried:
        _write(answer.files)
    elif args.write:
        print("graphir: not written: no edit was run and holds", file=sys.stderr)
    _show(answer, args)
    return Status.FINE if answer.is_tried else Status.FINDINGS


def _fix_model(args: argparse.Namespace) -> Status:
    """Try edits of a model, and show the first that holds as a diff of its nodes."""
    as_json = output_format(args, FIX_FORMATS, "text") == "json"
    for name in ("keep", "line"):
        if getattr(args, name) is not None:
            raise ExecutionError(f"--{name} is for programs; {args.program} is a model")
    trials, path = _model_trials(args), Path(args.program)
    tried = [*trials.until_one_holds()]
    last = tried[-1] if tried else None
    text, diff, reason = "", "", f"no edit holds: {last.problem}" if last else "no edit is known"
    if last is not None and not last.problem:
        text, diff, reason = trials.effect(last), trials.diff(last.proto, path.name), ""
    if args.write and text and last is not None:
        target = path.with_suffix(".fixed.onnx")
        with Replacement() as replaced:
            replaced.open(target).write(last.proto.SerializeToString())
        print("graphir: wrote", displayed_path(str(target)), file=sys.stderr)
    elif args.write:
        print("graphir: not written: no edit was run and holds", file=sys.stderr)
    head = [f"tried: {args.program} runs in onnxruntime, {text}"] if text else [f"no fix: {reason}"]
    lines = [*head, *(diff.split("\n") if diff else trials.report.sentences[:MOST_SENTENCES])]
    document = {"version": 1, "program": args.program, "fix": text or None, "reason": reason}
    document |= {"diff": diff, "refused": [x.problem for x in tried if x.problem]}
    shown = (
        json.dumps(document, indent=2) if as_json else "\n".join(printable(x, None) for x in lines)
    )
    write_text(shown, args, fits=not as_json)
    return Status.FINE if text else Status.FINDINGS


def _model_trials(args: argparse.Namespace) -> ModelTrials:
    """Return the trials of a model on the inputs of a command."""
    graph, values = load_run(args, draws=Draws(args.seed))
    proto = optional("onnx", "onnx", "graphir fix").load(args.program)
    stored = {x.name for x in proto.graph.initializer}
    names = [x.name for x in proto.graph.input if x.name not in stored]
    if len(names) != len(graph.inputs):
        raise ExecutionError(f"{args.program}: a trial needs an array for each input")
    dtypes = [x.dtype.storage for x in graph.inputs]
    inputs = {n: np.asarray(x, y) for n, x, y in zip(names, values, dtypes, strict=True)}
    return ModelTrials(proto, inputs, audit(graph, *inputs.values()))


def _touches(cause: Cause, line: int) -> bool:
    """Whether a cause, what it starts from, or an edit of it stands in a line."""
    edits = () if cause.fix is None else (x.place for x in cause.fix.edits)
    births = (x.birth for x in cause.entries) if isinstance(cause, DtypeCause) else ()
    origins = (x.location for x in births if x is not None)
    places = (*(x.location for x in cause.steps), *origins, *edits)
    return any(x.line <= line <= x.end_line for x in places)


def _candidates(report: CastReport, causes: Sequence[Cause]) -> Iterator[Candidate]:
    """Yield the fixes of causes, alone and together, those first that answer for most results.

    Those of wrong values come before those of dtypes.
    """
    for question in ("value", "dtype"):
        fixable = [x for x in causes if x.question == question and x.fix is not None]
        fixable = [x for x in fixable if x.fix and all(e.is_code for e in x.fix.edits)]
        answers = [x for x in fixable if x.outputs]
        sizes = range(1, min(len(answers), MOST_TOGETHER) + 1)
        sets = [x for size in sizes for x in combinations(answers, size)] or [(x,) for x in fixable]
        for each in sorted(sets, key=lambda x: -len({i for cause in x for i in cause.outputs})):
            yield _candidate(report, each)


def _candidate(report: CastReport, causes: Sequence[Cause]) -> Candidate:
    numbers = frozenset(i for x in causes for i in x.outputs)
    fixes = [x.fix for x in causes if x.fix is not None]
    dtypes = [str(report.explicit.concrete_dtype(x.dtype)) for x in report.explicit.outputs]
    if causes[0].question == "value":
        outputs = zip(dtypes, report.results, report.references, report.outputs, strict=True)
        wrong = [
            WrongOutput(dtype, array.shape, exact, size_of(error), i in numbers)
            for i, (dtype, array, exact, error) in enumerate(outputs)
            if error.is_known
        ]
        promise = Promise(numbers, wrong=wrong)
    else:
        wanted = frozenset(dtype for x in fixes for dtype in _forms(x.wanted))
        promise = Promise(numbers, Counter(dtypes[i] for i in numbers), wanted)
    loses = next((x.loses for x in fixes if x.loses is not None), None)
    parts = tuple(edit for x in fixes for edit in x.parts)
    return Candidate(fixes[0]._replace(parts=parts, loses=loses), promise)


MOST_TRIALS, MOST_TOGETHER, MOST_SENTENCES = 8, 4, 3
"""The most sets of edits that run, the most causes of one, and the most without an edit."""


def _untried(candidates: Sequence[Candidate], reason: str) -> FixAnswer:
    """Return the first candidate whose source can be edited."""
    refused: list[tuple[Remedy, str]] = []
    for remedy, _ in candidates:
        try:
            return FixAnswer(remedy, reason, tuple(edited_files(remedy.edits)))
        except ExecutionError as error:
            refused.append((remedy, str(error)))
    return FixAnswer(None, "no edit holds", refused=tuple(refused))


def _tried(trials: SourceTrials, candidates: Sequence[Candidate]) -> FixAnswer:
    """Return the first candidate that holds for all results, else that which holds for most."""
    problem = trials.unchanged(edit for x in candidates for edit in x.remedy.edits)
    if problem:
        return _untried(candidates, problem)
    every = frozenset[int]().union(*(x.promise.outputs for x in candidates))
    refused: list[tuple[Remedy, str]] = []
    for remedy, promise in candidates:
        trial = trials.tried(remedy.edits, promise)
        if not trial.problem:
            left = len(every - promise.outputs)
            reason = f"{count_text(left, 'result')} more had an answer" if left else ""
            error = max((x.error for x in trial.outputs if x.error is not None), default=None)
            remedy = remedy._replace(grade="tried", error=error)
            return FixAnswer(remedy, reason, trial.files, trial.outputs, tuple(refused))
        refused.append((remedy, trial.problem))
    return FixAnswer(None, "no edit holds", refused=tuple(refused))


def _forms(dtype: DType | None) -> Iterator[DType]:
    """Yield a dtype, and the complex one whose parts have it."""
    if dtype is not None:
        yield dtype
    if dtype in (DType.float32, DType.float64):
        yield DType.complex64 if dtype is DType.float32 else DType.complex128


def _source_trials(
    args: argparse.Namespace, program: Script | ProgramCall, audited: Callable[..., CastReport]
) -> SourceTrials:
    inputs: tuple[list[Any], dict[str, Any]] = [], {}
    if isinstance(program, ProgramCall):
        positional, keywords = of_function(args.inputs, program_name)
        call = program._replace(positional=positional, keywords=keywords)
        inputs = own_arrays(Draws(args.seed).call(call))

    def rounding(dtype: DType, outputs: Collection[int]) -> float:
        with suppress(GraphirError):  # which the rules refuse in the dtype
            errors = audited(as_dtype=dtype).outputs
            return max((size_of(errors[i]) for i in outputs if errors[i].is_known), default=0.0)
        return 0.0

    run = ProgramRun(program_name(args.program), inputs, tuple(args.arguments), args.rerun)
    return SourceTrials(run, rounding)


def _write(files: Sequence[EditedFile]) -> None:
    """Write the edited files, if they have the text that was read."""
    for file in files:
        if Path(file.path).read_bytes() != file.before:
            raise ExecutionError(f"{file.path} has changed since it was loaded", fix="run it again")
    with Replacement() as replaced:
        for file in files:
            replaced.open(file.path).write(file.after)
    print("graphir: wrote", *(displayed_path(x.path) for x in files), file=sys.stderr)


def _show(answer: FixAnswer, args: argparse.Namespace) -> None:
    if output_format(args, FIX_FORMATS, "text") == "json":
        document = {
            "version": 1,
            "program": args.program,
            "fix": answer.remedy and fix_json(answer.remedy),
            "reason": answer.reason,
            "diff": answer.diff,
            "outputs": [
                x._asdict() | {"error": plain(x.error), "error_before": plain(x.error_before)}
                for x in answer.outputs
            ],
            "refused": [{"fix": fix_json(x), "problem": text} for x, text in answer.refused],
        }
        write_text(json.dumps(document, indent=2), args)
        return
    head = "\n".join(printable(line, None) for line in _head(answer, args.program))
    rows = [(x.name, f"{x.dtype_before} -> {x.dtype}", _errors(x)) for x in answer.outputs]
    table = "\n".join(aligned(rows)) if rows else ""
    head = head if args.output else on_screen(head, sys.stdout)
    write_text("\n".join(filter(None, (head, answer.diff, table))), args, fits=True)


def _head(answer: FixAnswer, program: str) -> Iterator[str]:
    """Yield the lines above the diff, the answer first."""
    remedy = answer.remedy
    if remedy is None:
        yield f"no fix: {answer.reason}"
    elif answer.is_tried:
        yield f"tried: {_effect(answer, program)}"
    else:
        yield f"{remedy.grade or 'an edit'}, not tried: {answer.reason}"
    if remedy is not None and remedy.loses is not None:
        yield f"the first value that the edit loses is {phrases.number_text(remedy.loses)}"
    for other, problem in answer.refused:
        texts = " and ".join(f"{x.text} in line {x.place.line}" for x in other.edits)
        yield f"refused: {texts}: {problem}"


def _effect(answer: FixAnswer, program: str) -> str:
    """Return what tried edits do to the results of a program."""
    changed = [x for x in answer.outputs if x.error is not None]
    name = program.rpartition(":")[2] if ":" in program else program
    kinds = [x.dtype + f" (was {x.dtype_before})" * (x.dtype != x.dtype_before) for x in changed]
    names = f" as {', '.join(x.name for x in changed)}" if len(answer.outputs) > 1 else ""
    rest = "other results are equal" if len(changed) < len(answer.outputs) else ""
    error = _errors(max(changed, key=lambda x: x.error or 0.0))
    what = f"{name} gives {' and '.join(dict.fromkeys(kinds))}{names}, {error}"
    return "; ".join(filter(None, (what, rest, answer.reason)))


def _errors(change: OutputChange) -> str:
    if change.error is None:
        return "equal"
    before = f" (was {change.error_before:.2g})" if change.error_before else ""
    return f"error {change.error:.2g}{before}"
