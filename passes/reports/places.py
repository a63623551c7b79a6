"""Source regions of cast report rows: the lines and columns of the cast operand."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from graphir.location import Location
from graphir.source_text import source_line

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastRow


class SourceRegion(NamedTuple):
    """A region of a source file; lines and columns count from 1, in characters, end exclusive.

    `source` is the path of the readable source file, or "" without one.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    source: str = ""

    @property
    def is_known(self) -> bool:
        """Whether the region is known: it holds at least one character."""
        return (self.line, self.column) < (self.end_line, self.end_column)

    def columns(self, line: int, text: str) -> tuple[int, int]:
        """Return the region's part of a line, as (start, end) offsets in the line's `text`."""
        start = self.column - 1 if line == self.line else len(text) - len(text.lstrip())
        end = self.end_column - 1 if line == self.end_line else len(text)
        return min(start, len(text)), min(end, len(text))


def whole(location: Location) -> SourceRegion:
    """Return the region of the whole expression at a location."""
    ends = location.end_line, location.end_column
    return SourceRegion(location.file, location.line, location.column, *ends, location.source)


def region(row: CastRow) -> SourceRegion:
    """Return the region of the cast operand, or of the expression if the operand's is unknown."""
    expression, (start, end), location = row.expression, row.span, row.location
    if expression is None or start == end:
        return whole(location)
    first, last = (
        _advance(location, expression.text[:start]),
        _advance(location, expression.text[:end]),
    )
    return SourceRegion(location.file, *first, *last, location.source)


def line_of(place: SourceRegion) -> str:
    """Return the first line of a region without its line break; "" if there is no source."""
    return line_at(place.source, place.line)


def line_at(source: str, number: int) -> str:
    """Return a line of a source file without its line break; "" if there is no source."""
    return source_line(source, number).rstrip("\r\n")


def _advance(location: Location, text: str) -> tuple[int, int]:
    """Return the (line, column) after a text that begins at a location."""
    breaks = text.count("\n")
    if not breaks:
        return location.line, location.column + len(text)
    return location.line + breaks, len(text) - text.rfind("\n")
