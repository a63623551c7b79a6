"""Values of an ONNX graph under construction, whose methods add nodes: functions, casts, sort keys.

Functions without an op in ONNX are written in terms of its ops, with the meaning of kernels.py.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# (A lambda's operands are values, which its line need not say.)

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from graphir.conversions import Step, plain
from graphir.dtypes import DTypeLike
from graphir.hints import Number
from graphir.public import DType
from graphir.runtime.targets.emission import EngineConversions

if TYPE_CHECKING:
    from graphir.runtime.targets.onnx_.body import OnnxBody


_BITS = {DType.float32: DType.int32, DType.float64: DType.int64}
"""The signed integers of the width of floats."""


def _pattern(number: Number, dtype: DType) -> int:
    return int(np.asarray(number, dtype.storage).view(_BITS[dtype].storage))


class OnnxValue(NDArrayOperatorsMixin):
    """A value by name and dtype; other operands are values of this dtype or Python numbers."""

    __slots__ = ("body", "dtype", "name")

    def __init__(self, body: OnnxBody, name: str, dtype: DType) -> None:
        self.body, self.name, self.dtype = body, name, dtype

    def op(self, kind: str, *others: OnnxValue | Number, **attrs: Any) -> OnnxValue:
        """A node on this and others, whose result has this dtype."""
        args = [self, *map(self._lifted, others)]
        return self.body.op(kind, args, self.dtype, **attrs)

    def predicate(self, kind: str, *others: OnnxValue | Number, **attrs: Any) -> OnnxValue:
        """A node on this and others, whose result is bool."""
        args = [self, *map(self._lifted, others)]
        return self.body.op(kind, args, DType.bool, **attrs)

    def _lifted(self, other: OnnxValue | Number) -> OnnxValue:
        return other if isinstance(other, OnnxValue) else self.body.number(other, self.dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **_: Any) -> OnnxValue:
        """Add the nodes of an operator, or of a function of NumPy that conversions call."""
        return _UFUNCS[ufunc.__name__](*map(self._lifted, inputs))

    def equal(self, other: OnnxValue | Number) -> OnnxValue:
        """Where the two are equal."""
        return self.predicate("Equal", other)

    def where(self, x: OnnxValue | Number, y: OnnxValue | Number) -> OnnxValue:
        """Return x where this value is true, else y; at least one of them is a value.

        Floats are selected by their bits, because onnxruntime's Where turns -0.0 into 0.0.
        """
        dtype = next(branch.dtype for branch in (x, y) if isinstance(branch, OnnxValue))
        bits_dtype = _BITS.get(dtype, dtype)
        args: list[OnnxValue] = [self]
        for branch in (x, y):
            if not isinstance(branch, OnnxValue):
                bits = _pattern(branch, dtype) if dtype in _BITS else branch
                args.append(self.body.number(bits, bits_dtype))
            else:
                args.append(branch.pattern() if dtype in _BITS else branch)
        result = self.body.op("Where", args, bits_dtype)
        return result.bits(dtype) if dtype in _BITS else result

    def __array_function__(
        self, function: Callable[..., Any], _: Any, args: Sequence[Any], settings: Mapping[str, Any]
    ) -> OnnxValue:
        """np.where."""
        condition, x, y = args
        return condition.where(x, y)

    def astype(self, dtype: DTypeLike) -> OnnxValue:
        """The format's own conversion."""
        return self.cast(DType.from_numpy(DType(dtype).storage))

    def view(self, dtype: DTypeLike) -> OnnxValue:
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


Function: TypeAlias = Callable[..., OnnxValue]


def direct(kind: str) -> Function:
    """Return the function that adds one node of an ONNX op."""

    def function(x: OnnxValue, *others: OnnxValue) -> OnnxValue:
        return x.op(kind, *others)

    return function


def _bitwise(kind: str) -> Function:
    """Return the function that adds a bitwise op; the logical op for bools."""
    return lambda x, *others: x.op(kind if x.dtype is DType.bool else f"Bitwise{kind}", *others)


def compared(kind: str) -> Function:
    """Return the function that adds a comparison; bools, which ONNX cannot compare, are cast."""

    def function(x: OnnxValue, y: OnnxValue) -> OnnxValue:
        if x.dtype is DType.bool and kind != "Equal":
            x, y = x.cast(DType.uint8), y.cast(DType.uint8)
        return x.predicate(kind, y)

    return function


