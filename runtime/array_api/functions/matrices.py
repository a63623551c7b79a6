"""Products of matrices and vectors."""

from __future__ import annotations

from graphir.hints import Pairs
from graphir.public import ShapeError, ops
from graphir.runtime.array_api.array import Array, array_of, record
from graphir.runtime.array_api.dtypes import result_type
from graphir.runtime.array_api.functions.manipulation import broadcast_arrays

__all__ = ["matmul", "tensordot", "vecdot"]


def matmul(x1: Array, x2: Array, /) -> Array:
    """Return the matrix product over the last two axes, batched over the others."""
    return record(ops.matmul, array_of(x1), array_of(x2))


def tensordot(x1: Array, x2: Array, /, *, axes: Pairs = 2) -> Array:
    """Return the tensor contraction over `axes`.

    An int n contracts the last n axes of x1 with the first n of x2; a pair of sequences names the
    contracted axes of x1 and of x2.
    """
    return record(ops.tensordot, array_of(x1), array_of(x2), axes=axes)


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Return the vector dot product along `axis`, a negative axis; conjugates x1."""
    least = -min(array_of(x1).ndim, array_of(x2).ndim)
    if not least <= axis < 0:
        raise ShapeError(
            f"axis is negative, and at least {least}, for both arrays",
            op="vecdot",
            got=f"axis={axis} of {x1.shape} and {x2.shape}",
        )
    if x1.shape[axis] != x2.shape[axis]:
        raise ShapeError(
            f"the arrays differ in size on axis {axis}",
            op="vecdot",
            got=f"{x1.shape} and {x2.shape}",
        )
    left, right = broadcast_arrays(record(ops.conj, x1), x2)
    products = record(ops.multiply, left, right)
    return record(ops.sum, products, axis=axis, dtype=result_type(x1, x2))
