"""Fixes: the source line to type instead of an implicit cast.

A fix depends on the loss. If the operands lose values at their join, the fix casts all of them to
the smallest dtype that has every value of each. If a known number fits the narrow operand's dtype,
the fix casts the number. Otherwise the fix writes the implicit casts down.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphirError
from graphir.ir.op_builder import infer
from graphir.ir.operands import number_of
from graphir.ir.symbol import Symbol
from graphir.location import Location
from graphir.loss import Loss, literal_loss
from graphir.ops.op import Op
from graphir.ops.types import TensorType
from graphir.passes.analysis.expressions import (
    NUMPY,
    CastSyntax,
    Expression,
    expression,
    statement,
    syntax_of,
)
from graphir.passes.analysis.rebuild import is_literal
from graphir.promotion import PromotionRules
from graphir.promotion.operands import smallest_holding
from graphir.promotion.scalars import survives


class UncastOp(NamedTuple):
    """An op under rules, on operand `values` before any cast."""

    rules: PromotionRules
    op: Op
    values: Sequence[Symbol]

    @property
    def syntax(self) -> CastSyntax:
        """How the library of the program writes a cast."""
        return syntax_of(self.values[0].graph) if self.values else NUMPY


class Promotion(NamedTuple):
    """An op on operand `values` before any cast, and the implicit `casts` of operands by position.

    The cast in question is that of the operand at `position`, with the given `loss`. `number` is
    True if that operand is a Python number that the program writes without a dtype.
    """

    rules: PromotionRules
    op: Op
    values: Sequence[Symbol]
    casts: Mapping[int, DType]
    position: int
    loss: Loss
    number: bool = False

    @property
    def uncast(self) -> UncastOp:
        """The op, its rules and its operands."""
        return UncastOp(self.rules, self.op, self.values)

    @property
    def meeting(self) -> Sequence[int]:
        """The positions of the operands that promote together."""
        positions = self.op.signature.promoted
        return range(len(self.values)) if positions is None else positions

    @property
    def others(self) -> Sequence[int]:
        """The positions of the operands that promote with the operand in question."""
        return [i for i in self.meeting if i != self.position]


MOST_OPERANDS = 16
"""The most operands of an op whose fix quotes source and casts several operands."""

LONGEST = 500
"""The most characters of a fix that quotes the source."""


def fix(promotion: Promotion, location: Location, avoid: Collection[DType] = ()) -> str:
    """Return the code to type so that no cast is silent and no avoidable loss remains.

    If operands lose values, the fix casts all to the smallest dtype that has every value of each,
    unless `avoid` has that dtype. If a known number fits the narrow dtype, the fix casts the number
    to the narrow dtype. Otherwise the fix writes the implicit casts down; for an op of more than
    MOST_OPERANDS operands it writes only the cast in question. Returns "" for a number that its
    dtype merely rounds.
    """
    if len(promotion.values) > MOST_OPERANDS:
        is_written = promotion.position in promotion.casts and not promotion.number
        positions = (promotion.position,) if is_written else ()
        casts = {position: promotion.casts[position] for position in positions}
        return _casts_in_words(promotion.uncast, casts)
    return rewritten(promotion.uncast, location, _target_dtypes(promotion, avoid))


def cast_assignment(location: Location, dtype: DType, syntax: CastSyntax = NUMPY) -> str:
    """Return the assignment at a location with its value cast to `dtype`, that of the target array.

    The text is one line.

    Returns "" if the location has no assignment, or if the value is a list, tuple or constant,
    which has no `astype`.
    """
    expression_ = expression(location)
    node = statement(expression_.text) if expression_ else None
    if expression_ is None or not isinstance(node, (ast.Assign, ast.AugAssign)):
        return ""
    last = len(expression_.spans) - 1
    is_list = isinstance(node.value, _WRITTEN_OUT)
    if is_list:
        return ""
    return " ".join(expression_.replaced({last: _cast(expression_, last, dtype, syntax)}).split())


_WRITTEN_OUT = (ast.List, ast.Tuple, ast.Constant, ast.ListComp)


def rewritten(uncast: UncastOp, location: Location, dtypes: Mapping[int, DType]) -> str:
    """Return the expression at a location with operands cast; words if the source is unknown."""
    if text := source_rewritten(uncast, location, dtypes):
        return " ".join(text.split())
    return _casts_in_words(uncast, _without_literals(uncast.values, dtypes))


def source_rewritten(uncast: UncastOp, location: Location, dtypes: Mapping[int, DType]) -> str:
    """Return the expression at a location with operands cast, or "" if the source is unknown.

    Under rules that write `x += y` to the array x, the value is cast to the dtype of x: the name x
    keeps its array.
    """
    expression_ = expression(location)
    in_place = 0 in dtypes and uncast.op.name in uncast.rules.in_place
    if in_place and expression_ and expression_.is_augmented:
        return cast_assignment(location, uncast.values[0].dtype, uncast.syntax)
    casts = _without_literals(uncast.values, dtypes)
    if expression_ is None or not casts:
        return ""
    return _cast_operands(expression_, tuple(casts.items()), uncast.syntax)


def _without_literals(values: Sequence[Symbol], dtypes: Mapping[int, DType]) -> Mapping[int, DType]:
    """Return the casts but those of Python numbers, which have no `astype`, if others remain."""
    others = {i: dtype for i, dtype in dtypes.items() if not is_literal(values[i])}
    return others or dtypes


def _casts_in_words(uncast: UncastOp, dtypes: Mapping[int, DType]) -> str:
    """Return the casts in words; "" without casts."""
    op, values = uncast.op, uncast.values
    casts = [
        uncast.syntax.cast_of(operand_name(op, values[i], i), dtype) for i, dtype in dtypes.items()
    ]
    return f"{op.name} of {', '.join(casts)}" if casts else ""


def operand_name(op: Op, value: Symbol, position: int) -> str:
    """Return the name of an operand: of the node of a model that made it, else the parameter's."""
    place = value.location
    return place.file if place.file and not place.line else op.operand(position)


