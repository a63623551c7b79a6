"""The standard's elementwise functions; most of them record one op."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphir.ops.op import Op
from graphir.public import DType, ops
from graphir.runtime.array_api.array import Array, array_of, record, with_name
from graphir.runtime.array_api.dtypes import require
from graphir.runtime.array_api.views import viewed

RECORDED = """
    abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert
    bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor ceil conj copysign cos cosh
    divide equal exp floor floor_divide greater greater_equal hypot isfinite isinf isnan
    less less_equal log log10 log1p log2 logaddexp logical_and logical_not logical_or
    logical_xor maximum minimum multiply negative nextafter not_equal positive pow
    reciprocal remainder round signbit sin sinh sqrt square subtract tan tanh trunc
"""
"""The standard's functions that record one op, which has the function's name on its record."""


def _recorded(name: str, op: Op) -> Callable[..., Array]:
    """Return the function of the standard that records an op on its operands."""

    def unary(x: Array, /) -> Array:
        return record(op, array_of(x))

    def binary(x1: Array | complex, x2: Array | complex, /) -> Array:
        return record(op, x1, x2)

    doc = f"{op.doc}\n\nTypeError where the standard does not define it."
    return with_name(unary if len(op.operands) == 1 else binary, name, doc)


def expm1(x: Array, /) -> Array:
    """Return e**x - 1, without cancellation near 0.

    TypeError where the standard does not define it.
    """
    result = record(ops.expm1, array_of(x))
    if not x.dtype.is_complex:
        return result
    # NumPy's complex expm1 lacks the standard's special cases, and its exp has them all.
    common = record(ops.logical_and, record(ops.is_finite, x), record(ops.not_equal, x, 0))
    return record(ops.where, common, result, record(ops.subtract, record(ops.exp, x), 1))


def sign(x: Array, /) -> Array:
    """Return -1, 0 or 1; for complex z, `z / |z|`; NaN for NaN.

    TypeError where the standard does not define it.
    """
    result = record(ops.sign, array_of(x))
    if not x.dtype.is_complex:
        return result
    # NumPy's result for inf with NaN is the sign of the infinite part; the standard has NaN.
    return record(ops.where, record(ops.is_nan, x), complex(math.nan, math.nan), result)


def clip(
    x: Array, /, min: Array | complex | None = None, max: Array | complex | None = None
) -> Array:
    """Clip x to the range from min to max, in the dtype of x; either bound may be None."""
    if min is None and max is None:
        require("clip", x, "integral", "real floating")
        return Array(x.symbol)
    least, greatest = _range(array_of(x).dtype)
    return record(ops.clip, x, least if min is None else min, greatest if max is None else max)


def _range(dtype: DType) -> tuple[Any, Any]:
    return (dtype.min, dtype.max) if dtype.is_integer else (-math.inf, math.inf)


def real(x: Array, /) -> Array:
    """Return the real parts of complex numbers, a view.

    TypeError where the standard does not define it.
    """
    return viewed(x, record(ops.real, array_of(x)).symbol, [(ops.real, np.real)])


def imag(x: Array, /) -> Array:
    """Return the imaginary parts of complex numbers, a view.

    TypeError where the standard does not define it.
    """
    return viewed(x, record(ops.imag, array_of(x)).symbol, [(ops.imag, np.imag)])


def where(condition: Array, x1: Array | complex, x2: Array | complex, /) -> Array:
    """Return x1 where the condition is true, else x2."""
    return record(ops.where, array_of(condition), x1, x2)


_OPS = {name: op for op in ops.CATALOGUE.values() for name in (op.name, *op.numpy.split())}
FUNCTIONS: dict[str, Callable[..., Array]] = {
    **{name: _recorded(name, _OPS[name]) for name in RECORDED.split()},
    "expm1": expm1,
    "sign": sign,
    "clip": clip,
    "real": real,
    "imag": imag,
    "where": where,
}
"""The elementwise functions by their names."""
