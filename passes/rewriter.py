"""The base of the passes: walk a graph once in topological order and emit symbols into a new graph.

`Rewriter` maps old symbols to new symbols. `Casts` inserts shared casts and collects their origins.
`entering_bodies` lets a pass enter the graphs of control flow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast

from graphir.location import CAST
from graphir.ops.attribute_record import TO_DTYPE, AttributeRecord
from graphir.ops.control import bodies, with_bodies
from graphir.public import DType, Graph, GraphError, Origin, PromotionRules, Symbol, TensorType, ops

P = ParamSpec("P")


def require_explicit(graph: Graph, name: str) -> None:
    """Raise GraphError if the rules of a graph imply casts, which the pass would not see.

    `name` is the name of the pass, for the message.
    """
    if graph.rules.implicit:
        raise GraphError(
            f"{name}: casts of graph {graph.name!r} are still implicit under {graph.rules.name!r}",
            fix=f"use {name}(implicit_cast(graph)), or lower(graph)",
        )


class Rewriter:
    """A new graph under construction, with the mapping from old symbols to new symbols.

    `values[i]` is the new symbol of the old graph's symbol at index i. `finish()` returns the new
    graph, or the old graph if `changed` is False.
    """

    def __init__(self, old: Graph, rules: PromotionRules | None = None) -> None:
        self.old = old
        self.new = old.like(rules)
        self.values: list[Symbol] = []
        self.changed = rules is not None

    def copy(
        self,
        symbol: Symbol,
        attrs: Mapping[str, Any] | None = None,
        type: TensorType | None = None,  # noqa: A002 -- the name of the field
    ) -> Symbol:
        """Re-emit a symbol with remapped operands and record the mapping.

        `attrs` and `type` replace the attributes and the type of the symbol.
        """
        values, symbols = self.values, self.new.symbols
        args: list[Symbol] = []
        for arg in symbol.args:
            args.append(values[arg.index])
        new = Symbol(
            self.new,
            symbol.op,
            tuple(args),
            symbol.attrs if attrs is None else AttributeRecord.of(attrs),
            symbol.type if type is None else type,
            symbol.source,
            len(symbols),
        )
        symbols.append(new)
        values.append(new)
        return new

    def replace(self, new: Symbol) -> None:
        """Map the current symbol of the walk to `new`, a symbol of the new graph."""
        self.values.append(new)
        self.changed = True

    def finish(self) -> Graph:
        """Return the new graph with inputs and outputs set, or the old graph if nothing changed."""
        if not self.changed:
            return self.old
        inputs, outputs = (
            [self.values[symbol.index] for symbol in symbols]
            for symbols in (self.old.inputs, self.old.outputs)
        )
        return self.new.set_interface(inputs, self.old.input_names, outputs)


def entering_bodies(
    pass_: Callable[Concatenate[Graph, P], Graph],
) -> Callable[Concatenate[Graph, P], Graph]:
    """Decorator: apply a pass to the graphs of control flow, innermost first, then to the graph.

    The pass must keep the types of inputs and outputs.
    """

    @wraps(pass_)
    def run(graph: Graph, *args: P.args, **keywords: P.kwargs) -> Graph:
        if graph.has_bodies:
            graph = _with_new_bodies(graph, lambda body: run(body, *args, **keywords))
        return pass_(graph, *args, **keywords)

    return run


def bodies_of(symbol: Symbol) -> list[Graph]:
    """Return the graphs among the attributes of a symbol, in order."""
    if symbol.op.kind != "control":
        return []
    return [cast(Graph, body) for body in bodies(symbol.attrs)]


def _with_new_bodies(graph: Graph, change: Callable[[Graph], Graph]) -> Graph:
    rewriter = Rewriter(graph)
    for symbol in graph.symbols:
        old = bodies_of(symbol)
        new = list(map(change, old))
        if any(a is not b for a, b in zip(old, new, strict=True)):
            rewriter.changed = True
            rewriter.copy(symbol, with_bodies(symbol.attrs, new))
        else:
            rewriter.copy(symbol)
    return rewriter.finish()


class Casts:
    """Inserted casts: one shared cast for each value and dtype, with an origin for each use."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._casts: tuple[dict[int, Symbol], ...] = tuple({} for _ in DType)
        self._uses: dict[int, list[Origin]] = {}

    def insert(self, value: Symbol, to: DType, origin: Origin) -> Symbol:
        """Return the cast of `value` to dtype `to`; insert the cast at its first use.

        `origin` describes this use. Later origins reach the cast in `finish`.
        """
        casts = self._casts[to.code]
        cast = casts.get(value.index)
        if cast is None:
            cast = casts[value.index] = self._graph.append(
                ops.cast, (value,), TO_DTYPE[to.code], value.type.cast(to), (origin,)
            )
        else:
            self._uses.setdefault(cast.index, list(cast.origins)).append(origin)
        return cast

    def finish(self) -> None:
        """Store all origins in the casts that serve more than one use."""
        for index, origins in self._uses.items():
            self._graph.symbols[index].source = tuple(origins)


def origins_of(symbol: Symbol) -> tuple[Origin, ...]:
    """Return a symbol's cast origins; a cast that the user wrote is the one use of itself."""
    if symbol.op is ops.cast and not symbol.origins:
        source = symbol.args[0].dtype
        return (Origin("x", "cast", symbol.location, CAST, source, symbol.dtype),)
    return symbol.origins


def is_conversion(symbol: Symbol) -> bool:
    """Whether a symbol converts its operand: a cast, or the real part that a conversion takes.

    NumPy drops the imaginary parts of complex numbers that become real; the symbol of that step has
    the conversion's origins, which a real part that the program takes lacks.
    """
    return symbol.op is ops.cast or (symbol.op is ops.real and bool(symbol.origins))


def merged_origins(symbols: Iterable[Symbol]) -> tuple[Origin, ...]:
    """Return the cast origins of several symbols, concatenated."""
    return tuple(origin for symbol in symbols for origin in origins_of(symbol))
