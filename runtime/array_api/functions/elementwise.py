"""The standard's elementwise functions; most of them record one op."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from graphir import DType, ops
from graphir.ops.op import Op
from runtime.array_api.array import Array, array_of, named, record
from runtime.array_api.dtypes import require

Unary: TypeAlias = Callable[[Array], Array]
Binary: TypeAlias = Callable[[Any, Any], Array]


def _unary(name: str, op: Op) -> Unary:
    def function(x: Array, /) -> Array:
        return record(op, array_of(x))

    return named(function, name, _doc(op))


def _binary(name: str, op: Op) -> Binary:
    def function(x1: Any, x2: Any, /) -> Array:
        return record(op, x1, x2)

    return named(function, name, _doc(op))


def _doc(op: Op) -> str:
    return f"{op.doc}\n\nTypeError where the standard does not define it."


abs = _unary("abs", ops.abs)
acos = _unary("acos", ops.acos)
acosh = _unary("acosh", ops.acosh)
asin = _unary("asin", ops.asin)
asinh = _unary("asinh", ops.asinh)
atan = _unary("atan", ops.atan)
atanh = _unary("atanh", ops.atanh)
bitwise_invert = _unary("bitwise_invert", ops.bitwise_invert)
ceil = _unary("ceil", ops.ceil)
conj = _unary("conj", ops.conj)
cos = _unary("cos", ops.cos)
cosh = _unary("cosh", ops.cosh)
exp = _unary("exp", ops.exp)
floor = _unary("floor", ops.floor)
imag = _unary("imag", ops.imag)
isfinite = _unary("isfinite", ops.is_finite)
isinf = _unary("isinf", ops.is_inf)
isnan = _unary("isnan", ops.is_nan)
log = _unary("log", ops.log)
log1p = _unary("log1p", ops.log1p)
log2 = _unary("log2", ops.log2)
log10 = _unary("log10", ops.log10)
logical_not = _unary("logical_not", ops.logical_not)
negative = _unary("negative", ops.negative)
positive = _unary("positive", ops.positive)
real = _unary("real", ops.real)
reciprocal = _unary("reciprocal", ops.reciprocal)
round = _unary("round", ops.round)
signbit = _unary("signbit", ops.signbit)
sin = _unary("sin", ops.sin)
sinh = _unary("sinh", ops.sinh)
square = _unary("square", ops.square)
sqrt = _unary("sqrt", ops.sqrt)
tan = _unary("tan", ops.tan)
tanh = _unary("tanh", ops.tanh)
trunc = _unary("trunc", ops.trunc)
add = _binary("add", ops.add)
atan2 = _binary("atan2", ops.atan2)
bitwise_and = _binary("bitwise_and", ops.bitwise_and)
bitwise_left_shift = _binary("bitwise_left_shift", ops.left_shift)
bitwise_or = _binary("bitwise_or", ops.bitwise_or)
bitwise_right_shift = _binary("bitwise_right_shift", ops.right_shift)
bitwise_xor = _binary("bitwise_xor", ops.bitwise_xor)
copysign = _binary("copysign", ops.copysign)
divide = _binary("divide", ops.divide)
equal = _binary("equal", ops.equal)
floor_divide = _binary("floor_divide", ops.floor_divide)
greater = _binary("greater", ops.greater)
greater_equal = _binary("greater_equal", ops.greater_equal)
hypot = _binary("hypot", ops.hypot)
less = _binary("less", ops.less)
less_equal = _binary("less_equal", ops.less_equal)
logaddexp = _binary("logaddexp", ops.logaddexp)
logical_and = _binary("logical_and", ops.logical_and)
logical_or = _binary("logical_or", ops.logical_or)
logical_xor = _binary("logical_xor", ops.logical_xor)
maximum = _binary("maximum", ops.maximum)
minimum = _binary("minimum", ops.minimum)
multiply = _binary("multiply", ops.multiply)
nextafter = _binary("nextafter", ops.nextafter)
not_equal = _binary("not_equal", ops.not_equal)
pow = _binary("pow", ops.pow)
remainder = _binary("remainder", ops.remainder)
subtract = _binary("subtract", ops.subtract)


def expm1(x: Array, /) -> Array:
    """Return e**x - 1, without cancellation near 0.

    TypeError where the standard does not define it.
    """
    result = record(ops.expm1, array_of(x))
    if not x.dtype.is_complex:
        return result
    # NumPy's complex expm1 lacks the standard's special cases, and its exp has them all.
    common = record(ops.logical_and, record(ops.is_finite, x), record(ops.not_equal, x, 0))
    return record(ops.where, common, result, record(ops.subtract, record(ops.exp, x), 1))


def sign(x: Array, /) -> Array:
    """Return -1, 0 or 1; for complex z, z / |z|; NaN for NaN.

    TypeError where the standard does not define it.
    """
    result = record(ops.sign, array_of(x))
    if not x.dtype.is_complex:
        return result
    # NumPy's result for inf with NaN is the sign of the infinite part; the standard has NaN.
    return record(ops.where, record(ops.is_nan, x), complex(math.nan, math.nan), result)


def clip(x: Array, /, min: Any = None, max: Any = None) -> Array:
    """Clip x to the range from min to max, in the dtype of x; either bound may be None."""
    if min is None and max is None:
        require("clip", x, "integral", "real floating")
        return Array(x.symbol)
    least, greatest = _range(array_of(x).dtype)
    return record(ops.clip, x, least if min is None else min, greatest if max is None else max)


def _range(dtype: DType) -> tuple[Any, Any]:
    return (dtype.min, dtype.max) if dtype.is_integer else (-math.inf, math.inf)
