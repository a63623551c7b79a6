"""Layouts of operands: the stride signature that selects a kernel, and the record it runs on.

The layout merges neighbouring axes whose strides allow that for all operands. The merged inner axis
is the row over which a kernel vectorizes; the kernel steps over the other axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from graphir.hints import Array
from graphir.runtime.native.region_writer import Kind, ShortAxis
from graphir.runtime.program.cost_model import (
    COST,
    KEPT_LAYOUTS,
    NATIVE_VECTOR,
    OTHER_STRIDE_KINDS,
    STRIDE_KINDS,
)

Shape: TypeAlias = tuple[int, ...]
Kinds: TypeAlias = tuple[Kind, ...]
Operand: TypeAlias = tuple[Shape, Shape, int]
"""The shape of an operand, its strides in bytes, and the bytes of an element."""

Axis: TypeAlias = tuple[int, list[int]]
"""The size of an axis, and the strides in bytes of all operands along it."""

ResultSizes: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""The bytes of an element of each result, and of an element of each sum of rows."""


class StrideLayout(NamedTuple):
    """The stride signature of inputs, the record of a kernel, and the shapes of copied inputs.

    The record has 64-bit words: the base addresses of inputs, results and sums, which the caller
    fills in; the number of axes; and for each axis the size and the strides of all operands. The
    first axis is the row. If the kernel reads copies, `copies` has the shape to which each input is
    broadcast for its copy.
    """

    kinds: Kinds
    record: tuple[int, ...]
    copies: tuple[Shape, ...] = ()

    def read(self, arrays: Sequence[Array]) -> Sequence[Array]:
        """Return the inputs in the form that the kernel reads: themselves, or their copies."""
        if not self.copies:
            return arrays
        both = zip(arrays, self.copies, strict=True)
        return [np.ascontiguousarray(np.broadcast_to(array, shape)) for array, shape in both]


def stride_layout(
    shape: Shape,
    axes: int,
    inputs: tuple[Operand, ...],
    result_sizes: ResultSizes,
    short: int,
    results: tuple[Operand, ...] = (),
) -> StrideLayout | None:
    """Return the layout of inputs and results for an iteration space of `shape`.

    The results have C order, unless `results` are their layouts.

    The last `axes` axes of the results are one row; with 0 the layout chooses the row. If the
    inputs have no common row, or have more than `short` rows that are shorter than a vector, the
    kernel reads copies, in which several rows are one; a broadcast operand is repeated in its copy.
    The answer is None if copies do not help either.
    """
    limits = COST.SHORT_AXIS, COST.PERIOD
    return _layout(shape, axes, inputs, result_sizes, short, results, limits)


