"""Functions of float64 of the GNU C library as vector code: exp and log.

Where NumPy has no vector loop for a processor, it calls the C library for each element. The library
computes these functions by tables of 128 entries and polynomials since version 2.28
(sysdeps/ieee754/dbl-64/e_exp.c and e_log.c, with tables and bounds of errors from Arm's optimized
routines). On processors with FMA it runs code in which the compiler has fused products
and sums; the emitters fuse the same ones. Lanes with special results go to NumPy's loop.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from functools import cache

import numpy as np

from graphir.runtime.native.assembly import ConstantTable, Vector, fma, package_text, where
from graphir.runtime.native.functions.numpy_loops import call_loop

_F64, _I64, _U64 = np.float64, np.int64, np.uint64

_INTEGERS = _F64(3 << 51)
"""A float64 whose unit in the last place is 1: the sum with it is rounded to an integer."""


# -- exp of float64: x is k*ln(2)/128 + rest, and the result is 2**(k/128) * exp(rest)

_STEPS = _F64(float.fromhex("0x1.71547652B82FEp7"))
_STEP_HIGH = _F64(float.fromhex("0x1.62E42FEFA0000p-8"))
_STEP_LOW = _F64(float.fromhex("0x1.CF79ABC9E3B3Ap-47"))
"""128 / ln(2), and the inverse of it as a sum."""

_EXP = (
    "0x1.FFFFFFFFFFDBDp-2",
    "0x1.555555555543Cp-3",
    "0x1.55555CF172B91p-5",
    "0x1.1111167A4D017p-7",
)
"""The coefficients of rest**2 to rest**5."""

_FAR = _F64(512)
"""The magnitude from which on the result may be infinite or subnormal."""


@cache
def _powers() -> ConstantTable:
    """Return a table with two words for each i below 128.

    The first is the relative error of 2**(i/128) as a float64, the second the bits of that float64
    less i/128 in the exponent. The powers are computed with 400 bits after the point.
    """
    unit = 1 << 400
    root = 2 * unit
    for _ in range(7):
        root = math.isqrt(root * unit)
    words, power = np.empty(256, np.int64), unit
    for i in range(128):
        exact = Fraction(power, unit)
        nearest = float(exact)
        error = float(exact / Fraction(nearest) - 1)
        error_bits, bits = np.array([error, nearest]).view(np.int64)
        words[2 * i : 2 * i + 2] = error_bits, bits - (i << 45)
        power = power * root // unit
    return ConstantTable.of(words)


def emit_exp(x: Vector) -> Vector:
    """Emit exp of float64."""
    sum_ = fma(x, _STEPS, _INTEGERS)
    k = sum_ - _INTEGERS
    rest = fma(k, -_STEP_LOW, fma(k, -_STEP_HIGH, x))
    return x.code.rarely(~(np.absolute(x) < _FAR), _power(sum_, rest), lambda: call_loop(np.exp, x))


def _power(sum_: Vector, rest: Vector) -> Vector:
    """Emit exp(rest) * 2**(k/128), with the bits of k in a sum with _INTEGERS."""
    c2, c3, c4, c5 = [_F64(float.fromhex(coefficient)) for coefficient in _EXP]
    bits = sum_.view(_I64)
    error, scale_bits = ((bits & _I64(127)) << 1).gather_pairs(_powers())
    scale = (scale_bits + (bits << 45)).view(_F64)
    square = rest * rest
    low = fma(fma(rest, c3, c2), square, rest + error.view(_F64))
    return fma(scale, fma(square * square, fma(rest, c5, c4), low), scale)


# -- log of float64: x is 2**k * c * (1 + rest), the result k*ln(2) + log(c) + log(1 + rest)

_LN_2_HIGH = _F64(float.fromhex("0x1.62E42FEFA3800p-1"))
_LN_2_LOW = _F64(float.fromhex("0x1.EF35793C76730p-45"))

_LOG = (
    "-0x1.0000000000001p-1",
    "0x1.555555551305Bp-2",
    "-0x1.FFFFFFFEB459p-3",
    "0x1.999B324F10111p-3",
    "-0x1.55575E506C89Fp-3",
)
_LOG_NEAR_1 = (
    "-0x1p-1",
    "0x1.5555555555577p-2",
    "-0x1.FFFFFFFFFFDCBp-3",
    "0x1.999999995DD0Cp-3",
    "-0x1.55555556745A7p-3",
    "0x1.24924A344DE3p-3",
    "-0x1.FFFFFA4423D65p-4",
    "0x1.C7184282AD6CAp-4",
    "-0x1.999EB43B068FFp-4",
    "0x1.78182F7AFD085p-4",
    "-0x1.5521375D145CDp-4",
)
"""The coefficients of rest**2 and up, and the same where x is about 1 and so is c."""

_NEAR_1 = _F64(1 - 2**-4), _F64(float.fromhex("0x1.109p0"))
"""The bounds of the numbers about 1."""

_LEAST = _I64(0x3FE6000000000000)
"""The least z, 11/16, in bits."""


@cache
def _logarithms() -> ConstantTable:
    """Return the table of c_library_tables.json, whose words are the bits of float64."""
    tables = json.loads(package_text("functions/c_library_tables.json"))
    words = " ".join(tables["log"]["words"]).split()
    return ConstantTable.of(np.array([int(word, 16) for word in words], _U64).view(_F64))


def emit_log(x: Vector) -> Vector:
    """Emit log of float64."""
    a2, a3, a4, a5, a6 = [_F64(float.fromhex(coefficient)) for coefficient in _LOG]
    k, z, place = _reduced(x)
    inverse, log_c = place.gather_pairs(_logarithms())
    rest = fma(z, inverse, _F64(-1))
    sum_ = fma(k, _LN_2_HIGH, log_c)
    high, square = rest + sum_, rest * rest
    low = fma(square, a2, fma(k, _LN_2_LOW, (sum_ - high) + rest))
    tail = fma(fma(rest, a6, a5), square, fma(rest, a4, a3))
    result = fma(rest * square, tail, low) + high
    is_near_1 = (x >= _NEAR_1[0]) & (x < _NEAR_1[1])
    result = x.code.rarely(is_near_1, result, lambda: where(is_near_1, _log_near_1(x), result))
    is_normal = (x >= np.finfo(_F64).tiny) & (x < _F64(np.inf))
    return x.code.rarely(~is_normal, result, lambda: call_loop(np.log, x))


def _reduced(x: Vector) -> tuple[Vector, Vector, Vector]:
    """Emit k, z and twice the index of the interval of z, for positive normal numbers."""
    offset = (x.view(_I64) - _LEAST).view(_U64)
    place = (offset >> _U64(44)) & _U64(127 << 1)
    z = (x.view(_I64) - (offset & _U64(0xFFF << 52)).view(_I64)).view(_F64)
    biased = ((offset + _U64(1024 << 52)) >> _U64(52)).view(_I64) + _INTEGERS.view(_I64)
    return biased.view(_F64) - (_INTEGERS + _F64(1024)), z, place.view(_I64)


def _log_near_1(x: Vector) -> Vector:
    """Emit the logarithm of numbers about 1: the square of x - 1 is a sum of two products."""
    b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12 = [
        _F64(float.fromhex(coefficient)) for coefficient in _LOG_NEAR_1
    ]
    rest = x - _F64(1)
    square = rest * rest
    cube = rest * square
    first = fma(square, b5, fma(rest, b4, b3))
    second = fma(square, b8, fma(rest, b7, b6))
    third = fma(cube, b12, fma(square, b11, fma(rest, b10, b9)))
    tail = fma(fma(third, cube, second), cube, first)
    upper = fma(rest, _F64(-(2.0**27)), fma(rest, _F64(2.0**27), rest))
    lower, product = rest - upper, upper * upper
    high = fma(product, b2, rest)
    low = fma(lower * b2, rest + upper, fma(product, b2, rest - high))
    return high + fma(tail, cube, low)
