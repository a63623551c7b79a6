"""The pass this project exists for: every implicit conversion becomes a cast that says why."""

from __future__ import annotations

from typing import Any

from graphir import Graph, Origin, Symbol, rules
from graphir.gc_pause import uncollected
from graphir.ir.implied_casts import Implied, implied
from graphir.location import new_origin
from passes.rewriter import Casts, Rewriter


@uncollected
def implicit_cast(graph: Graph) -> Graph:
    """Insert a cast wherever an operand's dtype is not the one that its op's signature names.

    One cast for each value and dtype, shared, with an origin for each use it serves: operand, op,
    rule set, dtypes, location. Afterwards the rules are "explicit": every operand has exactly the
    dtype that its signature names, and what the rule set decided besides is an attribute
    (`argmax {dtype=int32}`), or a cast of the result where the op has none such. A graph that is
    explicit already is returned as it is.
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