@lru_cache(KEPT_LAYOUTS)
def _layout(
    shape: Shape,
    axes: int,
    inputs: tuple[Operand, ...],
    result_sizes: ResultSizes,
    short: int,
    results: tuple[Operand, ...],
    limits: tuple[int, int],
) -> StrideLayout | None:
    """Return the layout of `stride_layout`; `limits` are SHORT_AXIS and PERIOD."""
    short_axis, most_period = limits
    layout = _rows(shape, axes, inputs, result_sizes, short, results)
    if layout is None and not (axes or results):
        layout = _rows_of_short(shape, inputs, result_sizes, short, short_axis)
    if layout is not None or results:
        return layout
    periods = [0 if axes else _period(shape, own, most_period) for own, _, _ in inputs]
    longest = max(periods, default=0)
    row = longest and longest * -(-most_period // longest)
    rows = (-(-math.prod(shape) // row), row) if row else shape
    copies: list[Shape] = []
    operands_read: list[Operand] = []
    for (own, _, size), period in zip(inputs, periods, strict=True):
        copy_shape, lies = ((row // period, *own), rows[-1:]) if period else (shape, rows)
        single = math.prod(own) == 1
        copies.append(own if single else copy_shape)
        operands_read.append(_whole(own if single else lies, size))
    layout = _rows(rows, axes, operands_read, result_sizes, 1)
    return layout and layout._replace(copies=tuple(copies))


def _rows(
    shape: Shape,
    axes: int,
    inputs: Sequence[Operand],
    result_sizes: ResultSizes,
    short: int,
    results: Sequence[Operand] = (),
) -> StrideLayout | None:
    """Return the layout of inputs without copies; None if the rows are unfit."""
    lead, (sizes, sums) = len(shape) - axes if axes else 0, result_sizes
    sum_shape = (*shape[:lead], *[1] * axes)
    outs = results or [_whole(shape, n) for n in sizes]
    operands = [
        *inputs,
        *outs,
        *[_whole(sum_shape, n) for n in sums],
    ]
    along = _axes(shape, operands)
    row = _merge_axes(along[lead:]) or [(1, [0] * len(operands))]
    axes_found = [*row, *_merge_axes(along[:lead])]
    inner, by = axes_found[0]
    if (axes and len(row) > 1) or (inner < NATIVE_VECTOR and math.prod(shape) > inner * short):
        return None
    steps = by[len(inputs) : len(inputs) + len(outs)]
    if inner > 1 and steps != [size for _, _, size in outs]:
        return None
    kinds = tuple(
        [_kind(inner, stride, *operand) for stride, operand in zip(by, inputs, strict=False)]
    )
    return StrideLayout(kinds, _record(len(operands), axes_found))


def _rows_of_short(
    shape: Shape, inputs: Sequence[Operand], result_sizes: ResultSizes, short: int, longest: int
) -> StrideLayout | None:
    """Return the layout whose row merges a short last axis with axes before it; None if unfit.

    The short axis has at most `longest` elements.
    Each input is contiguous along the row, or broadcast along the short axis or to all axes before.
    """
    if len(shape) < 2 or not 1 < shape[-1] <= longest:
        return None
    size = shape[-1]
    operands = [*inputs, *[_whole(shape, n) for n in result_sizes[0]]]
    *before, (_, last) = _axes(shape, operands)
    outer = _merge_axes(before)
    (count, steps), kinds = outer[0] if outer else (1, []), list[Kind]()
    row = count * size
    if not steps or (row < NATIVE_VECTOR and math.prod(shape) > row * short):
        return None
    for along, across, (_, _, item) in zip(last, steps, operands, strict=True):
        fits = {
            (item, item * size): 1,
            (0, 0): 0,
            (0, item): ShortAxis(size, repeated=True),
            (item, 0): ShortAxis(size, repeated=False),
        }
        if (along, across) not in fits:
            return None
        kinds.append(fits[along, across])
    record = _record(len(operands), [(row, last), *outer[1:]])
    return StrideLayout(tuple(kinds[: len(inputs)]), record)


def _axes(shape: Shape, operands: Sequence[Operand]) -> list[Axis]:
    """Return the axes of the iteration space of `shape`."""
    strides = [
        [0] * (len(shape) - len(own)) + [by * (n != 1) for n, by in zip(own, steps, strict=True)]
        for own, steps, _ in operands
    ]
    return [(size, [operand[k] for operand in strides]) for k, size in enumerate(shape)]


def _record(count: int, axes: Sequence[Axis]) -> tuple[int, ...]:
    """Return the record of a kernel of `count` operands, without their addresses."""
    words = [word for size, steps in axes for word in (size, *steps)]
    return (*[0] * count, len(axes), *words)


def _merge_axes(axes: Sequence[Axis]) -> list[Axis]:
    """Return the axes from the last to the first, with neighbours merged.

    Two neighbours merge if for each operand the outer stride is the size of the inner axis times
    the inner stride. Axes of size 1 are dropped.
    """
    merged_axes: list[Axis] = []
    for size, steps in reversed(axes):
        if merged_axes and steps == [merged_axes[-1][0] * by for by in merged_axes[-1][1]]:
            merged_axes[-1] = merged_axes[-1][0] * size, merged_axes[-1][1]
        elif size != 1:
            merged_axes.append((size, steps))
    return merged_axes


def _kind(inner: int, stride: int, own: Shape, _: Shape, size: int) -> Kind:
    if inner == 1:
        return 1 if own else 0  # the same kernel serves rows of more elements
    count = stride // size
    is_kind = count in STRIDE_KINDS.get(size, OTHER_STRIDE_KINDS)
    return count if stride == count * size and is_kind else None


def _period(shape: Shape, own: Shape, longest: int) -> int:
    """Return the period of a broadcast operand in elements, if it is at most `longest`; else 0."""
    while own and own[0] == 1:
        own = own[1:]
    repeats, size = own == shape[len(shape) - len(own) :], math.prod(own)
    return size if repeats and len(own) < len(shape) and 1 < size <= longest else 0


def _whole(shape: Shape, size: int) -> Operand:
    """Return the operand of an array in C order; `size` is the bytes of an element."""
    return shape, tuple([size * math.prod(shape[i + 1 :]) for i in range(len(shape))]), size
