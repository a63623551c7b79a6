"""Ops over axes in StableHLO: reductions, rows, sorting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphir import DType, TensorType
from graphir.runtime.targets.stablehlo_.movement import picked
from graphir.runtime.targets.stablehlo_.order import before, maximum, minimum
from graphir.runtime.targets.stablehlo_.text import dense, ints
from graphir.runtime.targets.stablehlo_.values import HloValue, Sizes, where

Pair = Callable[[HloValue, HloValue], HloValue]


# -- reductions


def reduced(function: Pair, init: Callable[[DType], Any]) -> Callable[..., HloValue]:
    """Return the emitter of a reduction by a function of two values.

    `init(dtype)` is the neutral element of the function.
    """

    def row(x: HloValue, axis: Sizes, keepdims: bool) -> HloValue:
        return _keep_axes(x.reduce(function, init(x.dtype), axis), x, axis, keepdims)

    return row


def _keep_axes(result: HloValue, x: HloValue, axis: Sizes, keepdims: bool) -> HloValue:
    """Return a reduction's result; under `keepdims` the reduced axes stay, with size 1."""
    if not keepdims:
        return result
    return result.reshape(tuple(1 if i in axis else size for i, size in enumerate(x.shape)))


total = reduced(HloValue.__add__, lambda dtype: 0)
product = reduced(HloValue.__mul__, lambda dtype: 1)
any_of = reduced(HloValue.__or__, lambda dtype: False)
all_of = reduced(HloValue.__and__, lambda dtype: True)


def extreme(function: Pair, ends: Callable[[DType], Any]) -> Callable[..., HloValue]:
    """Return the emitter of a maximum or minimum.

    The emitter raises NotImplementedError for an empty axis. `ends(dtype)` is the start value.
    """
    row = reduced(function, ends)

    def check_input(x: HloValue, axis: Sizes, keepdims: bool) -> HloValue:
        if any(not x.shape[i] for i in axis):
            raise NotImplementedError(
                f"has no maximum or minimum over an empty axis, as in {x.type}"
            )
        return row(x, axis, keepdims)

    return check_input


def least(dtype: DType) -> Any:
    """Return the least value of a dtype."""
    return dtype.min if dtype.format is None else _end(dtype, -math.inf)


def greatest(dtype: DType) -> Any:
    """Return the greatest value of a dtype."""
    return dtype.max if dtype.format is None else _end(dtype, math.inf)


def _end(dtype: DType, end: float) -> Any:
    return complex(end, end) if dtype.is_complex else end


greatest_of = extreme(maximum, least)
least_of = extreme(minimum, greatest)


def located(name: str) -> Callable[..., HloValue]:
    """Return the emitter of argmax or argmin of real values: the int64 index, NaN first."""

    def row(x: HloValue, axis: int | None, keepdims: bool) -> HloValue:
        axes = tuple(range(x.rank)) if axis is None else (axis,)
        over = {"max": greatest_of, "min": least_of}[name]
        hit = x.eq(_spread(over(x, axes, False), x, axes))
        hit = hit | x.ne(x) if x.dtype.is_float else hit
        if axis is None:
            flat = x.body.iota(DType.int64, (math.prod(x.shape),), 0).reshape(x.shape)
        else:
            flat = x.body.iota(DType.int64, x.shape, axis)
        first = where(hit, flat, DType.int64.max)
        return _keep_axes(first.reduce(minimum, DType.int64.max, axes), x, axes, keepdims)

    return row


def _spread(reduced_value: HloValue, x: HloValue, axes: Sizes) -> HloValue:
    """Return a reduction's result, broadcast back to the shape of `x`."""
    return reduced_value.broadcast(x.shape, [i for i in range(x.rank) if i not in axes])


# -- rows


def accumulated(function: Pair, init: Any) -> Callable[..., HloValue]:
    """Return the emitter of a scan by a function of two values, with neutral element `init`."""

    def row(x: HloValue, axis: int) -> HloValue:
        size, shape = x.shape[axis], [1] * x.rank
        if not math.prod(x.shape):
            return x
        shape[axis] = size
        padding = np.zeros((x.rank, 2), np.int64)
        padding[axis, 0] = size - 1
        region = x.body.region([TensorType(x.dtype)] * 2, function)
        windows = {"window_dimensions": ints(shape), "padding": dense(padding, DType.int64)}
        return x.body.emit("reduce_window", [x, x.number(init)], x.type, region, **windows)

    return row


# -- sorting


def sort(x: HloValue, axis: int, descending: bool, stable: bool) -> HloValue:
    """Return the values in the stable ascending order, NaN last.

    Other orders have a decomposition, so `descending` is False and `stable` True here.
    """
    return _sorted([x], axis)[0]


def argsort(x: HloValue, axis: int, descending: bool, stable: bool) -> HloValue:
    """Return the int64 indices of the stable ascending order, NaN last.

    Other orders have a decomposition, so `descending` is False and `stable` True here.
    """
    return _sorted([x, x.body.iota(DType.int64, x.shape, axis)], axis)[1]


def _sorted(values: Sequence[HloValue], axis: int) -> list[HloValue]:
    """Return all arrays, in the order that sorts the first array; the sort is stable."""
    scalars = [TensorType(value.dtype) for value in values for _ in range(2)]

    def compare(x: HloValue, y: HloValue, *others: HloValue) -> HloValue:
        return before(x, y)

    region = values[0].body.region(scalars, compare)
    types = [value.type for value in values]
    attrs = {"dimension": f"{axis} : i64", "is_stable": "true"}
    return values[0].body.line("sort", values, types, region, **attrs)


def searchsorted(x: HloValue, values: HloValue, side: str) -> HloValue:
    """Return the insertion points of values in a sorted vector, by binary search.

    Each step decides one bit of the insertion point.
    """
    size = x.shape[0]
    count = x.body.iota(DType.int64, (1,), 0).reshape(()).broadcast(values.shape)
    for bit in reversed(range(size.bit_length())):
        further = count + (1 << bit)
        there = picked(x, where(further > size, size, further) - 1, 0)
        ahead = before(there, values) if side == "left" else ~before(values, there)
        count = where((further <= size) & ahead, further, count)
    return count