@lru_cache(maxsize=4096)
def _cast_operands(
    expression_: Expression, casts: tuple[tuple[int, DType], ...], syntax: CastSyntax
) -> str:
    """Return an expression with operands cast, by position, or "" if a span is unknown."""
    dtypes = dict(casts)
    if max(dtypes) >= len(expression_.spans):
        return ""
    texts = {i: _cast(expression_, i, dtype, syntax) for i, dtype in dtypes.items()}
    text = expression_.replaced(texts) if all(texts.values()) else ""
    return text if len(text) <= LONGEST else ""


def _target_dtypes(promotion: Promotion, avoid: Collection[DType]) -> Mapping[int, DType]:
    """Return the dtypes to which the fix casts operands, by position."""
    if promotion.number:
        return _around_number(promotion, avoid)
    if promotion.loss.exact:
        return _narrowed_number(promotion) or _written_down(promotion)
    return _holding(promotion, avoid) or _integers(promotion) or _written_down(promotion)


def _integers(promotion: Promotion) -> dict[int, DType]:
    """Return the cast that keeps integers of unlike signs integers, in place of floats.

    No integer dtype has all values of uint64 and of a signed one. Known values without a sign take
    the unsigned dtype; else all take int64.
    """
    target = promotion.casts.get(promotion.position)
    dtypes = {i: promotion.values[i].dtype for i in promotion.meeting}
    if target is None or not target.is_float or not all(x.is_integer for x in dtypes.values()):
        return {}
    signed = {i: dtype for i, dtype in dtypes.items() if dtype.family == "int"}
    unsigned = {i: dtype for i, dtype in dtypes.items() if dtype.family == "uint"}
    if not signed or not unsigned or any(dtype.weak for dtype in dtypes.values()):
        return {}
    no_signs = all(_has_no_sign(promotion.values[i]) for i in signed)
    common = max(unsigned.values(), key=lambda x: x.bits) if no_signs else DType.int64
    casts = {i: common for i, dtype in dtypes.items() if dtype is not common}
    after = _operands(promotion, casts)
    return casts if after and all(after[i] is common for i in dtypes) else {}


