"""The HTML writer of cast reports: one self-contained page, with the annotated source.

Notebooks show fragments with the rows of the page.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from graphir.decorators import uncollected
from graphir.display import ROWS as FRAGMENT_ROWS
from graphir.display import code, entries, folded, fragment, paragraphs, printable, table, tag, text
from graphir.ops.dims import Dim, Size
from graphir.passes.analysis.casts.sites import Cascade
from graphir.passes.reports import draw, phrases
from graphir.passes.reports.phrases import SourceRegion, line_at, region
from graphir.passes.reports.text import facts

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport, CastRow
    from graphir.passes.analysis.casts.sites import CastSite
    from graphir.passes.analysis.diff import GraphDiff, RulesDiff


ROWS = 2000
"""The most rows in the table of a page."""

CHANGES = 200
"""The most lines of the comparison with other rules on a page."""


@uncollected
def report_html(report: CastReport, most: int = ROWS) -> str:
    """Return the page: a summary, the annotated source, a drawing, and a sortable table.

    The table has the `most` worst rows, and the reader can filter it. The page's Content Security
    Policy forbids all loads. The page is readable without its script.
    """
    first = phrases.unseen(report)[:1]
    title = first[0] if first else f"Casts of {printable(report.graph.name, 80)}"
    return page(title, _sections(report, title, most), _part("page.js"))


def page(title: str, sections: Iterable[str], script: str = "") -> str:
    """Return a self-contained page, whose Content Security Policy forbids all loads."""
    head = [
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">',
        tag("title", text(title)),
        tag("style", _part("page.css")),
    ]
    body = "\n".join([*sections, tag("script", script)])
    document = tag("html", tag("head", *head), "\n", tag("body", body), lang="en")
    return f"<!doctype html>\n{document}\n"


def _part(name: str) -> str:
    return files("graphir.passes.reports").joinpath(name).read_text("utf-8")


def _policy(script: str) -> str:
    """Return the Content Security Policy: the page's own script, by digest, and inline styles."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def _sections(report: CastReport, title: str, most: int) -> Iterator[str]:
    rules = report.graph.rules.name
    subtitle = f"built under the rules of {rules}, {len(report.graph.symbols):,} symbols"
    unseen = "".join(tag("li", text(line)) for line in phrases.unseen(report)[1:])
    yield tag(
        "header",
        tag("h1", text(title)),
        tag("ul", unseen, id="unseen") if unseen else "",
        tag("p", text(subtitle), class_="faint"),
        tag("p", text(phrases.headline(report))),
    )
    if report.sentences:
        yield _section("Causes", "causes", *(tag("p", text(x)) for x in report.sentences))
    if report.outputs:
        lines = (tag("p", text(phrases.output(error))) for error in report.outputs)
        yield _section("Outputs", "outputs", *lines)
    if report.sites:
        sites = report.sites.user_first[:most]
        anchors = {site.row.place: f"c{i}" for i, site in enumerate(sites)}
        listing = Listing(report, anchors)
        yield _section("Source", "source", listing.html())
        yield _section("Graph", "graph", tag("div", draw(report), class_="drawing"))
        rows = tag("div", _casts(report, sites, listing), class_="scroll")
        yield _section("Casts", "casts", _toolbar(report, most), rows)
    if layers := phrases.layers(report):
        titles, *rows = layers
        body = [[text(cell, 120) for cell in row] for row in rows]
        yield _section("Layers", "layers", table(titles, body, len(body), ROWS))
    if report.against is not None:
        title = f"Under {text(report.against.after.name)}"
        lines = map(text, phrases.against(report)[:CHANGES])
        yield _section(title, "against", tag("pre", "\n".join(lines)))


def _section(title: str, name: str, *content: str) -> str:
    heading = tag("h2", title, id=f"{name}-title")
    return tag("section", heading, *content, id=name, aria_labelledby=f"{name}-title")


