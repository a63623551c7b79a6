"""Convolutions in float64, for audits: neither onnxruntime nor the evaluator is fast there.

A convolution is a product of matrices, the kernels and the elements that the taps of a kernel read
(im2col: K. Chellapilla et al., High performance convolutional neural networks, 2006). Each tap
reads a strided view. The adjoints are sums of products over the same views.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir import ExecutionError

Floats: TypeAlias = NDArray[np.float64]

BLOCK = 1 << 22
"""The bytes of what taps read that a product takes at once."""


class Convolution:
    """The node Conv, or ConvTranspose, with the attributes of its node.

    The operands are x[batch, channels, ...], the kernels and the bias. Kernels of Conv are
    w[features, channels / groups, ...], those of ConvTranspose w[channels, features / groups, ...].
    """

    def __init__(self, attributes: Mapping[str, Any], is_transposed: bool) -> None:
        self._attributes, self._is_transposed = attributes, is_transposed
        self.groups = int(attributes.get("group", 1))

    def __call__(self, x: Floats, w: Floats, b: Floats | None = None) -> Floats:
        """Return the result."""
        taps = _Taps(self._sizes(x, w), self.groups)
        y = taps.backward(x, w) if self._is_transposed else taps.forward(x, w)
        return y if b is None else y + b.reshape(-1, *(1,) * (x.ndim - 2))

    def adjoints(self, x: Floats, w: Floats, b: Floats | None, adjoint: Floats) -> list[Floats]:
        """Return the adjoints of the operands, from that of the result."""
        taps = _Taps(self._sizes(x, w), self.groups)
        if self._is_transposed:
            of_x, of_w = taps.forward(adjoint, w), taps.of_kernels(adjoint, x, w.shape)
        else:
            of_x, of_w = taps.backward(adjoint, w), taps.of_kernels(x, adjoint, w.shape)
        of_b = [] if b is None else [adjoint.sum(axis=(0, *range(2, x.ndim)))]
        return [of_x, of_w, *of_b]

    def _sizes(self, x: Floats, w: Floats) -> _Sizes:
        """Return the sizes of the convolution whose operand, or whose result, is the long side."""
        kernel, axes = w.shape[2:], x.ndim - 2
        strides = tuple(self._attributes.get("strides", (1,) * axes))
        dilations = tuple(self._attributes.get("dilations", (1,) * axes))
        spans = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
        if self._is_transposed:
            return self._transposed_sizes(x, w, strides, dilations, spans)
        pads = self._pads(x.shape[2:], strides, spans)
        short = tuple(
            (n + low + high - span) // s + 1
            for n, (low, high), span, s in zip(x.shape[2:], pads, spans, strides, strict=True)
        )
        return _Sizes(x.shape, short, kernel, strides, dilations, pads)

    def _pads(
        self, sizes: Sequence[int], strides: Sequence[int], spans: Sequence[int]
    ) -> list[tuple[int, int]]:
        mode, axes = self._attributes.get("auto_pad", "NOTSET"), len(sizes)
        if mode in ("NOTSET", "VALID"):
            flat = self._attributes.get("pads", ()) if mode == "NOTSET" else ()
            flat = tuple(flat) or (0,) * 2 * axes
            return [*zip(flat[:axes], flat[axes:], strict=True)]
        pads: list[tuple[int, int]] = []
        for n, s, span in zip(sizes, strides, spans, strict=True):
            total = max(0, (-(-n // s) - 1) * s + span - n)
            small, large = total // 2, total - total // 2
            pads.append((small, large) if mode == "SAME_UPPER" else (large, small))
        return pads

    def _transposed_sizes(
        self,
        x: Floats,
        w: Floats,
        strides: tuple[int, ...],
        dilations: tuple[int, ...],
        spans: Sequence[int],
    ) -> _Sizes:
        axes = x.ndim - 2
        if self._attributes.get("auto_pad", "NOTSET") != "NOTSET" or (
            "output_shape" in self._attributes
        ):
            raise ExecutionError("a transposed convolution of a stated size has no wide form")
        flat = tuple(self._attributes.get("pads", (0,) * 2 * axes))
        more = tuple(self._attributes.get("output_padding", (0,) * axes))
        pads = [*zip(flat[:axes], flat[axes:], strict=True)]
        long = tuple(
            s * (n - 1) + extra + span - low - high
            for n, s, extra, span, (low, high) in zip(
                x.shape[2:], strides, more, spans, pads, strict=True
            )
        )
        shape = (x.shape[0], w.shape[1] * self.groups, *long)
        return _Sizes(shape, x.shape[2:], w.shape[2:], strides, dilations, pads)


class _Sizes:
    """The sizes of a convolution: `shape` is that of the long side, `short` has the other's."""

    def __init__(
        self,
        shape: tuple[int, ...],
        short: tuple[int, ...],
        kernel: tuple[int, ...],
        strides: tuple[int, ...],
        dilations: tuple[int, ...],
        pads: Sequence[tuple[int, int]],
    ) -> None:
        self.shape, self.short, self.kernel = shape, short, kernel
        self.strides, self.dilations, self.pads = strides, dilations, pads

    @property
    def taps_count(self) -> int:
        """The number of taps of a kernel."""
        return prod(self.kernel)

    def padded(self) -> tuple[int, ...]:
        """Return the shape of the long side with its padding, and what the taps read beyond it."""
        sizes = [n + low + high for n, (low, high) in zip(self.shape[2:], self.pads, strict=True)]
        last = [
            d * (k - 1) + s * (m - 1) + 1
            for d, k, s, m in zip(
                self.dilations, self.kernel, self.strides, self.short, strict=True
            )
        ]
        return (*self.shape[:2], *map(max, sizes, last))

    def inside(self) -> tuple[slice, ...]:
        """Return the place of the long side in its padding."""
        pairs = zip(self.shape[2:], self.pads, strict=True)
        return (..., *(slice(low, low + n) for n, (low, _) in pairs))  # pyright: ignore

    def taps(self) -> Iterator[tuple[tuple[int, ...], tuple[Any, ...]]]:
        """Yield the place of each tap in the kernel, and the elements that it reads."""
        for tap in product(*map(range, self.kernel)):
            starts = [d * k for d, k in zip(self.dilations, tap, strict=True)]
            ends = zip(starts, self.strides, self.short, strict=True)
            yield tap, (..., *(slice(at, at + s * (m - 1) + 1, s) for at, s, m in ends))


