"""The terminal writer of cast reports, with optional colour."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, TextIO

from graphir.passes.reports.fitting import on_screen
from graphir.passes.reports.text import DETAILS, Role, detailed, report_details

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport

STYLES: dict[Role, str] = {
    "value": "bold magenta",
    "range": "bold red",
    "precision": "bold yellow",
    "exact": "bold green",
    "faint": "dim",
    "strong": "bold",
    "": "",
}
"""The rich style of each role of a piece of text."""


def show(report: CastReport, stream: TextIO, most: int = DETAILS) -> None:
    """Write the detailed report to a stream, in colour if it is a terminal and rich is installed.

    Writes plain text if the environment has NO_COLOR. `most` is the number of detailed cascades.
    """
    if not (stream.isatty() and find_spec("rich")) or os.environ.get("NO_COLOR"):
        stream.write(on_screen(report_details(report, most), stream) + "\n")
        return
    # The project's environment lacks rich: a static import would not type-check there.
    console = import_module("rich.console").Console(file=stream, highlight=False)
    assemble = import_module("rich.text").Text.assemble
    for line in detailed(report, most):
        console.print(assemble(*((text, STYLES[role]) for text, role in line)))
