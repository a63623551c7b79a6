"""Reductions in the forms that regions compute: by groups of axes, by elements of short axes.

`split_reductions` makes two of a reduction of last axes and of others, as `mean(axis=(0, 2, 3))`:
rows of neighbouring elements, and then outer axes. NumPy adds such floats in the same order, the
elements of each row pairwise, and the sums of rows in sequence.

`recompute_cheap_values` lets ops after a reduction over outer axes recompute its cheap operands. In
(x - m) / std(x - m, axis=0) the reduction comes before the division. A difference that both read
would pass through memory, whereas x lies there anyway, so each part computes a difference itself.

`split_short_axes` takes reductions of short last axes apart: the array with that axis never exists.
`((a[:, None] - b[None]) ** 2).sum(-1)` of points in space has a row of three elements for each pair
of points. The pass writes the elementwise ops once for each of the three elements, on arrays
without the axis, and adds the results: a region then runs over the long axes. A sum over another
axis of such an array becomes a sum over the first axis of each element. The order of additions is
NumPy's: rows of fewer than eight elements in sequence, longer rows pairwise, and the elements of an
outer axis in sequence for each result. The other reductions have the same result in any order.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from graphir.passes.rewriter import Rewriter
from graphir.public import DType, Graph, Op, Symbol, TensorType, ops
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.cutting import row_axes, source_of
from graphir.runtime.program.rewrites.expansion import has_exact_count, replace_symbols
from graphir.runtime.program.rows import sums_by_halves

SHORT = range(2, 9)
"""The sizes of a short axis of any reduction: whole_programs, n_body_forces."""

VERY_SHORT = range(2, 5)
"""The sizes of a short axis of an array in memory: strides that vectors read by shuffles."""

ROWS = range(2, 33)
"""The sizes of a short axis that is reduced itself, if cheap ops compute its elements of broadcast
operands: whole_programs, squared_distances."""

LANES = 8
"""The elements that NumPy's pairwise sum adds side by side (loops_utils.h.src, pairwise_sum)."""

Element: TypeAlias = Callable[[int], Symbol]
"""A function that emits an element of a row, by its number, at its first use."""

_ELEMENTWISE = ("elementwise", "cast")


def split_short_axes(graph: Graph) -> Graph:
    """Return the lowered graph with reductions of short axes taken apart; results keep their bits.

    The pass takes a reduction apart if no op needs its operand as a whole.
    """
    if not any(_is_short(symbol) for symbol in graph.symbols) or not adds_in_sequence():
        return graph
    inner = _inner_symbols(graph)
    split_values, splitter = inner | _arrays(graph), _Splitter(graph, inner)
    for symbol in graph.symbols:
        if _is_short(symbol) and symbol.args[0].index in split_values:
            splitter.split(symbol)
        else:
            splitter.copy(symbol)
    return splitter.finish()


@functools.cache
def adds_in_sequence() -> bool:
    """Whether this NumPy adds short rows, and the elements of outer axes, in the order of the pass.

    The order of rows is that of `_pairwise`, the order of outer axes is their sequence.
    """
    x = np.sin(np.arange(1, 7 * 300 * 3 + 1, dtype=np.float64)).reshape(7, 300, 3)
    outer = np.add.accumulate(x, axis=1)[:, -1]
    columns = np.stack([np.add.reduce(x[..., k].T.copy(), axis=0) for k in range(3)], axis=-1)
    is_same = (np.add.reduce(x, axis=1) == outer).all() and (columns == outer).all()
    for size in (3, 8, 21, ROWS.stop - 1):
        for dtype in (np.float32, np.float64):
            rows = x.ravel()[: 100 * size].reshape(100, size).astype(dtype)
            total = _pairwise(np.add, list(rows.T).__getitem__, size)
            is_same &= (np.add.reduce(rows, axis=1) == total).all()
    return bool(is_same)


def _pairwise(add: Callable[[Any, Any], Any], element: Callable[[int], Any], count: int) -> Any:
    """Return the sum of a row of at most 128 elements, in NumPy's order.

    Eight lanes add every eighth element each. Then neighbouring lanes are added, and the elements
    after the last whole eight follow in sequence. `element` is called in an order that leaves few
    elements live.
    """
    end = count // LANES * LANES

    def lanes(first: int, number: int) -> Any:
        if number == 1:
            return functools.reduce(add, map(element, range(first, end, LANES)))
        half = number // 2
        return add(lanes(first, half), lanes(first + half, half))

    rest = map(element, range(end, count))
    return functools.reduce(add, rest, lanes(0, LANES)) if end else functools.reduce(add, rest)


