"""The notebook writers of cast reports and of differences: HTML fragments with tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from graphir.markup import ROWS, code, folded, fragment, paragraphs, table, tag, text
from graphir.passes.reports import words
from graphir.passes.reports.markup import reason

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport, CastRow
    from graphir.passes.analysis.casts.sites import CastSite
    from graphir.passes.analysis.graph_diff import GraphDiff
    from graphir.passes.analysis.rules_diff import RulesDiff

LINES = 8
"""The most lines above a table."""


def report_fragment(report: CastReport, most: int = ROWS) -> str:
    """Return the headline of a report, its explanations and a table of the `most` worst rows."""
    has_audit, sites = report.audited, report.sites
    has_times = sites.repeat
    titles = [
        "Where",
        "Operand",
        "Cast",
        *(["Share", "Changed"] if has_audit else []),
        "Loss",
        "Bytes",
        *(["Times"] if has_times else []),
    ]
    rows = (_row(site, has_audit, has_times) for site in sites.user_first)
    return fragment(
        paragraphs([*words.unseen(report)[:LINES], words.headline(report)]),
        _first(list(map(words.output, report.outputs))),
        _first(report.sentences),
        table(titles, rows, len(sites), most),
        *_difference(report.against),
    )


def _first(texts: Sequence[str]) -> str:
    """Return the first LINES lines, and how many are left out."""
    more = len(texts) - LINES
    return paragraphs([*texts[:LINES], *([f"... and {more:,} more"] if more > 0 else [])])


def _row(site: CastSite, has_audit: bool, has_times: bool) -> Iterator[str]:
    row = site.row
    layer = f" {tag('small', text(row.layer, 80))}" if row.layer else ""
    yield tag("span", text(row.location, 80), class_="whole") + layer
    yield code(row.text or words.what(row), 60)
    yield tag("code", text(words.conversion(row)), class_=_mark(row), title=reason(site))
    if has_audit:
        measure = site.measured
        yield text(words.share(site))
        yield "" if measure is None else f"{measure.changed:,} of {measure.elements:,}"
    yield text(words.loss(site))
    yield text(words.size_text(site.bytes_added)) if words.widths(site) else ""
    if has_times:
        yield f"{site.times:,}"


def _mark(row: CastRow) -> str | None:
    if row.exact:
        return None
    return "grave" if words.level(row) in ("value", "range") else "lossy"


def difference_fragment(diff: GraphDiff) -> str:
    """Return the symbols of a graph that change under other rules, and the refusals, folded."""
    return fragment(*_difference(diff))


def _difference(diff: GraphDiff | None) -> Iterator[str]:
    if diff is None:
        return
    titles, *changes = diff.table()
    rows = ([text(where, 80), *(code(cell, 60) for cell in cells)] for where, *cells in changes)
    errors = [line for line in diff.errors() if line]
    yield paragraphs([diff.headline()])
    yield _first(diff.sentences)
    yield table(titles, rows, len(changes))
    yield folded("Refusals", _first(errors)) if errors else ""


def rules_difference_fragment(diff: RulesDiff) -> str:
    """Return the headline of two rule sets' differences, and the tables, folded."""
    names = (diff.before.name, diff.after.name)
    pairs, besides, ops = diff.pair_rows(), diff.facts_besides, diff.op_rows()
    return fragment(
        paragraphs(diff.headlines()),
        *(
            folded(title, table(titles, ([code(x, 300) for x in row] for row in rows), len(rows)))
            for title, titles, rows in (
                ("Pairs of dtypes", ("lhs", "rhs", *names), pairs),
                ("Besides the join", ("question", *names), besides),
                ("Op by op, on arrays of one dtype", ("of", *names, "ops"), ops),
            )
        ),
    )
