"""Pieces of graphir's own source, taken with all they refer to, so that they run alone."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

SOURCES = (
    "graphir.errors",
    "graphir.movement",
    "graphir.functions",
    "graphir.conversions",
    "graphir.kernels",
    "runtime.targets.support",
)
"""The modules that pieces are taken from; of a name that two have, the later one's counts."""


class Piece(NamedTuple):
    """A definition at the top of a module: its place, its text, the names that it refers to."""

    place: tuple[int, int]
    text: str
    names: frozenset[str]


def excerpt(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The imports and the definitions that these names need, each in the order of their modules.

    Annotations are left out.
    """
    pieces, imports = _known()
    found: dict[str, Piece] = {}
    wanted, imported = list(names), set[str]()
    while wanted:
        name = wanted.pop()
        if name in imports:
            imported.add(imports[name])
        if name in pieces and name not in found:
            found[name] = pieces[name]
            wanted += pieces[name].names
    return sorted(imported), [piece.text for piece in sorted({*found.values()})]


@cache
def _known() -> tuple[dict[str, Piece], dict[str, str]]:
    """All pieces and all imports of what is not the project's own, by name."""
    pieces: dict[str, Piece] = {}
    imports: dict[str, str] = {}
    for position, module in enumerate(SOURCES):
        for statement in statements(module):
            imports |= _imported(statement)
            if named := tuple(names_defined(statement)):
                piece = _piece((position, statement.lineno), statement)
                pieces |= dict.fromkeys(named, piece)
    return pieces, imports


def statements(module: str) -> list[ast.stmt]:
    """What is at the top of a module."""
    file = import_module(module).__file__
    assert file is not None  # a module of source
    return ast.parse(Path(file).read_text(encoding="utf-8")).body


def _imported(statement: ast.stmt) -> dict[str, str]:
    """The names that an import of another project's modules gives, each with that import alone."""
    if isinstance(statement, ast.Import):
        return {one.asname or one.name: ast.unparse(ast.Import([one])) for one in statement.names}
    if not isinstance(statement, ast.ImportFrom) or statement.module in (None, "typing"):
        return {}
    if statement.module.split(".")[0] in ("graphir", "__future__"):
        return {}
    module, names = statement.module, statement.names
    return {one.name: ast.unparse(ast.ImportFrom(module, [one], 0)) for one in names}


def names_defined(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement at the top of a module defines."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, ast.Assign):
        for node in ast.walk(statement.targets[0]):
            if isinstance(node, ast.Name):
                yield node.id


def _piece(place: tuple[int, int], statement: ast.stmt) -> Piece:
    bare = ast.fix_missing_locations(_Bare().visit(statement))
    names = frozenset(node.id for node in ast.walk(bare) if isinstance(node, ast.Name))
    return Piece(place, ast.unparse(bare), names)


class _Bare(ast.NodeTransformer):
    """Without annotations, and the casts that only type checkers read."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return None
        return self.generic_visit(ast.Assign([node.target], node.value, lineno=node.lineno))

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        return node.args[1] if getattr(node.func, "id", "") == "cast" else node


def defined() -> frozenset[str]:
    """All names that pieces and imports may take."""
    pieces, imports = _known()
    return frozenset({*pieces, *imports})
