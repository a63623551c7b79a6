"""What comes before what in StableHLO: comparisons, the greater and the lesser, sorting."""

from __future__ import annotations

from graphir import DType
from runtime.targets.stablehlo_.casts import converted
from runtime.targets.stablehlo_.elementwise import imag, real
from runtime.targets.stablehlo_.values import HloValue, where


def compared(direction: str, x: HloValue, y: HloValue) -> HloValue:
    """A comparison, of complex numbers by real, then by imaginary part, as NumPy has it.

    int64 and uint64, which compare exactly, go by sign and then as uint64.
    """
    if {x.dtype, y.dtype} == {DType.int64, DType.uint64}:
        return _of_both_signs(direction, x, y)
    if x.dtype.is_complex and direction[0] in "LG":
        strictly = f"{direction[0]}T"
        ahead = real(x).compare(strictly, real(y)) & imag(x).eq(imag(x)) & imag(y).eq(imag(y))
        return ahead | (real(x).eq(real(y)) & imag(x).compare(direction, imag(y)))
    return x.compare(direction, y)


def _of_both_signs(direction: str, x: HloValue, y: HloValue) -> HloValue:
    signs = [-(one < 0).convert(DType.int32) for one in (x, y)]
    wide = [converted(one, DType.uint64) for one in (x, y)]
    same = signs[0].eq(signs[1])
    return where(same, wide[0].compare(direction, wide[1]), signs[0].compare(direction, signs[1]))


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


def clip(x: HloValue, low: HloValue, high: HloValue) -> HloValue:
    """The value, or the bound that it is beyond."""
    return minimum(maximum(x, low), high)


def before(x: HloValue, y: HloValue) -> HloValue:
    """Whether x comes before y where they are sorted: NaN last, as NumPy has it."""
    if x.dtype.is_complex:
        return _complex_before(x, y)
    return (x < y) | (x.eq(x) & y.ne(y)) if x.dtype.is_float else x < y


def _complex_before(x: HloValue, y: HloValue) -> HloValue:
    """By real and then by imaginary part; what has no NaN first, then none in its real part."""
    known, theirs = (imag(one).eq(imag(one)) for one in (x, y))
    ahead, behind = real(x) < real(y), real(x) > real(y)
    apart = real(x).eq(real(x)) ^ real(y).eq(real(y))
    alike = before(imag(x), imag(y))
    ordered = where(behind, known & ~theirs, where(apart, real(y).ne(real(y)), alike))
    return where(ahead, known | ~theirs, ordered)
