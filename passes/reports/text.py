"""A report of casts as a table for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphir.promotion.tables import aligned

if TYPE_CHECKING:
    from passes.casts import CastReport, CastRow

_HEADER = ("where", "operand", "from", "to", "kind", "rule and path", "loss", "bytes")


def report_text(report: CastReport) -> str:
    """How many there are, and a line for each."""
    lossy = sum(not row.exact for row in report)
    name = report.graph.name
    if not report.rows:
        none = f"none of {report.of} uses of casts" if report.of else "no casts"
        return f"graph {name}: {none}"
    uses = "1 use of a cast" if len(report) == 1 else f"{len(report)} uses of casts"
    head = f"graph {name}: {uses}, {lossy} can lose something"
    return "\n".join([head, *aligned([_HEADER, *map(_cells, report)])])


def _cells(row: CastRow) -> tuple[str, ...]:
    path = " -> ".join(dtype.short for dtype in row.path)
    return (
        row.location.layered,
        f"{row.operand} of {row.op}",
        str(row.source),
        str(row.target),
        row.kind,
        f"{row.rule}: {path}",
        "exact" if row.exact else f"loses {row.witness}",
        f"{row.bytes_before} -> {row.bytes_after}",
    )
