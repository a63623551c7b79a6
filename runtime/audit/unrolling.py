"""Unrolling: a run of a graph with control flow as a straight graph.

The graph is computed symbol by symbol. The symbols of each graph that runs are copied, one copy a
run, at the same locations. A value that chooses a branch, or ends a loop, and a `call`, whose
results become inputs, are steps beside the straight graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from graphir.ir.inlining import Relocation, inner_layer, roles
from graphir.ir.liveness import last_uses
from graphir.location import Origin, Source
from graphir.ops.attribute_record import TO_DTYPE, AttributeRecord
from graphir.ops.dims import evaluate, with_sizes
from graphir.ops.op import Op
from graphir.passes.rewriter import bodies_of
from graphir.public import (
    DType,
    ExecutionError,
    Graph,
    GraphirError,
    Location,
    PromotionError,
    Symbol,
    TensorType,
    ops,
)
from graphir.runtime.audit.library_calls import CallResult, LibraryCall, TracedCall
from graphir.runtime.audit.opaque import OpaqueStep
from graphir.runtime.interpreter import ReferenceRun
from graphir.runtime.results import refused
from graphir.semantics.control_flow import ControlCall
from graphir.semantics.library_calls import NumPyCall

MOST = 50_000
"""The most symbols of an unrolled graph."""

control = ops.control


class Unrolled(NamedTuple):
    """A straight graph, its inputs, and the steps beside it.

    The first `arguments` inputs are those of the program.
    """

    graph: Graph
    arrays: list[NDArray[Any]]
    steps: list[OpaqueStep]
    arguments: int


def unrolled(
    graph: Graph, arrays: Sequence[NDArray[Any]], sizes: Mapping[str, int], most: int = MOST
) -> Unrolled:
    """Return the straight graph of a run on inputs, under the same rules; dead symbols are left.

    Raises ExecutionError if it has more than `most` symbols.
    """
    with np.errstate(all="ignore"):
        return _Unrolling(graph, sizes, most).unrolled(arrays)


class _Value:
    """A symbol of the straight graph with its value, in place of an array in a ControlCall.

    An opaque value has no symbol.
    """

    __slots__ = ("array", "symbol", "unrolling")

    def __init__(self, unrolling: _Unrolling, symbol: Symbol | None, array: Any) -> None:
        self.unrolling, self.array = unrolling, array
        self.symbol: Any = symbol

    def __int__(self) -> int:
        self.unrolling.steered(self.symbol, self.symbol.dtype is DType.bool)
        return int(self.array)

    def __bool__(self) -> bool:
        self.unrolling.steered(self.symbol, True)
        return bool(self.array)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, place: int) -> _Value:
        sizes, emit = self.symbol.shape, self.unrolling.emit
        start, stop = (place, *(0 for _ in sizes[1:])), (place + 1, *sizes[1:])
        row = emit(ops.slice, (self,), start=start, stop=stop, step=(1,) * len(sizes))
        return emit(ops.squeeze, (row,), axis=0)


class _Frame(NamedTuple):
    """The layer of a graph that runs, and the op of control flow that runs it with its layer."""

    layer: str = ""
    owner: tuple[Symbol, str] | None = None


class _Straight(ReferenceRun):
    """The computation of one symbol at a time; `operands` are the arrays by index."""

    operands: Mapping[int, Any]

    def cached_value(self, symbol: Symbol) -> Any:
        """Return the array of an operand."""
        return self.operands[symbol.index]


class _Unrolling:
    """The state of one unrolling: the straight graph, its inputs and the steps beside it."""

    def __init__(self, graph: Graph, sizes: Mapping[str, int], most: int) -> None:
        self.graph, self.most = graph, most
        self.new = graph.like(keeps_types=False)
        self.run = _Straight(self.new, (), dict(sizes))
        self.relocation = Relocation()
        self.arrays: list[NDArray[Any]] = []
        self.steps: list[OpaqueStep] = []
        # The name and the location of the innermost op of control flow that runs.
        self.what, self.here = "", Location.at("", 0)
        self._last_uses: dict[int, list[int]] = {}

    def unrolled(self, arrays: Sequence[NDArray[Any]]) -> Unrolled:
        names = dict(zip((x.index for x in self.graph.inputs), self.graph.input_names, strict=True))
        values = [
            self.input(x.type, array, x.source, names[x.index])
            for x, array in zip(self.graph.inputs, arrays, strict=True)
        ]
        outputs = self.symbols(self.graph, values, _Frame())
        self.new.set_interface(outputs=(value.symbol for value in outputs))
        return Unrolled(self.new, self.arrays, self.steps, len(values))

    def symbols(self, graph: Graph, arguments: Sequence[_Value], frame: _Frame) -> list[_Value]:
        """Copy the live symbols of a graph, and return its outputs; values are freed on the way."""
        last = self._last_uses.setdefault(id(graph), last_uses(graph))
        values: list[Any] = [None] * len(graph.symbols)
        for symbol, argument in zip(graph.inputs, arguments, strict=True):
            values[symbol.index] = argument
        for symbol in graph.symbols:
            at = symbol.index
            if last[at] >= 0 and values[at] is None:
                values[at] = self.value(symbol, [values[arg.index] for arg in symbol.args], frame)
            for arg in symbol.args:
                if last[arg.index] == at:
                    values[arg.index] = None
        return [values[output.index] for output in graph.outputs]

    def value(self, symbol: Symbol, args: list[Any], frame: _Frame) -> Any:
        """Copy and compute one symbol; of control flow, return a tuple of values."""
        if symbol.op is control.part:
            return args[0][symbol.attrs["index"]]
        if symbol.op.kind == "control":
            return self.control_value(symbol, args, frame)
        source = self.relocation.source(symbol.source, frame.layer, frame.owner)
        attrs = {name: with_sizes(value, self.run.sizes) for name, value in symbol.attrs.items()}
        return self.append(symbol.op, args, attrs, self.sized(symbol.type), source)

    def sized(self, type_: TensorType) -> TensorType:
        return TensorType(type_.dtype, tuple(evaluate(dim, self.run.sizes) for dim in type_.shape))

    def emit(self, op: Op, args: Sequence[_Value], **attrs: Any) -> _Value:
        """Append an op on values at the op of control flow that runs."""
        inference = self.new.infer(op, tuple(value.symbol for value in args), attrs)
        return self.append(op, args, inference.attrs, inference.type, self.here)

    def append(
        self,
        op: Op,
        args: Sequence[_Value],
        attrs: Mapping[str, Any],
        type_: TensorType,
        source: Source,
    ) -> _Value:
        self.require_room()
        symbols = tuple(value.symbol for value in args)
        new = self.new.append(op, symbols, AttributeRecord.of(attrs), type_, source)
        self.run.operands = {value.symbol.index: value.array for value in args}
        return _Value(self, new, self.run.value(new))

    def require_room(self) -> None:
        """Raise ExecutionError if the straight graph becomes too large."""
        if len(self.new.symbols) + len(self.steps) < self.most:
            return
        raise ExecutionError(
            f"graph {self.graph.name!r} runs too many ops to be audited one by one",
            got=f"more than {self.most:,} in its loops",
            fix="run fewer steps: shorter arrays, a smaller bound, or the body as a graph alone",
            location=self.here,
        )

    def input(self, type_: TensorType, array: Any, source: Source, name: str = "") -> _Value:
        """Append an input, under the next free name."""
        sized = TensorType(type_.dtype, np.shape(array))
        attrs = {"dtype": sized.dtype, "shape": sized.shape}
        new = self.new.append(ops.input, (), AttributeRecord.of(attrs), sized, source)
        names = {*self.graph.input_names, *self.new.input_names}
        free = (f"step{i}" for i in range(len(names) + 1) if f"step{i}" not in names)
        self.new.inputs.append(new)
        self.new.input_names.append(name or next(free))
        self.arrays.append(array)
        return _Value(self, new, array)

    def steered(self, symbol: Symbol, truth: bool) -> None:
        """Note that a value chose which graph runs."""
        self.require_room()
        step = OpaqueStep(self.what, self.here, "chooses by a value what runs", (), (symbol,))
        self.steps.append(replace(step, steers=True, exact=True, truth=truth))

    # -- control flow

    def control_value(self, symbol: Symbol, args: list[_Value], frame: _Frame) -> tuple[Any, ...]:
        """Run an op of control flow or a call; return the values of its results."""
        location = self.relocation.location(symbol.location, frame.layer, True)
        outside, self.what, self.here = (self.what, self.here), symbol.op.name, location
        try:
            if symbol.op is control.call:
                return tuple(self.call_values(symbol, args))
            results = self.control_call(symbol, frame)(self.operands(symbol, args))
            types = symbol.type.parts
            return tuple(self.whole(x, type_) for x, type_ in zip(results, types, strict=True))
        except ExecutionError as error:
            raise refused(error, symbol) from None
        finally:
            self.what, self.here = outside

    def operands(self, symbol: Symbol, args: Sequence[_Value]) -> list[Any]:
        """Return the operands in the dtypes that the graphs take."""
        dtypes = symbol.graph.infer(symbol.op, symbol.args, symbol.attrs).operands
        if symbol.op is control.scan:
            for value in args:
                self.require_rows(value)
        values = (
            self.in_dtype(value, dtype, symbol.op.operand(i))
            for i, (value, dtype) in enumerate(zip(args, dtypes, strict=True))
        )
        return list(map(self.no_number, values))

    def require_rows(self, value: _Value) -> None:
        """Raise ExecutionError for a weak array whose rows the rules would make strong."""
        x = value.symbol
        if x.rank and x.dtype.weak:
            dtype = self.new.infer(ops.stack, (x,), {"axis": 0}).type.dtype
            if dtype is not x.dtype:
                raise ExecutionError(
                    f"{self.what}: no run op by op has the rows of a weak array, which the rules "
                    f"{self.graph.rules.name!r} make {dtype}",
                    got=f"{x.type}",
                    fix=f"make the input {DType.from_numpy(x.dtype.storage)}",
                    location=self.here,
                )

    def no_number(self, value: _Value) -> _Value:
        """Return a value that enters a graph, where it is no number whose value the rules read."""
        if value.symbol.op is not ops.constant or value.symbol.rank:
            return value
        try:
            return self.emit(ops.reshape, (value,), shape=())
        except PromotionError:  # rules that refuse an op on a number alone; they read no values
            return value

    def control_call(self, symbol: Symbol, frame: _Frame) -> _UnrolledCall:
        """Return the run of an op of control flow on values."""

        def run(body: Graph, role: str, dtypes: Sequence[DType], arguments: Any) -> list[Any]:
            inner = _Frame(inner_layer(frame.layer, symbol, role), (symbol, frame.layer))
            outputs = zip(self.symbols(body, arguments, inner), dtypes, strict=True)
            return [self.in_dtype(x, to, f"result[{i}]") for i, (x, to) in enumerate(outputs)]

        dtypes = symbol.graph.infer(symbol.op, symbol.args, symbol.attrs).outputs
        graphs = zip(bodies_of(symbol), roles(symbol), dtypes, strict=True)
        runs = [partial(run, *graph) for graph in graphs]
        parts = symbol.type.with_dtypes(symbol.graph.concrete_dtype).parts
        return _UnrolledCall(symbol.op, symbol.attrs, parts, self.run.sizes, runs)

    def in_dtype(self, value: _Value, dtype: DType, operand: str) -> _Value:
        """Return a value cast to the dtype that the op of control flow that runs demands."""
        source, rule = value.symbol.dtype, self.graph.rules.name
        if source is dtype:
            return value
        origin = Origin(operand, self.what, self.here, rule, source, dtype)
        type_ = value.symbol.type.cast(dtype)
        return self.append(ops.cast, (value,), TO_DTYPE[dtype.code], type_, (origin,))

    def whole(self, value: Any, type_: TensorType) -> _Value:
        """Return a result of control flow; rows are stacked."""
        if isinstance(value, list):
            return self.emit(ops.stack, cast("list[_Value]", value), axis=0)
        if isinstance(value, _Value):
            return value
        return self.emit(ops.constant, (), dtype=type_.dtype, value=value)  # no row

    def call_values(self, symbol: Symbol, args: Sequence[_Value]) -> Iterator[_Value]:
        """Call a function of another library, and yield its results as inputs.

        Random draws are those of the call's `run_draws`, if it has any.
        """
        parts = symbol.type.with_dtypes(symbol.graph.concrete_dtype).parts
        call = ControlCall(symbol.op, symbol.attrs, parts, self.run.sizes, ())
        callee = symbol.attrs["callee"]
        draws = getattr(callee.function, "run_draws", None)
        results = call.bound(draws) if draws else call([arg.array for arg in args])
        values = [self.call_value(*pair) for pair in zip(results, parts, strict=True)]
        results, operands = (
            tuple(x.symbol for x in group if x.symbol is not None) for group in (values, args)
        )
        step = OpaqueStep(
            callee.name,
            self.here,
            "is computed by its library alone",
            results,
            operands if len(operands) == len(args) else None,
            promotes=False,  # the graph says what a call casts: see parts_unseen
        )
        step = _with_call(step, callee.function, len(parts))
        self.steps.append(step)
        yield from values

    def call_value(self, array: Any, type_: Any) -> _Value:
        """Return a result of a call: an input, also of an array whose rank no type tells."""
        if type(type_) is TensorType:
            return self.input(type_, array, self.here)
        if isinstance(array, np.ndarray):
            value = cast("NDArray[Any]", array)
            with suppress(GraphirError):  # a dtype that graphs lack, such as that of text
                own = TensorType(DType.from_numpy(value.dtype), value.shape)
                return self.input(own, np.array(value, order="C"), self.here)
        return _Value(self, None, array)


class _UnrolledCall(ControlCall):
    """A run of an op of control flow on values of an unrolling."""

    def scanned(self, x: Any) -> Any:
        """Return the value itself, which gives its rows."""
        return x

    def stack(self, length: int, row: Any) -> Any:
        """Return a list for the rows of a result."""
        return [None] * length


def _with_call(step: OpaqueStep, function: Callable[..., Any], parts: int) -> OpaqueStep:
    """Return the step of a call, which says how an audit can call the function again.

    `parts` is the number of results of the function, opaque ones among them.
    """
    call = TracedCall(function) if isinstance(function, NumPyCall) else function
    if not isinstance(call, LibraryCall):
        return replace(step, compiled=True)
    if call.data_of is None or step.operands is None:
        is_whole = step.operands is not None and len(step.results) == parts
        return replace(step, compiled=True, call=CallResult(call, 0) if is_whole else None)
    operands = tuple(step.operands[i] for i in call.data_of)
    return replace(step, operands=operands, exact=True, keeps=call.draws)
