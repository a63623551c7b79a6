"""Reductions of last axes and of others, as `mean(axis=(0, 2, 3))`, as two reductions.

Each of the two has a form that regions compute: rows of neighbouring elements, and then outer axes.
NumPy adds such floats in the same order: the elements of each row pairwise, and the sums of rows in
sequence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from graphir import Graph, Symbol, ops
from graphir.passes.rewriter import Rewriter
from graphir.runtime.program.rows import sums_by_halves

_SUMS = (ops.sum, ops.mean)
_IN_ANY_ORDER = (ops.max, ops.min, ops.any, ops.all)

_EXACT_COUNT = 1 << 24
"""The most elements whose number float32 has, with all lower ones; NumPy divides in float64."""


def has_exact_count(symbol: Symbol) -> bool:
    """Whether a float32 is the number of elements that a reduction joins to each result."""
    sizes: list[Any] = [symbol.args[0].shape[axis] for axis in symbol.attrs["axis"]]
    return all(isinstance(size, int) for size in sizes) and math.prod(sizes) <= _EXACT_COUNT


def split_reductions(graph: Graph) -> Graph:
    """Return the lowered graph with each such reduction as two; the results keep their bits."""
    axes = {symbol.index: both for symbol in graph.symbols if (both := _axes(symbol))}
    if not axes:
        return graph
    rewriter = Rewriter(graph)
    for symbol in graph.symbols:
        if symbol.index not in axes:
            rewriter.copy(symbol)
            continue
        op = ops.sum if symbol.op is ops.mean else symbol.op
        with rewriter.new.at(symbol.location):
            result = rewriter.values[symbol.args[0].index]
            for each in axes[symbol.index]:
                result = op(result, axis=tuple(each), keepdims=True)
            if symbol.op is ops.mean:
                sizes: list[Any] = [symbol.args[0].shape[i] for i in symbol.attrs["axis"]]
                result = ops.divide(result, rewriter.new.constant(math.prod(sizes), symbol.dtype))
            if result.shape != symbol.shape:
                result = ops.reshape(result, shape=symbol.shape)
        rewriter.replace(result)
    return rewriter.finish()


def _axes(symbol: Symbol) -> tuple[Sequence[int], Sequence[int]] | None:
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
    is_several = [any(sizes[i] != 1 for i in each) for each in (tail, head)]
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
