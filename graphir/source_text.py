"""The source files and notebook cells of user programs. This module alone reads their lines.

A path reaches this module in two ways. The path of running code is the path from which Python
itself loaded the code. A file name in a parsed text passes through `path_under`, which confines it
to a directory that the user chose.
"""

from __future__ import annotations

import ast
import linecache
import os
import stat
import sys
import tokenize
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from io import StringIO

MOST_LINES = 20_000
"""The most lines of a file that are parsed."""

LARGEST = 1 << 24
"""The most bytes of a source file whose lines this module reads."""


def source_line(path: str, number: int) -> str:
    """Return a line of a source file with its line end; empty where the source is unavailable.

    Lines count from 1. Only regular files of at most LARGEST bytes are read, so that no device and
    no FIFO can block.
    """
    return linecache.getline(path, number) if path and _is_readable(path) else ""


def source_tree(path: str) -> ast.Module | None:
    """Return the syntax tree of a source file; None if it is unavailable or does not parse.

    Equal texts have one tree.
    """
    lines = linecache.getlines(path) if path and _is_readable(path) else []
    return _tree_of("".join(lines[:MOST_LINES])) if lines else None


@lru_cache(maxsize=64)
def _tree_of(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def comments(path: str, containing: str = "") -> Mapping[int, str]:
    """Return the comments of a source file by line: of a file that contains a text, else none.

    A file that is no Python up to its end has those before the error. Equal texts have one result.
    """
    text = "".join(linecache.getlines(path)) if path and _is_readable(path) else ""
    return _comments_of(text) if text and containing in text else {}


@lru_cache(maxsize=16)
def _comments_of(text: str) -> Mapping[int, str]:
    found: dict[int, str] = {}
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                found[token.start[0]] = token.string
    return found


def path_under(directory: str | os.PathLike[str], file: str) -> str:
    """Return the resolved path of a file below a directory.

    The path is empty for a file outside the directory, also when a symbolic link leads outside.
    """
    try:
        root = os.path.realpath(directory)
        path = os.path.realpath(os.path.join(root, file))
    except (OSError, ValueError):  # a NUL in the name, say
        return ""
    return path if path.startswith(os.path.join(root, "")) else ""


def displayed_path(path: str) -> str:
    """Return a path for display: relative to the working directory when inside it.

    For the code of a notebook's cell it is `In[3]`, the label of the cell.
    """
    if cell := _cell_label(path):
        return cell
    try:
        here = os.path.join(os.getcwd(), "")
    except OSError:  # the working directory was removed
        return path
    return path.removeprefix(here)


def is_cell(file: str) -> bool:
    """Answer whether the display path of a file is the label of a notebook's cell."""
    return file.startswith("In[") and file.endswith("]")


def _cell_label(path: str) -> str:
    """Return the label of the IPython cell whose code has a path; "" for every other path.

    The number is that of the last execution of the cell's text, as in the tracebacks of IPython.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    return (name_of(path) or ("", ""))[1] if name_of else ""


def _is_readable(path: str) -> bool:
    """Answer whether reading a file is sure to end.

    That holds where linecache has the lines, or the file is regular and not too large.
    """
    if path in linecache.cache:
        return True
    try:
        status = os.stat(path)
    except OSError:
        return not os.path.isabs(path)  # linecache looks for a relative path along sys.path
    except ValueError:  # NUL or a lone surrogate
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST


# -- Find where an assignment statement ends
#
# CPython's position table has, for a store to `x[i]` or `x.a`, the place of the target alone. This
# module reads the source from that target on, one line more at a time, until `ast` parses a
# statement; the statement's end is the assignment's end.

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
