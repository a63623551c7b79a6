"""Hoisting: values that depend on no input are computed once, while the program is planned.

`lower` folds ops on constants, but keeps `range` and `eye` in graphs, and large values, because
these are long text. A program that is called many times keeps these values, and what follows from
them alone: the index arithmetic of loops over strides, for example, or weights that a model has
quantized. A gather or an update at constant indices of equal distance then becomes a slice or an
update of a slice, which needs no copy.

The graphs of control flow are programs of their own, which hoist too: constants from which values
there follow, such as the transpose of a weight, become constants of these graphs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import inf
from operator import attrgetter
from typing import Any

import numpy as np

from graphir.ops.attribute_record import AttributeRecord
from graphir.ops.control import with_bodies
from graphir.passes import dead_code, fold_constants
from graphir.passes.optimizations import folded
from graphir.passes.rewriter import Rewriter, bodies_of
from graphir.public import Graph, Op, Symbol, ops
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.rewrites.expansion import replace_symbols

_CREATIONS = frozenset({ops.range, ops.eye})
_SLICED: dict[Op, Op] = {ops.gather: ops.slice, ops.index_update: ops.slice_update}


def hoist_constants(graph: Graph) -> Graph:
    """Return the lowered graph with constants in place of values that depend on no input.

    Ranges stay if their sizes are symbolic, or if they have more than HOISTED elements in all.
    Large values that follow from constants stay as `_large_values` says.
    """
    graph_ops = set(map(attrgetter("op"), graph.symbols))
    if not _CREATIONS.isdisjoint(graph_ops):
        limit, sizes = COST.HOISTED, [x.size for x in graph.symbols if x.op in _CREATIONS]
        if sum([size if isinstance(size, int) else limit + 1 for size in sizes]) <= limit:
            graph = dead_code(fold_constants(graph, limit, _CREATIONS))
    graph = _enter_constants(_fold_large(graph))
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


def _enter_constants(graph: Graph) -> Graph:
    """Return the graph whose bodies have the constants from which values in them follow."""
    if not graph.has_bodies:
        return graph
    rewriter = Rewriter(graph)
    constants = {symbol.index for symbol in graph.symbols if symbol.op is ops.constant}
    for symbol in graph.symbols:
        places = _entering_places(symbol, constants)
        if not places:
            rewriter.copy(symbol)
            continue
        operands = symbol.args[len(symbol.args) - len(bodies_of(symbol)[0].inputs) :]
        new = [_with_constants(x, {i: operands[i] for i in places}) for x in bodies_of(symbol)]
        entered = {len(symbol.args) - len(operands) + place for place in places}
        args = [rewriter.values[x.index] for i, x in enumerate(symbol.args) if i not in entered]
        attrs = with_bodies(symbol.attrs, new)
        rewriter.replace(
            rewriter.new.append(symbol.op, tuple(args), attrs, symbol.type, symbol.source)
        )
    return dead_code(rewriter.finish())


def _entering_places(symbol: Symbol, constants: Collection[int]) -> set[int]:
    """Return the places of the inputs of a symbol's bodies that are constants, if values follow.

    `constants` are the indices of the constants around the symbol. Carries and rows are no
    constants.
    """
    graphs = bodies_of(symbol)
    if not graphs:
        return set()
    count = len(graphs[0].inputs)
    first = symbol.attrs.get("carries", 0) + symbol.attrs.get("scanned", 0)
    first = len(symbol.type.parts) if symbol.op is ops.control.while_loop else first
    outer = symbol.args[len(symbol.args) - count :]
    places = {
        place
        for place in range(first, count)
        if outer[place].index in constants and outer[place].type is graphs[0].inputs[place].type
    }
    return places if any(_has_followers(graph, places) for graph in graphs) else set()


def _has_followers(graph: Graph, places: Collection[int]) -> bool:
    """Whether a value of a graph follows from constants, which the inputs at some places are."""
    inputs = {graph.inputs[place].index for place in places}
    constants = inputs | {x.index for x in graph.symbols if x.op is ops.constant}
    return any(
        _entering_places(symbol, constants)
        if symbol.op.kind == "control"
        else constants.issuperset([x.index for x in symbol.args])
        and not inputs.isdisjoint([x.index for x in symbol.args])
        for symbol in graph.symbols
    )


def _with_constants(graph: Graph, constants: Mapping[int, Symbol]) -> Graph:
    """Return a graph with constants in place of the inputs at some places."""
    rewriter = Rewriter(graph)
    inner = {graph.inputs[place].index: outer.attrs for place, outer in constants.items()}
    for symbol in graph.symbols:
        attrs = inner.get(symbol.index)
        if attrs is None:
            rewriter.copy(symbol)
        else:
            rewriter.replace(
                rewriter.new.append(ops.constant, (), attrs, symbol.type, symbol.source)
            )
    new = rewriter.finish()
    places = [place for place in range(len(graph.inputs)) if place not in constants]
    inputs, names = new.inputs, new.input_names
    return new.set_interface((inputs[i] for i in places), (names[i] for i in places))


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
    sliced = [symbol for symbol in graph.symbols if symbol.op in _SLICED]
    bounds = {symbol.index: box for symbol in sliced if (box := _bounds(symbol))}

    def slice_(new: Graph, symbol: Symbol, operands: Sequence[Symbol]) -> Symbol:
        op, attrs = _SLICED[symbol.op], AttributeRecord.of(bounds[symbol.index])
        return new.append(op, tuple(operands[:-1]), attrs, symbol.type, symbol.source)

    return replace_symbols(graph, lambda symbol: symbol.index in bounds, slice_)


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
