"""If, Loop and Scan as control flow. Their graphs use values from outside by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphir.public import DType, Symbol, TensorType, ops
from graphir.runtime.sources.onnx_.node_rows import ROWS, NodeCall, axis_of
from graphir.runtime.sources.onnx_.wire_format import GraphProto
from graphir.runtime.sources.op_rows import Emitted

if TYPE_CHECKING:
    from graphir.runtime.sources.onnx_.source import OnnxImporter

_COUNT = TensorType(DType.int64)
LIMIT = "\0limit"
"""The name of the trip count among the values from outside, which no value of a model has."""


def _if(e: NodeCall, test: Symbol, *, else_branch: GraphProto, then_branch: GraphProto) -> Emitted:
    """The branch that runs, where the condition is known; else both."""
    importer, graphs = e.importer, (else_branch, then_branch)
    test = e.shaped(test, ())
    value = e.static.of(test)
    if value is not None:
        return importer.inlined(graphs[int(value)])
    outer = importer.outer_values(graphs)
    branches = tuple(
        importer.body(graph, (), outer, lambda inner, own, graph=graph: inner.run(graph, own))
        for graph in graphs
    )
    return importer.control(ops.control.cond, [test, *outer.values()], {"branches": branches})


def _loop(
    e: NodeCall, trips: Symbol | None, test: Symbol | None, *carried: Symbol, body: GraphProto
) -> Emitted:
    """A scan where the condition stays true; a while loop where no result is stacked."""
    importer = e.importer
    trips = None if trips is None else e.shaped(trips, ())
    stacked = len(body.output) - 1 - len(carried)
    start = e.number(0, importer.constant(0, DType.int64))
    going = importer.constant(True, DType.bool) if test is None else e.shaped(test, ())
    outer = importer.outer_values((body,))
    types = [x.type for x in carried]
    goes_on: list[bool] = []

    def step(inner: OnnxImporter, own: Sequence[Any]) -> list[Any]:
        truth = inner.constant(True, DType.bool)
        count, *values = own
        verdict, *results = inner.run(body, [count, truth, *values])
        value = inner.static.of(verdict)
        goes_on.append(value is not None and bool(value.all()))
        return [_next(inner, count), *results]

    count = None if trips is None else e.static.of(trips)
    first = e.static.of(going)
    if count is not None and first is not None and first.all():
        graph = importer.body(body, [_COUNT, *types], outer, step)
        if goes_on == [True]:
            length = max(count.item(), 0) if count.dtype != object else count.item()
            settings = {"body": graph, "carries": 1 + len(carried), "scanned": 0, "length": length}
            operands = [start, *carried, *outer.values()]
            return importer.control(ops.control.scan, operands, settings)[1:]
    if stacked:
        return None
    limit = {} if trips is None else {LIMIT: trips}
    outer = {**limit, **outer}

    def advance(inner: OnnxImporter, own: Sequence[Any]) -> list[Any]:
        count, verdict, *values = own
        return [_next(inner, count), *inner.run(body, [count, verdict, *values])]

    def is_running(inner: OnnxImporter, own: Sequence[Any]) -> list[Any]:
        count, verdict, *_ = own
        if not limit:
            return [verdict]
        below = inner.graph.emit(ops.less, (count, inner.symbol(LIMIT)), {})
        return [inner.graph.emit(ops.logical_and, (verdict, below), {})]

    inner_types = [_COUNT, TensorType(DType.bool), *types]
    settings = {
        "condition": importer.body(body, inner_types, outer, is_running),
        "body": importer.body(body, inner_types, outer, advance),
    }
    operands = [start, going, *carried, *outer.values()]
    return importer.control(ops.control.while_loop, operands, settings)[2:]


def _next(importer: OnnxImporter, count: Symbol) -> Symbol:
    step = importer.constant(1, DType.int64)
    return importer.graph.emit(ops.add, (count, step), {})


def _scan(
    e: NodeCall,
    *args: Symbol,
    body: GraphProto,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] = (),
    scan_input_directions: Sequence[int] = (),
    scan_output_axes: Sequence[int] = (),
    scan_output_directions: Sequence[int] = (),
) -> Emitted:
    if e.version < 9:
        return None
    importer, count = e.importer, num_scan_inputs
    carried, scanned = args[:-count], args[-count:]
    stacked = len(body.output) - len(carried)
    entering = zip(
        scanned,
        scan_input_axes or [0] * count,
        scan_input_directions or [0] * count,
        strict=True,
    )
    rows = [_turned(e, _moved_axis(e, x, axis, 0), reverse) for x, axis, reverse in entering]
    outer = importer.outer_values((body,))
    types = [*(x.type for x in carried), *(TensorType(x.dtype, x.shape[1:]) for x in rows)]
    graph = importer.body(body, types, outer, lambda inner, own: inner.run(body, own))
    settings = {"body": graph, "carries": len(carried), "scanned": count}
    results = importer.control(ops.control.scan, [*carried, *rows, *outer.values()], settings)
    leaving = zip(
        results[len(carried) :],
        scan_output_axes or [0] * stacked,
        scan_output_directions or [0] * stacked,
        strict=True,
    )
    wholes = [_moved_axis(e, _turned(e, y, reverse), 0, axis) for y, axis, reverse in leaving]
    return [*results[: len(carried)], *wholes]


def _turned(e: NodeCall, x: Symbol, reverse: int) -> Symbol:
    return e(ops.flip, x, axis=(0,)) if reverse else x


def _moved_axis(e: NodeCall, x: Symbol, source: int, target: int) -> Symbol:
    source, target = axis_of(source, x.rank), axis_of(target, x.rank)
    order = [axis for axis in range(x.rank) if axis != source]
    order.insert(target, source)
    return x if source == target else e(ops.permute, x, dims=order)


SUBGRAPHS = {"If": _if, "Loop": _loop, "Scan": _scan}
"""The rows of the ops with graphs among their attributes."""

ROWS.update(SUBGRAPHS)
