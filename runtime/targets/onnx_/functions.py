"""Functions without an op in ONNX, in terms of its ops, with the meaning of kernels.py.

Where the format has an op that means less, such as Sigmoid, which engines let reach 0 early, it is
not used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from graphir import DType
from graphir.runtime.targets.onnx_.values import OnnxValue

Function: TypeAlias = Callable[..., OnnxValue]


def direct(kind: str) -> Function:
    """Return the function that adds one node of an ONNX op."""

    def function(x: OnnxValue, *others: OnnxValue) -> OnnxValue:
        return x.op(kind, *others)

    return function


def less_of(x: OnnxValue, y: OnnxValue) -> tuple[OnnxValue, OnnxValue]:
    """Return two values in dtypes that ONNX can compare: bools become integers."""
    return (x.cast(DType.uint8), y.cast(DType.uint8)) if x.dtype is DType.bool else (x, y)


def compared(kind: str) -> Function:
    """Return the function that adds a comparison."""

    def function(x: OnnxValue, y: OnnxValue) -> OnnxValue:
        x, y = less_of(x, y)
        return x.predicate(kind, y)

    return function


def greater(x: OnnxValue, y: Any) -> OnnxValue:
    """Return the elementwise maximum.

    Integers use a comparison, because Max of int64 in onnxruntime is wrong.
    """
    return x.op("Max", y) if x.dtype.is_float else (x > y).where(x, y)


def lesser(x: OnnxValue, y: Any) -> OnnxValue:
    """Return the elementwise minimum; integers use a comparison, as in `maximum`."""
    return x.op("Min", y) if x.dtype.is_float else (x < y).where(x, y)


def or_of_bools(kind: str, function: Function) -> Function:
    """Return the function that adds an op; bools get the logical op instead."""

    def apply(x: OnnxValue, y: Any) -> OnnxValue:
        return x.op(kind, y) if x.dtype is DType.bool else function(x, y)

    return apply


def everywhere(number: Any, x: OnnxValue) -> OnnxValue:
    """Return a constant with the dtype and the shape of a value."""
    shape = x.body.op("Shape", [x], DType.int64)
    return x.body.op("Expand", [x.body.number(number, x.dtype), shape], x.dtype)


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
