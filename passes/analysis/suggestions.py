"""What to type instead of an implicit cast."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from graphir.dtypes import DType
from graphir.errors import GraphirError
from graphir.ir.inference_cache import infer
from graphir.ir.operands import number_of
from graphir.ir.symbol import Symbol
from graphir.location import Location
from graphir.loss import Loss, literal_loss
from graphir.ops.op import Op
from graphir.ops.types import TensorType
from graphir.promotion import PromotionRules
from graphir.promotion.operands import smallest_holding
from graphir.promotion.scalars import survives
from passes.analysis.expressions import Expression, expression, primary, statement


class Promotion(NamedTuple):
    """An op on values as they are before any cast, and the dtypes that casts give operands.

    One of the casts is in question: that of the operand at `position`, which loses `loss`; a
    `number` is one that the program writes without a dtype.
    """

    rules: PromotionRules
    op: Op
    values: Sequence[Symbol]
    casts: Mapping[int, DType]
    position: int
    loss: Loss
    number: bool = False

    @property
    def meeting(self) -> Sequence[int]:
        """The operands that promote together."""
        positions = self.op.signature.joined
        return range(len(self.values)) if positions is None else positions

    @property
    def others(self) -> Sequence[int]:
        """The operands that the one in question meets."""
        return [i for i in self.meeting if i != self.position]


MOST_OPERANDS = 16
"""The most operands of an op whose fix casts several of them, and quotes their source."""

LONGEST = 500
"""The most characters of a fix that quotes the source."""


def fix(promotion: Promotion, location: Location, avoid: Collection[DType] = ()) -> str:
    """What to type so that nothing is cast silently and nothing lost that need not be.

    Operands that lose something meet in the smallest dtype that has every value of all, if that is
    none to `avoid`; a known number that fits the narrow dtype takes that; else the casts are
    written down. Empty for numbers that are rounded as usual. Of an op of many operands, the cast
    in question alone is written down.
    """
    if len(promotion.values) > MOST_OPERANDS:
        position, casts = promotion.position, promotion.casts
        casts_to_write = (
            {} if promotion.number else {i: casts[i] for i in (position,) if i in casts}
        )
        return _casts_in_words(promotion.op, casts_to_write)
    return rewritten(promotion.op, location, _target_dtypes(promotion, avoid))


def replacement(promotion: Promotion, location: Location) -> str:
    """The fix as the text to put in the place of what the program has at a location.

    Empty where there is no fix, or where the source does not tell the operands apart, and for an op
    of many operands.
    """
    if len(promotion.values) > MOST_OPERANDS:
        return ""
    return _cast_operands_at(location, _target_dtypes(promotion, ()))


def stored(location: Location, dtype: DType) -> str:
    """The assignment at a location with its value cast to the dtype of the array it is put into.

    Empty where there is no assignment, and where the value is written out: no array, but a list.
    """
    expression_ = expression(location)
    node = statement(expression_.text) if expression_ else None
    if expression_ is None or not isinstance(node, (ast.Assign, ast.AugAssign)):
        return ""
    last = len(expression_.spans) - 1
    is_list = isinstance(node.value, _WRITTEN_OUT)
    return "" if is_list else expression_.replaced({last: _cast(expression_, last, dtype)})


_WRITTEN_OUT = (ast.List, ast.Tuple, ast.Constant, ast.ListComp)


def rewritten(op: Op, location: Location, dtypes: Mapping[int, DType]) -> str:
    """The expression at a location with operands of its op cast; its words where it is unknown."""
    if text := _cast_operands_at(location, dtypes):
        return " ".join(text.split())
    return _casts_in_words(op, dtypes)


def _casts_in_words(op: Op, dtypes: Mapping[int, DType]) -> str:
    """The casts of operands in words, by the names of the operands."""
    names = [f'{op.operand(i)}.astype("{dtype}")' for i, dtype in dtypes.items()]
    return f"{op.name} of {', '.join(names)}" if names else ""


def _cast_operands_at(location: Location, dtypes: Mapping[int, DType]) -> str:
    """The expression at a location with operands cast; empty where the source is not known."""
    expression_ = expression(location)
    return _cast_operands(expression_, tuple(dtypes.items())) if expression_ and dtypes else ""


@lru_cache(maxsize=4096)
def _cast_operands(expression_: Expression, casts: tuple[tuple[int, DType], ...]) -> str:
    """An expression with operands cast, by position; empty where they cannot be told apart."""
    dtypes = dict(casts)
    if max(dtypes) >= len(expression_.spans):
        return ""
    if any(expression_.is_number(i) and not hasattr(np, str(dtype)) for i, dtype in dtypes.items()):
        return ""
    text = expression_.replaced({i: _cast(expression_, i, dtype) for i, dtype in dtypes.items()})
    return text if len(text) <= LONGEST else ""


def _target_dtypes(promotion: Promotion, avoid: Collection[DType]) -> Mapping[int, DType]:
    """The dtypes to cast operands to, by position."""
    if promotion.number:
        return _around_number(promotion, avoid)
    if promotion.loss.exact:
        return _narrowed_number(promotion) or _written_down(promotion)
    return _holding(promotion, avoid) or _written_down(promotion)


def _written_down(promotion: Promotion) -> Mapping[int, DType]:
    """The cast in question; of all that meet, where rules refuse it beside what the others are."""
    if (
        _operands(promotion, promotion.casts) is not None
        or promotion.position not in promotion.meeting
    ):
        return promotion.casts
    target = promotion.casts[promotion.position]
    return {i: target for i in promotion.meeting if promotion.values[i].dtype is not target}


def _operands(promotion: Promotion, casts: Mapping[int, DType]) -> Sequence[DType] | None:
    """The dtypes that the rules give operands with such casts; None where they refuse them."""
    types = [x.type.cast(casts.get(i, x.dtype)) for i, x in enumerate(promotion.values)]
    return _operand_dtypes(promotion.rules, promotion.op, tuple(types))


@lru_cache(maxsize=4096)
def _operand_dtypes(
    rules: PromotionRules, op: Op, types: tuple[TensorType, ...]
) -> tuple[DType, ...] | None:
    """The dtypes that rules give the operands of an op; None where they refuse it."""
    try:
        return infer(rules, op, types, {}).operands
    except GraphirError:
        return None


def _holding(promotion: Promotion, avoid: Collection[DType]) -> dict[int, DType]:
    """All operands that meet, in the smallest dtype of the target's kind that has their values."""
    target = promotion.casts.get(promotion.position)
    least = _LEAST.get(target.family, ()) if target else ()
    dtypes = {i: promotion.values[i].dtype for i in promotion.meeting}
    holding = smallest_holding([*dtypes.values(), *least])
    if promotion.position not in dtypes or holding is None or holding in avoid:
        return {}
    if promotion.rules.promote(holding, holding) is not holding:  # as where 64 bits are off
        return {}
    return {i: holding for i, dtype in dtypes.items() if dtype is not holding}


