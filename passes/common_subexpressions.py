"""Compute equal things once."""

from __future__ import annotations

from typing import Any

from graphir import Graph, Symbol, ops
from graphir.attributes import identity
from passes.rewriting import Rewriter, merged_origins, uncollected


@uncollected
def common_subexpressions(graph: Graph) -> Graph:
    """Let symbols of one op, equal operands and attributes equal to the bit be one symbol.

    The operands of a commutative op have no order. Casts that become one keep all their origins;
    so do constants that casts were folded into.
    """
    first = _first_equals(graph)
    if all(place == index for index, place in enumerate(first)):
        return graph
    rewriter = Rewriter(graph)
    merged: dict[int, list[Symbol]] = {}
    for symbol, place in zip(graph.symbols, first, strict=True):
        if place == symbol.index:
            rewriter.copy(symbol)
            continue
        rewriter.replace(rewriter.values[place])
        if symbol.op is ops.cast or symbol.origins:  # a folded constant has the origins of casts
            merged.setdefault(place, [graph.symbols[place]]).append(symbol)
    for place, equals in merged.items():
        if any(symbol.origins for symbol in equals):
            rewriter.values[place].source = merged_origins(equals)
    return rewriter.finish()


def _first_equals(graph: Graph) -> list[int]:
    """For each symbol, the place of the first one that computes the same."""
    first: list[int] = []
    known: dict[Any, int] = {}
    attributes: dict[int, tuple[Any, ...]] = {}  # by id: symbols share their attribute dicts
    for place, symbol in enumerate(graph.symbols):
        op, attrs = symbol.op, symbol.attrs
        same = attributes.get(id(attrs))
        if same is None:
            same = attributes[id(attrs)] = identity(attrs)
        args = [first[arg.index] for arg in symbol.args]
        if op.commutative:
            args.sort()
        key = place if op is ops.input else (op, same, *args)
        first.append(known.setdefault(key, place))
    return first
