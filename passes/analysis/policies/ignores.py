"""Comments of a program that accept findings: `# graphir: ignore[cast/precision]`.

A comment accepts the findings of its codes that begin on its line; without codes, all of them. An
operand on a further line of its expression counts as on that line too. A comment is a token of
Python: the same text inside of a string accepts nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from difflib import get_close_matches
from typing import NamedTuple, get_args

from graphir.display import printable
from graphir.drawing.loss_levels import LEVELS
from graphir.location import Location
from graphir.passes.analysis.casts.conversion import StepLoss
from graphir.public import Symbol
from graphir.source_text import comments, source_line, source_tree

CODES = (
    *(f"cast/{level}" for level in LEVELS),
    *(f"loss/{kind}" for kind in get_args(StepLoss)),
    *("audit/unseen", "cause/dtype", "cause/value"),
)
"""The codes that a comment may name."""

_MARK = "graphir: ignore"
_COMMENT = re.compile(rf"#\s*{_MARK}\b\s*(?:\[([^\]]*)(\])?)?")


class UnusedIgnore(NamedTuple):
    """A comment that accepts nothing, or a code of it: its place, and the text about it.

    The code of a comment without codes is "".
    """

    file: str
    line: int
    code: str
    text: str

    def is_used(self, accepted: Iterable[tuple[str, int, str]]) -> bool:
        """Whether the comment accepts one of the findings with these files, lines and codes."""
        own = self.file, self.line, self.code
        return any(x == own or (not self.code and x[:2] == own[:2]) for x in accepted)

    def to_json(self) -> dict[str, str | int]:
        """Return the fields for JSON."""
        return {"file": self.file, "line": self.line, "text": self.text}

    def __str__(self) -> str:
        return f"{printable(self.file)}:{self.line}: {self.text}"


def accepting_line(location: Location, code: str, below: int = 0) -> int:
    """Return the line whose comment accepts a finding at a location; 0 without one.

    `below` is the number of lines by which the operand stands below the start of its expression.
    """
    for line in dict.fromkeys((location.line, location.line + below)):
        if _MARK in source_line(location.source, line):
            codes = _codes(comments(location.source).get(line, ""))
            if codes is not None and (not codes or code in codes):
                return line
    return 0


def has_comments(symbols: Iterable[Symbol]) -> bool:
    """Whether a source file of symbols has a comment that accepts findings."""
    return any(_marked(source) for source in {x.location.source for x in _distinct(symbols)})


def _marked(source: str) -> Mapping[int, tuple[str, ...]]:
    """Return the codes of the comments of a source file, by line."""
    marked = {line: _codes(text) for line, text in comments(source, _MARK).items()}
    return {line: codes for line, codes in marked.items() if codes is not None}


def _codes(comment: str) -> tuple[str, ...] | None:
    """Return the codes of a comment; () for all findings, None for another comment."""
    match = _COMMENT.search(comment)
    if match is None:
        return None
    inner, end = match.groups()
    if inner is None:
        return ()
    return tuple(word.strip() for word in inner.split(",")) if end else (f"[{inner.strip()}",)


def unused_ignores(
    symbols: Iterable[Symbol], used: Mapping[tuple[str, int], Set[str]]
) -> list[UnusedIgnore]:
    """Return the comments, and their codes, that accept nothing of a program.

    `used` has the codes that each comment accepted, by source file and line. A comment counts if a
    symbol is of its function: of other functions nothing is known.
    """
    files: dict[str, tuple[str, set[int]]] = {}
    for symbol in _distinct(symbols):
        place = symbol.location
        files.setdefault(place.source, (place.file, set()))[1].add(place.line)
    unused: list[UnusedIgnore] = []
    for source, (file, lines) in files.items():
        marked = _marked(source)
        functions = _functions(source) if marked else []
        ran = {_innermost(functions, line) for line in lines if marked}
        for line, codes in marked.items():
            is_known = _innermost(functions, line) in ran
            for code, text in _problems(codes, used.get((source, line), set()), is_known):
                unused.append(UnusedIgnore(file, line, code, text))
    return unused


def _problems(codes: tuple[str, ...], used: Set[str], is_known: bool) -> Iterator[tuple[str, str]]:
    """Yield the codes of a comment that accept nothing, with the text about each."""
    if not codes and not used and is_known:
        yield "", f"`{_MARK}` accepts nothing"
    for code in codes:
        near = get_close_matches(code, CODES, 1)
        if code not in CODES:
            fix = f"use {near[0]}" if near else f"the codes are {', '.join(CODES)}"
            yield code, f"`{_MARK}[{printable(code)}]` names no code of a finding; {fix}"
        elif code not in used and is_known:
            yield code, f"`{_MARK}[{code}]` accepts nothing"


def _distinct(symbols: Iterable[Symbol]) -> Iterable[Symbol]:
    """Return one symbol for each place, which symbols of a line share as an object."""
    return {id(symbol.source): symbol for symbol in symbols}.values()


def _functions(source: str) -> list[tuple[int, int]]:
    """Return the first and the last line of each function of a source file."""
    tree = source_tree(source)
    nodes = ast.walk(tree) if tree is not None else ()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [(x.lineno, x.end_lineno or x.lineno) for x in nodes if isinstance(x, kinds)]


def _innermost(functions: Iterable[tuple[int, int]], line: int) -> tuple[int, int]:
    """Return the lines of the innermost function around a line; (0, 0) for the module."""
    around = [lines for lines in functions if lines[0] <= line <= lines[1]]
    return max(around, default=(0, 0))
