"""The user's code: which files it is, and which line of it gave a name or an attribute its value.

The search reads the source alone: assignments, displays, the functions and constructors of the file
that return a value, the constructors of classes. `variables` of a frame lead from a name to the
class of its object.
"""

from __future__ import annotations

import ast
import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple, TypeAlias, TypeGuard, cast

from graphir.display import printable
from graphir.import_names import own_folders
from graphir.location import Location
from graphir.passes.analysis.expressions import MODULES, statement
from graphir.source_text import displayed_path, source_line, source_tree

PROJECT = own_folders()
"""The starts of the files of this project."""

_FOLDERS = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path]
SITE_PACKAGES = tuple(
    dict.fromkeys(
        folder for folder in _FOLDERS if Path(folder).name in ("site-packages", "dist-packages")
    )
)
"""The folders of installed packages: the environment's, the user's, and others on the path."""

INSTALLED = (
    *(f"{folder}{os.sep}" for folder in (sysconfig.get_path("stdlib"), *SITE_PACKAGES)),
    *PROJECT,
    "<frozen",
)
"""The starts of the files of the standard library, of installed packages and of this project."""

# -- values by their source

LONGEST = 120
"""The most characters of a source text in a note."""


class MakingLine(NamedTuple):
    """A line of the user's with its text."""

    file: str
    line: int
    text: str

    def seen_from(self, place: Location) -> str:
        """Return `line 7: text`, with the file if it is not that of a place."""
        where = "" if self.file == place.file else f" of {printable(self.file)}"
        return f"line {self.line}{where}: {printable(self.text, LONGEST)}"


class NamedValue(NamedTuple):
    """A value of the program with the text that names it.

    `made` is the line that gave the name its value, as the source has it.
    """

    text: str
    value: Any
    made: MakingLine | None = None


def has_line(node: ast.stmt | ast.expr, line: int) -> bool:
    """Whether a node of the source stands on a line, among others."""
    return node.lineno <= line <= (node.end_lineno or 0)


