"""The source listing of the HTML page: the lines with casts, with each cast operand marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from graphir.escape import printable
from graphir.markup import tag, text
from graphir.passes.reports import words
from graphir.passes.reports.markup import chip, reason
from graphir.passes.reports.places import SourceRegion, line_at, region

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport
    from graphir.passes.analysis.casts.sites import CastSite

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
            shade = f"{words.level(innermost.site.row)}{inner}"
            piece = tag("mark", piece, class_=shade, title=innermost.reason)
        parts.append(piece)
    return "".join(parts)
