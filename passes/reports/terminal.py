"""A report of casts on a terminal, in colour where that is wanted."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, TextIO

from passes.reports.text import DETAILS, Role, detailed, report_details

if TYPE_CHECKING:
    from passes.analysis.casts import CastReport

STYLES: dict[Role, str] = {
    "value": "bold magenta",
    "range": "bold red",
    "precision": "bold yellow",
    "exact": "bold green",
    "faint": "dim",
    "strong": "bold",
    "": "",
}
"""How each piece of the text looks, as rich names it."""


def show(report: CastReport, stream: TextIO, most: int = DETAILS) -> None:
    """Write the detailed form to a stream: in colour to a terminal, where rich is installed.

    Plain where the environment has NO_COLOR.
    """
    if not (stream.isatty() and find_spec("rich")) or os.environ.get("NO_COLOR"):
        stream.write(report_details(report, most) + "\n")
        return
    # rich is no part of the project's own environment, and has no types there.
    console = import_module("rich.console").Console(file=stream, soft_wrap=True, highlight=False)
    assemble = import_module("rich.text").Text.assemble
    for line in detailed(report, most):
        console.print(assemble(*((text, STYLES[role]) for text, role in line)))
