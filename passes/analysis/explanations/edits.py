"""Edits: the text to write in place of a source expression, so that it has another dtype."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from inspect import signature
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from graphir.location import NUMPY, Location
from graphir.passes.analysis.casts.behind_casts import in_call, uncast
from graphir.passes.analysis.expressions import (
    CastSyntax,
    Expression,
    call_argument,
    default_dtype,
    dtype_position,
    expression,
    statement,
    syntax_of,
    whole_expression,
    with_dtype,
)
from graphir.passes.analysis.rebuild import is_literal
from graphir.public import DType, Graph, GraphirError, Op, PromotionRules, Symbol, TensorType, ops
from graphir.source_text import source_tree


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Edit(NamedTuple):
    """One line of text that replaces the source expression at a place.

    It casts operands of the steps at the place, by position, to dtypes, or makes their results or
    the values that are born there in `dtype`; with neither, what it does is not in terms of casts.
    Without source, as of a model's nodes, the text is no code, but says in words what to cast.
    """

    place: Location
    text: str
    casts: tuple[tuple[int, DType], ...] = ()
    dtype: DType | None = None
    is_code: bool = True

    def seen_from(self, place: Location) -> str:
        """Return the text, with its line if that is another than the line of `place`."""
        if not self.is_code or self.place.place[:2] == place.place[:2]:
            return self.text
        return f"{self.text} in line {self.place.line}"


def code_edit(
    place: Location,
    text: str,
    casts: Mapping[int, DType] = MappingProxyType({}),
    dtype: DType | None = None,
) -> Edit | None:
    """Return an edit of one line, with the names that its file has for libraries; or None."""
    if not text:
        return None
    names = _names_of(source_tree(place.source))
    text = _LIBRARY.sub(lambda found: f"{names.get(found[1], found[1])}.", " ".join(text.split()))
    return Edit(place, text, tuple(casts.items()), dtype)


_LIBRARY = re.compile(r"(?<![\w.])(np|jnp|torch)\.")
_MODULES = {"numpy": "np", "jax.numpy": "jnp", "torch": "torch"}


@lru_cache(maxsize=64)
def _names_of(tree: ast.Module | None) -> Mapping[str, str]:
    """Return the other names that a file has for libraries, by the usual one that it has not."""
    imports = [x for x in ast.walk(tree or ast.Module([], [])) if isinstance(x, ast.Import)]
    names = [(name.name, name.asname or name.name) for x in imports for name in x.names]
    bound = {alias for _, alias in names}
    usual = [(_MODULES[name], alias) for name, alias in names if name in _MODULES]
    return {name: alias for name, alias in reversed(usual) if name not in bound}


def words(
    place: Location, text: str, casts: Mapping[int, DType] = MappingProxyType({})
) -> Edit | None:
    """Return an edit in words; None without a text."""
    return Edit(place, text, tuple(casts.items()), is_code=False) if text else None


def combined(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Return the edits, with one edit for each expression and the edited ones inside of it."""
    outer, order = list[Edit](), list(dict.fromkeys(edits))
    for edit in sorted(order, key=lambda x: _span(x.place), reverse=True):
        inside = next((x for x in outer if _contains(x.place, edit.place)), None)
        source = expression(edit.place)
        if inside is None or source is None:
            outer.append(edit)
        elif source.brief in inside.text:
            text = inside.text.replace(source.brief, edit.text, 1)
            outer[outer.index(inside)] = inside._replace(text=text)
    places = [x.place for x in order]
    return tuple(sorted(outer, key=lambda x: places.index(x.place)))


def _span(place: Location) -> tuple[int, int]:
    _, line, column, end_line, end_column = place.place
    return end_line - line, end_column - column


def _contains(outer: Location, inner: Location) -> bool:
    file, line, column, end_line, end_column = outer.place
    other, *start, inner_line, inner_column = inner.place
    is_after = [line, column] <= start
    return file == other and is_after and (inner_line, inner_column) <= (end_line, end_column)


def birth_edit(birth: Symbol, dtype: DType) -> Edit | None:
    """Return the edit that makes a value in another dtype where it is born; None without source.

    A function that makes arrays gets the dtype, a scalar of NumPy another type; any other
    expression is cast.
    """
    place, syntax = birth.location, syntax_of(birth.graph)
    source = expression(place)
    node = statement(source.text) if source else None
    if source is None or not isinstance(node, ast.Expr):
        return None
    text = source.brief
    new = _call_in_dtype(text, dtype, syntax)
    is_value = birth.op not in (ops.constant, ops.input) and not place.compound
    if not new and (is_value or isinstance(node.value, (ast.List, ast.Tuple))):
        new = _converted(text, birth.rank, dtype, syntax)
    return code_edit(place, new, dtype=dtype) if new != text else None


