"""The rules of Python's own numbers, and where they hold under any others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphir.dtypes import DType
from graphir.lattice.order import Lattice
from graphir.promotion.library import LibraryRules, by_op
from graphir.promotion.operands import Number, Place, Typed
from graphir.promotion.rules import PromotionRules

PYTHON_LATTICE = Lattice(
    "python",
    {
        DType.bool: [DType.weak_int],
        DType.weak_int: [DType.weak_float],
        DType.weak_float: [DType.weak_complex],
    },
)


class Python(LibraryRules):
    """bool < int < float < complex, as Python's operators mix them.

    Ints compute in 64 bits and wrap, where Python's are unbounded. An int literal beside a float
    becomes one only when the join is taken, so `x + 1` shows its cast.
    """

    library = "Python"
    bool_arithmetic = frozenset()
    exceptions = by_op(
        {
            "bitwise_invert left_shift right_shift real imag conj": {DType.bool: DType.weak_int},
            "round": {DType.weak_complex: None},
        }
    )

    cell = LibraryRules.cell

    def literal_value(self, value: Any, place: Place) -> Any:
        """A float for a negative int exponent, with which an int gives one; 1 for True."""
        if place.op not in OPERATORS or place.op in _BITWISE or not isinstance(value, int):
            return value
        whole = place.op == "pow" and place.at == 1 and place.operands[0].dtype.is_integer
        return float(value) if whole and value < 0 else int(value)

    def division(self, dtype: DType, op: str) -> DType:
        """1 / 2 is 0.5."""
        return self.floating(dtype, op)

    def floating(self, dtype: DType, op: str) -> DType:
        """math.sin and / give float for bool and int."""
        if dtype in (DType.bool, DType.weak_int):
            return DType.weak_float
        return super().floating(dtype, op)

    def accumulation(self, dtype: DType, op: str) -> DType:
        """sum([True, True]) is 2."""
        return DType.weak_int if dtype is DType.bool else dtype

    def boolean(self, op: str) -> DType:
        """True + True is 2."""
        return DType.weak_int

    def position(self, op: str) -> DType:
        """An int."""
        return DType.weak_int

    def truth(self, dtype: DType, op: str) -> DType:
        """Anything has a truth value."""
        return DType.bool


OPERATORS = frozenset(
    {
        *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow"),
        *("negative", "positive", "abs", "round"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert"),
        *("left_shift", "right_shift"),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    }
)
"""The ops that Python's operators are."""

_BITWISE = frozenset({"bitwise_and", "bitwise_or", "bitwise_xor"})
"""The operators that keep two bools a bool."""

PYTHON = Python(
    "python",
    "Python's scalars: bool < int < float < complex.",
    PYTHON_LATTICE,
    "Python language reference, arithmetic conversions; JEP 9407",
)


def ruling(rules: PromotionRules, op: str, operands: Sequence[Typed]) -> PromotionRules:
    """The rules that decide an op: Python's for its operators among Python numbers alone.

    So a number that is not known yet, as of a traced function, goes on as the program's own number
    would: `k / 2 * x` has the dtype of x under NumPy's rules, since `k / 2` is a Python float.
    """
    if op not in OPERATORS or not rules.of_numbers:
        return rules
    weak_type = False
    for operand in operands:
        literal = type(operand) is Number
        if operand.rank or not (literal or operand.dtype.weak):
            return rules
        weak_type |= not literal
    return PYTHON if weak_type else rules
