"""The pass that makes every implicit conversion an explicit cast with its provenance.

One walk derives, for each kind of symbol (op, attributes, operand types), the dtype that the op's
signature demands of each operand under the graph's rules, and inserts a cast where the operand has
another dtype. Each cast carries origins: the op, operand, rule set and location that it serves.
"""

from __future__ import annotations

from typing import Any

from graphir import Graph, Origin, Symbol, rules
from graphir.gc_pause import uncollected
from graphir.ir.implied_casts import Implied, implied
from graphir.location import new_origin
from passes.rewriter import Casts, Rewriter


@uncollected
def implicit_cast(graph: Graph) -> Graph:
    """Insert a cast wherever an operand's dtype differs from the dtype that the signature names.

    Each pair of value and target dtype has one shared cast, with an origin for each use that the
    cast serves: operand, op, rule set, dtypes, location. The rules of the result are "explicit":
    every operand has exactly the dtype that its signature names. A result dtype that the rule set
    decided becomes an attribute (`argmax {dtype=int32}`), or a cast of the result if the op has no
    such attribute. Returns the graph itself if its rules are explicit.
    """
    explicit = rules("explicit")
    if graph.rules is explicit:
        return graph
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
        casts_needed, attrs, result = plan
        new_args: list[Symbol] = []
        for arg in symbol.args:
            new_args.append(values[arg.index])
        for position, operand, source, to in casts_needed:
            origin = new_origin((operand, op.name, symbol.location, rule, source, to))
            new_args[position] = insert(new_args[position], to, origin)
        if result is symbol.type.dtype:
            values.append(append(op, tuple(new_args), attrs, symbol.type, symbol.source))
            continue
        symbol_cast = append(op, tuple(new_args), attrs, symbol.type.cast(result), symbol.source)
        origin = Origin("result", op.name, symbol.location, rule, result, symbol.dtype)
        values.append(insert(symbol_cast, symbol.dtype, origin))
    casts.finish()
    return rewriter.finish()
