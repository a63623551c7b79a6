"""Control flow in StableHLO, with the graphs as regions that use values from outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias, cast

import numpy as np

from graphir.public import DType, Graph, Symbol, TensorType
from graphir.runtime.targets.stablehlo_.values import HloBody, HloValue, Sizes, ints

Values: TypeAlias = list[HloValue]


class HloControl(NamedTuple):
    """An op of control flow to write.

    `run(graph, arguments)` adds the lines that compute a graph, and returns its outputs.
    """

    body: HloBody
    symbol: Symbol
    run: Callable[[Graph, Sequence[HloValue]], Values]


def _cond(op: HloControl, args: Values) -> Values:
    """Return the results of `case`, which runs its last branch for an index out of range."""
    branches: Sequence[Graph] = op.symbol.attrs["branches"]
    index, operands = args[0], args[1:]
    if index.dtype is not DType.bool:
        index = index.convert(DType.int32) if index.dtype.narrow else index
        last = min(len(branches) - 1, int(index.dtype.max))
        index = index.op("minimum", last).op("maximum", 0)
    regions = [op.body.region([], partial(op.run, branch, operands)) for branch in branches]
    index = index.convert(DType.int32)
    return op.body.line("case", [index], op.symbol.type.parts, *regions)


def _while_loop(op: HloControl, args: Values) -> Values:
    condition, step = op.symbol.attrs["condition"], op.symbol.attrs["body"]
    count = len(op.symbol.type.parts)
    captured = args[count:]
    return _loop(
        args[:count],
        lambda *values: op.run(condition, [*values, *captured])[0],
        lambda *values: op.run(step, [*values, *captured]),
    )


def _scan(op: HloControl, args: Values) -> Values:
    """Return the results of a loop that reads a row and updates the stacked results.

    Beside its results the loop carries the number of rows that it has read.
    """
    attrs, types = op.symbol.attrs, op.symbol.type.parts
    carries, ends = attrs["carries"], attrs["carries"] + attrs["scanned"]
    scanned, captured = args[carries:ends], args[ends:]
    length = scanned[0].shape[0] if scanned else attrs["length"]
    stacked = [_zeros(op.body, type_) for type_ in types[carries:]]
    if not length:
        return [*args[:carries], *stacked]

    def step(iteration: HloValue, *values: HloValue) -> Values:
        place = (-iteration) + (length - 1) if attrs["reverse"] else iteration
        rows = [_row(x, place) for x in scanned]
        outputs = op.run(attrs["body"], [*values[:carries], *rows, *captured])
        updates = zip(values[carries:], outputs[carries:], strict=True)
        return [iteration + 1, *outputs[:carries], *(_updated(*pair, place) for pair in updates)]

    def is_row(iteration: HloValue, *values: HloValue) -> HloValue:
        return iteration < length

    iteration = op.body.constant(np.zeros((), np.int64), DType.int64)
    return _loop([iteration, *args[:carries], *stacked], is_row, step)[1:]


def _loop(
    values: Sequence[HloValue],
    condition: Callable[..., HloValue],
    step: Callable[..., Values],
) -> Values:
    types = [value.type for value in values]
    body = values[0].body
    regions = [body.region(types, condition), body.region(types, step)]
    return body.line("while", values, types, *regions)


def _zeros(body: HloBody, type_: TensorType) -> HloValue:
    zero = body.constant(np.zeros((), type_.dtype.storage), type_.dtype)
    return zero.broadcast(cast(Sizes, type_.shape))


def _row(x: HloValue, place: HloValue) -> HloValue:
    """Return the row of x at a place of its first axis."""
    sizes = (1, *x.shape[1:])
    operands = [x, *_corner(x, place)]
    type_ = TensorType(x.dtype, sizes)
    row = x.body.emit("dynamic_slice", operands, type_, slice_sizes=ints(sizes))
    return row.reshape(x.shape[1:])


def _updated(x: HloValue, row: HloValue, place: HloValue) -> HloValue:
    """Return x with a row at a place of its first axis."""
    operands = [x, row.reshape((1, *row.shape)), *_corner(x, place)]
    return x.body.emit("dynamic_update_slice", operands, x.type)


def _corner(x: HloValue, place: HloValue) -> Values:
    """Return the indices of the first element of a row."""
    zeros = [place.number(0)] * (x.rank - 1) if x.rank > 1 else []
    return [place, *zeros]


CONTROL: Mapping[str, Callable[[HloControl, Values], Values]] = {
    "cond": _cond,
    "while_loop": _while_loop,
    "scan": _scan,
}
"""The function of each op of control flow."""
