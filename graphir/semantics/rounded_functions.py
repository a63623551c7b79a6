"""Functions of float32 whose results are correctly rounded for all 2**32 inputs.

Each function computes in float64 with an error of a few units in the last place, and rounds once
to float32. That fails only if the exact value lies as near to the middle between two neighbours of
float32. A run over all 2**32 inputs (tests/graphir/semantics/exhaustive_rounded.py) found the few
inputs for which it fails, which are listed as exceptions.

The functions consist of + - * / in float64, comparisons, and operations on bits. The parameter
`fma(x, y, z)` is x * y + z, with one rounding or with two: the results in float32 are the same for
both, so that all machines give the same bits.

exp and its relatives reduce x to k*log(2) + r with |r| <= log(2)/2. The logarithms reduce x to
2**k * m and use log(m) = 2*atanh((m - 1)/(m + 1)). erf(x) is -expm1(-x*q(x)) with a polynomial q.
The angle of sin and cos is reduced as by Payne and Hanek (ACM SIGNUM 18, 1983): the bits of 2/pi
that matter for each exponent are in a table. The polynomials are minimax approximations by Remez'
algorithm, with relative errors of the functions below 2**-55.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Context, Decimal, localcontext
from functools import cache, reduce
from typing import Any, TypeAlias

import numpy as np

from graphir.hints import Array

MultiplyAdd: TypeAlias = Callable[[Any, Any, Any], Any]
_where: Callable[..., Any] = np.where


def multiply_add(x: Any, y: Any, z: Any) -> Any:
    """Return x * y + z with two roundings."""
    return x * y + z


def _floats(text: str) -> list[float]:
    """Return the numbers of a text in hexadecimal notation."""
    return [float.fromhex(word) for word in text.split()]


def polynomial(x: Any, coefficients: Iterable[Any], fma: MultiplyAdd = multiply_add) -> Any:
    """Evaluate a polynomial by Horner's rule, from the coefficient of the highest power down."""
    return reduce(lambda total, coefficient: fma(total, x, coefficient), coefficients)


_EXCEPTIONS = {
    "log": _floats(
        "0x1.827a74p-7 -0x1.1c2b1ep+2 0x1.2f1fd6p+3 0x1.1fcbcep+1 0x1.bacb4ap+25 0x1.1e0696p+4 "
        "0x1.b121a6p+76 0x1.a9a3f2p+5 0x1.6351d8p+95 0x1.08b512p+6"
    ),
    "log1p": _floats(
        "0x1.800006p-21 0x1.7ffffep-21 0x1.200036p-17 0x1.1fffe6p-17 0x1.fb035ap-2 "
        "0x1.9bddc2p-2 0x1.0f1fd6p+3 0x1.1fcbcep+1 0x1.b121a6p+76 0x1.a9a3f2p+5 "
        "0x1.6351d8p+95 0x1.08b512p+6 -0x1.7ffffap-21 -0x1.800002p-21 -0x1.1fffcap-17 "
        "-0x1.20001ap-17 -0x1.1d9188p-9 -0x1.1de14ap-9"
    ),
    "sin": _floats("0x1.33333p+13 -0x1.63f4bap-2 -0x1.33333p+13 0x1.63f4bap-2"),
    "cos": _floats("0x1.3170fp+63 0x1.fe2976p-1 0x1.2b9622p+67 0x1.f0285ep-1"),
    "sigmoid": _floats("-0x1.250c02p-10 0x1.ffb6bep-2"),
}
"""The inputs that float64 rounds to the wrong neighbour, each before its correct result.

Those of cos are absolute values.
"""


def _corrected(name: str, x: Array, result: Any) -> Any:
    """Return results of a function with those of its exceptions replaced."""
    pairs = np.array(_EXCEPTIONS[name], np.float32).reshape(-1, 2)
    for place, value in pairs:
        result = _where(np.equal(x, place), value, result)
    return result


# -- the exponential function and its relatives

