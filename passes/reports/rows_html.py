"""The table of the HTML page: a row for each cast site, which unfolds to its details."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from graphir.markup import code, entries, tag, text
from graphir.ops.dims import Dim, Size
from graphir.passes.reports import words
from graphir.passes.reports.listing import Listing
from graphir.passes.reports.markup import chip

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport, CastRow
    from graphir.passes.analysis.casts.sites import CastSite

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

    def __init__(self, report: CastReport, listing: Listing, most: int) -> None:
        self.report, self.listing, self.has_audit = report, listing, report.audited
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
        anchor, worst = self.anchors[row.place], words.level(row)
        toggle = tag(
            "button",
            type="button",
            class_="toggle",
            aria_expanded="false",
            aria_controls=f"{anchor}-more",
            aria_label=f"details of {words.conversion(row)}",
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
            href=f"#{self.listing.anchor(site)}",
            class_="where",
        )
        key = f"{at.file} {at.line:08} {at.column:06}"
        yield tag("td", link, layer, data_key=key)
        yield tag("td", code(row.text, 60) if row.text else text(words.what(row)))
        yield tag("td", chip(row))
        worst = words.level(row)
        yield tag("td", text(words.loss(site)), data_key=list(words.MEANINGS).index(worst))
        yield _number("Bytes", words.size_text(size), _nominal(size))
        yield _number("Damage", f"{row.damage:.1e}" if row.damage else "", row.damage)
        if self.has_audit:
            yield from _measured_cells(site)
        if self.has_times:
            yield _number("Times", f"{site.times:,}", site.times)

    def _more(self, site: CastSite) -> str:
        row, shares = site.row, ", ".join(words.shares(site, self.report))
        pairs = (
            ("Operand", f"{text(words.what(row))}, {text(words.why(row))}"),
            ("Times", text(words.uses(site)) if site.times > 1 else ""),
            ("Bytes", text(words.widths(site))),
            ("Measured", text(", ".join(words.measured(site)))),
            ("Share", text(shares)),
            ("Elsewhere", "<br>".join(_answers(row))),
            ("Follows from", self._link(row.cause) if row.cause is not None else ""),
            ("Cascade", self._cascade(site)),
            ("Write", code(row.fix) if row.fix else ""),
        )
        return entries(pairs)

    def _link(self, row: CastRow) -> str:
        site = self.report.sites.of(row)
        anchor = self.anchors.get(site.row.place) if site else None
        label = text(f"{words.conversion(row)} at {row.location.layered}")
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
    yield _number("Share", words.share(site), -1 if site.share is None else site.share)


def _number(label: str, value: str, key: float) -> str:
    return tag("td", text(value), class_="number", data_key=f"{key:.9g}", data_label=label)


def _answers(row: CastRow) -> Iterator[str]:
    for answer, names in words.answers(row).items():
        yield f"{tag('b', text(answer))} {text(', '.join(names))}"


def _nominal(size: Size) -> float:
    """Return a size as a sort key: each symbolic dim counts as 1000."""
    return size.evaluate(dict.fromkeys(size.names(), 1000)) if isinstance(size, Dim) else size
