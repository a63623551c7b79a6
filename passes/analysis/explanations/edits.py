"""Edits: the text to write in place of a source expression, so that it has another dtype."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from graphir.location import Location
from graphir.passes.analysis.expressions import (
    CastSyntax,
    default_dtype,
    dtype_position,
    expression,
    statement,
    syntax_of,
    with_dtype,
)
from graphir.passes.analysis.suggestions import UncastOp, source_rewritten
from graphir.public import DType, PromotionRules, Symbol, ops


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Edit(NamedTuple):
    """One line of text that replaces the source expression at a place."""

    place: Location
    text: str


def combined(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Return the edits, with one edit for each expression and the edited ones inside of it."""
    outer: list[Edit] = []
    for edit in sorted(dict.fromkeys(edits), key=lambda x: _span(x.place), reverse=True):
        inside = next((x for x in outer if _contains(x.place, edit.place)), None)
        source = expression(edit.place)
        if inside is None or source is None:
            outer.append(edit)
        elif source.brief in inside.text:
            text = inside.text.replace(source.brief, edit.text, 1)
            outer[outer.index(inside)] = inside._replace(text=text)
    return tuple(sorted(outer, key=lambda x: x.place.place))


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
    return Edit(place, new) if new and new != text else None


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
    return Edit(place, text)


def dtype_edit(cast: Symbol, dtype: DType) -> Edit | None:
    """Return the edit that names a dtype in a cast to `float` or `int`; None for another cast."""
    source = None if cast.location.compound else expression(cast.location)
    span = None if source is None else default_dtype(source.text)
    if source is None or span is None:
        return None
    name = syntax_of(cast.graph).argument_of(dtype)
    return Edit(cast.location, f"{source.text[: span[0]]}{name}{source.text[span[1] :]}")


def operand_edit(
    rules: PromotionRules, step: Symbol, values: list[Symbol], casts: Mapping[int, DType]
) -> Edit | None:
    """Return the edit that casts operands of an op, by position; None without source."""
    place, syntax = step.location, syntax_of(step.graph)
    source = None if place.compound else expression(place)
    if source is None or not casts:
        return None
    if source.text.startswith(("np.concatenate(", "numpy.concatenate(")) and len(casts) == 1:
        (dtype,) = casts.values()
        text = with_dtype(source.text, syntax.dtype_of(dtype), always=True)
    else:
        text = source_rewritten(UncastOp(rules, step.op, values), place, casts)
    return Edit(place, " ".join(text.split())) if text else None


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
