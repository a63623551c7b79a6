"""Which symbols of a graph its results need."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphir.ir.graph import Graph
    from graphir.ir.symbol import Symbol


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


def all_needed(graph: Graph, outputs: Sequence[Symbol]) -> bool:
    """Whether outputs need every symbol but inputs, told sooner than by `needed`.

    They do where each is an output or an operand: the last is an output, and each before it is one
    too or an operand of a later symbol, which is needed.
    """
    operands = chain.from_iterable(map(attrgetter("args"), graph.symbols))
    return len({*operands, *outputs, *graph.inputs}) == len(graph.symbols)
