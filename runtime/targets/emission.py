"""Code that targets share: missing features, live symbols, known sizes, casts, names."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import compress
from typing import Any, TypeVar

import numpy as np

from graphir.conversions import Conversions, Step, plain, rounding
from graphir.errors import OperandInfo
from graphir.ir.liveness import live_mask
from graphir.ops.control import with_bodies
from graphir.ops.dims import Dim, evaluate, with_sizes
from graphir.ops.types import TupleType
from graphir.passes import decompose
from graphir.passes.pipeline import lower_to_ops
from graphir.passes.rewriter import Rewriter, bodies_of
from graphir.public import DType, Graph, GraphirError, Symbol, TensorType, ops
from graphir.runtime.binding import unknown_of
from graphir.runtime.results import require_outputs
from graphir.semantics.rounded_functions import ROUNDED_FUNCTIONS

T = TypeVar("T")


class TargetError(GraphirError, NotImplementedError):
    """Raised if a target cannot express an op; it has the op, its line, the reason and a fix."""


def lacking(target: str, symbol: Symbol, why: str, fix: str) -> TargetError:
    """Return the error for a symbol that a target cannot express."""
    return TargetError(
        f"-> {symbol.type}: {target} {why}",
        fix=fix,
        op=symbol.op.name,
        operands=[OperandInfo("", arg.type) for arg in symbol.args],
        location=symbol.location,
    )


def live_symbols(graph: Graph) -> Iterator[Symbol]:
    """Return an iterator of all inputs and live symbols, operands before their users."""
    require_outputs(graph)
    return compress(graph.symbols, live_mask(graph, graph.outputs))


def op_names(text: str) -> frozenset[str]:
    """Return the names of ops in a text."""
    return frozenset(text.split())


def evaluate_graph(
    graph: Graph, values: dict[Symbol, Any], evaluate: Callable[[Symbol, list[Any]], Any]
) -> list[Any]:
    """Return the values of a graph's outputs.

    `values` has the values of the inputs, and gets those of the other live symbols in order:
    `evaluate(symbol, operands)`. The value of an op of control flow is the sequence of its parts.
    """
    for symbol in live_symbols(graph):
        if symbol.op is ops.control.part:
            values[symbol] = values[symbol.args[0]][symbol.attrs["index"]]
        elif symbol.op is not ops.input:
            values[symbol] = evaluate(symbol, [values[arg] for arg in symbol.args])
    return [values[output] for output in graph.outputs]


def emitter(target: str, table: Mapping[str, Callable[..., T]], symbol: Symbol) -> Callable[..., T]:
    """Return the entry of an op in a target's table. Raises TargetError if the table lacks it."""
    row = table.get(symbol.op.name)
    if row is None:
        raise lacking(target, symbol, "has no such op", "write it with others, or run it here")
    return row


def live_arrays(graph: Graph) -> Iterator[Symbol]:
    """Yield the live symbols of a graph and of the graphs of control flow in it.

    It leaves out values that are no arrays: opaque ones and tuples, whose parts have the types of
    outputs of graphs.
    """
    for symbol in live_symbols(graph):
        for body in bodies_of(symbol):
            yield from live_arrays(body)
        if type(symbol.type) is TensorType:
            yield symbol


def require_no_calls(target: str, graph: Graph, library: str | None = None) -> None:
    """Raise TargetError for a live call, also in the graphs of control flow.

    Calls of `library` are allowed if they have their function.
    """
    for symbol in live_symbols(graph) if graph.has_bodies else ():
        for body in bodies_of(symbol):
            require_no_calls(target, body, library)
        if symbol.op is ops.control.call:
            callee = symbol.attrs["callee"]
            if callee.name.split(".")[0] == library and callee.function is not None:
                continue
            why = f"cannot call {callee}, a function of another library"
            raise lacking(target, symbol, why, "write it with ops of graphir")


def require_numpy_functions(target: str, graph: Graph) -> None:
    """Raise TargetError for a function of float32 that a lowered graph has correctly rounded.

    The functions of other engines have other bits.
    """
    if graph.functions == "numpy":
        return
    for symbol in live_arrays(decompose(graph, keep=ROUNDED_FUNCTIONS)):
        if symbol.op.name in ROUNDED_FUNCTIONS and symbol.dtype is DType.float32:
            why = "has no correctly rounded functions"
            raise lacking(target, symbol, why, 'build the graph with functions="numpy"')


def lowered_for(target: str, graph: Graph, library: str | None = None) -> Graph:
    """Return the lowered graph for a target; its calls are those of `library`.

    Raises TargetError for another call, and for a correctly rounded function.
    """
    lowered_graph = lower_to_ops(graph)
    require_no_calls(target, lowered_graph, library)
    require_numpy_functions(target, lowered_graph)
    return lowered_graph


def dtypes_of(graph: Graph) -> set[DType]:
    """Return the dtypes of all live symbols, with those of the graphs of control flow."""
    return {symbol.dtype for symbol in live_arrays(graph)}


def bindings(graph: Graph) -> Iterator[tuple[str, Symbol, int]]:
    """Yield the names in the dims of a graph, each with an input and the axis that binds the name.

    Dims that are plain names come first. A composite dim binds a name if all its other names are
    bound and the dim is linear in this name.
    """
    dims = [(dim, x, axis) for x in graph.inputs for axis, dim in enumerate(x.shape)]
    dims.sort(key=lambda entry: not str(entry[0]).isidentifier())
    waiting: dict[str, list[int]] = {}
    for i, (dim, _, _) in enumerate(dims):
        for name in set(dim.names()) if isinstance(dim, Dim) else ():
            waiting.setdefault(name, []).append(i)
    bound_names = set[str]()
    left = deque(range(len(dims)))
    while left:  # all dims in order, then again the dims that contain a newly bound name
        dim, symbol, axis = dims[left.popleft()]
        name = unknown_of(dim, bound_names)
        if name is not None:
            bound_names.add(name)
            left += waiting[name]
            yield name, symbol, axis


