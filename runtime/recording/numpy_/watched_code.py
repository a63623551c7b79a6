"""The code of a recorded program, whose calls and operators pass through functions of a recording.

While a recording runs, the functions of the program have other code: their own, with a look at each
function before they call it. The line numbers and columns are the same. Python finds the functions
of `calls` and `operand_proxies` among its builtins, by names that no program has (see `_HOOKS`).
Start at `calls_recorded`.
"""

from __future__ import annotations

import ast
import builtins
import linecache
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from types import CodeType, FunctionType
from typing import Any, cast

import numpy as np

from graphir.promotion.scalars import identity_key
from graphir.runtime.recording.captured import INSTALLED, is_user
from graphir.runtime.recording.numpy_ import calls, operand_proxies
from graphir.runtime.recording.numpy_.python_numbers import WATCHED
from graphir.runtime.recording.values import active, plain
from graphir.source_text import displayed_path, is_cell

CALLEE, TEXT, ATTRIBUTE = "__graphir_callee__", "__graphir_text__", "__graphir_attribute__"
OWNER = "__graphir_owner__"
METHOD, LEFT, RIGHT = "__graphir_method__", "__graphir_left__", "__graphir_right__"
INTO, FROM, READ = "__graphir_into__", "__graphir_from__", "__graphir_read__"
"""The names of the functions of a recording in the code of a recorded program (see `_HOOKS`)."""

_READING_NAMES = (
    *("reduce", "accumulate", "reduceat", "outer"),
    *("type", "pack", "pack_into", "Decimal", "Fraction", "timedelta", "array", "dump", "dumps"),
    *("c_float", "c_double", "c_int", "c_long", "nditer", "broadcast", "write", "update", "join"),
    *("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2b", "blake2s", "new"),
    *("crc32", "adler32", "compress", "b64encode", "hexlify"),
    *(
        "to_numpy",
        *(name for name in (*dir(np.random), *dir(np.random.Generator)) if name[0] != "_"),
    ),
)
_ATTRIBUTES = frozenset((*map(str, np.sctypeDict), *_READING_NAMES))
"""The attributes whose calls are watched: other methods keep the columns of their own calls."""
_OWN = frozenset(("plain", "source", "recording_trace", "recorder", "symbol"))
"""The attributes of recorded values that NumPy's values lack: the program asks NumPy's value."""


class _Calls(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        method = node.func if isinstance(node.func, ast.Attribute) else None
        name = "" if method is None else method.attr
        is_function = method is None or isinstance(method.value, ast.Name)
        if is_function or name in _ATTRIBUTES:
            node.func = _call(CALLEE, node.func)
        elif node.args and node.lineno == node.func.end_lineno:
            node.func = _call(METHOD, node.func)  # the columns of the call remain the same
        else:
            node.args = [_call(READ, x) if _is_computed(x) else x for x in node.args]
            for keyword in node.keywords:
                if _is_computed(keyword.value):
                    keyword.value = _call(READ, keyword.value)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr in _OWN and isinstance(node.ctx, ast.Load):
            node.value = _call(OWNER, node.value)
        is_data = node.attr == "values" and isinstance(node.ctx, ast.Load)
        return _call(ATTRIBUTE, node) if is_data else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        is_text = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        if isinstance(node.op, ast.Mod) and is_text:
            node.right = _call(TEXT, node.right)
        elif _may_read(node.left, node.right):
            node.left = _call(LEFT, node.left)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ops[0], (ast.In, ast.NotIn)) and _is_computed(node.left):
            node.left = _call(READ, node.left)
        if len(node.ops) > 1:
            operands = node.comparators
            node.comparators = [_call(READ, x) if _is_computed(x) else x for x in operands]
        is_identity = isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn))
        if len(node.ops) == 1 and not is_identity and _may_read(node.left, node.comparators[0]):
            node.left = _call(LEFT, node.left)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.target, ast.Name) and not isinstance(node.value, ast.Constant):
            target = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.value)
            node.value = _call(RIGHT, target, node.value)
        elif _is_computed(node.value):
            node.value = _call(READ, node.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Store):
            node.value = _call(INTO, node.value)
        elif _is_computed(node.slice):
            node.value = _call(FROM, node.value)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node  # Python has no columns of their own for the calls in it before 3.12


def _call(name: str, *nodes: ast.expr) -> ast.expr:
    function = ast.copy_location(ast.Name(name, ast.Load()), nodes[-1])
    return ast.copy_location(ast.Call(function, [*nodes], []), nodes[-1])


def _may_read(left: ast.expr, right: ast.expr) -> bool:
    """Whether an operator of compiled code on the left may read a float on the right."""
    is_integer = isinstance(left, ast.Constant) and type(left.value) is int
    return not is_integer and not isinstance(right, ast.Constant)


def _is_computed(node: ast.expr) -> bool:
    """Whether an expression may have an integer as value that is no constant."""
    if isinstance(node, (ast.Slice, ast.Tuple, ast.UnaryOp, ast.Starred)):
        return any(_is_computed(x) for x in ast.iter_child_nodes(node) if isinstance(x, ast.expr))
    return not isinstance(node, (ast.Constant, ast.JoinedStr, ast.Lambda))


