"""The line to type instead of an implicit cast."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from graphir import DType, Symbol, ops
from graphir.expressions import Expression
from graphir.losses import literal_loss
from graphir.promotion.operands import smallest_holding
from graphir.promotion.scalars import survives
from passes.casts.rows import CastRow
from passes.rewriting import given


def fix(row: CastRow) -> str:
    """What to type so that nothing is cast silently and nothing lost that need not be.

    Operands that lose something meet in the smallest dtype that has every value of all; a known
    number that fits the narrow dtype takes that; else the cast is written down. Empty for what
    needs none: the user's own casts, what only follows exactly, numbers rounded as usual.
    """
    user = row.user
    if user is None or row.kind not in ("implicit", "literal"):
        return ""
    wanted = _wanted(row, user)
    if not wanted:
        return ""
    found = row.expression
    if found is None or max(wanted) >= len(found.spans):
        names = (f'{user.op.operand(i)}.astype("{dtype}")' for i, dtype in wanted.items())
        return f"{user.op.name} of {', '.join(names)}"
    texts = {i: _cast(found, i, dtype) for i, dtype in wanted.items()}
    return " ".join(found.replaced(texts).split())


def _wanted(row: CastRow, user: Symbol) -> dict[int, DType]:
    """The dtypes to cast operands to, by position."""
    if row.kind == "literal":
        return _around_number(row, user)
    if row.exact:
        return {} if row.cause else _kept_narrow(row, user) or {row.position: row.target}
    meeting = _meeting(user)
    holding = smallest_holding([given(user.args[i]).dtype for i in meeting])
    if row.position not in meeting or holding is None:
        return {row.position: row.target}
    return {i: holding for i in meeting if given(user.args[i]).dtype is not holding}


def _kept_narrow(row: CastRow, user: Symbol) -> dict[int, DType]:
    """The one other operand, if it is a number that the narrow dtype has."""
    others = [i for i in _meeting(user) if i != row.position]
    narrow = {i: row.source for i in others if _fits(given(user.args[i]), row.source)}
    return narrow if len(narrow) == len(others) == 1 else {}


def _around_number(row: CastRow, user: Symbol) -> dict[int, DType]:
    """The other operands made wide enough for a number that is too great or too small for them."""
    number = row.witness
    if number is None or row.loss.kinds in (("precision",), ("special",)):
        return {}
    for wide in (DType.float32, DType.float64):
        if literal_loss(number, wide).kinds in ((), ("precision",)):
            return {i: wide for i in _meeting(user) if i != row.position}
    return {}


def _fits(symbol: Symbol, dtype: DType) -> bool:
    """Whether a symbol is a known number that a dtype has."""
    if symbol.op is not ops.constant or symbol.shape or symbol.dtype.storage.kind not in "iufc":
        return False
    return survives(symbol.attrs["value"].item(), dtype)


def _meeting(user: Symbol) -> Iterable[int]:
    joined = user.op.signature.joined
    return range(len(user.args)) if joined is None else joined


def _cast(found: Expression, position: int, dtype: DType) -> str:
    text = found.operand(position)
    return f'{text if _primary(text) else f"({text})"}.astype("{dtype}")'


def _primary(text: str) -> bool:
    """Whether an attribute can follow a text without parentheses."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return False
    parenthesised = node.col_offset > 0
    return parenthesised or isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
