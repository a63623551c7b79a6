"""Functions of float64 of Intel's SVML as vector code: exp and log.

NumPy links SVML on Linux and calls it on processors with AVX-512 (`__svml_exp8_ha` and
`__svml_log8_ha`; numpy/SVML, linux/avx512/svml_z0_exp_d_ha.s and svml_z0_log_d_ha.s, whose
coefficients these are). A table of 16 entries fits two registers, so a permutation looks it up, and
a polynomial has the rest. The emitters repeat each rounding on vectors of eight lanes, with the
same instruction for 1 / x, whose bits depend on the processor. Lanes whose exp is subnormal or
almost infinite go to NumPy's loop.
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from functools import cache

import numpy as np

from graphir.runtime.native.assembly import Vector, all_lanes, avx512, avx512_masked, fma, where
from graphir.runtime.native.functions.numpy_loops import call_loop, log_of_special

_F64, _I64 = np.float64, np.int64

_LANES = 8
_VECTOR = f"<{_LANES} x double>"

_TO_ZERO = "i32 11"
"""An operand of an instruction: truncation."""


def _looked_up(index: Vector, table: tuple[float, ...]) -> Vector:
    """Emit the entries of a table of 16 at the lowest four bits of an index."""
    words = [f"double 0x{word:016X}" for word in np.array(table).view(np.uint64).tolist()]
    low, high = (f"{_VECTOR} <{', '.join(words[k : k + _LANES])}>" for k in (0, _LANES))
    call = f"call {_VECTOR} @llvm.x86.avx512.vpermi2var.pd.512({low}, {index}, {high})"
    return index.emit_value(call, _F64)


# -- exp: x is k*ln(2)/16 + rest, and the result is 2**(k/16) * exp(rest)

_LOG2_E = _F64(float.fromhex("0x1.71547652b82fep+0"))
_LN_2 = _F64(float.fromhex("0x1.62e42fefa39efp-1"))
_LN_2_REST = _F64(float.fromhex("0x1.abc9e3b39803fp-56"))
"""1 / ln(2); ln(2) as a sum."""

_SIXTEENTHS = _F64(3 << 47)
"""A float64 whose unit in the last place is 1/16: the sum with it is truncated to sixteenths."""

_EXP = (
    "0x1.fffffffffff70p-1",
    "0x1.000000000d008p-1",
    "0x1.5555553939732p-3",
    "0x1.55557242d68fep-5",
    "0x1.1101cbbc265c0p-7",
    "0x1.7411836940c04p-10",
)
"""The coefficients of rest to rest**6."""

_FAR = _F64(float.fromhex("0x1.61da04cbafe44p+9"))
_BOUNDS = _F64(-746), _F64(710)
"""The magnitude from which on the result may be infinite or subnormal, and the numbers at which it
is 0 and infinite."""


@cache
def _powers() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return 2**(i/16) for each i below 16, and the relative errors of these float64."""
    with localcontext(Context(prec=50)):
        powers = [Decimal(2) ** (Decimal(i) / 16) for i in range(16)]
        errors = [float(power / Decimal(float(power)) - 1) for power in powers]
    return tuple(map(float, powers)), tuple(errors)


def emit_exp(x: Vector) -> Vector:
    """Emit exp of float64."""
    return x.repeated(_LANES, _exp)


def _exp(x: Vector) -> Vector:
    c1, c2, c3, c4, c5, c6 = [_F64(float.fromhex(coefficient)) for coefficient in _EXP]
    operands = x.constant(_LOG2_E, _F64), x.constant(_SIXTEENTHS, _F64), _TO_ZERO
    sum_ = avx512("vfmadd", x, *operands)
    power, error = [_looked_up(sum_.view(_I64), table) for table in _powers()]
    k = sum_ - _SIXTEENTHS
    rest = fma(k, -_LN_2_REST, fma(k, -_LN_2, x))
    square = rest * rest
    tail = fma(fma(fma(rest, c6, c5), square, fma(rest, c4, c3)), square, fma(rest, c2, c1))
    power = avx512_masked("scalef", power, k)  # exact, and so early that nothing waits for it
    result = fma(power, fma(tail, rest, error), power)
    is_usual = np.absolute(x) < _FAR
    return x.code.rarely(~is_usual, result, lambda: _exp_of_any(x, is_usual, result))


