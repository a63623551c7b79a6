"""Where a Python number of a program goes, by its source: out of the program, or on into it.

A number leaves if the program only prints, writes, logs or returns it, or stores it in containers
that it uses in no other way. The analysis follows the expression of the number outwards to its
statement, a name to all places that read it, and a returned value to the call. It asks nothing of
the order of statements; what it does not know stays in the program.
"""

from __future__ import annotations

import ast
import dis
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from types import CodeType
from typing import NamedTuple, TypeAlias, TypeGuard

from graphir.source_text import source_tree

CallSite: TypeAlias = tuple[CodeType, int]
"""A code object and the offset of one of its instructions."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


WRITERS = _names(
    "print write write_text write_bytes writelines writerow writerows dump debug info warning "
    "warn error critical exception log save savez savez_compressed savetxt tofile to_csv "
    "to_string to_json to_excel to_pickle to_html to_markdown to_latex to_parquet to_feather "
    "to_hdf to_sql writeframes writeframesraw writestr sendall sendto"
)
"""Functions and methods that write what they get, by name."""
_COLLECTING = _names("append extend add insert update setdefault appendleft")
_ON_NUMBERS = _names(
    "float int complex bool round abs min max sum len sorted divmod pow list tuple set dict zip "
    "enumerate reversed items values keys get copy sqrt log log10 log2 exp isnan isinf isfinite "
    "floor ceil hypot fabs asdict str repr format join dumps encode strip ljust rjust center "
    "replace upper lower startswith endswith split tobytes"
)
"""Functions of Python, and methods of its values, whose results are made of their operands."""
_MAKERS = _ON_NUMBERS | _names("item tolist numpy pack Decimal Fraction")
_CONTAINERS = _names("dict list defaultdict OrderedDict Counter deque")
_NUMBERS_OF = _names("float int complex item round len")
_GIVE_BOOLS = _names(
    "any all max min item isnan isinf isfinite isnat signbit equal not_equal less less_equal "
    "greater greater_equal logical_and logical_or logical_not"
)
"""Functions and methods of NumPy that give a bool to the program, and do nothing by it."""
_METHODS_OF_TEXT = _names("format join get dumps")
"""The methods of Python's values whose results are made of their arguments."""
_NUMERIC_MODULES = _names("math cmath json dataclasses pickle struct decimal fractions")
_ARITHMETIC = _names("divmod pow round sum")
"""Builtin functions that compute with arrays too, if an array is among their arguments."""
_FRAME_READERS = _names("eval exec locals vars globals _getframe currentframe")
"""Functions that reach the variables of a function without their names."""


class _Source(NamedTuple):
    """The tree of a file, with the parent of each node and the expressions by their place."""

    parents: dict[ast.AST, ast.AST]
    expressions: dict[tuple[int, int, int, int], list[ast.expr]]
    functions: dict[str, ast.FunctionDef]
    """The functions and methods whose names are those of no others."""
    modules: dict[str, str]
    """The names that the file imports, each with the module that it is, or that it is from."""


def writes(site: CallSite) -> bool:
    """Whether the program calls a function that writes its arguments."""
    source = _source(site[0].co_filename)
    calls = [node for node in _nodes(site) if isinstance(node, ast.Call)]
    return source is not None and any(_is_writer(call, source) for call in calls)


def leaves(chain: Sequence[CallSite]) -> bool:
    """Whether a number that a program makes only leaves it.

    `chain` has the call site of the number, then those of the functions that were called, and ends
    with one in the function that the caller asked about.
    """
    makers = [node for node in _nodes(chain[0]) if isinstance(node, ast.Call)]
    if makers and _name_of(makers[0]) not in _MAKERS:
        return False  # another function may keep what it gets, or decide by it
    return _leaves(tuple(chain))


def bool_leaves(chain: Sequence[CallSite]) -> bool:
    """Whether a bool that NumPy gives a program only leaves it; `chain` is as for `leaves`."""
    match next(iter(_nodes(chain[0])), None):
        case ast.Subscript() | ast.Compare(ops=[_]) | ast.UnaryOp() | ast.BinOp():
            return _leaves(tuple(chain))
        case ast.Call(func=ast.Attribute(attr=name)) if name in _GIVE_BOOLS:
            return _leaves(tuple(chain))
        case _:
            return False  # another function may keep what it gets, or decide by it


def _leaves(chain: tuple[CallSite, ...]) -> bool:
    source = _source(chain[0][0].co_filename)
    nodes = _nodes(chain[0])
    return source is not None and bool(nodes) and _Flow(source, chain[1:]).leaves(nodes[0])


