"""Python's operators on symbols: each adds its op to the symbol's graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphError
from graphir.ir.operators.in_place import in_place
from graphir.ir.operators.powers import power
from graphir.location import placing
from graphir.ops.op import GraphValue
from graphir.promotion.python import PYTHON, ruling

if TYPE_CHECKING:
    from graphir.ir.symbol import Symbol


class SymbolOperators(GraphValue):
    """The base class of Symbol with each operator, its reflected form and its in-place form."""

    __slots__ = ()

    # A class that defines __eq__ loses its __hash__ unless it defines that too.
    __hash__ = object.__hash__

    def __add__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.add, self, other)

    def __radd__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.add, other, self)

    def __iadd__(self, other: Any) -> Symbol:
        return in_place(ops.add, self, other)

    def __sub__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.subtract, self, other)

    def __rsub__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.subtract, other, self)

    def __isub__(self, other: Any) -> Symbol:
        return in_place(ops.subtract, self, other)

    def __mul__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.multiply, self, other)

    def __rmul__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.multiply, other, self)

    def __imul__(self, other: Any) -> Symbol:
        return in_place(ops.multiply, self, other)

    def __truediv__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.divide, self, other)

    def __rtruediv__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.divide, other, self)

    def __itruediv__(self, other: Any) -> Symbol:
        return in_place(ops.divide, self, other)

    def __floordiv__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.floor_divide, self, other)

    def __rfloordiv__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.floor_divide, other, self)

    def __ifloordiv__(self, other: Any) -> Symbol:
        return in_place(ops.floor_divide, self, other)

    def __mod__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.remainder, self, other)

    def __rmod__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.remainder, other, self)

    def __imod__(self, other: Any) -> Symbol:
        return in_place(ops.remainder, self, other)

    def __divmod__(self, other: Any) -> tuple[Symbol, Symbol]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Symbol, Symbol]:
        return other // self, other % self

    def __pow__(self, other: Any) -> Symbol:
        result = power(cast("Symbol", self), other)
        return self.graph.binary(ops.pow, self, other) if result is None else result

    def __rpow__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.pow, other, self)

    def __ipow__(self, other: Any) -> Symbol:
        return in_place(ops.pow, self, other)

    def __matmul__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.matmul, self, other)

    def __rmatmul__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.matmul, other, self)

    def __imatmul__(self, other: Any) -> Symbol:
        return in_place(ops.matmul, self, other)

    def __and__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.bitwise_and, self, other)

    def __rand__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.bitwise_and, other, self)

    def __iand__(self, other: Any) -> Symbol:
        return in_place(ops.bitwise_and, self, other)

    def __or__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.bitwise_or, self, other)

    def __ror__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.bitwise_or, other, self)

    def __ior__(self, other: Any) -> Symbol:
        return in_place(ops.bitwise_or, self, other)

    def __xor__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.bitwise_xor, self, other)

    def __rxor__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.bitwise_xor, other, self)

    def __ixor__(self, other: Any) -> Symbol:
        return in_place(ops.bitwise_xor, self, other)

    def __lshift__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.left_shift, self, other)

    def __rlshift__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.left_shift, other, self)

    def __ilshift__(self, other: Any) -> Symbol:
        return in_place(ops.left_shift, self, other)

    def __rshift__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.right_shift, self, other)

    def __rrshift__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.right_shift, other, self)

    def __irshift__(self, other: Any) -> Symbol:
        return in_place(ops.right_shift, self, other)

    def __eq__(self, other: object) -> Symbol:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.graph.binary(ops.equal, self, other)

    def __ne__(self, other: object) -> Symbol:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.graph.binary(ops.not_equal, self, other)

    def __lt__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.less, self, other)

    def __le__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.less_equal, self, other)

    def __gt__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.greater, self, other)

    def __ge__(self, other: Any) -> Symbol:
        return self.graph.binary(ops.greater_equal, self, other)

    def __neg__(self) -> Symbol:
        return self.graph.apply(ops.negative, (self,), {})

    def __pos__(self) -> Symbol:
        return self.graph.apply(ops.positive, (self,), {})

    def __abs__(self) -> Symbol:
        return self.graph.apply(ops.abs, (self,), {})

    def __invert__(self) -> Symbol:
        return self.graph.apply(ops.bitwise_invert, (self,), {})

    @placing
    def __round__(self, digits: int | None = None) -> Symbol:
        if digits:
            raise GraphError(
                "round() goes to whole numbers here",
                fix="scale, round and scale back: ops.round(x * 100) / 100",
            )
        result = ops.round(self)
        rules = ruling(self.graph.rules, ops.round.name, (result.type,))
        if rules is PYTHON and result.dtype is DType.weak_float:
            return result.cast(DType.weak_int)  # round(2.5) is the int 2
        return result
