"""Reductions that start from a value, `initial=`, or leave out elements, `where=`.

An element that the mask leaves out becomes the neutral element, and the start is one more operand.
For integers, extremes and truths that is exact. Of floats NumPy multiplies one after the other; it
adds them pairwise along the last axis, in the runs that a mask leaves there, and one after the
other along the axes before. So a sum of floats has NumPy's bits if it starts from a value, or if
its mask lies on the axes before the last; any other is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NoReturn

import numpy as np

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphError, ShapeError
from graphir.ir.symbol import Symbol
from graphir.numpy_api.movement import axes_of
from graphir.numpy_api.traced_numbers import TracedNumber, concrete
from graphir.numpy_api.ufuncs import OpAdder
from graphir.ops.op import Op

UNSET: Any = object()
"""The default of `initial=`: NumPy takes None for a reduction without a start."""

_COMBINING = {
    ops.sum: ops.add,
    ops.prod: ops.multiply,
    ops.max: ops.maximum,
    ops.min: ops.minimum,
    ops.any: ops.logical_or,
    ops.all: ops.logical_and,
}
"""The op of two operands that each reduction repeats."""
_NEUTRAL = {ops.sum: 0, ops.prod: 1, ops.any: False, ops.all: True}
_BUFFER = 8192
"""The number of elements that NumPy casts at a time; it adds up each such part by itself."""


def reduced(
    build: OpAdder,
    op: Op,
    x: Symbol,
    axis: Any = None,
    keepdims: Any = False,
    dtype: Any = None,
    initial: Any = UNSET,
    where: Any = True,
) -> Symbol:
    """Return a reduction with NumPy's arguments, by ops that have NumPy's bits.

    The function raises GraphError for a sum or product of floats whose order no op has.
    """
    where = True if where is np.True_ else where
    settings: dict[str, Any] = {"axis": axis, "keepdims": bool(keepdims)}
    if dtype is not None:
        settings["dtype"] = dtype
    if initial is UNSET and where is True:
        return build.emit(op, (x,), **settings)
    axes = list(range(x.rank)) if axis is None else axes_of(x, axis)
    result = build.graph.infer(op, (x,), {**settings, "axis": tuple(axes)}).type
    if op in (ops.any, ops.all):
        x = build.cast(x, DType.bool)
    start = UNSET if initial is UNSET else _start(build, op, initial, result.dtype)
    if where is not True:
        neutral = _NEUTRAL.get(op, start)
        if neutral is UNSET:
            raise GraphError(f"{op.name} with where= needs a start", fix="pass initial=")
        whole, x = x, masked(build, x, where, neutral)
        _check_mask(op, whole, axes, result.dtype)
    if start is UNSET:
        return build.emit(op, (x,), **settings)
    if 0 in [x.shape[i] for i in axes]:
        return build.emit(ops.broadcast_to, (start,), shape=result.shape)
    if op in (ops.sum, ops.prod) and _is_inexact(result.dtype):
        total = _sum_from if op is ops.sum else _product_from
        return build.emit(
            ops.reshape, (total(build, x, axes, start, result.dtype),), shape=result.shape
        )
    return build.emit(_COMBINING[op], (build.emit(op, (x,), **settings), start))


def masked(build: OpAdder, x: Symbol, mask: Any, neutral: Any) -> Symbol:
    """Return a symbol with a neutral element where a mask is false."""
    if type(mask) is TracedNumber:
        mask = concrete(mask)
    mask = mask if isinstance(mask, Symbol) else np.asarray(mask)
    if mask.dtype != np.bool_:
        raise GraphError("where= takes bools", got=str(mask.dtype), fix="use mask.astype(bool)")
    if not isinstance(neutral, Symbol):
        neutral = x.dtype.to_numpy().type(neutral)
    result = build.emit(ops.where, build.operands(ops.where, (mask, x, neutral)))
    if result.shape != x.shape:
        raise ShapeError("where= does not broadcast to the operand", got=f"{result.type}, {x.type}")
    return result


def true_count(build: OpAdder, x: Symbol, mask: Any, axis: Any, keepdims: Any) -> Symbol:
    """Return the number of elements that a reduction with a mask takes, as int64."""
    ones = build.emit(ops.full, (), dtype=DType.int64, value=1, shape=x.shape)
    return reduced(build, ops.sum, ones, axis, keepdims, where=mask)


def shared_out(build: OpAdder, total: Symbol, count: Symbol) -> Symbol:
    """Return a quotient, computed in 64 bits a part and rounded to the dtype of the total."""
    wide = DType.complex128 if total.dtype.is_complex else DType.float64
    return build.cast(
        build.emit(ops.divide, (build.cast(total, wide), build.cast(count, wide))), total.dtype
    )


def mean(build: OpAdder, x: Symbol, axis: Any, keepdims: Any, mask: Any) -> Symbol:
    """Return the mean of the elements where a mask is true."""
    to = build.graph.infer(ops.mean, (x,), {"axis": ()}).type.dtype
    wide = DType.float32 if to is DType.float16 else to
    total = reduced(build, ops.sum, x, axis, keepdims, wide, where=mask)
    return build.cast(shared_out(build, total, true_count(build, x, mask, axis, keepdims)), to)


def variance(
    build: OpAdder, x: Symbol, axis: Any, keepdims: Any, mask: Any, correction: int
) -> Symbol:
    """Return the variance of the elements where a mask is true."""
    to = build.graph.infer(ops.mean, (x,), {"axis": ()}).type.dtype
    total = reduced(build, ops.sum, x, axis, True, to, where=mask)
    count = true_count(build, x, mask, axis, True)
    off = build.emit(ops.subtract, (build.cast(x, to), shared_out(build, total, count)))
    parts = [build.emit(part, (off,)) for part in (ops.real, ops.imag)] if to.is_complex else [off]
    squares = [build.emit(ops.multiply, (part, part)) for part in parts]
    square = build.emit(ops.add, tuple(squares)) if to.is_complex else squares[0]
    freedom = true_count(build, x, mask, axis, keepdims)
    over = build.operands(ops.subtract, (freedom, np.int64(correction)))
    freedom = build.emit(ops.subtract, over)
    freedom = build.emit(ops.maximum, build.operands(ops.maximum, (freedom, np.int64(0))))
    return shared_out(build, reduced(build, ops.sum, square, axis, keepdims, where=mask), freedom)


# -- starts


def _start(build: OpAdder, op: Op, initial: Any, to: DType) -> Any:
    """Return the start of a reduction as a symbol in the result's dtype, as NumPy casts it."""
    inexact = op in (ops.sum, ops.prod) and _is_inexact(to)
    if type(initial) is TracedNumber:
        initial = concrete(initial)
    if isinstance(initial, Symbol):
        if initial.rank:
            raise GraphError("initial= takes a number", got=str(initial.type))
        if inexact:
            _refuse(op, "the start may be -0.0", f"write initial + x.{op.name}()")
        return build.cast(initial, to)
    if initial is None:
        if op in (ops.max, ops.min):
            return UNSET
        _refuse(op, "initial=None", "leave initial= out")
    cell: Any = np.empty((), to.to_numpy())
    try:
        cell[()] = initial
    except (TypeError, ValueError, OverflowError) as error:
        raise GraphError(f"initial={initial!r} is not representable in {to}: {error}") from None
    is_negative_zero = not cell and bool(np.signbit(cell.real))
    if op in (ops.sum, ops.prod) and cell == _NEUTRAL[op] and not is_negative_zero:
        return UNSET  # from which NumPy starts anyhow
    if inexact and (to is DType.float16 or is_negative_zero):
        _refuse(op, f"initial={initial!r} of {to}", f"write initial + x.{op.name}()")
    return build.graph.full(cell.item(), (), to)