class _Taps:
    """The sums over the taps of a convolution from its long side to its short one, and back."""

    def __init__(self, sizes: _Sizes, groups: int) -> None:
        self.sizes, self.groups = sizes, groups

    def forward(self, x: Floats, w: Floats) -> Floats:
        """Return the short side from the long one."""
        long, count = self._padded(x), len(x)
        out = np.empty((count, w.shape[0], *self.sizes.short))
        rows, channels = self.sizes.short[0], w.shape[1] * prod(self.sizes.kernel)
        bytes_of_row = 8 * count * self.groups * channels * prod(self.sizes.short[1:])
        step = max(1, min(rows, BLOCK // max(bytes_of_row, 1)))
        matrix = w.reshape(self.groups, w.shape[0] // self.groups, channels)
        for start in range(0, rows, step):
            columns = self._columns(long, slice(start, min(start + step, rows)), w.shape[1])
            shape = (count, w.shape[0], -1, *self.sizes.short[1:])
            if channels == self.sizes.taps_count:  # one channel a group: no product of matrices
                part = np.einsum("gok,ngkp->ngop", matrix, columns)
            else:
                part = matrix @ columns
            out[:, :, start : start + step] = part.reshape(shape)
        return out

    def _columns(self, long: Floats, rows: slice, channels: int) -> Floats:
        """Return what the taps read for some rows, as [batch, group, channel and tap, place]."""
        count, short = len(long), (rows.stop - rows.start, *self.sizes.short[1:])
        columns = np.empty((count, self.groups, channels, self.sizes.taps_count, *short))
        stride = self.sizes.strides[0]
        for i, (_, view) in enumerate(self.sizes.taps()):
            first = view[1].start
            ends = first + stride * rows.start, first + stride * (rows.stop - 1) + 1
            part = long[(..., slice(*ends, stride), *view[2:])]
            columns[:, :, :, i] = part.reshape(count, self.groups, channels, *short)
        return columns.reshape(count, self.groups, channels * self.sizes.taps_count, -1)

    def backward(self, y: Floats, w: Floats) -> Floats:
        """Return the adjoint of the long side, or the result of a transposed convolution."""
        long, part = np.zeros(self.sizes.padded()), self._grouped(y)
        for tap, view in self.sizes.taps():
            target = long[view]
            target += (np.swapaxes(self._matrix(w, tap), -1, -2) @ part).reshape(target.shape)
        return np.ascontiguousarray(long[self.sizes.inside()])

    def of_kernels(self, x: Floats, y: Floats, shape: tuple[int, ...]) -> Floats:
        """Return the adjoint of the kernels, from the long side and the adjoint of the short."""
        long, result, part = self._padded(x), np.zeros(shape), self._grouped(y)
        for tap, view in self.sizes.taps():
            products = (part @ np.swapaxes(self._grouped(long[view]), -1, -2)).sum(axis=0)
            result[(..., *tap)] = products.reshape(shape[:2])
        return result

    def _padded(self, x: Floats) -> Floats:
        shape = self.sizes.padded()
        if shape == x.shape:
            return x
        long = np.zeros(shape)
        long[self.sizes.inside()] = x
        return long

    def _grouped(self, x: Floats) -> Floats:
        """Return an array as [batch, group, channel, place]."""
        return x.reshape(len(x), self.groups, x.shape[1] // self.groups, -1)

    def _matrix(self, w: Floats, tap: tuple[int, ...]) -> Floats:
        """Return the matrices of a tap, one for each group."""
        return w[(..., *tap)].reshape(self.groups, w.shape[0] // self.groups, w.shape[1])
