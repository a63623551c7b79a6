"""The dtypes that the other rule sets would give a cast's operand."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from graphir.ir.operands import number_of
from graphir.ops.attribute_record import AttributeRecord
from graphir.public import (
    DType,
    Graph,
    GraphirError,
    Op,
    PromotionRules,
    Symbol,
    TensorType,
    rule_sets,
)
from graphir.rule_reports.explanation import reason

if TYPE_CHECKING:
    from graphir.passes.analysis.casts.rows import CastRow


class _Scalar(NamedTuple):
    """A Python number, whose dtype is weak, or a 0-d constant; rule sets may inspect its value."""

    value: complex
    dtype: DType

    @property
    def type(self) -> TensorType:
        """The type of the constant, which is all that most rule sets consider."""
        return TensorType(self.dtype)


_Operand: TypeAlias = TensorType | _Scalar


def others(row: CastRow) -> Mapping[str, DType | str]:
    """Return, by name of each other rule set, the operand's dtype or the reason for a refusal.

    Omits rule sets that lack a dtype of the operands. Returns an empty mapping for a cast that no
    rule set asked for (written by the user, legalization, assignment), and for an unknown use.
    """
    conversion = row.conversion
    user, position, _ = row.uses.of(row)
    if user is None or conversion.kind not in ("implicit", "literal") or conversion.stores:
        return {}
    operands = tuple(map(_operand, row.uses.operands(user)))
    attrs = user.attrs  # a record hashes by its identity
    return _others(rule_sets(), conversion.rule, user.op, operands, attrs, position)  # pyright: ignore[reportArgumentType]


def _operand(before: Symbol) -> _Operand:
    """Return an operand for other rules: a number, or a type."""
    number = number_of(before)
    return before.type if number is None else _Scalar(number, before.dtype)


@lru_cache(maxsize=4096)
def _others(
    candidates: tuple[PromotionRules, ...],
    rule: str,
    op: Op,
    operands: tuple[_Operand, ...],
    attrs: AttributeRecord,
    position: int,
) -> Mapping[str, DType | str]:
    """Return the answers of all rule sets but "explicit" and `rule` for the operand at a position.

    Equal uses share one mapping.
    """
    dtypes = {x.dtype for x in operands if isinstance(x, TensorType) or not x.dtype.weak}
    return {
        rules.name: _answer(rules, op, operands, attrs, position)
        for rules in candidates
        if rules.name not in ("explicit", rule)
        and all(rules.has(rules.concrete_dtype(dtype)) for dtype in dtypes)
    }


def _answer(
    rules: PromotionRules,
    op: Op,
    operands: tuple[_Operand, ...],
    attrs: AttributeRecord,
    position: int,
) -> DType | str:
    graph = Graph("question", rules=rules)
    settings = {name: value for name, value in attrs.items() if name != "dtype"}
    try:
        symbol = graph.apply(op, [_new_operand(graph, operand) for operand in operands], settings)
        return graph.infer(op, symbol.args, symbol.attrs).operands[position]
    except GraphirError as error:
        return f"refuses: {reason(error)}"


def _new_operand(graph: Graph, operand: _Operand) -> Symbol | complex:
    """Return an operand in a graph under other rules; a Python number stays a literal."""
    if isinstance(operand, _Scalar):
        if operand.dtype.weak:
            return operand.value
        if graph.rules.by_value:
            value = np.asarray(operand.value, operand.dtype.storage)
            return graph.constant(value, operand.dtype)
    type_ = operand.type if isinstance(operand, _Scalar) else operand
    return graph.input(TensorType(graph.rules.concrete_dtype(type_.dtype), type_.shape))
