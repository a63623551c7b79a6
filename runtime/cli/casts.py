"""The commands that report on casts: of a graph, and of a run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any, get_args

from graphir import Graph
from graphir.loss import LOSS_KINDS
from passes import CastReport, cast_report, lower
from passes.analysis.casts import Kind
from passes.reports import REPORT_FORMATS
from passes.reports.terminal import show
from runtime.audit import audit
from runtime.cli.inputs import add_inputs, of_function, of_graph
from runtime.cli.output import add_output, add_program, put, status
from runtime.cli.programs import load_graph, load_program, require_arguments
from runtime.cli.rule_sets import add_rule_set, rule_set
from runtime.recording import record


def add_casts(command: Callable[..., Any]) -> None:
    """Add the commands `casts` and `audit`."""
    doc = "Report the casts of a graph: where, why, by which rule, at what loss."
    casts = command("casts", _casts, doc, "model.gir --kind implicit --lossy")
    doc = "Run a graph, or a function on NumPy arrays, and report what casts did to its data."
    measured = command("audit", _audit, doc, "script.py:function --input x.npy --against jax")
    add_program(casts)
    add_program(measured, "a graph, or a function on NumPy arrays")
    for each in (casts, measured):
        add_output(each, REPORT_FORMATS, "text")
        _add_filters(each)
    add_inputs(measured)
    add_rule_set(measured, "numpy", "the rule set that the function follows")
    measured.add_argument("--no-blame", action="store_true", help="only measure each cast")
    measured.add_argument(
        "--allow-unseen",
        action="store_true",
        help="let --fail-on pass though steps that were not seen may hide errors",
    )


def _add_filters(command: Any) -> None:
    command.add_argument("--kind", choices=get_args(Kind), help="one kind; legalization lowers")
    command.add_argument("--lossy", action="store_true", help="those that can lose something only")
    command.add_argument("--loss", choices=LOSS_KINDS, help="those that can lose this")
    command.add_argument("--layer", help="those of a layer and its parts")
    command.add_argument("--dtype", help="those from or to a dtype")
    command.add_argument(
        "--against", type=rule_set, metavar="RULES", help="what would change under other rules"
    )


def _casts(asked: argparse.Namespace) -> int:
    graph = load_graph(asked.program, asked.sources)
    report = cast_report(lower(graph) if asked.kind == "legalization" else graph)
    return _told(report, asked)


def _audit(asked: argparse.Namespace) -> int:
    program = load_program(asked.program, asked.sources)
    blame, progress = not asked.no_blame, sys.stderr.isatty()
    if isinstance(program, Graph):
        inputs = of_graph(program, asked.inputs)
        return _told(audit(program, *inputs, blame=blame, progress=progress), asked)
    positional, named = of_function(asked.inputs)
    advice = "give each by --input VALUE, in order, or --input NAME=VALUE"
    require_arguments(asked.program, program, positional, named, advice)
    recording = record(program, *positional, rules=asked.rules, **named)
    report = recording.audit(blame=blame, progress=progress)
    for note in recording.notes:
        print(f"graphir: {note}", file=sys.stderr)
    return _told(report, asked)


def _told(report: CastReport, asked: argparse.Namespace) -> int:
    """Print or write the rows asked for; the status that --fail-on asks for."""
    chosen = report.only(
        asked.kind, False if asked.lossy else None, asked.layer, asked.dtype, asked.loss
    )
    if asked.against:
        chosen = chosen.compared(asked.against)
    if asked.format == "details" and not asked.output:
        show(chosen, sys.stdout)
    else:
        put(REPORT_FORMATS[asked.format](chosen), asked)
    return status(report, asked)
