"""Questions that a traced function asks about its Python numbers, and a later call answers anew.

A Computation is what Python computes of numbers, a Use the number and dtype that a rule set makes
of a literal beside arrays. Calls that answer all questions of a trace alike run the same graph, and
a Feed is one of its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from graphir.dtypes import DType
from graphir.ir.literals import literal_array
from graphir.ir.operands import taken
from graphir.ops.op import Op
from graphir.ops.types import TensorType
from graphir.promotion.rules import PromotionRules
from graphir.promotion.scalars import identity_key

if TYPE_CHECKING:
    from graphir.ir.graph import Graph

_NUMBERS = frozenset((int, float, complex))
"""The types of results that stay numbers; a bool is an outcome."""

Values: TypeAlias = list[Any]
"""The numbers of a call: its arguments, then what is computed of them, in order."""


class Reference(NamedTuple):
    """In a question: the number at a place among the values of a call."""

    at: int


class Computation(NamedTuple):
    """A function of numbers: the type of its result, or, if `known`, the result itself.

    An exception is an answer too. A number that is not `known` is added to the values.
    """

    function: Callable[..., Any]
    operands: tuple[Any, ...]
    known: bool
    shown: tuple[Any, ...]
    """The operands as `identity_key` shows them, by which two questions are the same."""

    def key(self, values: Values) -> Hashable:
        """The answer."""
        return self.result(values)[0]

    def answer(self, values: Values) -> Hashable:
        """What `key` gives, though nothing is added to the values."""
        return self.result(list(values))[0]

    def result(self, values: Values) -> tuple[Any, Any]:
        """The answer and the result."""
        operands = [
            values[operand.at] if type(operand) is Reference else operand
            for operand in self.operands
        ]
        try:
            value = self.function(*operands)
        except Exception as error:  # the program's own, which it may catch
            return cast(Any, error).__class__, error
        kind: Any = cast("object", type(value))
        if kind in _NUMBERS and not self.known:
            values.append(value)
            return kind, value
        return identity_key(value), value


class NumberUse(NamedTuple):
    """Numbers among the operands of an op: the number and dtype that each literal is taken as.

    Operands are TensorTypes, References and literals, `computed` as for `taken`; `op` is None of a
    number by itself.
    """

    rules: PromotionRules
    op: Op | None
    operands: tuple[Any, ...]
    computed: bool
    shown: tuple[Any, ...]

    def key(self, values: Values) -> Hashable:
        """The cells of the numbers; None where their types alone count."""
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
        """For each literal the dtype, and for a number that is taken as another one that it is."""
        try:
            literals = self.taken(values)
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

    def taken(self, values: Values) -> list[tuple[Any, DType] | None]:
        """The number and dtype of each literal, None for a symbol; GraphirError where refused."""
        operands = [
            values[operand.at] if type(operand) is Reference else operand
            for operand in self.operands
        ]
        literals: list[tuple[Any, DType] | None] = []
        for place, operand in enumerate(operands):
            if type(operand) is TensorType:
                literals.append(None)
                continue
            number, dtype = taken(self.rules, self.op, operands, place, self.computed)
            literal_array(number, dtype, self.rules)  # which refuses what does not fit
            literals.append((number, dtype))
        return literals


Question: TypeAlias = Computation | NumberUse
"""What a trace asked about the numbers of its call.

`key` is what calls share that give the same answer, `answer` the answer once `key` has been asked
for, `shown` what questions share that are the same.
"""


def is_same(number: Any, value: Any) -> bool:
    """Whether a literal is taken as the number that it is."""
    return number is value or identity_key(number) == identity_key(value)


class Feed(NamedTuple):
    """An input of a graph that a number is: at a place among the values, in a dtype.

    `use` and `place` are of a literal that an op takes as another number, None of others.
    """

    at: int
    dtype: DType
    rules: PromotionRules
    use: NumberUse | None = None
    place: int = 0

    def storage(self, graph: Graph) -> np.dtype[Any] | None:
        """The dtype of np.array(number, dtype) if that is all there is to it, None if it is not."""
        plain = self.use is None and self.dtype.weak
        return graph.concrete_dtype(self.dtype).storage if plain else None

    def array(self, values: Values) -> NDArray[Any]:
        """The 0-d array that it is in a call."""
        number: Any = values[self.at]
        if self.use is not None:
            literal = self.use.taken(values)[self.place]
            number = literal[0] if literal else number
        return literal_array(number, self.dtype, self.rules)[1]
