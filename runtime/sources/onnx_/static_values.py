"""Values that follow from constants and from the sizes of inputs alone.

Exports compute shapes with nodes: Shape, Gather, Concat, then Reshape. The rows of such nodes need
the numbers. `StaticValues` evaluates the symbols of a graph on arrays of ints and symbolic dims.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from graphir.hints import Array
from graphir.ops.dims import Dim
from graphir.public import DType, Graph, GraphError, GraphirError, Op, Symbol, TensorType, ops
from graphir.runtime.sources.onnx_.model import LARGEST
from graphir.semantics.evaluation import Evaluation

MOST = 4096
"""The most elements of a value that is computed here."""


def positions(count: Any) -> Array:
    """Return the positions 0, 1, ... up to a count; GraphError for a count that is too large."""
    if count > LARGEST:
        raise GraphError(f"an array made here has at most {LARGEST} elements", got=str(count))
    return np.arange(count, dtype=np.int64)


class StaticValues:
    """The values of a graph's symbols that depend on no input's elements, computed when asked."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._values: dict[Symbol, Array | None] = {}

    def assume(self, symbol: Symbol, value: Array | None) -> None:
        """State the value of an input of a body, an operand's value outside."""
        self._values[symbol] = value

    def of(self, symbol: Symbol) -> Array | None:
        """Return the value of a symbol, or None; an array of objects where it has symbolic dims."""
        missing: dict[int, Symbol] = {}
        pending = [symbol]
        while pending:
            each = pending.pop()
            if each not in self._values and each.index not in missing:
                missing[each.index] = each
                pending += each.args if _is_small(each) else ()
        for index in sorted(missing):
            self._values[missing[index]] = self._value(missing[index])
        return self._values[symbol]

    def _value(self, symbol: Symbol) -> Array | None:
        op, attrs = symbol.op, symbol.attrs
        if not _is_small(symbol):
            return None
        if op is ops.shape_of:
            return _tidy(np.array([*symbol.args[0].shape, None], object)[:-1])
        operands = [self._values.get(arg) for arg in symbol.args]
        if any(value is None for value in operands):
            return None
        values: list[Any] = operands
        if any(value.dtype == object for value in values):
            function = _ON_DIMS.get(op)
            try:
                return None if function is None else _tidy(function(*values, **attrs))
            except (GraphirError, IndexError, TypeError, ValueError, NotImplementedError):
                return None
        sources = tuple([arg.dtype for arg in symbol.args])
        inference = self._graph.infer(op, symbol.args, attrs)
        try:
            with np.errstate(all="ignore"):
                return Evaluation(op, inference, sources, {}, self._graph.tf32)(values)
        except GraphirError:
            return None


def _is_small(symbol: Symbol) -> bool:
    if type(symbol.type) is not TensorType or symbol.op.kind == "control" or symbol.op is ops.input:
        return False
    size = symbol.type.size
    return isinstance(size, int) and size <= MOST


def _tidy(value: ArrayLike) -> Array:
    """Return an array of integers where no element is symbolic."""
    array = np.asarray(value)
    if array.dtype == object and not any(isinstance(x, Dim) for x in array.ravel()):
        return array.astype(np.int64)
    return array


def _cast(x: Array, to: DType) -> Array:
    if not to.is_integer:
        raise NotImplementedError
    return x


def _are_equal(x: Array, y: Array) -> bool:
    """Whether two sizes are equal; a dim is no negative number."""
    distance = x - y
    if isinstance(distance, Dim) and not any(isinstance(z, int) and z < 0 for z in (x, y)):
        raise NotImplementedError
    return distance == 0


def _equal(x: Array, y: Array) -> Array:
    return np.asarray(np.frompyfunc(_are_equal, 2, 1)(x, y), bool)


def _slice(x: Array, start: Array, stop: Array, step: Array) -> Array:
    return x[tuple(slice(*each) for each in zip(start, stop, step, strict=True))]


def _gather(x: Array, places: Array, axis: int) -> Array:
    return np.take(x, places.astype(np.int64), axis=axis)


def _concat(*arrays: Array, axis: int) -> Array:
    return np.concatenate(arrays, axis=axis)


def _stack(*arrays: Array, axis: int) -> Array:
    return np.stack(arrays, axis=axis)


def _prod(x: Array, axis: Any, keepdims: bool, dtype: DTypeLike | None = None) -> Any:
    return np.prod(x, axis=axis, keepdims=keepdims)


def _sum(x: Array, axis: Any, keepdims: bool, dtype: DTypeLike | None = None) -> Any:
    return np.sum(x, axis=axis, keepdims=keepdims)


_ON_DIMS: dict[Op, Callable[..., Any]] = {
    ops.add: np.add,
    ops.subtract: np.subtract,
    ops.multiply: np.multiply,
    ops.floor_divide: np.floor_divide,
    ops.equal: _equal,
    ops.where: np.where,
    ops.cast: _cast,
    ops.prod: _prod,
    ops.sum: _sum,
    ops.gather: _gather,
    ops.slice: _slice,
    ops.concat: _concat,
    ops.stack: _stack,
    ops.reshape: np.reshape,
    ops.broadcast_to: np.broadcast_to,
    ops.squeeze: np.squeeze,
    ops.unsqueeze: np.expand_dims,
    ops.flip: np.flip,
}
"""What ops compute on arrays with symbolic dims."""
