"""The table of a page: a row for each cast, which unfolds to all that is said of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from graphir.dims import Dim, Size
from passes.reports import words
from passes.reports.listing import Listing
from passes.reports.markup import chip, code, entries, tag, text

if TYPE_CHECKING:
    from passes.casts import CastReport, CastRow

FOLLOWING = 5
"""How many of the casts that follow from another are named."""


class Column(NamedTuple):
    """A column: its title, and whether it is sorted by number, the greatest first."""

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
AUDITED = (
    Column("Changed", True, "elements that the cast changed in the run"),
    Column("Error", True, "the largest relative error of an element in the run"),
    Column("Share", True, "of the error of an output"),
)


class Table:
    """The rows of a report as a table; each has an id, `anchors`, by its place."""

    def __init__(self, report: CastReport, listing: Listing, most: int) -> None:
        self.report, self.listing, self.audited = report, listing, report.audited
        self.shown: Sequence[CastRow] = report[:most]
        self.anchors: Mapping[int, str] = {row.place: f"c{i}" for i, row in enumerate(self.shown)}
        self._following = report.following()

    def html(self) -> str:
        """The table."""
        columns = (*COLUMNS, *AUDITED) if self.audited else COLUMNS
        heads = [
            tag("th", tag("span", "details", class_="unseen"), scope="col"),
            *map(_head, columns),
        ]
        bodies = "\n".join(self._body(row, len(columns) + 1) for row in self.shown)
        head = tag("thead", tag("tr", *heads))
        return tag("table", head, "\n", bodies, id="table")

    def _body(self, row: CastRow, columns: int) -> str:
        anchor, worst = self.anchors[row.place], words.level(row)
        toggle = tag(
            "button",
            type="button",
            class_="toggle",
            aria_expanded="false",
            aria_controls=f"{anchor}-more",
            aria_label=f"details of {words.conversion(row)}",
        )
        cells = [tag("td", toggle), *self._cells(row)]
        more = tag("td", self._more(row), colspan=columns, class_="whole")
        return tag(
            "tbody",
            tag("tr", *cells, class_="cast"),
            tag("tr", more, class_="more", id=f"{anchor}-more"),
            id=anchor,
            tabindex="-1",
            data_loss=worst,
        )

    def _cells(self, row: CastRow) -> Iterator[str]:
        at = row.location
        layer = tag("small", text(row.layer, 80)) if row.layer else ""
        where = f"{at.file}:{at.line}" if at.file else f"line {at.line}"
        link = tag(
            "a",
            text(where, 80).replace("/", "/<wbr>"),
            href=f"#{self.listing.anchor(row)}",
            class_="where",
        )
        key = f"{at.file} {at.line:08} {at.column:06}"
        yield tag("td", link, layer, data_key=key)
        yield tag("td", code(row.text, 60) if row.text else text(words.what(row)))
        yield tag("td", chip(row))
        worst = words.level(row)
        yield tag("td", text(row.loss), data_key=list(words.MEANINGS).index(worst))
        yield _number("Bytes", words.size_text(row.bytes_added), _nominal(row.bytes_added))
        yield _number("Damage", f"{row.damage:.1e}" if row.damage else "", row.damage)
        if self.audited:
            yield from _measured(row)

    def _more(self, row: CastRow) -> str:
        shares = ", ".join(words.shares(row, self.report))
        pairs = (
            ("Operand", f"{text(words.what(row))}, {text(words.why(row))}"),
            ("Bytes", text(words.widths(row))),
            ("Measured", text(", ".join(words.measured(row)))),
            ("Share", text(shares)),
            ("Elsewhere", "<br>".join(_answers(row))),
            ("Follows from", self._link(row.cause) if row.cause is not None else ""),
            ("Cascade", self._cascade(row)),
            ("Write", code(row.fix) if row.fix else ""),
        )
        return entries(pairs)

    def _link(self, row: CastRow) -> str:
        anchor = self.anchors.get(row.place)
        told = text(f"{words.conversion(row)} at {row.location.layered}")
        return tag("a", told, href=f"#{anchor}") if anchor else told

    def _cascade(self, row: CastRow) -> str:
        rows = self._following.get(row.place, ())
        links = [self._link(one) for one in rows[:FOLLOWING]]
        if len(rows) > FOLLOWING:
            links.append(f"and {len(rows) - FOLLOWING:,} more")
        return "<br>".join(links)


def _head(column: Column) -> str:
    button = tag("button", text(column.title), type="button", title=column.hint or None)
    order = "number" if column.numeric else "text"
    return tag("th", button, scope="col", aria_sort="none", data_order=order)


def _measured(row: CastRow) -> Iterator[str]:
    one = row.measured
    if one is None:
        yield from (_number("Changed", "", -1), _number("Error", "", -1))
    else:
        share = one.changed / one.elements if one.elements else 0
        yield _number("Changed", f"{one.changed:,} of {one.elements:,}", share)
        yield _number("Error", f"{one.relative:.1e}" if one.changed else "", one.relative)
    yield _number("Share", words.percent(row.share) if row.shares else "", row.share)


def _number(label: str, told: str, key: float) -> str:
    return tag("td", text(told), class_="number", data_key=f"{key:.9g}", data_label=label)


def _answers(row: CastRow) -> Iterator[str]:
    for answer, names in words.answers(row).items():
        yield f"{tag('b', text(answer))} {text(', '.join(names))}"


def _nominal(size: Size) -> float:
    """A number to sort by: sizes that are not known yet count as a thousand."""
    return size.evaluate(dict.fromkeys(size.names(), 1000)) if isinstance(size, Dim) else size
