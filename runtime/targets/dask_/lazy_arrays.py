"""The Dask target: a lowered graph as tasks on blocks of dask.array, on one machine or many."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# (Dask is no part of the project's own environment, and its arrays have no types there.)

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from graphlib import TopologicalSorter
from operator import attrgetter
from typing import Any

from graphir.hints import ArrayOrNumber
from graphir.import_names import optional
from graphir.passes import decompose
from graphir.passes.pipeline import lower_to_ops
from graphir.public import DType, ExecutionError, Graph, Symbol, ops
from graphir.runtime.binding import check_input, match_inputs, require_type, sizes_of
from graphir.runtime.program.cutting import Call, cut
from graphir.runtime.results import require_outputs
from graphir.runtime.targets.dask_.block_steps import COMPOSITES, BlockStep, as_dask, solid, step_of
from graphir.runtime.targets.dask_.regions import (
    ControlTask,
    dask_array,
    entered,
    operands_of,
    region,
)
from graphir.runtime.targets.emission import lacking, live_symbols, require_no_calls


def dask(graph: Graph) -> Callable[..., Any]:
    """Return a function of Dask or NumPy arrays that computes a graph's outputs as Dask arrays.

    The target lowers the graph first. Connected elementwise ops form one Program, which runs on
    every block. Dask's trees and scans combine reductions, scans and contractions over axes of
    several blocks. Sorts, softmax, layer norms and lookups rechunk their axis to one block. Dask
    computes nothing before `.compute()`, `da.to_zarr` and similar calls. Any scheduler of Dask
    works: threads, or a cluster of dask.distributed whose workers have graphir. Dask's tools
    report the progress:

        with dask.diagnostics.ProgressBar():    # on a cluster: distributed.progress(y.persist())
            y.compute()

    The caller passes inputs in order or by name, with their declared dtypes. The results have the
    bits of `interpret`, except for floats added or multiplied over several blocks. The error of a
    sum is then at most `n * eps * sum(|x|)`, with eps of the accumulator's dtype; for `var` the
    bound is that of a sum of x**2, and a product has a relative error of at most n * eps.
    `searchsorted` requires a sorted vector. Raises ImportError without dask, and TargetError for an
    op that Dask lacks. A call raises ExecutionError for wrong inputs and for chunks of unknown
    size, and TargetError for float8_e5m2 on a cluster, since blocks lose this dtype in the
    transfer. A block that no result needs, because a `slice` leaves it out, raises no error.
    """
    require_outputs(graph)
    dask_array()
    lowered_graph = lower_to_ops(graph)
    require_no_calls("Dask", lowered_graph)
    lowered_graph = decompose(lowered_graph, COMPOSITES)
    steps = _ordered(_steps(lowered_graph))
    symbols_sent = [*lowered_graph.inputs, *(symbol for step in steps for symbol in step.results)]
    unsendable = [symbol for symbol in symbols_sent if symbol.dtype is DType.float8_e5m2]
    run: Any = partial(_run, graph, lowered_graph, steps, unsendable)
    run.__name__ = run.__qualname__ = graph.name
    return run


def _run(
    graph: Graph,
    lowered_graph: Graph,
    steps: Sequence[BlockStep],
    unsendable: Sequence[Symbol],
    /,
    *inputs: ArrayOrNumber,
    **keywords: ArrayOrNumber,
) -> Any:
    _check_sent(unsendable)
    triples = zip(
        graph.inputs, graph.input_names, match_inputs(graph, inputs, keywords), strict=True
    )
    arrays = [_entered(graph, *triple) for triple in triples]
    sizes = sizes_of(graph, arrays)
    values = dict(zip(lowered_graph.inputs, arrays, strict=True))
    for step in steps:
        results_ = step.compute(values, sizes)
        values.update(zip(step.results, map(solid, results_), strict=True))
    outputs = tuple(values[symbol] for symbol in lowered_graph.outputs)
    return outputs[0] if len(outputs) == 1 else outputs


def _check_sent(unsendable: Sequence[Symbol]) -> None:
    """Raise TargetError if the scheduler is a cluster, and blocks cannot be serialized to it."""
    cluster = optional("dask.config", "dask", "the Dask target").get("scheduler", None)
    if unsendable and cluster == "dask.distributed":
        raise lacking(
            "dask.distributed",
            unsendable[0],
            "cannot serialize float8_e5m2 blocks (NumPy rejects its dtype string '<f1')",
            'cast to float8_e4m3fn or float16, or use dask.config.set(scheduler="threads")',
        )


def _entered(graph: Graph, symbol: Symbol, name: str, value: Any) -> Any:
    """Return an input as a Dask array whose chunks have known sizes."""
    if not isinstance(value, dask_array().Array):
        return as_dask(check_input(graph, symbol, name, value))
    require_type(graph, symbol, name, value, type(value._meta))
    if any(math.isnan(size) for axis in value.chunks for size in axis):
        raise ExecutionError(
            f"input {name!r} of graph {graph.name!r} is {symbol.type}",
            got="an array with chunks of unknown size",
            fix=f"call {name}.compute_chunk_sizes() first",
        )
    if not symbol.dtype.emulated:
        return solid(value)
    return entered(symbol).arrays({symbol: solid(value)})[0]


# -- steps and their order


def _steps(graph: Graph) -> Iterator[BlockStep]:
    """Yield the steps that compute the live symbols of a lowered graph."""
    users = _users(graph)
    yield from (
        step_of(symbol_)
        for symbol_ in live_symbols(graph)
        if symbol_.op in (ops.constant, ops.full)
    )
    for step in cut(graph):
        if isinstance(step, Call):
            if step.symbol.op.kind == "control":
                yield from _control_steps(step.symbol, users)
                continue
            symbol = step.symbol  # an elementwise symbol is a call if it may refuse its operands
            elementwise = symbol.op.kind == "elementwise"
            yield region([symbol], [symbol]) if elementwise else step_of(symbol)
            continue
        yield from map(step_of, step.rows)
        for part in _connected(step.symbols):
            inside = set(part)
            yield region(
                part, [symbol_ for symbol_ in part if any(x not in inside for x in users[symbol_])]
            )


def _control_steps(
    symbol: Symbol, users: Mapping[Symbol, Sequence[Symbol | None]]
) -> Iterator[BlockStep]:
    """Yield the step of an op of control flow, which computes all live parts of its result."""
    if symbol.op is not ops.control.part:
        yield ControlTask(symbol, [user for user in users[symbol] if user is not None])


def _users(graph: Graph) -> Mapping[Symbol, list[Symbol | None]]:
    """Return the live users of each symbol; None stands for the caller, who gets the outputs."""
    users: dict[Symbol, list[Symbol | None]] = {symbol: [] for symbol in graph.symbols}
    for symbol in live_symbols(graph):
        for arg in symbol.args:
            users[arg].append(symbol)
    for symbol in graph.outputs:
        users[symbol].append(None)
    return users


def _connected(symbols: Sequence[Symbol]) -> Iterator[list[Symbol]]:
    """Yield the connected parts of a region, so that no result waits for another's operands."""
    import networkx as nx

    inside, edges = set(symbols), nx.Graph()
    edges.add_nodes_from(symbols)
    for symbol in symbols:
        edges.add_edges_from((symbol, arg) for arg in operands_of(symbol, inside) if arg in inside)
    for part in nx.connected_components(edges):
        yield sorted(part, key=attrgetter("index"))


def _ordered(steps: Iterable[BlockStep]) -> list[BlockStep]:
    """Return the steps in topological order."""
    maker = {symbol: step for step in steps for symbol in step.results}
    order = TopologicalSorter(
        {step: [maker[each] for each in step.needs if each in maker] for step in maker.values()}
    )
    return list(order.static_order())
