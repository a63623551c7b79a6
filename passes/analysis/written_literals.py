"""Classify literals: in an expression (`x + 1`) or alone (`g.scalar(1)`).

Under other rules a literal in an expression takes its dtype from its partner; a lone literal takes
the dtype that the rules give a Python number.
"""

from __future__ import annotations

from typing import Any

from graphir.ir.operands import resolve_literal
from graphir.public import DType, Graph, GraphirError, PromotionRules, Symbol, ops


class Literals:
    """The literals of a graph, each in an expression (`x + 1`) or alone (`g.scalar(1)`).

    Each expression gives its literals their dtype. A literal is in the expression of a user that
    has the literal's location. Passes merge equal literals: a merged literal is in the expressions
    of later users too, if those users would give it the dtype that it has. `inside` has the indices
    of literals that are in the expression of their first user.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        first: dict[int, Symbol] = {}
        for symbol in graph.symbols:
            for arg in symbol.args:
                if is_literal(arg):
                    first.setdefault(arg.index, symbol)
        symbols = graph.symbols
        self.inside = {i for i, user in first.items() if self._begins_in(symbols[i], user)}

    def within(self, user: Symbol, position: int) -> bool:
        """Whether an operand is a literal in the expression of its user."""
        literal = user.args[position]
        if literal.index not in self.inside:
            return False
        return _together(literal, user) or self._dtype_beside(user, position) is literal.dtype

    def alone(self, literal: Symbol) -> bool:
        """Whether a literal has the dtype that its rules give a lone Python number."""
        return own_dtype(self.graph.rules, literal.attrs["literal"]) is literal.dtype

    def _begins_in(self, literal: Symbol, user: Symbol) -> bool:
        return _together(literal, user) or not self.alone(literal)

    def _dtype_beside(self, user: Symbol, position: int) -> DType | None:
        """Return the dtype that the other operands of an op would give a literal, or None."""
        operands = [arg.attrs["literal"] if is_literal(arg) else arg for arg in user.args]
        try:
            return resolve_literal(self.graph.rules, user.op, operands, position)[1]
        except GraphirError:
            return None


def own_dtype(rules: PromotionRules, value: Any) -> DType | None:
    """Return the dtype that rules give a lone Python number, or None if they refuse it."""
    try:
        return rules.literal(value)
    except GraphirError:
        return None


def is_literal(symbol: Symbol) -> bool:
    """Whether a symbol is a constant from a Python number without a dtype."""
    return symbol.op is ops.constant and symbol.attrs["literal"] is not None


def _together(literal: Symbol, user: Symbol) -> bool:
    """Whether two symbols have the same location; True if the location is unknown."""
    return not literal.location.file or literal.location.matches(user.location)