def expression_text(site: CallSite, part: int = 0) -> str:
    """Return the source of the value that a call site formats; "" if it has none of its own.

    `part` is the position of the value among those that `%` formats. A part of an f-string is the
    n-th of its parts, as the instruction is the n-th that formats one.
    """
    for node in _nodes(site):
        if isinstance(node, ast.JoinedStr):
            parts = list(_formatted(node))
            code, at = site
            positions = list(code.co_positions())
            place = positions[at // 2]
            formatting = [x for x in dis.get_instructions(code) if x.opname in _FORMATTING]
            same = [x.offset for x in formatting if positions[x.offset // 2] == place]
            if at in same and len(same) == len(parts):
                return ast.unparse(parts[same.index(at)].value)
        if isinstance(node, (ast.Tuple, ast.Name)):
            values = node.elts if isinstance(node, ast.Tuple) else [node]
            return ast.unparse(values[part]) if part < len(values) else ""
        if isinstance(node, ast.FormattedValue) or _is_question(node):
            return ast.unparse(node.value)
        if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
            argument = node.args[0]
            method = node.func.value if isinstance(node.func, ast.Attribute) else None
            is_number = _name_of(node) in _NUMBERS_OF
            if not isinstance(argument, ast.Starred) and (is_number or method is None):
                return ast.unparse(argument)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
            return ast.unparse(node.func.value if _name_of(node) in _MAKERS else node)
        if _name_of(node) in _GIVE_BOOLS or isinstance(
            node, (ast.Subscript, ast.Compare, ast.UnaryOp, ast.BinOp)
        ):
            return ast.unparse(node)
    return ""


_FORMATTING = _names("FORMAT_VALUE FORMAT_SIMPLE FORMAT_WITH_SPEC")
"""The instructions that format a value."""


def _is_question(node: ast.expr) -> TypeGuard[ast.Attribute]:
    """Whether an expression asks for what a value is."""
    return isinstance(node, ast.Attribute) and node.attr in ("dtype", "shape")


def _formatted(node: ast.JoinedStr) -> Iterator[ast.FormattedValue]:
    """Yield the parts of an f-string in the order in which Python formats them."""
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            if isinstance(part.format_spec, ast.JoinedStr):
                yield from _formatted(part.format_spec)
            yield part


def _source(file: str) -> _Source | None:
    tree = source_tree(file)
    return None if tree is None else _source_of(tree)


@lru_cache(maxsize=64)
def _source_of(tree: ast.Module) -> _Source:
    parents: dict[ast.AST, ast.AST] = {}
    expressions: dict[tuple[int, int, int, int], list[ast.expr]] = {}
    for node in ast.walk(tree):
        parents.update((child, node) for child in ast.iter_child_nodes(node))
        if isinstance(node, ast.expr):
            key = node.lineno, node.end_lineno or 0, node.col_offset, node.end_col_offset or 0
            expressions.setdefault(key, []).append(node)
    functions = [node for node in parents if isinstance(node, ast.FunctionDef)]
    counts = Counter(function.name for function in functions)
    by_name = {x.name: x for x in functions if counts[x.name] == 1}
    return _Source(parents, expressions, by_name, _imported_names(parents))


def _imported_names(nodes: Iterable[ast.AST]) -> dict[str, str]:
    modules: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            modules |= {(x.asname or x.name).partition(".")[0]: x.name for x in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules |= {x.asname or x.name: node.module or "." for x in node.names}
    return modules


def _nodes(site: CallSite) -> Sequence[ast.expr]:
    """Return the expressions at the place of an instruction."""
    code, at = site
    source = _source(code.co_filename)
    positions = list(code.co_positions())
    if source is None or not 0 <= at // 2 < len(positions):
        return ()
    place = positions[at // 2]
    numbers = tuple(x for x in place if x is not None)
    return source.expressions.get(numbers, ()) if len(numbers) == 4 else ()


class _Flow:
    """The places that a value reaches in one file; `callers` are the calls around its function."""

    def __init__(self, source: _Source, callers: Sequence[CallSite]) -> None:
        self.source, self.callers = source, callers
        self._names: set[tuple[ast.AST, str, tuple[ast.Call, ...]]] = set()
        self._calls: list[ast.Call] = []
        """The calls of functions of the file into which the value has been followed."""

    def leaves(self, node: ast.AST) -> bool:
        """Whether the value of an expression only leaves the program."""
        parent = self.source.parents.get(node)
        match parent:
            case ast.Expr() | ast.Delete():
                return True
            case ast.expr():
                return self._expression_leaves(parent, node)
            case ast.keyword():
                call = self.source.parents[parent]
                return isinstance(call, ast.Call) and self._call_leaves(call, parent)
            case ast.comprehension(target=target) | ast.For(target=target):
                return node is parent.iter and self._targets_leave(target)
            case ast.Return():
                return self._returned_leaves(parent)
            case ast.Assign():
                return all(map(self._targets_leave, parent.targets))
            case ast.AnnAssign():
                return self._targets_leave(parent.target)
            case ast.AugAssign(target=ast.Name() as name):  # not an array, which goes on
                return self._is_always(name, _is_plain) and self._name_leaves(name)
            case _:
                return False

    def _expression_leaves(self, parent: ast.expr, node: ast.AST) -> bool:
        """Whether a value leaves with the expression `parent` of which it is a part."""
        match parent:
            case ast.Call():
                return node is not parent.func and self._call_leaves(parent, node)
            case ast.Attribute():
                call = self.source.parents.get(parent)
                return isinstance(call, ast.Call) and self._method_leaves(call, parent.attr)
            case ast.Subscript():
                if node is not parent.value:
                    return False
                is_stored = isinstance(node, ast.Name) and not self._is_loaded(parent)
                return is_stored or (self._is_loaded(parent) and self.leaves(parent))
            case ast.BinOp():
                other = parent.right if node is parent.left else parent.left
                return _is_plain(other) and self.leaves(parent)  # one with an array goes on
            case ast.BoolOp():
                return node is parent.values[-1] and self.leaves(parent)
            case ast.Compare(ops=[_, _, *_]):
                return False
            case ast.IfExp():
                return node is not parent.test and self.leaves(parent)
            case ast.Lambda() | ast.NamedExpr() | ast.Await() | ast.Yield() | ast.YieldFrom():
                return False
            case _:
                return self._is_loaded(parent) and self.leaves(parent)

    @staticmethod
    def _is_loaded(node: ast.AST) -> bool:
        return isinstance(getattr(node, "ctx", ast.Load()), ast.Load)

    def _call_leaves(self, call: ast.Call, argument: ast.AST) -> bool:
        """Whether an argument leaves by a call: of a writer, or of a function of this file."""
        name, module = _name_of(call), _module_of(call, self.source)
        if _is_writer(call, self.source):
            return True
        if name in _COLLECTING and isinstance(call.func, ast.Attribute) and module is None:
            return self._container_leaves(call.func.value)
        if name in _ON_NUMBERS and self._is_made_of_numbers(call, argument, module):
            return self.leaves(call)
        function = self.source.functions.get(name)
        parameter = function and _parameter(function, call, argument)
        if function is None or parameter is None or call in self._calls:
            return False
        self._calls.append(call)
        try:
            return self._reads_leave(function, parameter)
        finally:
            self._calls.pop()

    def _is_made_of_numbers(self, call: ast.Call, argument: ast.AST, module: str | None) -> bool:
        """Whether a call of `_ON_NUMBERS` makes no array of an argument, which is a number."""
        name = _name_of(call)
        if module is not None:
            return module.partition(".")[0] in _NUMERIC_MODULES
        if isinstance(call.func, ast.Attribute):
            return name in _METHODS_OF_TEXT
        others = [x for x in call.args if x is not argument]
        return name not in _ARITHMETIC or all(map(_is_plain, others))

    def _method_leaves(self, call: ast.Call, name: str) -> bool:
        """Whether a container, or a number, leaves whose method the program calls."""
        if name in _COLLECTING or name in ("sort", "clear", "close", "pop"):
            return True
        return name in _ON_NUMBERS and self.leaves(call)

    def _targets_leave(self, target: ast.AST) -> bool:
        """Whether what the program assigns to a target only leaves."""
        match target:
            case ast.Name():
                return self._name_leaves(target)
            case ast.Tuple() | ast.List():
                return all(map(self._targets_leave, target.elts))
            case ast.Starred():
                return self._targets_leave(target.value)
            case ast.Subscript():
                container = _base(target)
                is_python = isinstance(container, ast.Name) and self._is_always(container, _is_new)
                return is_python and self._container_leaves(container)
            case _:
                return False

    def _is_always(self, name: ast.Name, test: Callable[[ast.expr], bool]) -> bool:
        """Whether all that a function assigns to a name, at least once, passes a test."""
        scope, values = self._scope(name), list[ast.expr]()
        if _has_parameter(scope, name.id):
            return False
        for node in ast.walk(scope):
            if not isinstance(node, ast.Name) or node.id != name.id or self._is_loaded(node):
                continue
            match self.source.parents.get(node):
                case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                    values.append(value)
                case ast.AugAssign():
                    pass
                case _:
                    return False
        return bool(values) and all(map(test, values))

    def _container_leaves(self, node: ast.AST) -> bool:
        """Whether what a container of a name has leaves, also where other functions read it."""
        name = _base(node)
        if not isinstance(name, ast.Name):
            return False
        scope = self._owner(name)
        return scope is not None and self._reads_leave(scope, name.id)

    def _owner(self, name: ast.Name) -> ast.AST | None:
        """Return the function, or the module, that assigns a name; None of a parameter."""
        scope = self._scope(name)
        while True:
            if _has_parameter(scope, name.id):
                return None
            names = (x for x in ast.walk(scope) if isinstance(x, ast.Name) and x.id == name.id)
            if not all(map(self._is_loaded, names)):
                return scope
            if isinstance(scope, ast.Module):
                return None
            scope = self._scope(scope)

    def _name_leaves(self, name: ast.Name) -> bool:
        """Whether a value that has a name only leaves: at each place that reads the name."""
        return self._reads_leave(self._scope(name), name.id)

    def _reads_leave(self, scope: ast.AST, name: str) -> bool:
        """Whether a value leaves at each place of a function that reads its name."""
        key = scope, name, tuple(self._calls)
        if key in self._names:
            return True  # the places are being looked at
        self._names.add(key)
        for node in ast.walk(scope):
            if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
                return False
            if _name_of(node) in _FRAME_READERS:
                return False
            if isinstance(node, ast.Name) and node.id == name and self._is_loaded(node):
                attribute = self.source.parents.get(node)
                is_written = isinstance(attribute, ast.Attribute) and not self._is_loaded(attribute)
                if is_written or not self.leaves(node):
                    return False
        return True

    def _scope(self, node: ast.AST) -> ast.AST:
        """Return the function around a node, or the module."""
        while node in self.source.parents:
            node = self.source.parents[node]
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return node
        return node

    def _returned_leaves(self, node: ast.AST) -> bool:
        """Whether the value that a function returns leaves, at the call that ran it."""
        scope = self._scope(node)
        if not isinstance(scope, ast.FunctionDef):
            return False
        if any(isinstance(x, (ast.Yield, ast.YieldFrom)) for x in ast.walk(scope)):
            return False
        if self._calls:
            call = self._calls.pop()  # the value is outside of the function now
            try:
                return self.leaves(call)
            finally:
                self._calls.append(call)
        return not self.callers or _leaves(tuple(self.callers))


def _parameter(function: ast.FunctionDef, call: ast.Call, argument: ast.AST) -> str | None:
    """Return the name of the parameter that takes an argument of a call; None if unknown."""
    if isinstance(argument, ast.keyword):
        return argument.arg
    names = [x.arg for x in (*function.args.posonlyargs, *function.args.args)]
    names = names[isinstance(call.func, ast.Attribute) and names[:1] == ["self"] :]
    places = (i for i, x in enumerate(call.args) if x is argument)
    position = next(places, len(names))
    starred = any(isinstance(x, ast.Starred) for x in call.args[: position + 1])
    return names[position] if position < len(names) and not starred else None


def _has_parameter(scope: ast.AST, name: str) -> bool:
    """Whether a scope is a function with a parameter of a name."""
    parts = ast.walk(scope.args) if isinstance(scope, ast.FunctionDef) else ()
    return any(isinstance(part, ast.arg) and part.arg == name for part in parts)


def _base(node: ast.AST) -> ast.AST:
    """Return the container, or the array, of which an expression takes an element."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _is_new(node: ast.AST) -> bool:
    """Whether an expression makes a container of Python."""
    match node:
        case ast.BinOp(op=ast.Mult()):
            return _is_new(node.left) or _is_new(node.right)
        case ast.List() | ast.Dict() | ast.ListComp() | ast.DictComp():
            return True
        case _:
            return _name_of(node) in _CONTAINERS


def _is_writer(call: ast.Call, source: _Source) -> bool:
    """Whether a call writes what it gets; the function log of a module computes logarithms."""
    name = _name_of(call)
    return name in WRITERS and (name != "log" or _module_of(call, source) in (None, "logging"))


def _module_of(call: ast.Call, source: _Source) -> str | None:
    """Return the module whose function a call names; None for methods and builtins."""
    function = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    return source.modules.get(function.id) if isinstance(function, ast.Name) else None


def _is_plain(node: ast.AST) -> bool:
    """Whether an expression is surely a number or a text of Python."""
    match node:
        case ast.Constant() | ast.JoinedStr():
            return True
        case ast.UnaryOp():
            return _is_plain(node.operand)
        case ast.BinOp():
            return _is_plain(node.left) and _is_plain(node.right)
        case ast.Call(func=ast.Attribute(attr=name)):
            return name == "item"
        case ast.Call():
            return _name_of(node) in _NUMBERS_OF
        case _:
            return False


def _name_of(call: ast.AST) -> str:
    """Return the name of the function, or of the method, that a call names."""
    function = call.func if isinstance(call, ast.Call) else None
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
