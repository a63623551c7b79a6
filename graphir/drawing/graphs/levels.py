"""How grave the loss of a cast is, in the few levels that a picture tells apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from math import frexp
from typing import Literal, NamedTuple, TypeAlias

from graphir import ops
from graphir.dtypes import DType
from graphir.ir.symbol import Symbol
from graphir.location import CAST, CastKind, kind_of_rule
from graphir.loss import Loss, loss

Level: TypeAlias = Literal["exact", "precision", "range", "value"]
"""Nothing is lost; values are rounded; great ones overflow; they wrap, lose sign or fraction."""

LEVELS: dict[Level, str] = {
    "exact": "exact",
    "precision": "loses precision",
    "range": "loses range",
    "value": "loses value",
}
"""The levels from the least grave to the gravest, as people are told of them."""


class Mark(NamedTuple):
    """What a picture says of a symbol: the level of its loss, and the reason in a sentence."""

    level: Level
    reason: str


Marks: TypeAlias = Mapping[int, Mark]
"""What is known of symbols, by their places in a graph."""


@lru_cache(maxsize=1 << 14)
def level(loss: Loss, source: DType, target: DType) -> Level:
    """How grave it is what a conversion between two dtypes, or of a number, loses.

    Of floats the range counts in powers of two: that the topmost values of float32 round to inf in
    bfloat16 is left to the reason.
    """
    a, b = source.part, target.part
    if loss.exact:
        return "exact"
    if b.format is None or b.min > 0 or "sign" in loss.kinds:
        return "value"
    if loss.kinds == ("special",) or source.is_complex > target.is_complex:
        return "value"
    reach = 2.0 ** (frexp(a.max)[1] - 1) if a.format else max(a.max, -a.min)
    if "range" in loss.kinds and (loss.beyond is None or reach > b.max):
        return "range"
    return "precision"


def mark(loss: Loss, source: DType, target: DType) -> Mark:
    """The mark of a cast that loses so much."""
    grade = level(loss, source, target)
    return Mark(grade, LEVELS[grade] if loss.exact else f"{LEVELS[grade]}: {loss}")


@cache
def dtype_mark(source: DType, target: DType) -> Mark:
    """What the dtypes alone say of a cast."""
    return mark(loss(source, target), source, target)


def cast_kind(symbol: Symbol) -> CastKind | None:
    """Why a cast is there: of several uses the first of _RANKS. None for a symbol that is none."""
    if symbol.op is not ops.cast:
        return None
    rules = {origin.rule for origin in symbol.origins} or {CAST}
    return min(map(kind_of_rule, rules), key=_RANKS.index)


_RANKS: tuple[CastKind, ...] = ("implicit", "assignment", "explicit", "legalization")


def gravest(levels: Iterable[Level]) -> Level | None:
    """The gravest of some levels; None of none."""
    present = set(levels)
    return next((grade for grade in reversed(LEVELS) if grade in present), None)