def _toolbar(report: CastReport, most: int) -> str:
    """Return the filters of the table: a box for text, and a button for each level of loss."""
    rows = len(report.sites)
    box = '<input type="search" id="filter" placeholder="Filter" aria-label="Filter the casts">'
    buttons = [
        tag(
            "button",
            f"{count:,} {level}",
            type="button",
            class_=f"loss {level}",
            title=phrases.MEANINGS[level],
            aria_pressed="true",
            data_loss=level,
        )
        for level, count in phrases.levels((*report, *report.losses)).items()
    ]
    count = tag("output", f"{min(rows, most):,} rows", id="count", aria_live="polite")
    note_text = f"The {most:,} worst of {rows:,} rows are here; JSON has all."
    note = tag("p", note_text, class_="faint") if rows > most else ""
    return tag("div", box, *buttons, count, class_="toolbar") + note


# -- the table


def _casts(report: CastReport, sites: Sequence[CastSite], listing: Listing) -> str:
    """Return the table of some sites; each row unfolds to what is to be said of its cascade."""
    cascades = {id(cascade.site): cascade for cascade in report.sites.cascades()}
    columns = [("", ""), *((x.title, x.key) for x in cells(sites[0], report))]
    heads = [_head(title, isinstance(key, str)) for title, key in columns]
    bodies: list[str] = []
    for site in sites:
        row, anchor = site.row, listing.anchors[site.row.place]
        toggle = tag(
            "button",
            type="button",
            class_="toggle",
            aria_expanded="false",
            aria_controls=f"{anchor}-more",
            aria_label=f"details of {phrases.conversion(row)}",
        )
        shown = map(_cell, cells(site, report, f"#{listing.line_of(site)}"))
        what = f"{phrases.what(row)}, {phrases.why(row)}"
        texts = [("operand", what), *facts(cascades.get(id(site), Cascade(site, [])), report)]
        more = entries((name.capitalize(), text(value)) for name, value in texts)
        folded = tag("td", more, colspan=len(columns), class_="whole")
        parts = [
            tag("tr", tag("td", toggle), *shown, class_="cast"),
            tag("tr", folded, class_="more", id=f"{anchor}-more"),
        ]
        bodies.append(tag("tbody", *parts, id=anchor, tabindex="-1", data_loss=phrases.level(row)))
    return tag("table", tag("thead", tag("tr", *heads)), "\n", "\n".join(bodies), id="table")


def _head(title: str, is_text: bool) -> str:
    if not title:
        return tag("th", tag("span", "details", class_="unseen"), scope="col")
    button = tag("button", text(title), type="button", title=HINTS.get(title))
    order = "text" if is_text else "number"
    return tag("th", button, scope="col", aria_sort="none", data_order=order)


def _cell(cell: ReportCell) -> str:
    if isinstance(cell.key, str):
        return tag("td", cell.html, data_key=cell.key or None)
    return tag("td", cell.html, class_="number", data_key=f"{cell.key:.9g}", data_label=cell.title)


# -- the source

CONTEXT = 2
"""The number of context lines before and after a line with casts."""

WIDTH = 1000
"""The most characters shown of a line."""


class Highlight:
    """Uses of casts in one region and by one conversion, which differ only in their layers.

    `site` is the worst site of the uses, and `times` is the number of the uses.
    """

    def __init__(self, place: SourceRegion, site: CastSite) -> None:
        self.place, self.site, self.times = place, site, 0
        self.reason = reason(site)


class Listing:
    """The highlights of a report by file and line; each highlighted line has an HTML anchor.

    `anchors` maps the `place` of a row to the HTML id of its row in the table.
    """

    def __init__(self, report: CastReport, anchors: Mapping[int, str]) -> None:
        self.anchors = anchors
        self._files: dict[str, dict[int, list[Highlight]]] = {}
        highlights: dict[tuple[SourceRegion, int], Highlight] = {}
        for site in report.sites:
            for rows in site.places:
                place = region(rows[0])
                key = place, id(site.row.conversion)
                if key not in highlights:
                    highlights[key] = Highlight(place, site)
                    lines = self._files.setdefault(place.file, {})
                    lines.setdefault(place.line, []).append(highlights[key])
                highlights[key].times += len(rows)
        self._numbers = {file: number for number, file in enumerate(sorted(self._files))}

    def line_of(self, site: CastSite) -> str:
        """Return the HTML id of a site's line."""
        place = region(site.row)
        return f"l{self._numbers[place.file]}-{place.line}"

    def html(self) -> str:
        """Return the HTML of all files."""
        return "\n".join(map(self._file, self._numbers))

    def _file(self, file: str) -> str:
        by_line = self._files[file]
        source = next(iter(by_line.values()))[0].place.source
        lines: list[str] = []
        last = 0
        for number in _around(source, [*by_line]):
            if last and number > last + 1:
                lines.append(tag("li", class_="gap", aria_hidden="true"))
            lines.append(self._line(file, source, number, by_line.get(number, [])))
            last = number
        title = tag("h3", text(file) if file else "The text of the graph")
        return tag("article", title, tag("ol", "\n", "\n".join(lines), "\n", class_="lines"))

    def _line(self, file: str, source: str, number: int, own: Sequence[Highlight]) -> str:
        chips = map(self._chip, sorted(own, key=lambda each: each.place))
        return tag(
            "li",
            tag("span", str(number), class_="number"),
            tag("code", _mark(line_at(source, number), number, own)),
            tag("span", *chips, class_="chips") if own else "",
            id=f"l{self._numbers[file]}-{number}" if own else None,
            class_="hit" if own else None,
            tabindex="-1" if own else None,
        )

    def _chip(self, highlight: Highlight) -> str:
        row = highlight.site.row
        anchor = self.anchors.get(row.place)
        href = f"#{anchor}" if anchor else None
        return chip(row, highlight.times, href=href, title=highlight.reason)


