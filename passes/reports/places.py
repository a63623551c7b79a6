"""Where in the program the casts of a report stand: regions of lines, to the very operand."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from graphir.location import Location
from graphir.source_text import source_line

if TYPE_CHECKING:
    from passes.analysis.casts import CastRow


class SourceRegion(NamedTuple):
    """A stretch of a source file: lines and columns from 1 in characters, the end exclusive.

    `source` is the path from which its lines may be read, empty where there is none.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    source: str = ""

    @property
    def known(self) -> bool:
        """Whether it holds any characters."""
        return (self.line, self.column) < (self.end_line, self.end_column)

    def columns(self, line: int, text: str) -> tuple[int, int]:
        """The part of a line that is in it, as offsets in the text of the line."""
        start = self.column - 1 if line == self.line else len(text) - len(text.lstrip())
        end = self.end_column - 1 if line == self.end_line else len(text)
        return min(start, len(text)), min(end, len(text))


def whole(location: Location) -> SourceRegion:
    """The region of what is computed at a location."""
    ends = location.end_line, location.end_column
    return SourceRegion(location.file, location.line, location.column, *ends, location.source)


def region(row: CastRow) -> SourceRegion:
    """The region of the operand that is cast, where it is known; else of what it is used in."""
    expression, (start, end), location = row.expression, row.span, row.location
    if expression is None or start == end:
        return whole(location)
    first, last = (
        _advance(location, expression.text[:start]),
        _advance(location, expression.text[:end]),
    )
    return SourceRegion(location.file, *first, *last, location.source)


def line_of(place: SourceRegion) -> str:
    """The first line of a region, without its end; empty where the source is not at hand."""
    return line_at(place.source, place.line)


def line_at(source: str, number: int) -> str:
    """A line of a source file, without its end; empty where the source is not at hand."""
    return source_line(source, number).rstrip("\r\n")


def _advance(location: Location, text: str) -> tuple[int, int]:
    """The line and column after a text that begins at a location."""
    breaks = text.count("\n")
    if not breaks:
        return location.line, location.column + len(text)
    return location.line + breaks, len(text) - text.rfind("\n")
