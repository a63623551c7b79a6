"""Elementwise ops that StableHLO lacks, or defines differently, as functions of values."""

from __future__ import annotations

import math

from graphir import DType
from graphir.runtime.targets.stablehlo_.values import HloValue, together, where

# -- numbers by their kind


def magnitude(x: HloValue) -> HloValue:
    """Return |x|, which is real for complex x."""
    return x.op("abs", to=x.dtype.part)


def real(x: HloValue) -> HloValue:
    """The real part."""
    return x.op("real", to=x.dtype.part) if x.dtype.is_complex else x


def imag(x: HloValue) -> HloValue:
    """The imaginary part; 0 of a real number."""
    return x.op("imag", to=x.dtype.part) if x.dtype.is_complex else x.number(0, x.shape)


def complex_of(x: HloValue, y: HloValue) -> HloValue:
    """The number x + y*i."""
    return x.op("complex", y, to=DType(f"complex{2 * x.dtype.bits}"))


def signbit(x: HloValue) -> HloValue:
    """Whether the sign of a float is set, of -0.0 and NaN too."""
    return x.bitcast(DType(f"int{x.dtype.bits}")) < 0


# -- division


def reciprocal(x: HloValue) -> HloValue:
    """1 / x of complex numbers; others decompose."""
    return 1 / x


def floor_divide(x: HloValue, y: HloValue) -> HloValue:
    """Return the floor of a quotient of integers, 0 where y is 0; the op on floats decomposes."""
    safe = _safe(y)
    quotient, rest = x / safe, x.op("remainder", safe)
    off = rest.ne(0) & ((rest < 0) ^ (safe < 0))
    floor = where(y.eq(0), 0, quotient - off.convert(x.dtype))
    return where(y.eq(-1), -x, floor) if x.dtype.family == "int" else floor


def fmod(x: HloValue, y: HloValue) -> HloValue:
    """Return the remainder with the sign of x; for integers it is 0 where y is 0."""
    if x.dtype.is_float:
        return x.op("remainder", y)
    return where(y.eq(0), 0, x.op("remainder", _safe(y)))


def _safe(y: HloValue) -> HloValue:
    """Return integer divisors with 1 for 0 and -1, by which some quotients do not exist."""
    return where(y.eq(0) | y.eq(-1) if y.dtype.family == "int" else y.eq(0), 1, y)


# -- powers and shifts


def power(x: HloValue, y: HloValue) -> HloValue:
    """Return x ** y, with x * x for real floats where y is 2; integers wrap."""
    if x.dtype.is_integer:
        return _integer_power(x, y)
    powers = x.op("power", y)
    if x.dtype.is_complex:  # engines do not define complex 0 ** 0
        return where(y.eq(0), 1, powers)
    return where(y.eq(2), x * x, powers)


def _integer_power(x: HloValue, y: HloValue) -> HloValue:
    """Return x ** y by squaring, in a loop that ends when no exponent has bits left."""
    base, left = together(x, x, y)
    state = [base.number(1, base.shape), base, left]
    types = [function.type for function in state]

    def goes_on(power: HloValue, base: HloValue, left: HloValue) -> HloValue:
        return left.ne(0).reduce(HloValue.__or__, False, range(left.rank))

    def step(power: HloValue, base: HloValue, left: HloValue) -> list[HloValue]:
        power = where((left & 1).eq(1), power * base, power)
        return [power, base * base, left.op("shift_right_logical", 1)]

    regions = [x.body.region(types, function) for function in (goes_on, step)]
    return x.body.line("while", state, types, *regions)[0]


def shifted(name: str, x: HloValue, y: HloValue) -> HloValue:
    """Return a shift; where y is negative or at least the width, it is 0 or the sign."""
    past = (y < 0) | (y >= x.dtype.bits)
    arithmetic = name == "right" and x.dtype.family == "int"
    op = {"left": "shift_left"}.get(
        name, f"shift_right_{'arithmetic' if arithmetic else 'logical'}"
    )
    rest = where(x < 0, -1, x.number(0, x.shape)) if arithmetic else 0
    return where(past, rest, x.op(op, where(past, 0, y)))


# -- functions


def gelu(x: HloValue, approximate: str) -> HloValue:
    """Return x * Phi(x), with Phi by erfc; the approximations decompose."""
    return x * 0.5 * (x * -math.sqrt(0.5)).op("chlo.erfc")
