"""The command that draws a graph."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphir import Graph
from graphir.pictures import GRAPH_FORMATS
from passes import cast_report, draw
from runtime.cli_questions import path


def _draw(asked: argparse.Namespace) -> int:
    """The picture of a graph; status 1 if it has implicit casts that were not to be."""
    graph = Graph.load(asked.file)
    picture = draw(graph, asked.format)
    if asked.output:
        Path(asked.output).write_text(f"{picture}\n", encoding="utf-8", newline="\n")
    else:
        print(picture)
    if asked.fail_on is None:
        return 0
    rows = cast_report(graph).only("implicit")
    return 1 if any(asked.fail_on == "any" or not row.exact for row in rows) else 0


def add_draw(command: Callable[..., Any]) -> None:
    """Add the command to a parser, by its function that adds one."""
    doc = "Draw a graph: its layers, and every cast in the colour of what it loses."
    made = command("draw", _draw, doc, "model.gir -o model.svg")
    made.add_argument(
        "file", type=path, metavar="FILE.gir", help="a graph, as Graph.save writes it"
    )
    made.add_argument("--format", choices=GRAPH_FORMATS, default="svg")
    made.add_argument(
        "-o", "--output", type=path, metavar="OUT", help="write it there, not to the terminal"
    )
    made.add_argument(
        "--fail-on",
        choices=("lossy", "any"),
        help="have status 1 if there are implicit casts: any, or such as can lose something",
    )
