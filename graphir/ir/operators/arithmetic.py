"""Python's operators on symbols: each adds its op to the symbol's graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphError
from graphir.hints import ArrayOrNumber
from graphir.ir.operators.in_place import in_place
from graphir.ir.operators.powers import power
from graphir.location import placing
from graphir.ops.op import GraphValue, Op
from graphir.promotion.python import PYTHON, ruling

if TYPE_CHECKING:
    from graphir.ir.symbol import Symbol

Unary: TypeAlias = "Callable[[Any], Symbol]"
Binary: TypeAlias = "Callable[[Any, ArrayOrNumber], Symbol]"


def _unary(op: Op) -> Unary:
    def operate(self: Any) -> Symbol:
        return self.graph.apply(op, (self,), {})

    return operate


def _comparison(op: Op) -> Binary:
    def operate(self: Any, other: Any) -> Symbol:
        return self.graph.binary(op, self, other)

    return operate


def _binary(op: Op) -> tuple[Binary, Binary, Binary]:
    """Return the methods of `x + y`, of its reflected form and of `x += y`."""

    def reflected(self: Any, other: Any) -> Symbol:
        return self.graph.binary(op, other, self)

    def write(self: Any, other: Any) -> Symbol:
        return in_place(op, self, other)

    return _comparison(op), reflected, write


class SymbolOperators(GraphValue):
    """The base class of Symbol with each operator, its reflected form and its in-place form."""

    __slots__ = ()

    # A class that defines __eq__ loses its __hash__ unless it defines that too.
    __hash__ = object.__hash__

    __add__, __radd__, __iadd__ = _binary(ops.add)
    __sub__, __rsub__, __isub__ = _binary(ops.subtract)
    __mul__, __rmul__, __imul__ = _binary(ops.multiply)
    __truediv__, __rtruediv__, __itruediv__ = _binary(ops.divide)
    __floordiv__, __rfloordiv__, __ifloordiv__ = _binary(ops.floor_divide)
    __mod__, __rmod__, __imod__ = _binary(ops.remainder)
    _pow, __rpow__, __ipow__ = _binary(ops.pow)
    __matmul__, __rmatmul__, __imatmul__ = _binary(ops.matmul)
    __and__, __rand__, __iand__ = _binary(ops.bitwise_and)
    __or__, __ror__, __ior__ = _binary(ops.bitwise_or)
    __xor__, __rxor__, __ixor__ = _binary(ops.bitwise_xor)
    __lshift__, __rlshift__, __ilshift__ = _binary(ops.left_shift)
    __rshift__, __rrshift__, __irshift__ = _binary(ops.right_shift)
    __lt__ = _comparison(ops.less)
    __le__ = _comparison(ops.less_equal)
    __gt__ = _comparison(ops.greater)
    __ge__ = _comparison(ops.greater_equal)
    __neg__ = _unary(ops.negative)
    __pos__ = _unary(ops.positive)
    __abs__ = _unary(ops.abs)
    __invert__ = _unary(ops.bitwise_invert)

    def __eq__(self, other: object) -> Symbol:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.graph.binary(ops.equal, self, other)

    def __ne__(self, other: object) -> Symbol:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.graph.binary(ops.not_equal, self, other)

    def __divmod__(self, other: ArrayOrNumber) -> tuple[Symbol, Symbol]:
        return self // other, self % other

    def __rdivmod__(self, other: ArrayOrNumber) -> tuple[Symbol, Symbol]:
        return other // self, other % self

    def __pow__(self, other: ArrayOrNumber) -> Symbol:
        result = power(cast("Symbol", self), other)
        return self.graph.binary(ops.pow, self, other) if result is None else result

    @placing
    def __round__(self, digits: int | None = None) -> Symbol:
        if digits:
            raise GraphError(
                "round() goes to whole numbers here",
                fix="scale, round and scale back: ops.round(x * 100) / 100",
            )
        result = ops.round(cast("Symbol", self))
        rules = ruling(self.graph.rules, ops.round.name, (result.type,))
        if rules is PYTHON and result.dtype is DType.weak_float:
            return result.cast(DType.weak_int)  # round(2.5) is the int 2
        return result
