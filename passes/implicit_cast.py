"""The pass that makes every implicit conversion an explicit cast with its provenance.

One walk derives, for each kind of symbol (op, attributes, operand types), the dtype that the op's
signature demands of each operand under the graph's rules, and inserts a cast where the operand has
another dtype. Each cast carries origins: the op, operand, rule set and location that it serves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

from graphir.decorators import refuses, uncollected
from graphir.ir.implied_casts import Implied, implied
from graphir.location import new_origin
from graphir.ops.control import with_bodies
from graphir.passes.rewriter import Casts, Rewriter, bodies_of
from graphir.public import DType, Graph, Origin, Symbol, rules


@refuses(
    lambda given: [isinstance(x, Graph) for x in given] != [True],
    "passes.implicit_cast takes one graph, and inserts the casts that it implies",
    "write graphir.implicit_cast(x, y) to cast two operands",
)
@uncollected
def implicit_cast(graph: Graph) -> Graph:
    """Insert a cast wherever an operand's dtype differs from the dtype that the signature names.

    Each pair of value and target dtype has one shared cast, with an origin for each use that the
    cast serves: operand, op, rule set, dtypes, location. The rules of the result are "explicit":
    every operand has exactly the dtype that its signature names. A result dtype that the rule set
    decided becomes an attribute (`argmax {dtype=int32}`), or a cast of the result if the op has no
    such attribute. Casts of what a graph of control flow gives stand in that graph. Returns the
    graph itself if its rules are explicit.
    """
    return graph if graph.rules is rules("explicit") else _explicit(graph)


def _explicit(graph: Graph, user: Symbol | None = None, dtypes: Sequence[DType] = ()) -> Graph:
    """Return a graph with explicit casts, whose outputs have the dtypes that `user` demands."""
    explicit = rules("explicit")
    rewriter = Rewriter(graph, explicit)
    casts = Casts(rewriter.new)
    insert, append, values = casts.insert, rewriter.new.append, rewriter.values
    plans: dict[Any, Implied] = {}
    rule = graph.rules.name
    for symbol, kind in zip(graph.symbols, graph.kinds(graph.symbols), strict=True):
        op = symbol.op
        plan = plans.get(kind)
        if plan is None:
            plan = plans[kind] = implied(graph, symbol)
        casts_needed, attrs, result, outputs = plan
        if outputs:
            new_bodies = map(_explicit, bodies_of(symbol), repeat(symbol), outputs)
            attrs = with_bodies(attrs, new_bodies)
        new_args: list[Symbol] = []
        for arg in symbol.args:
            new_args.append(values[arg.index])
        for position, operand, source, to in casts_needed:
            origin = new_origin((operand, op.name, symbol.location, rule, source, to))
            new_args[position] = insert(new_args[position], to, origin)
        if result is symbol.type:
            values.append(append(op, tuple(new_args), attrs, symbol.type, symbol.source))
            continue
        symbol_cast = append(op, tuple(new_args), attrs, result, symbol.source)
        origin = Origin("result", op.name, symbol.location, rule, result.dtype, symbol.dtype)
        values.append(insert(symbol_cast, symbol.dtype, origin))
    new = rewriter.finish()
    if user is not None:
        new.set_interface(outputs=_leaving(casts, user, rule, new.outputs, dtypes))
    casts.finish()
    return new


def _leaving(
    casts: Casts, user: Symbol, rule: str, outputs: Sequence[Symbol], dtypes: Sequence[DType]
) -> Iterator[Symbol]:
    """Yield the outputs of a graph of control flow, cast to the dtypes that the op demands."""
    for i, (output, dtype) in enumerate(zip(outputs, dtypes, strict=True)):
        if output.dtype is dtype:
            yield output
            continue
        name = f"result[{i}]"
        origin = Origin(name, user.op.name, user.location, rule, output.dtype, dtype)
        yield casts.insert(output, dtype, origin)