class Scope:
    """The names that a line reads, and the lines that gave them their values.

    `variables` are the names of the frame that runs the line.
    """

    def __init__(self, place: Location, variables: Mapping[str, Any]) -> None:
        self.place, self.variables = place, variables
        self.tree = source_tree(place.source)
        around = (
            x
            for x in ast.walk(self.tree or ast.Module([], []))
            if isinstance(x, (*_FUNCTIONS, ast.ClassDef))
            if has_line(x, place.line)
        )
        self._around: list[Any] = sorted(around, key=lambda x: -x.lineno)

    @property
    def function(self) -> ast.AST | None:
        """The function that runs the line, or the module."""
        functions = (x for x in self._around if isinstance(x, _FUNCTIONS[:2]))
        return next(functions, self.tree)

    def statements(self) -> Iterator[ast.AST]:
        """Yield the nodes of the function that runs the line."""
        yield from _statements(self.function or ast.Module([], []))

    def conditions(self) -> list[Location]:
        """Return the places of the conditions around the line."""
        tests = (
            x.test
            for x in self.statements()
            if isinstance(x, (ast.If, ast.While)) and has_line(x, self.place.line)
        )
        file, source = self.place.file, self.place.source
        return [Location.at(file, x.lineno, end_line=x.end_lineno, source=source) for x in tests]

    def named(self, node: ast.AST) -> Iterator[NamedValue]:
        """Yield the names, attributes and elements that an expression reads, with their values."""
        for each in ast.walk(node):
            is_known, value = self.value(each)
            if is_known:
                yield NamedValue(ast.unparse(each), value, self.made(each))

    def value(self, node: ast.AST) -> tuple[bool, Any]:
        """Return whether a name, an attribute or an element is known, and its value.

        No code of the program runs: attributes are those of an object's own `__dict__`, elements
        those of lists, tuples and dicts.
        """
        match node:
            case ast.Name(id=name):
                return name in self.variables, self.variables.get(name)
            case ast.Attribute(value=inner, attr=name):
                is_known, holder = self.value(inner)
                return _attribute(holder, name) if is_known else (False, None)
            case ast.Subscript(value=inner, slice=index):
                is_known, holder = self.value(inner)
                key = index.value if isinstance(index, ast.Constant) else self.value(index)[1]
                if is_known and type(holder) in (list, tuple, dict) and type(key) in (int, str):
                    with suppress(LookupError, TypeError):
                        return True, holder[key]
                return False, None
            case _:
                return False, None

    def behind(self, name: str) -> list[NamedValue]:
        """Return the values that the assignment of a name reads, which may be recorded."""
        node = self.assignment(name, self.place.line)
        return list(self.named(node.value)) if node is not None and node.value else []

    def made(self, node: ast.AST) -> MakingLine | None:
        """Return the line that gave a name, an attribute or the list of an element its value.

        A name that stands for another one, or for elements of it, has the line of that one.
        """
        found, before, following = None, self.place.line, _base(node)
        while following is not None:
            assignment = self.assignment(ast.unparse(following), before, is_first=False)
            if assignment is None:
                return found or self._made_by_class(following)
            found, before = _line_at(self.place.file, assignment), assignment.lineno
            following = _alias(assignment)
        return found

    def _made_by_class(self, node: ast.AST) -> MakingLine | None:
        match node:
            case ast.Attribute(value=inner, attr=attribute):
                is_known, holder = self.value(inner)
                if is_known:
                    return made_by_class(cast(Any, type(holder)), attribute)
                owner = next((x for x in self._around if isinstance(x, ast.ClassDef)), None)
                return owner and _made_in_class(owner, attribute, self.place.source)
            case _:
                return None

    def function_of(self, call: ast.Call) -> ast.FunctionDef | None:
        """Return the function of the file that a call names; None if it has none, or several."""
        holder, _, name = ast.unparse(call.func).rpartition(".")
        if holder in MODULES:
            return None
        nodes = ast.walk(self.tree or ast.Module([], []))
        named = [x for x in nodes if isinstance(x, ast.FunctionDef) and x.name == name]
        return named[0] if len(named) == 1 else None

    def assignment(self, name: str, before: int, is_first: bool = True) -> Assignment | None:
        """Return the last assignment of a name before a line, of an outer scope the only one.

        An augmented assignment does not count: it writes into the array that the name has. Returns
        None if another statement may have bound the name since: a `for`, or an assignment further
        on in a loop around the line, unless the loop runs its first round (`is_first`).
        """
        for scope in (*self._around, self.tree):
            if scope is None or isinstance(scope, ast.ClassDef):
                continue
            nodes = [x for x in _statements(scope) if _binds(x, name)]
            if scope is self.function:
                later = [x for x in nodes if x.lineno >= before]
                if not is_first and any(self._is_in_loop(x, before) for x in later):
                    return None
                nodes = [x for x in nodes if x.lineno < before]
            if nodes:
                last = max(nodes, key=lambda x: x.lineno)
                is_certain = scope is self.function or len(nodes) == 1
                return last if is_certain and isinstance(last, Assignment) else None
            names = (x for x in ast.walk(getattr(scope, "args", scope)) if isinstance(x, ast.arg))
            if isinstance(scope, _FUNCTIONS) and any(x.arg == name for x in names):
                return None
        return None

    def _is_in_loop(self, node: ast.stmt, line: int) -> bool:
        """Whether a loop runs a statement, and then a line again."""
        loops = (x for x in self.statements() if isinstance(x, (ast.For, ast.While)))
        return any(has_line(x, line) and has_line(x, node.lineno) for x in loops)


Assignment: TypeAlias = ast.Assign | ast.AnnAssign


def _line_at(file: str, node: ast.stmt) -> MakingLine:
    return MakingLine(file, node.lineno, ast.unparse(node))