_HOOKS: dict[str, Callable[..., Any]] = {
    CALLEE: calls.callee,
    TEXT: calls.formatted,
    ATTRIBUTE: calls.from_attribute,
    OWNER: plain,
    METHOD: calls.called_method,
    LEFT: operand_proxies.left_operand,
    RIGHT: operand_proxies.right_operand,
    INTO: operand_proxies.container,
    FROM: operand_proxies.sequence,
    READ: operand_proxies.read_integer,
}
"""The functions that watched code calls. They stay among Python's builtins after a recording, since
modules that the program has imported meanwhile keep their watched code."""


def watched_code(source: str | bytes | ast.Module, file: str) -> CodeType:
    """Return the code of a module, or of its syntax tree, whose calls pass through `callee`."""
    tree = deepcopy(source) if isinstance(source, ast.Module) else ast.parse(source, file)
    code = compile(watch_calls(tree), file, "exec", dont_inherit=True)
    _note_watched(code)
    return code


def _note_watched(code: CodeType) -> None:
    """Note that a code object, and the code of the functions in it, watches its calls."""
    WATCHED[id(code)] = code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _note_watched(constant)


def watch_calls(tree: ast.Module) -> ast.Module:
    """Change the tree of a module so that its calls pass through `callee`; return the tree."""
    builtins.__dict__.update(_HOOKS)
    return _Calls().visit(tree)


_Key = tuple[Any, ...]


def _key(code: CodeType) -> _Key:
    """Return all of a code object that a compilation of the same source repeats.

    Functions of one line may differ by columns alone, and those of a changed file by constants.
    """
    return (
        *(code.co_qualname, code.co_firstlineno, code.co_code, code.co_linetable),
        *(code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
        tuple(map(_constant_key, code.co_consts)),
    )


def _constant_key(value: Any) -> Any:
    """Return the key of a constant, by type and sign: 1 is not True, and 0.0 is not -0.0."""
    if isinstance(value, CodeType):
        return _key(value)
    if isinstance(value, tuple):
        return tuple(map(_constant_key, cast("tuple[Any, ...]", value)))
    if isinstance(value, frozenset):
        return frozenset(map(_constant_key, cast("frozenset[Any]", value)))
    return identity_key(value)


@lru_cache(maxsize=64)
def _codes(source: str, file: str) -> dict[_Key, CodeType]:
    """Return the watched code of each function in a file, by its own code."""
    parts: list[Any] = [source]
    if is_cell(displayed_path(file)):
        # IPython compiles each statement apart, and the code of `np.f(x)` depends on imports.
        parts += [ast.Module([statement], []) for statement in ast.parse(source, file).body]
    return {
        _key(code): new
        for part in parts
        for code, new in _code_pairs(
            compile(part, file, "exec", dont_inherit=True), watched_code(part, file)
        )
    }


def _code_pairs(own: CodeType, watched: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield the code of a module and of each function in it, own and watched."""
    yield own, watched
    inner = ([x for x in code.co_consts if isinstance(x, CodeType)] for code in (own, watched))
    for one_code, other_code in zip(*inner, strict=True):
        yield from _code_pairs(one_code, other_code)


def restore_code(functions: Iterable[FunctionType], own: CodeType, watched: CodeType) -> None:
    """Give functions that `watched` defined the code that `own` would have given them."""
    codes = {id(new): code for code, new in _code_pairs(own, watched)}
    for function in functions:
        function.__code__ = codes.get(id(function.__code__), function.__code__)


def _watched(function: FunctionType) -> CodeType | None:
    """Return the watched code of a function; None if the source is not that of its code."""
    code = function.__code__
    if any(name.startswith("__graphir_") for name in code.co_names):
        return None  # the code of a package under test is watched already
    file, key = code.co_filename, _key(code)
    new = _codes_of_file(file).get(key)
    if new is None and file in linecache.cache:
        linecache.checkcache(file)  # the module may be newer than the lines
        new = _codes_of_file(file).get(key)
    return new


def _codes_of_file(file: str) -> dict[_Key, CodeType]:
    source = "".join(linecache.getlines(file))
    try:
        return _codes(source, file) if source else {}
    except (SyntaxError, ValueError):
        return {}


@contextmanager
def calls_recorded(functions: Iterable[FunctionType]) -> Generator[None]:
    """Context manager: inside the block, calls of functions and of imported modules are watched."""
    swaps: list[tuple[FunctionType, CodeType, CodeType]] = []
    for function in functions:
        own = function.__code__
        new = _watched(function) if is_user(function.__module__) else None
        if new is not None:
            function.__code__ = new
            swaps.append((function, own, new))
    former = SourceFileLoader.get_code
    SourceFileLoader.get_code = _importing(former)
    try:
        yield
    finally:
        SourceFileLoader.get_code = former
        for function, own, new in swaps:
            if function.__code__ is new:
                function.__code__ = own


def _importing(former: Callable[..., Any]) -> Any:
    def get_code(loader: SourceFileLoader, name: str) -> Any:
        path = str(loader.path)
        if active() is None or not is_user(name) or any(folder in path for folder in INSTALLED):
            return former(loader, name)
        return watched_code(loader.get_data(path), path)

    return get_code
