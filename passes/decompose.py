"""Decomposition: rewrite composite ops in terms of primitives."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Any

from graphir.decorators import uncollected
from graphir.ops.dims import product
from graphir.passes.rewriter import Rewriter, entering_bodies
from graphir.public import DType, Graph, GraphError, Op, Symbol, ops
from graphir.semantics.evaluation import machine


@uncollected
@entering_bodies
def decompose(
    graph: Graph,
    keep: Container[str] = (),
    where: Callable[[Symbol], bool] = lambda symbol: True,
) -> Graph:
    """Rewrite each composite op as the primitives that its decomposition names.

    `keep` names the ops that stay as they are, such as the primitives of a target. Of the other
    composite ops, the pass rewrites the symbols for which `where` returns True. An op without a
    decomposition at its dtypes and attributes is a primitive, and stays. The replacement has the
    location of the op.

    Expects a lowered graph. Raises GraphError for a composite op whose dtypes `legalize` would
    widen, since the decomposition would round the result of each primitive. Returns the graph
    itself if nothing changes.
    """
    composites = {
        symbol.index
        for symbol in graph.symbols
        if symbol.op.decomposition and symbol.op.name not in keep and where(symbol)
    }
    if not composites:
        return graph
    rewriter = Rewriter(graph)
    primitives = GraphPrimitives(rewriter.new, keep)
    for symbol in graph.symbols:
        replacement = None
        if symbol.index in composites:
            args = [rewriter.values[arg.index] for arg in symbol.args]
            replacement = primitives.replacement(symbol, args)
        if replacement is None:
            rewriter.copy(symbol)
        else:
            rewriter.replace(replacement)
    return rewriter.finish().verify() if rewriter.changed else graph


class GraphPrimitives:
    """Namespace of primitives that appends ops to a graph; decomposes ops outside `keep` too."""

    def __init__(self, graph: Graph, keep: Container[str]) -> None:
        self.graph, self.keep = graph, keep
        self._numbers: dict[tuple[str, DType], Symbol] = {}
        self._dtypes: dict[Op, Any] = {}

    def replacement(self, symbol: Symbol, args: list[Symbol]) -> Symbol | None:
        """Emit a symbol's decomposition on operands `args`; return its result, None without one."""
        self._numbers.clear()
        self._dtypes = {symbol.op: symbol.attrs.get("dtype")}
        with self.graph.at(symbol.location), self.graph.attempt() as attempt:
            result = self._decomposed(symbol.op, args, symbol.attrs)
            if result is None:
                return None
            _require_legal(symbol)
            return attempt.keep(
                result if result.dtype is symbol.dtype else result.cast(symbol.dtype)
            )

    def _decomposed(self, op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Symbol | None:
        settings = {name: value for name, value in attrs.items() if name != "dtype"}
        return op.decomposition.function(self, *args, **settings) if op.decomposition else None

    def __getattr__(self, name: str) -> Callable[..., Symbol]:
        return partial(self._applied, ops.find(name))

    def _applied(self, op: Op, *operands: Any, **attrs: Any) -> Symbol:
        if op.decomposition and op.name not in self.keep:
            args, settings = op.bind(operands, attrs)
            types = [arg.type for arg in args]
            result = self._decomposed(op, args, op.normalized(settings, types))
            if result is not None:
                return result
        if self._dtypes.get(op):  # argsort {dtype=int32} may decompose into argsort: keep int32
            attrs["dtype"] = self._dtypes[op]
        return op(*operands, **attrs)

    def range(self, **attrs: Any) -> Symbol:
        """Return the vector of the op `range`, which has no operand that names the graph."""
        return self.graph.apply(ops.range, (), attrs)

    def number(self, value: complex, like: Symbol) -> Symbol:
        """Return a 0-d constant of the dtype of `like`; equal numbers share one constant."""
        key = repr(value), like.dtype
        if key not in self._numbers:
            self._numbers[key] = self.graph.constant(value, like.dtype)
        return self._numbers[key]

    def count(self, x: Symbol, axes: Sequence[int], less: int = 0, *, like: Symbol) -> Symbol:
        """Return max(n - less, 0) in the dtype of `like`, for n elements of x along `axes`.

        The result is a constant if the dims are ints, else a computation on `shape_of(x)`.
        """
        size = product(x.shape[i] for i in axes)
        if isinstance(size, int):
            return self.number(max(size - less, 0), like)
        wide = like.dtype.part.bits == 64  # JAX without x64 has no 64-bit dtypes
        shape = ops.shape_of(x, dtype=DType.int64 if wide else DType.uint32)
        sizes = [ops.slice(shape, start=(i,), stop=(i + 1,), step=(1,)) for i in axes]
        along = sizes[0] if len(sizes) == 1 else ops.concat(sizes)
        count = ops.prod(along if like.dtype is along.dtype else along.cast(like.dtype))
        if not less:
            return count
        return ops.maximum(count - self.number(less, like), self.number(0, like))


def _require_legal(symbol: Symbol) -> None:
    """Raise GraphError for a composite of a dtype that is legalized: each primitive would round."""
    operands = (symbol.dtype, *(arg.dtype for arg in symbol.args))
    for dtype in operands if symbol.op.computes else ():
        if machine(dtype) is not dtype:
            raise GraphError(
                f"decompose: {symbol.op.name} of {dtype} at {symbol.location} computes in "
                f"{machine(dtype)} and rounds once",
                fix="use decompose(lower(graph))",
            )
