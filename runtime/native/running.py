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

    def run(self, a: int, b: int, buffers: Sequence[Array] = ()) -> None:
        """Elements a to b, in one row or whole rows; buffers are results of this range alone."""
        inner = self.layout.inner
        row, column = divmod(a, inner)
        if column == 0 and (b - a) % inner == 0:
            outer, count = (b - a) // inner, inner
        else:
            outer, count = 1, b - a
            assert column + count <= inner
        places = [data + row * step + column * stride for data, stride, step in self.inputs]
        places += [data + a * size for data, size in self.outs]
        places += [one.ctypes.data for one in buffers]
        steps = [step for _, _, step in self.inputs]
        steps += [count * size for _, size in self.outs]
        steps += [count * one.itemsize for one in buffers]
        args = (ctypes.c_void_p * len(places))(*places)
        self.kernel.function(
            args, self.strides, (ctypes.c_int64 * len(steps))(*steps), self.kernel.context, outer, count
        )
