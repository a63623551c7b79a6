"""Scatters that have an index along an axis for each update, as updates at flat places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from graphir import DType, Symbol, ops


class FlatScatter(NamedTuple):
    """An array and its updates with the axis first, and the flat places of the updates.

    No index beyond the axis is a place then. `order` are the axes of the result of the scatter.
    """

    x: Symbol
    updates: Symbol
    places: Symbol
    order: Sequence[int]


def flat_scatter(
    emit: Callable[..., Symbol], x: Symbol, updates: Symbol, index: Symbol, axis: int
) -> FlatScatter:
    """Return a scatter along an axis, with an index of int64 and known sizes, in flat form.

    `emit` adds an op on symbols and numbers to the graph.
    """
    order = [axis, *(k for k in range(x.rank) if k != axis)]
    x, places, updates = (emit(ops.permute, each, dims=order) for each in (x, index, updates))
    sizes: list[Any] = [*places.shape]
    strides: list[Any] = [prod(x.shape[k + 1 :]) for k in range(x.rank)]
    for k, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        if k == 0:
            places = emit(ops.multiply, places, stride)
        elif size > 1:
            line = np.arange(int(size), dtype=np.int64) * int(stride)
            column = line.reshape(-1, *[1] * (x.rank - k - 1))
            places = emit(ops.add, places, x.graph.constant_of((DType.int64, column)))
    return FlatScatter(x, updates, places, [order.index(k) for k in range(x.rank)])