COMPARISONS = {
    "equal": "Equal",
    "less": "Less",
    "less_equal": "LessOrEqual",
    "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
}
_UFUNCS: Mapping[str, Function] = {
    "add": direct("Add"),
    "subtract": direct("Sub"),
    "multiply": direct("Mul"),
    "divide": direct("Div"),
    # of integers with the divisor's sign; of floats C's fmod
    "remainder": lambda x, y: x.op("Mod", y, fmod=int(x.dtype.is_float)),
    "floor_divide": lambda x, y: (x - x % y) / y,  # of sizes: the divisor is positive
    "negative": lambda x: 0 - x if x.dtype.family == "uint" else x.op("Neg"),
    "absolute": lambda x: x if x.dtype.family in ("bool", "uint") else x.op("Abs"),
    "bitwise_and": _bitwise("And"),
    "bitwise_or": _bitwise("Or"),
    "bitwise_xor": _bitwise("Xor"),
    "invert": _bitwise("Not"),
    "right_shift": lambda x, y: x.op("BitShift", y, direction="RIGHT"),
    **{name: compared(kind) for name, kind in COMPARISONS.items()},
    "not_equal": lambda x, y: ~x.equal(y),
}
"""The functions of NumPy by name, which operators call too."""


def greater(x: OnnxValue, y: OnnxValue | Number) -> OnnxValue:
    """Return the elementwise maximum.

    Integers use a comparison, because Max of int64 in onnxruntime is wrong.
    """
    return x.op("Max", y) if x.dtype.is_float else (x > y).where(x, y)


def lesser(x: OnnxValue, y: OnnxValue | Number) -> OnnxValue:
    """Return the elementwise minimum; integers use a comparison, as in `maximum`."""
    return x.op("Min", y) if x.dtype.is_float else (x < y).where(x, y)


def or_of_bools(kind: str, function: Function) -> Function:
    """Return the function that adds an op; bools get the logical op instead."""

    def apply(x: OnnxValue, y: OnnxValue | Number) -> OnnxValue:
        return x.op(kind, y) if x.dtype is DType.bool else function(x, y)

    return apply


def _divisor(x: OnnxValue, y: OnnxValue) -> OnnxValue:
    """Return an integer divisor with 1 in place of 0 and -1, for which engines fail."""
    awkward = y.equal(0) | y.equal(-1) if y.dtype.family == "int" else y.equal(0)
    return awkward.where(1, y)


def floor_divide(x: OnnxValue, y: OnnxValue) -> OnnxValue:
    """Return the floored quotient of integers, 0 where y is 0; that of floats decomposes."""
    safe = _divisor(x, y)
    quotient = x / safe
    if x.dtype.family == "int":
        below = (x < 0) ^ (safe < 0)
        inexact = ~(x % safe).equal(0)
        quotient = y.equal(-1).where(-x, quotient - (inexact & below).cast(x.dtype))
    return y.equal(0).where(0, quotient)


def fmod(x: OnnxValue, y: OnnxValue) -> OnnxValue:
    """Return the remainder with the sign of x; for integers 0 where y is 0."""
    if x.dtype.is_float:
        return x.op("Mod", y, fmod=1)
    return y.equal(0).where(0, x.op("Mod", _divisor(x, y), fmod=1))


def float_pow(x: OnnxValue, y: OnnxValue) -> OnnxValue:
    """Return the power; x * x where y is 2."""
    return y.equal(2).where(x * x, x.op("Pow", y))


def integer_pow(x: OnnxValue, y: OnnxValue, bits: int) -> OnnxValue:
    """Return the power modulo 2**width by repeated squaring, for exponents of `bits` bits."""
    power = None
    for bit in range(bits):
        factor = (y & 2**bit).equal(0).where(1, x)
        power = factor if power is None else power * factor
        x = x * x if bit + 1 < bits else x
    return x * 0 + (y * 0 + 1) if power is None else power


# -- bits


def shifted(direction: str) -> Function:
    """Return a shift; the result is 0 or the sign for counts past the width or below 0."""

    def function(x: OnnxValue, y: OnnxValue) -> OnnxValue:
        if direction == "LEFT" or x.dtype.family == "uint":
            return _shifted(direction, x, y)
        sign = -(x < 0).cast(x.dtype)
        return _shifted(direction, x ^ sign, y) ^ sign

    return function


def _shifted(direction: str, x: OnnxValue, y: OnnxValue) -> OnnxValue:
    """Return a logical shift, computed in uint64; the result is 0 for counts past the width."""
    inside = y.cast(DType.uint64) < x.dtype.bits  # negative ones are great there
    by = inside.where(y, 0).cast(DType.uint64)
    result = x.cast(DType.uint64).op("BitShift", by, direction=direction)
    return inside.where(result.cast(x.dtype), 0)


