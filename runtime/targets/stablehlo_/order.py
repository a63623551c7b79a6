"""Order in StableHLO: comparisons, maximum and minimum, and the order of sorting."""

from __future__ import annotations

from graphir.runtime.targets.stablehlo_.elementwise import imag, real
from graphir.runtime.targets.stablehlo_.values import HloValue, where


def compared(direction: str, x: HloValue, y: HloValue) -> HloValue:
    """Return a comparison; complex numbers compare by real and then imaginary part, as in NumPy."""
    if x.dtype.is_complex and direction[0] in "LG":
        strictly = f"{direction[0]}T"
        ahead = real(x).compare(strictly, real(y)) & imag(x).eq(imag(x)) & imag(y).eq(imag(y))
        return ahead | (real(x).eq(real(y)) & imag(x).compare(direction, imag(y)))
    return x.compare(direction, y)


def maximum(x: HloValue, y: HloValue) -> HloValue:
    """Return the greater of two values, or NaN if either is NaN."""
    return _extreme("maximum", "GE", x, y)


def minimum(x: HloValue, y: HloValue) -> HloValue:
    """Return the lesser of two values, or NaN if either is NaN."""
    return _extreme("minimum", "LE", x, y)


def _extreme(name: str, direction: str, x: HloValue, y: HloValue) -> HloValue:
    if x.dtype.is_complex:
        return where(compared(direction, x, y) | x.ne(x), x, y)
    return x.op(name, y)


def before(x: HloValue, y: HloValue) -> HloValue:
    """Return whether x sorts before y, with NaN last as in NumPy."""
    if x.dtype.is_complex:
        return _complex_before(x, y)
    return (x < y) | (x.eq(x) & y.ne(y)) if x.dtype.is_float else x < y


def _complex_before(x: HloValue, y: HloValue) -> HloValue:
    """Return the order of complex numbers by real part, then by imaginary part.

    Numbers without NaN come first, then those whose imaginary part alone is NaN.
    """
    has_no_nan, theirs = (imag(operand).eq(imag(operand)) for operand in (x, y))
    ahead, behind = real(x) < real(y), real(x) > real(y)
    apart = real(x).eq(real(x)) ^ real(y).eq(real(y))
    alike = before(imag(x), imag(y))
    by_parts = where(behind, has_no_nan & ~theirs, where(apart, real(y).ne(real(y)), alike))
    return where(ahead, has_no_nan | ~theirs, by_parts)
