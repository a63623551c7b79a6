"""What the in-place operators of a library do: write to an array, or bind a name anew."""

from __future__ import annotations

from graphir.dtypes import DType

IN_PLACE = frozenset(
    {
        *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"),
    }
)
"""The ops of Python's in-place operators, but for `@=`, which some libraries lack."""


class InPlaceRules:
    """What `x += y` does to x; by default arrays never change, and x is bound to `x + y`."""

    in_place: frozenset[str] = frozenset()
    """The ops whose in-place operators write to an array, which keeps its dtype and shape."""

    has_scalars: bool = False
    """Whether a 0-d result is a scalar, to which no operator writes, and no 0-d array."""

    def storable(self, source: DType, target: DType) -> bool:
        """Whether an in-place operator casts a result to the dtype of the array it writes to."""
        return source is target
