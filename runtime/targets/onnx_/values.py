"""Values of an ONNX graph under construction, whose operators and methods add nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphir import DType

if TYPE_CHECKING:
    from graphir.runtime.targets.onnx_.body import OnnxBody

_BITS = {DType.float32: DType.int32, DType.float64: DType.int64}
"""The signed integers of the width of floats."""


def _pattern(number: Any, dtype: DType) -> int:
    return int(np.asarray(number, dtype.storage).view(_BITS[dtype].storage))


class OnnxValue:
    """A value by name and dtype; other operands are values of this dtype or Python numbers."""

    __slots__ = ("body", "dtype", "name")

    def __init__(self, body: OnnxBody, name: str, dtype: DType) -> None:
        self.body, self.name, self.dtype = body, name, dtype

    def op(self, kind: str, *others: Any, **attrs: Any) -> OnnxValue:
        """A node on this and others, whose result has this dtype."""
        args = [self, *map(self._lifted, others)]
        return self.body.op(kind, args, self.dtype, **attrs)

    def predicate(self, kind: str, *others: Any, **attrs: Any) -> OnnxValue:
        """A node on this and others, whose result is bool."""
        args = [self, *map(self._lifted, others)]
        return self.body.op(kind, args, DType.bool, **attrs)

    def _lifted(self, other: Any) -> OnnxValue:
        return other if isinstance(other, OnnxValue) else self.body.number(other, self.dtype)

    def __add__(self, other: Any) -> OnnxValue:
        return self.op("Add", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> OnnxValue:
        return self.op("Sub", other)

    def __rsub__(self, other: Any) -> OnnxValue:
        return self._lifted(other) - self

    def __mul__(self, other: Any) -> OnnxValue:
        return self.op("Mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> OnnxValue:
        return self.op("Div", other)

    def __rtruediv__(self, other: Any) -> OnnxValue:
        return self._lifted(other) / self

    def __mod__(self, other: Any) -> OnnxValue:
        """The remainder of integers, of the divisor's sign; of floats C's fmod."""
        return self.op("Mod", other, fmod=int(self.dtype.is_float))

    def __floordiv__(self, other: int) -> OnnxValue:
        """The floor of a quotient of sizes; the divisor is positive."""
        return (self - self % other) / other

    def __neg__(self) -> OnnxValue:
        return 0 - self if self.dtype.family == "uint" else self.op("Neg")

    def __abs__(self) -> OnnxValue:
        return self if self.dtype.family in ("bool", "uint") else self.op("Abs")

    def __and__(self, other: Any) -> OnnxValue:
        return self.op(self._bits("And"), other)

    def __or__(self, other: Any) -> OnnxValue:
        return self.op(self._bits("Or"), other)

    def __xor__(self, other: Any) -> OnnxValue:
        return self.op(self._bits("Xor"), other)

    def __rshift__(self, bits: int) -> OnnxValue:
        return self.op("BitShift", bits, direction="RIGHT")

    def __invert__(self) -> OnnxValue:
        return self.op(self._bits("Not"))

    def _bits(self, name: str) -> str:
        return name if self.dtype is DType.bool else f"Bitwise{name}"

    def __lt__(self, other: Any) -> OnnxValue:
        return self.predicate("Less", other)

    def __le__(self, other: Any) -> OnnxValue:
        return self.predicate("LessOrEqual", other)

    def __gt__(self, other: Any) -> OnnxValue:
        return self.predicate("Greater", other)

    def __ge__(self, other: Any) -> OnnxValue:
        return self.predicate("GreaterOrEqual", other)

    def equal(self, other: Any) -> OnnxValue:
        """Where the two are equal."""
        return self.predicate("Equal", other)

    def where(self, x: Any, y: Any) -> OnnxValue:
        """Return x where this value is true, else y; at least one of them is a value.

        Floats are selected by their bits, because onnxruntime's Where turns -0.0 into 0.0.
        """
        dtype = next(branch.dtype for branch in (x, y) if isinstance(branch, OnnxValue))
        branches = [x, y]
        if dtype in _BITS:
            branches = [
                branch if isinstance(branch, OnnxValue) else _pattern(branch, dtype)
                for branch in branches
            ]
            branches = [
                branch.bits(_BITS[dtype]) if isinstance(branch, OnnxValue) else branch
                for branch in branches
            ]
        bits_dtype = _BITS.get(dtype, dtype)
        args = [
            branch if isinstance(branch, OnnxValue) else self.body.number(branch, bits_dtype)
            for branch in branches
        ]
        result = self.body.op("Where", [self, *args], bits_dtype)
        return result.bits(dtype) if dtype in _BITS else result

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, x: OnnxValue, *y: Any) -> OnnxValue:
        """The functions of NumPy, besides operators, that conversions are made of."""
        if ufunc is np.absolute:
            return abs(x)
        return x.equal(*y) if ufunc is np.equal else ~x.equal(*y)

    def __array_function__(self, function: Any, _: Any, args: Any, settings: Any) -> OnnxValue:
        """np.where."""
        condition, x, y = args
        return condition.where(x, y)

    def astype(self, dtype: Any) -> OnnxValue:
        """The format's own conversion."""
        return self.cast(DType.from_numpy(DType(dtype).storage))

    def view(self, dtype: Any) -> OnnxValue:
        """The same bits as another dtype of that width."""
        return self.bits(DType(dtype))

    def cast(self, dtype: DType) -> OnnxValue:
        """The format's own conversion; nothing where the dtype is the same."""
        return self if dtype is self.dtype else self.body.cast(self, dtype)

    def bits(self, dtype: DType) -> OnnxValue:
        """The same bits as another dtype of that width."""
        return self.body.op("BitCast", [self], dtype, to=self.body.element(dtype))

    def nan(self) -> OnnxValue:
        """Where it is NaN."""
        return self.predicate("IsNaN")

    def pattern(self) -> OnnxValue:
        """The bits of a float as a signed integer."""
        return self.bits(_BITS[self.dtype])

    def negative(self) -> OnnxValue:
        """Where the sign is set, of -0.0 and NaN too."""
        return self.pattern() < 0
