"""Dead code elimination: drop symbols that no output depends on."""

from __future__ import annotations

from graphir.decorators import uncollected
from graphir.ir.liveness import live_mask
from graphir.passes.rewriter import Rewriter, entering_bodies
from graphir.public import Graph


@uncollected
@entering_bodies
def dead_code(graph: Graph) -> Graph:
    """Drop symbols that no output depends on; keep all inputs, which are part of the signature.

    Returns the graph itself if every symbol is live.
    """
    live = live_mask(graph, graph.outputs)
    if all(live):
        return graph
    rewriter = Rewriter(graph)
    rewriter.changed = True
    for symbol in graph.symbols:
        if live[symbol.index]:
            rewriter.copy(symbol)
        else:
            rewriter.values.append(symbol)  # a placeholder: no live symbol refers to it
    return rewriter.finish()
