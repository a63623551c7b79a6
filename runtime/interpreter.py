"""The reference: node by node, obviously right, the oracle of all tests. It calls no pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir import Graph, GraphirError, Symbol, ops
from graphir.conversions import convert
from graphir.ir.implied_casts import implied
from graphir.ir.liveness import last_uses
from graphir.ops.attribute_record import AttributeRecord
from graphir.ops.attributes import with_dtypes
from graphir.ops.op import Inferred
from graphir.semantics.evaluation import apply
from runtime.binding import bind
from runtime.results import refused, require_outputs, results


def interpret(graph: Graph, /, *inputs: Any, **keywords: Any) -> Any:
    """The meaning of a graph, lowered or not: its outputs for these inputs.

    Before an op each operand is converted to the dtype that the op's signature demands. Inputs
    are given by position or name, and match their declared dtype. One output is an array, several
    are a tuple: bfloat16 as ml_dtypes has it, tensor_float32 as float32, index and address as
    uint64. Raises ExecutionError.
    """
    require_outputs(graph)
    arrays, sizes = bind(graph, inputs, keywords)
    run = ReferenceRun(graph, arrays, sizes)
    with np.errstate(all="ignore"):
        for _ in run.walk():
            pass
        return results(run.outputs(), arrays)


class ReferenceRun:
    """One walk over the symbols of a graph, for inputs and sizes of dims as `bind` gives them.

    Symbols that no output depends on are not computed, but for those `watched`, by place, and what
    they depend on. Call inside `np.errstate(all="ignore")`.
    """

    def __init__(
        self,
        graph: Graph,
        arrays: Sequence[NDArray[Any]],
        sizes: dict[str, int],
        kept_places: Iterable[int] = (),
    ) -> None:
        self.graph, self.sizes, self.kept_places = graph, sizes, kept_places
        self.values: list[NDArray[Any] | None] = [None] * len(graph.symbols)
        for symbol, array in zip(graph.inputs, arrays, strict=True):
            self.values[symbol.index] = array

    def walk(self, keep: bool = False) -> Iterator[Symbol]:
        """Compute, one after another, the symbols that an output depends on.

        While a symbol is at hand its value and those of its operands are known. A value is freed
        after its last use, unless all are to be kept.
        """
        last = last_uses(self.graph, self.kept_places)
        for symbol in self.graph.symbols:
            at = symbol.index
            if last[at] < 0:
                self.values[at] = None
                continue
            if self.values[at] is None:
                self.values[at] = self.value(symbol)
            yield symbol
            if not keep:
                for operand in (symbol, *symbol.args):
                    if last[operand.index] == at:
                        self.values[operand.index] = None

    def known(self, symbol: Symbol) -> NDArray[Any]:
        """The value of a symbol that has been computed and is still needed."""
        value = self.values[symbol.index]
        assert value is not None  # symbols are in topological order and outputs are kept
        return value

    def outputs(self) -> list[NDArray[Any]]:
        """The results, after the walk."""
        return [self._concrete_value(symbol) for symbol in self.graph.outputs]

    def _concrete_value(self, symbol: Symbol) -> NDArray[Any]:
        """A result; a literal that is one has the dtype that its rules commit it to."""
        dtype = self.graph.concrete_dtype(symbol.dtype)
        return convert(self.known(symbol), self.graph.stored(symbol), dtype, self.graph.tf32)

    def value(self, symbol: Symbol) -> NDArray[Any]:
        """The value of a symbol whose operands' are known; ExecutionError if there is none."""
        graph = self.graph
        sources = [graph.stored(arg) for arg in symbol.args]
        values = [self.known(arg) for arg in symbol.args]
        if graph.rules.types_uncomputed:
            implied(graph, symbol)  # which refuses what no kernel computes
        try:
            return apply(symbol.op, self.concrete(symbol), sources, values, self.sizes, graph.tf32)
        except GraphirError as error:
            raise refused(error, symbol) from None

    def concrete(self, symbol: Symbol) -> Inferred:
        """What inference says of a symbol, weak dtypes as they are committed."""
        graph, concrete_dtype = self.graph, self.graph.concrete_dtype
        inference = graph.infer(symbol.op, symbol.args, symbol.attrs)
        # What is cast is converted by that alone.
        operand_dtypes = (
            map(graph.stored, symbol.args)
            if symbol.op is ops.cast
            else map(concrete_dtype, inference.operands)
        )
        return Inferred(
            symbol.type.cast(graph.stored(symbol)),
            tuple(operand_dtypes),
            AttributeRecord.of(with_dtypes(symbol.attrs, concrete_dtype)),
        )
