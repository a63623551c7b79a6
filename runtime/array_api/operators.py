"""Python's operators on arrays, with arrays and Python scalars on either side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from graphir import ops
from graphir.ops.op import Op

if TYPE_CHECKING:
    from graphir.runtime.array_api.array import Array

Unary: TypeAlias = "Callable[[Any], Array]"
Binary: TypeAlias = "Callable[[Any, Any], Array]"


def _with_name(name: str, method: Callable[..., Any]) -> Any:
    method.__name__ = method.__qualname__ = f"__{name}__"
    return method


def _unary(name: str, op: Op) -> Unary:
    def operate(self: Any, /) -> Array:
        return self._with(op, self)

    return _with_name(name, operate)


def _comparison(name: str, op: Op) -> Binary:
    def operate(self: Any, other: Array | complex, /) -> Array:
        return self._with(op, self, other)

    return _with_name(name, operate)


def _binary(name: str, op: Op) -> tuple[Binary, Binary, Binary]:
    """Return the methods of `x + y`, of its reflected form and of `x += y`."""

    def reflected(self: Any, other: Array | complex, /) -> Array:
        return self._with(op, other, self)

    def write(self: Any, other: Array | complex, /) -> Array:
        return self._assign_in_place(getattr(self, f"__{name}__")(other))

    return _comparison(name, op), _with_name(f"r{name}", reflected), _with_name(f"i{name}", write)


class ArrayOperators:
    """The operators of Array: each operator, its reflected form, and its in-place form."""

    __slots__ = ()
    __hash__ = None  # pyright: ignore[reportAssignmentType] -- `==` is elementwise, and `+=` changes
    __array_ufunc__ = None  # NumPy's operators leave it to these

    def _with(self, op: Op, *operands: Any) -> Array:
        """Record an op; return NotImplemented for operands other than arrays and scalars."""
        raise NotImplementedError

    def _power(self, exponent: Array | complex) -> Array:
        """Return the array to a power."""
        raise NotImplementedError

    def _assign_in_place(self, result: Array) -> Array:
        """Replace the array's value by a result of the same dtype and shape."""
        raise NotImplementedError

    __add__, __radd__, __iadd__ = _binary("add", ops.add)
    __sub__, __rsub__, __isub__ = _binary("sub", ops.subtract)
    __mul__, __rmul__, __imul__ = _binary("mul", ops.multiply)
    __truediv__, __rtruediv__, __itruediv__ = _binary("truediv", ops.divide)
    __floordiv__, __rfloordiv__, __ifloordiv__ = _binary("floordiv", ops.floor_divide)
    __mod__, __rmod__, __imod__ = _binary("mod", ops.remainder)
    _pow, __rpow__, __ipow__ = _binary("pow", ops.pow)
    __matmul__, __rmatmul__, __imatmul__ = _binary("matmul", ops.matmul)
    __and__, __rand__, __iand__ = _binary("and", ops.bitwise_and)
    __or__, __ror__, __ior__ = _binary("or", ops.bitwise_or)
    __xor__, __rxor__, __ixor__ = _binary("xor", ops.bitwise_xor)
    __lshift__, __rlshift__, __ilshift__ = _binary("lshift", ops.left_shift)
    __rshift__, __rrshift__, __irshift__ = _binary("rshift", ops.right_shift)
    __lt__ = _comparison("lt", ops.less)
    __le__ = _comparison("le", ops.less_equal)
    __gt__ = _comparison("gt", ops.greater)
    __ge__ = _comparison("ge", ops.greater_equal)
    __neg__ = _unary("neg", ops.negative)
    __pos__ = _unary("pos", ops.positive)
    __abs__ = _unary("abs", ops.abs)
    __invert__ = _unary("invert", ops.bitwise_invert)

    def __eq__(self, other: object, /) -> Array:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._with(ops.equal, self, other)

    def __ne__(self, other: object, /) -> Array:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._with(ops.not_equal, self, other)

    def __pow__(self, other: Array | complex, /) -> Array:
        return self._power(other)
