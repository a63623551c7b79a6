"""The in-place operators of a library: they write to the array, or bind the name to a new array."""

from __future__ import annotations

from graphir.dtypes import DType

IN_PLACE = frozenset(
    {
        *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"),
    }
)
"""The ops of Python's in-place operators, except `@=`, which some libraries lack."""


class InPlaceRules:
    """The effect of `x += y` on x.

    By default arrays are immutable, and `x += y` binds x to `x + y`.
    """

    in_place: frozenset[str] = frozenset()
    """The ops whose in-place operators write to the array. The array keeps its dtype and shape."""

    has_scalars: bool = False
    """Whether a 0-d result is an immutable scalar instead of a 0-d array."""

    def storable(self, source: DType, target: DType) -> bool:
        """Whether `x += y` may cast a result of dtype `source` to `target`, the dtype of x."""
        return source is target
