"""The pass this project exists for: every implicit conversion becomes a cast that says why."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from graphir import DType, Graph, Origin, Symbol, rules
from passes.rewriting import Casts, Rewriter, uncollected


class _Plan(NamedTuple):
    """What the symbols of one op, one set of operand types and attributes need."""

    casts: tuple[tuple[int, str, DType, DType], ...]
    attrs: dict[str, Any]


@uncollected
def implicit_cast(graph: Graph) -> Graph:
    """Insert a cast wherever an operand's dtype is not the one that its op's signature names.

    One cast for each value and dtype, shared, with an origin for each use it serves: operand, op,
    rule set, dtypes, location. Afterwards the rules are "explicit": every operand has exactly the
    dtype that its signature names, and what the rule set decided besides is an attribute
    (`argmax {dtype=int32}`). A graph that is explicit already is returned as it is.
    """
    explicit = rules("explicit")
    if graph.rules is explicit:
        return graph
    rewriter = Rewriter(graph, explicit)
    casts = Casts(rewriter.new)
    insert, append, values = casts.insert, rewriter.new.append, rewriter.values
    plans: dict[Any, _Plan] = {}
    rule = graph.rules.name
    new_tuple = cast(Any, tuple).__new__
    for symbol in graph.symbols:
        op, args = symbol.op, symbol.args
        # Inference shares attribute dicts among symbols that it found alike.
        key = (op, id(symbol.attrs), *[arg.type for arg in args])
        plan = plans.get(key)
        if plan is None:
            plan = plans[key] = _plan(graph, symbol)
        needed, attrs = plan
        new_args = [values[arg.index] for arg in args]
        for position, operand, source, to in needed:
            # Origin(...) without the Python call that a named tuple costs.
            origin = new_tuple(Origin, (operand, op.name, symbol.location, rule, source, to))
            new_args[position] = insert(new_args[position], to, origin)
        values.append(append(op, tuple(new_args), attrs, symbol.type, symbol.source))
    casts.finish()
    return rewriter.finish()


def _plan(graph: Graph, symbol: Symbol) -> _Plan:
    op, args, attrs = symbol.op, symbol.args, symbol.attrs
    wanted = graph.infer(op, args, attrs).operands
    needed = tuple(
        (i, op.operand(i), arg.dtype, to)
        for i, (arg, to) in enumerate(zip(args, wanted, strict=True))
        if arg.dtype is not to
    )
    if "dtype" in attrs and attrs["dtype"] is None:
        types = [arg.type.cast(to) for arg, to in zip(args, wanted, strict=True)]
        if op.infer(rules("explicit"), types, attrs).type.dtype is not symbol.dtype:
            attrs = {**attrs, "dtype": symbol.dtype}
    return _Plan(needed, attrs)
