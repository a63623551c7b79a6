"""The HTML writer of cast reports: one self-contained page, with the annotated source."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from html import escape
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING

from graphir.decorators import uncollected
from graphir.escape import printable
from graphir.markup import table as html_table
from graphir.markup import tag, text
from graphir.passes.reports import phrases
from graphir.passes.reports.html_rows import RowsTable, chip, reason
from graphir.passes.reports.phrases import SourceRegion, line_at, region

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport
    from graphir.passes.analysis.casts.sites import CastSite
    from graphir.passes.analysis.diff import GraphDiff

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
    first = phrases.unseen(report)[:1]
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
    table = RowsTable(report, listing.anchor, most)
    yield tag(
        "header", tag("h1", text(title)), _unseen_steps(report), _subtitle(report), _summary(report)
    )
    if report.sentences:
        yield _section("Causes", "causes", *(tag("p", text(x)) for x in report.sentences))
    if report.outputs:
        note = tag("p", "Beside the same program in wide arithmetic.", class_="faint")
        yield _section("Outputs", "outputs", note, _table(phrases.outputs(report)))
    if report.sites:
        yield _section("Source", "source", listing.html(table.anchors))
        yield _section("Graph", "graph", tag("div", _drawing(report), class_="drawing"))
        rows = tag("div", table.html(), class_="scroll")
        yield _section("Casts", "casts", _toolbar(report, most), rows)
    if layers := phrases.layers(report):
        yield _section("Layers", "layers", _table(layers))
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
    steps = [tag("li", text(line)) for line in phrases.unseen(report)[1:]]
    return tag("ul", *steps, id="unseen") if steps else ""


def _subtitle(report: CastReport) -> str:
    rules = report.graph.rules.name
    line = f"built under the rules of {rules}, {len(report.graph.symbols):,} symbols"
    return tag("p", text(line), class_="faint")


def _summary(report: CastReport) -> str:
    if not report.sites:
        return tag("p", text(phrases.headline(report)))
    lossy = sum(not row.exact for row in report)
    causes = sum(row.cause is None for row in report)
    figures = [
        (f"{len(report):,}", "uses of casts"),
        (f"{lossy:,}", "can lose something"),
        (f"{causes:,}", "are causes, the rest follows"),
        (phrases.size_text(phrases.added(report)), "bytes of arrays made"),
    ]
    if report.losses:
        steps = sum(site.row.kind in phrases.VERBS for site in report.sites)
        figures.append((f"{steps:,}", "steps of arithmetic lost values"))
    parts = [tag("div", tag("dd", text(figure, 40)), tag("dt", name)) for figure, name in figures]
    return tag("dl", *parts, class_="figures") + _bar(report)


def _bar(report: CastReport) -> str:
    """Return a bar of the rows by level of loss, with a legend."""
    counts = phrases.levels((*report, *report.losses))
    pieces = [tag("i", class_=level, style=f"flex-grow:{count}") for level, count in counts.items()]
    legend = [
        tag(
            "li", tag("i", class_=level), f"{count:,} {level}", tag("span", phrases.MEANINGS[level])
        )
        for level, count in counts.items()
    ]
    return tag("div", *pieces, class_="bar", aria_hidden="true") + tag(
        "ul", *legend, class_="legend"
    )


def _table(rows: Sequence[Sequence[str]], most: int = ROWS) -> str:
    """Return a table of texts, the titles first."""
    body = [[text(cell, 120) for cell in row] for row in rows[1:]]
    return html_table(rows[0], body, len(body), most)


def _against(diff: GraphDiff) -> Iterator[str]:
    """Yield the comparison of the graph with other rules."""
    yield tag("p", text(diff.headline()), class_="faint")
    yield _table(diff.table(), CHANGES)
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
        for level in phrases.levels((*report, *report.losses))
    ]
    count = tag("output", f"{min(rows, most):,} rows", id="count", aria_live="polite")
    note_text = f"The {most:,} worst of {rows:,} rows are here; JSON has all."
    note = tag("p", note_text, class_="faint") if rows > most else ""
    return tag("div", box, *buttons, count, class_="toolbar") + note


def _drawing(report: CastReport) -> str:
    """Return the drawing of the graph, with its casts coloured by loss."""
    from graphir.passes.reports.picture import draw

    return draw(report)


# -- the source

CONTEXT = 2
"""The number of context lines before and after a line with casts."""

WIDTH = 1000
"""The most characters shown of a line."""

LINES = 3000
"""The most lines with casts shown of a file; lines that the page's rows link to come first."""


class Highlight:
    """Uses of casts in one region and by one conversion, which differ only in their layers.

    `sites` are the sites of the uses, and `times` is the number of the uses.
    """

    def __init__(self, place: SourceRegion) -> None:
        self.place, self.times = place, 0
        self.sites: list[CastSite] = []

    @property
    def site(self) -> CastSite:
        """The worst site."""
        return self.sites[0]

    @cached_property
    def reason(self) -> str:
        """The tooltip of the worst site."""
        return reason(self.site)


