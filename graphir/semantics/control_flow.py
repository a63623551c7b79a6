"""The execution of control flow and calls: which graphs run, how often, and on which arrays.

The caller evaluates a graph, so that the interpreter and compiled programs share these lines.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphir.errors import ExecutionError
from graphir.hints import Array
from graphir.ops import control
from graphir.ops.dims import Dim, evaluate
from graphir.ops.op import Attributes, Op
from graphir.ops.types import TensorType
from graphir.semantics.evaluation import contiguous


class ControlCall(NamedTuple):
    """A run of an op that gives a tuple: its attributes, the types of its results, the dims' sizes.

    `bodies` are functions of operands for the graphs among the attributes, in order; each returns
    the graph's outputs, in the dtypes that the op demands. 0-d values may be NumPy scalars. A
    result of the op `call` binds the dims that have no size yet.
    """

    op: Op
    attrs: Attributes
    types: Sequence[TensorType]
    sizes: MutableMapping[str, int]
    bodies: Sequence[Callable[[Sequence[Array]], Sequence[Array]]]

    def __call__(self, operands: Sequence[Array]) -> tuple[Array, ...]:
        """Return the results for operands of the dtypes that the graphs take.

        Raises ExecutionError for a `call` without a function, or with results of other types.
        """
        return _RUNS[self.op](self, operands)

    def bound(self, results: tuple[Any, ...]) -> tuple[Array, ...]:
        """Return the results of a `call`'s function as arrays, and bind the dims of their types.

        Raises ExecutionError for results of other types.
        """
        callee = self.attrs["callee"]
        if len(results) != len(self.types):
            raise ExecutionError(
                f"{callee.name} must give {len(self.types)} results", got=str(len(results))
            )
        are_arrays = [type(type_) is TensorType for type_ in self.types]
        both = zip(results, are_arrays, strict=True)
        results = tuple([np.asarray(x) if is_array else x for x, is_array in both])
        for result, type_, is_array in zip(results, self.types, are_arrays, strict=True):
            if is_array:
                _bind(callee.name, result, type_, self.sizes)
        return results

    def scanned(self, x: Array) -> Any:
        """Return an operand by whose rows a scan runs."""
        return contiguous(x)

    def stack(self, length: int, row: Array) -> Any:
        """Return a place for so many rows of a result, of which `row` is one."""
        return np.empty((length, *row.shape), row.dtype)

    def length(self, operands: Sequence[Any]) -> int:
        """Return the number of rows of a `scan`. Raises ExecutionError unless it is one number."""
        carries = self.attrs["carries"]
        rows = operands[carries : carries + self.attrs["scanned"]]
        length = len(rows[0]) if rows else evaluate(self.attrs["length"], self.sizes)
        if any(len(row) != length for row in rows):
            lengths = ", ".join(str(len(row)) for row in rows)
            raise ExecutionError("all that scan scans must have the same length", got=lengths)
        return length

    def no_rows(self) -> list[Array]:
        """Return the stacked results of a `scan` over no rows."""
        return [
            np.empty([evaluate(dim, self.sizes) for dim in type_.shape], type_.dtype.storage)
            for type_ in self.types[self.attrs["carries"] :]
        ]


def _cond(call: ControlCall, operands: Sequence[Array]) -> tuple[Array, ...]:
    place = min(max(int(operands[0]), 0), len(call.bodies) - 1)
    return tuple(call.bodies[place](operands[1:]))


def _while(call: ControlCall, operands: Sequence[Array]) -> tuple[Array, ...]:
    condition, body = call.bodies
    count = len(call.types)
    values = list(operands)
    while condition(values)[0]:
        values[:count] = body(values)
    return tuple(values[:count])


def _scan(call: ControlCall, operands: Sequence[Array]) -> tuple[Array, ...]:
    attrs, (body,) = call.attrs, call.bodies
    carries, scanned = attrs["carries"], attrs["scanned"]
    rows = [*map(call.scanned, operands[carries : carries + scanned])]
    captured = operands[carries + scanned :]
    length = call.length(operands)
    values, stacked = list(operands[:carries]), list[Any]()
    for step in range(length):
        place = length - 1 - step if attrs["reverse"] else step
        results = body([*values, *[x[place] for x in rows], *captured])
        values, outputs = list(results[:carries]), results[carries:]
        if not step:
            stacked = [call.stack(length, y) for y in outputs]
        for buffer, y in zip(stacked, outputs, strict=True):
            buffer[place] = y
    if not length:
        stacked = call.no_rows()
    return (*values, *stacked)


def _call(call: ControlCall, operands: Sequence[Array]) -> tuple[Array, ...]:
    callee = call.attrs["callee"]
    if callee.function is None:
        raise ExecutionError(
            f"{callee.name} has no function here: the graph was read from text or a pickle",
            fix="make the graph from its source again",
        )
    return call.bound(tuple(callee.function(*operands)))


def _bind(name: str, array: Array, type_: TensorType, sizes: MutableMapping[str, int]) -> None:
    """Bind the dims of a result that have no size yet; refuse an array of another type."""
    fits = array.dtype == type_.dtype.storage and array.ndim == type_.rank
    for size, dim in zip(array.shape, type_.shape, strict=False):
        if isinstance(dim, Dim) and str(dim).isidentifier():
            fits = fits and sizes.setdefault(str(dim), size) == size
        else:
            fits = fits and evaluate(dim, sizes) == size
    if not fits:
        raise ExecutionError(f"{name} must give {type_}", got=f"{array.dtype}{[*array.shape]}")


_RUNS: dict[Op, Callable[[ControlCall, Sequence[Array]], tuple[Array, ...]]] = {
    control.cond: _cond,
    control.while_loop: _while,
    control.scan: _scan,
    control.call: _call,
}
