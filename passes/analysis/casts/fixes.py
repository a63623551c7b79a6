"""The fix of a cast report row: the line to type instead of the cast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphir import PromotionRules, ops
from graphir.passes.analysis import suggestions
from graphir.passes.analysis.cast_syntax import syntax_of
from graphir.passes.analysis.suggestions import Promotion

if TYPE_CHECKING:
    from graphir.passes.analysis.casts.rows import CastRow


def fix(row: CastRow) -> str:
    """Return the code to type instead of a row's cast (see passes.analysis.suggestions.fix).

    Returns "" for a cast that needs no fix: the user's own cast, an exact consequence of another
    cast, a number that its dtype merely rounds. Returns "" for a cast inside a compound function
    too, since no line of the program can change it.
    """
    if row.op in ops.CONTROL:
        return _in_control_flow(row)
    if row.location.compound:
        return ""
    if row.conversion.stores:
        return " ".join(replacement(row).split())
    promotion = _promotion(row)
    return suggestions.fix(promotion, row.location) if promotion else ""


def _in_control_flow(row: CastRow) -> str:
    """Return the cast to write around a value that enters or leaves a graph of control flow."""
    if row.uses.of(row).user is None or row.kind not in ("implicit", "literal"):
        return ""
    value, target, syntax = row.operands[row.position], row.target, syntax_of(row.symbol.graph)
    if row.kind == "literal":
        return syntax.number_of(repr(value.attrs["value"].item()), target)
    source = row.uses.expression(value.location)
    if source is None or value.location.compound or not value.args:
        return f"{row.op} of {syntax.cast_of(row.operand, target)}"
    return syntax.cast_of(source.brief, target)


def replacement(row: CastRow) -> str:
    """Return the text that replaces the source text at the location of a row.

    Returns "" if there is no fix, or if the source does not determine the operands.
    """
    if row.conversion.stores:
        return (
            suggestions.cast_assignment(row.location, row.target, syntax_of(row.symbol.graph))
            if row.kind == "assignment"
            else ""
        )
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
    return Promotion(
        PromotionRules.find(conversion.rule), user.op, values, casts, position, loss, number
    )
