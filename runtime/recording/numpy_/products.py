"""Products of recorded arrays, with the memory layouts by which BLAS rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphir.public import Symbol, ops
from graphir.runtime.recording.numpy_.method_ops import in_ops
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.values import Result, plain
from graphir.semantics.matrix_products import layout_of, uses_blas

_MATRIX = 2


def product_attributes(function: str, operands: Sequence[Any]) -> Mapping[str, Any]:
    """Return the attributes of matmul for a product of arrays by np.matmul or np.dot."""
    x, y = map(np.asarray, operands)
    dtype = np.result_type(x, y)
    return {"layout": layout_of(function, x, y, dtype)} if uses_blas(dtype) else {}


def product(function: Callable[..., Any]) -> Callable[..., Symbol]:
    """Return the function that records np.dot or np.inner: one matmul by a vector or matrix."""
    by_table = in_ops(function, 2)

    def enter(recorder: Recorder, _: Result, a: ArrayLike, b: ArrayLike) -> Symbol:
        x, y = np.asarray(plain(a)), np.asarray(plain(b))
        if not _is_matmul(x, y):
            return by_table(recorder, _, a, b)
        right = recorder.symbol(b)
        if function is np.inner and y.ndim == _MATRIX:
            y, right = y.T, recorder.emit(ops.permute, (right,), dims=(1, 0))
        return _emitted(recorder, x, recorder.symbol(a), y, right)

    return enter


def _is_matmul(x: NDArray[Any], y: NDArray[Any]) -> bool:
    """Whether np.dot of two arrays is a product of vectors or matrices of several elements."""
    return (
        bool(x.ndim) and 0 < y.ndim <= _MATRIX and not (x.size == y.size == 1 and x.ndim <= _MATRIX)
    )


def dot_method(recorder: Recorder, x: NDArray[Any], symbol: Symbol, other: ArrayLike) -> Symbol:
    """Record the method `dot` of an array x, whose symbol is given."""
    y = np.asarray(plain(other))
    if not _is_matmul(x, y):
        return in_ops(np.dot, 2)(recorder, x, symbol, other)
    return _emitted(recorder, x, symbol, y, recorder.symbol(other))


def _emitted(recorder: Recorder, x: NDArray[Any], left: Symbol, y: Any, right: Symbol) -> Symbol:
    return recorder.emit(ops.matmul, (left, right), **product_attributes("dot", (x, y)))
