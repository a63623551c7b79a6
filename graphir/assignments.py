"""The whole of an assignment, of which Python tells the place of each target alone."""

from __future__ import annotations

import ast

from graphir.source_text import source_line

_MOST_LINES = 50


def assignment_end(file: str, line: int, column: int) -> tuple[int, int] | None:
    """The line and the column after the assignment whose target is at a place, counted from 1.

    None where no assignment to that target alone is there: of `x[0], y[0] = ...`, say.
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
