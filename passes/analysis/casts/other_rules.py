"""The dtypes that the other rule sets would give a cast's operand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphir import DType, Graph, GraphirError, PromotionRules, Symbol, TensorType, rule_sets
from graphir.ir.operands import number_of
from graphir.rule_reports.explanation import reason

if TYPE_CHECKING:
    from graphir.passes.analysis.casts.causes import Answers
    from graphir.passes.analysis.casts.rows import CastRow


def others(row: CastRow) -> Mapping[str, DType | str]:
    """Return, by name of each other rule set, the operand's dtype or the reason for a refusal.

    Omits rule sets that lack a dtype of the operands. Returns an empty mapping for a cast that no
    rule set asked for (written by the user, legalization, assignment), and for an unknown use.
    """
    uses, conversion = row.uses, row.conversion
    user, at, _ = uses.of(row)
    if user is None or conversion.kind not in ("implicit", "literal") or conversion.stores:
        return _NONE
    others_asked = _other_rule_sets(rule_sets(), conversion.rule)
    answers = uses.answers.get((others_asked, user.index))
    if answers is None:
        answers = _answers(others_asked, user, tuple(map(_operand, uses.operands(user))))
        uses.answers[others_asked, user.index] = answers
    # Equal users share one Answers object, so that their answers for an operand are shared too.
    answer = uses.answers_at.get((id(answers), at))
    if answer is None:
        answer = {name: to if isinstance(to, str) else to[at] for name, to in answers.items()}
        uses.answers_at[id(answers), at] = answer
    return answer


def _answers(
    rule_sets_asked: tuple[PromotionRules, ...], user: Symbol, operands: tuple[Any, ...]
) -> Answers:
    """Return the rule sets' answers for a user, cached by op, operands and attributes."""
    key = (rule_sets_asked, user.op, operands, user.attrs)
    entry = _CACHE.get(key)
    if entry is None:
        if len(_CACHE) > 4096:
            _CACHE.clear()
        attrs = {name: value for name, value in user.attrs.items() if name != "dtype"}
        typed = tuple(x.type if isinstance(x, _Scalar) else x for x in operands)
        dtypes = frozenset(x.dtype for x in typed if isinstance(x, TensorType))
        answers = {
            rules.name: _answer(rules, user, operands if rules.by_value else typed, attrs)
            for rules in rule_sets_asked
            if _knows(rules, dtypes)
        }
        entry = _CACHE[key] = answers
    return entry


_CACHE: dict[Any, Answers] = {}
_ANSWERS: dict[Any, Sequence[DType] | str] = {}
_NONE: Mapping[str, DType | str] = {}


@lru_cache(maxsize=128)
def _other_rule_sets(
    candidates: tuple[PromotionRules, ...], rule: str
) -> tuple[PromotionRules, ...]:
    """Return the rule sets except "explicit" and `rule`, the rule set of the cast."""
    return tuple(rules for rules in candidates if rules.name not in ("explicit", rule))


@lru_cache(maxsize=4096)
def _knows(rules: PromotionRules, dtypes: frozenset[DType]) -> bool:
    return all(rules.has(rules.concrete_dtype(dtype)) for dtype in dtypes)


def _operand(before: Symbol) -> Any:
    """Return an operand for other rules: a Python number, a 0-d constant's value, or a type."""
    number = number_of(before)
    if number is None:
        return before.type
    return number if before.dtype.weak else _Scalar(number, before.dtype)


class _Scalar(NamedTuple):
    """A 0-d constant; value-based rule sets inspect its value."""

    value: complex
    dtype: DType

    @property
    def type(self) -> TensorType:
        """The type of the constant, which is all that most rule sets consider."""
        return TensorType(self.dtype)

    def build(self, graph: Graph) -> Symbol:
        return graph.constant(np.asarray(self.value, self.dtype.storage), self.dtype)


def _answer(
    rules: PromotionRules, user: Symbol, operands: tuple[Any, ...], attrs: dict[str, Any]
) -> Sequence[DType] | str:
    """Return one rule set's answer for a user, cached by op, operands and attributes."""
    key = (rules, user.op, operands, user.attrs)
    answer = _ANSWERS.get(key)
    if answer is None:
        if len(_ANSWERS) > 65536:
            _ANSWERS.clear()
        answer = _ANSWERS[key] = _ask(rules, user, operands, attrs)
    return answer


def _ask(
    rules: PromotionRules, user: Symbol, operands: tuple[Any, ...], attrs: dict[str, Any]
) -> Sequence[DType] | str:
    graph = Graph("question", rules=rules)
    try:
        new_operands = [_new_operand(graph, operand) for operand in operands]
        symbol = graph.apply(user.op, new_operands, attrs)
        return graph.infer(user.op, symbol.args, symbol.attrs).operands
    except GraphirError as error:
        return f"refuses: {reason(error)}"


def _new_operand(graph: Graph, operand: Any) -> Any:
    """Return an operand in a graph under other rules; a Python number stays a literal."""
    if isinstance(operand, _Scalar):
        return operand.build(graph)
    if isinstance(operand, TensorType):
        return graph.input(TensorType(graph.rules.concrete_dtype(operand.dtype), operand.shape))
    return operand
