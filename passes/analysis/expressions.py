"""The source expression at a location: its text, and the text of each operand.

The text comes from the columns of a Location. Python's parser then finds the operands of the
outermost operation: the two sides of an operator, the object of a method, the arguments of a call.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, takewhile
from typing import NamedTuple

import numpy as np

from graphir.location import Location
from graphir.numpy_api.signatures import signature_of
from graphir.public import DType, Graph, ops
from graphir.source_text import source_line, source_tree

MODULES = frozenset(
    "F cp graphir jax jnp lax math nn np numpy onp ops scipy tf torch xp".split()  # noqa: SIM905
)
"""Names of modules: the first operand is an argument in `np.sin(x)`, the object in `x.sum()`."""


class Expression(NamedTuple):
    """The source text at a location, with the spans of the op's operands in the text.

    `text` may span lines. `spans` are (start, end) character offsets into `text`, in the order of
    the op's operands, as far as Python's grammar determines them: an operator's two sides, a
    method's object, a call's arguments.
    """

    text: str
    spans: tuple[tuple[int, int], ...] = ()

    def operand(self, position: int) -> str:
        """Return the text of an operand, or "" if its span is unknown."""
        if position >= len(self.spans):
            return ""
        start, end = self.spans[position]
        return self.text[start:end]

    def is_number(self, position: int) -> bool:
        """Whether an operand is written as a Python number, such as `2**40`."""
        node = statement(self.operand(position))
        return isinstance(node, ast.Expr) and _is_number(node.value)

    def replaced(self, texts: dict[int, str]) -> str:
        """Return the text with operands replaced by `texts`, keyed by operand position.

        An augmented assignment whose target is replaced becomes an assignment: `x += y` gives
        `x = x.astype(...) + y`.
        """
        if 0 in texts and self.is_augmented:
            sign = self.text[self.spans[0][1] : self.spans[1][0]].strip(" ()").removesuffix("=")
            value = texts.get(1, self.operand(1))
            operand = value if primary(value) else f"({value})"
            return f"{self.operand(0)} = {texts[0]} {sign} {operand}"
        new = self.text
        for position in sorted(texts, key=lambda i: self.spans[i], reverse=True):
            start, end = self.spans[position]
            new = f"{new[:start]}{texts[position]}{new[end:]}"
        return new

    @property
    def is_augmented(self) -> bool:
        """Whether the text is an augmented assignment."""
        return isinstance(statement(self.text), ast.AugAssign)

    @property
    def brief(self) -> str:
        """The text on one line, with runs of white space as one space."""
        return " ".join(self.text.split())


def expression(location: Location) -> Expression | None:
    """Return the source expression at a location, or None if its source or columns are unknown.

    Returns None for more than LONGEST characters too: the size of a report would grow with the
    length of the text times the number of rows that quote it.
    """
    _, line, column, end_line, end_column = location.place
    if end_column <= column and end_line == line:
        return None
    result = whole_expression(location)
    return result._replace(spans=()) if result and location.compound else result


def call_argument(
    location: Location, parameters: Sequence[str], cast_names: Collection[str]
) -> int:
    """Return the position of the one argument of a call beside those in `cast_names`.

    Constants do not count. Returns -1 if the text is no call or has several such arguments.
    """
    source = whole_expression(location)
    operands = [] if source is None else [source.operand(i) for i in range(len(source.spans))]
    others = [
        position
        for position, (name, text) in enumerate(zip(parameters, operands, strict=False))
        if name not in cast_names and not _is_constant(text)
    ]
    return others[0] if len(others) == 1 else -1


def _is_constant(text: str) -> bool:
    node = statement(text)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def whole_expression(location: Location) -> Expression | None:
    """Return the expression at a location with the operands of the call, if it is composite."""
    return _expression(_text(location))


@lru_cache(maxsize=4096)
def with_dtype(text: str, dtype: str, always: bool = False) -> str:
    """Return the text of a call with another `dtype=`; "" unless the text is such a call.

    With `always`, a call without the keyword gets it.
    """
    call = _call(text)
    if call is None or "\n" in text:
        return ""
    for value in _dtype_arguments(call):
        return f"{text[: value.col_offset]}{dtype}{text[value.end_col_offset :]}"
    end = (call.end_col_offset or 0) - 1
    separator = ", " if call.args or call.keywords else ""
    return f"{text[:end]}{separator}dtype={dtype}{text[end:]}" if always else ""


def _dtype_arguments(call: ast.Call) -> list[ast.expr]:
    """Return the arguments of a call that are its dtype: that of the keyword, or of the place."""
    at = dtype_position(call)
    values = [keyword.value for keyword in call.keywords if keyword.arg == "dtype"]
    return values + ([] if at is None else call.args[at : at + 1])


def dtype_position(call: ast.Call) -> int | None:
    """Return the position of `dtype` among the arguments of a function of NumPy; None elsewhere."""
    match call.func:
        case ast.Attribute(value=ast.Name(id="np" | "numpy" | "jnp"), attr=name):
            signature = signature_of(getattr(np, name, None))
            names = [] if signature is None else list(signature.parameters)
            return names.index("dtype") if "dtype" in names else None
        case _:
            return None


@lru_cache(maxsize=4096)
def default_dtype(text: str) -> tuple[int, int] | None:
    """Return the span of `float`, `int` or `complex` as an argument of a call; None without it."""
    call = _call(text)
    if call is None or "\n" in text:
        return None
    for value in (*call.args, *(keyword.value for keyword in call.keywords)):
        if isinstance(value, ast.Name) and value.id in ("float", "int", "complex"):
            return value.col_offset, value.end_col_offset or 0
    return None


def statement(text: str) -> ast.stmt | None:
    """Parse a text as exactly one statement; None if it does not parse or has several."""
    try:
        (node,) = ast.parse(text.strip()).body
    except (SyntaxError, ValueError):
        return None
    return node


def stored_name(text: str) -> str:
    """Return the text of the array to which an assignment writes elements; "" if to none."""
    node = statement(text)
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    return ast.unparse(target.value) if isinstance(target, ast.Subscript) else ""


def assigned_names(file: str) -> Mapping[int, str]:
    """Return the name or the attribute to which each line of a file assigns a value."""
    return _assigned_names(source_tree(file))


def buffer_line(location: Location) -> int:
    """Return the line that makes a value a buffer of a module; 0 if none does, or several do.

    The value has a name since the location, which a call of `register_buffer` takes.
    """
    name = assigned_names(location.source).get(location.line)
    lines: list[int] = []
    for node in ast.walk(source_tree(location.source) or ast.Module([], [])):
        match node:
            case ast.Call(func=ast.Attribute(attr="register_buffer"), args=[_, value, *_]):
                lines += [node.lineno] if ast.unparse(value) == name else []
            case _:
                pass
    return lines[0] if len(lines) == 1 else 0


@lru_cache(maxsize=64)
def _assigned_names(tree: ast.Module | None) -> Mapping[int, str]:
    nodes = ast.walk(tree or ast.Module([], []))
    return {
        line: ast.unparse(node.targets[0])
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Name, ast.Attribute))
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }


def is_a_call(text: str) -> bool:
    """Whether a text is a call, whose operands are those of a function."""
    return _call(text) is not None


def _call(text: str) -> ast.Call | None:
    """Return the call that is a text, or that it assigns; None of other texts."""
    match statement(text):
        case ast.Expr(value=ast.Call() as call) | ast.Assign(value=ast.Call() as call):
            return call
        case _:
            return None


def primary(text: str) -> bool:
    """Whether `.attribute` can follow a text without added parentheses."""
    match statement(text):
        case ast.Expr(value=node):
            simple = isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
            return simple or node.col_offset > 0  # the text has its own parentheses
        case _:
            return False


LONGEST = 4000
"""The most characters of an expression that `expression` reads."""


def _text(location: Location) -> str:
    """Return the source text at a location, or "" if it is unavailable or too long."""
    _, line, column, below, end_column = location.place
    start, end = column - 1, end_column - 1
    first = source_line(location.source, line)
    if line == below:
        longest = end - start > LONGEST or end > len(first.removesuffix("\n"))
        return "" if longest else first[start:end]
    if below - line > LONGEST:
        return ""
    between = range(line + 1, below)
    lines = [first[start : start + LONGEST], *(source_line(location.source, i) for i in between)]
    last = source_line(location.source, below)
    if sum(map(len, lines)) + end > LONGEST or end > len(last.removesuffix("\n")):
        return ""
    return "\n".join([*(line.rstrip("\n") for line in lines), last[:end]])


@lru_cache(maxsize=4096)
def _expression(text: str) -> Expression | None:
    return Expression(text, _spans(text)) if text.strip() else None


def _spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return the (start, end) offsets of the operands of a text's outermost operation."""
    for before, after in (("(\n", "\n)"), ("", "")):  # parentheses allow line breaks
        try:
            (root,) = ast.parse(f"{before}{text}{after}").body
        except (SyntaxError, ValueError):
            continue
        place, operands = _Places(text, before.count("\n")).of, operand_nodes(root)
        spans = [
            (place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset))
            for node, _ in operands
        ]
        return tuple(
            span if in_brackets else _with_parentheses(text, *span)
            for span, (_, in_brackets) in zip(spans, operands, strict=True)
        )
    return ()


