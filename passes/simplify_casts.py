"""Cast simplification: drop identity casts, and merge a lossless cast with the cast after it."""

from __future__ import annotations

from functools import cache

from graphir.decorators import uncollected
from graphir.passes.rewriter import Rewriter, entering_bodies, merged_origins
from graphir.public import DType, Graph, Symbol, ops


@uncollected
@entering_bodies
def simplify_casts(graph: Graph) -> Graph:
    """Drop casts to the dtype that a value has; merge a lossless cast with the cast of its result.

    The pass keeps every cast that can lose information. The merge is sound because every conversion
    rounds once: if a value survives the first cast, the second cast converts it as a direct cast
    would. Returns the graph itself if no cast is redundant.
    """
    casts = (symbol for symbol in graph.symbols if symbol.op is ops.cast)
    if not any(_is_redundant(graph, cast, cast.args[0]) for cast in casts):
        return graph
    rewriter = Rewriter(graph)
    for symbol in graph.symbols:
        value = rewriter.values[symbol.args[0].index] if symbol.op is ops.cast else symbol
        if value is symbol or not _is_redundant(graph, symbol, value):
            rewriter.copy(symbol)
        elif value.dtype is symbol.dtype:
            rewriter.replace(value)
        else:
            rewriter.replace(_combine(rewriter.new, value, symbol))
    return rewriter.finish()


def _is_redundant(graph: Graph, cast: Symbol, value: Symbol) -> bool:
    """Whether a cast of `value` is an identity, or merges with `value`, itself a cast."""
    to, of = cast.type.dtype, value.type.dtype
    if of is to or value.op is not ops.cast:
        return of is to
    return _is_one_rounding(*map(graph.storage_dtype, (value.args[0], value, cast)))


@cache
def _is_one_rounding(first: DType, middle: DType, last: DType) -> bool:
    """Whether first -> middle -> last equals first -> last, bit for bit.

    An integer-to-integer cast wraps; a float-to-integer cast saturates. A float between two
    integers therefore stays unless the last integer dtype has every value of the first.
    """
    if not first.exact_in(middle):
        return False
    through_float = first.is_integer and not middle.is_integer and last.is_integer
    return not through_float or first.exact_in(last)


def _combine(graph: Graph, first: Symbol, second: Symbol) -> Symbol:
    value = first.args[0]
    if value.dtype is second.dtype:
        return value
    origins = first.origins or second.origins
    source = merged_origins((first, second)) if origins else second.source
    return graph.append(ops.cast, (value,), second.attrs, second.type, source)
