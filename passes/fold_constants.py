"""Constant folding: evaluate ops on constants while the graph is compiled."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from graphir.decorators import uncollected
from graphir.ops.attributes import constant
from graphir.passes.rewriter import Rewriter, entering_bodies, merged_origins
from graphir.public import ExecutionError, Graph, Op, ShapeError, Symbol, ops
from graphir.semantics.evaluation import Evaluation

LIMIT = 4096
"""The most elements of a folded result; larger results stay computed, so that graphs stay small."""


@uncollected
@entering_bodies
def fold_constants(graph: Graph, limit: int = LIMIT, creations: Collection[Op] = ()) -> Graph:
    """Replace each op on constants by its value, if the value has at most `limit` elements.

    The pass also folds the ops `creations`, which have no operands: `ops.range`, for example. The
    value is bit-equal to the result at run time. The constant keeps the origins of the casts that
    were folded into it. An op that raises (an integer to a negative power) stays in the graph, and
    raises when the graph runs. Weak constants stay: `weak_types` commits them.

    Returns the graph itself if no op is foldable.
    """
    if not any(_foldable(symbol, symbol.args, limit, creations) for symbol in graph.symbols):
        return graph
    rewriter = Rewriter(graph)
    with np.errstate(all="ignore"):
        for symbol in graph.symbols:
            args = [rewriter.values[arg.index] for arg in symbol.args]
            is_foldable = _foldable(symbol, args, limit, creations)
            constant_ = folded(rewriter.new, symbol, args) if is_foldable else None
            if constant_ is None:
                rewriter.copy(symbol)
            else:
                rewriter.replace(constant_)
    return rewriter.finish()


def _foldable(
    symbol: Symbol, args: Sequence[Symbol], limit: int, creations: Collection[Op]
) -> bool:
    for arg in args:
        if arg.op is not ops.constant or arg.weak:
            return False
    if symbol.op.kind == "control" or (not args and symbol.op not in creations):
        return False
    size = symbol.size
    return isinstance(size, int) and size <= limit and not symbol.weak


def folded(graph: Graph, symbol: Symbol, args: Sequence[Symbol]) -> Symbol | None:
    """Append the value of a symbol for constant `args`, and return it; None if the op raises."""
    inference = graph.infer(symbol.op, args, symbol.attrs)
    values = [arg.attrs["value"] for arg in args]
    try:
        sources = [arg.dtype for arg in args]
        run = Evaluation(symbol.op, inference, sources, {}, graph.tf32, graph.functions)
        value = run(values)
    except (ExecutionError, ShapeError):  # the op raises, or a run binds the dim
        return None
    attrs = {"dtype": symbol.dtype, "value": constant(value), "literal": None}
    # The constant has the loss of the folded casts, so that it keeps their origins for the report.
    source = tuple(dict.fromkeys(merged_origins([symbol, *args]))) or symbol.location
    return graph.append(ops.constant, (), attrs, symbol.type, source)
