"""Reductions over short last axes, element by element: the array with that axis never exists.

`((a[:, None] - b[None]) ** 2).sum(-1)` of points in space has a row of three elements for each
pair of points. The pass writes the elementwise ops once for each of the three elements, on arrays
without the axis, and adds the results: a region then runs over the long axes. A sum over another
axis of such an array becomes a sum over the first axis of each element.

The order of additions is NumPy's: rows of fewer than eight elements in sequence, and the elements
of an outer axis in sequence for each result.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from graphir import Graph, Symbol, TensorType, ops
from passes.rewriter import Rewriter

SHORT = range(2, 8)
"""The sizes of a short axis: NumPy adds fewer than eight elements in sequence."""

_ELEMENTWISE = ("elementwise", "cast")


def split_short_axes(graph: Graph) -> Graph:
    """Return the lowered graph with reductions of short axes taken apart; results keep their bits.

    The pass takes a sum or mean apart if no op needs its operand as a whole.
    """
    if not any(_is_sum(symbol) for symbol in graph.symbols) or not adds_in_sequence():
        return graph
    inner = _inner_symbols(graph)
    splitter = _Splitter(graph, inner)
    for symbol in graph.symbols:
        if _is_split(symbol, inner):
            splitter.split(symbol)
        else:
            splitter.copy(symbol)
    return splitter.finish()


@functools.cache
def adds_in_sequence() -> bool:
    """Whether this NumPy adds short rows, and the elements of outer axes, in sequence."""
    x = np.sin(np.arange(1, 7 * 300 * 3 + 1, dtype=np.float64)).reshape(7, 300, 3)
    rows = np.float64(0) + ((x[..., 0] + x[..., 1]) + x[..., 2])
    outer = np.add.accumulate(x, axis=1)[:, -1]
    columns = np.stack([np.add.reduce(x[..., k].T.copy(), axis=0) for k in range(3)], axis=-1)
    is_same = (np.add.reduce(x, axis=2) == rows).all() and (np.add.reduce(x, axis=1) == outer).all()
    return bool(is_same and (columns == outer).all())


def _is_sum(symbol: Symbol) -> bool:
    """Whether a symbol is a sum or mean over one axis of an array with a short last axis."""
    if symbol.op not in (ops.sum, ops.mean) or len(symbol.attrs["axis"] or ()) != 1:
        return False
    operand = symbol.args[0]
    if operand.shape[-1] not in SHORT or operand.dtype is not symbol.dtype:
        return False
    if operand.dtype.storage.char not in "fd" and operand.dtype.family not in ("int", "uint"):
        return False
    others = [size for k, size in enumerate(operand.shape[:-1]) if k != symbol.attrs["axis"][0]]
    is_row = symbol.attrs["axis"][0] == operand.rank - 1
    # One outer element would make the outer axis contiguous, which NumPy adds pairwise.
    return is_row or any(isinstance(size, int) and size > 1 for size in others)


def _is_split(symbol: Symbol, inner: set[int]) -> bool:
    return _is_sum(symbol) and symbol.args[0].index in inner


def _inner_symbols(graph: Graph) -> set[int]:
    """Return the elementwise symbols with a short last axis that only such symbols and sums use.

    A symbol that reads a whole result of another one stays with it, in one region.
    """
    outputs = {symbol.index for symbol in graph.outputs}
    users: dict[int, list[Symbol]] = {}
    for symbol in graph.symbols:
        for arg in symbol.args:
            users.setdefault(arg.index, []).append(symbol)
    inner = {
        symbol.index: symbol
        for symbol in graph.symbols
        if symbol.op.kind in _ELEMENTWISE
        and symbol.rank > 1
        and symbol.shape[-1] in SHORT
        and symbol.index in users
        and symbol.index not in outputs
    }
    whole: list[int] = [-1]
    while whole:
        whole = [
            index
            for index, symbol in inner.items()
            if not all(user.index in inner or _is_sum(user) for user in users[index])
            or any(
                arg.index not in inner and arg.op.kind in _ELEMENTWISE
                for arg in symbol.args
                if arg.shape == symbol.shape
            )
        ]
        for index in whole:
            del inner[index]
    return set(inner)


class _Splitter(Rewriter):
    """The pass: elements of symbols along their last axis, each emitted once.

    A key is a symbol, the element, and None or the axis that comes first with the rank of all axes.
    """

    def __init__(self, graph: Graph, inner: set[int]) -> None:
        super().__init__(graph)
        self._inner = inner
        self._elements: dict[tuple[int, int, tuple[int, int] | None], Symbol] = {}

    def split(self, symbol: Symbol) -> None:
        """Emit a sum or mean by the elements of its operand."""
        operand, (axis,) = symbol.args[0], symbol.attrs["axis"]
        count = operand.shape[-1]
        assert isinstance(count, int)
        with self.new.at(symbol.location):
            if axis == operand.rank - 1:
                result = self._sum([self._element(operand, k) for k in range(count)], symbol)
            else:
                order = axis, operand.rank - 1
                elements = [self._element(operand, k, order) for k in range(count)]
                sums = [symbol.op(each, axis=(0,)) for each in elements]
                result = ops.stack(sums, axis=sums[0].rank)
            if result.shape != symbol.shape:
                result = ops.reshape(result, shape=symbol.shape)
        self.replace(result)

    def _sum(self, elements: Sequence[Symbol], symbol: Symbol) -> Symbol:
        """Return a row as NumPy adds it: its elements in sequence, then 0.0, so never -0.0."""
        total, dtype = functools.reduce(ops.add, elements), symbol.dtype
        if dtype.is_float:
            total = ops.add(total, self.new.constant(0.0, dtype))
        if symbol.op is ops.mean:
            total = ops.divide(total, self.new.constant(len(elements), dtype))
        return total

    def _element(self, symbol: Symbol, k: int, order: tuple[int, int] | None = None) -> Symbol:
        """Return element `k` along the last axis; with `order`, its axes in that order."""
        if not symbol.rank:
            return self.values[symbol.index]
        if symbol.shape[-1] == 1:  # broadcast along the short axis: one element serves for all
            k = 0
        key = symbol.index, k, order
        element = self._elements.get(key)
        if element is None:
            is_inner = symbol.index in self._inner
            if is_inner and (order is None or symbol.rank == order[1] + 1):
                element = self._operation(symbol, k, order)
            elif order is None:
                element = self._sliced(symbol, k)
            else:
                element = _reordered(self._element(symbol, k), *order)
            self._elements[key] = element
        return element

    def _operation(self, symbol: Symbol, k: int, order: tuple[int, int] | None) -> Symbol:
        """Return an element of an elementwise symbol: the op on the elements of its operands."""
        shape = symbol.shape[:-1]
        if order is not None:
            shape = (shape[order[0]], *shape[: order[0]], *shape[order[0] + 1 :])
        args = tuple([self._element(arg, k, order) for arg in symbol.args])
        type_, number = TensorType(symbol.dtype, shape), len(self.new.symbols)
        new = Symbol(self.new, symbol.op, args, symbol.attrs, type_, symbol.source, number)
        self.new.symbols.append(new)
        return new

    def _sliced(self, symbol: Symbol, k: int) -> Symbol:
        """Return an element of a value in memory, as a view."""
        whole, outer = self.values[symbol.index], symbol.shape[:-1]
        if symbol.shape[-1] != 1:
            start, stop = (*[0] * len(outer), k), (*outer, k + 1)
            whole = ops.slice(whole, start=start, stop=stop, step=(1,) * symbol.rank)
        return ops.reshape(whole, shape=outer)


def _reordered(x: Symbol, first: int, rank: int) -> Symbol:
    """Return an operand of a broadcast to `rank` axes, with axis `first` before the others."""
    if not x.rank:
        return x
    if x.rank < rank:
        x = ops.reshape(x, shape=(*[1] * (rank - x.rank), *x.shape))
    return ops.permute(x, dims=(first, *range(first), *range(first + 1, rank)))