# The sum of a small number and 1.5 * 2**52 is rounded to an integer, which its low bits have.
_SHIFT, _SHIFT_BITS = 1.5 * 2.0**52, 0x4338000000000000
_MANTISSA, _BIAS = 52, 1023
_LOG2_E = float.fromhex("0x1.71547652b82fep+0")
# log(2) in two parts. The first has 34 bits, so that its product with an exponent is exact.
_LN2, _LN2_REST = _floats("0x1.62e42fefap-1 0x1.cf79abc9e3b3ap-40")
_EXP = _floats(
    "0x1.af8585facd236p-26 0x1.28b049187b366p-22 0x1.71dddfcd3d669p-19 0x1.a0199693b7633p-16 "
    "0x1.a01a01bae17b4p-13 0x1.6c16c185a7594p-10 0x1.111111110d63dp-7 0x1.5555555550030p-5 "
    "0x1.5555555555561p-3 0x1.000000000000bp-1"
)
"""The coefficients of (exp(r) - 1 - r) / r**2, with the least error relative to exp(r)."""
_EXPM1 = _floats(
    "0x1.af74582622ab2p-26 0x1.28a0859d2ee36p-22 0x1.71ddeb977404bp-19 0x1.a019a8fe11cbbp-16 "
    "0x1.a01a01b516e1ep-13 0x1.6c16c17e3eca3p-10 0x1.111111110e93dp-7 0x1.55555555525b4p-5 "
    "0x1.555555555555cp-3 0x1.0000000000004p-1"
)
"""The coefficients of the same function, with the least error relative to exp(r) - 1."""
_ERF = _floats(
    "0x1.28e76f9ea7248p-45 -0x1.5b478e1dd37e7p-40 0x1.76835d591a1b8p-36 -0x1.eb36cfb398c98p-33 "
    "0x1.b12d4d142c586p-30 -0x1.093be696725b0p-27 0x1.b40c622c8173cp-26 -0x1.79ae2826b45e6p-25 "
    "-0x1.c23d78aa8a5f1p-25 0x1.52c78a69d63dep-21 -0x1.1af5cfdb0a4bcp-19 0x1.ad59585d962bep-19 "
    "0x1.a2fe578014d0ap-19 -0x1.efbecb3747926p-16 0x1.0e26963eb687fp-14 0x1.b2aaaf13a2f35p-16 "
    "-0x1.356658924e9cbp-11 0x1.bca6941fc1f1ep-10 -0x1.b6b6a39b49c09p-13 -0x1.3966859056ca8p-6 "
    "0x1.a4f4e2a1a950cp-4 0x1.45f306dc9c8dbp-1 0x1.20dd750429b6dp+0"
)
"""The coefficients of -log(1 - erf(x)) / x on [0, 3.93]."""


def _between(least: float, x: Array, most: float) -> Any:
    """Return x in float64, clamped to a range outside of which the function is constant."""
    return np.minimum(np.maximum(x, np.float32(least)), np.float32(most)).astype(np.float64)


def _power_and_rest(x: Any, fma: MultiplyAdd) -> tuple[Any, Any]:
    """Return 2**k and r for x = k*log(2) + r."""
    shifted = fma(x, _LOG2_E, _SHIFT)
    k = shifted - _SHIFT
    power = ((shifted.view(np.int64) + _BIAS) << _MANTISSA).view(np.float64)
    return power, fma(k, -_LN2_REST, fma(k, -_LN2, x))


def _exp(x: Any, fma: MultiplyAdd) -> Any:
    power, r = _power_and_rest(x, fma)
    return power * (fma(r * r, polynomial(r, _EXP, fma), r) + 1.0)


def _expm1(x: Any, fma: MultiplyAdd) -> Any:
    power, r = _power_and_rest(x, fma)
    return fma(power, fma(r * r, polynomial(r, _EXPM1, fma), r), power - 1.0)


def rounded_exp(x: Array, fma: MultiplyAdd = multiply_add) -> Array:
    """Compute e**x of float32."""
    return _exp(_between(-104, x, 89), fma).astype(np.float32)


def rounded_expm1(x: Array, fma: MultiplyAdd = multiply_add) -> Array:
    """Compute e**x - 1 of float32."""
    return np.copysign(_expm1(_between(-20, x, 89), fma).astype(np.float32), x)


def rounded_tanh(x: Array, fma: MultiplyAdd = multiply_add) -> Array:
    """Compute the hyperbolic tangent of float32: expm1(2x) / (expm1(2x) + 2)."""
    size = np.minimum(np.absolute(x), np.float32(10)).astype(np.float64)
    less = _expm1(size * 2.0, fma)
    return np.copysign((less / (less + 2.0)).astype(np.float32), x)


def rounded_sigmoid(x: Array, fma: MultiplyAdd = multiply_add) -> Array:
    """Compute 1 / (1 + exp(-x)) of float32.

    Near 0 the value is less than 1/2 + x/4 by |x|**3/48, which float64 does not resolve. A factor
    of x/4 below 1 keeps the value on this side of the middle between two neighbours of float32.
    """
    wide = _between(-104, x, 89)
    near = fma(wide, 0.25 - 2.0**-29, 0.5)
    far = 1.0 / (1.0 + _exp(-wide, fma))
    result = _where(np.absolute(wide) < 2.0**-13, near, far).astype(np.float32)
    return _corrected("sigmoid", x, result)