def _base(node: ast.AST) -> ast.AST:
    """Return the list or the array of which an expression reads an element."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _alias(node: ast.stmt) -> ast.AST | None:
    """Return the name that a statement gives to another one; None if it computes a value."""
    match node:
        case ast.Assign(targets=[ast.Name() | ast.Attribute()], value=value):
            value = _base(value)
        case ast.Expr(ast.Call(args=[_, value])):
            value = _base(value)
        case _:
            return None
    return value if isinstance(value, ast.Name) else None


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _statements(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope, but for those of functions and classes in it."""
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield node
            yield from _statements(node)


def _binds(node: ast.AST, name: str) -> TypeGuard[ast.stmt]:
    """Whether a statement binds a name, or assigns an attribute."""
    match node:
        case ast.Assign(targets=targets):
            pass
        case ast.AnnAssign(target=target) | ast.For(target=target):
            targets = [target]
        case ast.With(items=items):
            targets = [x.optional_vars for x in items if x.optional_vars is not None]
        case _:
            return False
    bound = (x for target in targets for x in ast.walk(target))
    return any(isinstance(x, (ast.Name, ast.Attribute)) and ast.unparse(x) == name for x in bound)


def value_made(place: Location, text: str) -> MakingLine | None:
    """Return the line that gave a name or an attribute its value, as a place reads it."""
    node = statement(text)
    return Scope(place, {}).made(node.value) if isinstance(node, ast.Expr) else None


def part_made(place: Location, node: ast.expr, name: str) -> MakingLine | None:
    """Return the line that makes a part of an expression at a place, such as `carry[1]`."""
    return _Component(Scope(place, {}), _path(ast.parse(name, mode="eval").body)[1]).made(node)


def component_made(place: Location, name: str) -> MakingLine | None:
    """Return the line that gives its value to an argument of the call at a place, or to a part.

    `name` is that of the parameter and its part, as in `state.step_size`. The line is found through
    assignments, displays, and the functions and constructors of the file that return the value.
    """
    scope = Scope(place, {})
    calls = (x for x in ast.walk(scope.tree or ast.Module([], [])) if isinstance(x, ast.Call))
    inner = [x for x in calls if has_line(x, place.line)]
    parameter, path = _path(ast.parse(name, mode="eval").body)
    for call in inner:
        function = scope.function_of(call)
        names = [] if function is None else [x.arg for x in function.args.args]
        at = names.index(parameter) - (names[:1] == ["self"]) if parameter in names else -1
        given: list[ast.expr] = [x.value for x in call.keywords if x.arg == parameter]
        given += call.args[at : at + 1] if at >= 0 else []
        if given:
            return _Component(scope, path).made(given[0])
    return None


def _path(node: ast.expr) -> tuple[str, list[Any]]:
    """Return the name at which an expression begins, and the parts that it takes one of another."""
    path: list[Any] = []
    while not isinstance(node, ast.Name):
        match node:
            case ast.Attribute(value=inner, attr=key):
                pass
            case ast.Subscript(value=inner, slice=ast.Constant(value=key)):
                pass
            case _:
                return "", []
        path.insert(0, key)
        node = inner
    return node.id, path