def _is_short(symbol: Symbol) -> bool:
    """Whether a symbol reduces one axis of an array with a short last axis, as the pass can."""
    if symbol.op not in _REDUCTIONS or len(_axes(symbol)) != 1:
        return False
    operand, (axis,) = symbol.args[0], _axes(symbol)
    family, is_number = operand.dtype.family, operand.dtype.family in ("int", "uint")
    if family == "float":
        is_number = operand.dtype in (DType.float32, DType.float64)
    if not (family == "bool" if symbol.op in (ops.any, ops.all) else is_number):
        return False
    is_sum = symbol.op in (ops.sum, ops.mean)
    if is_sum and operand.dtype is not symbol.dtype:
        return False
    if axis == operand.rank - 1:
        return operand.shape[-1] in ROWS
    others = [size for k, size in enumerate(operand.shape[:-1]) if k != axis]
    # One outer element would make the outer axis contiguous, which NumPy adds pairwise.
    is_long = any(isinstance(size, int) and size > 1 for size in others)
    return is_sum and operand.shape[-1] in SHORT and is_long


def _axes(symbol: Symbol) -> Sequence[int]:
    """Return the axes of a reduction; none for all axes."""
    axis = symbol.attrs["axis"]
    return (axis,) if isinstance(axis, int) else axis or ()


def _arrays(graph: Graph) -> set[int]:
    """Return the arrays in memory that only reductions of their very short last axis read.

    A region then reads each element of the axis as a strided view of the array.
    """
    reads: dict[int, bool] = {symbol.index: False for symbol in graph.outputs}
    for symbol in graph.symbols:
        for arg in symbol.args:
            is_row = _is_short(symbol) and _axes(symbol) == (arg.rank - 1,)
            reads[arg.index] = reads.get(arg.index, True) and is_row
    return {
        symbol.index
        for symbol in graph.symbols
        if reads.get(symbol.index)
        and symbol.op.kind not in _ELEMENTWISE
        and symbol.shape[-1] in VERY_SHORT
        and symbol.rank > 1
    }


def _may_be_inner(symbol: Symbol) -> bool:
    """Whether an elementwise symbol has a short last axis, and its elements pay apart."""
    if symbol.op.kind not in _ELEMENTWISE or symbol.rank < 2:
        return False
    *outer, size = symbol.shape
    if size in SHORT:
        return True
    if size not in ROWS or not (symbol.op.cheap or symbol.op is ops.cast):
        return False
    is_large = math.prod([size for size in outer if isinstance(size, int)]) >= COST.SPLIT_ROWS
    is_whole = any(
        source.shape == symbol.shape and source.op.kind not in _ELEMENTWISE
        for source in map(source_of, symbol.args)
    )
    return not is_whole and (is_large or not all(isinstance(size, int) for size in outer))


def _inner_symbols(graph: Graph) -> set[int]:
    """Return the elementwise symbols with a short last axis that only such reductions use.

    A symbol that reads a whole result of another one stays with it, in one region. Symbols with
    longer axes stay if their elements were too many instructions.
    """
    inner = _short_symbols(graph, _may_be_inner)
    sizes = [symbol.shape[-1] for symbol in inner.values()]
    if sum(size for size in sizes if isinstance(size, int)) > COST.SPLIT_INSTRUCTIONS:
        inner = _short_symbols(graph, lambda x: _may_be_inner(x) and x.shape[-1] in SHORT)
    return set(inner)


def _short_symbols(graph: Graph, may_be_inner: Callable[[Symbol], bool]) -> dict[int, Symbol]:
    """Return the symbols that only each other and reductions of short axes use."""
    outputs = {symbol.index for symbol in graph.outputs}
    users: dict[int, list[Symbol]] = {}
    for symbol in graph.symbols:
        for arg in symbol.args:
            users.setdefault(arg.index, []).append(symbol)
    inner = {
        symbol.index: symbol
        for symbol in graph.symbols
        if symbol.index in users and symbol.index not in outputs and may_be_inner(symbol)
    }
    whole: list[int] = [-1]
    while whole:
        whole = [
            index
            for index, symbol in inner.items()
            if not all(user.index in inner or _is_short(user) for user in users[index])
            or any(
                arg.index not in inner and arg.op.kind in _ELEMENTWISE
                for arg in symbol.args
                if arg.shape == symbol.shape
            )
        ]
        for index in whole:
            del inner[index]
    return inner


