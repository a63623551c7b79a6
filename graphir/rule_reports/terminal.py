"""Tables and sentences that fit the lines of a terminal."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TextIO

from graphir.display import count_text
from graphir.rule_reports.tables import aligned

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"

_OPTIONAL = ("bytes", "rule and path", "code", "kind", "share", "changed", "error", "times")
"""The columns that a narrow table leaves out, in this order."""
_LEAST = {"operand": 10, "loss": 10, "layer": 12}
"""The columns that a narrow table shortens, each with its least width."""
_ROOM = {"operand": 16, "loss": 16, "layer": 12}
"""The widths of these columns to which a narrow table shortens them before it omits others."""


def terminal_width(stream: TextIO | None) -> int | None:
    """Return the columns of a stream that is a terminal; None of other streams."""
    if stream is None or not stream.isatty():
        return None
    return shutil.get_terminal_size().columns


def on_screen(text: str, stream: TextIO | None) -> str:
    """Return a text for a stream: if it is a terminal, each line in lines that fit it."""
    width = terminal_width(stream)
    return "\n".join(part for line in text.split("\n") for part in wrapped(line, width))


def wrapped(line: str, width: int | None) -> list[str]:
    """Return a line as lines of at most `width` characters; None is no limit.

    The further lines start below the last cell that leaves them half of the width. An edit is code
    to type, and stays one line.
    """
    if width is None or len(line) <= width or line.startswith(_EDITS):
        return [line]
    if _ANSI.search(line):
        return _hanging_colored(line, width)
    starts = [gap.end() for gap in re.finditer(r"(^|(?<=\S)) {2,}(?=\S)", line)]
    indent = max((start for start in starts if 2 * start <= width), default=0)
    further = " " * (indent or 2)
    return textwrap.wrap(line, width, subsequent_indent=further, break_on_hyphens=False)


_EDITS = ("  write", "  and in ", "  and: ", "    write: ")
"""How the line of an edit starts: see Sentence, and the report of the pytest plugin."""


def _hanging_colored(line: str, width: int) -> list[str]:
    """Return a line with colours as lines, broken at single spaces of text."""
    lines, size = [""], 0
    for word in re.split(r"(?<=\S) (?=\S)", line):
        length = len(_ANSI.sub("", word))
        if size and size + 1 + length > width:
            lines.append("  " + word)
            size = 2 + length
        else:
            lines[-1] += " " * bool(size) + word
            size += bool(size) + length
    return lines


_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def fitted(
    rows: Sequence[Sequence[str]],
    width: int | None,
    hidden: int = 0,
    headings: Mapping[int, str] = MappingProxyType({}),
) -> list[str]:
    """Return a table, whose first row has the titles, as lines of at most `width` characters.

    A narrow table leaves columns out and says so, then shortens operands, losses and layers. Files
    and lines stay whole: a place that leaves too little room has a line of its own above its row.
    None is no limit. `hidden` is the number of rows that the table lacks, which it says too, and
    `headings` are lines above rows, by number.
    """
    more = [f"{count_text(hidden, 'more row')}: -v"] if hidden else []
    if not rows:
        return []
    if width is None:
        return "\n".join([*_headed(aligned(rows), headings), *(f"({x})" for x in more)]).split("\n")
    columns = dict(zip(rows[0], zip(*rows, strict=True), strict=True))
    least, room = dict(_LEAST), dict(_ROOM)
    above: dict[int, str] = {}
    if "where" in columns:
        others = {x: cells for x, cells in columns.items() if x not in (*_OPTIONAL, "where")}
        most = _slack(others, _LEAST) - _excess(others, width) - 2
        places = [_whole_place(cell) for cell in columns["where"]]
        above = {row: place for row, place in enumerate(places) if len(place) > most}
        cells = ("" if row in above else x for row, x in enumerate(columns["where"]))
        columns["where"] = tuple(cells)
        least["where"] = room["where"] = max((len(x) for x in places if len(x) <= most), default=0)
    left_out = [title for title in _OPTIONAL if title in columns]
    omitted: list[str] = []
    while left_out and _excess(columns, width) > _slack(columns, room):
        omitted.append(left_out.pop(0))
        del columns[omitted[-1]]
    least = least if _excess(columns, width) > _slack(columns, room) else room
    while (excess := _excess(columns, width)) > 0 and _slack(columns, least):
        present = [title for title in least if title in columns]
        longest = max(present, key=lambda title: _width(columns[title]) - least[title])
        size = max(_width(columns[longest]) - excess, least[longest])
        cut = short_place if longest in ("where", "layer") else _cut
        columns[longest] = tuple(cut(cell, size) for cell in columns[longest])
    more = [f"columns without room: {', '.join(omitted)}", *more] if omitted else more
    note = wrapped(f"({'; '.join(more)})", width) if more else []
    lines = [line[:width] for line in aligned(list(zip(*columns.values(), strict=True)))]
    lines = _headed(_headed(lines, above), headings)
    return [*"\n".join(lines).split("\n"), *note]


def _headed(lines: Sequence[str], headings: Mapping[int, str]) -> list[str]:
    """Return lines with others above some of them, by number; these share one string each."""
    return [f"{headings[row]}\n{x}" if row in headings else x for row, x in enumerate(lines)]


def _whole_place(cell: str) -> str:
    """Return a place without its layer."""
    match = _PLACE.fullmatch(cell)
    return cell[: match.end(2)] if match else cell


def _width(column: Sequence[str]) -> int:
    return max(map(len, column))


def _excess(columns: dict[str, tuple[str, ...]], width: int) -> int:
    return sum(map(_width, columns.values())) + 2 * (len(columns) - 1) - width


def _slack(columns: dict[str, tuple[str, ...]], least: Mapping[str, int]) -> int:
    """Return by how many characters the columns can become shorter."""
    present = [title for title in least if title in columns]
    return sum(max(_width(columns[title]) - least[title], 0) for title in present)


def _cut(cell: str, size: int) -> str:
    return cell if len(cell) <= size else cell[: size - 1] + ELLIPSIS


def short_place(text: str, size: int) -> str:
    """Return a place in at most `size` characters, if its line and columns fit, which stay whole.

    It loses its layer, then the middle of its path, the file name last.
    """
    path, end, layer = _PLACE.fullmatch(text).groups("")  # pyright: ignore -- matches any text
    room = size - len(end)
    if len(path) + len(layer) <= room:
        return text
    if len(path) > room:
        name = len(path) - path.rfind("/")
        last = max(min(name, room - 2), room // 2)
        path = path[: max(room - 1 - last, 0)] + ELLIPSIS + path[len(path) - last :]
    room -= len(path) + len(" []")
    layer = f" [{ELLIPSIS}{layer[-room:-1]}]" if layer and room > 4 else ""
    return path + end + layer


_PLACE = re.compile(r"(.*?)((?::\d+(?::\d+(?:-\d+)?)?)?)( \[.*\])?", re.DOTALL)
"""A path, its line and columns, its layer."""
