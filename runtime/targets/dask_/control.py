"""Control flow in Dask: one task computes an op, on operands that it takes whole."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# (Dask is no part of the project's own environment, and its arrays have no types there.)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from graphir import Graph, Symbol, ops
from graphir.ops.dims import evaluate
from graphir.runtime.targets.dask_.pieces import Arrays, BlockTask, dask_array, meta
from graphir.runtime.targets.specialize import bind_sizes


class ControlTask:
    """An op of control flow and the live parts of its result."""

    def __init__(self, symbol: Symbol, parts: Sequence[Symbol]) -> None:
        self.results = tuple(parts)
        self.needs = list(symbol.args)
        self._graph = _alone(symbol, parts)

    def compute(self, values: Arrays, sizes: Mapping[str, int]) -> list[Any]:
        """Return the arrays of the parts; the task has the sizes of all named dims."""
        task = BlockTask(bind_sizes(self._graph, sizes))
        operands: list[Any] = []
        for place, symbol in enumerate(self.needs):
            operands += [values[symbol], tuple(f"a{place}_{i}" for i in range(symbol.rank))]
        if len(self.results) == 1:
            return [_whole(task, operands, self.results[0], sizes)]
        every = dask_array().blockwise(
            *(task, (), *operands), concatenate=True, dtype=object, meta=meta(object, 0)
        )
        return [
            _whole(itemgetter(place), [every, ()], symbol, sizes)
            for place, symbol in enumerate(self.results)
        ]


def _whole(task: Any, operands: Sequence[Any], symbol: Symbol, sizes: Mapping[str, int]) -> Any:
    """Return the result of a task as an array of one block."""
    shape = [evaluate(dim, sizes) for dim in symbol.shape]
    labels = {f"new{axis}": size for axis, size in enumerate(shape)}
    dtype = symbol.dtype.storage
    return dask_array().blockwise(
        *(task, tuple(labels), *operands),
        token=symbol.args[0].op.name,
        new_axes=labels,
        concatenate=True,
        dtype=dtype,
        meta=meta(dtype, len(labels)),
    )


def _alone(symbol: Symbol, parts: Sequence[Symbol]) -> Graph:
    """Return the graph of an op of control flow alone, whose outputs are the parts."""
    new = symbol.graph.like(name=symbol.op.name, keeps_types=False)
    operands: list[Symbol] = []
    for arg in symbol.args:
        with new.at(arg.location):
            operands.append(new.input(arg.type))
    result = new.append(symbol.op, tuple(operands), symbol.attrs, symbol.type, symbol.source)
    new.output(*(new.append(ops.control.part, (result,), x.attrs, x.type, x.source) for x in parts))
    return new
