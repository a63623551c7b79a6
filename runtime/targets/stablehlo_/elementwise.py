"""Elementwise ops that StableHLO has not, or means otherwise: functions of values."""

from __future__ import annotations

import math
from collections.abc import Callable

from graphir import DType
from runtime.targets.stablehlo_.values import HloValue, together, where

# -- numbers by their kind


def magnitude(x: HloValue) -> HloValue:
    """|x|: itself where there are no negative numbers."""
    if x.dtype.family in ("bool", "uint"):
        return x
    return x.op("abs", to=x.dtype.part)


def sign(x: HloValue) -> HloValue:
    """-1, 0 or 1; of a complex z, z / |z|."""
    if x.dtype.family in ("bool", "uint"):
        return x.op("minimum", 1)
    return where(x.eq(0), 0, x.op("sign")) if x.dtype.is_float else x.op("sign")


def reciprocal(x: HloValue) -> HloValue:
    """1 / x; of integers truncated, 0 of 0."""
    return where(magnitude(x).eq(1), x, 0) if x.dtype.is_integer else 1 / x


def positive(x: HloValue) -> HloValue:
    """The value itself."""
    return x


def square(x: HloValue) -> HloValue:
    """The product with itself."""
    return x * x


def relu(x: HloValue) -> HloValue:
    """The greater of the value and 0."""
    return x.op("maximum", 0)


def whole(name: str) -> Callable[[HloValue], HloValue]:
    """A rounding to integers, of complex numbers both parts; it does nothing to integers."""

    def row(x: HloValue) -> HloValue:
        return by_part(x, lambda part: part.op(name)) if x.dtype.format else x

    return row


def trunc(x: HloValue) -> HloValue:
    """The value without its fraction."""
    return where(x < 0, x.op("ceil"), x.op("floor")) if x.dtype.format else x


def by_part(x: HloValue, function: Callable[[HloValue], HloValue]) -> HloValue:
    """A function of a real number; of a complex one, of both its parts."""
    if not x.dtype.is_complex:
        return function(x)
    return complex_of(function(real(x)), function(imag(x)))


def real(x: HloValue) -> HloValue:
    """The real part."""
    return x.op("real", to=x.dtype.part) if x.dtype.is_complex else x


def imag(x: HloValue) -> HloValue:
    """The imaginary part; 0 of a real number."""
    return x.op("imag", to=x.dtype.part) if x.dtype.is_complex else x.number(0, x.shape)


def complex_of(x: HloValue, y: HloValue) -> HloValue:
    """The number x + y*i."""
    return x.op("complex", y, to=DType(f"complex{2 * x.dtype.bits}"))


def conj(x: HloValue) -> HloValue:
    """The complex conjugate."""
    return complex_of(real(x), -imag(x)) if x.dtype.is_complex else x


def signbit(x: HloValue) -> HloValue:
    """Whether the sign is set, of -0.0 and NaN too."""
    return (x.bitcast(DType(f"int{x.dtype.bits}")) if x.dtype.is_float else x) < 0


def is_nan(x: HloValue) -> HloValue:
    """Whether a part is NaN."""
    return x.ne(x)


def is_inf(x: HloValue) -> HloValue:
    """Whether a part is an infinity."""
    if x.dtype.format is None:
        return x.ne(x)
    found = magnitude(real(x)).eq(math.inf)
    return found | magnitude(imag(x)).eq(math.inf) if x.dtype.is_complex else found


def is_finite(x: HloValue) -> HloValue:
    """Whether no part is NaN or an infinity."""
    if x.dtype.format is None:
        return x.eq(x)
    found = real(x).op("is_finite", to=DType.bool)
    return found & imag(x).op("is_finite", to=DType.bool) if x.dtype.is_complex else found


def copysign(x: HloValue, y: HloValue) -> HloValue:
    """The magnitude of x with the sign of y."""
    return where(signbit(x) ^ signbit(y), -x, x)


# -- division


def floor_divide(x: HloValue, y: HloValue) -> HloValue:
    """floor(x / y) as NumPy finds it, by way of the remainder; of integers 0 where y is 0."""
    if x.dtype.is_integer:
        return _floor_divide(x, y)
    rest = x.op("remainder", y)
    off = _off(rest, y)
    quotient = (x - rest) / y
    quotient = where(off, quotient - 1, quotient)
    floored = quotient.op("floor")
    floored = where((quotient - floored) > 0.5, floored + 1, floored)
    floored = where(quotient.eq(0), copysign(quotient.number(0), x / y), floored)
    return where(y.eq(0), x / y, floored)


