"""Products of matrices and vectors."""

from __future__ import annotations

from typing import Any

from graphir import ShapeError, ops
from runtime.array_api.array import Array, array_of, record
from runtime.array_api.dtypes import result_type
from runtime.array_api.functions.manipulation import broadcast_arrays


def matmul(x1: Array, x2: Array, /) -> Array:
    """The matrix product over the last two axes, batched."""
    return record(ops.matmul, array_of(x1), array_of(x2))


def tensordot(x1: Array, x2: Array, /, *, axes: Any = 2) -> Array:
    """The product summed over the last and first axes, so many of them, or over pairs of axes."""
    return record(ops.tensordot, array_of(x1), array_of(x2), axes=axes)


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """The product of vectors along an axis counted from the end, the first conjugated."""
    least = -min(array_of(x1).ndim, array_of(x2).ndim)
    if not least <= axis < 0:
        raise ShapeError(f"vecdot: axis {axis} is not from {least} to -1")
    if x1.shape[axis] != x2.shape[axis]:
        raise ShapeError(f"vecdot: {x1.shape} and {x2.shape} differ on axis {axis}")
    left, right = broadcast_arrays(record(ops.conj, x1), x2)
    products = record(ops.multiply, left, right)
    return record(ops.sum, products, axis=axis, dtype=result_type(x1, x2))
