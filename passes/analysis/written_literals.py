"""Which literals of a graph stand in expressions, where they take a dtype anew with each."""

from __future__ import annotations

from typing import Any

from graphir import DType, Graph, GraphirError, PromotionRules, Symbol, ops
from graphir.ir.operands import taken


class Literals:
    """Where the literals of a graph stand: in expressions, `x + 1`, or alone, `g.scalar(1)`.

    Those in expressions take a dtype anew with each. A literal is in the expression of a user at
    its own place in the program. Passes merge equal ones, so that one in an expression is in those
    of its later users too, if these would give it the dtype that it has. `inside` are the places of
    literals that are in the expression of their first user.
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
        """Whether an operand is a literal that stands in the very expression of its user."""
        literal = user.args[position]
        if literal.index not in self.inside:
            return False
        return _together(literal, user) or self._dtype_beside(user, position) is literal.dtype

    def alone(self, literal: Symbol) -> bool:
        """Whether a literal has the dtype that its rules give it by itself."""
        return own_dtype(self.graph.rules, literal.attrs["literal"]) is literal.dtype

    def _begins_in(self, literal: Symbol, user: Symbol) -> bool:
        return _together(literal, user) or not self.alone(literal)

    def _dtype_beside(self, user: Symbol, position: int) -> DType | None:
        """The dtype that a literal would be given beside the other operands of an op."""
        operands = [arg.attrs["literal"] if is_literal(arg) else arg for arg in user.args]
        try:
            return taken(self.graph.rules, user.op, operands, position)[1]
        except GraphirError:
            return None


def own_dtype(rules: PromotionRules, value: Any) -> DType | None:
    """The dtype that rules give a number by itself; None where they give it none."""
    try:
        return rules.literal(value)
    except GraphirError:
        return None


def is_literal(symbol: Symbol) -> bool:
    """Whether a symbol is a constant that was a Python number without a dtype."""
    return symbol.op is ops.constant and symbol.attrs["literal"] is not None


def _together(literal: Symbol, user: Symbol) -> bool:
    """Whether two symbols are of one place, as far as that is known."""
    return not literal.location.file or literal.location.matches(user.location)
