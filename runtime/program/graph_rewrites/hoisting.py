"""Hoisting: values that depend on no input are computed once, while the program is planned.

`lower` folds ops on constants, but keeps `range` and `eye` in graphs, because their values are long
text. A program that is called many times keeps these values, and what follows from them alone: the
index arithmetic of loops over strides, for example. A gather or an update at constant indices of
equal distance then becomes a slice or an update of a slice, which needs no copy.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np

from graphir import Graph, Op, Symbol, ops
from graphir.ops.attribute_record import AttributeRecord
from passes import dead_code, fold_constants
from passes.rewriter import Rewriter
from runtime.program.cost_model import COST

_CREATIONS = frozenset({ops.range, ops.eye})
_SLICED: dict[Op, Op] = {ops.gather: ops.slice, ops.index_update: ops.slice_update}


def hoisted(graph: Graph) -> Graph:
    """Return the lowered graph with constants in place of values that depend on no input.

    Ranges stay if their sizes are symbolic, or if they have more than HOISTED elements in all.
    """
    graph_ops = set(map(attrgetter("op"), graph.symbols))
    if not _CREATIONS.isdisjoint(graph_ops):
        most, sizes = COST.HOISTED, [x.size for x in graph.symbols if x.op in _CREATIONS]
        if sum([size if isinstance(size, int) else most + 1 for size in sizes]) <= most:
            graph = dead_code(fold_constants(graph, most, _CREATIONS))
    return graph if graph_ops.isdisjoint(_SLICED) else _slice_regular(graph)


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
