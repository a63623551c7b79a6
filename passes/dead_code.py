"""Drop what no output needs."""

from __future__ import annotations

from graphir import Graph, ops
from graphir.uncollected import uncollected
from passes.rewriting import Rewriter


@uncollected
def dead_code(graph: Graph) -> Graph:
    """Keep the symbols that outputs depend on, and all inputs, which callers count on."""
    needed = bytearray(len(graph.symbols))
    for output in graph.outputs:
        needed[output.index] = True
    for symbol in reversed(graph.symbols):
        if symbol.op is ops.input:
            needed[symbol.index] = True
        if needed[symbol.index]:
            for arg in symbol.args:
                needed[arg.index] = True
    if all(needed):
        return graph
    rewriter = Rewriter(graph)
    rewriter.changed = True
    for symbol in graph.symbols:
        if needed[symbol.index]:
            rewriter.copy(symbol)
        else:
            rewriter.values.append(symbol)  # a place holder: nothing that is kept refers to it
    return rewriter.finish()
