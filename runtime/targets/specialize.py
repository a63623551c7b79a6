"""A graph at known sizes: every dim an int, for formats that have no symbolic ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphir import Graph, TensorType
from graphir.dims import Dim, evaluate
from passes.rewriting import Rewriter
from runtime.targets.emission import TargetError, needed


def specialized(target: str, graph: Graph, sizes: Mapping[str, int] | None) -> Graph:
    """The graph with the sizes of its named dims in their place; TargetError where one is missing.

    Sizes are given by name: `{"n": 4}`.
    """
    bound = dict(sizes or {})
    names = {
        name
        for symbol in needed(graph)
        for dim in symbol.shape
        if isinstance(dim, Dim)
        for name in dim.names()
    }
    if missing := sorted(names - {*bound}):
        example = ", ".join(f"{name!r}: 4" for name in missing)
        raise TargetError(
            f"graph {graph.name!r}: {target} needs the sizes of {', '.join(missing)}; give them: "
            f"sizes={{{example}}}"
        )
    return _bound(graph, bound) if names else graph


def _bound(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    rewriter = Rewriter(graph)
    rewriter.changed = True
    for symbol in graph.symbols:
        attrs = {name: _sized(value, sizes) for name, value in symbol.attrs.items()}
        type_ = TensorType(symbol.dtype, tuple(evaluate(dim, sizes) for dim in symbol.shape))
        rewriter.copy(symbol, attrs, type_)
    new = rewriter.finish()
    new.out_types = None
    return new


def _sized(value: Any, sizes: Mapping[str, int]) -> Any:
    if isinstance(value, Dim):
        return evaluate(value, sizes)
    return tuple(_sized(one, sizes) for one in value) if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