class _Places:
    """Converts positions of Python's parser (line, column in UTF-8 bytes) to character offsets.

    Lines count from 1; the parsed source has `above` lines before the text.
    """

    def __init__(self, text: str, above: int) -> None:
        self.lines, self.above = text.split("\n"), above
        self.starts = [0, *accumulate(len(line) + 1 for line in self.lines)]

    def of(self, line: int | None, column: int | None) -> int:
        """Return the character offset of a line and a byte column."""
        at, size = (line or 1) - 1 - self.above, column or 0
        text = self.lines[at]
        if not text.isascii():
            size = len(text[:size].encode()[:size].decode(errors="replace"))
        return self.starts[at] + min(size, len(text))


def _with_parentheses(text: str, start: int, end: int) -> tuple[int, int]:
    """Extend a span to include the parentheses that enclose it."""
    before, after = text[:start].rstrip(), text[end:].lstrip()
    while before.endswith("(") and after.startswith(")"):
        start, end = len(before) - 1, len(text) - len(after) + 1
        before, after = text[:start].rstrip(), text[end:].lstrip()
    return start, end


def operand_nodes(statement: ast.stmt) -> list[tuple[ast.expr, bool]]:
    """Return a statement's operand nodes, each with whether the brackets of a call enclose it."""
    match statement:
        case ast.AugAssign():
            return [(statement.target, False), (statement.value, False)]
        case ast.Assign():
            return [(statement.value, False)]
        case ast.Expr(value=ast.Call() as call) if _is_of_arrays(call.func):
            arguments = [(expr, True) for expr in _arguments(call.args)]
            return [*((expr, False) for expr in _receiver(call.func)), *arguments]
        case ast.Expr(value=ast.BinOp() as node):
            return [(node.left, False), (node.right, False)]
        case ast.Expr(value=ast.Compare() as node):
            sides = [(expr, False) for expr in (node.left, *node.comparators)]
            return sides[::-1] if _is_number(node.left) else sides  # Python asks the array first
        case ast.Expr(value=ast.UnaryOp() as node):
            return [(node.operand, False)]
        case ast.Expr(value=(ast.Subscript() | ast.Attribute()) as node):
            return [(node.value, False)]
        case _:
            return []


