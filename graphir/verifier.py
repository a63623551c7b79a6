"""The verifier: infer every symbol again and compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphir import ops
from graphir.attributes import identity
from graphir.errors import GraphError, GraphirError

if TYPE_CHECKING:
    from graphir.graph import Graph
    from graphir.symbol import Symbol


def verify(graph: Graph) -> None:
    """Check a graph whole; GraphError names the first symbol that is wrong, and how."""
    rules = graph.like()  # the same rules, and nothing inferred yet
    alike: set[tuple[int, int]] = set()
    for place, symbol in enumerate(graph.symbols):
        problem = _misplaced(graph, symbol, place) or _mistyped(rules, symbol, alike)
        if problem:
            raise GraphError(
                f"symbol {place} ({symbol.op.name}) of graph {graph.name!r}: {problem}"
            )
    inputs = [symbol for symbol in graph.symbols if symbol.op is ops.input]
    if not _same(inputs, graph.inputs):
        raise GraphError(f"the inputs of graph {graph.name!r} are not its input symbols, in order")
    names = graph.input_names
    if not (len(names) == len(set(names)) == len(inputs) and all(map(str.isidentifier, names))):
        raise GraphError(f"the inputs of graph {graph.name!r} need an identifier each, not {names}")
    for output in graph.outputs:
        if not _holds(graph, output):
            raise GraphError(f"an output of graph {graph.name!r} is not one of its symbols")
    found = tuple(output.type for output in graph.outputs)
    if graph.outputs and graph.out_types not in (None, found):
        raise GraphError(f"graph {graph.name!r} promises {graph.out_types} and has {found}")


def _misplaced(graph: Graph, symbol: Symbol, place: int) -> str | None:
    if symbol.graph is not graph or symbol.index != place:
        return "it belongs to another graph or place"
    if ops.CATALOGUE.get(symbol.op.name) is not symbol.op:
        return "its op is not in the catalogue"
    for position, arg in enumerate(symbol.args):
        if not _holds(graph, arg) or arg.index >= place:
            return f"operand {position} is used before it has been defined"
    if not symbol.op.variadic and len(symbol.args) != len(symbol.op.operands):
        return f"it has {len(symbol.args)} operands, not {len(symbol.op.operands)}"
    return None


def _mistyped(graph: Graph, symbol: Symbol, alike: set[tuple[int, int]]) -> str | None:
    try:
        inferred = graph.infer(symbol.op, symbol.args, symbol.attrs)
    except GraphirError as error:
        return str(error)
    if inferred.type is not symbol.type:
        return f"its type is {symbol.type}, and {inferred.type} by the rules {graph.rules.name!r}"
    pair = id(inferred.attrs), id(symbol.attrs)  # symbols share their attribute dicts
    if pair not in alike and identity(inferred.attrs) != identity(symbol.attrs):
        return f"its attributes {symbol.attrs} are not in normal form"
    alike.add(pair)
    if symbol.origins and symbol.op not in (ops.cast, ops.constant):
        return "only a cast, or a constant made of casts, can have been inserted"
    return None


def _holds(graph: Graph, symbol: Symbol) -> bool:
    index = symbol.index
    return 0 <= index < len(graph.symbols) and graph.symbols[index] is symbol


def _same(a: list[Symbol], b: list[Symbol]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))
