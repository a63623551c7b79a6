"""Functions of float32 of the GNU C library as vector code: log1p, expm1 and pow.

log1p and expm1 are those of Sun's fdlibm, without FMA (sysdeps/ieee754/flt-32/s_log1pf.c and
s_expm1f.c, up to version 2.40). pow computes with float64 by tables, as fused by the compiler for
processors with FMA (e_powf.c, from Arm's optimized routines). Lanes with special results go to
NumPy's loop.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from graphir.runtime.native.assembly import ConstantTable, Vector, where
from graphir.runtime.native.functions.arithmetic import call_loop, fma, polynomial_in_steps

_F32, _F64, _I32, _I64, _U64 = np.float32, np.float64, np.int32, np.int64, np.uint64


# -- log1p of float32: 1 + x + correction is 2**k * (1 + f)

_LN_2_HIGH, _LN_2_LOW = _F32(6.9313812256e-01), _F32(9.0580006145e-06)

_LOG1P = (
    1.4798198640e-01,
    1.5313838422e-01,
    1.8183572590e-01,
    2.2222198546e-01,
    2.8571429849e-01,
    4.0000000596e-01,
    6.6666668653e-01,
)
"""The coefficients in z = (f / (2 + f))**2, highest degree first."""

_NEAR_0 = _F32(-0.29289338), _F32(0.41421387)
"""The bounds of the numbers whose k is 0: 1 less sqrt(2), rounded, and its opposite halved."""


def emit_log1p(x: Vector) -> Vector:
    """Emit log1p of float32."""
    unit, zero, size = _F32(1), _F32(0), np.absolute(x)
    is_near_0 = (x < _NEAR_0[1]) & (x >= _NEAR_0[0])
    k, correction, significand, fraction = _reduced(x)
    f = where(is_near_0, x, significand - unit)
    is_without_k = is_near_0 | (k == zero)
    half_square = _F32(0.5) * f * f
    s = f / (_F32(2) + f)
    z = s * s
    product = s * (half_square + z * polynomial_in_steps(z, _LOG1P))
    low = product + (k * _LN_2_LOW + correction)
    with_k = k * _LN_2_HIGH - ((half_square - low) - f)
    result = where(is_without_k, f - (half_square - product), with_k)
    is_usual = (x > -unit) & (size >= _F32(2.0**-29)) & (x < _WITHOUT_1)
    is_usual = is_usual & ((fraction != _I32(0)) | is_near_0)
    return x.code.rarely(~is_usual, result, lambda: call_loop(np.log1p, x))


_WITHOUT_1 = _F32(2.0**53)
"""The number from which on 1 + x is x."""


def _reduced(x: Vector) -> tuple[Vector, Vector, Vector, Vector]:
    """Emit k, the correction, 1 + f, and a number that is 0 if f is 0 or tiny."""
    unit = _F32(1)
    sum_ = unit + x
    bits = sum_.view(_I32)
    k = (bits >> 23) - _I32(127)
    correction = where(k > _I32(0), unit - (sum_ - x), x - (sum_ - unit)) / sum_
    fraction = bits & _I32(0x7FFFFF)
    low = fraction < _I32(0x3504F7)
    exponent = where(low, x.constant(0x3F800000, _I32), x.constant(0x3F000000, _I32))
    fraction_left = where(low, fraction, (_I32(0x800000) - fraction) >> 2)
    k = where(low, k, k + _I32(1)).astype(_F32)
    return k, correction, (fraction | exponent).view(_F32), fraction_left


# -- expm1 of float32: x is k*ln(2) + rest, and the result is 2**k * (expm1(rest) + 1) - 1

_EXPM1 = (
    -2.0109921195e-07,
    4.0082177293e-06,
    -7.9365076090e-05,
    1.5873016091e-03,
    -3.3333335072e-02,
    1.0,
)
"""The coefficients in rest**2 / 2, highest degree first."""

_STEPS = _F32(1.4426950216e00)
_HALF_LN_2, _HALVES_3 = _F32(0.3465736), _F32(1.0397208)
_EXPM1_UNDERFLOW, _EXPM1_OVERFLOW = _F32(-18.714973), _F32(88.72284)
"""1 / ln(2); ln(2) / 2 and three times as much, rounded; the bounds of -1 and of infinity."""


def emit_expm1(x: Vector) -> Vector:
    """Emit expm1 of float32."""
    unit, half, zero, size = _F32(1), _F32(0.5), _F32(0), np.absolute(x)
    within = np.minimum(np.maximum(x, _F32(-128)), _F32(128))
    nearest = (_STEPS * within + np.copysign(half, x)).astype(_I32).astype(_F32)
    is_reduced = size > _HALF_LN_2
    k_float = where(size < _HALVES_3, np.copysign(unit, x), nearest)
    k_float = where(is_reduced, k_float, zero)
    high, low = within - k_float * _LN_2_HIGH, k_float * _LN_2_LOW
    rest = high - low
    residue = (high - rest) - low
    k = k_float.astype(_I32)
    half_square = rest * (half * rest)
    r = polynomial_in_steps(half_square, _EXPM1)
    t = _F32(3) - r * (half * rest)
    e = half_square * ((r - t) / (_F32(6) - rest * t))
    without_k = rest - (rest * e - half_square)
    error = (rest * (e - residue) - residue) - half_square
    result = where(is_reduced, _scaled_expm1(rest, error, k), without_k)
    result = where(size < _F32(2.0**-25), x, result)
    result = where(x <= _EXPM1_UNDERFLOW, -unit, where(x >= _EXPM1_OVERFLOW, _F32(np.inf), result))
    return where(np.isnan(x), x, result)


def _scaled_expm1(rest: Vector, error: Vector, k: Vector) -> Vector:
    """Emit 2**k * (1 + rest - error) - 1, in the order of additions that suits k."""
    unit, half, shift = _F32(1), _F32(0.5), k << 23
    power = (_I32(_F32(1).view(_I32)) - shift).view(_F32)
    start = where((k > _I32(1)) & (k < _I32(23)), unit - power, unit)
    large = (rest - (error + power)) + unit
    total = where((k >= _I32(23)) & (k <= _I32(56)), large, start - (error - rest))
    scaled = (total.view(_I32) + shift).view(_F32)
    scaled = where((k <= _I32(-2)) | (k > _I32(56)), scaled - unit, scaled)
    low = rest < _F32(-0.25)
    twice = where(low, _F32(-2) * (error - (rest + half)), unit + _F32(2) * (rest - error))
    halved = half * (rest - error) - half
    return where(k == _I32(1), twice, where(k == _I32(-1), halved, scaled))


# -- pow of float32: 2**(y * log2(x)) in float64

_LOG2_TABLE = """
    3FF661EC79F8F3BE BFDEFEC65B963019 3FF571ED4AAF883D BFDB0B6832D4FCA4
    3FF49539F0F010B0 BFD7418B0A1FB77B 3FF3C995B0B80385 BFD39DE91A6DCF7B
    3FF30D190C8864A5 BFD01D9BF3F2B631 3FF25E227B0B8EA0 BFC97C1D1B3B7AF0
    3FF1BB4A4A1A343F BFC2F9E393AF3C9F 3FF12358F08AE5BA BFB960CBBF788D5C
    3FF0953F419900A7 BFAA6F9DB6475FCE 3FF0000000000000 0000000000000000
    3FEE608CFD9A47AC 3FB338CA9F24F53D 3FECA4B31F026AA0 3FC476A9543891BA
    3FEB2036576AFCE6 3FCE840B4AC4E4D2 3FE9C2D163A1AA2D 3FD40645F0C6651C
    3FE886E6037841ED 3FD88E9C2C1B9FF8 3FE767DCF5534862 3FDCE0A44EB17BCC
