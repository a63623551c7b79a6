"""The command `draw`: the picture of a graph."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from graphir.drawing.graphs import GRAPH_FORMATS
from graphir.passes import draw
from graphir.runtime.cli.output import (
    add_fail_on,
    add_output,
    add_program,
    output_format,
    status,
    write_text,
)
from graphir.runtime.cli.reports import load_report


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
