"""The verifier: infer every symbol again and compare the stored types and attributes.

Symbols with the same op, attributes and operand types have the same inference, so that the verifier
infers once for each such kind. It checks order, ownership and provenance for each symbol.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from graphir import ops
from graphir.errors import GraphError, GraphirError
from graphir.ir.operands import operand_infos
from graphir.ops.attribute_record import AttributeRecord
from graphir.ops.control import bodies

if TYPE_CHECKING:
    from graphir.ir.graph import Graph
    from graphir.ir.symbol import Symbol
    from graphir.ops.types import TensorType


def verify(graph: Graph) -> None:
    """Check a graph: its symbols, inputs, outputs and declared output types.

    Raises GraphError, which names the first symbol that is wrong and the problem.
    """
    rules = graph.like()  # an empty graph under the same rules, for inference alone
    right: dict[Any, TensorType] = {}
    kinds = graph.kinds(graph.symbols, structural=True)
    for place, (symbol, kind) in enumerate(zip(graph.symbols, kinds, strict=True)):
        problem = _misplaced(graph, symbol, place)
        if problem is None and right.get(kind) is not symbol.type:
            problem = _mistyped(rules, symbol)
            right[kind] = symbol.type
        if problem:
            raise problem.having(
                op=symbol.op.name, operands=operand_infos(symbol.op, symbol.args)
            ).within(f"symbol {place} ({symbol.op.name}) of graph {graph.name!r}")
    for symbol in graph.symbols:
        if symbol.op.kind == "control":
            _verify_bodies(graph, symbol)
    inputs = [symbol for symbol in graph.symbols if symbol.op is ops.input]
    if not _same(inputs, graph.inputs):
        raise GraphError(f"the inputs of graph {graph.name!r} are not its input symbols, in order")
    names = graph.input_names
    if not (len(names) == len(set(names)) == len(inputs) and all(map(str.isidentifier, names))):
        raise GraphError(
            f"the inputs of graph {graph.name!r} need an identifier each", got=f"{names}"
        )
    for output in graph.outputs:
        if not _holds(graph, output):
            raise GraphError(f"an output of graph {graph.name!r} is not one of its symbols")
    types = tuple(output.type for output in graph.outputs)
    if graph.outputs and graph.out_types not in (None, types):
        raise GraphError(f"graph {graph.name!r} promises {graph.out_types} and has {types}")


def _verify_bodies(graph: Graph, symbol: Symbol) -> None:
    """Verify the graphs of control flow among a symbol's attributes."""
    place = f"{symbol.op.name} of graph {graph.name!r}"
    if not graph.has_bodies:
        raise GraphError(f"{place}: has_bodies is False, so that passes would not see it")
    for body in cast("Iterator[Graph]", bodies(symbol.attrs)):
        if body.rules is not graph.rules or body.tf32 != graph.tf32:
            raise GraphError(f"{place}: its graphs must have the same rules", got=body.rules.name)
        if body.functions != graph.functions:
            problem = f"{place}: its graphs must have the same functions"
            raise GraphError(problem, got=body.functions)
        try:
            verify(body)
        except GraphirError as error:
            raise GraphError.like(error).within(place) from None


def _misplaced(graph: Graph, symbol: Symbol, place: int) -> GraphError | None:
    """Return the problem with one symbol's place, operands or provenance, or None.

    Symbols of the same kind do not share this answer.
    """
    if symbol.graph is not graph or symbol.index != place:
        return GraphError("it belongs to another graph or place")
    symbols = graph.symbols
    for arg in symbol.args:
        at = arg.index
        if not 0 <= at < place or symbols[at] is not arg:
            position = next(i for i, operand in enumerate(symbol.args) if operand is arg)
            return GraphError(f"operand {position} is used before it has been defined")
    if type(symbol.attrs) is not AttributeRecord:
        return GraphError(f"its attributes {symbol.attrs} are not in normal form")
    if isinstance(symbol.source, tuple) and symbol.source and symbol.op not in INSERTABLE:
        return GraphError(
            "only a cast, a real part or a constant made of casts can have been inserted"
        )
    return None


INSERTABLE = ops.cast, ops.constant, ops.real
"""The real part of a complex number is inserted where NumPy makes the number real."""


def _mistyped(graph: Graph, symbol: Symbol) -> GraphError | None:
    """Return the problem with a symbol's type or attributes, or None.

    All symbols of the same kind and type share this answer.
    """
    op, attrs = symbol.op, symbol.attrs
    if (ops.CATALOGUE.get(op.name) or ops.CONTROL.get(op.name)) is not op:
        return GraphError("its op is not in the catalogue")
    if not op.variadic and len(symbol.args) != len(op.operands):
        return GraphError(f"it has {len(symbol.args)} operands, not {len(op.operands)}")
    try:
        inference = graph.infer(op, symbol.args, attrs)
    except GraphirError as error:
        return GraphError.like(error)
    if inference.type is not symbol.type:
        by_rules = f"{inference.type} by the rules {graph.rules.name!r}"
        return GraphError(f"its type is {symbol.type}, and {by_rules}")
    if inference.attrs is not attrs and inference.attrs.content != attrs.content:
        return GraphError(f"its attributes {attrs} are not in normal form")
    return None


def _holds(graph: Graph, symbol: Symbol) -> bool:
    index = symbol.index
    return 0 <= index < len(graph.symbols) and graph.symbols[index] is symbol


def _same(a: list[Symbol], b: list[Symbol]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))
