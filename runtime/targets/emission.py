"""Code that all targets share: the error for a missing feature, and the walk over live symbols."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import compress
from typing import TypeVar

from graphir import DType, Graph, GraphirError, Symbol, TensorType, ops
from graphir.errors import OperandInfo
from graphir.ir.liveness import live_mask
from graphir.ops.dims import Dim
from graphir.passes import decompose
from graphir.passes.rewriter import bodies_of
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
