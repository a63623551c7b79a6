"""Rows of convolutions and pooling: windows are read at constant places, then contracted.

A convolution is the matrix product of the windows of its input with its weights (im2col).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from graphir import Symbol, ops
from runtime.sources.torch_.rows import ROWS, RowCall, row, sizes

__all__ = ["ROWS"]


class _Windows:
    """The windows along the last axes of an array: for each place of the result, its elements.

    `valid` says which of these elements are in the array, and `places` where they are there.
    """

    def __init__(
        self, size: Sequence[int], out: Sequence[int], kernel: Sequence[int], *steps: Sequence[int]
    ) -> None:
        self.rank = len(kernel)
        grids: list[Any] = []
        for axis, (count, width) in enumerate(zip(out, kernel, strict=True)):
            stride, padding, dilation = (step[axis] for step in steps)
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

    def read(self, e: RowCall, x: Symbol, fill: float) -> Symbol:
        """Return the windows of an array as two axes: places of the result, elements."""
        flat = e.shaped(x, (*sizes(x)[: -self.rank], self.size))
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
def _convolution(e: RowCall, x: Any, weight: Any, bias: Any, *settings: Any) -> Any:
    stride, padding, dilation, transposed, _, groups = settings[:6]
    rank = x.rank - 2
    if transposed or rank < 1:
        return None
    out, kernel = sizes_of(e)[2:], sizes(weight)[2:]
    steps = [_per_axis(step, rank) for step in (stride, padding, dilation)]
    windows = _Windows(sizes(x)[2:], out, kernel, *steps).read(e, x, 0)
    batch, channels, features = sizes(x)[0], sizes(x)[1] // groups, sizes(weight)[0] // groups
    shape = (batch, groups, channels, prod(out), prod(kernel))
    windows = e(ops.permute, e.shaped(windows, shape), dims=(0, 1, 3, 2, 4))
    rows = e.shaped(windows, (batch, groups, prod(out), channels * prod(kernel)))
    columns = e(ops.transpose, e.shaped(weight, (groups, features, channels * prod(kernel))))
    product = e(ops.transpose, e(ops.matmul, rows, columns))
    result = e.shaped(product, e.type.shape)
    if bias is None:
        return result
    return e(ops.add, result, e.shaped(bias, (1, groups * features, *[1] * rank)))


def sizes_of(e: RowCall) -> tuple[int, ...]:
    """Return the shape of the first result."""
    return tuple(int(size) for size in e.type.shape)  # pyright: ignore[reportArgumentType]


@row("max_pool2d_with_indices", "max_pool3d_with_indices")
def _max_pool(e: RowCall, x: Any, kernel: Any, stride: Any = (), *settings: Any) -> Any:
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
def _avg_pool(e: RowCall, x: Any, kernel: Any, stride: Any = (), *settings: Any) -> Any:
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
    e: RowCall, x: Symbol, kernel: Any, stride: Any, padding: Any, dilation: Any
) -> _Windows:
    rank = len(kernel)
    steps = [_per_axis(step, rank) for step in (stride or kernel, padding, dilation)]
    return _Windows(sizes(x)[-rank:], sizes_of(e)[-rank:], kernel, *steps)
