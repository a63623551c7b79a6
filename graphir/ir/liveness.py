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
    """Return, for each symbol, 1 if it is live for these outputs, else 0.

    Inputs count as live, because callers pass all of them.
    """
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

    The check tests whether each symbol is an input, an output or an operand of some symbol. Then,
    by induction from the end of the list, every symbol that is not an input is live: the last
    symbol is an output, and each earlier symbol is an output or an operand of a later, live symbol.
    """
    operands = chain.from_iterable(map(attrgetter("args"), graph.symbols))
    return len({*operands, *outputs, *graph.inputs}) == len(graph.symbols)


def last_uses(graph: Graph, kept_places: Iterable[int] = ()) -> list[int]:
    """Return, for each symbol, the place of the live symbol that uses it last.

    The answer for an output is the number of symbols. `kept_places` are the places of symbols that
    count as live without a use; the answer for such a symbol without a live user is its own place.
    The answer for a symbol that neither an output nor a kept symbol needs is -1.
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
