"""View steps: how a view reads its array, and how a write through the view changes the array.

A step is one difference between a view and its array. `forward` returns the symbol of the view.
`backward` returns the symbol of the whole array after `new` has replaced the view's elements.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import mul
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphirError
from graphir.hints import Number
from graphir.ir.symbol import Symbol
from graphir.ops import control
from graphir.ops.attribute_record import array_content
from graphir.ops.control import Callee
from graphir.ops.op import Op
from graphir.ops.types import TensorType, TupleType
from graphir.semantics.data_movement import affine_view
from graphir.semantics.library_calls import MemoryLayout, NumPyCall, OperandPlace

Sizes: TypeAlias = tuple[int, ...]


class ViewWriteError(GraphirError):
    """A write through a view whose elements have no unique position in the whole array."""


class ViewBuilder:
    """The base class of what adds view ops to a graph: the memory of a trace, and a recording."""

    def __init__(self) -> None:
        self._constants: dict[Any, Symbol] = {}

    def emit(self, op: Op, args: tuple[Symbol, ...], **attrs: Any) -> Symbol:
        """Add an op on symbols and return its symbol."""
        raise NotImplementedError

    def array_symbol(self, array: NDArray[Any]) -> Symbol:
        """Return a new symbol with the values of an array that nobody writes to."""
        raise NotImplementedError

    def constant_array(self, array: NDArray[Any]) -> Symbol:
        """Return the symbol of an array that nobody writes to; equal arrays share a symbol."""
        key = array_content(array)
        if key not in self._constants:
            self._constants[key] = self.array_symbol(array)
        return self._constants[key]

    def reshaped(self, x: Symbol, shape: Iterable[Any]) -> Symbol:
        """Return the symbol in another shape; the symbol itself if it has that shape."""
        target = tuple(shape)
        return x if x.shape == target else self.emit(ops.reshape, (x,), shape=target)

    def broadcast(self, x: Symbol, shape: Iterable[Any]) -> Symbol:
        """Return the symbol broadcast to a shape; surplus leading axes of size 1 are dropped."""
        target = tuple(shape)
        if x.rank > len(target):
            x = self.reshaped(x, x.shape[x.rank - len(target) :])
        return x if x.shape == target else self.emit(ops.broadcast_to, (x,), shape=target)

    def filled(self, value: Number, shape: tuple[Any, ...], dtype: DType) -> Symbol:
        """Return a symbol whose elements all equal a value."""
        return self.emit(ops.full, (), dtype=dtype, value=value, shape=shape)


class ViewStep:
    """One difference between a view and its array."""

    def forward(self, builder: ViewBuilder, x: Symbol) -> Symbol:
        """Return the view of x."""
        raise NotImplementedError

    def backward(self, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
        """Return the whole array with `new` in the view's place.

        The method raises ViewWriteError if the view's elements have no unique position.
        """
        raise ViewWriteError("several elements of the view share one place in memory")


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
        if self.shape == () and x.rank:
            return builder.emit(ops.item, (x,), index=self.start)
        part = builder.emit(ops.slice, (x,), start=self.start, stop=self.stop, step=self.step)
        return part if self.shape is None else builder.reshaped(part, self.shape)

    def backward(self, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
        """Return x with `new` in place of the slice.

        The result is x itself if `new` is that slice of x, as in the last step of `x[i:j] += y`.
        """
        spans = list(zip(self.start, self.stop, self.step, strict=True))
        shape = tuple([-(-(stop - start) // step) for start, stop, step in spans])
        source = new
        while source.op is ops.broadcast_to:
            (source,) = source.args
        if not source.rank or new.shape == shape:
            new, new_shape = source, source.shape
        elif new.rank > x.rank or new.shape != shape[x.rank - new.rank :]:
            new_shape = shape
        else:
            new_shape = new.shape
        bounds = {"start": self.start, "stop": self.stop, "step": self.step}
        elements = _elements(new)
        if _is_cut(elements, ops.slice, bounds) and elements.args[0] is x:
            return x
        is_updated = _is_cut(x, ops.slice_update, bounds) and x.args[1].shape == new_shape
        if is_updated and _elements(x.args[1]) is elements:
            return x
        return builder.emit(ops.slice_update, (x, builder.reshaped(new, new_shape)), **bounds)


def _is_cut(x: Symbol, op: Op, bounds: Mapping[str, Sizes]) -> bool:
    """Whether x is a slice, or an update of a slice, with some bounds."""
    return x.op is op and all(x.attrs[name] == value for name, value in bounds.items())


def _elements(x: Symbol) -> Symbol:
    """Return the symbol with the elements of x, in row-major order, that is no reshape."""
    while x.op is ops.reshape:
        (x,) = x.args
    return x


@dataclass(frozen=True, slots=True)
class AffineView(ViewStep):
    """The elements at `origin + index @ steps`: windows, diagonals, and other strided views."""

    shape: Sizes
    origin: Sizes
    steps: tuple[Sizes, ...]

    def forward(self, builder: ViewBuilder, x: Symbol) -> Symbol:
        """Return the view of x."""
        attrs = {"shape": self.shape, "origin": self.origin, "steps": self.steps}
        return builder.emit(ops.affine_view, (x,), **attrs)

    def backward(self, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
        """Return x with `new` at the view's positions.

        The positions are a constant if they are few; otherwise the graph computes them.
        """
        if not self._has_unique_positions(x.shape):
            raise ViewWriteError(
                "several elements of the view share one place in memory", fix="write to x.copy()"
            )
        sizes: tuple[Any, ...] = x.shape
        size = math.prod(sizes)
        if math.prod(self.shape) * _FEW <= size:
            whole = np.arange(size).reshape(sizes)
            places = builder.constant_array(affine_view(whole, self.shape, self.origin, self.steps))
        else:
            line = builder.emit(ops.range, (), dtype=DType.int64, start=0, step=1, size=size)
            places = self.forward(builder, builder.reshaped(line, sizes))
        return builder.emit(ops.index_update, (x, new, places), axis=None)

    def _has_unique_positions(self, whole: tuple[Any, ...]) -> bool:
        """Whether no two elements share a place: each stride exceeds the reach of smaller ones."""
        sizes = [math.prod(whole[axis + 1 :]) for axis in range(len(whole))]
        strides = [abs(sum(map(mul, step, sizes))) for step in self.steps]
        reach = 0
        for stride, size in sorted(zip(strides, self.shape, strict=True)):
            if size > 1 and stride <= reach:
                return False
            reach += stride * (size - 1)
        return True


_FEW = 8
"""Positions are few if an array has this many times as many elements."""


@dataclass(frozen=True, slots=True, eq=False)
class Pick(ViewStep):
    """The elements at positions, counted in row-major order."""

    places: NDArray[np.int64]

    def forward(self, builder: ViewBuilder, x: Symbol) -> Symbol:
        """Return the elements, gathered."""
        flat = builder.reshaped(x, (x.size,))
        return builder.emit(ops.gather, (flat, builder.constant_array(self.places)), axis=0)

    def backward(self, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
        """Return x with `new` at the positions; the last of repeated positions wins."""
        places = builder.constant_array(self.places)
        return builder.emit(ops.index_update, (x, new, places), axis=None)


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


@dataclass(frozen=True, slots=True)
class BitView(ViewStep):
    """The same bytes as elements of another dtype, as NumPy's `x.view(dtype)` reads them."""

    source: np.dtype[Any]
    dtype: np.dtype[Any]

    def forward(self, builder: ViewBuilder, x: Symbol) -> Symbol:
        """Return x with the elements of the dtype; the last axis may change its size."""
        return _view_of_bits(builder, x, self.dtype)

    def backward(self, builder: ViewBuilder, x: Symbol, new: Symbol) -> Symbol:
        """Return the bytes of the new elements as elements of x."""
        return _view_of_bits(builder, new, self.source)


def _view_of_bits(builder: ViewBuilder, x: Symbol, dtype: np.dtype[Any]) -> Symbol:
    """Return the elements of x, in row-major order, as elements of another dtype."""
    plain: Any = np.empty(cast("Any", x.shape), x.dtype.to_numpy())
    operand = OperandPlace(0, MemoryLayout.of(plain))
    function = NumPyCall(np.ndarray.view, (operand, dtype), {}, raises=False)
    types = TupleType((TensorType(DType.from_numpy(dtype), plain.view(dtype).shape),))
    attrs = {"callee": Callee("numpy.ndarray.view", function), "types": types}
    call = builder.emit(control.call, (x,), **attrs, parameters=str(dtype))
    return builder.emit(control.part, (call,), index=0)


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
