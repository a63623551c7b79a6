"""The designs that JEP 9407 weighs: partial orders in which some dtypes have no common one."""

from __future__ import annotations

from graphir.dtypes import DType
from graphir.lattice.published import published
from graphir.promotion.library import LibraryRules
from graphir.promotion.operands import Operand


class Jep(LibraryRules):
    """The joins of one design; NoUpperBound and SeveralUpperBounds are different errors.

    The JEP speaks of joins alone. Where a float is needed, for `/`, functions and means of
    integers, it is here the join with a Python float: option 3 has one, the others have none.
    Literals are weak; bool, which is in none of the lattices, is for truth values alone.
    """

    library = "JEP 9407"
    of_numbers = False  # its lattices have weak dtypes

    def floating(self, dtype: DType, op: str) -> DType:
        """The join with a Python float."""
        if dtype.is_float or dtype.is_complex:
            return dtype
        return self.common((Operand(dtype), Operand(DType.weak_float)))

    def division(self, dtype: DType, op: str) -> DType:
        """As functions of floats."""
        return self.floating(dtype, op)


_WHAT = (
    "no edges from integers to floats: these mix with literals only",
    "an integer meets the float of the next width: int8 with float16 is float16",
    "an integer meets the float of its own width: int16 with float16 is float16",
    "every integer lies below every float: JAX's way, without bool, bfloat16 and uint64",
)

JEP_OPTIONS = tuple(
    Jep(f"jep_option_{i}", f"Option {i}: {what}.", published(f"jep_option{i}"), "JEP 9407")
    for i, what in enumerate(_WHAT)
)
