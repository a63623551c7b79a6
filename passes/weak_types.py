"""Commit weak types: what is still the type of a Python scalar becomes its rule set's default."""

from __future__ import annotations

import numpy as np

from graphir import Graph, rules
from graphir.attributes import with_dtypes
from graphir.conversions import convert
from passes.rewriting import Rewriter, uncollected


@uncollected
def weak_types(graph: Graph) -> Graph:
    """Give every weak symbol the dtype its rules commit it to (python: int64, float64, complex128).

    Runs on a graph that is explicit; returned as it is where nothing is weak.
    """
    if not any(symbol.type.dtype.weak for symbol in graph.symbols):
        return graph
    committed = rules(graph.rules_before or graph.rules).committed
    rewriter = Rewriter(graph)
    rewriter.changed = True
    for symbol in graph.symbols:
        dtype = committed(symbol.dtype)
        attrs = with_dtypes(symbol.attrs, committed)
        if isinstance(attrs.get("value"), np.ndarray):
            attrs["value"] = convert(attrs["value"], symbol.dtype, dtype)
        rewriter.copy(symbol, attrs, symbol.type.cast(dtype))
    new = rewriter.finish()
    if new.out_types is not None:
        new.out_types = tuple(type_.cast(committed(type_.dtype)) for type_ in new.out_types)
    return new
