"""The rows of cast reports in HTML, which the page and notebooks share; the views of notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from graphir.escape import printable
from graphir.markup import ROWS, code, folded, fragment, paragraphs, table, tag, text
from graphir.ops.dims import Dim, Size
from graphir.passes.reports import phrases

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport, CastRow
    from graphir.passes.analysis.casts.sites import CastSite
    from graphir.passes.analysis.diff import GraphDiff, RulesDiff


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


def chip(row: CastRow, times: int = 1, **attributes: Any) -> str:
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


def report_fragment(report: CastReport, most: int = ROWS) -> str:
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
