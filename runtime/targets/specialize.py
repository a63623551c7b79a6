"""Specialization of a graph to known sizes, for formats without symbolic dims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from graphir import Graph, Symbol, TensorType
from graphir.ops.dims import Dim, evaluate, with_sizes
from passes.rewriter import Rewriter
from runtime.targets.emission import TargetError, live_symbols


def specialized(target: str, graph: Graph, sizes: Mapping[str, int] | None) -> Graph:
    """Return the graph with an int in place of each named dim.

    `sizes` maps names to ints, as in `{"n": 4}`. Raises TargetError if a size is missing, or if the
    graph has no dim of a name.
    """
    bound = dict(sizes or {})
    names = {*_names(live_symbols(graph))}
    if strange := sorted({*bound} - {*_names(graph.symbols)}):
        has = f"; it has {', '.join(sorted(names))}" if names else ", nor any other by name"
        raise TargetError(f"graph {graph.name!r} has no dim {', '.join(strange)}{has}")
    if missing := sorted(names - {*bound}):
        shell = " ".join(f"--size {name}=4" for name in missing)
        example = ", ".join(f"{name!r}: 4" for name in missing)
        raise TargetError(
            f"graph {graph.name!r}: {target} needs the sizes of {', '.join(missing)}",
            fix=f"give them: sizes={{{example}}}, in the shell {shell}",
        )
    return _bound(graph, bound) if names else graph


def _names(symbols: Iterable[Symbol]) -> Iterator[str]:
    """Return the names in the dims of symbols."""
    dims = (dim for symbol in symbols for dim in symbol.shape if isinstance(dim, Dim))
    return (name for dim in dims for name in dim.names())


def _bound(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    rewriter = Rewriter(graph)
    rewriter.changed = True
    for symbol in graph.symbols:
        attrs = {name: with_sizes(value, sizes) for name, value in symbol.attrs.items()}
        type_ = TensorType(symbol.dtype, tuple(evaluate(dim, sizes) for dim in symbol.shape))
        rewriter.copy(symbol, attrs, type_)
    new = rewriter.finish()
    new.out_types = None
    return new
