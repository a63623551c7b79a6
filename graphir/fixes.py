"""What to type instead of an implicit cast."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphirError
from graphir.expressions import Expression, expression
from graphir.location import Location
from graphir.losses import Loss, literal_loss
from graphir.op import Op
from graphir.promotion import PromotionRules
from graphir.promotion.operands import smallest_holding
from graphir.promotion.scalars import survives
from graphir.symbol import Symbol


class Use(NamedTuple):
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


def fix(use: Use, location: Location, avoid: Collection[DType] = ()) -> str:
    """What to type so that nothing is cast silently and nothing lost that need not be.

    Operands that lose something meet in the smallest dtype that has every value of all, if that is
    none to `avoid`; a known number that fits the narrow dtype takes that; else the casts are
    written down. Empty for numbers that are rounded as usual.
    """
    return rewritten(use.op, location, _wanted(use, avoid))


def replacement(use: Use, location: Location) -> str:
    """The fix as the text to put in the place of what the program has at a location.

    Empty where there is no fix, or where the source does not tell the operands apart.
    """
    return _replaced(location, _wanted(use, ()))


def rewritten(op: Op, location: Location, wanted: Mapping[int, DType]) -> str:
    """The expression at a location with operands of its op cast; its words where it is unknown."""
    if text := _replaced(location, wanted):
        return " ".join(text.split())
    names = [f'{op.operand(i)}.astype("{dtype}")' for i, dtype in wanted.items()]
    return f"{op.name} of {', '.join(names)}" if names else ""


def _replaced(location: Location, wanted: Mapping[int, DType]) -> str:
    """The expression at a location with operands cast; empty where the source is not known."""
    found = expression(location)
    if found is None or not wanted or max(wanted) >= len(found.spans):
        return ""
    if any(found.is_number(i) and not hasattr(np, str(dtype)) for i, dtype in wanted.items()):
        return ""
    return found.replaced({i: _cast(found, i, dtype) for i, dtype in wanted.items()})


def _wanted(use: Use, avoid: Collection[DType]) -> Mapping[int, DType]:
    """The dtypes to cast operands to, by position."""
    if use.number:
        return _around_number(use, avoid)
    if use.loss.exact:
        return _kept_narrow(use) or _written_down(use)
    return _holding(use, avoid) or _written_down(use)


def _written_down(use: Use) -> Mapping[int, DType]:
    """The cast in question; of all that meet, where rules refuse it beside what the others are."""
    if _operands(use, use.casts) is not None or use.position not in use.meeting:
        return use.casts
    target = use.casts[use.position]
    return {i: target for i in use.meeting if use.values[i].dtype is not target}


def _operands(use: Use, casts: Mapping[int, DType]) -> Sequence[DType] | None:
    """The dtypes that the rules give operands with such casts; None where they refuse them."""
    types = [x.type.cast(casts.get(i, x.dtype)) for i, x in enumerate(use.values)]
    try:
        return use.op.infer(use.rules, types, {}).operands
    except GraphirError:
        return None


def _holding(use: Use, avoid: Collection[DType]) -> dict[int, DType]:
    """All operands that meet, in the smallest dtype of the target's kind that has their values."""
    target = use.casts.get(use.position)
    least = _LEAST.get(target.kind, ()) if target else ()
    dtypes = {i: use.values[i].dtype for i in use.meeting}
    holding = smallest_holding([*dtypes.values(), *least])
    if use.position not in dtypes or holding is None or holding in avoid:
        return {}
    if use.rules.promote(holding, holding) is not holding:  # as where 64 bits are off
        return {}
    return {i: holding for i, dtype in dtypes.items() if dtype is not holding}


_LEAST = {"float": (DType.float16,), "complex": (DType.complex64,)}


def _kept_narrow(use: Use) -> dict[int, DType]:
    """The one other operand, if it is a number that the narrow dtype has."""
    narrow, others = use.values[use.position].dtype, use.others
    fitting = {i: narrow for i in others if _fits(use.values[i], narrow)}
    given = _operands(use, fitting) if len(fitting) == len(others) == 1 else None
    return fitting if given and given[use.position] is narrow else {}


def _around_number(use: Use, avoid: Collection[DType]) -> dict[int, DType]:
    """The other operands made wide enough for a number that is too great or too small for them."""
    number = use.loss.witness
    if number is None or use.loss.kinds in (("precision",), ("special",)):
        return {}
    for wide in (DType.float32, DType.float64):
        if literal_loss(number, wide).kinds in ((), ("precision",)) and wide not in avoid:
            return dict.fromkeys(use.others, wide)
    return {}


def _fits(symbol: Symbol, dtype: DType) -> bool:
    """Whether a symbol is a known number that a dtype has."""
    if symbol.op is not ops.constant or symbol.shape or symbol.dtype.storage.kind not in "iufc":
        return False
    return survives(symbol.attrs["value"].item(), dtype)


def _cast(found: Expression, position: int, dtype: DType) -> str:
    text = found.operand(position)
    if found.is_number(position):
        return f"np.{dtype}({text})"
    return f'{text if _primary(text) else f"({text})"}.astype("{dtype}")'


def _primary(text: str) -> bool:
    """Whether an attribute can follow a text without parentheses."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return False
    parenthesised = node.col_offset > 0
    return parenthesised or isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
