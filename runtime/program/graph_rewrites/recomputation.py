"""Recomputation of cheap values after a reduction of theirs over outer axes.

In (x - m) / std(x - m, axis=0) the reduction comes before the division. A difference that both read
would pass through memory, whereas x lies there anyway, so each part computes a difference itself.
"""

from __future__ import annotations

import math

from graphir import Graph, Symbol
from graphir.passes.rewriter import Rewriter
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.cutting import row_axes


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