def unbound(graph: Graph, name: str, dim: Dim) -> TargetError:
    """Return the error for a dim with a name that no input binds."""
    return TargetError(
        f"graph {graph.name!r}: nothing binds {name!r}, which dim {dim} needs",
        fix=f"give it an input that has an axis of size {name!r}",
    )


class Names:
    """A source of unique names: the requested name, or that name followed by a number."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._reserved = set(reserved)
        self._counts: dict[str, int] = {}

    def new(self, base: str) -> str:
        """Return a unique name that is, or starts with, the requested name."""
        name, count = base, self._counts.get(base, 1)
        while name in self._reserved:
            count += 1
            name = f"{base}_{count}"
        self._counts[base] = count
        self._reserved.add(name)
        return name


where: Callable[..., Any] = np.where


class EngineConversions(Conversions):
    """The steps of a cast over values that have NumPy's array protocol, and `astype` of a DType.

    Engines round 64-bit floats to 16 bits twice. The steps therefore use an engine's conversion
    only to float32 and float64, and from float32 to narrower formats. These conversions are
    correct, except in the cases that this class corrects.
    """

    natively = frozenset({DType.bool, DType.float32, DType.float64})

    def cast(self, source: DType, target: DType) -> Step:
        """Return the step of the engine's own conversion; a cast to bool is a comparison with 0."""
        if target is DType.bool:
            return lambda x: np.not_equal(x, 0)
        return lambda x: x.astype(target)

    def widen(self, source: DType) -> Step:
        """Return the step of the engine's own conversion to a wider dtype.

        XLA converts the NaN of float8_e8m0fnu to infinity, which the step corrects.
        """
        wide = self.cast(source, plain(source))
        if source.format is None or source.format.specials != "scale":
            return wide
        return lambda x: where(np.equal(x.view(np.uint8), 0xFF), np.nan, wide(x))

    def narrow(self, target: DType, tf32: str) -> Step:
        """Return the step of the engine's own conversion, after `settled` or a rounding.

        The engine converts the values of that first part correctly.
        """
        settle: Step = rounding(target, tf32) if target.emulated else partial(self.settled, target)
        return lambda x: settle(x).astype(target)

    def settled(self, target: DType, x: Any) -> Any:
        """Return float32 values that XLA's constant folding converts as its compiled code does.

        For float8_e8m0fnu the folding drops signs and zeros; for float4_e2m1fn it converts
        non-finite values to 0. The test of signs is by bits, as comparisons flush subnormals.
        """
        assert target.format is not None  # a float dtype has a format
        if target.format.specials == "scale":
            return where(x.view(np.int32) > 0, x, np.nan)
        if target.format.specials == "finite":
            most = float(target.max)
            return where(np.not_equal(x, x), -0.0, np.minimum(np.maximum(x, -most), most))
        return x


def specialized(target: str, graph: Graph, sizes: Mapping[str, int] | None) -> Graph:
    """Return the graph with an int in place of each named dim.

    `sizes` maps names to ints, as in `{"n": 4}`. Raises TargetError if a size is missing, or if the
    graph has no dim of a name.
    """
    known_sizes = dict(sizes or {})
    names = {*_names(live_symbols(graph))}
    if strange := sorted({*known_sizes} - {*_names(graph.symbols)}):
        has = f"; it has {', '.join(sorted(names))}" if names else ", nor any other by name"
        raise TargetError(f"graph {graph.name!r} has no dim {', '.join(strange)}{has}")
    if missing := sorted(names - {*known_sizes}):
        shell = " ".join(f"--size {name}=4" for name in missing)
        example = ", ".join(f"{name!r}: 4" for name in missing)
        raise TargetError(
            f"graph {graph.name!r}: {target} needs the sizes of {', '.join(missing)}",
            fix=f"give them: sizes={{{example}}}, in the shell {shell}",
        )
    return bind_sizes(graph, known_sizes) if names else graph


def _names(symbols: Iterable[Symbol]) -> Iterator[str]:
    """Yield the names in the dims of symbols, and in the graphs of control flow among them."""
    for symbol in symbols:
        for body in bodies_of(symbol):
            yield from _names(body.symbols)
        for type_ in symbol.type.parts:
            yield from (name for dim in type_.shape if isinstance(dim, Dim) for name in dim.names())


def bind_sizes(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """Return the graph with the size of each named dim, which `sizes` must have."""
    rewriter = Rewriter(graph)
    rewriter.changed = True
    for symbol in graph.symbols:
        attrs = {name: with_sizes(value, sizes) for name, value in symbol.attrs.items()}
        bodies = [bind_sizes(body, sizes) for body in bodies_of(symbol)]
        types = [
            TensorType(type_.dtype, tuple(evaluate(dim, sizes) for dim in type_.shape))
            for type_ in symbol.type.parts
        ]
        is_tuple = isinstance(symbol.type, TupleType)
        type_ = TupleType(types) if is_tuple else types[0]
        rewriter.copy(symbol, with_bodies(attrs, bodies) if bodies else attrs, type_)
    return rewriter.finish().promise(None)
