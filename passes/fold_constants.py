"""Compute what is known already."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphir import ExecutionError, Graph, ShapeError, Symbol, ops
from graphir.gc_pause import uncollected
from graphir.ops.attributes import constant
from graphir.semantics.evaluation import apply
from passes.rewriter import Rewriter, merged_origins

LIMIT = 4096
"""Elements above which a result is left to be computed, so that graphs stay small."""


@uncollected
def fold_constants(graph: Graph, limit: int = LIMIT) -> Graph:
    """Replace ops on constants by their value, to the bit, where that is at most `limit` elements.

    A constant keeps the origins of the casts that went into it. What cannot be computed (an
    integer to a negative power) is left to raise when the graph runs.
    """
    if not any(_foldable(symbol, symbol.args, limit) for symbol in graph.symbols):
        return graph
    rewriter = Rewriter(graph)
    with np.errstate(all="ignore"):
        for symbol in graph.symbols:
            args = [rewriter.values[arg.index] for arg in symbol.args]
            constant_ = (
                _fold(rewriter.new, symbol, args) if _foldable(symbol, args, limit) else None
            )
            if constant_ is None:
                rewriter.copy(symbol)
            else:
                rewriter.replace(constant_)
    return rewriter.finish()


def _foldable(symbol: Symbol, args: Sequence[Symbol], limit: int) -> bool:
    for arg in args:
        if arg.op is not ops.constant or arg.weak:
            return False
    if not args:
        return False
    size = symbol.size
    return isinstance(size, int) and size <= limit and not symbol.weak


def _fold(graph: Graph, symbol: Symbol, args: list[Symbol]) -> Symbol | None:
    inference = graph.infer(symbol.op, args, symbol.attrs)
    values = [arg.attrs["value"] for arg in args]
    try:
        value = apply(symbol.op, inference, [a.dtype for a in args], values, {}, graph.tf32)
    except (ExecutionError, ShapeError):  # no value, or a dim that only a run binds
        return None
    attrs = {"dtype": symbol.dtype, "value": constant(value), "literal": None}
    # What a cast lost is lost in the constant too: the report goes on to say so.
    source = tuple(dict.fromkeys(merged_origins([symbol, *args]))) or symbol.location
    return graph.append(ops.constant, (), attrs, symbol.type, source)
