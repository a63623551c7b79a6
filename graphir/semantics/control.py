"""The execution of control flow: which graphs run, how often, and on which arrays.

The caller evaluates a graph, so that the interpreter and compiled programs share these lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.errors import ExecutionError
from graphir.ops import control
from graphir.ops.dims import evaluate
from graphir.ops.op import Attributes, BodyGraph, Op
from graphir.ops.types import TensorType

Array: TypeAlias = NDArray[Any]


class ControlCall(NamedTuple):
    """A call of an op of control flow: its attributes, the types of its results, the dims' sizes.

    `run(graph, arrays)` returns the outputs of a graph, in the dtypes that the op demands.
    """

    op: Op
    attrs: Attributes
    types: Sequence[TensorType]
    sizes: Mapping[str, int]
    run: Callable[[BodyGraph, Sequence[Array]], Sequence[Array]]

    def __call__(self, operands: Sequence[Array]) -> tuple[Array, ...]:
        """Return the results for operands of the dtypes that the graphs take."""
        return _RUNS[self.op](self, operands)


def _cond(call: ControlCall, operands: Sequence[Array]) -> tuple[Array, ...]:
    branches = call.attrs["branches"]
    place = min(max(int(operands[0]), 0), len(branches) - 1)
    return tuple(call.run(branches[place], operands[1:]))


def _while(call: ControlCall, operands: Sequence[Array]) -> tuple[Array, ...]:
    condition, body = call.attrs["condition"], call.attrs["body"]
    count = len(body.outputs)
    values = list(operands)
    while call.run(condition, values)[0]:
        values[:count] = call.run(body, values)
    return tuple(values[:count])


def _scan(call: ControlCall, operands: Sequence[Array]) -> tuple[Array, ...]:
    attrs = call.attrs
    body, carries, scanned = attrs["body"], attrs["carries"], attrs["scanned"]
    rows, captured = operands[carries : carries + scanned], operands[carries + scanned :]
    length = len(rows[0]) if rows else evaluate(attrs["length"], call.sizes)
    if any(len(row) != length for row in rows):
        lengths = ", ".join(str(len(row)) for row in rows)
        raise ExecutionError("all that scan scans must have the same length", got=lengths)
    values, stacked = list(operands[:carries]), list[Array]()
    for step in range(length):
        place = length - 1 - step if attrs["reverse"] else step
        row = [np.ascontiguousarray(x[place]).reshape(x.shape[1:]) for x in rows]
        results = call.run(body, [*values, *row, *captured])
        values, outputs = list(results[:carries]), results[carries:]
        if not step:
            stacked = [np.empty((length, *y.shape), y.dtype) for y in outputs]
        for whole, y in zip(stacked, outputs, strict=True):
            whole[place] = y
    if not length:
        stacked = [_empty(call, type_) for type_ in call.types[carries:]]
    return (*values, *stacked)


def _empty(call: ControlCall, type_: TensorType) -> Array:
    return np.empty([evaluate(dim, call.sizes) for dim in type_.shape], type_.dtype.storage)


_RUNS: dict[Op, Callable[[ControlCall, Sequence[Array]], tuple[Array, ...]]] = {
    control.cond: _cond,
    control.while_loop: _while,
    control.scan: _scan,
}
