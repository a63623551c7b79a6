"""How a kernel goes over operands: rows of an inner axis, to which each operand is of a kind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Strides = tuple[int, ...]

WIDTH = 32
"""The elements of a vector."""

SHORT = 64
"""Elements below which a row is not worth its own turn."""


class Layout(NamedTuple):
    """`outer` rows of `inner` elements; of each input its kind, and the bytes between elements and
    between rows."""

    outer: int
    inner: int
    kinds: tuple[str, ...]
    strides: tuple[int, ...]
    steps: tuple[int, ...]


def contiguous_strides(shape: Sequence[int], itemsize: int) -> Strides:
    """The strides of an array in C order."""
    found: list[int] = []
    for size in reversed(shape):
        found.append(itemsize)
        itemsize *= max(size, 1)
    return tuple(reversed(found))


def broadcast(shape: Sequence[int], own: Sequence[int], strides: Sequence[int]) -> Strides:
    """The strides of an array along a shape into which it broadcasts."""
    lead = len(shape) - len(own)
    return (0,) * lead + tuple(
        0 if size == 1 else stride for size, stride in zip(own, strides, strict=True)
    )


def laid(shape: Sequence[int], strides: Sequence[Strides], sizes: Sequence[int]) -> Layout | None:
    """The layout of inputs with such strides and item sizes; None where there are more axes."""
    axes = [(size, [each[k] for each in strides]) for k, size in enumerate(shape) if size != 1]
    if not axes:
        axes = [(1, [0] * len(strides))]
    merged: list[tuple[int, list[int]]] = []
    whole = math.prod(size for size, _ in axes)  # the result lies in C order
    for size, steps in axes:
        if merged:
            before, outer = merged[-1]
            if outer == [step * size for step in steps]:
                merged[-1] = before * size, steps
                continue
        merged.append((size, steps))
    if len(merged) > 2:
        return None
    inner, strides_in = merged[-1]
    outer, steps_out = merged[0] if len(merged) == 2 else (1, [0] * len(strides))
    kinds = tuple(
        "same" if stride == 0 or (inner == 1) else "each" if stride == size else "step"
        for stride, size in zip(strides_in, sizes, strict=True)
    )
    assert outer * inner == whole
    return Layout(outer, inner, kinds, tuple(strides_in), tuple(steps_out))


def prepared(
    shape: Sequence[int], arrays: Sequence[NDArray[Any]], width: int
) -> tuple[Layout, list[NDArray[Any]]]:
    """A layout of arrays, those that have none in common being copied."""
    sizes = [array.dtype.itemsize for array in arrays]
    strides = [broadcast(shape, array.shape, array.strides) for array in arrays]
    found = laid(shape, strides, sizes)
    short = found is not None and found.outer > 1 and found.inner < max(SHORT, width)
    steps = found is not None and "step" in found.kinds and found.inner < width
    if found is not None and not short and not steps:
        return found, list(arrays)
    whole = [
        array if array.size == 1 else np.ascontiguousarray(np.broadcast_to(array, tuple(shape)))
        for array in arrays
    ]
    strides = [broadcast(shape, array.shape, array.strides) for array in whole]
    made = laid(shape, strides, sizes)
    assert made is not None and made.outer == 1
    return made, whole
