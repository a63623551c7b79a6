"""The lines of the program in which casts arise, each operand marked where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from graphir.printable import printable
from passes.reports import words
from passes.reports.markup import chip, reason, tag, text
from passes.reports.places import Region, line_at, region
from passes.reports.sharing import Shared

if TYPE_CHECKING:
    from passes.casts import CastReport, CastRow

CONTEXT = 2
"""The lines shown before and after one with casts."""

WIDTH = 1000
"""The characters shown of a line."""

LINES = 3000
"""The most lines with casts shown of a file; first those to which rows on the page lead."""


class Site(NamedTuple):
    """Rows that stand in one region and are alike but for where they come from."""

    place: Region
    rows: list[CastRow]

    @property
    def row(self) -> CastRow:
        """The worst of them."""
        return self.rows[0]


class Listing:
    """The sites of a report by file and line, each line with an anchor of its own."""

    def __init__(self, report: CastReport) -> None:
        self.files: dict[str, dict[int, list[Site]]] = {}
        self._sources: dict[str, str] = {}
        self._further: dict[tuple[str, int], list[Site]] = {}  # on lines after their first
        sites: dict[tuple[Region, int], Site] = {}
        find = Shared(region)
        for row in report:
            place = find(row)
            site = sites.get((place, id(row.conversion)))
            if site is None:
                site = sites[place, id(row.conversion)] = Site(place, [])
                self.files.setdefault(place.file, {}).setdefault(place.line, []).append(site)
                self._sources.setdefault(place.file, place.source)
                for line in range(place.line + 1, min(place.end_line, place.line + CONTEXT) + 1):
                    self._further.setdefault((place.file, line), []).append(site)
            site.rows.append(row)
        self._numbers = {file: number for number, file in enumerate(sorted(self.files))}
        self._find = find

    def anchor(self, row: CastRow) -> str:
        """The id of the line that a row stands in."""
        place = self._find(row)
        return self._id(place.file, place.line)

    def html(self, anchors: Mapping[int, str]) -> str:
        """All files; `anchors` are the ids of rows elsewhere on the page, by the place of a row."""
        return "\n".join(self._file(file, anchors) for file in self._numbers)

    def _id(self, file: str, line: int) -> str:
        return f"l{self._numbers[file]}-{line}"

    def _file(self, file: str, anchors: Mapping[int, str]) -> str:
        hit = self.files[file]
        first = sorted(hit, key=lambda line: (not _linked(hit[line], anchors), line))
        shown = _around(self._sources[file], first[:LINES])
        lines = "\n".join(self._lines(file, shown, anchors))
        more = len(hit.keys() - set(shown))
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
        sites = self.files[file].get(number, [])
        written = line_at(self._sources[file], number)
        chips = [_chip(site, anchors) for site in sorted(sites, key=lambda site: site.place)]
        return tag(
            "li",
            tag("span", str(number), class_="number"),
            tag("code", _marked(written, number, [*sites, *self._further.get((file, number), ())])),
            tag("span", *chips, class_="chips") if chips else "",
            id=self._id(file, number) if sites else None,
            class_="hit" if sites else None,
            tabindex="-1" if sites else None,
        )


def _linked(sites: Sequence[Site], anchors: Mapping[int, str]) -> bool:
    return any(row.place in anchors for site in sites for row in site.rows)


def _around(source: str, hit: Sequence[int]) -> list[int]:
    """The lines that have casts, and those around them that are there."""
    near = {at for line in hit for at in range(line - CONTEXT, line + CONTEXT + 1)}
    return sorted({*hit, *(at for at in near if at > 0 and line_at(source, at).strip())})


def _chip(site: Site, anchors: Mapping[int, str]) -> str:
    anchor = anchors.get(site.row.place)
    href = f"#{anchor}" if anchor else None
    return chip(site.row, len(site.rows), href=href, title=reason(site.row))


def _marked(written: str, number: int, sites: Sequence[Site]) -> str:
    """A line with its operands marked, the innermost where they lie in one another."""
    written = written[:WIDTH]
    spans = [(*site.place.columns(number, written), site) for site in sites if site.place.known]
    cuts = sorted({0, len(written), *(at for start, end, _ in spans for at in (start, end))})
    parts: list[str] = []
    for start, end in pairwise(cuts):
        piece = escape(printable(written[start:end], None, keep="\t"))
        over = [(b - a, site) for a, b, site in spans if a <= start and end <= b]
        if over:
            site = min(over, key=lambda one: one[0])[1]
            inner = " inner" if len(over) > 1 else ""
            shade = f"{words.level(site.row)}{inner}"
            piece = tag("mark", piece, class_=shade, title=reason(site.row))
        parts.append(piece)
    return "".join(parts)
