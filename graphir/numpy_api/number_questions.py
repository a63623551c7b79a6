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
from graphir.promotion.scalars import told_apart

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
    """The operands as `told_apart` shows them, by which two questions are the same."""

    def key(self, values: Values) -> Hashable:
        """The answer."""
        return self.result(values)[0]

    def answer(self, values: Values) -> Hashable:
        """What `key` gives, though nothing is added to the values."""
        return self.result(list(values))[0]

    def result(self, values: Values) -> tuple[Any, Any]:
        """The answer and the result."""
        operands = [values[one.at] if type(one) is Reference else one for one in self.operands]
        try:
            found = self.function(*operands)
        except Exception as error:  # the program's own, which it may catch
            return cast(Any, error).__class__, error
        kind: Any = cast("object", type(found))
        if kind in _NUMBERS and not self.known:
            values.append(found)
            return kind, found
        return told_apart(found), found


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
            rules.cell(values[one.at], name) for one in self.operands if type(one) is Reference
        ]
        if len(cells) == 1:
            return cells[0]
        return tuple(cells) if any(cell is not None for cell in cells) else None

    def answer(self, values: Values) -> Hashable:
        """For each literal the dtype, and for a number that is taken as another one that it is."""
        try:
            taken = self.taken(values)
        except Exception as error:
            return type(error)
        found: list[Any] = []
        for one, literal in zip(self.operands, taken, strict=True):
            if literal is None:
                continue
            number, dtype = literal
            traced = type(one) is Reference
            shown = is_same(number, values[one.at]) if traced else told_apart(number)
            found.append((dtype, shown))
        return tuple(found)

    def taken(self, values: Values) -> list[tuple[Any, DType] | None]:
        """The number and dtype of each literal, None for a symbol; GraphirError where refused."""
        operands = [values[one.at] if type(one) is Reference else one for one in self.operands]
        found: list[tuple[Any, DType] | None] = []
        for place, one in enumerate(operands):
            if type(one) is TensorType:
                found.append(None)
                continue
            number, dtype = taken(self.rules, self.op, operands, place, self.computed)
            literal_array(number, dtype, self.rules)  # which refuses what does not fit
            found.append((number, dtype))
        return found


Question: TypeAlias = Computation | NumberUse
"""What a trace asked about the numbers of its call.

`key` is what calls share that give the same answer, `answer` the answer once `key` has been asked
for, `shown` what questions share that are the same.
"""


def is_same(number: Any, value: Any) -> bool:
    """Whether a literal is taken as the number that it is."""
    return number is value or told_apart(number) == told_apart(value)


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
