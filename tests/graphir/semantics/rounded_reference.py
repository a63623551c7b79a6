"""Correctly rounded functions of float32, from float64 and, near the middle of neighbours, mpmath.

The functions of float64 err by less than 64 ulps, so that rounding them is right unless they lie
within 64 ulps of the middle between two neighbours of float32.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

from graphir.semantics import special_functions

FUNCTIONS: dict[str, Any] = {
    "exp": (np.exp, mpmath.exp),
    "expm1": (np.expm1, mpmath.expm1),
    "log": (np.log, mpmath.log),
    "log1p": (np.log1p, mpmath.log1p),
    "log2": (np.log2, lambda x: mpmath.log(x, 2)),
    "sin": (np.sin, mpmath.sin),
    "cos": (np.cos, mpmath.cos),
    "tanh": (np.tanh, mpmath.tanh),
    "erf": (special_functions.erf, mpmath.erf),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), lambda x: 1 / (1 + mpmath.exp(-x))),
}
"""For each function of `ROUNDED_FUNCTIONS` that of float64, and that of mpmath."""

_NEAR = 2.0**-46


def reference(name: str, x: Any) -> Any:
    """Return the correctly rounded results of float32 values."""
    wide, exact = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        result = wide(x.astype(np.float64))
        rounded = result.astype(np.float32)
        below, above = (result * (1 - _NEAR)), (result * (1 + _NEAR))
        near = below.astype(np.float32) != above.astype(np.float32)
    for place in np.flatnonzero(near & np.isfinite(result) & np.isfinite(x)):
        with mpmath.workdps(80):
            rounded[place] = _round(exact(mpmath.mpf(float(x[place]))))
    return rounded


def _round(value: Any) -> np.float32:
    """Round a number to float32, to nearest; the functions here have no tie."""
    exponent = max(int(mpmath.frexp(value)[1]) - 24, -149)
    whole = int(mpmath.nint(mpmath.ldexp(value, -exponent)))
    with np.errstate(all="ignore"):
        return np.ldexp(np.float64(whole), exponent).astype(np.float32)


def differs(result: Any, expected: Any) -> Any:
    """Return where two arrays differ in bits, with NaN equal to NaN."""
    kind = f"u{expected.itemsize}"
    both = np.isnan(result) & np.isnan(expected)
    return (result.view(kind) != expected.view(kind)) & ~both
