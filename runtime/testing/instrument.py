"""Code of the package under test that tells a watch of its calls.

Each function gets code with a call of `enter` before its first line, compiled from its source with
the same lines and names, in place: functions keep their identity, signature, closure and frames.
The code that a shadow runs (see runtime.testing.shadow) also tells of results, and has the calls
watched that recordings need. Functions without source stay as they are. Generators tell of their
first step, as coroutines do, of which no recording is made.
"""

from __future__ import annotations

import ast
import builtins
import gc
import inspect
import linecache
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from types import CodeType, FunctionType, ModuleType
from typing import Any, Literal, TypeAlias

from graphir.runtime.recording.numpy_.watched_code import watch_calls

ENTER, RESULT, LEAVE = "__graphir_enter__", "__graphir_result__", "__graphir_leave__"
"""The names of the callbacks in the code of functions."""

Kind: TypeAlias = Literal["function", "method", "generator", "coroutine", "other"]
"""What a function is to the watch; the calls of others are not told."""
Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

SKIPPED = frozenset(
    (
        *("__repr__", "__str__", "__format__", "__hash__", "__len__", "__iter__", "__bool__"),
        *("__del__", "__getattr__", "__getattribute__", "__setattr__", "__new__", "__reduce__"),
        *("__array_finalize__", "__array_ufunc__", "__array_function__", "__array_wrap__"),
        *("__array__", "__array_prepare__", "__init_subclass__", "__class_getitem__"),
    )
)
"""Functions that Python or NumPy calls by itself."""


@dataclass(eq=False, slots=True)
class WatchedFunction:
    """A function of the package under test, with its code: plain, watched, and that of shadows."""

    number: int
    module: str
    qualname: str
    file: str
    line: int
    end_line: int
    kind: Kind
    own: CodeType
    watched: CodeType
    shadowed: CodeType
    functions: list[FunctionType] = field(default_factory=list[FunctionType])

    @property
    def name(self) -> str:
        """The name of the function with that of its module: `pkg.geometry:Line.length`."""
        return f"{self.module}:{self.qualname}"

    def use(self, code: CodeType) -> None:
        """Give code to the function."""
        for function in self.functions:
            function.__code__ = code


def set_callbacks(
    enter: Callable[..., Any], result: Callable[..., Any], leave: Callable[..., Any]
) -> None:
    """Set the callbacks of all watched code."""
    for name, callback in ((ENTER, enter), (RESULT, result), (LEAVE, leave)):
        setattr(builtins, name, callback)


class WatchedPackage:
    """The functions of the package under test, in those of its modules that are loaded."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.functions: dict[int, WatchedFunction] = {}
        """The functions by number."""
        self.modules: set[str] = set()
        self._numbers = count()

    def update(self) -> bool:
        """Watch the functions of modules that are new; return whether there are any."""
        new = [x for x in _modules_under_test(self.name) if x.__name__ not in self.modules]
        if not new:
            return False
        self.modules.update(x.__name__ for x in new)
        for function in _watched_functions(new, self._numbers):
            self.functions[function.number] = function
            function.use(function.watched)
        return True


def _modules_under_test(package: str) -> list[ModuleType]:
    """Return the loaded modules of a package, without its tests."""
    names = [x for x in sys.modules if x == package or x.startswith(f"{package}.")]
    modules = [sys.modules[name] for name in sorted(names)]
    return [x for x in modules if type(x) is ModuleType and not _is_test(x.__name__)]


def _is_test(module: str) -> bool:
    parts = module.split(".")
    return any(x in ("tests", "test", "testing", "conftest") for x in parts[1:]) or any(
        x.startswith("test_") or x.endswith("_test") for x in parts[1:]
    )


def _watched_functions(modules: list[ModuleType], numbers: Iterator[int]) -> list[WatchedFunction]:
    """Return the functions of modules whose source is at hand, with numbers of their own."""
    functions: dict[tuple[str, str, int], WatchedFunction] = {}
    for module in modules:
        file = str(getattr(module, "__file__", None) or "")
        if not file.endswith(".py"):
            continue
        source = "".join(linecache.getlines(file))
        try:
            places = list(_compiled(source, file, numbers))
        except (SyntaxError, ValueError):
            continue
        for number, node, kind, codes in places:
            own = codes[0]
            key = file, own.co_qualname, own.co_firstlineno
            end = node.end_lineno or node.lineno
            facts = module.__name__, own.co_qualname, file, node.lineno, end, kind
            functions[key] = WatchedFunction(number, *facts, *codes)
    _find_functions(functions)
    return [x for x in functions.values() if x.functions]


def _find_functions(functions: dict[tuple[str, str, int], WatchedFunction]) -> None:
    """Find the function objects, wherever the program has them: the collector lists them all."""
    compiled = _compiled_elsewhere()
    for each in gc.get_objects():
        if type(each) is not FunctionType or id(each) in compiled:
            continue
        code = each.__code__
        entry = functions.get((code.co_filename, code.co_qualname, code.co_firstlineno))
        if entry is None:
            continue
        same = code.co_code, code.co_freevars
        if same == (entry.own.co_code, entry.watched.co_freevars):
            entry.own = code
            entry.functions.append(each)


def _compiled_elsewhere() -> set[int]:
    """Return the ids of the functions that numba compiles from their code."""
    if "numba" not in sys.modules:
        return set()
    return {
        id(function)
        for each in gc.get_objects()
        if type(each).__module__.startswith("numba.")
        and (function := getattr(each, "py_func", None)) is not None
    }


_Place: TypeAlias = tuple[int, Definition, Kind, tuple[CodeType, CodeType, CodeType]]


def _compiled(source: str, file: str, numbers: Iterator[int]) -> Iterator[_Place]:
    """Yield the functions of a file with their code."""
    own = compile(source, file, "exec", dont_inherit=True)
    trees = ast.parse(source, file), watch_calls(ast.parse(source, file))
    definitions: dict[tuple[str, int], tuple[int, Definition, Kind]] = {}
    for tree, is_shadow in zip(trees, (False, True), strict=True):
        for node, name, kind in _definitions(tree, ""):
            place = name, min([node.lineno, *(x.lineno for x in node.decorator_list)])
            number = definitions[place][0] if is_shadow else next(numbers)
            definitions[place] = number, node, kind
            if kind != "other":
                _insert(node, number, is_shadow)
    codes = [own, *(compile(tree, file, "exec", dont_inherit=True) for tree in trees)]
    tables = list(map(_by_place, codes))
    for place, (number, node, kind) in definitions.items():
        plain, watched, shadowed = (table.get(place) for table in tables)
        if plain is None or watched is None or shadowed is None:
            continue
        if plain.co_flags & inspect.CO_GENERATOR:
            kind = "generator"
        yield number, node, kind, (plain, watched, shadowed)


def _by_place(code: CodeType) -> dict[tuple[str, int], CodeType]:
    table = {(code.co_qualname, code.co_firstlineno): code}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            table.update(_by_place(constant))
    return table


def _definitions(node: ast.AST, scope: str) -> Iterator[tuple[Definition, str, Kind]]:
    """Yield the functions of a module and of its classes, with qualified names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            if not _is_compiled(child):
                yield child, f"{scope}{child.name}", _kind(child, in_class=bool(scope))
        elif isinstance(child, ast.ClassDef):
            yield from _definitions(child, f"{scope}{child.name}.")
        elif not isinstance(child, ast.Lambda):
            yield from _definitions(child, scope)


