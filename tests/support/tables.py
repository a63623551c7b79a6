"""Golden tables as tests/golden keeps them: short names in columns, the first row their heads."""

from __future__ import annotations

from collections.abc import Mapping


def cells(table: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """What each row and column has, by their names; `-` is an error."""
    rows = {row: line.split() for row, line in table.items()}
    columns = rows.pop("")
    return {
        (row, column): cell
        for row, line in rows.items()
        for column, cell in zip(columns, line, strict=True)
    }
