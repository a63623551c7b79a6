"""Specialization of a graph to known sizes, for formats without symbolic dims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from graphir import Graph, Symbol, TensorType
from graphir.ops.control import with_bodies
from graphir.ops.dims import Dim, evaluate, with_sizes
from graphir.ops.types import TupleType
from graphir.passes.rewriter import Rewriter, bodies_of
from graphir.runtime.targets.emission import TargetError, live_symbols


def specialized(target: str, graph: Graph, sizes: Mapping[str, int] | None) -> Graph:
    """Return the graph with an int in place of each named dim.

    `sizes` maps names to ints, as in `{"n": 4}`. Raises TargetError if a size is missing, or if the
    graph has no dim of a name.
    """
    known_sizes = dict(sizes or {})
    names = {*_names(live_symbols(graph))}
    if strange := sorted({*known_sizes} - {*_names(graph.symbols)}):
        has = f"; it has {', '.join(sorted(names))}" if names else ", nor any other by name"
        raise TargetError(f"graph {graph.name!r} has no dim {', '.join(strange)}{has}")
    if missing := sorted(names - {*known_sizes}):
        shell = " ".join(f"--size {name}=4" for name in missing)
        example = ", ".join(f"{name!r}: 4" for name in missing)
        raise TargetError(
            f"graph {graph.name!r}: {target} needs the sizes of {', '.join(missing)}",
            fix=f"give them: sizes={{{example}}}, in the shell {shell}",
        )
    return bind_sizes(graph, known_sizes) if names else graph


def _names(symbols: Iterable[Symbol]) -> Iterator[str]:
    """Yield the names in the dims of symbols, and in the graphs of control flow among them."""
    for symbol in symbols:
        for body in bodies_of(symbol):
            yield from _names(body.symbols)
        for type_ in symbol.type.parts:
            yield from (name for dim in type_.shape if isinstance(dim, Dim) for name in dim.names())


def bind_sizes(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """Return the graph with the size of each named dim, which `sizes` must have."""
    rewriter = Rewriter(graph)
    rewriter.changed = True
    for symbol in graph.symbols:
        attrs = {name: with_sizes(value, sizes) for name, value in symbol.attrs.items()}
        bodies = [bind_sizes(body, sizes) for body in bodies_of(symbol)]
        types = [
            TensorType(type_.dtype, tuple(evaluate(dim, sizes) for dim in type_.shape))
            for type_ in symbol.type.parts
        ]
        is_tuple = isinstance(symbol.type, TupleType)
        type_ = TupleType(types) if is_tuple else types[0]
        rewriter.copy(symbol, with_bodies(attrs, bodies) if bodies else attrs, type_)
    return rewriter.finish().promise(None)
