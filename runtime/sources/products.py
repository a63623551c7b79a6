"""Products of transposed matrices: BLAS reads a matrix where it lies, as the source does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from graphir import Symbol, ops
from graphir.semantics.matrix_products import Layout, layout_of, uses_blas


def product_layout(x: Symbol, y: Symbol) -> Layout | None:
    """Return the attribute `layout` of a product of views that permute the axes of arrays.

    The answer is None if both operands lie in C order, if a size is unknown, or if BLAS does not
    compute the product.
    """
    dtype = x.dtype.storage
    if x.dtype is not y.dtype or not uses_blas(dtype) or not (x.rank and y.rank):
        return None
    if not any(operand.op in (ops.transpose, ops.permute) for operand in (x, y)):
        return None
    if not all(isinstance(size, int) for size in (*x.shape, *y.shape)):
        return None
    return layout_of("matmul", _memory(x), _memory(y), dtype)


def _memory(x: Symbol) -> NDArray[Any]:
    """Return an array without values that lies in memory as a symbol's value does."""
    if x.op is ops.transpose:
        axes = x.attrs["axis1"], x.attrs["axis2"]
        return _memory(x.args[0]).swapaxes(*axes)
    if x.op is ops.permute:
        dims: Sequence[int] = x.attrs["dims"]
        return _memory(x.args[0]).transpose(*dims)
    return np.empty(cast("tuple[int, ...]", x.shape), x.dtype.storage)
