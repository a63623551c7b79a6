"""What all targets share: the error that names what one lacks, and the walk over what is needed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from itertools import compress
from typing import Any, TypeVar

from graphir import DType, Graph, GraphirError, Symbol
from graphir.errors import OperandInfo
from graphir.ir.liveness import live_mask
from graphir.ops.dims import Dim
from runtime.binding import unknown_of
from runtime.results import require_outputs

T = TypeVar("T")


class TargetError(GraphirError, NotImplementedError):
    """What a target cannot express: the op, its line, why, and what to do instead."""


def lacking(target: str, symbol: Symbol, why: str, fix: str) -> TargetError:
    """The error for a symbol that a target has no way to say."""
    return TargetError(
        f"-> {symbol.type}: {target} {why}",
        fix=fix,
        op=symbol.op.name,
        operands=[OperandInfo("", arg.type) for arg in symbol.args],
        location=symbol.location,
    )


def live_symbols(graph: Graph) -> Iterator[Symbol]:
    """The symbols that the outputs depend on, and all inputs, operands before their users."""
    require_outputs(graph)
    return compress(graph.symbols, live_mask(graph, graph.outputs))


def emitter(target: str, table: Mapping[str, Callable[..., T]], symbol: Symbol) -> Callable[..., T]:
    """The row of an op; TargetError where the target's table has none."""
    row = table.get(symbol.op.name)
    if row is None:
        raise lacking(target, symbol, "has no such op", "write it with others, or run it here")
    return row


def dtypes_of(graph: Graph) -> set[DType]:
    """The dtypes of all symbols that are needed."""
    return {symbol.dtype for symbol in live_symbols(graph)}


def optional(module: str, package: str, what: str) -> Any:
    """A module of a package that graphir does without; ImportError names the package."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{what} needs the package {package!r}, which is not installed"
        ) from error


def bindings(graph: Graph) -> Iterator[tuple[str, Symbol, int]]:
    """The named dims of a graph, each with an input and the axis of it that gives its size.

    Plain dims come first, then those in which only one name is not yet known, which they are linear
    in.
    """
    dims = [(dim, x, axis) for x in graph.inputs for axis, dim in enumerate(x.shape)]
    dims.sort(key=lambda entry: not str(entry[0]).isidentifier())
    waiting: dict[str, list[int]] = {}
    for i, (dim, _, _) in enumerate(dims):
        for name in set(dim.names()) if isinstance(dim, Dim) else ():
            waiting.setdefault(name, []).append(i)
    bound_names = set[str]()
    left = deque(range(len(dims)))
    while left:  # all in order, then again those in which one name more is known
        dim, symbol, axis = dims[left.popleft()]
        name = unknown_of(dim, bound_names)
        if name is not None:
            bound_names.add(name)
            left += waiting[name]
            yield name, symbol, axis


def unbound(graph: Graph, name: str, dim: Dim) -> TargetError:
    """The error for a dim with a name that no input gives a size."""
    return TargetError(
        f"graph {graph.name!r}: nothing binds {name!r}, which dim {dim} needs",
        fix=f"give it an input that has an axis of size {name!r}",
    )


class Names:
    """Names that are each given once: the wished one, or that with a number behind."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._reserved = set(reserved)
        self._counts: dict[str, int] = {}

    def new(self, base: str) -> str:
        """A name like the wished one that nothing else has."""
        name, count = base, self._counts.get(base, 1)
        while name in self._reserved:
            count += 1
            name = f"{base}_{count}"
        self._counts[base] = count
        self._reserved.add(name)
        return name
