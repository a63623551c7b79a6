"""The rules of Python's own numbers, and the condition under which other rule sets use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphir.dtype_lattices.published import lattice_of_text
from graphir.dtypes import DType
from graphir.promotion.library import LibraryRules, by_op
from graphir.promotion.operands import Number, Place, Typed
from graphir.promotion.rules import PromotionRules

PYTHON_LATTICE = lattice_of_text("python", "bool < i* < f* < c*")


class Python(LibraryRules):
    """bool < int < float < complex, the promotion of Python's operators.

    Ints compute in 64 bits and wrap, whereas Python's ints are unbounded. An int literal beside a
    float converts only at the join, so `x + 1` shows its cast.
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
        """Return the number that Python's operator computes with.

        A negative int exponent of an int base becomes a float, because the power is then a float. A
        bool becomes an int, except beside & | ^.
        """
        if place.op not in OPERATORS or place.op in _BITWISE or not isinstance(value, int):
            return value
        is_integer_power = (
            place.op == "pow" and place.at == 1 and place.operands[0].dtype.is_integer
        )
        return float(value) if is_integer_power and value < 0 else int(value)

    def floating(self, dtype: DType, op: str) -> DType:
        """Return weak_float for bool and int, as math.sin and `/` do.

        A float or complex dtype stays.
        """
        if dtype in (DType.bool, DType.weak_int):
            return DType.weak_float
        return super().floating(dtype, op)

    def accumulation(self, dtype: DType, op: str) -> DType:
        """Return weak_int for bool, since sum([True, True]) is 2; other dtypes stay."""
        return DType.weak_int if dtype is DType.bool else dtype

    def boolean(self, op: str) -> DType:
        """Return weak_int: True + True is 2."""
        return DType.weak_int

    def position(self, op: str) -> DType:
        """Return weak_int, the dtype of Python's indices."""
        return DType.weak_int

    def truth(self, dtype: DType, op: str) -> DType:
        """Return bool: every Python number has a truth value."""
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
"""The ops that Python's operators compute."""

_BITWISE = frozenset({"bitwise_and", "bitwise_or", "bitwise_xor"})
"""The operators whose result on two bools is a bool."""

PYTHON = Python(
    "python",
    "Python's scalars: bool < int < float < complex.",
    PYTHON_LATTICE,
    "Python language reference, arithmetic conversions; JEP 9407",
)


def ruling(rules: PromotionRules, op: str, operands: Sequence[Typed]) -> PromotionRules:
    """Return the rules that decide an op: Python's for its operators among Python numbers alone.

    The condition also requires a weak operand that is no literal. Such an operand stands for a
    number that is not known yet, as in a traced function, and it must promote as the program's own
    number would: `k / 2 * x` has the dtype of x under NumPy's rules, since `k / 2` is a Python
    float.
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
