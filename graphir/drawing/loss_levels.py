"""The levels of loss and the kinds of casts that a picture distinguishes."""

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
"""The level of a loss.

"exact": no value changes. "precision": values are rounded. "range": great values overflow. "value":
values wrap, or lose their sign or fraction.
"""

LEVELS: dict[Level, str] = {
    "exact": "exact",
    "precision": "loses precision",
    "range": "loses range",
    "value": "loses value",
}
"""The phrases for the levels, from the least grave level to the gravest."""


class Mark(NamedTuple):
    """The annotation of a symbol in a picture: the level of its loss, and the reason."""

    level: Level
    reason: str


Marks: TypeAlias = Mapping[int, Mark]
"""The marks of symbols, by the symbols' indices in a graph."""


@lru_cache(maxsize=1 << 14)
def level(loss: Loss, source: DType, target: DType) -> Level:
    """Return the level of the loss of a conversion between two dtypes, or of a number.

    For floats the level compares ranges in powers of two. So float32 to bfloat16 is "precision",
    although the topmost values of float32 round to inf; the reason of the mark mentions them.
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
    """Return the mark of a cast with a given loss."""
    grade = level(loss, source, target)
    return Mark(grade, LEVELS[grade] if loss.exact else f"{LEVELS[grade]}: {loss}")


@cache
def dtype_mark(source: DType, target: DType) -> Mark:
    """Return the mark of a cast by its dtypes alone."""
    return mark(loss(source, target), source, target)


def cast_kind(symbol: Symbol) -> CastKind | None:
    """Return the kind of a cast, or None for another op.

    A cast with uses of several kinds has the kind that comes first in KINDS.
    """
    if symbol.op is not ops.cast:
        return None
    kinds = {kind_of_rule(origin.rule) for origin in symbol.origins} or {kind_of_rule(CAST)}
    return next(kind for kind in KINDS if kind in kinds)


class KindStyle(NamedTuple):
    """The words before the dtypes in a cast's box, in the legend, and the frame's dash pattern."""

    prefix: str
    legend: str
    dashes: str


KINDS: dict[CastKind, KindStyle] = {
    "implicit": KindStyle("", "implicit", "6 3"),
    "autocast": KindStyle("autocast ", "by autocast", "4 1.5"),
    "exporter": KindStyle("exporter ", "by an exporter", "4 1.5"),
    "assignment": KindStyle("assign ", "by assignment", "6 2 1.5 2"),
    "explicit": KindStyle("cast ", "written by the user", ""),
    "legalization": KindStyle("legalize ", "by legalize", "1.5 3"),
}


def gravest(levels: Iterable[Level]) -> Level | None:
    """Return the gravest of some levels, or None if there are no levels."""
    present = set(levels)
    return next((grade for grade in reversed(LEVELS) if grade in present), None)