def _around(source: str, hit: Sequence[int]) -> list[int]:
    """Return the numbers of the lines with casts and of the nonblank context lines."""
    near = {at for line in hit for at in range(line - CONTEXT, line + CONTEXT + 1)}
    return sorted({*hit, *(at for at in near if at > 0 and line_at(source, at).strip())})


def _mark(line: str, number: int, highlights: Sequence[Highlight]) -> str:
    """Return a line as HTML with its operands marked."""
    line = line[:WIDTH]
    spans: dict[tuple[int, int], Highlight] = {}
    for each in highlights:
        if each.place.is_known:
            spans.setdefault(each.place.columns(number, line), each)

    def marked(piece: str, highlight: Highlight, is_nested: bool) -> str:
        shade = f"{phrases.level(highlight.site.row)}{' inner' if is_nested else ''}"
        return tag("mark", piece, class_=shade, title=highlight.reason)

    return marked_line(line, spans, marked)


Spanned = TypeVar("Spanned")


def marked_line(
    line: str,
    spans: Mapping[tuple[int, int], Spanned],
    marked: Callable[[str, Spanned, bool], str],
) -> str:
    """Return a line as HTML, with its pieces inside of spans of characters as `marked` writes them.

    `marked` gets the HTML of a piece, what the innermost span around it stands for, and whether
    there is another span around it.
    """
    cuts = sorted({0, len(line), *(at for span in spans for at in span)})
    parts: list[str] = []
    for start, end in pairwise(cuts):
        piece = escape(printable(line[start:end], None, keep="\t"))
        over = [(b - a, each) for (a, b), each in spans.items() if a <= start and end <= b]
        if over:
            innermost = min(over, key=itemgetter(0))[1]
            piece = marked(piece, innermost, len(over) > 1)
        parts.append(piece)
    return "".join(parts)


# -- rows, which the page and notebooks share


class ReportCell(NamedTuple):
    """A cell: its column's title, its HTML, and its sort key, without which its text is the key.

    Numbers sort greatest first.
    """

    title: str
    html: str
    key: str | float = ""


HINTS = {
    "Loss": "what the dtypes can lose",
    "Bytes": "of the array that the cast makes",
    "Damage": "the relative error that it is estimated to bring to the outputs",
    "Changed": "elements that the cast changed in the run",
    "Error": "the largest relative error of an element in the run",
    "Share": "of the error of an output",
    "Times": "uses of casts that the row stands for",
}
"""The tooltips of the columns."""


