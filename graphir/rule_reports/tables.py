"""Promotion tables as text, Markdown and JSON, and as a fragment of HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Literal, TypeAlias

from graphir.display import count_text, fragment, paragraphs, tag, text
from graphir.dtypes import DType
from graphir.promotion.rules import PromotionRules

Table: TypeAlias = dict[DType, dict[DType, DType | None]]
Loss: TypeAlias = Literal["exact", "loses", "raises"]

ABSENT = "-"
"""The cell text of a pair that has no common dtype."""


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Format rows of equal length as lines, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def ordered(rules: PromotionRules) -> Table:
    """Return the table of all pairs by row and column, in the order of DType.

    A cell is None where the pair raises.
    """
    table = rules.table()
    order = [dtype for dtype in DType if dtype in table]
    return {a: {b: table[a][b] for b in order} for a in order}


def unlike(table: Table) -> list[tuple[DType, DType]]:
    """Return the asymmetric pairs, each once: swapped operands give another result."""
    return [(a, b) for a, b in combinations(table, 2) if table[a][b] is not table[b][a]]


def text_table(rules: PromotionRules, color: bool = False, width: int | None = None) -> str:
    """Return the table as text: short names in aligned columns, then the pairs of each kind.

    With `color` the colour of a cell shows its loss, and cells of asymmetric pairs are underlined.
    Where the columns exceed `width` characters, the lines go on in further blocks of columns.
    """
    return _table_text(ordered(rules), color, width)


def _table_text(table: Table, color: bool = False, width: int | None = None) -> str:
    blocks = [_block(table, columns, color) for columns in _columns_of_blocks(table, width)]
    lines = [line for block in blocks for line in ("", *block)][1:]
    return "\n".join([*lines, "", *table_notes(table, color)])


def _columns_of_blocks(table: Table, width: int | None) -> list[list[DType]]:
    """Return the columns of each block of a table, as many as fit the width, and at least one."""
    widest = max(
        len(name) for row in table.values() for name in map(short_name, (*row, *row.values()))
    )
    count = len(table) if width is None else max(1, (width - widest) // (widest + 2))
    columns = [*table]
    return [columns[start : start + count] for start in range(0, len(columns), count)]


def _block(table: Table, columns: Sequence[DType], color: bool) -> list[str]:
    """Return the lines of some columns of a table."""
    rows = [(a.short, *(short_name(row[b]) for b in columns)) for a, row in table.items()]
    lines = aligned([("", *(b.short for b in columns)), *rows])
    if color:
        pairs = zip(lines[1:], table, strict=True)
        lines[1:] = [_paint(line, a, columns, table) for line, a in pairs]
    return lines


def brief_table(table: Table) -> tuple[Table, str]:
    """Return a table in the order of DType, and a note; one of many dtypes without narrow ones."""
    order = [dtype for dtype in DType if dtype in table]
    usual = [dtype for dtype in order if not dtype.narrow] if len(order) > _MANY else order
    more = len(order) - len(usual)
    note = f"and {count_text(more, 'narrow dtype')}" if more else ""
    return {a: {b: table[a][b] for b in usual} for a in usual}, note


_MANY = 21  # more dtypes than this number do not fit a line of a terminal


def brief_text(table: Table) -> str:
    """Return `brief_table` as text."""
    part, note = brief_table(table)
    return "\n".join([_table_text(part), *([note] if note else [])])


def table_notes(table: Table, color: bool = False) -> list[str]:
    """Return lines with the number of pairs of each kind of loss, and of asymmetric pairs."""
    phrases = [_ansi(_ANSI[loss], text) if color else text for loss, text in counts(table).items()]
    return [f"{count_text(len(table) ** 2, 'pair')}: {', '.join(phrases)}", *asymmetry(table)]


def _paint(line: str, a: DType, columns: Sequence[DType], table: Table) -> str:
    """Colour the cells of a table's line, except the first cell, by their loss."""
    pieces = re.split(r"( +)", line)
    for place, b in zip(range(2, len(pieces), 2), columns, strict=True):
        cell = table[a][b]
        style = _ANSI[loss_of(a, b, cell)] + (_UNDERLINE if cell is not table[b][a] else "")
        pieces[place] = _ansi(style, pieces[place])
    return "".join(pieces)


