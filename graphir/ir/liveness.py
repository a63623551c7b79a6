"""Liveness: which symbols of a graph its outputs depend on, and which symbol uses each last.

One backward walk over the list of symbols, which is in topological order: a symbol is live if it is
an output, or an operand of a live symbol.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphir.ir.graph import Graph
    from graphir.ir.symbol import Symbol


def live_mask(graph: Graph, outputs: Sequence[Symbol]) -> bytearray:
    """For each symbol, 1 if it is live for these outputs; inputs, which callers pass, are."""
    live = bytearray(len(graph.symbols))
    for symbol in (*graph.inputs, *outputs):
        live[symbol.index] = True
    for symbol in reversed(graph.symbols):
        args = symbol.args
        if args and live[symbol.index]:
            for arg in args:
                live[arg.index] = True
    return live


def all_live(graph: Graph, outputs: Sequence[Symbol]) -> bool:
    """Check fast whether every symbol is an input or live for these outputs.

    It is if each symbol is an input, an output or an operand: the last symbol is an output then,
    and each before it is an output or the operand of a later symbol, which is live.
    """
    operands = chain.from_iterable(map(attrgetter("args"), graph.symbols))
    return len({*operands, *outputs, *graph.inputs}) == len(graph.symbols)


def last_uses(graph: Graph, kept_places: Iterable[int] = ()) -> list[int]:
    """For each symbol, the place of the live symbol that uses it last.

    The number of symbols for an output, its own place for a symbol of `watched` that nothing else
    uses, -1 for a symbol that is live for no output and no watched symbol.
    """
    last = [-1] * len(graph.symbols)
    for at in kept_places:
        last[at] = at
    for output in graph.outputs:
        last[output.index] = len(graph.symbols)
    for symbol in reversed(graph.symbols):
        if last[symbol.index] >= 0:
            for arg in symbol.args:
                last[arg.index] = max(last[arg.index], symbol.index)
    return last
