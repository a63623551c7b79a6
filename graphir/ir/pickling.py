"""The state of a graph for pickle."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from graphir.ir.graph_state import Provenance, TraceState
from graphir.promotion import rules

if TYPE_CHECKING:
    from graphir.ir.graph import Graph
    from graphir.ir.symbol import Symbol


def state_of(graph: Graph) -> dict[str, Any]:
    """Return the picklable state of a graph, without its caches.

    The state refers to symbols by place, so that pickle does not recurse along a chain of symbols.
    """
    places = {
        "symbols": [
            (s.op, [arg.index for arg in s.args], s.attrs, s.type, s.source) for s in graph.symbols
        ],
        "inputs": [symbol.index for symbol in graph.inputs],
        "outputs": [symbol.index for symbol in graph.outputs],
    }
    state = {**graph.__dict__, **places, "_memo": {}, "rules": graph.rules.name}
    del state["builder"], state["trace_state"]
    return state


def restore(graph: Graph, state: dict[str, Any]) -> None:
    """Fill an empty graph from a state that `state_of` returned."""
    graph.rules, graph.trace_state = rules(state["rules"]), TraceState()
    if "provenance" not in state:  # of a pickle before graphir 0.2
        facts = {
            name: state.pop(name) for name in ("library", "file", "notes", "unseen", "defaults")
        }
        state["provenance"] = Provenance(**facts)
    graph.__dict__.update({name: state[name] for name in state if name != "rules"}, symbols=[])
    at: Callable[[int], Symbol] = graph.symbols.__getitem__
    for op, places, attrs, type_, source in state["symbols"]:
        graph.append(op, tuple(map(at, places)), attrs, type_, source)
    graph.inputs = list(map(at, state["inputs"]))
    graph.outputs = tuple(map(at, state["outputs"]))
