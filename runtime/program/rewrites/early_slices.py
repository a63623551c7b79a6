"""Slices of elementwise values, as elementwise ops on slices: the whole value never exists.

A program converts an image to float32, and then computes with its channels `f[..., 0]`, `f[..., 1]`
and `f[..., 2]`. A slice reads memory, so the whole of `f` would lie in memory. The pass slices the
image instead, and converts each channel in the region that computes with it.

The pass moves slices only where this adds no work: the slices of a value have at most as many
elements as the value, and each becomes part of a region that reads it. Overlapping slices, as those
of a stencil, stay (see wavefronts.py): their value would be computed several times. In machine code
that costs less than memory for a wider copy of an array: overlapping slices of such a cast move.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from graphir.location import Location
from graphir.ops.attribute_record import AttributeRecord
from graphir.passes.rewriter import Rewriter
from graphir.public import Graph, Symbol, TensorType, ops
from graphir.runtime.program.cost_model import COST, NATIVE_VECTOR
from graphir.runtime.program.cutting import row_axes

_ELEMENTWISE = ("elementwise", "cast")
_CONVERTED_INLINE = frozenset("?bBhHiIlLqQefd")
"""The dtypes, by NumPy's characters, between which machine code converts by few instructions."""


class AxisRange(NamedTuple):
    """The elements from `start` to `stop` by `step` of an axis."""

    start: int
    stop: int
    step: int

    @property
    def size(self) -> int:
        """The number of the elements."""
        return len(range(*self))


