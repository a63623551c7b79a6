"""The line to type instead of the cast that a row tells of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphir import rules
from passes.analysis import suggestions
from passes.analysis.suggestions import Promotion

if TYPE_CHECKING:
    from passes.analysis.casts.rows import CastRow


def fix(row: CastRow) -> str:
    """What to type instead (see passes.analysis.suggestions.fix).

    Empty for what needs nothing: the user's own casts, what only follows exactly, numbers rounded
    as usual; and for what a function does within, which no line of the program can change.
    """
    if row.location.compound:
        return ""
    if row.conversion.stores:
        return " ".join(replacement(row).split())
    promotion = _promotion(row)
    return suggestions.fix(promotion, row.location) if promotion else ""


def replacement(row: CastRow) -> str:
    """The text to put in the place of what the program has at the location of a row.

    Empty where there is no fix, or where the source does not tell the operands apart.
    """
    if row.conversion.stores:
        return suggestions.stored(row.location, row.target) if row.kind == "assignment" else ""
    promotion = _promotion(row)
    return suggestions.replacement(promotion, row.location) if promotion else ""


def _promotion(row: CastRow) -> Promotion | None:
    conversion, (user, position, cause) = row.conversion, row.uses.of(row)
    kind, loss = conversion.kind, conversion.loss
    if user is None or kind not in ("implicit", "literal") or (loss.exact and cause):
        return None
    values, casts, number = (
        row.uses.operands(user),
        {position: conversion.target},
        kind == "literal",
    )
    return Promotion(rules(conversion.rule), user.op, values, casts, position, loss, number)
