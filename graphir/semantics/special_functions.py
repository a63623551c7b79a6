"""The functions of floats that NumPy lacks, and those whose NumPy form would warn.

All take C-contiguous float32 or float64 arrays (`mean`, `var` and `std` complex ones too) and give
new arrays of the same dtype. They compute in that dtype; `erf` and `gelu` go through float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from decimal import Context, Decimal, localcontext
from functools import cache, reduce
from operator import mul
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Take: TypeAlias = Callable[[Array, Array], Any]

_PI = Decimal("3.14159265358979323846264338327950288419716939937510")
# erf is tabulated at multiples of 1/64 up to 6, from where on it is 1 in float64.
_STEPS, _END, _DEGREE = 64, 6, 7
_NEAR = 0.125
# The tail of the normal distribution is 0 in float64 from 39 on.
_TAIL_END, _TAIL_DEGREE, _TAIL_SCALE = 39, 13, 2.0**64


def erf(x: Array) -> Array:
    """The error function, within 0.8 ulp (float32: float64's result, rounded once).

    Below 1/8 it is x + x*R(x**2), R the Maclaurin series of erf(x)/x - 1; elsewhere the Taylor
    series about the nearest multiple of 1/64 (DLMF 7.2.1, 7.6.1, 7.10.1). Both use + and * alone,
    so that all platforms give the same bits. erf(-0.0) is -0.0, erf(inf) 1, erf(NaN) NaN.
    """
    return erf_by(np.ndarray.take, x)


def erf_by(take: Take, x: Array) -> Array:
    """The same by a function that looks places of a table up, also where x is being traced."""
    wide = x.astype(np.float64)
    size = np.abs(wide)
    far = _interpolate(size, _END, _taylor(), take)
    near = size + size * _polynomial(size * size, _maclaurin())
    return np.copysign(np.where(size < _NEAR, near, far), wide).astype(x.dtype)


def _tail(x: NDArray[np.float64], take: Take) -> NDArray[np.float64]:
    """The upper tail of the normal distribution from x >= 0 on, times 2**64: none underflows.

    That is erfc(x / sqrt(2)) / 2 (DLMF 7.2.2), which a rounded x / sqrt(2) would lose x**2 ulp of;
    so the series is of the tail itself, about the nearest multiple of 1/64, within 1.5 ulp.
    """
    tail = _interpolate(x, _TAIL_END, _tail_taylor(), take)
    return np.where(x < _TAIL_END, tail, 0.0)


def _interpolate(
    x: NDArray[np.float64], end: int, table: tuple[NDArray[np.float64], ...], take: Take
) -> NDArray[np.float64]:
    """The series in the row of the nearest centre; from `end` on what is there, of NaN NaN."""
    # NaN is no place in a table; minimum keeps it for the result.
    place = np.rint(np.where(x < end, x, end) * _STEPS)
    rest = np.minimum(x, end) - place / _STEPS
    row = place.astype(np.intp)
    value, *series = table
    return take(value, row) + _polynomial(
        rest, (take(coefficient, row) for coefficient in reversed(series))
    )


def _polynomial(x: NDArray[np.float64], coefficients: Iterable[Any]) -> NDArray[np.float64]:
    """A polynomial by Horner's rule, from the coefficient of the highest power down."""
    return reduce(lambda total, coefficient: total * x + coefficient, coefficients)


@cache
def _maclaurin() -> list[float]:
    """Coefficients of erf(x)/x - 1 in x**2, the highest first."""
    with localcontext(Context(prec=45)):
        slope = 2 / _PI.sqrt()
        terms = [slope * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(_DEGREE + 1)]
        return [float(term - (n == 0)) for n, term in enumerate(terms)][::-1]


@cache
def _taylor() -> tuple[NDArray[np.float64], ...]:
    """Columns of a table with a row for each centre: erf there, what its rounding lost, the series.

    Each centre is reached from the one before by the series itself, in 45 digits.
    """
    with localcontext(Context(prec=45)):
        slope = 2 / _PI.sqrt()
        return _columns(_centres(range(_END * _STEPS + 1), 1, 2, Decimal(0), slope), _DEGREE)


@cache
def _tail_taylor() -> tuple[NDArray[np.float64], ...]:
    """The same of the tail, times 2**64, from its expansion at the far end (DLMF 7.12.1).

    On the way back all terms are positive, so that what that lacks counts for less and less.
    """
    with localcontext(Context(prec=45)):
        end, scale = Decimal(_TAIL_END), Decimal(_TAIL_SCALE)
        slope = -scale * (-end * end / 2).exp() / (2 * _PI).sqrt()
        value = -slope / end * (1 - 1 / end**2 + 3 / end**4)
        centres = range(_TAIL_END * _STEPS, -1, -1)
        return _columns(list(_centres(centres, -1, 1, value, slope))[::-1], _TAIL_DEGREE)


def _centres(
    centres: range, way: int, factor: int, value: Decimal, slope: Decimal
) -> Iterator[tuple[Decimal, list[Decimal]]]:
    """At each multiple of 1/64 the value and the series of what begins with these."""
    powers = [(Decimal(way) / _STEPS) ** n for n in range(25)]
    for centre in centres:
        slopes = _slopes(Decimal(centre) / _STEPS, slope, factor)
        series = [term / (n + 1) for n, term in enumerate(slopes)]
        yield value, series
        value += sum(map(mul, series, powers[1:]))
        slope = sum(map(mul, slopes, powers), Decimal(0))


def _columns(
    rows: Iterable[tuple[Decimal, list[Decimal]]], degree: int
) -> tuple[NDArray[np.float64], ...]:
    """The columns of a table: value, what its rounding lost, and coefficients up to a degree."""
    table = [
        [float(value), float(value - Decimal(float(value))), *map(float, series[:degree])]
        for value, series in rows
    ]
    return tuple(np.array(table).T.copy())


def _slopes(x: Decimal, slope: Decimal, factor: int) -> list[Decimal]:
    """The Taylor series about x of what is `slope` there, and y' = -factor x y."""
    terms = [slope, -factor * x * slope]
    for n in range(1, 24):
        terms.append(-factor * (x * terms[n] + terms[n - 1]) / (n + 1))
    return terms


def gelu(x: Array) -> Array:
    """The Gaussian error linear unit x * Phi(x) within 2 ulp, by + and * alone; of -inf, NaN.

    Of float32 it is float64's result, rounded once. Its approximations are those of the
    decomposition: see graphir.ops.decompositions.gelu.
    """
    return gelu_by(np.ndarray.take, x)


def gelu_by(take: Take, x: Array) -> Array:
    """The same by a function that looks places of a table up, also where x is being traced."""
    wide = x.astype(np.float64)
    tail = _tail(np.abs(wide), take)
    # 1 + erf(x / sqrt(2)), twice what the tail leaves of 1, would cancel where x is negative.
    result = np.where(wide < 0, wide * tail / _TAIL_SCALE, wide * (1 - tail / _TAIL_SCALE))
    return result.astype(x.dtype)


def mean(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    """The sum over axes, as NumPy adds, divided by the count, in the dtype of x; NaN of none.

    The count is an integer of 64 bits, so that the quotient is one of float64, as in np.mean.
    """
    total = np.asarray(np.add.reduce(x, axis=axis, dtype=x.dtype, keepdims=keepdims))
    return np.true_divide(total, np.intp(_count(x, axis)), out=total, casting="unsafe")


def var(x: Array, axis: tuple[int, ...], keepdims: bool, correction: int) -> Array:
    """np.var over axes: the mean of |x - mean|**2, over n - correction elements.

    Of complex numbers it is real. A divisor that is not positive counts as 0: inf, or NaN where
    nothing differs from the mean.
    """
    count = _count(x, axis)
    if count > correction:
        return np.asarray(np.var(x, axis=axis, ddof=correction, keepdims=keepdims))
    population_variance = var(x, axis, keepdims, 0) if count else mean(np.abs(x), axis, keepdims)
    return np.asarray(
        np.divide(population_variance, population_variance.dtype.type(0), casting="no")
    )


def _count(x: Array, axis: tuple[int, ...]) -> int:
    return math.prod(x.shape[i] for i in axis)
