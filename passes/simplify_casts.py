"""Casts that do nothing, and casts of casts that could be one."""

from __future__ import annotations

from graphir import DType, Graph, Symbol, ops
from passes.rewriting import Rewriter, merged_origins, uncollected


@uncollected
def simplify_casts(graph: Graph) -> Graph:
    """Drop casts to the dtype a value has; make a lossless cast and the next one a single cast.

    A cast that can lose something is never dropped. Sound because every conversion rounds once:
    a value that survives the first cast is converted by the second as it would be directly.
    """
    if not any(_may_go(symbol) for symbol in graph.symbols):
        return graph
    rewriter = Rewriter(graph)
    for symbol in graph.symbols:
        if symbol.op is not ops.cast:
            rewriter.copy(symbol)
            continue
        value = rewriter.values[symbol.args[0].index]
        if value.dtype is symbol.dtype:
            rewriter.replace(value)
        elif value.op is ops.cast and _one(*map(graph.stored, (value.args[0], value, symbol))):
            rewriter.replace(_combined(rewriter.new, value, symbol))
        else:
            rewriter.copy(symbol)
    return rewriter.finish()


def _may_go(symbol: Symbol) -> bool:
    """Whether a symbol is a cast that does nothing, or of a cast."""
    if symbol.op is not ops.cast:
        return False
    value = symbol.args[0]
    return value.op is ops.cast or value.dtype is symbol.dtype


def _one(first: DType, middle: DType, last: DType) -> bool:
    """Whether first -> middle -> last is first -> last, bit for bit.

    Integers wrap into integers but saturate from floats, so a float between integers must not
    be taken out unless nothing can be lost at all.
    """
    if not first.exact_in(middle):
        return False
    through_float = first.is_integer and not middle.is_integer and last.is_integer
    return not through_float or first.exact_in(last)


def _combined(graph: Graph, first: Symbol, second: Symbol) -> Symbol:
    value = first.args[0]
    if value.dtype is second.dtype:
        return value
    inserted = first.origins or second.origins
    source = merged_origins((first, second)) if inserted else second.source
    return graph.append(ops.cast, (value,), second.attrs, second.type, source)
