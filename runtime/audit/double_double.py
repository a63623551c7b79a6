"""Double-double arithmetic: values of every dtype as sums of two float64, compared without loss.

A 64-bit integer has more bits than a float64, and so has the difference between a large value and
its saturated value. High part + low part represent both (T. J. Dekker, A floating-point technique
for extending the available precision, Numer. Math. 18, 1971); high is the sum rounded to nearest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.conversions import convert
from graphir.public import DType

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]


BLOCK = 1 << 15
"""The elements of a block, which bounds the size of temporaries."""


def blocks(count: int) -> Iterator[slice]:
    """Yield the slices of the blocks of a vector of `count` elements."""
    return (slice(start, start + BLOCK) for start in range(0, count, BLOCK))


NO_LOW: Floats = np.zeros(())
"""The low parts of numbers that float64 represents."""


class ExactPart(NamedTuple):
    """A vector of real numbers, high + low."""

    high: Floats
    low: Floats

    def at(self, places: NDArray[Any] | slice) -> ExactPart:
        """Return the elements at `places`, a NumPy index."""
        return ExactPart(self.high[places], self.low if self.low is NO_LOW else self.low[places])

    def minus(self, other: ExactPart) -> ExactPart:
        """Return the differences: relative error below 2**-100, exact if 106 bits suffice."""
        high, rest = _two_sum(self.high, -other.high)
        if self.low is NO_LOW and other.low is NO_LOW:
            return ExactPart(high, rest)
        return ExactPart(*_two_sum(high, rest + (self.low - other.low)))


class Numbers(NamedTuple):
    """A vector of real numbers (one part) or complex numbers (two parts)."""

    parts: tuple[ExactPart, ...]

    def at(self, places: NDArray[Any] | slice) -> Numbers:
        """Return the elements at `places`, a NumPy index."""
        return Numbers(tuple(part.at(places) for part in self.parts))

    def minus(self, other: Numbers) -> Numbers:
        """Return the differences, part by part."""
        return Numbers(tuple(x.minus(y) for x, y in zip(self.parts, other.parts, strict=True)))

    def all(self, test: Callable[[Floats], Flags]) -> Flags:
        """Return the mask of elements of which all parts pass a test."""
        first, *rest = (test(part.high) for part in self.parts)
        return first & rest[0] if rest else first

    @property
    def finite(self) -> Flags:
        """The mask of elements that are neither infinite nor NaN."""
        return self.all(np.isfinite)

    @property
    def zero(self) -> Flags:
        """The mask of zeros of either sign."""
        return self.all(_is_zero)

    @property
    def nan(self) -> Flags:
        """The mask of elements with a NaN part."""
        return ~self.all(_is_number)

    def same(self, other: Numbers) -> Flags:
        """Return the mask of equal elements; 0.0 equals -0.0, NaN equals NaN."""
        pairs = zip(self.parts, other.parts, strict=True)
        equal = [
            x.high == y.high if x.low is y.low else (x.high == y.high) & (x.low == y.low)
            for x, y in pairs
        ]
        both = equal[0] & equal[-1]
        return both if both.all() else both | (self.nan & other.nan)

    def identical(self, other: Numbers) -> Flags:
        """Return the mask of equal elements with equal signs; 0.0 differs from -0.0."""
        pairs = zip(self.parts, other.parts, strict=True)
        signs = [np.signbit(x.high) == np.signbit(y.high) for x, y in pairs]
        return self.same(other) & ((signs[0] & signs[-1]) | self.nan)

    def sizes(self) -> Floats:
        """Return the magnitudes, rounded once; for complex numbers as np.hypot rounds."""
        first, *rest = (part.high for part in self.parts)
        return np.hypot(first, rest[0]) if rest else abs(first)

    def relative(self, to: Numbers) -> Floats:
        """Return the magnitudes divided by those of `to`, which are finite and nonzero.

        For real numbers, the quotient is rounded to nearest; if it lies within 2**-100 of the
        midpoint of two float64, it is one of the two. For complex numbers it is within 4 ulps.
        """
        if self.parts[1:]:
            scale = -np.frexp(np.maximum(*(abs(part.high) for part in to.parts)))[1]
            return _scale(self, scale).sizes() / _scale(to, scale).sizes()
        return abs(_quotient(self.parts[0], to.parts[0]))


def round_numbers(array: NDArray[Any]) -> NDArray[Any]:
    """Return uint64 values, and objects that are Python's numbers, as float64 or complex128."""
    if array.dtype == np.uint64:
        return array.astype(np.float64)
    if array.dtype != object:
        return array
    is_complex = any(type(x) is complex for x in array.reshape(-1).tolist())
    return array.astype(np.complex128 if is_complex else np.float64)


def numbers(array: NDArray[Any], dtype: DType, parts: int = 1) -> Numbers:
    """Return a vector's values as Numbers of `parts` parts; the second part of reals is 0.

    Of Python's numbers, which are objects, integers beyond 106 bits are rounded.
    """
    if array.dtype == object:
        values = array.tolist()
        columns = [x.real for x in values], [x.imag for x in values]
        return Numbers(tuple(map(_part_of_objects, columns[:parts])))
    split: Any = array  # NumPy's stubs lack .real and .imag of general arrays
    columns = (split.real,) if parts == 1 else (split.real, split.imag)
    return Numbers(tuple(_part(x, dtype.part) for x in columns))


def _part(array: NDArray[Any], dtype: DType) -> ExactPart:
    if dtype.exact_in(DType.float64):
        high = convert(array, dtype, DType.float64)
        return ExactPart(high, NO_LOW)
    low = array & array.dtype.type(2**32 - 1)
    return ExactPart(*_two_sum((array - low).astype(np.float64), low.astype(np.float64)))


def _part_of_objects(values: list[Any]) -> ExactPart:
    high = np.array([float(x) for x in values], np.float64)
    pairs = zip(values, high.tolist(), strict=True)
    low = [float(x - int(y)) if type(x) is int else 0.0 for x, y in pairs]
    return ExactPart(high, np.array(low, np.float64))


def _two_sum(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the rounded sum and its rounding error (Knuth, TAOCP 2, 4.2.2, theorem B).

    The rounding error of a sum that is not finite is 0.
    """
    high = x + y
    other = high - x
    rest = (x - (high - other)) + (y - other)
    if not np.isfinite(np.add.reduce(high)):
        rest[~np.isfinite(high)] = 0
    return high, rest


def _quotient(x: ExactPart, y: ExactPart) -> Floats:
    """Return the quotients; if all low parts are 0, the float64 division, which rounds once."""
    if not (x.low.any() or y.low.any()):
        return x.high / y.high
    over, under = np.frexp(x.high)[1], np.frexp(y.high)[1]
    x, y = _rescale(x, -over), _rescale(y, -under)
    quotient = x.high / y.high
    product, rest = _two_product(quotient, y.high)
    left = ((x.high - product) - rest) + (x.low - quotient * y.low)
    return np.ldexp(quotient + left / y.high, over - under)


def _two_product(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the rounded product and its rounding error (Dekker); the factors must not be large."""
    high = x * y
    (a, b), (c, d) = _halves(x), _halves(y)
    return high, ((a * c - high) + a * d + b * c) + b * d


def _halves(x: Floats) -> tuple[Floats, Floats]:
    """Split into the upper 26 bits and the rest (Veltkamp)."""
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
