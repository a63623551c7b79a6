"""Values of every dtype as sums of two float64, and what is computed of them without loss.

A 64-bit integer has more bits than a float64, and so has the difference between a large value and
what it saturates to. High part + low part hold both (T. J. Dekker, A floating-point technique for
extending the available precision, Numer. Math. 18, 1971); high is the sum rounded to nearest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir import DType
from graphir.conversions import convert

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]


class ExactPart(NamedTuple):
    """Real numbers, high + low."""

    high: Floats
    low: Floats

    def at(self, places: Any) -> ExactPart:
        """Those at some places."""
        return ExactPart(self.high[places], self.low[places])

    def minus(self, other: ExactPart) -> ExactPart:
        """The differences: within 2**-100 of them, and exact where they have 106 bits."""
        high, rest = _two_sum(self.high, -other.high)
        return ExactPart(*_two_sum(high, rest + (self.low - other.low)))


class Numbers(NamedTuple):
    """Real numbers, of one part, or complex ones, of two."""

    parts: tuple[ExactPart, ...]

    def at(self, places: Any) -> Numbers:
        """Those at some places."""
        return Numbers(tuple(part.at(places) for part in self.parts))

    def minus(self, other: Numbers) -> Numbers:
        """The differences, part by part."""
        return Numbers(tuple(x.minus(y) for x, y in zip(self.parts, other.parts, strict=True)))

    def all(self, test: Callable[[Floats], Flags]) -> Flags:
        """Of which both parts pass a test."""
        first, *rest = (test(part.high) for part in self.parts)
        return first & rest[0] if rest else first

    @property
    def finite(self) -> Flags:
        """Which are neither infinite nor NaN."""
        return self.all(np.isfinite)

    @property
    def zero(self) -> Flags:
        """Which are zero, of either sign."""
        return self.all(_is_zero)

    @property
    def nan(self) -> Flags:
        """Which are NaN, or have a part that is."""
        return ~self.all(_is_number)

    def same(self, other: Numbers) -> Flags:
        """Which are equal, 0.0 and -0.0 too; NaN is the same as NaN."""
        pairs = zip(self.parts, other.parts, strict=True)
        equal = [(x.high == y.high) & (x.low == y.low) for x, y in pairs]
        return (equal[0] & equal[-1]) | (self.nan & other.nan)

    def identical(self, other: Numbers) -> Flags:
        """Which are the same, and zeros of one sign."""
        pairs = zip(self.parts, other.parts, strict=True)
        signs = [np.signbit(x.high) == np.signbit(y.high) for x, y in pairs]
        return self.same(other) & ((signs[0] & signs[-1]) | self.nan)

    def sizes(self) -> Floats:
        """Their magnitudes: rounded once, of complex numbers as np.hypot rounds."""
        first, *rest = (part.high for part in self.parts)
        return np.hypot(first, rest[0]) if rest else abs(first)

    def relative(self, to: Numbers) -> Floats:
        """Their magnitudes over those of `to`, which are finite and not zero.

        Of real numbers the quotient rounded to nearest, but where it lies within 2**-100 of the
        middle between two float64, and there to one of the two; of complex ones within 4 ulps.
        """
        if self.parts[1:]:
            scale = -np.frexp(np.maximum(*(abs(part.high) for part in to.parts)))[1]
            return _scale(self, scale).sizes() / _scale(to, scale).sizes()
        return abs(_quotient(self.parts[0], to.parts[0]))


def numbers(array: NDArray[Any], dtype: DType, parts: int = 1) -> Numbers:
    """The values of a vector of dtype `dtype` in one part, or two, of which the second may be 0."""
    split: Any = array  # NumPy's types do not say that every array has parts
    if parts == 1 or not dtype.is_complex:
        nothing = np.zeros(array.shape)
        return Numbers((_part(split.real, dtype.part), ExactPart(nothing, nothing))[:parts])
    return Numbers((_part(split.real, dtype.part), _part(split.imag, dtype.part)))


def _part(array: NDArray[Any], dtype: DType) -> ExactPart:
    if dtype.exact_in(DType.float64):
        high = convert(array, dtype, DType.float64)
        return ExactPart(high, np.zeros(high.shape))
    low = array & array.dtype.type(2**32 - 1)
    return ExactPart(*_two_sum((array - low).astype(np.float64), low.astype(np.float64)))


def _two_sum(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The sum rounded, and what that rounding left (Knuth, TAOCP 2, 4.2.2, theorem B).

    Nothing is left of what is not finite.
    """
    high = x + y
    other = high - x
    rest = (x - (high - other)) + (y - other)
    rest[~np.isfinite(high)] = 0
    return high, rest


def _quotient(x: ExactPart, y: ExactPart) -> Floats:
    """The quotients; where both are of one float64, its own division is rounded once already."""
    if not (x.low.any() or y.low.any()):
        return x.high / y.high
    over, under = np.frexp(x.high)[1], np.frexp(y.high)[1]
    x, y = _rescale(x, -over), _rescale(y, -under)
    quotient = x.high / y.high
    product, rest = _two_product(quotient, y.high)
    left = ((x.high - product) - rest) + (x.low - quotient * y.low)
    return np.ldexp(quotient + left / y.high, over - under)


def _two_product(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The product rounded, and what that left (Dekker), where neither is large."""
    high = x * y
    (a, b), (c, d) = _halves(x), _halves(y)
    return high, ((a * c - high) + a * d + b * c) + b * d


def _halves(x: Floats) -> tuple[Floats, Floats]:
    """The upper 26 bits and the rest (Veltkamp)."""
    large = x * (2.0**27 + 1)
    upper = large - (large - x)
    return upper, x - upper


def _rescale(part: ExactPart, exponent: NDArray[Any]) -> ExactPart:
    return ExactPart(np.ldexp(part.high, exponent), np.ldexp(part.low, exponent))


def _scale(these: Numbers, exponent: NDArray[Any]) -> Numbers:
    return Numbers(tuple(_rescale(part, exponent) for part in these.parts))


def _is_zero(x: Floats) -> Flags:
    return x == 0


def _is_number(x: Floats) -> Flags:
    return ~np.isnan(x)
