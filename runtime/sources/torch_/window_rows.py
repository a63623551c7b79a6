"""Rows of convolutions and pooling: windows are read at constant places, then contracted.

A convolution is the matrix product of the windows of its input with its weights (im2col).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from graphir import Symbol, ops
from graphir.runtime.sources.op_rows import Attribute, Emitted, known_shape
from graphir.runtime.sources.torch_.aten_rows import AtenCall, Operand, row


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
        flat = e.shaped(x, (*known_shape(x)[: -self.rank], self.size))
        places = self.places
        if not self.valid.all():
            pads = [(0, 0)] * (flat.rank - 1) + [(0, 1)]
            flat = e(ops.pad, flat, padding=pads, value=fill)
            places = np.where(self.valid, places, self.size)
        return e(ops.gather, flat, e.places(places), axis=flat.rank - 1)


def _per_axis(values: Any, rank: int) -> tuple[int, ...]:
    steps = [values] if isinstance(values, int) else [*values]
    return tuple(steps * rank if len(steps) == 1 else steps)


@row("convolution", "_convolution", "convolution_overrideable")
def _convolution(
    e: AtenCall, x: Symbol, weight: Symbol, bias: Operand, *settings: Attribute
) -> Emitted:
    """The product of halves is rounded once, with the bias.

    The answer is None for a transposed one of halves without oneDNN: PyTorch then adds the bias
    afterwards, and what overlaps in the result as halves.
    """
    stride, padding, dilation, transposed, _, groups = settings[:6]
    rank = x.rank - 2
    if rank < 1 or (e.is_half and transposed and not e.onednn(False)):
        return None
    is_wide = e.is_half and bias is not None
    if is_wide:
        x, weight, bias = (e.wide(operand) for operand in (x, weight, bias))
    spans = [_per_axis(step, rank) for step in (stride, padding, dilation)]
    size, out, kernel = (known_shape(z)[2:] for z in (x, e.type, weight))
    windows = _Windows(size, out, kernel, *spans, transposed=transposed)
    result = _product(e, windows, x, weight, groups, transposed)
    if bias is not None:
        result = e(ops.add, result, e.shaped(bias, (1, known_shape(bias)[0], *[1] * rank)))
    return e.narrow(result) if is_wide else result


def _product(
    e: AtenCall, windows: _Windows, x: Symbol, weight: Symbol, groups: int, transposed: bool
) -> Symbol:
    """Return the products of the windows of an array with weights, in the shape of the result."""
    batch, channels = known_shape(x)[0], known_shape(x)[1] // groups
    features, (places, elements) = known_shape(e.type)[1] // groups, windows.places.shape
    rows = e.shaped(windows.read(e, x, 0), (batch, groups, channels, places, elements))
    rows = e(ops.permute, rows, dims=(0, 1, 3, 2, 4))
    rows = e.shaped(rows, (batch, groups, places, channels * elements))
    if transposed:
        columns = e.shaped(weight, (groups, channels, features, elements))
        columns = e(ops.permute, columns, dims=(0, 1, 3, 2))
        columns = e.shaped(columns, (groups, channels * elements, features))
    else:
        columns = e(ops.transpose, e.shaped(weight, (groups, features, channels * elements)))
    return e.shaped(e(ops.transpose, e(ops.matmul, rows, columns)), known_shape(e.type))


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
    return _Windows(known_shape(x)[-rank:], known_shape(e.type)[-rank:], kernel, *steps)