class Listing:
    """The highlights of a report by file and line; each highlighted line has an HTML anchor."""

    def __init__(self, report: CastReport) -> None:
        self.files: dict[str, dict[int, list[Highlight]]] = {}
        self._further: dict[
            tuple[str, int], list[Highlight]
        ] = {}  # multi-line highlights, by further line
        self._places: dict[int, SourceRegion] = {}
        self._sources: dict[str, str] = {}
        self._highlights: dict[tuple[SourceRegion, int], Highlight] = {}
        for site in report.sites:
            for row, *repeated in site.places:
                place = region(row)
                self._places.setdefault(site.row.place, place)
                highlight = self._highlight(place, site)
                highlight.sites.append(site)
                highlight.times += 1 + len(repeated)
        self._numbers = {file: number for number, file in enumerate(sorted(self.files))}

    def _highlight(self, place: SourceRegion, site: CastSite) -> Highlight:
        """Return the highlight of a place for the conversion of a site."""
        key = place, id(site.row.conversion)
        highlight = self._highlights.get(key)
        if highlight is None:
            highlight = self._highlights[key] = Highlight(place)
            self.files.setdefault(place.file, {}).setdefault(place.line, []).append(highlight)
            self._sources.setdefault(place.file, place.source)
            for line in range(place.line + 1, min(place.end_line, place.line + CONTEXT) + 1):
                self._further.setdefault((place.file, line), []).append(highlight)
        return highlight

    def anchor(self, site: CastSite) -> str:
        """Return the HTML id of a site's line."""
        place = self._places[site.row.place]
        return self._id(place.file, place.line)

    def html(self, anchors: Mapping[int, str]) -> str:
        """Return the HTML of all files; `anchors` maps the `place` of a row to its HTML id."""
        return "\n".join(self._file(file, anchors) for file in self._numbers)

    def _id(self, file: str, line: int) -> str:
        return f"l{self._numbers[file]}-{line}"

    def _file(self, file: str, anchors: Mapping[int, str]) -> str:
        hit = self.files[file]
        first = sorted(hit, key=lambda line: (not _has_link(hit[line], anchors), line))
        numbers = _around(self._sources[file], first[:LINES])
        lines = "\n".join(self._lines(file, numbers, anchors))
        more = len(hit.keys() - set(numbers))
        note = tag("p", f"... and {more:,} more lines with casts", class_="faint") if more else ""
        title = tag("h3", text(file) if file else "The text of the graph")
        return tag("article", title, tag("ol", "\n", lines, "\n", class_="lines"), note)

    def _lines(
        self, file: str, numbers: Sequence[int], anchors: Mapping[int, str]
    ) -> Iterator[str]:
        last = 0
        for number in numbers:
            if last and number > last + 1:
                yield tag("li", class_="gap", aria_hidden="true")
            last = number
            yield self._line(file, number, anchors)

    def _line(self, file: str, number: int, anchors: Mapping[int, str]) -> str:
        own = self.files[file].get(number, [])
        line = line_at(self._sources[file], number)
        chips = [_chip(each, anchors) for each in sorted(own, key=lambda each: each.place)]
        highlights = [*own, *self._further.get((file, number), ())]
        return tag(
            "li",
            tag("span", str(number), class_="number"),
            tag("code", _mark(line, number, highlights)),
            tag("span", *chips, class_="chips") if chips else "",
            id=self._id(file, number) if own else None,
            class_="hit" if own else None,
            tabindex="-1" if own else None,
        )


def _has_link(highlights: Sequence[Highlight], anchors: Mapping[int, str]) -> bool:
    return any(site.row.place in anchors for each in highlights for site in each.sites)


def _around(source: str, hit: Sequence[int]) -> list[int]:
    """Return the numbers of the lines with casts and of the nonblank context lines."""
    near = {at for line in hit for at in range(line - CONTEXT, line + CONTEXT + 1)}
    return sorted({*hit, *(at for at in near if at > 0 and line_at(source, at).strip())})


def _chip(highlight: Highlight, anchors: Mapping[int, str]) -> str:
    row = highlight.site.row
    anchor = anchors.get(row.place)
    href = f"#{anchor}" if anchor else None
    return chip(row, highlight.times, href=href, title=highlight.reason)


def _mark(line: str, number: int, highlights: Sequence[Highlight]) -> str:
    """Return a line as HTML with its operands marked; the innermost of nested operands wins."""
    line = line[:WIDTH]
    spans: dict[tuple[int, int], Highlight] = {}
    for each in highlights:
        if each.place.is_known:
            spans.setdefault(each.place.columns(number, line), each)
    cuts = sorted({0, len(line), *(at for span in spans for at in span)})
    parts: list[str] = []
    for start, end in pairwise(cuts):
        piece = escape(printable(line[start:end], None, keep="\t"))
        over = [(b - a, each) for (a, b), each in spans.items() if a <= start and end <= b]
        if over:
            innermost = min(over, key=lambda pair: pair[0])[1]
            inner = " inner" if len(over) > 1 else ""
            shade = f"{phrases.level(innermost.site.row)}{inner}"
            piece = tag("mark", piece, class_=shade, title=innermost.reason)
        parts.append(piece)
    return "".join(parts)