def _is_of_arrays(function: ast.expr) -> bool:
    """Whether a function is one of a library's, whose arguments are the operands of its op.

    The arguments of a program's own function are not.
    """
    match function:
        case ast.Name(id=name):
            return name in _FUNCTIONS
        case ast.Attribute(value=value, attr=name):
            while isinstance(value, ast.Attribute):
                value = value.value
            if isinstance(value, ast.Name) and value.id in MODULES:
                return True
            tensor = getattr(sys.modules.get("torch"), "Tensor", None)
            is_method = name in _METHODS or hasattr(tensor, name)
            return is_method and not name.startswith("__")
        case _:
            return False


_FUNCTIONS = frozenset((*dir(np), *dir(ops)))
_METHODS = frozenset((*dir(np.ndarray), *dir(ops)))


def _is_number(node: ast.expr) -> bool:
    match node:
        case ast.Constant():
            return isinstance(node.value, (bool, int, float, complex))
        case ast.UnaryOp():
            return _is_number(node.operand)
        case ast.BinOp():
            return _is_number(node.left) and _is_number(node.right)
        case _:
            return False


def _receiver(function: ast.expr) -> list[ast.expr]:
    """Return the object of a method call in a list; an empty list for a function of a module."""
    if not isinstance(function, ast.Attribute):
        return []
    root = function.value
    while isinstance(root, ast.Attribute):
        root = root.value
    module = isinstance(root, ast.Name) and root.id in MODULES
    return [] if module else [function.value]


