"""The Dask target: a lowered graph over the blocks of dask.array, on one machine or many."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# (Dask is no part of the project's own environment, and its arrays have no types there.)

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from graphlib import TopologicalSorter
from operator import attrgetter
from typing import Any

from graphir import DType, ExecutionError, Graph, Symbol, ops
from passes import lower
from runtime.binding import checked, matched, require_type, sizes_of
from runtime.program.cutting import Call, cut
from runtime.results import require_outputs
from runtime.targets.dask_movement import given, solid
from runtime.targets.dask_ops import Step, step_of
from runtime.targets.dask_pieces import dask_array, entered, operands_of, region
from runtime.targets.emission import needed


def dask(graph: Graph) -> Callable[..., Any]:
    """A function of dask arrays, and NumPy's, that gives dask arrays: what a graph computes.

    Elementwise ops that belong together are one Program, which each block is given to; reductions
    and products over axes that are cut are trees of partial results; sorts, scans of ... and
    lookups take whole axes, which are rechunked to one block. Nothing runs before `.compute()`,
    `da.to_zarr` and the like, on whichever scheduler Dask has: threads, or a cluster of
    `dask.distributed`, whose workers need graphir. Its tools tell how far it is:

        with dask.diagnostics.ProgressBar():      # or distributed.progress(y.persist())
            y.compute()

    Results equal those of `interpret` to the bit, but sums, products, means, variances, scans and
    matrix products of floats over axes of several blocks, which are added in another order: they
    are within n * eps of sum(|x|). Inputs are given in order or by name, of their declared
    dtypes. Raises ImportError without dask, TargetError for an op that Dask has no way to do,
    and, when called, ExecutionError for wrong inputs and for chunks of unknown size.
    """
    require_outputs(graph)
    dask_array()
    lowered = lower(graph)
    run: Any = partial(_run, graph, lowered, _ordered(_steps(lowered)))
    run.__name__ = run.__qualname__ = graph.name
    return run


def _run(graph: Graph, lowered: Graph, steps: Sequence[Step], /, *inputs: Any, **named: Any) -> Any:
    known = zip(graph.inputs, graph.input_names, matched(graph, inputs, named), strict=True)
    arrays = [_entered(graph, *one) for one in known]
    sizes = sizes_of(graph, arrays)
    values = dict(zip(lowered.inputs, arrays, strict=True))
    for step in steps:
        made = step.compute(values, sizes)
        values.update(zip(step.results, map(solid, made), strict=True))
    found = tuple(values[symbol] for symbol in lowered.outputs)
    return found[0] if len(found) == 1 else found


def _entered(graph: Graph, symbol: Symbol, name: str, value: Any) -> Any:
    """An input as an array of Dask whose chunks are known."""
    if not isinstance(value, dask_array().Array):
        return given(checked(graph, symbol, name, value))
    require_type(graph, symbol, name, value)
    if any(math.isnan(size) for axis in value.chunks for size in axis):
        raise ExecutionError(
            f"input {name!r} of graph {graph.name!r} is {symbol.type}; the array has chunks of "
            f"unknown size: call {name}.compute_chunk_sizes() first"
        )
    if symbol.dtype is not DType.tensor_float32:
        return solid(value)
    return entered(symbol).compute({symbol: solid(value)}, {})[0]


# -- what is done, and in which order


def _steps(graph: Graph) -> Iterator[Step]:
    """The steps that compute what the outputs of a lowered graph need."""
    users: dict[Symbol, list[Symbol | None]] = {symbol: [] for symbol in graph.symbols}
    for symbol in graph.outputs:
        users[symbol].append(None)
    for symbol in needed(graph):
        for arg in symbol.args:
            users[arg].append(symbol)
        if symbol.op in (ops.constant, ops.full):
            yield step_of(symbol)
    for step in cut(graph):
        alone = [step.symbol] if isinstance(step, Call) else step.rows
        yield from map(step_of, alone)
        for part in [] if isinstance(step, Call) else _connected(step.symbols):
            yield region(part, [one for one in part if {*users[one]} - {*part}])


def _connected(symbols: Sequence[Symbol]) -> Iterator[list[Symbol]]:
    """The parts of a region that hang together: one result is not to wait for others' operands."""
    import networkx as nx

    inside, edges = set(symbols), nx.Graph()
    edges.add_nodes_from(symbols)
    for symbol in symbols:
        edges.add_edges_from((symbol, arg) for arg in operands_of(symbol, inside) if arg in inside)
    for part in nx.connected_components(edges):
        yield sorted(part, key=attrgetter("index"))


def _ordered(steps: Iterable[Step]) -> list[Step]:
    """The steps, each after those whose results it takes."""
    maker = {symbol: step for step in steps for symbol in step.results}
    order = TopologicalSorter(
        {step: [maker[one] for one in step.needs if one in maker] for step in maker.values()}
    )
    return list(order.static_order())
