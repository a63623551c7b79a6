"""The HTML writer of cast reports: one self-contained page, with the annotated source.

Notebooks show fragments with the rows of the page.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from graphir.decorators import uncollected
from graphir.display import ROWS as FRAGMENT_ROWS
from graphir.display import code, entries, folded, fragment, paragraphs, printable, table, tag, text
from graphir.drawing.loss_levels import gravest
from graphir.ops.dims import Dim, Size
from graphir.passes.analysis.annotation import AnnotatedFile
from graphir.passes.analysis.casts.sites import Cascade, CastSite
from graphir.passes.reports import draw, phrases
from graphir.passes.reports.annotated import Annotated, SourceLine, below, blocks, value_text
from graphir.passes.reports.phrases import region
from graphir.passes.reports.sentences import Sentence
from graphir.passes.reports.text import facts
from graphir.rule_reports.terminal import short_place

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport, CastRow
    from graphir.passes.analysis.diff import GraphDiff, RulesDiff


ROWS = 2000
"""The most rows in the table of a page."""

CHANGES = 200
"""The most lines of the comparison with other rules on a page."""


@uncollected
def report_html(report: CastReport, most: int = ROWS) -> str:
    """Return the page: the answers, a sortable table, the annotated source, and a drawing.

    The table has the `most` worst rows, and the reader can filter it. The page's Content Security
    Policy forbids all loads. The page is readable without its script.
    """
    title = f"Casts of {printable(report.graph.name, 80)}"
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
    first, *further = report.answers or [
        Sentence(phrases.unseen(report) or phrases.headline(report))
    ]
    rules = report.graph.rules.name
    subtitle = f"built under the rules of {rules}, {len(report.graph.symbols):,} symbols"
    told = answer_html(first, "h1"), *map(answer_html, further), _facts(report)
    yield tag("header", *told, tag("p", text(subtitle), class_="faint"))
    if report.lines:
        sites = report.lines.user_first[:most]
        anchors = {row.place: f"c{i}" for i, site in enumerate(sites) for row in site.rows}
        listing = Listing(Annotated(report), anchors)
        rows = tag("div", _casts(report, sites, listing), class_="scroll")
        yield _section("Casts", "casts", _toolbar(report, most), rows)
        if articles := [*listing.articles()]:
            yield _section("Source", "source", *articles)
        yield _section("Graph", "graph", tag("div", draw(report), class_="drawing"))
    if layers := phrases.layers(report):
        titles, *rows = layers
        body = [[text(cell, 120) for cell in row] for row in rows]
        yield _section("Layers", "layers", table(titles, body, len(body), ROWS))
    if report.against is not None:
        title = f"Under {text(report.against.after.name)}"
        lines = map(text, phrases.against(report)[:CHANGES])
        yield _section(title, "against", tag("pre", "\n".join(lines)))


def answer_html(answer: Sentence, name: str = "p") -> str:
    """Return an answer as an element, and one for each of its edits."""
    edits = [f"{text(lead)} {code(edit, 2000)}" for lead, edit in answer.instructions]
    edits[-1:] = [f"{edit} {tag('small', text(answer.grade))}" for edit in edits[-1:]]
    lines = (tag("div", edit, class_="edit") for edit in edits)
    return tag(name, text(answer.text, 2000)) + "".join(lines)


def _facts(report: CastReport) -> str:
    """Return what was not seen, as a line that unfolds, and the lines of counts and of outputs."""
    unseen = "".join(tag("li", text(line)) for line in phrases.every_unseen(report))
    lines = *phrases.notes(report), phrases.headline(report), *phrases.outputs(report)
    folded_unseen = folded(phrases.unseen(report), tag("ul", unseen) if unseen else "")
    return tag("div", folded_unseen, paragraphs(lines), class_="facts")


def _section(title: str, name: str, *content: str) -> str:
    heading = tag("h2", title, id=f"{name}-title")
    return tag("section", heading, *content, id=name, aria_labelledby=f"{name}-title")


def _toolbar(report: CastReport, most: int) -> str:
    """Return the filters of the table: a box for text, and a button for each level of loss."""
    rows = len(report.lines)
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
        for level, count in phrases.levels(site.row for site in report.lines).items()
    ]
    count = tag("output", f"{min(rows, most):,} rows", id="count", aria_live="polite")
    note_text = f"The {most:,} worst of {rows:,} rows are here; JSON has all."
    note = tag("p", note_text, class_="faint") if rows > most else ""
    return tag("div", box, *buttons, count, class_="toolbar") + note


# -- the table


def _casts(report: CastReport, sites: Sequence[CastSite], listing: Listing) -> str:
    """Return the table of some sites; each row unfolds to what is to be said of its cascade."""
    cascades = {id(cascade.site): cascade for cascade in report.lines.cascades()}
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
        line = listing.line_of(site)
        shown = map(_cell, cells(site, report, f"#{line}" if line else None))
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


def annotated_html(annotated: Annotated) -> str:
    """Return a page of the annotated lines; each expression has its types as a tooltip."""
    title = f"Types of {printable(annotated.report.graph.name, 80)}"
    header = tag("header", tag("h1", text(title)))
    return page(title, [header, *Listing(annotated).articles()])


class Listing:
    """The annotated lines of a program, with links to the rows of a table.

    `anchors` maps the `place` of a row to the HTML id of its row in the table.
    """

    def __init__(self, annotated: Annotated, anchors: Mapping[int, str] | None = None) -> None:
        self.anchors, self._files = anchors or {}, annotated.files
        self._lines = {
            (file.file, line): f"l{number}-{line}"
            for number, file in enumerate(annotated.files)
            for line in file.lines
        }

    def line_of(self, site: CastSite) -> str | None:
        """Return the HTML id of a site's line, if it is shown."""
        return self._lines.get(region(site.row)[:2])

    def articles(self) -> Iterator[str]:
        """Yield the HTML of each file."""
        gap = tag("li", class_="gap", aria_hidden="true")
        for file in self._files:
            lines = gap.join("".join(self._line(x, file) for x in block) for block in blocks(file))
            title = tag("h3", text(file.file))
            yield tag("article", title, tag("ol", lines, class_="lines"))

    def _line(self, line: SourceLine, file: AnnotatedFile) -> str:
        casts = [x for each in line.annotations if each.span[0] == line.number for x in each.casts]
        chips = [tag("span", text(line.note), class_="chip")] if line.note else []
        chips += filter(None, (self._chip(*x) for x in casts))
        return tag(
            "li",
            tag("span", str(line.number), class_="number"),
            tag("code", *_marked(line, file)),
            tag("span", *chips, class_="chips") if chips else "",
            id=self._lines.get((file.file, line.number)) if self.anchors else None,
            class_="hit" if line.annotations else None,
            tabindex="-1" if casts else None,
        )

    def _chip(self, row: CastRow, times: int) -> str:
        anchor = self.anchors.get(row.place)
        return chip(row, times, href=f"#{anchor}", title=reason(CastSite(row))) if anchor else ""


