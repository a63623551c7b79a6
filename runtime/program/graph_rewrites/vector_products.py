"""Products of integer matrices with vectors as sums of elementwise products, which regions compute.

NumPy has no fast loop for such products, and strides over the matrix if the vector is on the left.
Sums of integers wrap, so they have the same bits in any order.
"""

from __future__ import annotations

from graphir import Graph, Symbol, ops
from graphir.passes.rewriter import Rewriter


def sum_vector_products(graph: Graph) -> Graph:
    """Return the lowered graph with products of integers and vectors as sums.

    A matrix of one row on the left, or of one column on the right, counts as a vector.
    """
    if not any(_is_vector_product(symbol) for symbol in graph.symbols):
        return graph
    rewriter = Rewriter(graph)
    for symbol in graph.symbols:
        if _is_vector_product(symbol):
            operands = [rewriter.values[arg.index] for arg in symbol.args]
            with rewriter.new.at(symbol.location):
                rewriter.replace(_sum(*operands))
        else:
            rewriter.copy(symbol)
    return rewriter.finish()


def _is_vector_product(symbol: Symbol) -> bool:
    if symbol.op is not ops.matmul or symbol.attrs["layout"]:
        return False
    if symbol.dtype.family not in ("int", "uint") or symbol.dtype.narrow:
        return False
    x, y = symbol.args
    return min(x.rank, y.rank) == 1 or (x.rank == y.rank == 2 and (_is_row(x) or _is_column(y)))


def _is_row(x: Symbol) -> bool:
    return x.shape[0] == 1


def _is_column(y: Symbol) -> bool:
    return y.shape[1] == 1


def _sum(x: Symbol, y: Symbol) -> Symbol:
    """Return the product of two operands, one of which is a vector, a row or a column."""
    if y.rank == 1:
        return ops.sum(x * y, axis=-1)
    if x.rank == 1:
        return ops.sum(ops.unsqueeze(x, 1) * y, axis=-2)
    if _is_column(y):
        return ops.sum(x * ops.reshape(y, (y.shape[0],)), axis=-1, keepdims=True)
    return ops.sum(ops.reshape(x, (x.shape[1], 1)) * y, axis=0, keepdims=True)