def _sum_from(build: OpAdder, x: Symbol, axes: list[int], start: Symbol, to: DType) -> Symbol:
    """Return a sum of floats from a start, over the last axes or over one axis before them."""
    axes, last = _long_axes(x, axes)
    if axes == last[len(last) - len(axes) :]:
        size = prod(n for n in x.shape if isinstance(n, int))
        if x.dtype is not to and (size > _BUFFER or not _has_known_sizes(x)):
            _refuse(ops.sum, f"{x.type} in {to} from a start", "use x.astype(...) first")
        return build.emit(ops.add, (build.emit(ops.sum, (x,), axis=tuple(axes), dtype=to), start))
    if len(axes) > 1:
        _refuse(ops.sum, f"axes {axes} of {x.type} from a start", "reduce one axis after the other")
    return _from_start(build, ops.sum, x, axes[0], start, to)


def _product_from(build: OpAdder, x: Symbol, axes: list[int], start: Symbol, to: DType) -> Symbol:
    """Return a product of floats from a start; the reduced axes become one, after the others."""
    if to.is_complex:
        _refuse(ops.prod, f"{x.type} from a start", "write initial * x.prod()")
    others = [i for i in range(x.rank) if i not in axes]
    x = build.emit(ops.permute, (x,), dims=(*others, *sorted(axes)))
    x = build.emit(ops.reshape, (x,), shape=(*x.shape[: len(others)], -1))
    return _from_start(build, ops.prod, x, len(others), start, to)


def _from_start(build: OpAdder, op: Op, x: Symbol, axis: int, start: Symbol, to: DType) -> Symbol:
    """Return the reduction of an axis that begins with the start."""
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    first = build.emit(ops.broadcast_to, (start,), shape=shape)
    line = build.emit(ops.concat, (first, build.cast(x, to)), axis=axis)
    return build.emit(op, (line,), axis=(axis,))


# -- order


def _check_mask(op: Op, x: Symbol, axes: Sequence[int], to: DType) -> None:
    """Raise GraphError if the order in which NumPy reduces floats depends on the mask."""
    if op not in (ops.sum, ops.prod) or not _is_inexact(to):
        return
    if to is DType.float16 or (op is ops.prod and to.is_complex):
        _refuse(op, f"{to} with where=", "use x.astype(...) first, or np.where(mask, x, y)")
    if op is ops.prod:
        return
    long, every = _long_axes(x, axes)
    exact = not _is_inexact(x.dtype) and _has_known_sizes(x)
    if exact:
        count = prod(int(str(x.shape[i])) for i in axes)
        exact = x.dtype.precision + count.bit_length() <= to.precision
    if every and every[-1] in long and not exact:
        _refuse(
            op,
            f"{x.type} in {to} with where= along the last axis",
            "write np.where(mask, x, 0).sum(axis), which adds in another order, "
            "and divide by mask.sum(axis) for a mean",
        )


def _long_axes(x: Symbol, axes: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the reduced axes and all axes, without those of size 1, in order."""
    every = [i for i, size in enumerate(x.shape) if size != 1]
    return [i for i in every if i in axes], every


def _has_known_sizes(x: Symbol) -> bool:
    return all(isinstance(size, int) for size in x.shape)


def _is_inexact(dtype: DType) -> bool:
    return dtype.is_float or dtype.is_complex


def _refuse(op: Op, got: str, fix: str) -> NoReturn:
    raise GraphError("no op has NumPy's order of operations", got=f"{op.name} of {got}", fix=fix)