_LEAST = {"float": (DType.float16,), "complex": (DType.complex64,)}


def _narrowed_number(promotion: Promotion) -> dict[int, DType]:
    """The one other operand, if it is a number that the narrow dtype has."""
    narrow, others = promotion.values[promotion.position].dtype, promotion.others
    fitting = {i: narrow for i in others if _fits(promotion.values[i], narrow)}
    dtypes = _operands(promotion, fitting) if len(fitting) == len(others) == 1 else None
    return fitting if dtypes and dtypes[promotion.position] is narrow else {}


def _around_number(promotion: Promotion, avoid: Collection[DType]) -> dict[int, DType]:
    """The other operands made wide enough for a number that is too great or too small for them."""
    number = promotion.loss.witness
    if number is None or promotion.loss.kinds in (("precision",), ("special",)):
        return {}
    for wide in (DType.float32, DType.float64):
        if literal_loss(number, wide).kinds in ((), ("precision",)) and wide not in avoid:
            return dict.fromkeys(promotion.others, wide)
    return {}


def _fits(symbol: Symbol, dtype: DType) -> bool:
    """Whether a symbol is a known number that a dtype has."""
    number = number_of(symbol)
    return number is not None and survives(number, dtype)


def _cast(expression_: Expression, position: int, dtype: DType) -> str:
    text = expression_.operand(position)
    if expression_.is_number(position):
        return f"np.{dtype}({text})"
    return f'{text if primary(text) else f"({text})"}.astype("{dtype}")'
