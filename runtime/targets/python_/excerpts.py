"""Excerpts of graphir's own source with all definitions they refer to, so that they run alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

SOURCES = (
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


class Module(NamedTuple):
    """The source of a module, and its top-level statements."""

    source: str
    statements: list[ast.stmt]


def excerpt(names: Iterable[str]) -> tuple[dict[str, set[str]], list[str]]:
    """Return the imports and the definitions that some names need, directly and indirectly.

    Imports are sets of names by module, with the import of a whole module under "". Definitions are
    in the order of SOURCES and of their lines, as they are written but without annotations.
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
        module = read(name)
        for statement in module.statements:
            imports |= _imported(statement)
            if names := tuple(names_defined(statement)):
                place = (position, statement.lineno)
                piece = Excerpt(place, bare(module.source, statement), _referred(statement))
                pieces |= dict.fromkeys(names, piece)
    return pieces, imports


def read(module: str) -> Module:
    """Return the source of a module."""
    file = import_module(module).__file__
    assert file is not None  # a source module has a file
    source = Path(file).read_text(encoding="utf-8")
    return Module(source, ast.parse(source).body)


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
    cuts = list(_cuts(statement))
    for node in ast.walk(statement):
        if isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(node, ast.Name) and not _inside(node, cuts):
            (loads if isinstance(node.ctx, ast.Load) else own).add(node.id)
    return frozenset(loads - own)


# -- text without annotations

Span = tuple[tuple[int, int], tuple[int, int]]
"""The start and the end of a piece of text, each as line and column in ast's counting."""


def bare(source: str, statement: ast.stmt) -> str:
    """Return the source text of a definition without annotations and comments for type checkers."""
    first = min([statement.lineno, *(x.lineno for x in getattr(statement, "decorator_list", ()))])
    lines = [line.encode() for line in source.splitlines(keepends=True)]
    for (row, column), (last_row, last_column) in sorted(_cuts(statement), reverse=True):
        lines[row - 1 : last_row] = [
            lines[row - 1][:column] + lines[last_row - 1][last_column:],
            *[b""] * (last_row - row),
        ]
    text = re.sub(r" *# pyright:.*", "", b"".join(lines[first - 1 : statement.end_lineno]).decode())
    return re.sub(r"\(\n +([^()\n]*)\n\):", r"(\1):", text).rstrip()


def _cuts(statement: ast.stmt) -> Iterator[Span]:
    """Yield the spans to delete: annotations, and typing casts around values."""
    for node in ast.walk(statement):
        if isinstance(node, ast.arg) and node.annotation:
            start = (node.lineno, node.col_offset + len(node.arg.encode()))
            yield start, _end(node.annotation)
        elif isinstance(node, ast.AnnAssign):
            yield _end(node.target), _end(node.annotation)
        elif isinstance(node, ast.arguments):
            yield from _spaces(node)
        elif isinstance(node, ast.FunctionDef) and node.returns:
            yield (node.returns.lineno, node.returns.col_offset - len(" -> ")), _end(node.returns)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "cast":
            yield _start(node), _start(node.args[1])
            yield _end(node.args[1]), _end(node)


def _spaces(arguments: ast.arguments) -> Iterator[Span]:
    """Yield the spaces around the = of defaults; the style has these only beside annotations."""
    last = [*arguments.posonlyargs, *arguments.args][-len(arguments.defaults) or None :]
    keyword_only = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    for parameter, default in [*zip(last, arguments.defaults, strict=False), *keyword_only]:
        if parameter.annotation and default:
            row, column = _end(parameter.annotation)
            yield (row, column), (row, column + 1)
            row, column = _start(default)
            yield (row, column - 1), (row, column)


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> tuple[int, int]:
    assert node.end_lineno is not None and node.end_col_offset is not None  # ast.parse sets both
    return node.end_lineno, node.end_col_offset


def _inside(node: ast.expr, spans: Iterable[Span]) -> bool:
    return any(start <= _start(node) and _end(node) <= end for start, end in spans)


def defined() -> frozenset[str]:
    """Return all names that definitions and imports of excerpts may bind."""
    pieces, imports = _definitions()
    return frozenset({*pieces, *imports})