def counts(table: Table) -> dict[Loss, str]:
    """Return a phrase with the number of cells, for each kind of loss."""
    losses = [loss_of(a, b, cell) for a, row in table.items() for b, cell in row.items()]
    return {loss: f"{losses.count(loss)} {meaning}" for loss, meaning in MEANINGS.items()}


def asymmetry(table: Table) -> list[str]:
    """Return a note on the number of asymmetric pairs; empty for a symmetric table."""
    pairs = unlike(table)
    note = f"row = lhs, column = rhs; not symmetric in {count_text(len(pairs), 'pair')}"
    return [note] if pairs else []


def _ansi(style: str, text: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m"


def markdown_table(rules: PromotionRules) -> str:
    """Return the table in GitHub's Markdown, in full names."""
    table = ordered(rules)
    lines = [("", *map(str, table)), ("---",) * (len(table) + 1)]
    lines += [(f"**{a}**", *map(cell_name, row.values())) for a, row in table.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


VERSION = 1
"""The version of the JSON documents of tables and differences.

It changes where readers of the old version would fail.
"""


def json_table(rules: PromotionRules) -> str:
    """Return JSON: `{"version", "rules", "source", "dtypes", "table": {row: {column: dtype}}}`.

    A cell is null where the pair raises.
    """
    table = {
        str(a): {str(b): None if cell is None else str(cell) for b, cell in row.items()}
        for a, row in ordered(rules).items()
    }
    names = {"version": VERSION, "rules": rules.name, "source": rules.source, "dtypes": list(table)}
    return json.dumps({**names, "table": table}, indent=2)


def html_grid(table: Table) -> str:
    """Return a table of short names in HTML, whose cells have a class by their loss."""
    heads = tag(
        "tr", tag("th"), *(tag("th", text(b.short), scope="col", title=str(b)) for b in table)
    )
    rows = (
        tag("tr", tag("th", text(a), scope="row"), *(_html_cell(a, b, table) for b in row))
        for a, row in table.items()
    )
    return tag("table", tag("thead", heads), tag("tbody", "\n".join(rows)), class_="grid")


FORMATS: dict[str, Callable[[PromotionRules], str]] = {
    "text": text_table,
    "markdown": markdown_table,
    "json": json_table,
}
"""The functions that format a rule set's table, by the name of the format."""


def cell_name(cell: DType | None) -> str:
    """Return the full name of a table's cell."""
    return ABSENT if cell is None else str(cell)


def short_name(cell: DType | None) -> str:
    """Return the short name of a table's cell."""
    return ABSENT if cell is None else cell.short


def loss_of(a: DType, b: DType, cell: DType | None) -> Loss:
    """Return the kind of loss of a table's cell."""
    if cell is None:
        return "raises"
    return "exact" if a.exact_in(cell) and b.exact_in(cell) else "loses"


def _html_cell(a: DType, b: DType, table: Table) -> str:
    cell = table[a][b]
    return tag("td", text(short_name(cell)), class_=loss_of(a, b, cell))


MEANINGS: dict[Loss, str] = {
    "exact": "hold every value of both",
    "loses": "can lose values",
    "raises": "do not mix (-)",
}
"""What the cells of a kind of loss are."""
COLORS: dict[Loss, str] = {"exact": "#d9f0dd", "loses": "#ffe2b3", "raises": "#e3e3e8"}
"""The fill colour of a cell, by its loss."""

_ANSI: dict[Loss, str] = {"exact": "32", "loses": "33", "raises": "90"}
_UNDERLINE = ";4"


# -- notebooks


def table_fragment(table: Table) -> str:
    """Return a table of short names, coloured by loss; one of many dtypes without narrow ones."""
    return fragment(*table_parts(table))


def table_parts(table: Table) -> tuple[str, str]:
    """Return the elements of a table: its grid, and its notes."""
    part, note = brief_table(table)
    notes = paragraphs([*table_notes(part), *([note] if note else [])])
    return tag("div", html_grid(part), class_="scroll"), notes
