"""Common subexpression elimination: compute equal subexpressions once."""

from __future__ import annotations

from typing import Any

from graphir.decorators import uncollected
from graphir.ops.attribute_record import AttributeRecord
from graphir.passes.rewriter import Rewriter, entering_bodies, merged_origins
from graphir.public import Graph, Symbol, ops


@uncollected
@entering_bodies
def common_subexpressions(graph: Graph) -> Graph:
    """Merge symbols that have the same op, equal operands and bit-equal attributes.

    The key of a commutative op ignores the order of its operands. A merged cast keeps the origins
    of all casts that it replaces; so does a merged constant that casts were folded into. In a graph
    whose casts are implicit, the result of an in-place operator merges only with results of
    in-place operators: rules may cast an in-place result to the dtype of the first operand.

    Returns the graph itself if no two symbols are equal.
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
    """Return, for each symbol, the index of the first symbol that computes the same value."""
    first: list[int] = []
    first_by_key: dict[Any, int] = {}
    same: dict[Any, int] = {}  # bit-equal attributes share a number
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
