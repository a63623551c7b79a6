"""Compute equal things once."""

from __future__ import annotations

from typing import Any

from graphir import Graph, Symbol, ops
from graphir.gc_pause import uncollected
from graphir.ops.attribute_record import AttributeRecord
from passes.rewriter import Rewriter, merged_origins


@uncollected
def common_subexpressions(graph: Graph) -> Graph:
    """Let symbols of one op, equal operands and attributes equal to the bit be one symbol.

    The operands of a commutative op have no order. Casts that become one keep all their origins;
    so do constants that casts were folded into. While casts are implicit, results of in-place
    operators equal each other alone: other rules may cast them, to the dtype of the first operand.
    """
    first = _first_equals(graph)
    if first == list(range(len(first))):
        return graph
    rewriter = Rewriter(graph)
    duplicates: dict[int, list[Symbol]] = {}
    for symbol, place in zip(graph.symbols, first, strict=True):
        if place == symbol.index:
            rewriter.copy(symbol)
            continue
        rewriter.replace(rewriter.values[place])
        if symbol.op is ops.cast or symbol.origins:  # a folded constant has the origins of casts
            duplicates.setdefault(place, [graph.symbols[place]]).append(symbol)
    for place, equals in duplicates.items():
        if any(symbol.origins for symbol in equals):
            rewriter.values[place].source = merged_origins(equals)
    return rewriter.finish()


def _first_equals(graph: Graph) -> list[int]:
    """For each symbol, the place of the first one that computes the same."""
    first: list[int] = []
    first_by_key: dict[Any, int] = {}
    same: dict[Any, int] = {}  # attributes equal to the bit have one number
    numbers: dict[AttributeRecord, int] = {}
    implicit = graph.rules.implicit
    for place, symbol in enumerate(graph.symbols):
        op, attrs = symbol.op, symbol.attrs
        if op is ops.input:
            first.append(place)
            continue
        number = numbers.get(attrs)
        if number is None:
            number = numbers[attrs] = same.setdefault(attrs.content, len(same))
        in_place = implicit and symbol.location.in_place
        key: list[Any] = [op, number, in_place]
        for arg in symbol.args:
            key.append(first[arg.index])
        if op.commutative and not in_place:
            key[3:] = sorted(key[3:])
        first.append(first_by_key.setdefault(tuple(key), place))
    return first
