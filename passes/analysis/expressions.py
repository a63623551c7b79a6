"""The very piece of the user's program at a location: its text, and that of each operand."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from graphir.location import Location
from graphir.source_text import source_line

MODULES = frozenset({"ops", "graphir", "np", "numpy", "math", "jnp", "scipy", "torch", "xp"})
"""Names whose attributes are functions: in `np.sin(x)` the first operand is x, in `x.sum()` x."""


class Expression(NamedTuple):
    """The source text at a location, and where in it the operands of its op stand.

    `text` may span lines. `spans` are (start, end) in it, in the order of the op's operands, as far
    as Python's grammar tells: an operator's two sides, a method's object, a call's arguments.
    """

    text: str
    spans: tuple[tuple[int, int], ...] = ()

    def operand(self, position: int) -> str:
        """The text of an operand; empty where it is not known."""
        if position >= len(self.spans):
            return ""
        start, end = self.spans[position]
        return self.text[start:end]

    def is_number(self, position: int) -> bool:
        """Whether an operand is written as a Python number, such as `2**40`."""
        node = statement(self.operand(position))
        return isinstance(node, ast.Expr) and _is_number(node.value)

    def replaced(self, texts: dict[int, str]) -> str:
        """The text with operands written otherwise; `x += y` as `x = x + y` if it is that x."""
        if 0 in texts and (sign := self._augmented_operator()):
            value = texts.get(1, self.operand(1))
            operand = value if primary(value) else f"({value})"
            return f"{self.operand(0)} = {texts[0]} {sign} {operand}"
        new = self.text
        for position in sorted(texts, key=lambda i: self.spans[i], reverse=True):
            start, end = self.spans[position]
            new = f"{new[:start]}{texts[position]}{new[end:]}"
        return new

    def _augmented_operator(self) -> str:
        """The operator of an augmented assignment; empty of anything else."""
        match statement(self.text):
            case ast.AugAssign():
                between = self.text[self.spans[0][1] : self.spans[1][0]]
                return between.strip(" ()").removesuffix("=")
            case _:
                return ""

    @property
    def brief(self) -> str:
        """The text on one line."""
        return " ".join(self.text.split())


def expression(location: Location) -> Expression | None:
    """What the program has at a location; None where its source or its columns are not known.

    None too for more than LONGEST characters: rows that quote long texts would grow with both.
    """
    _, line, column, end_line, end_column = location.place
    if end_column <= column and end_line == line:
        return None
    result = _expression(_text(location))
    return result._replace(spans=()) if result and location.compound else result


@lru_cache(maxsize=4096)
def statement(text: str) -> ast.stmt | None:
    """The one statement that a text is; None where it is none, or several."""
    try:
        (node,) = ast.parse(text.strip()).body
    except (SyntaxError, ValueError):
        return None
    return node


def primary(text: str) -> bool:
    """Whether an attribute can follow a text without parentheses."""
    match statement(text):
        case ast.Expr(value=node):
            simple = isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
            return simple or node.col_offset > 0  # in parentheses of its own
        case _:
            return False


LONGEST = 4000
"""The most characters of an expression whose text is read."""


def _text(location: Location) -> str:
    """The source text at a location; empty where it is not at hand, or too long."""
    _, line, column, below, end_column = location.place
    start, end = column - 1, end_column - 1
    first = source_line(location.source, line)
    if line == below:
        longest = end - start > LONGEST or end > len(first.removesuffix("\n"))
        return "" if longest else first[start:end]
    if below - line > LONGEST:
        return ""
    between = range(line + 1, below)
    lines = [first[start : start + LONGEST], *(source_line(location.source, i) for i in between)]
    last = source_line(location.source, below)
    if sum(map(len, lines)) + end > LONGEST or end > len(last.removesuffix("\n")):
        return ""
    return "\n".join([*(line.rstrip("\n") for line in lines), last[:end]])


@lru_cache(maxsize=4096)
def _expression(text: str) -> Expression | None:
    return Expression(text, _spans(text)) if text.strip() else None


def _spans(text: str) -> tuple[tuple[int, int], ...]:
    """Where the operands of the outermost operation of a text stand."""
    for before, after in (("(\n", "\n)"), ("", "")):  # in parentheses any line may break
        try:
            (root,) = ast.parse(f"{before}{text}{after}").body
        except (SyntaxError, ValueError):
            continue
        place, operands = _Places(text, before.count("\n")).of, _operands(root)
        spans = [
            (place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset))
            for node, _ in operands
        ]
        return tuple(
            span if in_brackets else _with_parentheses(text, *span)
            for span, (_, in_brackets) in zip(spans, operands, strict=True)
        )
    return ()


class _Places:
    """The offsets in a text of lines and columns in bytes, as Python's parser counts them.

    Lines are counted from 1, `above` of them before the text.
    """

    def __init__(self, text: str, above: int) -> None:
        self.lines, self.above = text.split("\n"), above
        self.starts = [0, *accumulate(len(line) + 1 for line in self.lines)]

    def of(self, line: int | None, column: int | None) -> int:
        """The offset of a place."""
        at, size = (line or 1) - 1 - self.above, column or 0
        text = self.lines[at]
        if not text.isascii():
            size = len(text[:size].encode()[:size].decode(errors="replace"))
        return self.starts[at] + min(size, len(text))


def _with_parentheses(text: str, start: int, end: int) -> tuple[int, int]:
    """A stretch of text with the parentheses around it."""
    before, after = text[:start].rstrip(), text[end:].lstrip()
    while before.endswith("(") and after.startswith(")"):
        start, end = len(before) - 1, len(text) - len(after) + 1
        before, after = text[:start].rstrip(), text[end:].lstrip()
    return start, end


def _operands(statement: ast.stmt) -> list[tuple[ast.expr, bool]]:
    """The operands of a statement's operation, and whether brackets of the syntax enclose them."""
    match statement:
        case ast.AugAssign():
            return [(statement.target, False), (statement.value, False)]
        case ast.Assign():
            return [(statement.value, False)]
        case ast.Expr(value=ast.Call() as call):
            arguments = [(expr, True) for expr in _arguments(call.args)]
            return [*((expr, False) for expr in _receiver(call.func)), *arguments]
        case ast.Expr(value=ast.BinOp() as node):
            return [(node.left, False), (node.right, False)]
        case ast.Expr(value=ast.Compare() as node):
            sides = [(expr, False) for expr in (node.left, *node.comparators)]
            return sides[::-1] if _is_number(node.left) else sides  # Python asks the array first
        case ast.Expr(value=ast.UnaryOp() as node):
            return [(node.operand, False)]
        case ast.Expr(value=(ast.Subscript() | ast.Attribute()) as node):
            return [(node.value, False)]
        case _:
            return []


def _is_number(node: ast.expr) -> bool:
    match node:
        case ast.Constant():
            return isinstance(node.value, (bool, int, float, complex))
        case ast.UnaryOp():
            return _is_number(node.operand)
        case ast.BinOp():
            return _is_number(node.left) and _is_number(node.right)
        case _:
            return False


def _receiver(function: ast.expr) -> list[ast.expr]:
    """The object whose method is called."""
    if not isinstance(function, ast.Attribute):
        return []
    root = function.value
    while isinstance(root, ast.Attribute):
        root = root.value
    module = isinstance(root, ast.Name) and root.id in MODULES
    return [] if module else [function.value]


def _arguments(arguments: Sequence[ast.expr]) -> list[ast.expr]:
    """The arguments by position; those of a list, as variadic ops take them, one by one."""
    if arguments and isinstance(arguments[0], (ast.List, ast.Tuple)):
        return [*arguments[0].elts, *arguments[1:]]
    return list(arguments)