def value_edit(step: Symbol, dtype: DType) -> Edit | None:
    """Return the edit that makes the value of an expression in a dtype; None without source.

    An expression that names the dtype that it has gets the other name; any other one is cast.
    """
    place = step.location
    source = None if place.compound else expression(place)
    if source is None or not isinstance(statement(source.text), ast.Expr):
        return None
    named = source.brief.replace(str(step.type.dtype), str(dtype))
    is_named = named != source.brief
    text = named if is_named else _converted(source.brief, step.rank, dtype, syntax_of(step.graph))
    return code_edit(place, text, dtype=dtype)


def dtype_edit(cast: Symbol, dtype: DType) -> Edit | None:
    """Return the edit that names a dtype in a cast to `float` or `int`; None for another cast."""
    source = None if cast.location.compound else expression(cast.location)
    span = None if source is None else default_dtype(source.text)
    if source is None or span is None:
        return None
    name = syntax_of(cast.graph).argument.format(dtype=dtype)
    text = f"{source.text[: span[0]]}{name}{source.text[span[1] :]}"
    return code_edit(cast.location, text, dtype=dtype)


def call_edit(step: Symbol, dtype: DType, always: bool = False) -> Edit | None:
    """Return the edit of a call's `dtype=`; None of other text, and without one unless `always`."""
    source = expression(step.location)
    name = syntax_of(step.graph).dtype_of(dtype)
    text = "" if source is None else with_dtype(source.text, name, always)
    return code_edit(step.location, text, dtype=dtype)


class UncastOp(NamedTuple):
    """An op under rules, on operand `values` before any cast."""

    rules: PromotionRules
    op: Op
    values: Sequence[Symbol]

    @property
    def syntax(self) -> CastSyntax:
        """How the library of the program writes a cast."""
        return syntax_of(self.values[0].graph) if self.values else CastSyntax()

    def edit(self, place: Location, casts: Mapping[int, DType]) -> Edit | None:
        """Return the edit that casts operands, by position; in words if the source is unknown."""
        if expression(place) is not None:
            return operands_edit(self, place, casts)
        others = _without_literals(self.values, casts)
        return words(place, self.in_words(others), others)

    def in_words(self, casts: Mapping[int, DType]) -> str:
        """Return the casts of operands in words; "" without casts."""
        names = {i: operand_name(self.op, self.values[i], i) for i in casts}
        texts = [self.syntax.cast_of(names[i], dtype) for i, dtype in casts.items()]
        return f"{self.op.name} of {', '.join(texts)}" if texts else ""


def operands_edit(uncast: UncastOp, place: Location, casts: Mapping[int, DType]) -> Edit | None:
    """Return the edit that casts operands of an op, by position; None without source.

    Under rules that write `x += y` to the array x, the value is cast to the dtype of x: the name x
    keeps its array.
    """
    source = expression(place)
    is_in_place = 0 in casts and uncast.op.name in uncast.rules.in_place
    if is_in_place and source and source.is_augmented:
        return assignment_edit(place, uncast.values[0].dtype, uncast.syntax)
    casts = _without_literals(uncast.values, casts)
    if source is None or not casts:
        return None
    if uncast.op.variadic and len(source.spans) < len(uncast.values):
        return None  # the text names a list of operands, which has no cast
    return code_edit(place, _cast_operands(source, tuple(casts.items()), uncast.syntax), casts)


_NUMPY = CastSyntax()


def assignment_edit(place: Location, dtype: DType, syntax: CastSyntax = _NUMPY) -> Edit | None:
    """Return the edit of an assignment that casts its value to `dtype`, that of the target array.

    Returns None if the place has no assignment, or if the value is a list, tuple or constant, which
    has no `astype`.
    """
    source = expression(place)
    node = statement(source.text) if source else None
    if source is None or not isinstance(node, (ast.Assign, ast.AugAssign)):
        return None
    if isinstance(node.value, _WRITTEN_OUT):
        return None
    last = len(source.spans) - 1
    return code_edit(place, source.replaced({last: _cast(source, last, dtype, syntax)}))


def operand_name(op: Op, value: Symbol, position: int) -> str:
    """Return the name of an operand: of the node of a model that made it, else the parameter's."""
    place = value.location
    return place.file if place.file and not place.line else op.operand(position)


