"""The designs that JEP 9407 weighs: partial orders in which some dtypes have no common dtype."""

from __future__ import annotations

from graphir.dtype_lattices.published import published
from graphir.dtypes import DType
from graphir.promotion.library import LibraryRules
from graphir.promotion.operands import Operand


class Jep(LibraryRules):
    """The joins of one design; NoUpperBound and SeveralUpperBounds are different errors.

    The JEP defines joins alone. Where `/`, a function or a mean of integers needs a float, this
    class takes the join of the integer dtype with a Python float. Option 3 has such a join; the
    other options have none. Literals are weak. None of the lattices contains bool, so bool serves
    truth values alone.
    """

    library = "JEP 9407"
    of_numbers = False  # the lattices contain the weak dtypes

    def floating(self, dtype: DType, op: str) -> DType:
        """Return the join of the dtype with a Python float."""
        if dtype.is_inexact:
            return dtype
        return self.common((Operand(dtype), Operand(DType.weak_float)))


_WHAT = (
    "no edges from integers to floats: these mix with literals only",
    "an integer meets the float of the next width: int8 with float16 is float16",
    "an integer meets the float of its own width: int16 with float16 is float16",
    "every integer lies below every float: JAX's way, without bool, bfloat16 and uint64",
)

JEP_OPTIONS = tuple(
    Jep(f"jep_option_{i}", f"Option {i}: {doc}.", published(f"jep_option{i}"), "JEP 9407")
    for i, doc in enumerate(_WHAT)
)
