"""Reports of casts as text, Markdown, HTML, JSON and SARIF; `draw`, their pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from graphir.drawing.formats import GRAPH_FORMATS
from graphir.drawing.loss_levels import Mark, gravest, mark
from graphir.passes.analysis.casts import CastReport, cast_report
from graphir.public import Graph, GraphError


def writer(module: str, function: str) -> Callable[[Any], str]:
    """Return a function of this package, imported at its first call: a run uses one format."""
    return lambda subject: getattr(import_module(f"{__name__}.{module}"), function)(subject)


REPORT_FORMATS: dict[str, Callable[[CastReport], str]] = {
    "text": writer("text", "report_text"),
    "details": writer("text", "report_details"),
    "markdown": writer("text", "report_markdown"),
    "html": writer("html", "report_html"),
    "json": writer("json_", "report_json"),
    "sarif": writer("sarif", "report_sarif"),
    "concise": writer("sarif", "report_concise"),
    "github": writer("sarif", "report_github"),
}
"""The functions that write a cast report, by the name of the format."""

DTYPE_FORMATS: dict[str, Callable[[Mapping[str, CastReport]], str]] = {
    "text": writer("text", "dtypes_text"),
    "json": writer("json_", "dtypes_json"),
}
"""The functions that write audits of one program, by the name of the dtype of all its floats."""


def draw(subject: Graph | CastReport, format: str = "svg") -> str:  # noqa: A002 -- as elsewhere
    """Draw a graph with explicit casts as "svg", "dot" or "mermaid".

    The mark of a cast shows the loss that its rows in the report have: the report `subject`, or the
    `cast_report` of the graph `subject`. A cast without rows is marked by its dtypes (see
    `graphir.drawing.formats`). Raises GraphError for another format.
    """
    if format not in GRAPH_FORMATS:
        raise GraphError(f"a graph is drawn as {', '.join(GRAPH_FORMATS)}", got=f"{format!r}")
    report = cast_report(subject) if isinstance(subject, Graph) else subject
    return GRAPH_FORMATS[format](report.view, marks_of(report))


def marks_of(report: CastReport) -> dict[int, Mark]:
    """Return the mark of the gravest row of each cast, keyed by index in the report's view.

    Constants that casts were folded into have marks too. Python literals have no mark.
    """
    marks: dict[int, Mark] = {}
    for row in report:
        if row.kind == "literal" and not row.symbol.args:
            continue
        new, place = mark(row.loss, row.source, row.target), row.symbol.index
        old = marks.get(place)
        if old is None or gravest((old.level, new.level)) != old.level:
            marks[place] = new
    return marks
