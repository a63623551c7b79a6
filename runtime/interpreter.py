"""The reference interpreter: evaluates a graph symbol by symbol, and is the oracle of all tests.

It calls no pass: before each op it converts the operands to the dtypes that the signature demands.
So `interpret(pass(g))` equals `interpret(g)` bit for bit if the pass preserves meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir.conversions import convert
from graphir.hints import ArrayOrNumber
from graphir.ir.implied_casts import implied
from graphir.ir.liveness import last_uses
from graphir.ops.attribute_record import AttributeRecord
from graphir.ops.attributes import with_dtypes
from graphir.ops.control import bodies
from graphir.ops.op import Inference
from graphir.public import DType, Graph, GraphirError, OutOfMemoryError, Symbol, ops
from graphir.runtime.binding import bind
from graphir.runtime.results import Outputs, refused, require_outputs, results
from graphir.semantics.control_flow import ControlCall
from graphir.semantics.evaluation import Evaluation, contiguous


def interpret(graph: Graph, /, *inputs: ArrayOrNumber, **keywords: ArrayOrNumber) -> Outputs:
    """Evaluate a graph, lowered or not, on inputs and return its outputs.

    The interpreter converts each operand to the dtype that the op's signature demands. The inputs
    come by position or by name, each in its declared dtype, or in trees (see match_inputs). Returns
    an array for one output and a tuple for several: bfloat16 in the dtype of ml_dtypes,
    tensor_float32 as float32, index and address as uint64. Raises ExecutionError for wrong inputs
    and for ops that fail, and OutOfMemoryError, which is an ExecutionError and a MemoryError, for
    memory that is refused.
    """
    require_outputs(graph)
    try:
        arrays, sizes = bind(graph, inputs, keywords)
        run = ReferenceRun(graph, arrays, sizes)
        with np.errstate(all="ignore"):
            for _ in run.walk():
                pass
            return results(run.outputs(), arrays)
    except MemoryError as error:
        raise OutOfMemoryError.of(error) from None


class ReferenceRun:
    """One evaluation of a graph, on the inputs and dim sizes that `bind` returns.

    The run computes the symbols that are live for the outputs or for `kept_places`, the indices of
    further symbols. Call the methods inside `np.errstate(all="ignore")`.
    """

    def __init__(
        self,
        graph: Graph,
        arrays: Sequence[NDArray[Any]],
        sizes: dict[str, int],
        kept_places: Iterable[int] = (),
    ) -> None:
        self.graph, self.sizes, self.kept_places = graph, sizes, kept_places
        self._evaluations: dict[Any, Evaluation] = {}
        self.values: list[NDArray[Any] | None] = [None] * len(graph.symbols)
        for symbol, array in zip(graph.inputs, arrays, strict=True):
            self.values[symbol.index] = array

    def walk(self, keeps: bool = False) -> Iterator[Symbol]:
        """Compute the live symbols in order and yield each.

        At each yield, the values of the symbol and of its operands are available. The walk frees a
        value after its last use, unless it `keeps` all values.
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
            for operand in () if keeps else (symbol, *symbol.args):
                if last[operand.index] == at:
                    self.values[operand.index] = None

    def cached_value(self, symbol: Symbol) -> NDArray[Any]:
        """Return the value of a symbol that the walk has computed and not freed."""
        value = self.values[symbol.index]
        assert value is not None  # symbols are in topological order and outputs are kept
        return value

    def outputs(self, dtypes: Sequence[DType] | None = None) -> list[NDArray[Any]]:
        """Return the values of the graph's outputs, after the walk, in these dtypes.

        The dtypes default to those of the outputs; a weak dtype becomes its rules' default.
        """
        graph = self.graph
        dtypes = [symbol.dtype for symbol in graph.outputs] if dtypes is None else dtypes
        return [
            convert(
                self.cached_value(symbol),
                graph.storage_dtype(symbol),
                graph.concrete_dtype(dtype),
                graph.tf32,
            )
            for symbol, dtype in zip(graph.outputs, dtypes, strict=True)
        ]

    def value(self, symbol: Symbol) -> NDArray[Any]:
        """Compute a symbol from its operands' values; raise ExecutionError if the op fails."""
        if symbol.op.kind == "control":
            return self._control_value(symbol)
        if symbol.op is ops.constant:
            return contiguous(symbol.attrs["value"])
        values = [self.cached_value(arg) for arg in symbol.args]
        if self.graph.rules.types_uncomputed:
            implied(self.graph, symbol)  # raises for dtypes that no kernel computes
        try:
            return self._evaluation(symbol)(values)
        except (GraphirError, MemoryError) as error:
            raise refused(error, symbol) from None

    def _evaluation(self, symbol: Symbol) -> Evaluation:
        """Return the evaluation of a symbol; symbols of equal ops and dtypes share one."""
        graph, args = self.graph, symbol.args
        if not args:  # an input, or ops of which few symbols are alike
            return self._new_evaluation(symbol, ())
        # Types and attributes are interned. A literal may be stored in more bits than its dtype.
        types, literals = [x.type for x in args], [x.op for x in args if x.type.dtype.weak]
        key: Any = symbol.op, symbol.attrs, symbol.type, *types, *literals
        if graph.rules.by_value:
            key = *key, *graph.builder.types_of(args)
        evaluation = self._evaluations.get(key)
        if evaluation is None:
            sources = tuple([graph.storage_dtype(arg) for arg in args])
            evaluation = self._evaluations[key] = self._new_evaluation(symbol, sources)
        return evaluation

    def _new_evaluation(self, symbol: Symbol, sources: Sequence[DType]) -> Evaluation:
        graph, inference = self.graph, self.concrete(symbol)
        sizes, tf32, functions = self.sizes, graph.tf32, graph.functions
        return Evaluation(symbol.op, inference, sources, sizes, tf32, functions)

    def _control_value(self, symbol: Symbol) -> Any:
        """Compute an op of control flow, a tuple of arrays, or one part of such a tuple."""
        graph, values = self.graph, [self.cached_value(arg) for arg in symbol.args]
        if symbol.op is ops.control.part:
            return values[0][symbol.attrs["index"]]
        inference = graph.infer(symbol.op, symbol.args, symbol.attrs)
        own_dtypes = [getattr(arg.type, "dtype", None) for arg in symbol.args]
        operands = [
            value  # of no dtype
            if dtype is None
            else convert(value, graph.storage_dtype(arg), graph.concrete_dtype(dtype), graph.tf32)
            for value, arg, dtype in zip(
                values, symbol.args, inference.operands or own_dtypes, strict=True
            )
        ]

        def evaluate(
            body: Any, dtypes: Sequence[DType], arrays: Sequence[NDArray[Any]]
        ) -> list[NDArray[Any]]:
            run = ReferenceRun(body, [*map(np.asarray, arrays)], dict(self.sizes))
            for _ in run.walk():
                pass
            return run.outputs(dtypes)

        both = zip(bodies(symbol.attrs), inference.outputs, strict=True)
        functions = [partial(evaluate, body, dtypes) for body, dtypes in both]
        try:
            types = symbol.type.with_dtypes(graph.concrete_dtype).parts
            return ControlCall(symbol.op, symbol.attrs, types, self.sizes, functions)(operands)
        except GraphirError as error:
            raise refused(error, symbol) from None

    def concrete(self, symbol: Symbol) -> Inference:
        """Return the inference for a symbol, with weak dtypes replaced by their defaults."""
        graph, concrete_dtype = self.graph, self.graph.concrete_dtype
        inference = graph.infer(symbol.op, symbol.args, symbol.attrs)
        # The operand of a cast has no implicit conversion: the cast op converts the stored value.
        operand_dtypes = (
            map(graph.storage_dtype, symbol.args)
            if symbol.op is ops.cast
            else map(concrete_dtype, inference.operands)
        )
        attrs = symbol.attrs
        if any(isinstance(value, DType) and value.weak for value in attrs.values()):
            attrs = AttributeRecord.of(with_dtypes(attrs, concrete_dtype))
        return Inference(
            symbol.type.cast(graph.storage_dtype(symbol)),
            tuple(operand_dtypes),
            attrs,
        )