def cells(site: CastSite, report: CastReport, href: str | None = None) -> Iterator[ReportCell]:
    """Yield the cells of a site; with `href`, its place is a link, else its cast has a tooltip."""
    row, at = site.row, site.row.location
    where = text(str(at).rpartition(":")[0] if at.file and at.line else at, 80)
    link = tag("a" if href else "span", where.replace("/", "/<wbr>"), href=href, class_="where")
    notes = [row.layer] if row.layer else []
    notes += [f"inside {row.op}"] if row.in_library else []
    small = "".join(f" {tag('small', text(note, 80))}" for note in notes)
    yield ReportCell("Where", link + small, f"{at.file} {at.line:08} {at.column:06}")
    yield ReportCell("Operand", code(row.text, 60) if row.text else text(phrases.what(row)))
    yield ReportCell("Cast", chip(row, title=None if href else reason(site)))
    loss = text(phrases.loss(site))
    yield ReportCell("Loss", loss, str(list(phrases.MEANINGS).index(phrases.level(row))))
    size = site.bytes_added
    yield ReportCell("Bytes", text(phrases.size_text(size)), _nominal(size))
    yield ReportCell("Damage", f"{row.damage:.1e}" if row.damage else "", row.damage)
    if report.audited:
        yield from _measured_cells(site)
    if report.sites.repeat:
        yield ReportCell("Times", f"{site.times:,}", site.times)


def _measured_cells(site: CastSite) -> Iterator[ReportCell]:
    changed, error, measure = (
        ReportCell("Changed", "", -1),
        ReportCell("Error", "", -1),
        site.measured,
    )
    if measure is not None:
        part = measure.changed / measure.elements if measure.elements else 0
        changed = ReportCell("Changed", f"{measure.changed:,} of {measure.elements:,}", part)
        relative = f"{measure.relative:.1e}" if measure.changed else ""
        error = ReportCell("Error", relative, measure.relative)
    yield from (changed, error)
    yield ReportCell("Share", text(phrases.share(site)), -1 if site.share is None else site.share)


def _nominal(size: Size) -> float:
    """Return a size as a sort key: each symbolic dim counts as 1000."""
    return size.evaluate(dict.fromkeys(size.names(), 1000)) if isinstance(size, Dim) else size


def chip(row: CastRow, times: int = 1, **attributes: str | None) -> str:
    """Return a conversion as an element coloured by its loss; a link if `href` is given."""
    count = tag("b", f"&times; {times:,}") if times > 1 else ""
    name = "a" if attributes.get("href") else "span"
    label = text(phrases.conversion(row)).replace("-&gt;", "&rarr;")
    return tag(name, label, count, class_=f"chip {phrases.level(row)} {row.kind}", **attributes)


def reason(site: CastSite) -> str:
    """Return the tooltip of a site: the cause and the effect of the cast, in plain text lines."""
    row = site.row
    lines = [f"{phrases.conversion(row)} {phrases.why(row)}", phrases.what(row), phrases.loss(site)]
    lines += [", ".join(phrases.measured(site))] if site.measured else []
    lines += [f"write {row.fix}"] if row.fix else []
    return "\n".join(map(printable, lines))


# -- notebooks

LINES = 8
"""The most lines above a table."""


def report_fragment(report: CastReport, most: int = FRAGMENT_ROWS) -> str:
    """Return the headline of a report, its explanations and a table of the `most` worst rows."""
    sites = report.sites
    rows = ((cell.html for cell in cells(site, report)) for site in sites.user_first)
    titles = [cell.title for site in sites[:1] for cell in cells(site, report)]
    return fragment(
        paragraphs([*phrases.unseen(report)[:LINES], phrases.headline(report)]),
        _first(list(map(phrases.output, report.outputs))),
        _first(report.sentences),
        table(titles, rows, len(sites), most),
        *(_difference(report.against) if report.against is not None else ()),
    )


def _first(texts: Sequence[str]) -> str:
    """Return the first LINES lines, and how many are left out."""
    more = len(texts) - LINES
    return paragraphs([*texts[:LINES], *([f"... and {more:,} more"] if more > 0 else [])])


def difference_fragment(diff: GraphDiff) -> str:
    """Return the symbols of a graph that change under other rules, and the refusals, folded."""
    return fragment(*_difference(diff))


def _difference(diff: GraphDiff) -> Iterator[str]:
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
    tables = (
        ("Pairs of dtypes", ("lhs", "rhs", *names), diff.pair_rows()),
        ("Besides the join", ("question", *names), diff.facts_besides),
        ("Op by op, on arrays of one dtype", ("of", *names, "ops"), diff.op_rows()),
    )
    return fragment(
        paragraphs(diff.headlines()),
        *(
            folded(title, table(titles, ([code(x, 300) for x in row] for row in rows), len(rows)))
            for title, titles, rows in tables
        ),
    )
