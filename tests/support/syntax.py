"""What tests ask of the syntax trees of the packages' modules, each of which is walked once."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
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
    bindings: list[tuple[str, int]]
    """Every name that the module binds as a variable, parameter, attribute or alias, by line."""
    definitions: list[str]
    """Every function, method and class."""
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
    facts = Syntax([], set(), [], [], [], [])
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            facts.typing.update(inner for below in node.body for inner in ast.walk(below))
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            facts.imports.append(node)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            branches = sum(isinstance(inner, _BRANCHES) for inner in ast.walk(node))
            lines = (node.end_lineno or 0) - node.lineno
            facts.functions.append(Function(node.name, lines, branches))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            facts.definitions.append(node.name)
        if isinstance(node, ast.ClassDef):
            facts.classes.append(node.name)
        facts.bindings.extend(_bindings(node))
    return facts


def _bindings(node: ast.AST) -> Iterator[tuple[str, int]]:
    """The names that a node binds, by its line."""
    if isinstance(node, ast.arg):
        yield node.arg, node.lineno
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id, node.lineno
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr, node.lineno
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name, node.lineno
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from ((alias.asname, node.lineno) for alias in node.names if alias.asname)
