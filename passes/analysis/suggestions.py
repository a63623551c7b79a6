"""What to type instead of an implicit cast."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from graphir.dtypes import DType
from graphir.errors import GraphirError
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
        joined = self.op.signature.joined
        return range(len(self.values)) if joined is None else joined

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
        written = {} if promotion.number else {i: casts[i] for i in (position,) if i in casts}
        return _named(promotion.op, written)
    return rewritten(promotion.op, location, _wanted(promotion, avoid))


def replacement(promotion: Promotion, location: Location) -> str:
    """The fix as the text to put in the place of what the program has at a location.

    Empty where there is no fix, or where the source does not tell the operands apart, and for an op
    of many operands.
    """
    if len(promotion.values) > MOST_OPERANDS:
        return ""
    return _replaced(location, _wanted(promotion, ()))


def stored(location: Location, dtype: DType) -> str:
    """The assignment at a location with its value cast to the dtype of the array it is put into.

    Empty where there is no assignment, and where the value is written out: no array, but a list.
    """
    found = expression(location)
    written = statement(found.text) if found else None
    if found is None or not isinstance(written, (ast.Assign, ast.AugAssign)):
        return ""
    last = len(found.spans) - 1
    listed = isinstance(written.value, _WRITTEN_OUT)
    return "" if listed else found.replaced({last: _cast(found, last, dtype)})


_WRITTEN_OUT = (ast.List, ast.Tuple, ast.Constant, ast.ListComp)


def rewritten(op: Op, location: Location, wanted: Mapping[int, DType]) -> str:
    """The expression at a location with operands of its op cast; its words where it is unknown."""
    if text := _replaced(location, wanted):
        return " ".join(text.split())
    return _named(op, wanted)


def _named(op: Op, wanted: Mapping[int, DType]) -> str:
    """The casts of operands in words, by the names of the operands."""
    names = [f'{op.operand(i)}.astype("{dtype}")' for i, dtype in wanted.items()]
    return f"{op.name} of {', '.join(names)}" if names else ""


def _replaced(location: Location, wanted: Mapping[int, DType]) -> str:
    """The expression at a location with operands cast; empty where the source is not known."""
    found = expression(location)
    return _rewritten(found, tuple(wanted.items())) if found and wanted else ""


@lru_cache(maxsize=4096)
def _rewritten(found: Expression, casts: tuple[tuple[int, DType], ...]) -> str:
    """An expression with operands cast, by position; empty where they cannot be told apart."""
    wanted = dict(casts)
    if max(wanted) >= len(found.spans):
        return ""
    if any(found.is_number(i) and not hasattr(np, str(dtype)) for i, dtype in wanted.items()):
        return ""
    text = found.replaced({i: _cast(found, i, dtype) for i, dtype in wanted.items()})
    return text if len(text) <= LONGEST else ""


def _wanted(promotion: Promotion, avoid: Collection[DType]) -> Mapping[int, DType]:
    """The dtypes to cast operands to, by position."""
    if promotion.number:
        return _around_number(promotion, avoid)
    if promotion.loss.exact:
        return _kept_narrow(promotion) or _written_down(promotion)
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
    return _inferred(promotion.rules, promotion.op, tuple(types))


@lru_cache(maxsize=4096)
def _inferred(
    rules: PromotionRules, op: Op, types: tuple[TensorType, ...]
) -> tuple[DType, ...] | None:
    """The dtypes that rules give the operands of an op; None where they refuse it."""
    try:
        return op.infer(rules, types, {}).operands
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


def _kept_narrow(promotion: Promotion) -> dict[int, DType]:
    """The one other operand, if it is a number that the narrow dtype has."""
    narrow, others = promotion.values[promotion.position].dtype, promotion.others
    fitting = {i: narrow for i in others if _fits(promotion.values[i], narrow)}
    given = _operands(promotion, fitting) if len(fitting) == len(others) == 1 else None
    return fitting if given and given[promotion.position] is narrow else {}


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


def _cast(found: Expression, position: int, dtype: DType) -> str:
    text = found.operand(position)
    if found.is_number(position):
        return f"np.{dtype}({text})"
    return f'{text if primary(text) else f"({text})"}.astype("{dtype}")'
