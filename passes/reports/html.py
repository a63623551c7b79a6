"""The HTML writer of cast reports: one self-contained page."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from graphir.decorators import uncollected
from graphir.escape import printable
from graphir.markup import tag, text
from graphir.passes.reports import words
from graphir.passes.reports.listing import Listing
from graphir.passes.reports.rows_html import RowsTable

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport, OutputError
    from graphir.passes.analysis.graph_diff import GraphDiff

ROWS = 2000
"""The most rows in the table of a page."""

CHANGES = 200
"""The most changes under other rules, and the most lines of errors, on a page."""


@uncollected
def report_html(report: CastReport, most: int = ROWS) -> str:
    """Return the page: a summary, the annotated source, a drawing, and a sortable table.

    The table has the `most` worst rows, and the reader can filter it. The page's Content Security
    Policy forbids all loads. The page is readable without its script.
    """
    style, script = _part("page.css"), _part("page.js")
    first = words.unseen(report)[:1]
    title = first[0] if first else f"Casts of {printable(report.graph.name, 80)}"
    head = [
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">',
        tag("title", text(title)),
        tag("style", style),
    ]
    body = [*_sections(report, title, most), tag("script", script)]
    document = tag("html", tag("head", *head), "\n", tag("body", "\n".join(body)), lang="en")
    return f"<!doctype html>\n{document}\n"


def _part(name: str) -> str:
    return files("graphir.passes.reports").joinpath(name).read_text("utf-8")


def _policy(script: str) -> str:
    """Return the Content Security Policy: the page's own script, by digest, and inline styles."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def _sections(report: CastReport, title: str, most: int) -> Iterator[str]:
    listing = Listing(report)
    table = RowsTable(report, listing, most)
    yield tag(
        "header", tag("h1", text(title)), _unseen_steps(report), _subtitle(report), _summary(report)
    )
    if report.sentences:
        yield _section("Causes", "causes", *(tag("p", text(x)) for x in report.sentences))
    if report.outputs:
        yield _section("Outputs", "outputs", _outputs(report))
    if report.sites:
        yield _section("Source", "source", listing.html(table.anchors))
        yield _section("Graph", "graph", tag("div", _drawing(report), class_="drawing"))
        rows = tag("div", table.html(), class_="scroll")
        yield _section("Casts", "casts", _toolbar(report, most), rows)
    if layers := words.layers(report):
        yield _section("Layers", "layers", _layers(layers))
    if report.against is not None:
        title = f"Under {text(report.against.after.name)}"
        yield _section(title, "against", *_against(report.against))


def _section(title: str, name: str, *content: str) -> str:
    return tag(
        "section",
        tag("h2", title, id=f"{name}-title"),
        *content,
        id=name,
        aria_labelledby=f"{name}-title",
    )


def _unseen_steps(report: CastReport) -> str:
    """Return the list of the steps that the audit did not see."""
    steps = [tag("li", text(line)) for line in words.unseen(report)[1:]]
    return tag("ul", *steps, id="unseen") if steps else ""


def _subtitle(report: CastReport) -> str:
    rules = report.graph.rules.name
    line = f"built under the rules of {rules}, {len(report.graph.symbols):,} symbols"
    return tag("p", text(line), class_="faint")


def _summary(report: CastReport) -> str:
    if not report.sites:
        return tag("p", text(words.headline(report)))
    lossy = sum(not row.exact for row in report)
    causes = sum(row.cause is None for row in report)
    figures = [
        (f"{len(report):,}", "uses of casts"),
        (f"{lossy:,}", "can lose something"),
        (f"{causes:,}", "are causes, the rest follows"),
        (words.size_text(words.added(report)), "bytes of arrays made"),
    ]
    if report.losses:
        steps = sum(site.row.kind in words.VERBS for site in report.sites)
        figures.append((f"{steps:,}", "steps of arithmetic lost values"))
    parts = [tag("div", tag("dd", text(figure, 40)), tag("dt", name)) for figure, name in figures]
    return tag("dl", *parts, class_="figures") + _bar(report)


def _bar(report: CastReport) -> str:
    """Return a bar of the rows by level of loss, with a legend."""
    counts = words.levels((*report, *report.losses))
    pieces = [tag("i", class_=level, style=f"flex-grow:{count}") for level, count in counts.items()]
    legend = [
        tag("li", tag("i", class_=level), f"{count:,} {level}", tag("span", words.MEANINGS[level]))
        for level, count in counts.items()
    ]
    return tag("div", *pieces, class_="bar", aria_hidden="true") + tag(
        "ul", *legend, class_="legend"
    )


def _layers(rows: Sequence[tuple[str, ...]]) -> str:
    head = tag("tr", *(tag("th", text(name), scope="col") for name in rows[0]))
    body = [tag("tr", *(tag("td", text(cell)) for cell in row)) for row in rows[1:]]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body)), class_="scroll")


def _outputs(report: CastReport) -> str:
    names = ("Output", "dtype", "Differ", "Not finite", "Largest", "Relative", "rms")
    head = tag("tr", *(tag("th", name, scope="col") for name in names))
    rows = [
        tag("tr", *(tag("td", text(cell)) for cell in _errors(output))) for output in report.outputs
    ]
    note = tag("p", "Beside the same program in wide arithmetic.", class_="faint")
    return note + tag("div", tag("table", tag("thead", head), tag("tbody", *rows)), class_="scroll")


def _errors(error: OutputError) -> Iterator[str]:
    """Yield the table cells of an output's error."""
    yield from (error.name, error.dtype)
    if error.differing is None:
        yield f"unknown of {error.elements:,}"
        yield from ("unknown",) * 4
        return
    yield f"{error.differing:,} of {error.elements:,}"
    yield from (f"{error.broken:,}", f"{error.largest:.3g}")
    yield from (f"{error.relative:.2g}", f"{error.rms:.3g}")


def _against(diff: GraphDiff) -> Iterator[str]:
    """Yield the comparison of the graph with other rules."""
    yield tag("p", text(diff.headline()), class_="faint")
    titles, *changes = diff.table()
    if changes:
        head = tag("tr", *(tag("th", text(cell), scope="col") for cell in titles))
        rows = [
            tag("tr", *(tag("td", text(cell, 120)) for cell in row)) for row in changes[:CHANGES]
        ]
        table = tag("table", tag("thead", head), tag("tbody", *rows))
        yield tag("div", table, class_="scroll")
    if len(changes) > CHANGES:
        yield tag("p", f"... and {len(changes) - CHANGES:,} more", class_="faint")
    if errors := diff.errors():
        yield tag("pre", "\n".join(text(line) for line in errors[:CHANGES]).strip())


def _toolbar(report: CastReport, most: int) -> str:
    rows = len(report.sites)
    box = tag(
        "input", type="search", id="filter", placeholder="Filter", aria_label="Filter the casts"
    )
    buttons = [
        tag(
            "button",
            text(level),
            type="button",
            class_=f"loss {level}",
            aria_pressed="true",
            data_loss=level,
        )
        for level in words.levels((*report, *report.losses))
    ]
    count = tag("output", f"{min(rows, most):,} rows", id="count", aria_live="polite")
    note_text = f"The {most:,} worst of {rows:,} rows are here; JSON has all."
    note = tag("p", note_text, class_="faint") if rows > most else ""
    return tag("div", box, *buttons, count, class_="toolbar") + note


def _drawing(report: CastReport) -> str:
    """Return the drawing of the graph, with its casts coloured by loss."""
    from graphir.passes.reports.picture import draw

    return draw(report)
