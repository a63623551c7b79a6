"""Reports of casts as text, Markdown, HTML, JSON and SARIF."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport


def _writer(module: str, function: str) -> Callable[[CastReport], str]:
    """Return a function of this package, imported at its first call: a run uses one format."""
    return lambda report: getattr(import_module(f"{__name__}.{module}"), function)(report)


REPORT_FORMATS: dict[str, Callable[[CastReport], str]] = {
    "text": _writer("text", "report_text"),
    "details": _writer("text", "report_details"),
    "markdown": _writer("markdown", "report_markdown"),
    "html": _writer("html", "report_html"),
    "json": _writer("json_", "report_json"),
    "sarif": _writer("sarif", "report_sarif"),
}
"""The functions that write a cast report, by the name of the format."""
