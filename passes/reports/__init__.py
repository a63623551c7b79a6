"""Reports of casts as text, Markdown, HTML, JSON and SARIF."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport

# Each writer is imported at its first use: a run of the command line uses one of the formats.


def _text(report: CastReport) -> str:
    from graphir.passes.reports.text import report_text

    return report_text(report)


def _details(report: CastReport) -> str:
    from graphir.passes.reports.text import report_details

    return report_details(report)


def _markdown(report: CastReport) -> str:
    from graphir.passes.reports.markdown import report_markdown

    return report_markdown(report)


def _html(report: CastReport) -> str:
    from graphir.passes.reports.html import report_html

    return report_html(report)


def _json(report: CastReport) -> str:
    from graphir.passes.reports.json_ import report_json

    return report_json(report)


def _sarif(report: CastReport) -> str:
    from graphir.passes.reports.sarif import report_sarif

    return report_sarif(report)


REPORT_FORMATS: dict[str, Callable[[CastReport], str]] = {
    "text": _text,
    "details": _details,
    "markdown": _markdown,
    "html": _html,
    "json": _json,
    "sarif": _sarif,
}
"""The functions that write a cast report, by the name of the format."""
