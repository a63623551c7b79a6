"""Where a program makes the array that an assignment writes to: the expression bound to its name.

An assignment to elements, and an in-place operator on an array, keep the dtype of the array. The
fix of a loss there is another dtype where the program makes the array.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from graphir import DType
from graphir.location import Location
from graphir.passes.analysis.cast_syntax import CastSyntax
from graphir.passes.analysis.expressions import with_dtype
from graphir.source_text import source_tree

_CONSTRUCTORS = ("zeros", "ones", "empty", "full", "array", "asarray", "arange", "linspace")


def widened_array(location: Location, dtype: DType, syntax: CastSyntax) -> str:
    """Return the expression that makes the array which an assignment writes to, in another dtype.

    The text ends with the line of the expression. Returns "" if the source does not say where the
    program makes the array.
    """
    tree = source_tree(location.source)
    if tree is None:
        return ""
    statement = _assignment_at(tree, location.line)
    if statement is None:
        return ""
    target = statement.target if isinstance(statement, ast.AugAssign) else statement.targets[0]
    while isinstance(target, ast.Subscript):
        target = target.value
    name, is_attribute = ast.unparse(target), isinstance(target, ast.Attribute)
    for scope in [tree] if is_attribute else _scopes(tree, location.line):
        values = [x for x in _values(scope, name) if is_attribute or x.lineno < location.line]
        if values:
            return _in_dtype(values[-1], dtype, syntax)
    return ""


def _in_dtype(value: ast.expr, dtype: DType, syntax: CastSyntax) -> str:
    """Return an expression with `dtype=` if it calls a constructor of arrays, else with a cast."""
    if isinstance(value, (ast.Constant, ast.List, ast.Tuple, ast.Dict)):
        return ""
    text = " ".join(ast.unparse(value).split())
    function = value.func if isinstance(value, ast.Call) else None
    name = function.attr if isinstance(function, ast.Attribute) else ""
    if name.removesuffix("_like") in _CONSTRUCTORS:
        text = with_dtype(text, syntax.dtype_of(dtype), always=True)
    else:
        text = syntax.cast_of(text, dtype)
    return f"{text} in line {value.lineno}"


def _assignment_at(tree: ast.Module, line: int) -> ast.Assign | ast.AugAssign | None:
    """Return the innermost assignment whose text has a line."""
    statements = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.Assign, ast.AugAssign))
        and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(statements, key=lambda node: node.lineno, default=None)


def _scopes(tree: ast.Module, line: int) -> Sequence[ast.AST]:
    """Return the functions around a line, the innermost first, then the module."""
    functions = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.lineno <= line <= (node.end_lineno or 0)
    ]
    functions.sort(key=lambda node: node.lineno, reverse=True)
    return [*functions, tree]


def _values(scope: ast.AST, name: str) -> Iterator[ast.expr]:
    """Yield the values that assignments in a scope bind to a name, in the order of the source."""
    for node in ast.walk(scope):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=False))
            yield from (value for each, value in pairs if ast.unparse(each) == name)
