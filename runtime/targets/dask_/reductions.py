"""Ops over axes of several blocks: Dask's trees of partial results, and its scans.

Partial results have the dtype of the operand, which is the accumulator of a lowered op.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# (Dask is no part of the project's own environment, and its arrays have no types there.)

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.public import Symbol
from graphir.runtime.targets.dask_.regions import Arrays, BlockPiece, dask_array, meta, quiet
from graphir.semantics.kernels import KERNELS

Axes: TypeAlias = tuple[int, ...]
Function: TypeAlias = Callable[..., Any]


def reduced(piece: BlockPiece, symbol: Symbol, values: Arrays) -> Any:
    """Return an op along axes: one Program if each axis is one block, else partial results."""
    x, axis = values[symbol.args[0]], symbol.attrs["axis"]
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    if x.size == 0 or all(x.numblocks[each] == 1 for each in axes):
        return piece.arrays(values)[0]
    return PARTIAL[symbol.op.name](x, symbol, axes)


def contracted(piece: BlockPiece, symbol: Symbol, values: Arrays) -> Any:
    """Return a contraction: by one Program if each summed axis is one block.

    Otherwise tasks multiply block by block, and a tree of tasks adds the products.
    """
    sum_labels = tuple(
        dict.fromkeys(each for _, own in piece.operands for each in own if each[0] == "k")
    )
    if all(
        values[each].numblocks[axis] == 1
        for each, own in piece.operands
        for axis, label in enumerate(own)
        if label in sum_labels
    ):
        return piece.arrays(values)[0]
    task = partial(_lifted, piece.task, len(sum_labels))
    products = piece.blocks(task, values, symbol.dtype.storage, sum_labels)
    return tree(products, symbol, tuple(range(len(sum_labels))), KERNELS["sum"])


# -- functions of tasks


def _lifted(task: Function, axes: int, *blocks: NDArray[Any]) -> Any:
    return np.expand_dims(task(*blocks), tuple(range(axes)))


def _folding(
    function: Function, x: NDArray[Any], axis: Axes, keepdims: bool, computing_meta: bool = False
) -> Any:
    """Run a step of a tree; for Dask's probe of the `meta`, return x, as `tree` passes a meta."""
    if computing_meta:
        return x
    with np.errstate(all="ignore"):
        return function(x, axis=axis, keepdims=keepdims)


def _mean(sums: NDArray[Any], axis: Axes, keepdims: bool, count: int) -> Any:
    total = KERNELS["sum"](sums, axis=axis, keepdims=keepdims)
    return np.true_divide(total, np.intp(count), out=total, casting="unsafe")


def _moments(x: NDArray[Any], axis: Axes, keepdims: bool) -> Any:
    """Return the moments of each row: the count, the mean, and the sum of |x - mean|**2."""
    mean = KERNELS["mean"](x, axis=axis, keepdims=True)
    squares = _squared(x - mean)
    fields = [("count", np.int64), ("mean", mean.dtype), ("squares", squares.dtype)]
    moments: Any = np.empty(mean.shape, fields)
    moments["count"] = math.prod(x.shape[i] for i in axis)
    moments["mean"] = mean
    moments["squares"] = KERNELS["sum"](squares, axis=axis, keepdims=True)
    return moments


def _squared(x: Any) -> Any:
    return x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x


def _merge_moments(parts: NDArray[Any], axis: Axes, keepdims: bool) -> Any:
    """Return the combined moments of all parts along axes (Chan, Golub and LeVeque, 1979)."""
    shape = tuple(1 if i in axis else size for i, size in enumerate(parts.shape))
    moments: Any = np.empty(shape, parts.dtype)
    moments["count"] = np.sum(parts["count"], axis, keepdims=True)
    share = parts["count"] / moments["count"]
    moments["mean"] = np.sum(parts["mean"] * share, axis, keepdims=True)
    between = _squared(parts["mean"] - moments["mean"]) * parts["count"]
    moments["squares"] = np.sum(parts["squares"] + between, axis, keepdims=True)
    return moments


def _spread(parts: NDArray[Any], axis: Axes, keepdims: bool, correction: int, root: bool) -> Any:
    moments = _merge_moments(parts, axis, keepdims)
    count = np.maximum(moments["count"] - correction, 0)
    variance = (moments["squares"] / count).astype(moments["squares"].dtype)
    result = np.sqrt(variance) if root else variance
    return result if keepdims else result.squeeze(axis)


# -- combination of partial results by Dask


def tree(
    x: Any, symbol: Symbol, axes: Axes, chunk: Function, aggregate: Any = None, combine: Any = None
) -> Any:
    """Return Dask's reduction: a tree of tasks combines a partial result of each block.

    `chunk` reduces a block, `combine` combines partial results, and `aggregate` makes the final
    result; the last two default to `chunk`.
    """
    keepdims = bool(symbol.attrs.get("keepdims"))
    dtype, rank = symbol.dtype.storage, x.ndim - len(axes) * (not keepdims)
    return dask_array().reduction(
        x,
        chunk=partial(_folding, chunk),
        combine=partial(_folding, combine or chunk),
        aggregate=partial(_folding, aggregate or chunk),
        axis=axes,
        keepdims=keepdims,
        dtype=dtype,
        meta=meta(dtype, rank),
        concatenate=True,
        name=symbol.op.name,
    )


def _folded(x: Any, symbol: Symbol, axes: Axes) -> Any:
    """Return a reduction that combines its partial results by the same function."""
    return tree(x, symbol, axes, KERNELS[symbol.op.name])


def _averaged(x: Any, symbol: Symbol, axes: Axes) -> Any:
    count = math.prod(x.shape[axis] for axis in axes)
    return tree(x, symbol, axes, KERNELS["sum"], partial(_mean, count=count), KERNELS["sum"])


def _varied(x: Any, symbol: Symbol, axes: Axes) -> Any:
    root, correction = symbol.op.name == "std", symbol.attrs["correction"]
    last = partial(_spread, correction=correction, root=root)
    return tree(x, symbol, axes, _moments, last, _merge_moments)


def _located(x: Any, symbol: Symbol, axes: Axes) -> Any:
    """Return the index of the first extreme value in row-major order.

    Without the flattening Dask would take the first block's.
    """
    axis, keeps = symbol.attrs["axis"], symbol.attrs["keepdims"]
    locate = getattr(dask_array(), symbol.op.name)
    if axis is not None or x.ndim == 1:
        return locate(x, axis=axes[0], keepdims=keeps)
    return locate(x.reshape(-1), axis=0).reshape((1,) * x.ndim if keeps else ())


def _scanned(x: Any, symbol: Symbol, axes: Axes) -> Any:
    """Return the scan: each block's own scan, joined with the end of the block before it."""
    join, start = SCANS[symbol.op.name]
    scan = dask_array().reductions.cumreduction
    own, dtype = quiet(KERNELS[symbol.op.name]), symbol.dtype.storage
    return scan(own, quiet(join), start, x, axis=axes[0], dtype=dtype)


SCANS = {"cumulative_sum": (operator.add, 0), "cumulative_prod": (operator.mul, 1)}
PARTIAL: Mapping[str, Callable[[Any, Symbol, Axes], Any]] = {
    **dict.fromkeys(("sum", "prod", "max", "min", "any", "all"), _folded),
    "mean": _averaged,
    **dict.fromkeys(("var", "std"), _varied),
    **dict.fromkeys(("argmax", "argmin"), _located),
    **dict.fromkeys(SCANS, _scanned),
}