class SliceView(NamedTuple):
    """A slice of an array: a range for each axis of the array, and the axes of the slice.

    An axis of the slice has the number of its axis in the array, or is None for an axis of size 1.
    """

    ranges: tuple[AxisRange, ...]
    axes: tuple[int | None, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the slice."""
        return tuple([1 if axis is None else self.ranges[axis].size for axis in self.axes])

    @property
    def is_contiguous(self) -> bool:
        """Whether the slice has vectors of neighbouring elements of the array."""
        last = self.ranges[-1]
        return last.step == 1 and last.size >= NATIVE_VECTOR

    @staticmethod
    def of(symbol: Symbol) -> SliceView:
        """Return the view that a slice is of its operand."""
        bounds = [symbol.attrs[name] for name in ("start", "stop", "step")]
        ranges = tuple([AxisRange(*bound) for bound in zip(*bounds, strict=True)])
        return SliceView(ranges, tuple([k if r.size != 1 else None for k, r in enumerate(ranges)]))

    def followed(self, symbol: Symbol) -> SliceView | None:
        """Return the view of the array that a slice or reshape of this view is; None for others.

        The reshape only adds or drops axes of size 1, and leaves an axis.
        """
        if symbol.op not in (ops.slice, *_RESHAPES) or 0 in symbol.shape:
            return None
        if symbol.op is ops.slice:
            ranges, inner = [*self.ranges], SliceView.of(symbol)
            for axis, inner_range in zip(self.axes, inner.ranges, strict=True):
                if axis is not None:
                    part = range(*ranges[axis])[slice(*inner_range)]
                    ranges[axis] = AxisRange(part.start, part.stop, part.step)
            axes = [None if k is None else self.axes[k] for k in inner.axes]
            return SliceView(tuple(ranges), tuple(axes))
        shape, axes = symbol.shape, [axis for axis in self.axes if axis is not None]
        sizes = [self.ranges[axis].size for axis in axes]
        if not shape or sizes != [n for n in shape if n != 1]:
            return None
        rest = iter(axes)
        return SliceView(self.ranges, tuple([None if n == 1 else next(rest) for n in shape]))

    def of_operand(self, result: Sequence[int], shape: Sequence[int]) -> SliceView:
        """Return the view of an operand, of `shape`, that broadcasts to this view of a result."""
        lead = len(result) - len(shape)
        ranges = [
            AxisRange(0, 1, 1) if size == 1 else part
            for size, part in zip(shape, self.ranges[lead:], strict=True)
        ]
        axes = [
            None if axis is None or axis < lead or shape[axis - lead] == 1 else axis - lead
            for axis in self.axes
        ]
        return SliceView(tuple(ranges), tuple(axes))


_BROADCAST_BY_REGIONS = (ops.broadcast_to, ops.full)

_WIDEST = 16
"""The most bytes of an element of any dtype."""

_RESHAPES = (ops.reshape, ops.squeeze, ops.unsqueeze)


def slice_operands(graph: Graph) -> Graph:
    """Return the lowered graph with slices of operands in place of slices of elementwise values.

    The results keep their bits, and symbols their locations.
    """
    return _slice_operands(graph, overlaps=False)


def slice_overlapping_operands(graph: Graph) -> Graph:
    """The same, overlapping slices of casts to wider dtypes included, which suits machine code."""
    return _slice_operands(graph, overlaps=True)


def _slice_operands(graph: Graph, overlaps: bool) -> Graph:
    if not any(s.op is ops.slice and s.args[0].op.kind in _ELEMENTWISE for s in graph.symbols):
        return graph
    slices = _Slices(graph, overlaps)
    if not slices.demands:
        return graph
    rewriter = _SliceRewriter(graph, slices)
    for symbol in graph.symbols:
        rewriter.rewrite(symbol)
    return rewriter.finish()


class _Slices:
    """The slices of elementwise values that the pass computes, from the last symbol to the first.

    `demands` has the views of each value that the pass takes apart, by index, with the locations of
    their slices. `views` has the index of the value and the view for each slice, and each reshape
    of a slice, that the pass replaces.
    """

    def __init__(self, graph: Graph, overlaps: bool) -> None:
        self.demands: dict[int, dict[SliceView, Location]] = {}
        self.views: dict[int, tuple[int, SliceView]] = {}
        self._overlaps = overlaps
        self._outputs = {symbol.index for symbol in graph.outputs}
        self._users: dict[int, dict[int, Symbol]] = {}
        for symbol in graph.symbols:
            for arg in symbol.args:
                self._users.setdefault(arg.index, {})[symbol.index] = symbol
        self._loads: dict[int, dict[int, int]] = {}
        divisible = [symbol for symbol in graph.symbols if self._is_divisible(symbol)]
        for symbol in divisible:
            self._loads[symbol.index] = self._loads_of(symbol)
        for symbol in reversed(divisible):
            self._divide(symbol)

    def _is_divisible(self, symbol: Symbol) -> bool:
        """Whether a symbol computes a large array, of which each part follows from its elements.

        A power may refuse its exponent, and the error concerns the whole array.
        """
        return (
            symbol.op.kind in _ELEMENTWISE
            and symbol.op is not ops.pow
            and symbol.index not in self._outputs
            and symbol.index in self._users
            and _are_static((symbol, *symbol.args))
            and math.prod(_sizes(symbol)) >= COST.SLICED_ELEMENTS
        )

    def _loads_of(self, symbol: Symbol) -> dict[int, int]:
        """Return the bytes of an element of each array in memory that a value follows from.

        The keys are the indices of the arrays. An array that is broadcast does not count.
        """
        loads: dict[int, int] = {}
        for arg in symbol.args:
            if sum(loads.values()) > _WIDEST * COST.SLICED_LOADS:
                break
            if arg.index in self._loads:
                loads |= self._loads[arg.index]
            elif arg.shape == symbol.shape and arg.op not in _BROADCAST_BY_REGIONS:
                loads[arg.index] = arg.dtype.storage.itemsize
        return loads

    def _divide(self, symbol: Symbol) -> None:
        """Note the views of a value if its users read views alone, and views cost no more."""
        demands: dict[SliceView, Location] = {}
        views: dict[int, tuple[int, SliceView]] = {}
        for user in self._users[symbol.index].values():
            if user.index in self.demands:
                for view, location in self.demands[user.index].items():
                    demands.setdefault(view.of_operand(_sizes(user), _sizes(symbol)), location)
            elif user.op is not ops.slice or not self._follow(
                user, symbol.index, SliceView.of(user), demands, views
            ):
                return
        size, limit = sum(math.prod(view.shape) for view in demands), math.prod(_sizes(symbol))
        if self._overlaps and _is_wider_cast(symbol):
            limit *= COST.OVERLAPPING_CASTS
        loads = sum(self._loads[symbol.index].values())
        is_cheap = loads <= COST.SLICED_LOADS * symbol.dtype.storage.itemsize
        if size <= limit and (is_cheap or all(view.is_contiguous for view in demands)):
            self.demands[symbol.index] = demands
            self.views |= views

    def _follow(
        self,
        symbol: Symbol,
        source: int,
        view: SliceView,
        demands: dict[SliceView, Location],
        views: dict[int, tuple[int, SliceView]],
    ) -> bool:
        """Note a view and the views of it; return whether regions of their shapes read them all."""
        users = self._users.get(symbol.index)
        if symbol.index in self._outputs or not users or 0 in view.shape:
            return False
        views[symbol.index] = source, view
        for user in users.values():
            further = view.followed(user)
            if further is not None:
                if not self._follow(user, source, further, demands, views):
                    return False
                continue
            is_row = row_axes(user) > 0 and user.args[0] is symbol
            if not is_row and not (user.op.kind in _ELEMENTWISE and user.shape == symbol.shape):
                return False
            demands.setdefault(view, symbol.location)
        return True


class _SliceRewriter(Rewriter):
    """The pass: views of symbols, each emitted once, where the symbol itself is in the graph.

    An update in place after the symbol then comes after all reads of its operands.
    """

    def __init__(self, graph: Graph, slices: _Slices) -> None:
        super().__init__(graph)
        self._slices = slices
        self._parts: dict[tuple[int, SliceView], Symbol] = {}

    def rewrite(self, symbol: Symbol) -> None:
        """Emit a symbol, the views of it, or nothing for a view that the pass replaces."""
        index, slices = symbol.index, self._slices
        if index in slices.demands:
            for view, location in slices.demands[index].items():
                with self.new.at(location):
                    self._parts[index, view] = self._operation(symbol, view)
            self.replace(symbol)  # a placeholder: no symbol refers to it
        elif index in slices.views:
            self.replace(self._parts.get(slices.views[index], symbol))
        else:
            self.copy(symbol)

    def _operation(self, symbol: Symbol, view: SliceView) -> Symbol:
        """Return a view of an elementwise symbol: the op on the views of its operands."""
        args = [
            self._part(arg, view.of_operand(_sizes(symbol), _sizes(arg))) for arg in symbol.args
        ]
        type_ = TensorType(symbol.dtype, view.shape)
        return self.new.append(symbol.op, tuple(args), symbol.attrs, type_, symbol.source)

    def _part(self, symbol: Symbol, view: SliceView) -> Symbol:
        """Return a view of an operand, which is the operand itself if it has no axes."""
        if not symbol.rank:
            return self.values[symbol.index]
        key = symbol.index, view
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = self._view(symbol, view)
        return part

    def _view(self, symbol: Symbol, view: SliceView) -> Symbol:
        """Emit a view of a value in memory, or of a value that regions broadcast themselves."""
        shape: Any = view.shape
        if symbol.op is ops.broadcast_to and _are_static(symbol.args):
            source = symbol.args[0]
            part = self._part(source, view.of_operand(_sizes(symbol), _sizes(source)))
            return ops.broadcast_to(part, shape=shape)
        if symbol.op is ops.full:
            attrs = AttributeRecord.of({**symbol.attrs, "shape": shape})
            type_ = TensorType(symbol.dtype, shape)
            return self.new.append(ops.full, (), attrs, type_, symbol.source)
        part = self.values[symbol.index]
        if [*view.ranges] != [AxisRange(0, size, 1) for size in _sizes(symbol)]:
            start, stop, step = zip(*view.ranges, strict=True)
            part = ops.slice(part, start=start, stop=stop, step=step)
        return part if part.shape == shape else ops.reshape(part, shape=shape)


def _is_wider_cast(symbol: Symbol) -> bool:
    """Whether a symbol is a cast of an array in memory to a dtype of more bytes."""
    if symbol.op is not ops.cast or symbol.args[0].op.kind in _ELEMENTWISE:
        return False
    source, target = symbol.args[0].dtype.storage, symbol.dtype.storage
    is_inline = {source.char, target.char} <= _CONVERTED_INLINE
    return is_inline and source.itemsize < target.itemsize


def _are_static(symbols: Sequence[Symbol]) -> bool:
    """Whether the shapes of all symbols have no symbolic dims."""
    return all(len(_sizes(symbol)) == symbol.rank for symbol in symbols)


def _sizes(symbol: Symbol) -> tuple[int, ...]:
    """Return the shape of a symbol without its symbolic dims."""
    return tuple([size for size in symbol.shape if isinstance(size, int)])
