"""What the other rule sets would have done at a cast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphir import DType, Graph, GraphirError, PromotionRules, Symbol, TensorType, rule_sets
from graphir.arguments import number_of
from graphir.promotion.explanation import reason
from passes.casts.causes import Answers
from passes.casts.rows import CastRow
from passes.rewriting import unplaced


def others(row: CastRow) -> Mapping[str, DType | str]:
    """By rule set, the dtype that the others give the operand of a row; why, where they refuse.

    Left out are rule sets that lack a dtype of the operands. Empty for casts that no rule set asked
    for, and where the use is not known.
    """
    user = row.user
    if user is None or row.kind not in ("implicit", "literal") or row.conversion.stores:
        return {}
    known, key = row.uses.answers, (rule_sets(), row.rule, user.index)
    answers = known.get(key)
    if answers is None:
        answers = known[key] = _answers(row.rule, user, tuple(map(_operand, row.operands)))
    # The answers of users alike are one object, so that those for an operand are as well.
    of_operand = id(answers), row.position
    found = row.uses.answers_at.get(of_operand)
    if found is None:
        at = row.position
        found = {name: to if isinstance(to, str) else to[at] for name, to in answers.items()}
        row.uses.answers_at[of_operand] = found
    return found


def _answers(rule: str, user: Symbol, operands: tuple[Any, ...]) -> Answers:
    """What rule sets but one say of a user, asked once for users alike."""
    asked = tuple(rules for rules in rule_sets() if rules.name not in ("explicit", rule))
    attrs = {name: value for name, value in user.attrs.items() if name != "dtype"}
    key = (asked, user.op, operands, id(user.attrs))
    known = _KNOWN.get(key)
    if known is None:
        if len(_KNOWN) > 4096:
            _KNOWN.clear()
        answers = {
            rules.name: _answer(rules, user, operands, attrs)
            for rules in asked
            if _knows(rules, operands)
        }
        # The attributes are kept, so that their id stays theirs.
        known = _KNOWN[key] = answers, user.attrs
    return known[0]


_KNOWN: dict[Any, tuple[Answers, Any]] = {}


def _knows(rules: PromotionRules, operands: tuple[Any, ...]) -> bool:
    typed = [one for one in operands if isinstance(one, (TensorType, _Scalar))]
    return all(rules.has(rules.committed(one.dtype)) for one in typed)


def _operand(before: Symbol) -> Any:
    """What an operand was before its cast: a Python number, a 0-d constant's value, or a type."""
    number = number_of(before)
    if number is None:
        return before.type
    return number if before.dtype.weak else _Scalar(number, before.dtype)


class _Scalar(NamedTuple):
    """A 0-d constant, whose value some rule sets ask for."""

    value: complex
    dtype: DType

    def made(self, graph: Graph) -> Symbol:
        return graph.constant(np.asarray(self.value, self.dtype.storage), self.dtype)


def _answer(
    rules: PromotionRules, user: Symbol, operands: tuple[Any, ...], attrs: dict[str, Any]
) -> Sequence[DType] | str:
    graph = Graph("question", rules=rules)
    try:
        made = [_made(graph, one) for one in operands]
        symbol = graph.apply(user.op, made, attrs)
        return graph.infer(user.op, symbol.args, symbol.attrs).operands
    except GraphirError as error:
        return f"refuses: {reason(unplaced(error))}"


def _made(graph: Graph, operand: Any) -> Any:
    """An operand in a graph under other rules: numbers are literals there too."""
    if isinstance(operand, _Scalar):
        return operand.made(graph)
    if isinstance(operand, TensorType):
        return graph.input(TensorType(graph.rules.committed(operand.dtype), operand.shape))
    return operand