class _Component:
    """The search for the line that gives a part of a value: `path` leads from it to the part."""

    def __init__(self, scope: Scope, path: Sequence[Any]) -> None:
        self._scope, self._path = scope, [*path]
        self._before = scope.place.line
        self._found: MakingLine | None = None

    def made(self, node: ast.expr) -> MakingLine | None:
        """Return the line that makes the part of an expression; None if it is the place itself."""
        following: ast.expr | None = node
        for _ in range(_MOST_STEPS):
            if following is None:
                break
            following = self._next(following)
        return self._found

    def _next(self, node: ast.expr) -> ast.expr | None:
        """Return the expression that gives the part of another one; None if it is not known."""
        match node:
            case ast.Name(id=name):
                assignment = self._scope.assignment(name, self._before)
                return None if assignment is None else self._assigned(assignment, name)
            case ast.Attribute() | ast.Subscript():
                name, path = _path(node)
                self._path = [*path, *self._path]
                return ast.Name(name) if name else None
            case ast.Tuple(elts=parts) | ast.List(elts=parts) if self._path:
                key = self._path.pop(0)
                is_in = isinstance(key, int) and -len(parts) <= key < len(parts)
                return self._part(parts[key]) if is_in else None
            case ast.Dict(keys=keys, values=values) if self._path:
                pairs = zip(keys, values, strict=True)
                named = [x for key, x in pairs if isinstance(key, ast.Constant)
                         if key.value == self._path[0]]  # fmt: skip
                return self._part(named[-1], 1) if named else None
            case ast.Call(keywords=keywords):
                named = [x.value for x in keywords if self._path and x.arg == self._path[0]]
                return self._part(named[0], 1) if named else self._returned(node)
            case _:
                return None

    def _part(self, node: ast.expr, taken: int = 0) -> ast.expr:
        del self._path[:taken]
        text = source_line(self._scope.place.source, node.lineno).strip()
        self._found = MakingLine(self._scope.place.file, node.lineno, text)
        return node

    def _assigned(self, node: Assignment, name: str) -> ast.expr | None:
        self._before = node.lineno
        self._found = _line_at(self._scope.place.file, node)
        match node:
            case ast.Assign(targets=[ast.Name()]) | ast.AnnAssign():
                return node.value
            case ast.Assign(targets=[ast.Tuple(elts=parts)]):
                texts = [ast.unparse(x) for x in parts]
                self._path[:0] = [texts.index(name)] if name in texts else [None]
                return node.value
            case _:
                return None

    def _returned(self, call: ast.Call) -> ast.expr | None:
        """Return what a function of the file returns, if it has one `return`."""
        function = self._scope.function_of(call)
        nodes = [] if function is None else [*_statements(function)]
        returned = [x.value for x in nodes if isinstance(x, ast.Return)]
        if function is None or len(returned) != 1 or returned[0] is None:
            return None
        place = self._scope.place
        self._before = returned[0].lineno
        self._scope = Scope(Location.at(place.file, self._before, source=place.source), {})
        return self._part(returned[0])


_MOST_STEPS = 20
"""The most expressions through which the line of a part is sought."""


def _attribute(holder: Any, name: str) -> tuple[bool, Any]:
    """Return whether an object itself has an attribute, and its value.

    Objects whose class looks attributes up, as modules of PyTorch do, have them in a dict.
    """
    held = getattr(holder, "__dict__", {})
    if not isinstance(held, dict):
        return False, None
    fields = cast("dict[str, Any]", held)
    if name in fields:
        return True, fields[name]
    tables = fields.values() if hasattr(holder.__class__, "__getattr__") else ()
    for table in tables:
        if isinstance(table, dict) and name in table:
            return True, cast("dict[str, Any]", table)[name]
    return False, None


def made_by_class(owner: type, attribute: str) -> MakingLine | None:
    """Return the line of a class of the user's that gives its objects an attribute."""
    for each in owner.__mro__:
        codes = (getattr(x, "__code__", None) for x in vars(each).values())
        path = next((x.co_filename for x in codes if isinstance(x, CodeType)), "")
        if not path or path.startswith(INSTALLED):
            continue
        for node in ast.walk(source_tree(path) or ast.Module([], [])):
            if isinstance(node, ast.ClassDef) and node.name == each.__name__:
                line = _made_in_class(node, attribute, path)
                if line is not None:
                    return line
    return None


def _made_in_class(owner: ast.ClassDef, attribute: str, path: str) -> MakingLine | None:
    """Return the line of a class with an attribute: its assignment, or a call with its name.

    Such a call is `register_buffer`. Returns None if there are several, None as a value aside.
    """
    nodes: list[ast.stmt] = []
    for node in ast.walk(owner):
        match node:
            case ast.Assign(value=ast.Constant(value=None)):
                pass
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)]
            ) | ast.Expr(ast.Call(args=[ast.Constant(value=name), _])) if name == attribute:
                nodes.append(node)
            case _:
                pass
    if len(nodes) != 1:
        return None
    file, other = displayed_path(path), _alias(nodes[0])
    scope = Scope(Location.at(file, nodes[0].lineno, source=path), {})
    return (other and scope.made(other)) or _line_at(file, nodes[0])
