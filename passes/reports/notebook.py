"""The notebook writer of cast reports: an HTML fragment with a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from passes.reports import words
from passes.reports.markup import code, reason, tag, text

if TYPE_CHECKING:
    from passes.analysis.casts import CastReport, CastRow
    from passes.analysis.casts.sites import CastSite

ROWS = 50
"""The most rows of the table in a notebook."""

_STYLE = """
.graphir-casts{color:inherit;font-size:13px}
.graphir-casts table{border-collapse:collapse;margin:.5em 0}
.graphir-casts th,.graphir-casts td{text-align:left;padding:.25em .9em .25em 0;background:none;
border-bottom:1px solid rgba(128,128,128,.25);vertical-align:top}
.graphir-casts code{background:none;color:inherit}
.graphir-casts .lossy{box-shadow:inset 0 -2px 0 #e8890c}
.graphir-casts .grave{box-shadow:inset 0 -2px 0 #e03131}
.graphir-casts code[title]{white-space:nowrap}
.graphir-casts small{opacity:.7}
"""
# The text has the notebook's colours, light or dark; the underlines are visible on both.


def report_fragment(report: CastReport, most: int = ROWS) -> str:
    """Return the `most` worst rows as an HTML table with styles scoped to the fragment."""
    has_audit, sites = report.audited, report.sites
    has_times = sites.repeat
    titles = [
        "Where",
        "Operand",
        "Cast",
        "Loss",
        "Bytes",
        *(["Changed", "Share"] if has_audit else []),
        *(["Times"] if has_times else []),
    ]
    head = tag("thead", tag("tr", *(tag("th", title) for title in titles)))
    rows = [_row(site, has_audit, has_times) for site in sites[:most]]
    table = tag("table", head, tag("tbody", *rows)) if rows else ""
    more = tag("small", f"... and {len(sites) - most:,} more") if len(sites) > most else ""
    lines = [*words.unseen(report), words.headline(report), *report.sentences]
    summary = "".join(tag("div", text(line)) for line in lines)
    return tag("div", tag("style", _STYLE), summary, table, more, class_="graphir-casts")


def _row(site: CastSite, has_audit: bool, has_times: bool) -> str:
    row = site.row
    layer = f" {tag('small', text(row.layer, 80))}" if row.layer else ""
    cells = [
        text(row.location, 80) + layer,
        code(row.text or words.what(row), 60),
        tag("code", text(words.conversion(row)), class_=_mark(row), title=reason(site)),
        text(words.loss(site)),
        text(words.size_text(site.bytes_added)) if words.widths(site) else "",
    ]
    if has_audit:
        measure = site.measured
        cells.append("" if measure is None else f"{measure.changed:,} of {measure.elements:,}")
        cells.append(text(words.share(site)))
    if has_times:
        cells.append(f"{site.times:,}")
    return tag("tr", *(tag("td", cell) for cell in cells))


def _mark(row: CastRow) -> str | None:
    if row.exact:
        return None
    return "grave" if words.level(row) in ("value", "range") else "lossy"
