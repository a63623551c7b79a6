"""The rows of cast reports in HTML: those of the page, which unfold, and those of notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from graphir.escape import printable
from graphir.markup import ROWS, code, entries, folded, fragment, paragraphs, table, tag, text
from graphir.ops.dims import Dim, Size
from graphir.passes.reports import phrases
from graphir.passes.reports.text import site_facts

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport, CastRow
    from graphir.passes.analysis.casts.sites import CastSite
    from graphir.passes.analysis.diff import GraphDiff, RulesDiff

FOLLOWING = 5
"""The most consequences of a cast that its details list."""


class Column(NamedTuple):
    """A column: its title, whether it sorts by number (greatest first), and its tooltip."""

    title: str
    numeric: bool = False
    hint: str = ""


COLUMNS = (
    Column("Where"),
    Column("Operand"),
    Column("Cast"),
    Column("Loss", hint="what the dtypes can lose"),
    Column("Bytes", True, "of the array that the cast makes"),
    Column("Damage", True, "the relative error that it is estimated to bring to the outputs"),
)
AUDIT_COLUMNS = (
    Column("Changed", True, "elements that the cast changed in the run"),
    Column("Error", True, "the largest relative error of an element in the run"),
    Column("Share", True, "of the error of an output"),
)
TIMES_COLUMN = (Column("Times", True, "uses of casts that the row stands for"),)


class RowsTable:
    """The sites of a report as a table; `anchors` maps a row's `place` to its site's HTML id."""

    def __init__(self, report: CastReport, line_of: Callable[[CastSite], str], most: int) -> None:
        self.report, self._line_of, self.has_audit = report, line_of, report.audited
        self.has_times = report.sites.repeat
        self.sites: Sequence[CastSite] = report.sites.user_first[:most]
        self.anchors: Mapping[int, str] = {
            site.row.place: f"c{i}" for i, site in enumerate(self.sites)
        }
        self._following = report.following()

    def html(self) -> str:
        """Return the HTML of the table."""
        columns = (*COLUMNS, *AUDIT_COLUMNS * self.has_audit, *TIMES_COLUMN * self.has_times)
        heads = [
            tag("th", tag("span", "details", class_="unseen"), scope="col"),
            *map(_head, columns),
        ]
        bodies = "\n".join(self._body(site, len(columns) + 1) for site in self.sites)
        head = tag("thead", tag("tr", *heads))
        return tag("table", head, "\n", bodies, id="table")

    def _body(self, site: CastSite, columns: int) -> str:
        row = site.row
        anchor, worst = self.anchors[row.place], phrases.level(row)
        toggle = tag(
            "button",
            type="button",
            class_="toggle",
            aria_expanded="false",
            aria_controls=f"{anchor}-more",
            aria_label=f"details of {phrases.conversion(row)}",
        )
        cells = [tag("td", toggle), *self._cells(site)]
        more = tag("td", self._more(site), colspan=columns, class_="whole")
        return tag(
            "tbody",
            tag("tr", *cells, class_="cast"),
            tag("tr", more, class_="more", id=f"{anchor}-more"),
            id=anchor,
            tabindex="-1",
            data_loss=worst,
        )

    def _cells(self, site: CastSite) -> Iterator[str]:
        row, at, size = site.row, site.row.location, site.bytes_added
        layer = tag("small", text(row.layer, 80)) if row.layer else ""
        if row.in_library:
            layer += tag("small", text(f"inside {row.op}", 80))
        where = str(at).rpartition(":")[0] if at.file and at.line else str(at)
        link = tag(
            "a",
            text(where, 80).replace("/", "/<wbr>"),
            href=f"#{self._line_of(site)}",
            class_="where",
        )
        key = f"{at.file} {at.line:08} {at.column:06}"
        yield tag("td", link, layer, data_key=key)
        yield tag("td", code(row.text, 60) if row.text else text(phrases.what(row)))
        yield tag("td", chip(row))
        worst = phrases.level(row)
        yield tag("td", text(phrases.loss(site)), data_key=list(phrases.MEANINGS).index(worst))
        yield _number("Bytes", phrases.size_text(size), _nominal(size))
        yield _number("Damage", f"{row.damage:.1e}" if row.damage else "", row.damage)
        if self.has_audit:
            yield from _measured_cells(site)
        if self.has_times:
            yield _number("Times", f"{site.times:,}", site.times)

    def _more(self, site: CastSite) -> str:
        row = site.row
        facts = (
            (name.capitalize(), text(value))
            for name, value in site_facts(site, self.report)
            if name != "loss"
        )
        pairs = (
            ("Operand", f"{text(phrases.what(row))}, {text(phrases.why(row))}"),
            *facts,
            ("Follows from", self._link(row.cause) if row.cause is not None else ""),
            ("Cascade", self._cascade(site)),
            ("Write", code(row.fix) if row.fix else ""),
        )
        return entries(pairs)

    def _link(self, row: CastRow) -> str:
        site = self.report.sites.of(row)
        anchor = self.anchors.get(site.row.place) if site else None
        label = text(f"{phrases.conversion(row)} at {row.location.layered}")
        return tag("a", label, href=f"#{anchor}") if anchor else label

    def _cascade(self, site: CastSite) -> str:
        """Return links to the first FOLLOWING consequences of a site, and the count of the rest."""
        following = [row for each in site.rows for row in self._following.get(each.place, ())]
        firsts: dict[int, CastRow] = {}
        for row in following:
            of = self.report.sites.of(row)
            if of is not None and of is not site:
                firsts.setdefault(of.row.place, row)
        links = [self._link(row) for row in list(firsts.values())[:FOLLOWING]]
        if len(firsts) > FOLLOWING:
            links.append(f"and {len(firsts) - FOLLOWING:,} more")
        return "<br>".join(links)


def _head(column: Column) -> str:
    button = tag("button", text(column.title), type="button", title=column.hint or None)
    order = "number" if column.numeric else "text"
    return tag("th", button, scope="col", aria_sort="none", data_order=order)


def _measured_cells(site: CastSite) -> Iterator[str]:
    measure = site.measured
    if measure is None:
        yield from (_number("Changed", "", -1), _number("Error", "", -1))
    else:
        share = measure.changed / measure.elements if measure.elements else 0
        yield _number("Changed", f"{measure.changed:,} of {measure.elements:,}", share)
        yield _number(
            "Error", f"{measure.relative:.1e}" if measure.changed else "", measure.relative
        )
    yield _number("Share", phrases.share(site), -1 if site.share is None else site.share)


def _number(label: str, value: str, key: float) -> str:
    return tag("td", text(value), class_="number", data_key=f"{key:.9g}", data_label=label)


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
        paragraphs([*phrases.unseen(report)[:LINES], phrases.headline(report)]),
        _first(list(map(phrases.output, report.outputs))),
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
    yield code(row.text or phrases.what(row), 60)
    yield tag("code", text(phrases.conversion(row)), class_=_mark(row), title=reason(site))
    if has_audit:
        measure = site.measured
        yield text(phrases.share(site))
        yield "" if measure is None else f"{measure.changed:,} of {measure.elements:,}"
    yield text(phrases.loss(site))
    yield text(phrases.size_text(site.bytes_added)) if phrases.widths(site) else ""
    if has_times:
        yield f"{site.times:,}"


def _mark(row: CastRow) -> str | None:
    if row.exact:
        return None
    return "grave" if phrases.level(row) in ("value", "range") else "lossy"


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
