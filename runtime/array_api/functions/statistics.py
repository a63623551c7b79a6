"""Statistical and utility functions: reductions over axes, cumulative sums, differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphir.dtypes import DTypeLike
from graphir.hints import Ints
from graphir.ops.op import Op
from graphir.public import GraphError, ops
from graphir.runtime.array_api.array import Array, array_of, eager, record
from graphir.runtime.array_api.dtypes import dtype_of, require
from graphir.runtime.array_api.expansions import expanded
from graphir.runtime.array_api.functions.creation import full
from graphir.runtime.array_api.functions.manipulation import reshape

__all__ = [
    "all", "any", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max",
    "mean", "min", "prod", "std", "sum", "var",
]  # fmt: skip


def max(x: Array, /, *, axis: Ints | None = None, keepdims: bool = False) -> Array:
    """Return the maximum over axes; NaN if any element is NaN."""
    return record(ops.max, array_of(x), axis=axis, keepdims=keepdims)


def min(x: Array, /, *, axis: Ints | None = None, keepdims: bool = False) -> Array:
    """Return the minimum over axes; NaN if any element is NaN."""
    return record(ops.min, array_of(x), axis=axis, keepdims=keepdims)


def mean(x: Array, /, *, axis: Ints | None = None, keepdims: bool = False) -> Array:
    """Return the arithmetic mean over axes."""
    return record(ops.mean, array_of(x), axis=axis, keepdims=keepdims)


def sum(
    x: Array, /, *, axis: Ints | None = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Array:
    """Return the sum over axes; small integers accumulate in 64 bits."""
    return record(ops.sum, array_of(x), axis=axis, keepdims=keepdims, dtype=_dtype_or_none(dtype))


def prod(
    x: Array, /, *, axis: Ints | None = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> Array:
    """Return the product over axes; small integers accumulate in 64 bits."""
    return record(ops.prod, array_of(x), axis=axis, keepdims=keepdims, dtype=_dtype_or_none(dtype))


def _dtype_or_none(dtype: DTypeLike | None) -> Any:
    return None if dtype is None else dtype_of(dtype)


def var(
    x: Array, /, *, axis: Ints | None = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """Return the variance over axes, with divisor n - correction."""
    return _spread(ops.var, np.var, x, axis, correction, keepdims)


def std(
    x: Array, /, *, axis: Ints | None = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """Return the standard deviation over axes, with divisor n - correction."""
    return _spread(ops.std, np.std, x, axis, correction, keepdims)


def _spread(
    op: Op,
    fractional: Callable[..., Any],
    x: Array,
    axis: Ints | None,
    correction: float,
    keep: bool,
) -> Array:
    whole = int(correction)
    result = record(op, array_of(x), axis=axis, correction=whole, keepdims=keep)
    if whole == correction:
        return result
    return eager(fractional, x, axis=axis, ddof=correction, keepdims=keep)


def all(x: Array, /, *, axis: Ints | None = None, keepdims: bool = False) -> Array:
    """Return whether all elements over axes are nonzero."""
    return record(ops.all, array_of(x), axis=axis, keepdims=keepdims)


def any(x: Array, /, *, axis: Ints | None = None, keepdims: bool = False) -> Array:
    """Return whether any element over axes is nonzero."""
    return record(ops.any, array_of(x), axis=axis, keepdims=keepdims)


def count_nonzero(x: Array, /, *, axis: Ints | None = None, keepdims: bool = False) -> Array:
    """Return the number of nonzero elements over axes."""
    truths = record(ops.cast, array_of(x), to="bool")
    ones = record(ops.cast, truths, to="int64")
    return record(ops.sum, ones, axis=axis, keepdims=keepdims)


def cumulative_sum(
    x: Array,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Return the cumulative sums along an axis; include_initial=True prepends 0."""
    return _cumulative(ops.cumulative_sum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Array,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Return the cumulative products along an axis; include_initial=True prepends 1."""
    return _cumulative(ops.cumulative_prod, 1, x, axis, dtype, include_initial)


def _cumulative(
    op: Op, first: int, x: Array, axis: int | None, dtype: DTypeLike | None, include_initial: bool
) -> Array:
    if axis is None:
        if array_of(x).ndim > 1:
            raise GraphError(f"{op.name}: an axis is needed for an array of shape {x.shape}")
        x, axis = reshape(x, (-1,)), 0
    result = record(op, array_of(x), axis=axis, dtype=_dtype_or_none(dtype))
    if not include_initial:
        return result
    shape = list(result.shape)
    shape[axis] = 1
    initial = full(tuple(shape), first, dtype=result.dtype)
    return record(ops.concat, initial, result, axis=axis)


def diff(
    x: Array,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Array | None = None,
    append: Array | None = None,
) -> Array:
    """Return the n-th differences of neighbours along an axis."""
    require("diff", x, "numeric")
    ends = {"prepend": prepend, "append": append}
    return expanded(np.diff, x, n=n, axis=axis, **ends)
