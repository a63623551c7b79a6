"""View steps: how a view reads its array, and how a write through the view changes the array.

A step is one difference between a view and its array. `forward` returns the symbol of the view.
`backward` returns the symbol of the whole array after `new` has replaced the view's elements.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir import ops
from graphir.errors import GraphirError
from graphir.ir.symbol import Symbol
from graphir.ops.op import Op

Sizes: TypeAlias = tuple[int, ...]


class ViewWriteError(GraphirError):
    """A write through a view whose elements have no unique position in the whole array."""


class ViewBuilder(Protocol):
    """The interface that adds view ops to a graph, for a trace or a recording."""

    def emit(self, op: Op, args: tuple[Symbol, ...], **attrs: Any) -> Symbol:
        """Add an op on symbols and return its symbol."""
        ...

    def reshaped(self, x: Symbol, shape: Iterable[Any]) -> Symbol:
        """Return the symbol in another shape; the symbol itself if it has that shape."""
        ...

    def broadcast(self, x: Symbol, shape: Iterable[Any]) -> Symbol:
        """Return the symbol broadcast to a shape; surplus leading axes of size 1 are dropped."""
        ...

    def places(self, start: int, step: int, axis: int, shape: tuple[Any, ...]) -> Symbol:
        """Return the indices start, start + step, ... along an axis, broadcast to a shape."""
        ...

    def held(self, array: NDArray[Any]) -> Symbol:
        """Return the symbol of an array that nobody writes to."""
        ...


class ViewStep:
    """One difference between a view and its array."""

    def forward(self, builder: ViewBuilder, x: Symbol) -> Symbol:
        """Return the view of x."""
        raise NotImplementedError

    def backward(self, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
        """Return the whole array with `new` in the view's place.

        The method raises ViewWriteError if the view's elements have no unique position.
        """
        raise ViewWriteError("what is written there has no one place")


@dataclass(frozen=True, slots=True)
class Flip(ViewStep):
    """A reversal of axes."""

    axes: Sizes

    def forward(self, builder: ViewBuilder, x: Symbol) -> Symbol:
        """Return x with the axes flipped."""
        return builder.emit(ops.flip, (x,), axis=self.axes)

    def backward(self, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
        """Return the whole array: `new`, flipped back."""
        return self.forward(builder, new)


@dataclass(frozen=True, slots=True)
class Permute(ViewStep):
    """A permutation of the axes."""

    dims: Sizes

    def forward(self, builder: ViewBuilder, x: Symbol) -> Symbol:
        """Return x with permuted axes."""
        return builder.emit(ops.permute, (x,), dims=self.dims)

    def backward(self, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
        """Return the whole array: `new`, permuted back."""
        inverse = tuple(self.dims.index(i) for i in range(len(self.dims)))
        return builder.emit(ops.permute, (new,), dims=inverse)


@dataclass(frozen=True, slots=True)
class Reshape(ViewStep):
    """The same elements in another shape."""

    shape: Sizes

    def forward(self, builder: ViewBuilder, x: Symbol) -> Symbol:
        """Return x in the view's shape."""
        return builder.reshaped(x, self.shape)

    def backward(self, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
        """Return the whole array: `new` in the shape of x."""
        return builder.reshaped(new, x.shape)


@dataclass(frozen=True, slots=True)
class Cut(ViewStep):
    """A slice with a positive step on every axis, followed by a reshape if `shape` is given."""

    start: Sizes
    stop: Sizes
    step: Sizes
    shape: Sizes | None = None

    def forward(self, builder: ViewBuilder, x: Symbol) -> Symbol:
        """Return the slice of x."""
        part = builder.emit(ops.slice, (x,), start=self.start, stop=self.stop, step=self.step)
        return part if self.shape is None else builder.reshaped(part, self.shape)

    def backward(self, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
        """Return x with `new` scattered into the slice, axis by axis.

        The slice along an outer axis first receives the scatter along the inner axes.
        """
        spans = zip(self.start, self.stop, self.step, strict=True)
        new = builder.reshaped(new, (-(-(stop - start) // step) for start, stop, step in spans))
        axes = [i for i, size in enumerate(x.shape) if self._of(i) != (0, size, 1)]
        return _scattered(builder, x, new, [(i, *self._of(i)) for i in axes])

    def _of(self, axis: int) -> tuple[int, int, int]:
        return self.start[axis], self.stop[axis], self.step[axis]


def _scattered(
    builder: ViewBuilder, x: Symbol, new: Symbol, cuts: list[tuple[int, int, int, int]]
) -> Symbol:
    if not cuts:
        return new
    (axis, start, stop, step), *inner = cuts
    if inner:
        rank = x.rank
        lows, highs, by = [0] * rank, list(x.shape), [1] * rank
        lows[axis], highs[axis], by[axis] = start, stop, step
        part = Cut(tuple(lows), tuple(highs), tuple(by)).forward(builder, x)  # pyright: ignore[reportArgumentType]
        new = _scattered(builder, part, new, inner)
    places = builder.places(start, step, axis, new.shape)
    return builder.emit(ops.scatter, (x, new, places), axis=axis)


@dataclass(frozen=True, slots=True, eq=False)
class Pick(ViewStep):
    """The elements at positions, counted in row-major order."""

    places: NDArray[np.int64]

    def forward(self, builder: ViewBuilder, x: Symbol) -> Symbol:
        """Return the elements, gathered."""
        flat = builder.reshaped(x, (x.size,))
        return builder.emit(ops.gather, (flat, builder.held(self.places)), axis=0)

    def backward(self, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
        """Return x with `new` scattered to the positions; the last of repeated positions wins."""
        flat = builder.reshaped(x, (x.size,))
        updates = builder.reshaped(new, (new.size,))
        places = builder.held(self.places.reshape(-1))
        return builder.reshaped(builder.emit(ops.scatter, (flat, updates, places), axis=0), x.shape)


@dataclass(frozen=True, slots=True)
class Broadcast(ViewStep):
    """A repetition along axes. It refuses writes, because its elements have no unique position."""

    shape: Sizes

    def forward(self, builder: ViewBuilder, x: Symbol) -> Symbol:
        """Return x, broadcast."""
        return builder.broadcast(x, self.shape)


@dataclass(frozen=True, slots=True)
class ViewPart(ViewStep):
    """The real or the imaginary parts of complex numbers."""

    imaginary: bool

    def forward(self, builder: ViewBuilder, x: Symbol) -> Symbol:
        """Return the parts of x."""
        return builder.emit(ops.imag if self.imaginary else ops.real, (x,))

    def backward(self, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
        """Return complex numbers of the new parts and the other parts of x."""
        other = ViewPart(not self.imaginary).forward(builder, x)
        parts = (other, new) if self.imaginary else (new, other)
        return builder.emit(ops.as_complex, parts)


Steps: TypeAlias = "tuple[ViewStep, ...]"


def forward(steps: Steps, builder: ViewBuilder, x: Symbol) -> Symbol:
    """Return the view at the end of the steps."""
    for step in steps:
        x = step.forward(builder, x)
    return x


def backward(steps: Steps, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
    """Return the whole array after `new` has replaced the view at the end of the steps."""
    wholes = [x] if steps else []
    for step in steps[:-1]:
        wholes.append(step.forward(builder, wholes[-1]))
    for step, whole in zip(reversed(steps), reversed(wholes), strict=True):
        new = step.backward(builder, whole, new)
    return new
