"""Compute equal things once."""

from __future__ import annotations

from typing import Any

from graphir import Graph, Symbol, ops
from graphir.attributes import identity
from passes.rewriting import Rewriter, merged_origins


def common_subexpressions(graph: Graph) -> Graph:
    """Let symbols of one op, equal operands and attributes equal to the bit be one symbol.

    The operands of a commutative op have no order. Casts that become one keep all their origins.
    """
    rewriter = Rewriter(graph)
    known: dict[Any, Symbol] = {}
    merged: dict[int, list[Symbol]] = {}
    for symbol in graph.symbols:
        key = _key(rewriter, symbol)
        found = known.get(key)
        if found is None or symbol.op is ops.input:
            known[key] = rewriter.copy(symbol)
            continue
        rewriter.replace(found)
        if symbol.op is ops.cast:
            merged.setdefault(found.index, [found]).append(symbol)
    for index, casts in merged.items():
        if any(cast.origins for cast in casts):
            rewriter.new.symbols[index].source = merged_origins(casts)
    return rewriter.finish()


def _key(rewriter: Rewriter, symbol: Symbol) -> tuple[Any, ...]:
    args = [rewriter.values[arg.index].index for arg in symbol.args]
    if symbol.op.commutative:
        args.sort()
    attrs = identity(symbol.attrs) if symbol.attrs else ()
    return symbol.op, tuple(args), attrs