def _floor_divide(x: HloValue, y: HloValue) -> HloValue:
    safe = _safe(y)
    quotient, off = x / safe, _off(x.op("remainder", safe), safe)
    floored = where(y.eq(0), 0, quotient - off.convert(x.dtype))
    return where(y.eq(-1), -x, floored) if x.dtype.family == "int" else floored


def remainder(x: HloValue, y: HloValue) -> HloValue:
    """What floor(x / y) * y leaves of x, with the sign of y; of integers 0 where y is 0."""
    whole = x.dtype.is_integer
    rest = x.op("remainder", _safe(y) if whole else y)
    none = 0 if whole else where(y.eq(0), rest, copysign(y.number(0), y))
    return where(_off(rest, y), rest + y, where(rest.eq(0), none, rest))


def _off(rest: HloValue, y: HloValue) -> HloValue:
    """Whether a remainder that was truncated to is not the one that is floored to."""
    return rest.ne(0) & ((rest < 0) ^ (y < 0))


def _safe(y: HloValue) -> HloValue:
    """Integers with 1 for 0, and for -1: by neither is there a quotient for all."""
    return where(y.eq(0) | y.eq(-1) if y.dtype.family == "int" else y.eq(0), 1, y)


# -- powers and shifts


def power(x: HloValue, y: HloValue) -> HloValue:
    """The power x ** y, of real numbers x * x where y is 2; integers wrap."""
    if x.dtype.is_integer:
        return _integer_power(x, y)
    powers = x.op("power", y)
    if x.dtype.is_complex:  # of which engines have no 0 ** 0
        return where(y.eq(0), 1, powers)
    return where(y.eq(2), x * x, powers)


def _integer_power(x: HloValue, y: HloValue) -> HloValue:
    """By squaring, for as long as a bit of an exponent is left."""
    base, left = together(x, x, y)
    state = [base.number(1, base.shape), base, left]
    types = [one.type for one in state]

    def goes_on(found: HloValue, base: HloValue, left: HloValue) -> HloValue:
        return left.ne(0).reduce(HloValue.__or__, False, range(left.rank))

    def step(found: HloValue, base: HloValue, left: HloValue) -> list[HloValue]:
        found = where((left & 1).eq(1), found * base, found)
        return [found, base * base, left.op("shift_right_logical", 1)]

    regions = [x.body.region(types, one) for one in (goes_on, step)]
    return x.body.line("while", state, types, *regions)[0]


def shifted(name: str, x: HloValue, y: HloValue) -> HloValue:
    """A shift; 0 or the sign where y is negative or past the width."""
    past = (y < 0) | (y >= x.dtype.bits)
    arithmetic = name == "right" and x.dtype.family == "int"
    op = {"left": "shift_left"}.get(
        name, f"shift_right_{'arithmetic' if arithmetic else 'logical'}"
    )
    rest = where(x < 0, -1, x.number(0, x.shape)) if arithmetic else 0
    return where(past, rest, x.op(op, where(past, 0, y)))


# -- functions


def rsqrt(x: HloValue) -> HloValue:
    """1 / sqrt(x), two roundings."""
    return 1 / x.op("sqrt")


def hypot(x: HloValue, y: HloValue) -> HloValue:
    """The magnitude of x + y*i; infinite also beside NaN, where engines differ."""
    return where(is_inf(x) | is_inf(y), math.inf, magnitude(complex_of(x, y)))


def silu(x: HloValue) -> HloValue:
    """The product with its sigmoid."""
    return x * x.op("logistic")


def logarithm(x: HloValue, base: int) -> HloValue:
    """The logarithm to a base."""
    return by_part(x.op("log"), lambda part: part / math.log(base))


def logaddexp(x: HloValue, y: HloValue) -> HloValue:
    """log(exp(x) + exp(y))."""
    rest = (-(x - y).op("abs")).op("exponential").op("log_plus_one")
    return where(x.eq(y), x + math.log(2), x.op("maximum", y) + rest)


def gelu(x: HloValue, approximate: str) -> HloValue:
    """The Gaussian error linear unit: by erfc, by tanh, or by a sigmoid."""
    if approximate == "quick":
        return x * (x * 1.702).op("logistic")
    if approximate == "tanh":
        inner = ((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)).op("tanh")
        return x * 0.5 * (inner + 1)
    return x * 0.5 * (x * -math.sqrt(0.5)).op("chlo.erfc")
