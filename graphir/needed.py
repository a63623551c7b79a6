"""Which symbols of a graph its results need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphir.graph import Graph
    from graphir.symbol import Symbol


def needed(graph: Graph, outputs: Sequence[Symbol]) -> bytearray:
    """By place, 1 for what outputs depend on and for all inputs, which callers count on."""
    found = bytearray(len(graph.symbols))
    for one in (*graph.inputs, *outputs):
        found[one.index] = True
    for symbol in reversed(graph.symbols):
        args = symbol.args
        if args and found[symbol.index]:
            for arg in args:
                found[arg.index] = True
    return found
