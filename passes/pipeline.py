"""Pipelines of passes, and `lower`, the pipeline that prepares a graph for execution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TypeAlias

from graphir.decorators import uncollected
from graphir.ir.verifier import verify
from graphir.passes.implicit_cast import implicit_cast
from graphir.passes.legalize import legalize, weak_types, without_loops
from graphir.passes.optimizations import (
    common_subexpressions,
    dead_code,
    fold_constants,
    simplify_casts,
)
from graphir.public import Graph, GraphError, GraphirError

Pass: TypeAlias = Callable[[Graph], Graph]


class Pipeline:
    """A sequence of passes, itself a pass.

    `verify_each=True` verifies the graph before the first pass and after every pass, which takes
    several times as long as the passes. A GraphError names the pass that failed and the passes that
    ran before it.
    """

    def __init__(self, passes: Sequence[Pass], verify_each: bool = False) -> None:
        self.passes = tuple(passes)
        self.verify_each = verify_each

    def __call__(self, graph: Graph) -> Graph:
        """Return the graph after all passes."""
        names = [getattr(step, "__name__", repr(step)) for step in self.passes]
        if self.verify_each:
            _verify_in(f"before the passes [{', '.join(names)}]", graph)
        for position, step in enumerate(self.passes):
            place = f"in pass {names[position]}, after [{', '.join(names[:position])}]"
            try:
                graph = step(graph)
                if not isinstance(graph, Graph):  # pyright: ignore[reportUnnecessaryIsInstance]
                    raise GraphError("a pass must return a Graph", got=repr(graph))
            except GraphirError as error:
                raise GraphError.like(error).within(place) from error
            if self.verify_each:
                _verify_in(place, graph)
        return graph


def _verify_in(place: str, graph: Graph) -> None:
    """Verify a graph; an error names the place in a pipeline."""
    try:
        verify(graph)
    except GraphirError as error:
        raise GraphError.like(error).within(place) from error


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
    """Return the graph ready to run: explicit casts, no weak types, legal, simplified, verified.

    Returns a lowered graph as it is, and the same object on every call for one graph. Raises
    GraphError unless the argument is a Graph; the error of a wrong graph names the pass that made
    it, or says that it was wrong before the passes.
    """
    if not isinstance(graph, Graph):  # pyright: ignore[reportUnnecessaryIsInstance]
        has = "; give its .graph" if hasattr(graph, "graph") else ""
        raise GraphError("a Graph is needed", got=f"a {type(graph).__name__}{has}")
    lowered_graph = graph.memo("lower")
    if lowered_graph is None:
        passes = [_freeing(step, graph) for step in LOWERING]
        lowered_graph = Pipeline(passes, verify_each)(graph)
        try:
            verify(lowered_graph)  # imported above: a fork must not find a thread importing it
        except GraphError:
            Pipeline(LOWERING, verify_each=True)(graph)  # raises the error of the first wrong graph
            raise
        graph.memo("lower", lowered_graph)
        lowered_graph.memo("lower", lowered_graph)
    return lowered_graph


def lower_to_ops(graph: Graph) -> Graph:
    """Return the lowered graph without loops of NumPy, which another engine lacks; see `lower`."""
    return lower(without_loops(graph) if isinstance(graph, Graph) else graph)  # pyright: ignore[reportUnnecessaryIsInstance]


def _freeing(step: Pass, original: Graph) -> Pass:
    """Wrap a pass so that it empties its input graph after use, unless that is the user's graph.

    Symbols and their graph refer to each other: without this an intermediate graph would occupy
    memory until the next run of the cyclic garbage collector.
    """

    @wraps(step)
    def run(before: Graph) -> Graph:
        after = step(before)
        if before not in (original, after):
            before.clear()
        return after

    return run
