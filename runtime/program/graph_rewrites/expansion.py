"""Decomposition of composite ops into reductions and elementwise ops; squares.

The planner can fuse the parts of a decomposed op with the ops around it. Only the ops whose
decomposition has the bits of the kernel are decomposed.
"""

from __future__ import annotations

from graphir import Graph, Symbol, ops
from passes import decompose
from passes.rewriter import Rewriter
from runtime.program.cutting import row_axes


def expanded(graph: Graph) -> Graph:
    """Return the lowered graph with softmax, statistics of rows and outer products decomposed.

    The results keep their bits. After the decomposition, the statistics of a row are row-wise
    symbols of a region, and the elementwise ops that follow them belong to a region too. Each row
    is then read only as often as the statistics require.
    """
    return decompose(graph, keep=_UNTOUCHED_OPS, where=_is_expanded)


def multiply_squares(graph: Graph) -> Graph:
    """Return the graph with each power whose exponent is the constant 2 as a product.

    The kernel of `pow` computes arrays to that power as `x * x`, so the results keep their bits.
    """
    if not any(symbol.op is ops.pow for symbol in graph.symbols):
        return graph
    rewriter = Rewriter(graph)
    for symbol in graph.symbols:
        if symbol.op is ops.pow and _is_square(symbol):
            base = rewriter.values[symbol.args[0].index]
            with rewriter.new.at(symbol.location):
                rewriter.replace(ops.multiply(base, base))
        else:
            rewriter.copy(symbol)
    return rewriter.finish()


def _is_square(power: Symbol) -> bool:
    base, exponent = power.args
    if not base.rank or base.shape != power.shape or base.dtype.is_complex:
        return False
    return exponent.op is ops.constant and bool((exponent.attrs["value"] == 2).all())


_BY_DECOMPOSITION = frozenset({"softmax", "logsoftmax", "outer"})
"""The ops whose kernels compute the decomposition, over any axis."""

_BY_ROWS = frozenset({"var", "std", "layer_norm"})
"""The ops whose kernels have the bits of the decomposition if their axes are the last ones."""

_UNTOUCHED_OPS = frozenset(ops.CATALOGUE) - _BY_DECOMPOSITION - _BY_ROWS


def _is_expanded(symbol: Symbol) -> bool:
    """Whether the decomposition of a symbol has the bits of the kernel.

    Three conditions ensure equal bits of statistics: the operand has the dtype of the result (a
    complex operand has another dtype), the symbol has no `correction`, and NumPy's `sum` adds its
    rows in the order of the kernel (see `row_axes`).
    """
    if symbol.op.name in _BY_DECOMPOSITION:
        return True
    return (
        symbol.op.name in _BY_ROWS
        and symbol.args[0].dtype is symbol.dtype
        and not symbol.attrs.get("correction")
        and row_axes(symbol) > 0
    )
