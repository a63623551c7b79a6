"""Rows of convolutions and pooling: windows are read at constant places, then contracted.

A convolution is the matrix product of the windows of its input with its weights (im2col).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from graphir.public import DType, Symbol, ops
from graphir.runtime.sources.op_rows import Attribute, Emitted
from graphir.runtime.sources.torch_.aten_rows import AtenCall, Operand, row, sizes


class _Windows:
    """The windows along the last axes of an array: for each place of the result, its elements.

    `valid` says which of these elements are in the array, and `places` where they are there.
    """

    def __init__(
        self,
        size: Sequence[int],
        out: Sequence[int],
        kernel: Sequence[int],
        *steps: Sequence[int],
        transposed: bool = False,
    ) -> None:
        self.rank = len(kernel)
        grids: list[Any] = []
        for axis, (count, width) in enumerate(zip(out, kernel, strict=True)):
            stride, padding, dilation = (step[axis] for step in steps)
            if transposed:  # the places whose window in the result has each place of the result
                grid = np.arange(count)[:, None] + padding - np.arange(width) * dilation
                grid = np.where(grid % stride, -1, grid // stride)
            else:
                grid = np.arange(count)[:, None] * stride - padding + np.arange(width) * dilation
            shape = [1] * (2 * self.rank)
            shape[axis], shape[self.rank + axis] = grid.shape
            grids.append(grid.reshape(shape))
        places: Any = 0
        valid: Any = True
        for grid, whole in zip(grids, size, strict=True):
            valid = valid & (grid >= 0) & (grid < whole)
            places = places * whole + grid
        shape = prod(out), prod(kernel)
        self.size = prod(size)
        self.valid = np.broadcast_to(valid, (*out, *kernel)).reshape(shape)
        self.places = np.broadcast_to(places, (*out, *kernel)).reshape(shape)

    def read(self, e: AtenCall, x: Symbol, fill: float) -> Symbol:
        """Return the windows of an array as two axes: places of the result, elements."""
        flat = e.shaped(x, (*sizes(x)[: -self.rank], self.size))
        places = self.places
        if not self.valid.all():
            pads = [(0, 0)] * (flat.rank - 1) + [(0, 1)]
            flat = e(ops.pad, flat, padding=pads, value=fill)
            places = np.where(self.valid, places, self.size)
        return e(ops.gather, flat, e.places(places), axis=flat.rank - 1)


def _per_axis(values: int | Sequence[int], rank: int) -> tuple[int, ...]:
    steps = [values] if isinstance(values, int) else [*values]
    return tuple(steps * rank if len(steps) == 1 else steps)


class _Convolution:
    """A convolution of x to a shape, or the transposed one; its windows are read at construction.

    The axes of `windows` are batch, group, channel of a group, place of the result, element.
    """

    def __init__(
        self, e: AtenCall, x: Symbol, shape: Sequence[int], kernel: Sequence[int], *steps: Any
    ) -> None:
        self.e, (*spans, transposed, self.groups) = e, steps
        rank = len(kernel)
        spans = [_per_axis(step, rank) for step in spans]
        windows = _Windows(sizes(x)[2:], shape[2:], kernel, *spans, transposed=transposed)
        self.batch, self.channels = sizes(x)[0], sizes(x)[1] // self.groups
        self.elements, self.places, self.transposed = prod(kernel), prod(shape[2:]), transposed
        axes = (self.batch, self.groups, self.channels, self.places, self.elements)
        self.windows = e.shaped(windows.read(e, x, 0), axes)
        self.features, self.shape = shape[1] // self.groups, shape

    def product(self, weight: Symbol) -> Symbol:
        """Return the products of the windows with weights."""
        e, inner = self.e, self.channels * self.elements
        rows = e(ops.permute, self.windows, dims=(0, 1, 3, 2, 4))
        rows = e.shaped(rows, (self.batch, self.groups, self.places, inner))
        if self.transposed:
            axes = (self.groups, self.channels, self.features, self.elements)
            columns = e(ops.permute, e.shaped(weight, axes), dims=(0, 1, 3, 2))
            columns = e.shaped(columns, (self.groups, inner, self.features))
        else:
            columns = e(ops.transpose, e.shaped(weight, (self.groups, self.features, inner)))
        return e.shaped(e(ops.transpose, e(ops.matmul, rows, columns)), self.shape)

    def rounded_sums(self, weight: Symbol) -> Symbol:
        """Return the products with weights, added by elements of the kernel in their own dtype."""
        e, total = self.e, None
        weight = e.shaped(weight, (self.groups, self.channels, self.features, self.elements))
        for element in range(self.elements):
            last = e.graph.scalar(element, DType.int64)
            rows = e(ops.gather, self.windows, last, axis=4)
            rows = e(ops.permute, rows, dims=(0, 1, 3, 2))
            term = e(ops.matmul, rows, e(ops.gather, weight, last, axis=3))
            total = term if total is None else e(ops.add, total, term)
        return e.shaped(e(ops.transpose, total), self.shape)

    def weight_gradient(self, gradient: Symbol, weight: Symbol) -> Symbol:
        """Return the gradient of the weights of a convolution that is not transposed."""
        e, count = self.e, self.batch * self.places
        axes = (self.batch, self.groups, self.features, self.places)
        rows = e(ops.permute, e.shaped(gradient, axes), dims=(1, 2, 0, 3))
        rows = e.shaped(rows, (self.groups, self.features, count))
        columns = e(ops.permute, self.windows, dims=(1, 0, 3, 2, 4))
        columns = e.shaped(columns, (self.groups, count, self.channels * self.elements))
        return e.shaped(e(ops.matmul, rows, columns), weight.shape)


@row("convolution", "_convolution", "convolution_overrideable")
def _convolution(
    e: AtenCall, x: Symbol, weight: Symbol, bias: Operand, *settings: Attribute
) -> Emitted:
    """The product of halves is rounded once, with the bias.

    Without oneDNN, PyTorch adds the bias of a transposed one afterwards, and what overlaps in the
    result as halves.
    """
    stride, padding, dilation, transposed, _, groups = settings[:6]
    rank = x.rank - 2
    if rank < 1:
        return None
    has_steps = e.is_half and transposed and not e.onednn(False)
    is_wide = e.is_half and bias is not None and not has_steps
    if is_wide:
        x, weight, bias = (e.wide(operand) for operand in (x, weight, bias))
    steps = stride, padding, dilation, transposed, groups
    layer = _Convolution(e, x, sizes_of(e), sizes(weight)[2:], *steps)
    result = layer.rounded_sums(weight) if has_steps else layer.product(weight)
    if bias is not None:
        result = e(ops.add, result, e.shaped(bias, (1, sizes(bias)[0], *[1] * rank)))
    return e.narrow(result) if is_wide else result


@row("convolution_backward")
def _convolution_backward(
    e: AtenCall,
    gradient: Symbol,
    x: Symbol,
    weight: Symbol,
    bias_sizes: Operand,
    *settings: Attribute,
) -> Emitted:
    stride, padding, dilation, transposed, _, groups, mask = settings
    if transposed or x.rank < 3:
        return None
    kernel, steps = sizes(weight)[2:], (stride, padding, dilation)
    results: list[Symbol] = []
    if mask[0]:
        inner = _Convolution(e, gradient, sizes(x), kernel, *steps, True, groups)
        results.append(inner.product(weight))
    if mask[1]:
        outer = _Convolution(e, x, sizes(gradient), kernel, *steps, False, groups)
        results.append(outer.weight_gradient(gradient, weight))
    if mask[2]:
        results.append(e(ops.sum, gradient, axis=(0, *range(2, x.rank))))
    return results


def sizes_of(e: AtenCall) -> tuple[int, ...]:
    """Return the shape of the first result."""
    return tuple(int(size) for size in e.type.shape)  # pyright: ignore[reportArgumentType]


@row("max_pool2d_with_indices", "max_pool3d_with_indices")
def _max_pool(
    e: AtenCall, x: Symbol, kernel: Operand, stride: Operand = (), *settings: Attribute
) -> Emitted:
    """The places of equal values are those of the first."""
    if not x.dtype.is_float:
        return None
    padding, dilation, _ = (*settings, *(0, 1, False)[len(settings) :])
    windows = _pooling_windows(e, x, kernel, stride, padding, dilation)
    values = windows.read(e, x, float("-inf"))
    order = e(ops.argmax, values, axis=-1, keepdims=True)
    places = e.spread(e.places(windows.places), values.shape)
    indices = e(ops.take_along, places, order, axis=values.rank - 1)
    best = e(ops.max, values, axis=(-1,))
    return [e.shaped(best, e.type.shape), e.shaped(indices, e.type.shape)]


@row("avg_pool2d", "avg_pool3d", "avg_pool1d")
def _avg_pool(
    e: AtenCall, x: Symbol, kernel: Operand, stride: Operand = (), *settings: Attribute
) -> Emitted:
    padding, ceil, with_padding, divisor = (*settings, *(0, False, True, None)[len(settings) :])
    if ceil:
        return None
    windows = _pooling_windows(e, x, kernel, stride, padding, 1)
    total = e(ops.sum, windows.read(e, x, 0), axis=(-1,))
    counts: Any = windows.valid.sum(1)
    if divisor or with_padding or (counts == counts[0]).all():
        uniform = divisor or (windows.valid.shape[1] if with_padding else int(counts[0]))
        return e.shaped(e(ops.divide, total, uniform), e.type.shape)
    counts = e.graph.constant_of((x.dtype, counts.astype(x.dtype.storage)))
    return e.shaped(e(ops.divide, total, counts), e.type.shape)


def _pooling_windows(
    e: AtenCall, x: Symbol, kernel: Operand, stride: Operand, padding: Operand, dilation: Operand
) -> _Windows:
    rank = len(kernel)
    steps = [_per_axis(step, rank) for step in (stride or kernel, padding, dilation)]
    return _Windows(sizes(x)[-rank:], sizes_of(e)[-rank:], kernel, *steps)
