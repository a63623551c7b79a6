"""The reference: node by node, obviously right, the oracle of all tests. It calls no pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir import Graph, GraphirError, Symbol, ops
from graphir.attributes import with_dtypes
from graphir.conversions import convert
from graphir.evaluation import apply
from graphir.op import Inferred
from runtime.binding import bind
from runtime.results import refused, require_outputs, results


def interpret(graph: Graph, /, *inputs: Any, **named: Any) -> Any:
    """The meaning of a graph, lowered or not: its outputs for these inputs.

    Before an op each operand is converted to the dtype that the op's signature demands. Inputs
    are given by position or name, and match their declared dtype. One output is an array, several
    are a tuple: bfloat16 as ml_dtypes has it, tensor_float32 as float32, index and address as
    uint64. Raises ExecutionError.
    """
    require_outputs(graph)
    arrays, sizes = bind(graph, inputs, named)
    run = _Run(graph, arrays, sizes)
    with np.errstate(all="ignore"):
        return results(run.outputs(), arrays)


class _Run:
    """One walk over the symbols; a value is freed after its last use."""

    def __init__(self, graph: Graph, arrays: Sequence[NDArray[Any]], sizes: dict[str, int]) -> None:
        self.graph, self.sizes = graph, sizes
        self.values: list[NDArray[Any] | None] = [None] * len(graph.symbols)
        for symbol, array in zip(graph.inputs, arrays, strict=True):
            self.values[symbol.index] = array

    def outputs(self) -> list[NDArray[Any]]:
        last = last_uses(self.graph)
        for symbol in self.graph.symbols:
            if last[symbol.index] < 0:
                self.values[symbol.index] = None
                continue
            if symbol.op is not ops.input:
                self.values[symbol.index] = self._value(symbol)
            for arg in symbol.args:
                if last[arg.index] == symbol.index:
                    self.values[arg.index] = None
        return [self._committed(symbol) for symbol in self.graph.outputs]

    def _known(self, symbol: Symbol) -> NDArray[Any]:
        value = self.values[symbol.index]
        assert value is not None  # symbols are in topological order and outputs are kept
        return value

    def _committed(self, symbol: Symbol) -> NDArray[Any]:
        """A result; a literal that is one has the dtype that its rules commit it to."""
        dtype = self.graph.committed(symbol.dtype)
        return convert(self._known(symbol), self.graph.stored(symbol), dtype, self.graph.tf32)

    def _value(self, symbol: Symbol) -> NDArray[Any]:
        graph, committed = self.graph, self.graph.committed
        inferred = graph.infer(symbol.op, symbol.args, symbol.attrs)
        sources = [graph.stored(arg) for arg in symbol.args]
        concrete = Inferred(
            symbol.type.cast(graph.stored(symbol)),
            # What is cast is converted by that alone.
            tuple(sources if symbol.op is ops.cast else map(committed, inferred.operands)),
            with_dtypes(symbol.attrs, committed),
        )
        values = [self._known(arg) for arg in symbol.args]
        try:
            return apply(symbol.op, concrete, sources, values, self.sizes, graph.tf32)
        except GraphirError as error:
            raise refused(error, symbol) from None


def last_uses(graph: Graph) -> list[int]:
    """For each symbol, the place of the symbol that uses it last.

    The number of symbols for an output, -1 for what no output depends on.
    """
    last = [-1] * len(graph.symbols)
    for output in graph.outputs:
        last[output.index] = len(graph.symbols)
    for symbol in reversed(graph.symbols):
        if last[symbol.index] >= 0:
            for arg in symbol.args:
                last[arg.index] = max(last[arg.index], symbol.index)
    return last
