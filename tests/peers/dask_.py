"""dask.array over NumPy 2, in chunks of two elements along each axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np

from graphir import DType
from tests.peers import numpy_

Array = Any
CHUNK = 2

VERSION = f"dask {dask.__version__}"

DTYPES = numpy_.DTYPES

_SAME_NAME = (
    *("maximum", "minimum", "sign", "square", "reciprocal", "floor", "ceil", "trunc", "sqrt"),
    *("signbit", "logical_and", "logical_or", "logical_xor", "logical_not", "real", "imag"),
    *("where", "clip", "sum", "prod", "max", "min", "mean", "any", "all", "argmax", "argmin"),
    *("broadcast_to", "flip", "stack", "round", "copysign"),
)
OPS: dict[str, Callable[..., Array]] = {name: getattr(da, name) for name in _SAME_NAME} | {
    "conj": da.conj,
    "is_nan": da.isnan,
    "is_inf": da.isinf,
    "is_finite": da.isfinite,
    "cumulative_sum": lambda x: da.cumsum(x, -1),
    "cumulative_prod": lambda x: da.cumprod(x, -1),
    "reshape": lambda x, shape: da.reshape(x, shape),
    "transpose": lambda x: da.swapaxes(x, -2, -1),
    "unsqueeze": lambda x, axis: da.expand_dims(x, axis),
    "concat": lambda xs: da.concatenate(xs, 0),
    "tensordot": lambda x, y, axes=2: da.tensordot(x, y, axes),
    "matmul": da.matmul,
}


def made(x: np.ndarray[Any, Any], dtype: DType) -> Array:
    """An array in chunks."""
    return da.from_array(x.copy(), chunks=CHUNK)


_OURS = {theirs: ours for ours, theirs in DTYPES.items()}


def dtype_of(x: Array) -> DType | None:
    """The dtype that is computed: of round(bool) Dask declares bool, and computes float16."""
    return _OURS.get(np.asarray(x.compute()).dtype)
