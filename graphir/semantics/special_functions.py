"""Functions of floats that NumPy lacks (erf, gelu) or whose NumPy form would warn (mean, var).

Each takes a C-contiguous float32 or float64 array and returns a new array of the same dtype; `mean`
and `var` take complex arrays too. They compute in that dtype; `erf` and `gelu` compute in float64.

`erf` and the tail of the normal distribution are piecewise Taylor series about the multiples of
1/64. The coefficients are computed once, in 45 decimal digits, and stored in tables with one row
for each centre. A row also holds the rounding error of the function's value at the centre, so that
the sum is accurate to the last bits. Evaluation uses + and * alone, and gives the same bits on all
platforms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from decimal import Context, Decimal, localcontext
from functools import cache
from operator import mul
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.hints import Array
from graphir.semantics.rounded_functions import polynomial

Take: TypeAlias = Callable[[Array, Array], Any]

_PI = Decimal("3.14159265358979323846264338327950288419716939937510")
# The table of erf has the multiples of 1/64 up to 6. From 6 on erf is 1 in float64.
_STEPS, _END, _DEGREE = 64, 6, 7
_NEAR = 0.125
# The tail of the normal distribution is 0 in float64 from 39 on.
_TAIL_END, _TAIL_DEGREE, _TAIL_SCALE = 39, 13, 2.0**64


def erf(x: Array) -> Array:
    """Compute the error function within 0.8 ulp; for float32, float64's result rounded once.

    For |x| < 1/8 the value is x + x*R(x**2), with R the Maclaurin series of erf(x)/x - 1. Elsewhere
    it is the Taylor series about the nearest multiple of 1/64 (DLMF 7.2.1, 7.6.1, 7.10.1). Both use
    + and * alone, so that all platforms give the same bits. erf(-0.0) is -0.0, erf(inf) is 1, and
    erf(NaN) is NaN.
    """
    return erf_by(np.ndarray.take, x)


def erf_by(take: Take, x: Array) -> Array:
    """Compute `erf` with a given function for table look-ups, such as that of a tracer."""
    wide = x.astype(np.float64)
    size = np.abs(wide)
    far = _interpolate(size, _END, _taylor(), take)
    near = size + size * polynomial(size * size, _maclaurin())
    return np.copysign(np.where(size < _NEAR, near, far), wide).astype(x.dtype)


def _tail(x: NDArray[np.float64], take: Take) -> NDArray[np.float64]:
    """Compute the upper tail of the normal distribution for x >= 0, times 2**64, within 1.5 ulp.

    The factor prevents underflow. The tail is erfc(x / sqrt(2)) / 2 (DLMF 7.2.2). Rounding
    x / sqrt(2) would cost x**2 ulp, so the Taylor series is of the tail itself, about the nearest
    multiple of 1/64.
    """
    tail = _interpolate(x, _TAIL_END, _tail_taylor(), take)
    return np.where(x < _TAIL_END, tail, 0.0)


def _interpolate(
    x: NDArray[np.float64], end: int, table: tuple[NDArray[np.float64], ...], take: Take
) -> NDArray[np.float64]:
    """Evaluate the Taylor series in the table row of the nearest centre.

    For x >= `end` the result is the value at `end`; for NaN it is NaN.
    """
    # NaN has no row, so np.where maps it to the row of `end`. np.minimum keeps NaN in `rest`.
    place = np.rint(np.where(x < end, x, end) * _STEPS)
    rest = np.minimum(x, end) - place / _STEPS
    row = place.astype(np.intp)
    value, *series = table
    return take(value, row) + polynomial(
        rest, (take(coefficient, row) for coefficient in reversed(series))
    )


@cache
def _maclaurin() -> list[float]:
    """Return the Maclaurin coefficients of erf(x)/x - 1 in powers of x**2, the highest first."""
    with localcontext(Context(prec=45)):
        slope = 2 / _PI.sqrt()
        terms = [slope * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(_DEGREE + 1)]
        return [float(term - (n == 0)) for n, term in enumerate(terms)][::-1]


@cache
def _taylor() -> tuple[NDArray[np.float64], ...]:
    """Return the table of erf by columns, with a row for each centre from 0 to 6.

    The columns are erf at the centre, its rounding error, and the Taylor coefficients. The series
    about each centre yields the value at the next centre, in 45 digits.
    """
    with localcontext(Context(prec=45)):
        slope = 2 / _PI.sqrt()
        return _columns(_centres(range(_END * _STEPS + 1), 1, 2, Decimal(0), slope), _DEGREE)


@cache
def _tail_taylor() -> tuple[NDArray[np.float64], ...]:
    """Return the table of the tail, times 2**64, by columns, with a row for each centre up to 39.

    The recursion starts at the far end from the asymptotic expansion (DLMF 7.12.1) and runs back to
    0. On that way all terms are positive, so that the relative error of the start decreases.
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
    """Yield the value and the Taylor coefficients of a function at each centre, in turn.

    `value` and `slope` are those at the first centre. `way` is the direction, 1 or -1, and `factor`
    is that of the slope's differential equation (see `_slopes`).
    """
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
    """Return a table's columns: the value, its rounding error, coefficients up to a degree."""
    table = [
        [float(value), float(value - Decimal(float(value))), *map(float, series[:degree])]
        for value, series in rows
    ]
    return tuple(np.array(table).T.copy())


def _slopes(x: Decimal, slope: Decimal, factor: int) -> list[Decimal]:
    """Return the Taylor coefficients about x of the solution of y' = -factor x y, y(x) = slope."""
    terms = [slope, -factor * x * slope]
    for n in range(1, 24):
        terms.append(-factor * (x * terms[n] + terms[n - 1]) / (n + 1))
    return terms


def gelu(x: Array) -> Array:
    """Compute the Gaussian error linear unit x * Phi(x) within 2 ulp, by + and * alone.

    gelu(-inf) is NaN. For float32 the result is float64's, rounded once. The op's approximations
    are in the decomposition: see graphir.ops.decompositions.gelu.
    """
    return gelu_by(np.ndarray.take, x)


def gelu_by(take: Take, x: Array) -> Array:
    """Compute `gelu` with a given function for table look-ups, such as that of a tracer."""
    wide = x.astype(np.float64)
    tail = _tail(np.abs(wide), take)
    # Phi(x) = (1 + erf(x / sqrt(2))) / 2 would cancel for negative x, where Phi(x) is the tail.
    result = np.where(wide < 0, wide * tail / _TAIL_SCALE, wide * (1 - tail / _TAIL_SCALE))
    return result.astype(x.dtype)


def mean(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    """Compute the mean over axes, in the dtype of x: NumPy's sum divided by the count.

    The mean of no elements is NaN. The count is a 64-bit integer, so that NumPy divides in float64,
    as in np.mean.
    """
    total = np.asarray(np.add.reduce(x, axis=axis, dtype=x.dtype, keepdims=keepdims))
    return np.true_divide(total, np.intp(_count(x, axis)), out=total, casting="unsafe")


def var(x: Array, axis: tuple[int, ...], keepdims: bool, correction: int) -> Array:
    """Compute np.var over axes: the sum of |x - mean|**2, divided by n - correction.

    The variance of complex numbers is real. A divisor that is not positive counts as 0, so that the
    result is inf, or NaN where no element differs from the mean.
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
