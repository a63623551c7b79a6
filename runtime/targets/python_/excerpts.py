"""Excerpts of graphir's own source with all definitions they refer to, so that they run alone."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

SOURCES = (
    "graphir.semantics.rounded_functions",
    "graphir.semantics.data_movement",
    "graphir.semantics.special_functions",
    "graphir.semantics.matrix_products",
    "graphir.semantics.sums",
    "graphir.conversions",
    "graphir.semantics.kernels",
    "graphir.runtime.targets.python_.support",
)
"""The modules of the excerpts; for a name that two modules define, the later module wins."""


class Excerpt(NamedTuple):
    """A top-level definition of a module: its place, its text, and the names it refers to."""

    place: tuple[int, int]
    text: str
    names: frozenset[str]


def excerpt(names: Iterable[str]) -> tuple[dict[str, set[str]], list[str]]:
    """Return the imports and the definitions that some names need, directly and indirectly.

    Imports are sets of names by module, with the import of a whole module under "". Definitions are
    in the order of SOURCES and of their lines, without annotations and comments.
    """
    pieces, imports = _definitions()
    excerpts: dict[str, Excerpt] = {}
    pending, imports_used = list(names), dict[str, set[str]]()
    while pending:
        name = pending.pop()
        if name in imports:
            imports_used.setdefault(imports[name][0], set()).add(imports[name][1])
        if name in pieces and name not in excerpts:
            excerpts[name] = pieces[name]
            pending += pieces[name].names
    return imports_used, [piece.text for piece in sorted({*excerpts.values()})]


@cache
def _definitions() -> tuple[dict[str, Excerpt], dict[str, tuple[str, str]]]:
    """Return all definitions by name, and the imports from other projects by name."""
    pieces: dict[str, Excerpt] = {}
    imports: dict[str, tuple[str, str]] = {}
    for position, name in enumerate(SOURCES):
        for statement in read(name):
            imports |= _imported(statement)
            if names := tuple(names_defined(statement)):
                place = (position, statement.lineno)
                piece = Excerpt(place, ast.unparse(statement), _referred(statement))
                pieces |= dict.fromkeys(names, piece)
    return pieces, imports


def read(module: str) -> list[ast.stmt]:
    """Return the top-level statements of a module, bare; those of type aliases as they are."""
    file = import_module(module).__file__
    assert file is not None  # a source module has a file
    statements = ast.parse(Path(file).read_text(encoding="utf-8")).body
    return [x if isinstance(x, ast.AnnAssign) else _Bare().visit(x) for x in statements]


class _Bare(ast.NodeTransformer):
    """Removes annotations, and the casts of typing around values."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(node.arg)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        assert node.value is not None  # no module of the excerpts only declares a name
        return ast.copy_location(ast.Assign([node.target], self.visit(node.value)), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        is_cast = isinstance(node.func, ast.Name) and node.func.id == "cast"
        return node.args[1] if is_cast else node


def _imported(statement: ast.stmt) -> dict[str, tuple[str, str]]:
    """Return the names that an import from another project binds, each with module and name.

    For the import of a whole module, the module is "".
    """
    if isinstance(statement, ast.Import):
        return {alias.asname or alias.name: ("", ast.unparse(alias)) for alias in statement.names}
    if not isinstance(statement, ast.ImportFrom) or statement.module in (None, "typing"):
        return {}
    if statement.module.split(".")[0] in ("graphir", "__future__"):
        return {}
    return {alias.name: (statement.module, alias.name) for alias in statement.names}


def names_defined(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a top-level statement of a module defines."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, ast.Assign):
        for node in ast.walk(statement.targets[0]):
            if isinstance(node, ast.Name):
                yield node.id


def _referred(statement: ast.stmt) -> frozenset[str]:
    """Return the free names of a definition: names it reads at run time and does not assign."""
    loads, own = set[str](), set[str]()
    for node in ast.walk(statement):
        if isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(node, ast.Name):
            (loads if isinstance(node.ctx, ast.Load) else own).add(node.id)
    return frozenset(loads - own)


def defined() -> frozenset[str]:
    """Return all names that definitions and imports of excerpts may bind."""
    pieces, imports = _definitions()
    return frozenset({*pieces, *imports})