def _marked(line: SourceLine, file: AnnotatedFile) -> Iterator[str]:
    """Yield the HTML of a line: each piece has what is known of the innermost expression around."""
    spans = {line.columns(x): x for x in line.annotations}
    cuts = sorted({0, len(line.source), *(at for span in spans for at in span)})
    for start, end in pairwise(cuts):
        piece = escape(printable(line.source[start:end], None, keep="\t"))
        over = [(b - a, each) for (a, b), each in spans.items() if a <= start and end <= b]
        if over:
            annotation = min(over, key=itemgetter(0))[1]
            casts = (row for row, _ in annotation.casts if not row.is_trivial)
            level = gravest(phrases.level(row) for row in casts)
            told = filter(None, dict.fromkeys([value_text(annotation), *below(annotation, file)]))
            name, title = "mark" if level else "span", "\n".join(told) or None
            piece = tag(name, piece, class_=level, title=title)
        yield piece


# -- rows, which the page and notebooks share


class ReportCell(NamedTuple):
    """A cell: its column's title, its HTML, and its sort key, without which its text is the key.

    Numbers sort greatest first.
    """

    title: str
    html: str
    key: str | float = ""


MAX_TEXTS = 3
"""The most operands that a row shows."""

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
    where = text(short_place(str(at).rpartition(":")[0] if at.file and at.line else str(at), 80))
    link = tag("a" if href else "span", where.replace("/", "/<wbr>"), href=href, class_="where")
    notes = [row.layer] if row.layer else []
    notes += [f"inside {row.op}"] if row.in_library else []
    small = "".join(f" {tag('small', text(note, 80))}" for note in notes)
    yield ReportCell("Where", link + small, f"{at.file} {at.line:08} {at.column:06}")
    texts = [*dict.fromkeys(x.text for x in site.rows if x.text)][:MAX_TEXTS]
    operands = ", ".join(code(x, 60) for x in texts) or text(phrases.operands(site))
    yield ReportCell("Operand", operands)
    yield ReportCell("Cast", chip(row, title=None if href else reason(site)))
    loss = text(phrases.loss(site))
    yield ReportCell("Loss", loss, str(list(phrases.MEANINGS).index(phrases.level(row))))
    size = site.bytes_added
    yield ReportCell("Bytes", text(phrases.size_text(size)), _nominal(size))
    yield ReportCell("Damage", f"{row.damage:.1e}" if row.damage else "", row.damage)
    if report.audited:
        yield from _measured_cells(site)
    if report.lines.repeat:
        yield ReportCell("Times", f"{site.times:,}", site.times)


def _measured_cells(site: CastSite) -> Iterator[ReportCell]:
    measure = site.measured
    if measure is None:
        yield from (ReportCell(title, "", -1) for title in ("Changed", "Error"))
    else:
        part = measure.changed / measure.elements if measure.elements else 0
        yield ReportCell("Changed", f"{measure.changed:,} of {measure.elements:,}", part)
        relative = f"{measure.relative:.1e}" if measure.changed else ""
        yield ReportCell("Error", relative, measure.relative)
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
    """Return the answers of a report, its headline and a table of the `most` worst rows."""
    sites = report.lines
    rows = ((cell.html for cell in cells(site, report)) for site in sites.user_first)
    titles = [cell.title for site in sites[:1] for cell in cells(site, report)]
    return fragment(
        *(answer_html(x, "div") for x in report.answers[:LINES]),
        _facts(report),
        table(titles, rows, len(sites), most),
        *(_difference(report.against) if report.against is not None else ()),
    )


def difference_fragment(diff: GraphDiff) -> str:
    """Return the symbols of a graph that change under other rules, and the refusals, folded."""
    return fragment(*_difference(diff))


def _difference(diff: GraphDiff) -> Iterator[str]:
    titles, *changes = diff.table()
    rows = ([text(where, 80), *(code(cell, 60) for cell in cells)] for where, *cells in changes)
    errors = [line for line in diff.errors() if line]
    yield paragraphs([diff.headline()])
    yield paragraphs(diff.sentences[:LINES])
    yield table(titles, rows, len(changes))
    yield folded("Refusals", paragraphs(errors[:LINES])) if errors else ""


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