def _has_no_sign(symbol: Symbol) -> bool:
    """Whether a symbol is known to have no negative value: a range or a constant."""
    attrs = symbol.attrs
    if symbol.op is ops.range:
        return attrs["start"] >= 0 and attrs["step"] >= 0
    return symbol.op is ops.constant and bool(np.all(attrs["value"] >= 0))


def _written_down(promotion: Promotion) -> Mapping[int, DType]:
    """Return the implicit casts as they are, or casts of all operands that promote together.

    The second answer is for rules that refuse the op after the cast in question alone.
    """
    if (
        _operands(promotion, promotion.casts) is not None
        or promotion.position not in promotion.meeting
    ):
        return promotion.casts
    target = promotion.casts[promotion.position]
    return {i: target for i in promotion.meeting if promotion.values[i].dtype is not target}


def _operands(promotion: Promotion, casts: Mapping[int, DType]) -> Sequence[DType] | None:
    """Return the operand dtypes that the rules demand after `casts`, or None if they refuse."""
    types = [x.type.cast(casts.get(i, x.dtype)) for i, x in enumerate(promotion.values)]
    return _operand_dtypes(promotion.rules, promotion.op, tuple(types))


@lru_cache(maxsize=4096)
def _operand_dtypes(
    rules: PromotionRules, op: Op, types: tuple[TensorType, ...]
) -> tuple[DType, ...] | None:
    """Return the dtypes that rules demand of an op's operands, or None if they refuse the op."""
    try:
        return infer(rules, op, types, {}).operands
    except GraphirError:
        return None


def _holding(promotion: Promotion, avoid: Collection[DType]) -> dict[int, DType]:
    """Return casts to the smallest dtype of the target's family that has all operands' values."""
    target = promotion.casts.get(promotion.position)
    least = _LEAST.get(target.family, ()) if target else ()
    dtypes = {i: promotion.values[i].dtype for i in promotion.meeting}
    holding = smallest_holding([*dtypes.values(), *least])
    if promotion.position not in dtypes or holding is None or holding in avoid:
        return {}
    rules = promotion.rules
    if not rules.has(holding) or rules.promote(holding, holding) is not holding:  # e.g. no int64
        return {}
    return {i: holding for i, dtype in dtypes.items() if dtype is not holding}


_LEAST = {"float": (DType.float16,), "complex": (DType.complex64,)}


def _narrowed_number(promotion: Promotion) -> dict[int, DType]:
    """Return the cast of the other operand to the narrow dtype, if it is a number that fits."""
    narrow, others = promotion.values[promotion.position].dtype, promotion.others
    fitting = {i: narrow for i in others if _fits(promotion.values[i], narrow)}
    dtypes = _operands(promotion, fitting) if len(fitting) == len(others) == 1 else None
    return fitting if dtypes and dtypes[promotion.position] is narrow else {}


def _around_number(promotion: Promotion, avoid: Collection[DType]) -> dict[int, DType]:
    """Return casts of the other operands to a float wide enough for an out-of-range number."""
    number = promotion.loss.witness
    if number is None or promotion.loss.kinds in (("precision",), ("special",)):
        return {}
    for wide in (DType.float32, DType.float64):
        if literal_loss(number, wide).kinds in ((), ("precision",)) and wide not in avoid:
            return dict.fromkeys(promotion.others, wide)
    return {}


def _fits(symbol: Symbol, dtype: DType) -> bool:
    """Whether a symbol is a known number that a dtype represents exactly."""
    number = number_of(symbol)
    return number is not None and survives(number, dtype)


def _cast(expression_: Expression, position: int, dtype: DType, syntax: CastSyntax) -> str:
    """Return the cast of an operand; "" for a number in a dtype that has no numbers."""
    text = expression_.operand(position)
    if expression_.is_number(position):
        return syntax.number_of(text, dtype)
    return syntax.cast_of(text, dtype)