def _without_literals(values: Sequence[Symbol], casts: Mapping[int, DType]) -> Mapping[int, DType]:
    """Return the casts but those of Python numbers, which have no `astype`, if others remain."""
    others = {i: dtype for i, dtype in casts.items() if not is_literal(values[i])}
    return others or casts


@lru_cache(maxsize=4096)
def _cast_operands(
    source: Expression, casts: tuple[tuple[int, DType], ...], syntax: CastSyntax
) -> str:
    """Return an expression with operands cast, by position, or "" if a span is unknown."""
    dtypes = dict(casts)
    if max(dtypes) >= len(source.spans):
        return ""
    texts = {i: _cast(source, i, dtype, syntax) for i, dtype in dtypes.items()}
    text = source.replaced(texts) if all(texts.values()) else ""
    return text if len(text) <= LONGEST else ""


def _cast(source: Expression, position: int, dtype: DType, syntax: CastSyntax) -> str:
    """Return the cast of an operand; "" for a number in a dtype that has no numbers."""
    text = source.operand(position)
    is_number = source.is_number(position)
    return syntax.number_of(text, dtype) if is_number else syntax.cast_of(text, dtype)


LONGEST = 500
"""The most characters of an edit that quotes the source."""
_WRITTEN_OUT = (ast.List, ast.Tuple, ast.Constant, ast.ListComp)


class WideArgument(NamedTuple):
    """The argument of a call of NumPy that is wide: its parameter, its text, and the call's text.

    `types` are those of the arguments that the call casts, by parameter.
    """

    parameter: str
    text: str
    source: Expression
    position: int
    types: Mapping[str, TensorType]


def wide_argument(step: Symbol) -> WideArgument | None:
    """Return the one argument that a NumPy function does not cast, at a cast that it makes."""
    source, function = whole_expression(step.location), step.origins[0].op
    inside = (x for x in step.graph.symbols if in_call(x) and x.location == step.location)
    casts = [x for x in inside if x.origins[0].op == function]
    names = {x.origins[0].operand for x in casts if x.args[0].dtype is not x.dtype}
    try:
        parameters = list(signature(_function(function)).parameters)
    except (AttributeError, ValueError):  # an older NumPy
        return None
    position = call_argument(step.location, parameters, names)
    if position < 0 or source is None:
        return None
    types = {x.origins[0].operand: uncast(x.args[0]).type for x in casts}
    text = " ".join(source.operand(position).split())
    return WideArgument(parameters[position], text, source, position, types)


def argument_edit(
    rules: PromotionRules, step: Symbol, argument: Symbol, dtype: DType
) -> Edit | None:
    """Return the edit that casts the wide argument of a NumPy function, at a cast that it makes.

    Returns None unless the function makes a result of the dtype then.
    """
    wide = wide_argument(step)
    if wide is None:
        return None
    types = {**wide.types, wide.parameter: argument.type.cast(dtype)}
    probe = Graph("probe", rules=rules)
    try:
        call = _function(step.origins[0].op)
        result = call(**{name: probe.input(type_) for name, type_ in types.items()})
    except (GraphirError, TypeError):
        return None
    if not isinstance(result, Symbol) or result.dtype is not dtype:
        return None
    text = wide.source.replaced({wide.position: syntax_of(step.graph).cast_of(wide.text, dtype)})
    return code_edit(step.location, text)


def _function(op: str) -> Callable[..., object]:
    return attrgetter(op.removeprefix(NUMPY))(np)


def _converted(text: str, rank: int, dtype: DType, syntax: CastSyntax) -> str:
    """Return the cast of an expression; of one number the number type's call."""
    number = "" if rank else syntax.number_of(text, dtype)
    return number or syntax.cast_of(text, dtype)


def _call_in_dtype(text: str, dtype: DType, syntax: CastSyntax) -> str:
    """Return a call that makes an array or a scalar, in another dtype; "" for another text."""
    if scalar := syntax.scalar_of(text, dtype):
        return scalar
    node = statement(text)
    match node.value if isinstance(node, ast.Expr) else None:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)) as call:
            takes = name in _TORCH_MAKERS if module == "torch" else dtype_position(call) is not None
            is_maker = takes and name not in _REDUCING and syntax.has(dtype)
            return with_dtype(text, syntax.dtype_of(dtype), always=True) if is_maker else ""
        case _:
            return ""


_REDUCING = _names("sum prod mean var std cumsum cumprod trace")
_TORCH_MAKERS = _names(
    "arange as_tensor empty eye full linspace logspace ones rand randn scalar_tensor tensor zeros "
    "ones_like zeros_like full_like rand_like randn_like"
)
"""Functions of PyTorch that take `dtype=`: https://docs.pytorch.org/docs/stable/torch.html."""