def copysign(x: OnnxValue, y: OnnxValue) -> OnnxValue:
    """Return the magnitude of x with the sign of y."""
    size = abs(x)
    return y.negative().where(-size, size)


def nextafter(x: OnnxValue, y: OnnxValue) -> OnnxValue:
    """Return the next representable float after x towards y."""
    bits = x.pattern()
    away = ((y > x) ^ x.negative()).where(bits + 1, bits - 1).bits(x.dtype)
    least = copysign(x.body.number(x.dtype.format.least, x.dtype), y)  # pyright: ignore
    result = x.equal(y).where(y, x.equal(0).where(least, away))
    return (x.nan() | y.nan()).where(x + y, result)


# -- floats


def expm1(x: OnnxValue) -> OnnxValue:
    """Return exp(x) - 1, corrected for the rounding error of exp(x) (Kahan's formula)."""
    power = x.op("Exp")
    less = power - 1
    near = power.equal(1).where(x, less * (x / power.op("Log")))
    return (abs(x) < 1).where(near, less)


def log1p(x: OnnxValue) -> OnnxValue:
    """Return log(1 + x), corrected for the rounding error of 1 + x (Kahan's formula)."""
    whole = x + 1
    back = whole - 1
    near = whole.op("Log") * back.equal(x).where(1, x / back)
    return back.equal(0).where(x, near)


def atan2(y: OnnxValue, x: OnnxValue) -> OnnxValue:
    """Return the angle of a point, from the angle of its reflection in the first quadrant."""
    above, right = abs(y), abs(x)
    ratio = above.equal(right).where(above.equal(0).where(above, 1), above / right)
    angle = ratio.op("Atan")
    return copysign(x.negative().where(math.pi - angle, angle), y)


class OnnxConversions(EngineConversions):
    """Casts of values that have the dtypes which ONNX has for them."""

    def cast(self, source: DType, target: DType) -> Step:
        """The format's own conversion."""
        return lambda x: x.cast(DType.from_numpy(target.storage))

    def widen(self, source: DType) -> Step:
        """The format's own conversion, which is exact."""
        return self.cast(source, plain(source))

    def settled(self, target: DType, x: OnnxValue) -> OnnxValue:
        """Return float32 values that the format's conversion, and engines, convert correctly.

        A value that rounds beyond the greatest finite value becomes infinity, or NaN in formats
        without infinity. In float8_e8m0fnu, whose ties go up, non-positive values become NaN too.
        In formats without NaN, a NaN becomes -0.0.
        """
        assert target.format is not None  # a float dtype has a format
        greatest, specials = float(target.max), target.format.specials
        if specials == "scale":
            inside = (x > 0) & (x < 1.5 * greatest)
            return inside.where(lesser(greater(x, target.min), greatest), np.nan)
        if specials == "finite":
            return x.nan().where(-0.0, x)
        if not target.narrow:
            return x
        half = greatest + 2.0 ** (math.frexp(greatest)[1] - target.precision - 1)
        inside = abs(x) <= half if specials == "fn" else abs(x) < half  # to even
        return inside.where(x, x * np.inf if specials == "ieee" else np.nan)


def cast_values(x: OnnxValue, source: DType, target: DType, tf32: str = "even") -> OnnxValue:
    """The values, which are of dtype `source`, in another, as graphir.conversions has it."""
    return OnnxConversions().convert(x, source, target, tf32)


def key(x: OnnxValue, nan: float = np.nan, *, zeros: bool = False) -> OnnxValue:
    """Return integers with the order of values: NaN is above all, or below all if `nan` is -NaN.

    Zeros have equal keys; with `zeros`, 0.0 is above -0.0.
    """
    dtype = x.dtype
    if dtype is DType.uint64:
        return x.bits(DType.int64) ^ DType.int64.min
    if dtype is DType.uint32:
        return x.cast(DType.int64)
    if not dtype.is_float:
        return x if dtype.bits >= 32 else x.cast(DType.int32)
    x = x.nan().where(nan, x if zeros else x.equal(0).where(0, x))
    bits = x.pattern()
    return (bits < 0).where(bits ^ bits.dtype.max, bits)


def unkeyed(key: OnnxValue, dtype: DType) -> OnnxValue:
    """Return the values of some keys; this is the inverse of `key`."""
    if dtype is DType.uint64:
        return (key ^ DType.int64.min).bits(DType.uint64)
    if not dtype.is_float:
        return key.cast(dtype)
    return (key < 0).where(key ^ key.dtype.max, key).bits(dtype)
