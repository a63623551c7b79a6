"""The commands that report on casts: of a graph, and of a run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any, get_args

from graphir import ExecutionError, Graph
from graphir.losses import LOSS_KINDS
from passes import CastReport, cast_report, lower
from passes.casts import Kind
from passes.reports import REPORT_FORMATS
from passes.reports.terminal import show
from runtime.audit import audit
from runtime.cli_output import add_output, add_program, put, status
from runtime.files import read_input
from runtime.programs import load_graph, load_program, require_arguments
from runtime.recording import record


def add_casts(command: Callable[..., Any]) -> None:
    """Add the commands `casts` and `audit`."""
    doc = "Report the casts of a graph: where, why, by which rule, at what loss."
    casts = command("casts", _casts, doc, "model.gir --kind implicit --lossy")
    doc = "Run a graph, or a function on NumPy arrays, and report what casts did to its data."
    measured = command("audit", _audit, doc, "script.py:function --input x.npy --against jax")
    for each in (casts, measured):
        add_program(each)
        add_output(each, REPORT_FORMATS, "text")
        _add_filters(each)
    measured.add_argument(
        "--input",
        action="append",
        default=[],
        dest="inputs",
        metavar="[NAME=]VALUE",
        help="an input: x.npy, file.npz, file.npz:key or a Python number; named, or in order",
    )
    measured.add_argument("--rules", default="numpy", help="those that the function follows")
    measured.add_argument("--no-blame", action="store_true", help="only measure each cast")


def _add_filters(command: Any) -> None:
    command.add_argument("--kind", choices=get_args(Kind), help="one kind; legalization lowers")
    command.add_argument("--lossy", action="store_true", help="those that can lose something only")
    command.add_argument("--loss", choices=LOSS_KINDS, help="those that can lose this")
    command.add_argument("--layer", help="those of a layer and its parts")
    command.add_argument("--dtype", help="those from or to a dtype")
    command.add_argument("--against", metavar="RULES", help="what would change under other rules")


def _casts(asked: argparse.Namespace) -> int:
    graph = load_graph(asked.program)
    report = cast_report(lower(graph) if asked.kind == "legalization" else graph)
    return _told(report, asked)


def _audit(asked: argparse.Namespace) -> int:
    program = load_program(asked.program)
    positional, named = _inputs(asked.inputs, program)
    blame = not asked.no_blame
    if isinstance(program, Graph):
        report = audit(program, *positional, blame=blame, progress=sys.stderr.isatty(), **named)
    else:
        advice = "give each by --input VALUE, in order, or --input NAME=VALUE"
        require_arguments(asked.program, program, positional, named, advice)
        recording = record(program, *positional, rules=asked.rules, **named)
        report = recording.audit(blame=blame, progress=sys.stderr.isatty())
        for note in recording.notes:
            print(f"graphir: {note}", file=sys.stderr)
    return _told(report, asked)


def _inputs(given: list[str], program: Any) -> tuple[list[Any], dict[str, Any]]:
    """Inputs by position and by name."""
    dtypes: dict[str, Any] = {}
    if isinstance(program, Graph):
        dtypes = dict(zip(program.input_names, (one.dtype for one in program.inputs), strict=True))
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (equals and name.isidentifier()):
            positional.append(read_input(text))
        elif name in named:
            raise ExecutionError(f"--input {name}=... is given twice")
        else:
            named[name] = read_input(value, dtypes.get(name))
    return positional, named


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
