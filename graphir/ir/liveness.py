"""Liveness: which symbols of a graph its outputs depend on, and which symbol uses each last.

One backward walk over the list of symbols, which is in topological order: a symbol is live if it is
an output, an operand of a live symbol, or a `call` whose run binds a dim of a live symbol.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from graphir.ops import control
from graphir.ops.dims import Dim
from graphir.ops.types import TensorType, TupleType

if TYPE_CHECKING:
    from graphir.ir.graph import Graph
    from graphir.ir.symbol import Symbol


def binders_of(graph: Graph) -> dict[str, Symbol]:
    """Return, by name, the `call` that binds each dim of a graph which no input has."""
    binders: dict[str, Symbol] = {}
    if graph.has_bodies:
        input_names = {name for symbol in graph.inputs for name in dim_names(symbol.type)}
        for symbol in graph.symbols:
            if symbol.op is control.call:
                for name in dim_names(symbol.type):
                    if name not in input_names:
                        binders.setdefault(name, symbol)
    return binders


def binders_used(symbol: Symbol, binders: Mapping[str, Symbol]) -> list[Symbol]:
    """Return the calls that must have run before a symbol, whose type or attributes need dims."""
    names = {*dim_names(symbol.type), *chain.from_iterable(map(dim_names, symbol.attrs.values()))}
    calls = [binders[name] for name in names if name in binders]
    return [call for call in calls if call.index < symbol.index]


def dim_names(value: Any) -> Iterator[str]:
    """Yield the names of the dims in a type, or in an attribute, with repetitions."""
    if isinstance(value, Dim):
        yield from value.names()
    elif isinstance(value, TupleType):
        yield from chain.from_iterable(map(dim_names, value.parts))
    elif type(value) is TensorType:
        yield from chain.from_iterable(map(dim_names, value.shape))
    elif isinstance(value, (tuple, list)):
        yield from chain.from_iterable(map(dim_names, cast("Sequence[Any]", value)))
    elif hasattr(value, "symbols") and hasattr(value, "input_names"):  # a graph of control flow
        for symbol in cast("Graph", value).symbols:
            yield from dim_names(symbol.type)
            yield from chain.from_iterable(map(dim_names, symbol.attrs.values()))


def live_mask(graph: Graph, outputs: Sequence[Symbol]) -> bytearray:
    """Return, for each symbol, 1 if it is live for these outputs, else 0.

    Inputs count as live, because callers pass all of them.
    """
    live = bytearray(len(graph.symbols))
    for symbol in (*graph.inputs, *outputs):
        live[symbol.index] = True
    binders = binders_of(graph)
    for symbol in reversed(graph.symbols):
        args = symbol.args
        if args and live[symbol.index]:
            for arg in args:
                live[arg.index] = True
        if binders and live[symbol.index]:
            for call in binders_used(symbol, binders):
                live[call.index] = True
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
    binders = binders_of(graph)
    for symbol in reversed(graph.symbols):
        if last[symbol.index] >= 0:
            for arg in symbol.args:
                last[arg.index] = max(last[arg.index], symbol.index)
            for call in binders_used(symbol, binders) if binders else ():
                last[call.index] = max(last[call.index], symbol.index)
    return last
