"""What the other rule sets would have done at a cast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphir import DType, Graph, GraphirError, PromotionRules, Symbol, TensorType, rule_sets
from graphir.ir.operands import number_of
from graphir.rule_reports.explanation import reason
from passes.rewriter import unplaced

if TYPE_CHECKING:
    from passes.analysis.casts.causes import Answers
    from passes.analysis.casts.rows import CastRow


def others(row: CastRow) -> Mapping[str, DType | str]:
    """By rule set, the dtype that the others give the operand of a row; why, where they refuse.

    Left out are rule sets that lack a dtype of the operands. Empty for casts that no rule set asked
    for, and where the use is not known.
    """
    uses, conversion = row.uses, row.conversion
    user, at, _ = uses.of(row)
    if user is None or conversion.kind not in ("implicit", "literal") or conversion.stores:
        return _NONE
    asked = _asked(rule_sets(), conversion.rule)
    answers = uses.answers.get((asked, user.index))
    if answers is None:
        answers = _answers(asked, user, tuple(map(_operand, uses.operands(user))))
        uses.answers[asked, user.index] = answers
    # The answers of users alike are one object, so that those for an operand are as well.
    found = uses.answers_at.get((id(answers), at))
    if found is None:
        found = {name: to if isinstance(to, str) else to[at] for name, to in answers.items()}
        uses.answers_at[id(answers), at] = found
    return found


def _answers(asked: tuple[PromotionRules, ...], user: Symbol, operands: tuple[Any, ...]) -> Answers:
    """What rule sets say of a user, asked once for users alike."""
    key = (asked, user.op, operands, id(user.attrs))
    known = _KNOWN.get(key)
    if known is None:
        if len(_KNOWN) > 4096:
            _KNOWN.clear()
        attrs = {name: value for name, value in user.attrs.items() if name != "dtype"}
        answers = {
            rules.name: _answer(rules, user, operands, attrs)
            for rules in asked
            if _knows(rules, operands)
        }
        # The attributes are kept, so that their id stays theirs.
        known = _KNOWN[key] = answers, user.attrs
    return known[0]


_KNOWN: dict[Any, tuple[Answers, Any]] = {}
_NONE: Mapping[str, DType | str] = {}


@lru_cache(maxsize=128)
def _asked(known: tuple[PromotionRules, ...], rule: str) -> tuple[PromotionRules, ...]:
    """The rule sets but for the explicit one and the one that asked for a cast."""
    return tuple(rules for rules in known if rules.name not in ("explicit", rule))


def _knows(rules: PromotionRules, operands: tuple[Any, ...]) -> bool:
    typed = [one for one in operands if isinstance(one, (TensorType, _Scalar))]
    return all(rules.has(rules.concrete_dtype(one.dtype)) for one in typed)


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
        return graph.input(TensorType(graph.rules.concrete_dtype(operand.dtype), operand.shape))
    return operand