def _arguments(arguments: Sequence[ast.expr]) -> list[ast.expr]:
    """Return the positional arguments before `*`; flatten a leading list of a variadic op."""
    if arguments and isinstance(arguments[0], (ast.List, ast.Tuple)):
        arguments = [*arguments[0].elts, *arguments[1:]]
    return list(takewhile(lambda argument: not isinstance(argument, ast.Starred), arguments))


# -- dtypes that a program names


class NamedDType(NamedTuple):
    """A name that an expression gives as a dtype, and the line that gives the dtype to the name."""

    name: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"with {self.name} of line {self.line}: {self.text}"


def named_dtype(location: Location, dtype: DType) -> NamedDType | None:
    """Return the line that gives its dtype to the name by which an expression asks for a dtype.

    Such a name is `self.dtype` in `x.astype(self.dtype)`. The line is the only one of the file that
    gives `dtype` the dtype itself: a default of a parameter or of a field, an assignment, or an
    argument.
    """
    source = expression(location)
    node = None if source is None else statement(source.text)
    calls = [] if node is None else [x for x in ast.walk(node) if isinstance(x, ast.Call)]
    names = [x for call in calls for x in _dtypes_asked(call)]
    if len(names) != 1:
        return None
    name = names[0].attr if isinstance(names[0], ast.Attribute) else names[0].id
    lines = _bindings(source_tree(location.source)).get(name, {})
    given = {line for line, value in lines.items() if value in _NAMES.get(str(dtype), ())}
    if len(given) != 1:
        return None
    line = given.pop()
    text = " ".join(source_line(location.source, line).split()).rstrip(":,")
    return NamedDType(ast.unparse(names[0]), line, text)


def _dtypes_asked(call: ast.Call) -> list[ast.Name | ast.Attribute]:
    """Return the names that a call has as its dtype, but for that of an array."""
    values = _dtype_arguments(call)
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("astype", "to", "type", "view"):
        values += call.args[:1]
    names = (x for x in values if isinstance(x, (ast.Name, ast.Attribute)))
    return [x for x in names if isinstance(x, ast.Name) or not (_dtype_name(x) or _is_of_array(x))]


def _is_of_array(node: ast.Attribute) -> bool:
    return node.attr == "dtype" and ast.unparse(node) != "self.dtype"


def _dtype_name(node: ast.expr | None) -> str:
    """Return the last part of an expression that may be a dtype: `float32` of `np.float32`."""
    match node:
        case ast.Attribute(value=ast.Name(id=module), attr=name) if module in MODULES:
            return name
        case ast.Name(id="float" | "int" as name) | ast.Constant(value=str(name)):
            return f"`{name}`" if isinstance(node, ast.Name) else name
        case _:
            return ""


_NAMES = {
    "float64": ("float64", "double", "float_", "`float`"),
    "float32": ("float32", "float", "single"),
    "float16": ("float16", "half"),
    "int64": ("int64", "long", "`int`"),
    "int32": ("int32", "int", "intc"),
} | {name: (name,) for name in ("bfloat16", "int16", "int8", "uint8", "uint16", "uint32", "uint64")}
"""The names that libraries have for a dtype; in backquotes those of Python."""


@lru_cache(maxsize=64)
def _bindings(tree: ast.Module | None) -> Mapping[str, Mapping[int, str]]:
    """Return by name the lines of a file that give it a dtype, each with the dtype's name."""
    found: dict[str, dict[int, str]] = {}
    for node in ast.walk(tree or ast.Module([], [])):
        for name, value in _bound(node):
            dtype = _dtype_name(value)
            if dtype and value is not None:
                found.setdefault(name, {})[value.lineno] = dtype
    return found


