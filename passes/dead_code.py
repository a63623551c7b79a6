"""Drop what no output needs."""

from __future__ import annotations

from graphir import Graph
from graphir.gc_pause import uncollected
from graphir.ir.liveness import live_mask
from passes.rewriter import Rewriter


@uncollected
def dead_code(graph: Graph) -> Graph:
    """Keep the symbols that outputs depend on, and all inputs, which callers count on."""
    live = live_mask(graph, graph.outputs)
    if all(live):
        return graph
    rewriter = Rewriter(graph)
    rewriter.changed = True
    for symbol in graph.symbols:
        if live[symbol.index]:
            rewriter.copy(symbol)
        else:
            rewriter.values.append(symbol)  # a place holder: nothing that is kept refers to it
    return rewriter.finish()
