"""Ops in the form that the planner computes best: composites, squares, products with vectors.

The planner can fuse the parts of a decomposed op with the ops around it. Only the ops whose
decomposition has the bits of the kernel are decomposed. NumPy has no fast loop for products of
integers and vectors, and strides over the matrix if the vector is on the left; sums of integers
wrap, so that they have the same bits in any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from graphir.ops import control
from graphir.ops.types import TupleType
from graphir.passes import common_subexpressions, decompose
from graphir.passes.rewriter import Rewriter
from graphir.public import Graph, Symbol, ops
from graphir.runtime.program.cutting import row_axes
from graphir.semantics.numpy_loops import LoopCall


def expand_composites(graph: Graph) -> Graph:
    """Return the lowered graph with softmax, statistics of rows and outer products decomposed.

    The results keep their bits. After the decomposition, the statistics of a row are row-wise
    symbols of a region, and the elementwise ops that follow them belong to a region too. Each row
    is then read only as often as the statistics require: a mean beside a variance is computed once.
    """
    decomposed = decompose(graph, keep=_UNTOUCHED_OPS, where=_is_expanded)
    return graph if decomposed is graph else _reduced_once(common_subexpressions(decomposed))


def _reduced_once(graph: Graph) -> Graph:
    """Return the graph with reductions that differ in `keepdims` alone as one."""
    rewriter = Rewriter(graph)
    first: dict[Any, Symbol] = {}
    for symbol in graph.symbols:
        if symbol.op.kind != "reduction" or "keepdims" not in symbol.attrs:
            rewriter.copy(symbol)
            continue
        others = tuple([item for item in symbol.attrs.items() if item[0] != "keepdims"])
        same = first.setdefault((symbol.op, symbol.args[0].index, symbol.dtype, others), symbol)
        if same is symbol:
            rewriter.copy(symbol)
            continue
        with rewriter.new.at(symbol.location):
            rewriter.replace(ops.reshape(rewriter.values[same.index], shape=symbol.shape))
    return rewriter.finish() if rewriter.changed else graph


def replace_symbols(
    graph: Graph,
    concerns: Callable[[Symbol], bool],
    emit: Callable[[Graph, Symbol, Sequence[Symbol]], Symbol],
) -> Graph:
    """Return the graph with another value in place of each symbol that a rewrite concerns.

    `emit` emits the value into the new graph, for a symbol and the new values of its operands.
    """
    if not any(map(concerns, graph.symbols)):
        return graph
    rewriter = Rewriter(graph)
    for symbol in graph.symbols:
        if not concerns(symbol):
            rewriter.copy(symbol)
            continue
        operands = [rewriter.values[arg.index] for arg in symbol.args]
        with rewriter.new.at(symbol.location):
            rewriter.replace(emit(rewriter.new, symbol, operands))
    return rewriter.finish()


def call_loops(graph: Graph) -> Graph:
    """Return the lowered graph with a call of NumPy in place of each op with an attribute `loop`.

    The planner then reads the operands as whole arrays, and fuses no other op with the call.
    """

    def call(new: Graph, symbol: Symbol, operands: Sequence[Symbol]) -> Symbol:
        loop = symbol.attrs["loop"]
        callee = control.Callee(f"numpy.{loop[0]}", LoopCall(loop))
        attrs = {"callee": callee, "types": TupleType((symbol.type,))}
        return control.part(new.emit(control.call, tuple(operands), attrs), 0)

    return replace_symbols(graph, lambda x: x.attrs.get("loop") is not None, call)


def multiply_squares(graph: Graph) -> Graph:
    """Return the graph with each power whose exponent is the constant 2 as a product.

    The kernel of `pow` computes arrays to that power as `x * x`, so the results keep their bits.
    """
    return replace_symbols(graph, _is_square, lambda _, __, args: ops.multiply(args[0], args[0]))


def _is_square(power: Symbol) -> bool:
    if power.op is not ops.pow:
        return False
    base, exponent = power.args
    if not base.rank or base.shape != power.shape or base.dtype.is_complex:
        return False
    return exponent.op is ops.constant and bool((exponent.attrs["value"] == 2).all())


_BY_DECOMPOSITION = frozenset({"softmax", "logsoftmax", "outer"})
"""The ops whose kernels compute the decomposition, over any axis."""

_SPREADS = frozenset({"var", "std"})
"""The ops whose kernels have the bits of the decomposition for operands of the result's dtype."""

_BY_ROWS = frozenset({"layer_norm"})
"""The ops whose kernels have the bits of the decomposition if their axes are the last ones too."""

_UNTOUCHED_OPS = frozenset(ops.CATALOGUE) - _BY_DECOMPOSITION - _SPREADS - _BY_ROWS


def _is_expanded(symbol: Symbol) -> bool:
    """Whether the decomposition of a symbol has the bits of the kernel.

    Statistics of complex numbers do not: the operand has another dtype than the result. Those of
    rows do if NumPy's `sum` adds rows in the order of the kernel (see `row_axes`). A variance with
    a `correction` divides by a constant of its dtype.
    """
    name, operand = symbol.op.name, symbol.args[0]
    if name in _BY_DECOMPOSITION:
        return True
    if operand.dtype is not symbol.dtype:
        return False
    if name in _SPREADS and symbol.attrs["correction"]:
        return has_exact_count(symbol)
    return name in _SPREADS or (name in _BY_ROWS and row_axes(symbol) > 0)


_EXACT_COUNT = 1 << 24
"""The most elements whose number float32 has, with all lower ones; NumPy divides in float64."""


def has_exact_count(symbol: Symbol) -> bool:
    """Whether a float32 is the number of elements that a reduction joins to each result."""
    sizes: list[Any] = [symbol.args[0].shape[axis] for axis in symbol.attrs["axis"]]
    return all(isinstance(size, int) for size in sizes) and math.prod(sizes) <= _EXACT_COUNT


def sum_vector_products(graph: Graph) -> Graph:
    """Return the lowered graph with products of integers and vectors as sums.

    A matrix of one row on the left, or of one column on the right, counts as a vector.
    """
    return replace_symbols(graph, _is_vector_product, lambda _, __, args: _sum(*args))


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