class _Splitter(Rewriter):
    """The pass: elements of symbols along their last axis, each emitted once.

    A key is a symbol, the element, and None or the axis that comes first with the rank of all axes.
    """

    def __init__(self, graph: Graph, inner: set[int]) -> None:
        super().__init__(graph)
        self._inner = inner
        self._elements: dict[tuple[int, int, tuple[int, int] | None], Symbol] = {}

    def split(self, symbol: Symbol) -> None:
        """Emit a reduction by the elements of its operand."""
        operand, (axis,) = symbol.args[0], _axes(symbol)
        count = operand.shape[-1]
        assert isinstance(count, int)
        with self.new.at(symbol.location):
            if axis == operand.rank - 1:
                element = functools.partial(self._element, operand)
                result = _REDUCTIONS[symbol.op](symbol, element, count)
            else:
                order = axis, operand.rank - 1
                elements = [self._element(operand, k, order) for k in range(count)]
                add: Callable[..., Symbol] = symbol.op
                sums = [add(element, axis=(0,)) for element in elements]
                result = ops.stack(sums, axis=sums[0].rank)
            if result.shape != symbol.shape:
                result = ops.reshape(result, shape=symbol.shape)
        self.replace(result)

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
        row, outer = self.values[symbol.index], symbol.shape[:-1]
        if symbol.shape[-1] != 1:
            start, stop = (*[0] * len(outer), k), (*outer, k + 1)
            row = ops.slice(row, start=start, stop=stop, step=(1,) * symbol.rank)
        return ops.reshape(row, shape=outer)


def _reordered(x: Symbol, first: int, rank: int) -> Symbol:
    """Return an operand of a broadcast to `rank` axes, with axis `first` before the others."""
    if not x.rank:
        return x
    if x.rank < rank:
        x = ops.reshape(x, shape=(*[1] * (rank - x.rank), *x.shape))
    return ops.permute(x, dims=(first, *range(first), *range(first + 1, rank)))


def _sum(symbol: Symbol, element: Element, count: int) -> Symbol:
    """Return a row as NumPy adds it: its elements, then 0.0, so never -0.0."""
    total, dtype = _pairwise(ops.add, element, count), symbol.dtype
    if dtype.is_float:
        total = ops.add(total, total.graph.constant(0.0, dtype))
    if symbol.op is ops.mean:
        total = ops.divide(total, total.graph.constant(count, dtype))
    return total


def _extreme(symbol: Symbol, element: Element, count: int) -> Symbol:
    """Return the maximum or minimum of a row, with 0.0 above -0.0.

    Of zeros, `ops.maximum` gives either. A maximum of -0.0 has no element without the sign bit; a
    minimum of -0.0 has an element with it.
    """
    is_max, elements = symbol.op is ops.max, range(count)
    result = functools.reduce(ops.maximum if is_max else ops.minimum, map(element, elements))
    if not symbol.dtype.is_float:
        return result
    signs = [ops.signbit(element(k)) for k in elements]
    sign = functools.reduce(ops.logical_and if is_max else ops.logical_or, signs)
    zeros = [result.graph.constant(zero, symbol.dtype) for zero in (-0.0, 0.0)]
    return ops.where(ops.equal(result, zeros[1]), ops.where(sign, *zeros), result)


def _truth(symbol: Symbol, element: Element, count: int) -> Symbol:
    """Return whether any element of a row, or each of them, is true."""
    join = ops.logical_or if symbol.op is ops.any else ops.logical_and
    return functools.reduce(join, map(element, range(count)))


def _place(symbol: Symbol, element: Element, count: int) -> Symbol:
    """Return the first place of the greatest or least element of a row, or of its first NaN."""
    best, is_max = element(0), symbol.op is ops.argmax
    place = best.graph.constant(0, symbol.dtype)
    for k in range(1, count):
        x, number = element(k), best.graph.constant(k, symbol.dtype)
        if x.dtype.is_float:
            order = ops.less_equal if is_max else ops.greater_equal
            is_better = ops.logical_and(ops.logical_not(order(x, best)), ops.equal(best, best))
        else:
            is_better = (ops.greater if is_max else ops.less)(x, best)
        best, place = ops.where(is_better, x, best), ops.where(is_better, number, place)
    return place


_REDUCTIONS: Mapping[Op, Callable[[Symbol, Element, int], Symbol]] = {
    **dict.fromkeys((ops.sum, ops.mean), _sum),
    **dict.fromkeys((ops.max, ops.min), _extreme),
    **dict.fromkeys((ops.any, ops.all), _truth),
    **dict.fromkeys((ops.argmax, ops.argmin), _place),
}
"""The reductions that the pass takes apart, as functions of the reduction and a row's elements."""


_SUMS = (ops.sum, ops.mean)
_IN_ANY_ORDER = (ops.max, ops.min, ops.any, ops.all)


