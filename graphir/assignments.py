"""Find where an assignment statement ends.

CPython's position table has, for a store to `x[i]` or `x.a`, the place of the target alone. This
module reads the source from that target on, one line more at a time, until `ast` parses a
statement; the statement's end is the assignment's end.
"""

from __future__ import annotations

import ast

from graphir.source_text import source_line

_MOST_LINES = 50


def assignment_end(file: str, line: int, column: int) -> tuple[int, int] | None:
    """Return the end of the assignment whose target starts at a line and column of a file.

    The end is the statement's last line and the column after its last character. Lines and columns
    count from 1. The result is None where the target is not the only target of an assignment there,
    as in `x[0], y[0] = ...`.
    """
    first = source_line(file, line)
    before = first[: column - 1].rstrip()
    if before and before[-1] not in "=;:":
        return None
    text = first[column - 1 :]
    for number in range(line + 1, line + 1 + _MOST_LINES):
        if (statement := _parse(text)) is not None:
            return _end(statement, text, line, column)
        text += source_line(file, number)
    return None


def _parse(text: str) -> ast.stmt | None:
    try:
        return next(iter(ast.parse(text).body), None)
    except (SyntaxError, ValueError):
        return None


def _end(statement: ast.stmt, text: str, line: int, column: int) -> tuple[int, int] | None:
    match statement:
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute(), *_]) | ast.AugAssign():
            pass
        case _:
            return None
    below = (statement.end_lineno or 1) - 1
    last = text.split("\n")[below].encode()[: statement.end_col_offset]
    characters = len(last.decode(errors="replace"))
    return line + below, characters + (1 if below else column)
