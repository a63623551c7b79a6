"""The rules of Python's own numbers."""

from __future__ import annotations

from graphir.dtypes import DType
from graphir.lattice import Lattice
from graphir.promotion.library import LibraryRules

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

    def divided(self, dtype: DType, op: str) -> DType:
        """1 / 2 is 0.5."""
        return self.floating(dtype, op)

    def floating(self, dtype: DType, op: str) -> DType:
        """math.sin and / give float for bool and int."""
        if dtype in (DType.bool, DType.weak_int):
            return DType.weak_float
        return super().floating(dtype, op)

    def accumulated(self, dtype: DType, op: str) -> DType:
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


PYTHON = Python(
    "python",
    "Python's scalars: bool < int < float < complex.",
    PYTHON_LATTICE,
    "Python language reference, arithmetic conversions; JEP 9407",
)
