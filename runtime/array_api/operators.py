"""Python's operators on arrays, with arrays and Python scalars on either side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphir import ops
from graphir.ops.op import Op

if TYPE_CHECKING:
    from runtime.array_api.array import Array


class ArrayOperators:
    """The operators of Array: each operator, its reflected form, and its in-place form."""

    __slots__ = ()
    __hash__ = None  # pyright: ignore[reportAssignmentType] -- `==` is elementwise, and `+=` changes
    __array_ufunc__ = None  # NumPy's operators leave it to these

    def _with(self, op: Op, *operands: Any) -> Array:
        """Record an op; return NotImplemented for operands other than arrays and scalars."""
        raise NotImplementedError

    def _power(self, exponent: Any) -> Array:
        """Return the array to a power."""
        raise NotImplementedError

    def _assign_in_place(self, result: Array) -> Array:
        """Replace the array's value by a result of the same dtype and shape."""
        raise NotImplementedError

    def __add__(self, other: Any, /) -> Array:
        return self._with(ops.add, self, other)

    def __radd__(self, other: Any, /) -> Array:
        return self._with(ops.add, other, self)

    def __iadd__(self, other: Any, /) -> Array:
        return self._assign_in_place(self._with(ops.add, self, other))

    def __sub__(self, other: Any, /) -> Array:
        return self._with(ops.subtract, self, other)

    def __rsub__(self, other: Any, /) -> Array:
        return self._with(ops.subtract, other, self)

    def __isub__(self, other: Any, /) -> Array:
        return self._assign_in_place(self._with(ops.subtract, self, other))

    def __mul__(self, other: Any, /) -> Array:
        return self._with(ops.multiply, self, other)

    def __rmul__(self, other: Any, /) -> Array:
        return self._with(ops.multiply, other, self)

    def __imul__(self, other: Any, /) -> Array:
        return self._assign_in_place(self._with(ops.multiply, self, other))

    def __truediv__(self, other: Any, /) -> Array:
        return self._with(ops.divide, self, other)

    def __rtruediv__(self, other: Any, /) -> Array:
        return self._with(ops.divide, other, self)

    def __itruediv__(self, other: Any, /) -> Array:
        return self._assign_in_place(self._with(ops.divide, self, other))

    def __floordiv__(self, other: Any, /) -> Array:
        return self._with(ops.floor_divide, self, other)

    def __rfloordiv__(self, other: Any, /) -> Array:
        return self._with(ops.floor_divide, other, self)

    def __ifloordiv__(self, other: Any, /) -> Array:
        return self._assign_in_place(self._with(ops.floor_divide, self, other))

    def __mod__(self, other: Any, /) -> Array:
        return self._with(ops.remainder, self, other)

    def __rmod__(self, other: Any, /) -> Array:
        return self._with(ops.remainder, other, self)

    def __imod__(self, other: Any, /) -> Array:
        return self._assign_in_place(self._with(ops.remainder, self, other))

    def __pow__(self, other: Any, /) -> Array:
        return self._power(other)

    def __rpow__(self, other: Any, /) -> Array:
        return self._with(ops.pow, other, self)

    def __ipow__(self, other: Any, /) -> Array:
        return self._assign_in_place(self._power(other))

    def __matmul__(self, other: Any, /) -> Array:
        return self._with(ops.matmul, self, other)

    def __rmatmul__(self, other: Any, /) -> Array:
        return self._with(ops.matmul, other, self)

    def __imatmul__(self, other: Any, /) -> Array:
        return self._assign_in_place(self._with(ops.matmul, self, other))

    def __and__(self, other: Any, /) -> Array:
        return self._with(ops.bitwise_and, self, other)

    def __rand__(self, other: Any, /) -> Array:
        return self._with(ops.bitwise_and, other, self)

    def __iand__(self, other: Any, /) -> Array:
        return self._assign_in_place(self._with(ops.bitwise_and, self, other))

    def __or__(self, other: Any, /) -> Array:
        return self._with(ops.bitwise_or, self, other)

    def __ror__(self, other: Any, /) -> Array:
        return self._with(ops.bitwise_or, other, self)

    def __ior__(self, other: Any, /) -> Array:
        return self._assign_in_place(self._with(ops.bitwise_or, self, other))

    def __xor__(self, other: Any, /) -> Array:
        return self._with(ops.bitwise_xor, self, other)

    def __rxor__(self, other: Any, /) -> Array:
        return self._with(ops.bitwise_xor, other, self)

    def __ixor__(self, other: Any, /) -> Array:
        return self._assign_in_place(self._with(ops.bitwise_xor, self, other))

    def __lshift__(self, other: Any, /) -> Array:
        return self._with(ops.left_shift, self, other)

    def __rlshift__(self, other: Any, /) -> Array:
        return self._with(ops.left_shift, other, self)

    def __ilshift__(self, other: Any, /) -> Array:
        return self._assign_in_place(self._with(ops.left_shift, self, other))

    def __rshift__(self, other: Any, /) -> Array:
        return self._with(ops.right_shift, self, other)

    def __rrshift__(self, other: Any, /) -> Array:
        return self._with(ops.right_shift, other, self)

    def __irshift__(self, other: Any, /) -> Array:
        return self._assign_in_place(self._with(ops.right_shift, self, other))

    def __eq__(self, other: object, /) -> Array:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._with(ops.equal, self, other)

    def __ne__(self, other: object, /) -> Array:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._with(ops.not_equal, self, other)

    def __lt__(self, other: Any, /) -> Array:
        return self._with(ops.less, self, other)

    def __le__(self, other: Any, /) -> Array:
        return self._with(ops.less_equal, self, other)

    def __gt__(self, other: Any, /) -> Array:
        return self._with(ops.greater, self, other)

    def __ge__(self, other: Any, /) -> Array:
        return self._with(ops.greater_equal, self, other)

    def __neg__(self, /) -> Array:
        return self._with(ops.negative, self)

    def __pos__(self, /) -> Array:
        return self._with(ops.positive, self)

    def __abs__(self, /) -> Array:
        return self._with(ops.abs, self)

    def __invert__(self, /) -> Array:
        return self._with(ops.bitwise_invert, self)
