"""Sequences of passes, and the one that makes a graph ready to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TypeAlias

from graphir import Graph, GraphError, GraphirError
from graphir.gc_pause import uncollected
from passes.common_subexpressions import common_subexpressions
from passes.dead_code import dead_code
from passes.fold_constants import fold_constants
from passes.implicit_cast import implicit_cast
from passes.legalize import legalize
from passes.simplify_casts import simplify_casts
from passes.weak_types import weak_types

Pass: TypeAlias = Callable[[Graph], Graph]


class Pipeline:
    """Passes in a row, itself a pass; GraphError says which of them failed, and after which.

    `verify_each=True` verifies the graph before the first and after every pass.
    """

    def __init__(self, passes: Sequence[Pass], verify_each: bool = False) -> None:
        self.passes = tuple(passes)
        self.verify_each = verify_each

    def __call__(self, graph: Graph) -> Graph:
        """The graph after all passes."""
        if self.verify_each:
            graph.verify()
        finished_passes: list[str] = []
        for each in self.passes:
            name = getattr(each, "__name__", repr(each))
            try:
                graph = each(graph)
                if not isinstance(graph, Graph):  # pyright: ignore[reportUnnecessaryIsInstance]
                    raise GraphError("a pass must return a Graph", got=repr(graph))
                if self.verify_each:
                    graph.verify()
            except GraphirError as error:
                place = f"in pass {name}, after [{', '.join(finished_passes)}]"
                raise GraphError.like(error).within(place) from error
            finished_passes.append(name)
        return graph


LOWERING: tuple[Pass, ...] = (
    implicit_cast,
    weak_types,
    legalize,
    simplify_casts,
    fold_constants,
    common_subexpressions,
    dead_code,
)


@uncollected
def lower(graph: Graph, verify_each: bool = False) -> Graph:
    """The graph as a machine runs it: explicit, committed, legal, simplified and verified.

    A graph that has been lowered is returned as it is, and asking twice gives the same graph.
    Raises GraphError for what is no Graph.
    """
    if not isinstance(graph, Graph):  # pyright: ignore[reportUnnecessaryIsInstance]
        has = "; give its .graph" if hasattr(graph, "graph") else ""
        raise GraphError(f"a Graph is needed, not a {type(graph).__name__}{has}")
    lowered_graph = graph.memo("lower")
    if lowered_graph is None:
        passes = [_freeing(each, graph) for each in LOWERING]
        lowered_graph = Pipeline(passes, verify_each)(graph).verify()
        graph.memo("lower", lowered_graph)
        lowered_graph.memo("lower", lowered_graph)
    return lowered_graph


def _freeing(each: Pass, original: Graph) -> Pass:
    """A pass that empties the graph it is done with, unless that is the one given at first.

    Symbols and their graph refer to each other, so that it would stay until the next collection.
    """

    @wraps(each)
    def run(before: Graph) -> Graph:
        after = each(before)
        if before not in (original, after):
            before.symbols.clear()
            before.inputs.clear()
            before.outputs = ()
        return after

    return run
