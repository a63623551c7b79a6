"""How a view reads its array, and how what is written to it changes that array, in symbols.

A step is one way in which a view differs from what it was taken of. `forward` gives the symbol of
the view; `backward` the symbol of the whole once `new` stands where the view looks.
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
    """A write through a view whose elements have no one place in the whole array."""


class ViewBuilder(Protocol):
    """The entry of view ops into a graph: that of a trace, or of a recording."""

    def emit(self, op: Op, args: tuple[Symbol, ...], **attrs: Any) -> Symbol:
        """Add an op on symbols."""
        ...

    def reshaped(self, x: Symbol, shape: Iterable[Any]) -> Symbol:
        """The symbol in another shape; itself where it has that."""
        ...

    def broadcast(self, x: Symbol, shape: Iterable[Any]) -> Symbol:
        """The symbol repeated to a shape; leading axes of 1 may go."""
        ...

    def places(self, start: int, step: int, axis: int, shape: tuple[Any, ...]) -> Symbol:
        """The indices start, start + step, ... along an axis, for each element of a shape."""
        ...

    def held(self, array: NDArray[Any]) -> Symbol:
        """The symbol of an array that nobody writes to."""
        ...


class ViewStep:
    """One difference between a view and what it looks at."""

    def forward(self, builder: ViewBuilder, x: Symbol) -> Symbol:
        """The view of x."""
        raise NotImplementedError

    def backward(self, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
        """The whole once its view is `new`; ViewWriteError where no graph says that."""
        raise ViewWriteError("what is written there has no one place")


@dataclass(frozen=True, slots=True)
class Flip(ViewStep):
    """Backwards along axes."""

    axes: Sizes

    def forward(self, builder: ViewBuilder, x: Symbol) -> Symbol:
        """Flipped."""
        return builder.emit(ops.flip, (x,), axis=self.axes)

    def backward(self, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
        """Flipped back."""
        return self.forward(builder, new)


@dataclass(frozen=True, slots=True)
class Permute(ViewStep):
    """Axes in another order."""

    dims: Sizes

    def forward(self, builder: ViewBuilder, x: Symbol) -> Symbol:
        """Permuted."""
        return builder.emit(ops.permute, (x,), dims=self.dims)

    def backward(self, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
        """Permuted back."""
        inverse = tuple(self.dims.index(i) for i in range(len(self.dims)))
        return builder.emit(ops.permute, (new,), dims=inverse)


@dataclass(frozen=True, slots=True)
class Reshape(ViewStep):
    """The same elements in another shape."""

    shape: Sizes

    def forward(self, builder: ViewBuilder, x: Symbol) -> Symbol:
        """Reshaped."""
        return builder.reshaped(x, self.shape)

    def backward(self, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
        """Reshaped back."""
        return builder.reshaped(new, x.shape)


@dataclass(frozen=True, slots=True)
class Cut(ViewStep):
    """The elements from start to stop by a positive step, on every axis; in a shape, if given."""

    start: Sizes
    stop: Sizes
    step: Sizes
    shape: Sizes | None = None

    def forward(self, builder: ViewBuilder, x: Symbol) -> Symbol:
        """Sliced."""
        part = builder.emit(ops.slice, (x,), start=self.start, stop=self.stop, step=self.step)
        return part if self.shape is None else builder.reshaped(part, self.shape)

    def backward(self, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
        """Scattered, axis by axis: the outer slices with the inner ones put into them."""
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
    """The elements at some places, counted in row-major order."""

    places: NDArray[np.int64]

    def forward(self, builder: ViewBuilder, x: Symbol) -> Symbol:
        """Gathered."""
        flat = builder.reshaped(x, (x.size,))
        return builder.emit(ops.gather, (flat, builder.held(self.places)), axis=0)

    def backward(self, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
        """Scattered, the last winning."""
        flat = builder.reshaped(x, (x.size,))
        updates = builder.reshaped(new, (new.size,))
        places = builder.held(self.places.reshape(-1))
        return builder.reshaped(builder.emit(ops.scatter, (flat, updates, places), axis=0), x.shape)


@dataclass(frozen=True, slots=True)
class Broadcast(ViewStep):
    """Repeated along axes: what is written there has no one place."""

    shape: Sizes

    def forward(self, builder: ViewBuilder, x: Symbol) -> Symbol:
        """Broadcast."""
        return builder.broadcast(x, self.shape)


@dataclass(frozen=True, slots=True)
class ViewPart(ViewStep):
    """The real or the imaginary part of complex numbers."""

    imaginary: bool

    def forward(self, builder: ViewBuilder, x: Symbol) -> Symbol:
        """The part."""
        return builder.emit(ops.imag if self.imaginary else ops.real, (x,))

    def backward(self, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
        """The part beside the other one."""
        other = ViewPart(not self.imaginary).forward(builder, x)
        parts = (other, new) if self.imaginary else (new, other)
        return builder.emit(ops.as_complex, parts)


Steps: TypeAlias = "tuple[ViewStep, ...]"


def forward(steps: Steps, builder: ViewBuilder, x: Symbol) -> Symbol:
    """The view that steps lead to."""
    for step in steps:
        x = step.forward(builder, x)
    return x


def backward(steps: Steps, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
    """The whole once the view that steps lead to is `new`."""
    wholes = [x] if steps else []
    for step in steps[:-1]:
        wholes.append(step.forward(builder, wholes[-1]))
    for step, whole in zip(reversed(steps), reversed(wholes), strict=True):
        new = step.backward(builder, whole, new)
    return new
