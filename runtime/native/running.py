"""A region run by its kernel: on ranges of its elements, by any thread."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runtime.native.layout import Layout

Array = NDArray[Any]


class Task:
    """One call of a region: its kernel, and where operands and results lie."""

    def __init__(self, kernel: Any, layout: Layout, arrays: Sequence[Array], outs: Sequence[Array]):
        self.kernel, self.layout = kernel, layout
        self.kept = [*arrays, *outs]
        self.inputs = [(one.ctypes.data, *rest) for one, *rest in zip(arrays, layout.strides, layout.steps)]
        self.outs = [(one.ctypes.data, one.itemsize) for one in outs]
        self.strides = (ctypes.c_int64 * max(1, len(arrays)))(*layout.strides)

    def run(self, a: int, b: int, buffers: Sequence[Array], sums: Array | None, length: int) -> None:
        """Elements a to b, in one row or whole rows; buffers are results of this range alone.

        `sums` takes those of rows of a length.
        """
        inner, row, column = self.layout.inner, 0, a
        if self.layout.outer > 1:
            row, column = divmod(a, inner)
        count = min(b - a, length if sums is not None else inner)
        outer = (b - a) // count
        flat = self.layout.outer == 1
        places = [data + row * step + column * stride for data, stride, step in self.inputs]
        places += [data + a * size for data, size in self.outs]
        places += [one.ctypes.data for one in buffers]
        steps = [count * stride if flat else step for _, stride, step in self.inputs]
        steps += [count * size for _, size in self.outs]
        steps += [count * one.itemsize for one in buffers]
        args = (ctypes.c_void_p * len(places))(*places)
        self.kernel.function(
            args,
            self.strides,
            (ctypes.c_int64 * len(steps))(*steps),
            self.kernel.context,
            outer,
            count,
            None if sums is None else sums.ctypes.data,
        )