def rounded_erf(x: Array, fma: MultiplyAdd = multiply_add) -> Array:
    """Compute the error function of float32."""
    size = np.minimum(np.absolute(x), np.float32(4)).astype(np.float64)
    negative = _expm1(-size * polynomial(size, _ERF, fma), fma)
    return np.copysign(negative.astype(np.float32), x)


# -- logarithms

_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_LOG = _floats(
    "0x1.2f06346bb211dp-3 0x1.39a1a6faa1df0p-3 0x1.74663fa1fa5f3p-3 0x1.c71c5206090c9p-3 "
    "0x1.24924941f4f9ap-2 0x1.999999997fd77p-2 0x1.5555555555592p-1"
)
"""The coefficients of 2 * (atanh(s)/s - 1) / s**2 in powers of s**2."""
_LOG2 = _floats(
    "0x1.b52beba7352dbp-3 0x1.c4797bafe7f56p-3 0x1.0ca11fb26886cp-2 0x1.484afcefdcac5p-2 "
    "0x1.a61762d212dffp-2 0x1.2776c50ee72b4p-1 0x1.ec709dc3a0456p-1"
)
"""The same coefficients, divided by log(2)."""
# 2 / log(2) in two parts.
_SCALE, _SCALE_REST = _floats("0x1.71547652b82fep+1 0x1.777d0ffda0d24p-55")


def _exponent_and_mantissa(x: Any) -> tuple[Any, Any, Any]:
    """Return k as an integer and as a float, and m in [sqrt(1/2), sqrt(2)), for x = 2**k * m."""
    bits = x.view(np.int64)
    k = (bits - _SQRT_HALF_BITS) >> _MANTISSA
    m = (bits - (k << _MANTISSA)).view(np.float64)
    return k, (k + _SHIFT_BITS).view(np.float64) - _SHIFT, m


def _log(k: Any, s: Any, fma: MultiplyAdd) -> Any:
    """Return k * log(2) + 2 * atanh(s)."""
    square = s * s
    rest = fma(s * square, polynomial(square, _LOG, fma), k * _LN2_REST)
    return fma(k, _LN2, fma(s, 2.0, rest))


def _beyond(pole: float, x: Array, logarithm: Any) -> Any:
    """Return a logarithm rounded to float32: -inf at its pole, NaN below, inf at infinity."""
    least, infinity = np.float32(pole), np.float32(np.inf)
    other = _where(np.equal(x, infinity), x, np.float32(np.nan))
    other = _where(np.equal(x, least), -infinity, other)
    is_inside = np.logical_and(x > least, x < infinity)
    return _where(is_inside, logarithm.astype(np.float32), other)


def rounded_log(x: Array, fma: MultiplyAdd = multiply_add) -> Array:
    """Compute the natural logarithm of float32."""
    _, k, m = _exponent_and_mantissa(x.astype(np.float64))
    result = _beyond(0, x, _log(k, (m - 1.0) / (m + 1.0), fma))
    return _corrected("log", x, result)


def rounded_log2(x: Array, fma: MultiplyAdd = multiply_add) -> Array:
    """Compute the logarithm of float32 to base 2."""
    _, k, m = _exponent_and_mantissa(x.astype(np.float64))
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    rest = s * fma(square, polynomial(square, _LOG2, fma), _SCALE_REST)
    return _beyond(0, x, k + fma(s, _SCALE, rest))


def rounded_log1p(x: Array, fma: MultiplyAdd = multiply_add) -> Array:
    """Compute log(1 + x) of float32. Where 1 + x rounds, x is far below 1 or far above."""
    wide = x.astype(np.float64)
    exponent, k, m = _exponent_and_mantissa(wide + 1.0)
    rest = _where(np.equal(exponent, 0), wide, m - 1.0)
    result = _beyond(-1, x, _log(k, rest / (rest + 2.0), fma))
    return np.copysign(_corrected("log1p", x, result), x)


# -- sine and cosine