def _exp_of_any(x: Vector, is_usual: Vector, result: Vector) -> Vector:
    """Emit exp of any numbers; lanes with 0, infinity or NaN need no call of NumPy's loop."""
    special = where(x < _F64(0), _F64(0), x * _F64(np.inf))
    is_near = ~is_usual & (x > _BOUNDS[0]) & (x < _BOUNDS[1])
    result = where(is_usual, result, special)
    return x.code.rarely(is_near, result, lambda: call_loop(np.exp, x))


# -- log: x is 2**k * (1 + rest) / c, the result k*ln(2) - log(c) + log(1 + rest)

_LN_2_HIGH = _F64(float.fromhex("0x1.62e42fefa0000p-1"))
_LN_2_LOW = _F64(float.fromhex("0x1.cf79abc9e0000p-40"))

_LOG = (
    "-0x1.fffffffffffc6p-2",
    "0x1.5555555555466p-2",
    "-0x1.00000000c05bdp-2",
    "0x1.9999999cc9f5cp-3",
    "-0x1.55553fb28db06p-3",
    "0x1.249229cee81efp-3",
    "-0x1.007357e93af62p-3",
    "0x1.c81cd309d7c70p-4",
)
"""The coefficients of rest**2 and up."""

_SMALL = _F64(0.75)
"""The bound of c, from 1/2 to 1, below which k is one more and the table has log(2*c)."""

_POSITIVE, _FIVE_BITS = "i32 8", "i32 88"
"""Operands of instructions: significands from 1 to 2, NaN for negative numbers; a rounding to five
bits after the point."""


@cache
def _logarithms() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return -log(c) for the 16 significands of c, as multiples of 2**-40 and the rests."""
    with localcontext(Context(prec=50)):
        ratios = [Decimal(16 + i) / (16 if i < 8 else 32) for i in range(16)]
        logarithms = [-ratio.ln() for ratio in ratios]
        highs = [round(logarithm * (1 << 40)) / (1 << 40) for logarithm in logarithms]
        lows = [
            float(logarithm - Decimal(high))
            for logarithm, high in zip(logarithms, highs, strict=True)
        ]
    return tuple(highs), tuple(lows)


def emit_log(x: Vector) -> Vector:
    """Emit log of float64."""
    return x.repeated(_LANES, _log)


def _log(x: Vector) -> Vector:
    a2, a3, a4, a5, a6, a7, a8, a9 = [_F64(float.fromhex(coefficient)) for coefficient in _LOG]
    significand = avx512_masked("getmant", x, _POSITIVE)
    c = avx512_masked("rndscale", avx512("rcp14", significand, *all_lanes(x)), _FIVE_BITS)
    exponent = avx512_masked("getexp", x)
    k = where(c < _SMALL, exponent + _F64(1), exponent)
    rest = fma(c, significand, _F64(-1))
    log_high, log_low = [_looked_up(c.view(_I64) >> 48, table) for table in _logarithms()]
    square = rest * rest
    low = fma(fma(rest, a5, a4), square, fma(rest, a3, a2))
    tail = fma(fma(fma(rest, a9, a8), square, fma(rest, a7, a6)), square * square, low)
    start = fma(k, _LN_2_HIGH, log_high)
    high = start + rest
    result = high + (fma(square, tail, rest - (high - start)) + fma(k, _LN_2_LOW, log_low))
    is_usual = (x > _F64(0)) & (x < _F64(np.inf))
    return x.code.rarely(~is_usual, result, lambda: where(is_usual, result, log_of_special(x)))