"""
"""For each of 16 intervals two float64 in bits: 1 / c and log2(c), with c in the interval."""

_LOG2 = (
    "0x1.71547652ab82bp+0",
    "-0x1.7154748bef6c8p-1",
    "0x1.ec70a6ca7baddp-2",
    "-0x1.71969a075c67ap-2",
    "0x1.27616c9496e0bp-2",
)
_EXP2 = "0x1.62e42ff0c52d6p-1", "0x1.ebfce50fac4f3p-3", "0x1.c6af84b912394p-5"
"""The coefficients of rest and up: of log2(1 + rest), and of 2**rest."""

_SHIFT = _F64(3 << 46)
"""A float64 whose unit in the last place is 1/32."""

_POW_LEAST = _I32(0x3F330000)


@cache
def _logarithms() -> ConstantTable:
    words = [int(word, 16) for word in _LOG2_TABLE.split()]
    return ConstantTable.of(np.array(words, _U64).view(_F64))


@cache
def _powers() -> ConstantTable:
    """Return the bits of 2**(i/32) less i/32 in the exponent, for i below 32.

    NumPy's exp2 would do, but Python's float power by the C library is rounded correctly here.
    """
    words = [_F64(2 ** (i / 32)).view(_U64) - _U64(i << 47) for i in range(32)]
    return ConstantTable.of(np.array(words, _U64).view(_I64))


def emit_pow(x: Vector, y: Vector) -> Vector:
    """Emit pow of float32."""
    a1, a2, a3, a4, a5 = [_F64(float.fromhex(coefficient)) for coefficient in _LOG2]
    c1, c2, c3 = [_F64(float.fromhex(coefficient)) for coefficient in _EXP2]
    offset = x.view(_I32) - _POW_LEAST
    top = offset & _I32(-(1 << 23))
    index = ((offset >> 18) & _I32(30)).astype(_I64)
    inverse, log_c = index.gather_pairs(_logarithms())
    rest = fma((x.view(_I32) - top).view(_F32).astype(_F64), inverse, _F64(-1))
    square = rest * rest
    low = fma(rest, a1, log_c + (top >> 23).astype(_F64))
    low = fma(square, fma(rest, a3, a2), low)
    product = y.astype(_F64) * fma(fma(rest, a5, a4), square * square, low)
    sum_ = product + _SHIFT
    bits = sum_.view(_I64)
    rest = product - (sum_ - _SHIFT)
    scale = (bits & _I64(31)).gather_from(_powers()) + (bits << 47)
    power = fma(fma(rest, c3, c2), rest * rest, fma(rest, c1, _F64(1)))
    result = (power * scale.view(_F64)).astype(_F32)
    is_usual = (x >= np.finfo(_F32).tiny) & (x < _F32(np.inf))
    is_usual = is_usual & (y != _F32(0)) & (np.absolute(y) < _F32(np.inf))
    is_usual = is_usual & (np.absolute(product) < _F64(126))
    return x.code.rarely(~is_usual, result, lambda: call_loop(np.power, x, y))
