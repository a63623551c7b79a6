"""The guards of a trace: questions about its Python numbers, which a later call answers anew.

A Computation is a Python function of numbers. A NumberUse is the number and dtype that a rule set
gives a literal beside arrays. Calls with the same answers to all questions of a trace run the same
graph. A Feed is an input of that graph.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from graphir.dtypes import DType
from graphir.hints import Number
from graphir.ir.literals import literal_array
from graphir.ir.operands import resolve_literal
from graphir.ops.op import Op
from graphir.ops.types import TensorType
from graphir.promotion.rules import PromotionRules
from graphir.promotion.scalars import identity_key

if TYPE_CHECKING:
    from graphir.ir.graph import Graph

_NUMBERS = frozenset((int, float, complex))
"""The result types that stay traced numbers; a bool result is an answer instead."""

Values: TypeAlias = list[Any]
"""The numbers of a call: first its arguments, then the results computed from them, in order."""


class Reference(NamedTuple):
    """A number in a question: its index among the values of a call."""

    at: int


class Computation(NamedTuple):
    """The question of a function of numbers.

    The answer is the result's type, or the result itself if `plain`.

    The answer can be the type of an exception. A numeric result is appended to the values, unless
    `plain`.
    """

    function: Callable[..., Any]
    operands: tuple[Any, ...]
    plain: bool
    cache_key: tuple[Any, ...]
    """The operands as `identity_key` keys; two questions with equal keys are the same question."""

    def key(self, values: Values) -> Hashable:
        """Return the answer, and append a numeric result to the values."""
        return self.result(values)[0]

    def answer(self, values: Values) -> Hashable:
        """Return the answer of `key` without a change of the values."""
        return self.result(list(values))[0]

    def result(self, values: Values) -> tuple[Any, Any]:
        """Return the answer and the result."""
        operands = [
            values[operand.at] if type(operand) is Reference else operand
            for operand in self.operands
        ]
        try:
            value = self.function(*operands)
        except Exception as error:  # an error of the program, which the program may catch
            return cast(Any, error).__class__, error
        kind: Any = cast("object", type(value))
        if kind in _NUMBERS and not self.plain:
            values.append(value)
            return kind, value
        return identity_key(value), value


class NumberUse(NamedTuple):
    """The question of the number and dtype that each literal operand of an op becomes.

    Operands are TensorTypes, References and literals. `is_result` says that an op
    computed the first operand, as in Place. `op` is None for a number that no op uses.
    """

    rules: PromotionRules
    op: Op | None
    operands: tuple[Any, ...]
    is_result: bool
    cache_key: tuple[Any, ...]

    def key(self, values: Values) -> Hashable:
        """Return the cells of the numbers, or None if only their types count."""
        rules, name = self.rules, self.op.name if self.op else ""
        cells = [
            rules.cell(values[operand.at], name)
            for operand in self.operands
            if type(operand) is Reference
        ]
        if len(cells) == 1:
            return cells[0]
        return tuple(cells) if any(cell is not None for cell in cells) else None

    def answer(self, values: Values) -> Hashable:
        """Return each literal's dtype and number; for a traced number, whether its value stays."""
        try:
            literals = self.resolve(values)
        except Exception as error:
            return type(error)
        answers: list[Any] = []
        for operand, literal in zip(self.operands, literals, strict=True):
            if literal is None:
                continue
            number, dtype = literal
            is_traced = type(operand) is Reference
            key = is_same(number, values[operand.at]) if is_traced else identity_key(number)
            answers.append((dtype, key))
        return tuple(answers)

    def resolve(self, values: Values) -> list[tuple[Any, DType] | None]:
        """Return the number and dtype of each literal, and None for each symbol.

        The method raises GraphirError if the rules refuse a literal.
        """
        operands = [
            values[operand.at] if type(operand) is Reference else operand
            for operand in self.operands
        ]
        literals: list[tuple[Any, DType] | None] = []
        for place, operand in enumerate(operands):
            if type(operand) is TensorType:
                literals.append(None)
                continue
            number, dtype = resolve_literal(self.rules, self.op, operands, place, self.is_result)
            literal_array(number, dtype, self.rules)  # raises if the number does not fit the dtype
            literals.append((number, dtype))
        return literals


Question: TypeAlias = Computation | NumberUse
"""A question of a trace about the numbers of its call.

Calls with equal `key` give equal answers. `answer` is the answer, valid after a call of `key`.
Questions with equal `cache_key` are the same question.
"""


def is_same(number: Number, value: Number) -> bool:
    """Whether a literal's number is the literal's own value."""
    return number is value or identity_key(number) == identity_key(value)


class Feed(NamedTuple):
    """A graph input that a number feeds: the number's index among the values, and a dtype.

    `use` and `place` belong to a literal that an op takes as another number. `use` is None for
    other literals.
    """

    at: int
    dtype: DType
    rules: PromotionRules
    use: NumberUse | None = None
    place: int = 0

    def storage(self, graph: Graph) -> np.dtype[Any] | None:
        """Return the dtype if np.array(number, dtype) is the input's value, else None."""
        plain = self.use is None and self.dtype.weak
        return graph.concrete_dtype(self.dtype).storage if plain else None

    def array(self, values: Values) -> NDArray[Any]:
        """Return the 0-d array of the input in a call."""
        number: Any = values[self.at]
        if self.use is not None:
            literal = self.use.resolve(values)[self.place]
            number = literal[0] if literal else number
        return literal_array(number, self.dtype, self.rules)[1]