def split_reductions(graph: Graph) -> Graph:
    """Return the lowered graph with each such reduction as two; the results keep their bits."""
    axes = {symbol.index: both for symbol in graph.symbols if (both := _axis_groups(symbol))}

    def split(new: Graph, symbol: Symbol, operands: Sequence[Symbol]) -> Symbol:
        op, (result,) = ops.sum if symbol.op is ops.mean else symbol.op, operands
        for group in axes[symbol.index]:
            result = op(result, axis=tuple(group), keepdims=True)
        if symbol.op is ops.mean:
            sizes: list[Any] = [symbol.args[0].shape[i] for i in symbol.attrs["axis"]]
            result = ops.divide(result, new.constant(math.prod(sizes), symbol.dtype))
        return result if result.shape == symbol.shape else ops.reshape(result, shape=symbol.shape)

    return replace_symbols(graph, lambda symbol: symbol.index in axes, split)


def _axis_groups(symbol: Symbol) -> tuple[Sequence[int], Sequence[int]] | None:
    """Return the last axes of a reduction and its other axes; None if it has not both."""
    if symbol.op not in (*_SUMS, *_IN_ANY_ORDER) or not symbol.attrs["axis"]:
        return None
    axes: Sequence[int] = symbol.attrs["axis"]
    sizes: Sequence[Any] = symbol.args[0].shape
    if not all(isinstance(size, int) and size for size in sizes):
        return None
    if symbol.op in _SUMS and not _adds_alike(symbol):
        return None
    last = len(sizes)
    while last and (last - 1 in axes or sizes[last - 1] == 1):
        last -= 1
    tail, head = [i for i in axes if i >= last], [i for i in axes if i < last]
    is_several = [any(sizes[i] != 1 for i in group) for group in (tail, head)]
    return (tail, head) if all(is_several) else None


def _adds_alike(symbol: Symbol) -> bool:
    """Whether a sum or mean has the same bits as the sum of sums."""
    operand = symbol.args[0]
    if operand.dtype is not symbol.dtype or operand.dtype.is_complex:
        return False
    if not operand.dtype.is_float:
        return True
    is_exact = symbol.op is ops.sum or has_exact_count(symbol)
    return is_exact and operand.dtype.storage.char in "fd" and sums_by_halves()


def recompute_cheap_values(graph: Graph) -> Graph:
    """Return the lowered graph with a second symbol for each such value, which later ops read."""
    outputs = {symbol.index for symbol in graph.outputs}
    bits = dict[int, int]()
    for symbol in graph.symbols:
        if symbol.index not in outputs and _is_cheap(symbol):
            bits[symbol.index] = 1 << len(bits)
    if not bits or not any(map(_reduces_outer_axes, graph.symbols)):
        return graph
    # By symbol, as sets of bits: the values it computes with, and those that it reads as reduced.
    inside, reduced = list[int](), list[int]()
    rewriter, again = Rewriter(graph), dict[int, Symbol]()
    for symbol in graph.symbols:
        before = after = 0
        for arg in symbol.args:
            before |= inside[arg.index]
            after |= reduced[arg.index]
        for arg in symbol.args:
            if bits.get(arg.index, 0) & after and arg.index not in again:
                again[arg.index] = rewriter.values[arg.index] = _copied(rewriter, arg)
        rewriter.copy(symbol)
        if _reduces_outer_axes(symbol):
            after |= before
        is_elementwise = symbol.op.kind == "elementwise"
        inside.append((before if is_elementwise else 0) | bits.get(symbol.index, 0))
        reduced.append(after)
    rewriter.changed |= bool(again)
    return rewriter.finish()


def _copied(rewriter: Rewriter, symbol: Symbol) -> Symbol:
    """Emit a symbol once more."""
    args = [rewriter.values[arg.index] for arg in symbol.args]
    with rewriter.new.at(symbol.location):
        return rewriter.new.apply(symbol.op, args, symbol.attrs)


def _is_cheap(symbol: Symbol) -> bool:
    """Whether a large value follows from one array in memory, and small ones, by a cheap op."""
    if symbol.op.kind != "elementwise" or not symbol.op.cheap:
        return False
    sizes = [size for size in symbol.shape if isinstance(size, int)]
    is_large = math.prod(sizes) * symbol.dtype.storage.itemsize > COST.CACHE
    if len(sizes) < symbol.rank or not is_large:
        return False
    large = [arg for arg in symbol.args if arg.shape == symbol.shape]
    return len(large) == 1 and large[0].op.kind != "elementwise"


def _reduces_outer_axes(symbol: Symbol) -> bool:
    return symbol.op.kind == "reduction" and not row_axes(symbol)
