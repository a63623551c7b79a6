"""The methods reduce, accumulate and reduceat of ufuncs without a reduction op: scans and loops.

Associative functions are scanned by doubling: after k rounds an element holds the result of its 2^k
predecessors. Other functions are unrolled along short axes.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from graphir import ops
from graphir.dtypes import DType, DTypeLike
from graphir.errors import GraphError, ShapeError
from graphir.hints import ArrayOrNumber, Ints
from graphir.ir.symbol import Symbol
from graphir.numpy_api.movement import axes_of, moveaxis
from graphir.numpy_api.ufuncs import OPS, REDUCTIONS
from graphir.ops.op import Op

ASSOCIATIVE = frozenset(
    (
        *(np.maximum, np.minimum, np.bitwise_and, np.bitwise_or, np.bitwise_xor),
        *(np.logical_and, np.logical_or, np.logical_xor),
    )
)
UNROLLED = frozenset(
    (np.divide, np.floor_divide, np.remainder, np.fmod, np.hypot, np.logaddexp, np.subtract)
)
"""The functions whose inner loop computes each element alike, alone or among others."""
LONGEST = 256
"""The longest axis to unroll."""


def accumulated(
    ufunc: np.ufunc, x: Symbol, axis: Ints, dtype: DTypeLike | None = None
) -> Symbol | None:
    """Return the running results of a ufunc along an axis, or None for other ufuncs."""
    op = OPS.get(ufunc)
    if op is None or ufunc not in ASSOCIATIVE | UNROLLED:
        return None
    (place,) = axes_of(x, axis)
    x = moveaxis(_operand(ufunc, x, dtype), place, 0)
    size = x.shape[0]
    if not isinstance(size, int):
        raise ShapeError("it needs an axis of known size", got=str(x.type))
    if ufunc is np.subtract:
        return moveaxis(ops.cumulative_sum(_negated(x), axis=0, dtype=x.dtype), 0, place)
    if ufunc in UNROLLED:
        if size > LONGEST:
            problem = f"an axis of more than {LONGEST} elements is too long to unroll"
            raise GraphError(problem, got=str(x.type))
        lines = list(accumulate((x[i] for i in range(size)), op))
        return moveaxis(ops.stack(lines, axis=0), 0, place) if size else moveaxis(x, 0, place)
    step = 1
    while step < size:
        x = ops.concat([x[:step], op(x[:-step], x[step:])], axis=0)
        step *= 2
    return moveaxis(x, 0, place)


def reduced_by_ufunc(
    ufunc: np.ufunc, x: Symbol, axis: Ints | None, dtype: DTypeLike | None, keepdims: bool
) -> Symbol | None:
    """Return the result of a ufunc over one axis, or None for other ufuncs."""
    if ufunc not in ASSOCIATIVE | UNROLLED:
        return None
    axes = list(range(x.rank)) if axis is None else axes_of(x, axis)
    if len(axes) != 1:
        raise GraphError("it is reduced over one axis", fix="reduce one axis after the other")
    if x.shape[axes[0]] == 0:
        raise GraphError("nothing is there to reduce", got=str(x.type))
    results = accumulated(ufunc, x, axes[0], dtype)
    assert results is not None
    last = (*(slice(None),) * axes[0], slice(-1, None) if keepdims else -1)
    return results[last]


def reduced_at(
    ufunc: np.ufunc, x: Symbol, indices: ArrayOrNumber, axis: int, dtype: DTypeLike | None
) -> Symbol | None:
    """Return reductions of the parts of an axis between known indices; None for other ufuncs."""
    op = REDUCTIONS.get(ufunc)
    if op is None:
        return None
    if isinstance(indices, Symbol):
        raise GraphError("the sizes of the parts depend on values", fix="pass known indices")
    (place,) = axes_of(x, axis)
    size = x.shape[place]
    starts = [int(i) for i in np.asarray(indices)]
    if not isinstance(size, int) or any(not 0 <= i < size for i in starts):
        raise ShapeError(f"indices lie in an axis of known size, not {starts} in {size}")
    if op in (ops.any, ops.all):
        x = x.cast(DType.bool)
    elif dtype is not None:
        x = x.cast(dtype)
    elif op in (ops.sum, ops.prod):
        x = x.cast(ops.sum(x[(slice(0, 0),) * x.rank]).dtype)
    x = moveaxis(x, place, -1)
    ends = [*starts[1:], size]
    parts = [_part(op, x, start, end) for start, end in zip(starts, ends, strict=True)]
    return moveaxis(ops.stack(parts, axis=-1), -1, place)


def _part(op: Op, x: Symbol, start: int, end: int) -> Symbol:
    """Return the reduction of one part, which NumPy starts from its first element."""
    first = x[..., start]
    if end <= start + 1:
        return first
    if op is not ops.sum:
        return op(x[..., start:end], axis=-1)
    return first + ops.sum(x[..., start + 1 : end], axis=-1, dtype=x.dtype)


def _operand(ufunc: np.ufunc, x: Symbol, dtype: DTypeLike | None) -> Symbol:
    if ufunc.__name__.startswith("logical"):
        return x.cast(DType.bool)
    if dtype is None and ufunc in _FLOATING and not x.dtype.is_inexact:
        return x.cast(x.graph.rules.floating(x.dtype, ufunc.__name__))
    return x if dtype is None else x.cast(dtype)


_FLOATING = (np.divide, np.hypot, np.logaddexp)


def _negated(x: Symbol) -> Symbol:
    """Return elements whose running sums are the running differences of `x`."""
    if x.dtype is DType.bool:
        raise GraphError("bools have no difference", fix="use ^")
    return ops.concat([x[:1], ops.negative(x[1:])], axis=0)
