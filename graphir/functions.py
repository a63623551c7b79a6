"""The functions of floats that NumPy lacks, and those whose NumPy form would warn.

All take C-contiguous float32 or float64 arrays (`mean`, `var` and `std` complex ones too) and give
new arrays of the same dtype. They compute in that dtype; `erf` alone goes through float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Context, Decimal, localcontext
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

_PI = Decimal("3.14159265358979323846264338327950288419716939937510")
# erf is tabulated at multiples of 1/64 up to 6, from where on it is 1 in float64.
_STEPS, _END, _DEGREE = 64, 6, 7
_NEAR = 0.125


def erf(x: Array) -> Array:
    """The error function, within 0.8 ulp (float32: float64's result, rounded once).

    Below 1/8 it is x + x*R(x**2), R the Maclaurin series of erf(x)/x - 1; elsewhere the Taylor
    series about the nearest multiple of 1/64 (DLMF 7.2.1, 7.6.1, 7.10.1). Both use + and * alone,
    so that all platforms give the same bits. erf(-0.0) is -0.0, erf(inf) 1, erf(NaN) NaN.
    """
    wide = np.atleast_1d(x).astype(np.float64)
    size = np.abs(wide)
    result = np.where(size < _NEAR, _erf_near(size), _erf_far(size))
    return np.copysign(result, wide).astype(x.dtype).reshape(x.shape)


def _erf_near(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return x + x * _polynomial(x * x, _maclaurin())


def _erf_far(x: NDArray[np.float64]) -> NDArray[np.float64]:
    # fmin drops NaN, which is no place in a table; minimum keeps it for the result.
    place = np.rint(np.fmin(x, _END) * _STEPS)
    rest = np.minimum(x, _END) - place / _STEPS
    row = place.astype(np.intp)
    value, *series = _taylor()
    return value.take(row) + _polynomial(rest, (c.take(row) for c in reversed(series)))


def _polynomial(x: NDArray[np.float64], coefficients: Iterable[Any]) -> NDArray[np.float64]:
    """A polynomial by Horner's rule, from the coefficient of the highest power down."""
    total = np.zeros_like(x)
    for coefficient in coefficients:
        total *= x
        total += coefficient
    return total


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
        step, value, slope = Decimal(1) / _STEPS, Decimal(0), 2 / _PI.sqrt()
        rows: list[list[float]] = []
        for centre in range(_END * _STEPS + 1):
            slopes = _slopes(centre * step, slope)
            series = [term / (n + 1) for n, term in enumerate(slopes)]
            lost = value - Decimal(float(value))
            rows.append([float(value), float(lost), *map(float, series[:_DEGREE])])
            value += sum(term * step ** (n + 1) for n, term in enumerate(series))
            slope = sum((term * step**n for n, term in enumerate(slopes)), Decimal(0))
    return tuple(np.array(rows).T.copy())


def _slopes(x: Decimal, slope: Decimal) -> list[Decimal]:
    """The Taylor series of erf' about x, where it is `slope`, from erf'' = -2 x erf'."""
    terms = [slope, -2 * x * slope]
    for n in range(1, 24):
        terms.append(-2 * (x * terms[n] + terms[n - 1]) / (n + 1))
    return terms


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), of negative x as exp(x) / (1 + exp(x)): nothing overflows."""
    one, small = x.dtype.type(1), np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, one, small) / (one + small))


def silu(x: Array) -> Array:
    """The product x * sigmoid(x); of -inf, NaN (-inf * 0)."""
    return np.asarray(x * sigmoid(x))


def gelu(x: Array, approximate: str) -> Array:
    """The Gaussian error linear unit (Hendrycks and Gimpel, arXiv 1606.08415); of -inf, NaN.

    `approximate` is "none": x/2 * (1 + erf(x / sqrt(2))); "tanh": x/2 * (1 + tanh(sqrt(2/pi) *
    (x + 0.044715 x**3))); or "quick": x * sigmoid(1.702 x).
    """
    if approximate == "quick":
        return np.asarray(x * sigmoid(np.asarray(x * 1.702)))
    if approximate == "tanh":
        inner = np.tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi))
    else:
        inner = erf(np.asarray(x * math.sqrt(0.5)))
    return np.asarray(x * 0.5 * (inner + 1.0))


def softmax(x: Array, axis: int) -> Array:
    """exp(x - max) / sum(exp(x - max)) along an axis; NaN where the greatest is infinite."""
    powers = np.exp(_below_max(x, axis))
    return powers / _sum(powers, axis)


def logsoftmax(x: Array, axis: int) -> Array:
    """(x - max) - log(sum(exp(x - max))) along an axis; NaN where the greatest is infinite."""
    shifted = _below_max(x, axis)
    return shifted - np.log(_sum(np.exp(shifted), axis))


def _below_max(x: Array, axis: int) -> Array:
    return x - np.maximum.reduce(x, axis=axis, keepdims=True, initial=-np.inf)


def _sum(x: Array, axis: int) -> Array:
    return np.add.reduce(x, axis=axis, dtype=x.dtype, keepdims=True)


def layer_norm(x: Array, scale: Array, shift: Array, epsilon: float) -> Array:
    """(x - mean) / sqrt(var + epsilon) * scale + shift along the last axis, var over n.

    `scale` and `shift` have one element for each place on that axis.
    """
    last = (x.ndim - 1,)
    centred = x - mean(x, last, True)
    variance = mean(centred * centred, last, True)
    normal = centred / np.sqrt(variance + x.dtype.type(epsilon))
    scaled = np.multiply(normal, scale, casting="no")
    return np.asarray(np.add(scaled, shift, casting="no"))


def mean(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    """np.mean over axes, in the dtype of x; NaN over no elements."""
    if _count(x, axis):
        return np.asarray(np.mean(x, axis=axis, dtype=x.dtype, keepdims=keepdims))
    # np.mean gives a Python warning, which errstate does not silence.
    nothing = np.add.reduce(x, axis=axis, dtype=x.dtype, keepdims=keepdims)
    return np.asarray(np.divide(nothing, nothing, casting="no"))


def var(x: Array, axis: tuple[int, ...], keepdims: bool, correction: int) -> Array:
    """np.var over axes: the mean of |x - mean|**2, over n - correction elements.

    Of complex numbers it is real. A divisor that is not positive counts as 0: inf, or NaN where
    nothing differs from the mean.
    """
    count = _count(x, axis)
    if count > correction:
        return np.asarray(np.var(x, axis=axis, ddof=correction, keepdims=keepdims))
    biased = var(x, axis, keepdims, 0) if count else mean(np.abs(x), axis, keepdims)
    return np.asarray(np.divide(biased, biased.dtype.type(0), casting="no"))


def std(x: Array, axis: tuple[int, ...], keepdims: bool, correction: int) -> Array:
    """The square root of `var`."""
    return np.asarray(np.sqrt(var(x, axis, keepdims, correction)))


def _count(x: Array, axis: tuple[int, ...]) -> int:
    return math.prod(x.shape[i] for i in axis)