def _bound(node: ast.AST) -> list[tuple[str, ast.expr | None]]:
    """Return the names that a node binds, each with the value."""
    match node:
        case ast.arguments(kw_defaults=defaults, kwonlyargs=named):
            last = [*node.posonlyargs, *node.args][-len(node.defaults) :] if node.defaults else []
            pairs = [*zip(last, node.defaults, strict=True), *zip(named, defaults, strict=True)]
            return [(parameter.arg, value) for parameter, value in pairs]
        case ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(attr=name)], value=value):
            return [(name, value)]
        case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name), value=value):
            return [(name, value)]
        case ast.keyword(arg=str(name), value=value):
            return [(name, value)]
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            named = [(x.value, y) for x, y in pairs if isinstance(x, ast.Constant)]
            return [(name, value) for name, value in named if isinstance(name, str)]
        case _:
            return []


# -- how libraries write casts


SCALARS = frozenset(
    "float64 float32 float16 double single int64 int32 int16 int8".split()  # noqa: SIM905
)
"""Types of NumPy that make a scalar of a number."""


class CastSyntax(NamedTuple):
    """Format strings: a cast of the operand `{x}` to `{dtype}`, the dtype alone, a number of it.

    `argument` is a dtype that a function takes, and `{name}` the dtype's name in ONNX.
    """

    cast: str = '{x}.astype("{dtype}")'
    dtype: str = "np.{dtype}"
    number: str = "np.{dtype}({x})"
    argument: str = '"{dtype}"'

    def cast_of(self, text: str, dtype: DType) -> str:
        """Return the cast of an operand that a text writes.

        A number, a list, and a scalar of NumPy get the type's call, since they have no `astype`.
        """
        node = statement(text)
        value = node.value if isinstance(node, ast.Expr) else None
        is_written_out = isinstance(value, (ast.List, ast.Tuple, ast.Constant))
        number = self.number_of(text, dtype) if is_written_out else self.scalar_of(text, dtype)
        if number:
            return number
        x = text if primary(text) or not self.cast.startswith("{x}") else f"({text})"
        name = _ONNX.get(dtype, str(dtype).upper().replace("_", ""))
        return self.cast.format(x=x, dtype=dtype, name=name)

    def scalar_of(self, text: str, dtype: DType) -> str:
        """Return `np.float64(x)`, or another scalar of NumPy, as one of a dtype; "" of other texts.

        Empty too if the library has no such type.
        """
        match statement(text):
            case ast.Expr(value=ast.Call(func=ast.Attribute() as function, keywords=[])):
                module, _, name = ast.unparse(function).partition(".")
                if module not in ("np", "numpy", "jnp") or name not in SCALARS:
                    return ""
                arguments = text[(function.end_col_offset or 0) + 1 : -1]
                if hasattr(np, str(dtype)):
                    return f"{module}.{dtype}({arguments})"
                return self.number_of(arguments, dtype)
            case _:
                return ""

    def dtype_of(self, dtype: DType) -> str:
        """Return the expression of a dtype."""
        return self.dtype.format(dtype=dtype)

    def number_of(self, text: str, dtype: DType) -> str:
        """Return a number of a dtype; "" if the library has no such dtype."""
        return self.number.format(x=text, dtype=dtype) if self.has(dtype) else ""

    def has(self, dtype: DType) -> bool:
        """Whether the library has a dtype by its name."""
        return hasattr(np, str(dtype)) or not self.number.startswith("np.")


_ONNX = {DType.float32: "FLOAT", DType.float64: "DOUBLE"}


NUMPY = CastSyntax()
LIBRARIES = {
    "jax": CastSyntax(dtype="jnp.{dtype}", number="jnp.{dtype}({x})"),
    "torch": CastSyntax(
        "{x}.to(torch.{dtype})",
        "torch.{dtype}",
        "torch.tensor({x}, dtype=torch.{dtype})",
        "torch.{dtype}",
    ),
    "onnx": CastSyntax("Cast({x}, to={name})"),
}


def syntax_of(graph: Graph) -> CastSyntax:
    """Return the syntax of the library whose program a graph is; NumPy's for other graphs."""
    return LIBRARIES.get(graph.provenance.library, NUMPY)
