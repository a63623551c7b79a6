"""Hoisting: values that depend on no input are computed once, while the program is planned.

`lower` folds ops on constants, but keeps `range` and `eye` in graphs, and large values, because
these are long text. A program that is called many times keeps these values, and what follows from
them alone: the index arithmetic of loops over strides, for example, or weights that a model has
quantized. A gather or an update at constant indices of equal distance then becomes a slice or an
update of a slice, which needs no copy.
"""

from __future__ import annotations

from math import inf
from operator import attrgetter
from typing import Any

import numpy as np

from graphir import Graph, Op, Symbol, ops
from graphir.ops.attribute_record import AttributeRecord
from passes import dead_code, fold_constants
from passes.fold_constants import folded
from passes.rewriter import Rewriter
from runtime.program.cost_model import COST

_CREATIONS = frozenset({ops.range, ops.eye})
_SLICED: dict[Op, Op] = {ops.gather: ops.slice, ops.index_update: ops.slice_update}


def hoisted(graph: Graph) -> Graph:
    """Return the lowered graph with constants in place of values that depend on no input.

    Ranges stay if their sizes are symbolic, or if they have more than HOISTED elements in all.
    Large values that follow from constants stay as `_large_values` says.
    """
    graph_ops = set(map(attrgetter("op"), graph.symbols))
    if not _CREATIONS.isdisjoint(graph_ops):
        most, sizes = COST.HOISTED, [x.size for x in graph.symbols if x.op in _CREATIONS]
        if sum([size if isinstance(size, int) else most + 1 for size in sizes]) <= most:
            graph = dead_code(fold_constants(graph, most, _CREATIONS))
    graph = _fold_large(graph)
    return graph if graph_ops.isdisjoint(_SLICED) else _slice_regular(graph)


def _fold_large(graph: Graph) -> Graph:
    """Return the graph with the constants of the large values that follow from constants alone."""
    indices = _large_values(graph)
    if not indices:
        return graph
    rewriter = Rewriter(graph)
    with np.errstate(all="ignore"):
        for symbol in graph.symbols:
            args = [rewriter.values[arg.index] for arg in symbol.args]
            is_known = symbol.index in indices and all(arg.op is ops.constant for arg in args)
            value = folded(rewriter.new, symbol, args) if is_known else None
            if value is None:
                rewriter.copy(symbol)
            else:
                rewriter.replace(value)
    return dead_code(rewriter.finish())


def _large_values(graph: Graph) -> set[int]:
    """Return the indices of the values that follow from constants alone and are worth memory.

    A value has at most HOISTED_GROWTH bytes for each byte of its operands: a broadcast stays. Casts
    of integers stay for products alone, which read narrow operands. The answer is empty if the
    values that other symbols read have more than HOISTED_BYTES in all.
    """
    indices, products = set[int](), _read_by_products(graph)
    for symbol in graph.symbols:
        args = set(symbol.args)
        if (
            args
            and symbol.op.kind != "control"
            and not symbol.weak
            and symbol.index not in products
            and all(arg.op is ops.constant or arg.index in indices for arg in args)
            and _bytes(symbol) <= COST.HOISTED_GROWTH * sum(map(_bytes, args))
        ):
            indices.add(symbol.index)
    others = [symbol for symbol in graph.symbols if symbol.index not in indices]
    last = {arg for symbol in others for arg in symbol.args if arg.index in indices}
    last.update(symbol for symbol in graph.outputs if symbol.index in indices)
    return indices if sum(map(_bytes, last)) <= COST.HOISTED_BYTES else set()


def _read_by_products(graph: Graph) -> set[int]:
    """Return the indices of casts of integers that only products read."""
    readers: dict[int, set[Op]] = {symbol.index: set() for symbol in graph.outputs}
    others = set(readers)
    for symbol in graph.symbols:
        for arg in symbol.args:
            readers.setdefault(arg.index, set()).add(symbol.op)
    return {
        symbol.index
        for symbol in graph.symbols
        if symbol.op is ops.cast
        and symbol.dtype.is_integer
        and symbol.index not in others
        and readers.get(symbol.index) == {ops.matmul}
    }


def _bytes(symbol: Symbol) -> float:
    """Return the bytes of a value; infinity if its size is symbolic."""
    size = symbol.size
    return size * symbol.dtype.storage.itemsize if isinstance(size, int) else inf


def _slice_regular(graph: Graph) -> Graph:
    """Return the graph with slices in place of gathers at regular constant indices."""
    rewriter = Rewriter(graph)
    for symbol in graph.symbols:
        bounds = _bounds(symbol) if symbol.op in _SLICED else None
        if bounds is None:
            rewriter.copy(symbol)
            continue
        args = tuple([rewriter.values[arg.index] for arg in symbol.args[:-1]])
        op = _SLICED[symbol.op]
        attrs = AttributeRecord.of(bounds)
        rewriter.replace(rewriter.new.append(op, args, attrs, symbol.type, symbol.source))
    return rewriter.finish()


def _bounds(symbol: Symbol) -> dict[str, tuple[int, ...]] | None:
    """Return the attributes of the slice that a gather or an update at indices is about.

    The answer is None unless the indices are constants of equal distance.
    """
    x, indices = symbol.args[0], symbol.args[-1]
    axis: Any = symbol.attrs["axis"]
    if axis is None and x.rank == 1:
        axis = 0
    if axis is None or indices.op is not ops.constant or indices.rank != 1:
        return None
    places, sizes = indices.attrs["value"], [n for n in x.shape if isinstance(n, int)]
    if not len(places) or len(sizes) < x.rank:
        return None
    step = int(places[1]) - int(places[0]) if len(places) > 1 else 1
    first, last = int(places[0]), int(places[-1])
    is_regular = step > 0 and (np.diff(places.astype(np.int64)) == step).all()
    if not is_regular or first < 0 or last >= sizes[axis]:
        return None
    start, steps = [0] * x.rank, [1] * x.rank
    start[axis], sizes[axis], steps[axis] = first, last + 1, step
    return {"start": tuple(start), "stop": tuple(sizes), "step": tuple(steps)}
