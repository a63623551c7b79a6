"""What comes before what in StableHLO: comparisons, the greater and the lesser, sorting."""

from __future__ import annotations

from runtime.targets.stablehlo_.elementwise import imag, real
from runtime.targets.stablehlo_.values import HloValue, where


def compared(direction: str, x: HloValue, y: HloValue) -> HloValue:
    """A comparison, of complex numbers by real, then by imaginary part, as NumPy has it."""
    if x.dtype.is_complex and direction[0] in "LG":
        strictly = f"{direction[0]}T"
        ahead = real(x).compare(strictly, real(y)) & imag(x).eq(imag(x)) & imag(y).eq(imag(y))
        return ahead | (real(x).eq(real(y)) & imag(x).compare(direction, imag(y)))
    return x.compare(direction, y)


def maximum(x: HloValue, y: HloValue) -> HloValue:
    """The greater; NaN if either is."""
    return _extreme("maximum", "GE", x, y)


def minimum(x: HloValue, y: HloValue) -> HloValue:
    """The lesser; NaN if either is."""
    return _extreme("minimum", "LE", x, y)


def _extreme(name: str, direction: str, x: HloValue, y: HloValue) -> HloValue:
    if x.dtype.is_complex:
        return where(compared(direction, x, y) | x.ne(x), x, y)
    return x.op(name, y)


def before(x: HloValue, y: HloValue) -> HloValue:
    """Whether x comes before y where they are sorted: NaN last, as NumPy has it."""
    if x.dtype.is_complex:
        return _complex_before(x, y)
    return (x < y) | (x.eq(x) & y.ne(y)) if x.dtype.is_float else x < y


def _complex_before(x: HloValue, y: HloValue) -> HloValue:
    """By real and then by imaginary part; what has no NaN first, then none in its real part."""
    has_no_nan, theirs = (imag(operand).eq(imag(operand)) for operand in (x, y))
    ahead, behind = real(x) < real(y), real(x) > real(y)
    apart = real(x).eq(real(x)) ^ real(y).eq(real(y))
    alike = before(imag(x), imag(y))
    by_parts = where(behind, has_no_nan & ~theirs, where(apart, real(y).ne(real(y)), alike))
    return where(ahead, has_no_nan | ~theirs, by_parts)
