"""What tests ask of the syntax trees of the packages' modules, each of which is walked once."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path
from typing import NamedTuple

_BRANCHES = (ast.If, ast.For, ast.While, ast.Try, ast.match_case)


class Function(NamedTuple):
    """A function or method: the lines below its first one, and its branches."""

    name: str
    lines: int
    branches: int


class Syntax(NamedTuple):
    """Facts of a module, in the order in which the walk of its tree meets them."""

    imports: list[ast.Import | ast.ImportFrom]
    typing: set[ast.AST]
    """Nodes below `if TYPE_CHECKING`."""
    functions: list[Function]
    classes: list[str]


@cache
def syntax(path: Path) -> Syntax:
    """The facts of a module. The collector is paused: a tree is many objects and no garbage."""
    gc.disable()
    try:
        return syntax_of(path.read_text(encoding="utf-8"))
    finally:
        gc.enable()


def syntax_of(source: str) -> Syntax:
    """The facts of a source text."""
    facts = Syntax([], set(), [], [])
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            facts.typing.update(inner for below in node.body for inner in ast.walk(below))
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            facts.imports.append(node)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            branches = sum(isinstance(inner, _BRANCHES) for inner in ast.walk(node))
            lines = (node.end_lineno or 0) - node.lineno
            facts.functions.append(Function(node.name, lines, branches))
        if isinstance(node, ast.ClassDef):
            facts.classes.append(node.name)
    return facts
