"""The command `export`: write a graph for another engine."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from graphir.passes import lower
from graphir.public import ExecutionError, Graph
from graphir.runtime import targets
from graphir.runtime.cli.arguments import UsageError, add_program, output_format, write_text
from graphir.runtime.cli.graphs import load_graph
from graphir.runtime.cli.inputs import path
from graphir.runtime.cli.programs import is_model
from graphir.runtime.targets.emission import specialized
from graphir.text.atomic_files import replace_file


def _onnx(graph: Graph) -> bytes:
    return targets.onnx(graph).SerializeToString()


WRITERS: dict[str, Callable[[Graph], str | bytes]] = {
    "python": targets.python,
    "stablehlo": targets.stablehlo,
    "onnx": _onnx,
}
"""The writer of each target; it returns a text, or the bytes of a file."""

_TITLES = {"python": "Python", "stablehlo": "StableHLO", "onnx": "ONNX"}


def add_export(command: Callable[..., Any]) -> None:
    """Add the command `export`; `command` adds a subcommand to the parser."""
    doc = (
        "Write a graph for another engine: as NumPy source, StableHLO or ONNX, every cast explicit."
    )
    parser = command("export", _export, doc, "model.gir -o model.py")
    add_program(parser)
    parser.add_argument(
        "--to",
        choices=tuple(WRITERS),
        help="NumPy source that runs alone, StableHLO text, or an ONNX model, which needs onnx; "
        "else by the ending of OUT: .py, .mlir, .onnx",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=path,
        metavar="OUT",
        help="write it there, not to the terminal; an ONNX model must be",
    )


def _export(args: argparse.Namespace) -> None:
    target = output_format(args, WRITERS, "", "to")
    if not target:
        raise UsageError(
            "no target is named", fix=(f"give --to {', '.join(WRITERS)}", "-o model.onnx")
        )
    lowered_graph = lower(load_graph(args))
    sizes = {} if is_model(args.program) else dict(args.sizes)
    graph = specialized(_TITLES[target], lowered_graph, sizes) if sizes else lowered_graph
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