def _kind(node: Definition, in_class: bool) -> Kind:
    """Return the kind of a function, of which only the code shows whether it is a generator."""
    if node.name in SKIPPED:
        return "other"
    if isinstance(node, ast.AsyncFunctionDef):
        return "coroutine"
    is_static = any(isinstance(x, ast.Name) and x.id == "staticmethod" for x in node.decorator_list)
    has_self = in_class and not is_static and (node.args.posonlyargs or node.args.args)
    return "method" if has_self else "function"


_COMPILERS = frozenset(("numba", "njit", "vectorize", "guvectorize"))
"""Names in the decorators of numba; np.vectorize has one, too, and calls for each element."""


def _is_compiled(node: Definition) -> bool:
    """Whether a decorator, such as `@numba.jit` or `@torch.jit.script`, compiles the function.

    The decorator reads the code or the source of the function. One of another name is found by what
    it has made of the function (see `_compiled_elsewhere`).
    """
    parts = [part for decorator in node.decorator_list for part in ast.walk(decorator)]
    names = {getattr(part, "id", "") or getattr(part, "attr", "") for part in parts}
    return not names.isdisjoint(_COMPILERS) or names.issuperset(("jit", "script"))


def _insert(node: Definition, number: int, is_shadow: bool) -> None:
    """Insert the callbacks into the body of a function, at the place of its first statement."""
    args = node.args
    names = [ast.Name(x.arg, ast.Load()) for x in (*args.posonlyargs, *args.args)]
    values: list[ast.expr] = [*names]
    if args.vararg:
        values.append(ast.Starred(ast.Name(args.vararg.arg, ast.Load()), ast.Load()))
    keys: list[ast.expr | None] = [ast.Constant(x.arg) for x in args.kwonlyargs]
    keywords: list[ast.expr] = [ast.Name(x.arg, ast.Load()) for x in args.kwonlyargs]
    if args.kwarg:
        keys.append(None)
        keywords.append(ast.Name(args.kwarg.arg, ast.Load()))
    arguments = ast.Tuple(values, ast.Load()), ast.Dict(keys, keywords)
    test = _call(ENTER, ast.Constant(number), *arguments)
    is_async = isinstance(node, ast.AsyncFunctionDef)  # some of these may return no value
    enter = ast.Expr(test) if is_async else ast.If(test, [ast.Return(_call(RESULT))], [])
    has_doc = ast.get_docstring(node, clean=False) is not None
    at = node.body[has_doc] if len(node.body) > has_doc else node.body[0]
    if is_shadow and not is_async:
        node.body = [_Returns(number).visit(statement) for statement in node.body]
        end = ast.Expr(_call(LEAVE, ast.Constant(number), ast.Constant(None)))
        node.body.append(ast.copy_location(end, node.body[-1]))
    node.body.insert(has_doc, ast.copy_location(enter, at))
    ast.fix_missing_locations(node)


class _Returns(ast.NodeTransformer):
    """Passes the results of one function through a callback."""

    def __init__(self, number: int) -> None:
        self._number = number

    def visit_Return(self, node: ast.Return) -> ast.AST:
        value = node.value or ast.copy_location(ast.Constant(None), node)
        node.value = ast.copy_location(_call(LEAVE, ast.Constant(self._number), value), value)
        return ast.fix_missing_locations(node)

    def _same(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _same  # noqa: N815


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])