_SIN = _floats(
    "0x1.e3f31b88b8aa8p-25 -0x1.e3007098262c3p-19 0x1.50782fd8fcf43p-13 -0x1.32d2cce2e4b77p-8 "
    "0x1.466bc677587ebp-4 -0x1.4abbce625be41p-1"
)
"""The coefficients of (sin(f*pi/2)/f - pi/2) / f**2 in powers of f**2, for |f| <= 1/2."""
_COS = _floats(
    "-0x1.b26f74433cf61p-28 0x1.f9cc695b3358dp-22 -0x1.a6d1ecb56f5e4p-16 0x1.e1f50683b1f66p-11 "
    "-0x1.55d3c7e3c95a6p-6 0x1.03c1f081b5ab0p-2 -0x1.3bd3cc9be45dep+0"
)
"""The coefficients of (cos(f*pi/2) - 1) / f**2 in powers of f**2."""
# pi / 2 in two parts, and 2 / pi.
_TURN, _TURN_REST, _TURNS = _floats(
    "0x1.921fb54442d18p+0 0x1.1a62633145c07p-54 0x1.45f306dc9c883p-1"
)
_LEAST_EXPONENT, _MOST_EXPONENT = -1, 127
_WORD, _HALF_WORD = (1 << 52) - 1, (_BIAS + 23) << _MANTISSA


@cache
def _turns() -> tuple[Array, Array, Array]:
    """Return the table of 2/pi * 2**(e - 23) modulo 4 for the exponents e, in three parts.

    The first two parts have 27 bits each, so that their products with 24 bits are exact.
    """
    with localcontext(Context(prec=120)):
        turns = 2 / (16 * _arctan(5) - 4 * _arctan(239))  # Machin's formula for pi
        rows: list[tuple[float, float, float]] = []
        for exponent in range(_LEAST_EXPONENT, _MOST_EXPONENT + 1):
            rest = turns * Decimal(2) ** (exponent - 23) % 4
            high = int(rest * 2**25)
            rest -= Decimal(high) / 2**25
            middle = int(rest * 2**52)
            rest -= Decimal(middle) / 2**52
            rows.append((high / 2**25, middle / 2**52, float(rest)))
    high_parts, middle_parts, rests = np.array(rows).T.copy()
    return high_parts, middle_parts, rests


def _arctan(n: int) -> Decimal:
    """Return the arc tangent of 1/n by its series, to 118 digits."""
    total = power = Decimal(1) / n
    for k in range(3, 400, 2):
        power /= -n * n
        total += power / k
    return total


def _sine(x: Array, quarter: int, fma: MultiplyAdd, take: Any) -> Any:
    """Return the sine of |x| plus some quarter turns, in float64; finite x alone have one."""
    size = np.absolute(x.astype(np.float64))
    bits = size.view(np.int64)
    row = np.minimum(
        np.maximum((bits >> _MANTISSA) - (_BIAS + _LEAST_EXPONENT), 0),
        _MOST_EXPONENT - _LEAST_EXPONENT,
    )
    mantissa = ((bits & _WORD) | _HALF_WORD).view(np.float64)  # an integer of 24 bits
    high, middle, rest = [mantissa * take(part, row) for part in _turns()]
    first = high + _SHIFT
    both = high - (first - _SHIFT) + middle
    second = both + _SHIFT
    is_near = size < 0.5
    f = _where(is_near, size * _TURNS, both - (second - _SHIFT) + rest)
    quarters = _where(is_near, 0, first.view(np.int64) + second.view(np.int64)) + quarter
    square = f * f
    bend = fma(square, polynomial(square, _SIN, fma), _TURN_REST)
    sine = fma(f, _TURN, f * bend)
    cosine = fma(square, polynomial(square, _COS, fma), 1.0)
    value = _where(np.equal(quarters & 1, 0), sine, cosine)
    return (value.view(np.int64) ^ ((quarters & 2) << 62)).view(np.float64)


def _of_finite(x: Array, result: Any) -> Any:
    is_finite = np.absolute(x) < np.float32(np.inf)
    return _where(is_finite, result.astype(np.float32), np.float32(np.nan))


def rounded_sin(
    x: Array, fma: MultiplyAdd = multiply_add, take: Callable[..., Any] = np.ndarray.take
) -> Array:
    """Compute the sine of float32."""
    sine = _sine(x, 0, fma, take)
    sign = x.view(np.int32) >> 31
    result = _of_finite(x, _where(np.equal(sign, 0), sine, -sine))
    return _corrected("sin", x, result)


def rounded_cos(
    x: Array, fma: MultiplyAdd = multiply_add, take: Callable[..., Any] = np.ndarray.take
) -> Array:
    """Compute the cosine of float32."""
    result = _of_finite(x, _sine(x, 1, fma, take))
    return _corrected("cos", np.absolute(x), result)


ROUNDED_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "exp": rounded_exp,
    "expm1": rounded_expm1,
    "log": rounded_log,
    "log1p": rounded_log1p,
    "log2": rounded_log2,
    "sin": rounded_sin,
    "cos": rounded_cos,
    "tanh": rounded_tanh,
    "erf": rounded_erf,
    "sigmoid": rounded_sigmoid,
}
"""The functions by the names of their ops."""
