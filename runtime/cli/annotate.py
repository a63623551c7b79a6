"""The command `annotate`: the source of a program with the dtype of each expression."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from graphir.passes import annotate
from graphir.passes.reports.annotated import ANNOTATED_FORMATS
from graphir.public import ExecutionError
from graphir.runtime.cli.arguments import add_output, add_program, output_format, write_text
from graphir.runtime.cli.casts import load_recording, load_report, print_not_recorded
from graphir.runtime.cli.programs import is_model, load_call
from graphir.runtime.recording.flat_code import Script


def add_annotate(command: Callable[..., Any]) -> None:
    """Add the command `annotate`."""
    doc = "Show the source of a program with the dtype of each expression, casts below operands."
    parser = command("annotate", _annotate, doc, "script.py:function --input x.npy")
    add_program(parser, "a graph, or a program of NumPy, JAX or torch; SCRIPT.py alone: its lines")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the values that are drawn for types"
    )
    add_output(parser, ANNOTATED_FORMATS, "text")


def _annotate(args: argparse.Namespace) -> None:
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
