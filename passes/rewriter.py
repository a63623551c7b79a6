"""What every pass does: walk a graph once and emit into a new one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from graphir import (
    DType,
    Graph,
    GraphError,
    Origin,
    PromotionRules,
    Symbol,
    TensorType,
    ops,
)
from graphir.location import CAST
from graphir.ops.attribute_record import TO_DTYPE, AttributeRecord


def require_explicit(graph: Graph, name: str) -> None:
    """GraphError where the rules of a graph still imply casts, which a pass would not see."""
    if graph.rules.implicit:
        raise GraphError(
            f"{name}: casts of graph {graph.name!r} are still implicit under {graph.rules.name!r}",
            fix=f"use {name}(implicit_cast(graph)), or lower(graph)",
        )


class Rewriter:
    """A new graph in the making, and what each symbol of the old one has become in it.

    `values[i]` is the new symbol of the old one at place i. `finish()` gives the new graph, or
    the old one where the pass said that nothing had changed.
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
        type: TensorType | None = None,  # noqa: A002 -- what it is
    ) -> Symbol:
        """The symbol on what its operands have become, and so that it is found by its users."""
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
        """Let the users of the symbol at hand use this one of the new graph."""
        self.values.append(new)
        self.changed = True

    def finish(self) -> Graph:
        """The new graph, with inputs and outputs; or the old one if nothing changed."""
        if not self.changed:
            return self.old
        old, new = self.old, self.new
        new.inputs = [self.values[symbol.index] for symbol in old.inputs]
        new.input_names = list(old.input_names)
        new.outputs = tuple(self.values[symbol.index] for symbol in old.outputs)
        return new


class Casts:
    """Inserted casts: one for each value and dtype, with an origin for each use that it serves."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._casts: tuple[dict[int, Symbol], ...] = tuple({} for _ in DType)
        self._uses: dict[int, list[Origin]] = {}

    def insert(self, value: Symbol, to: DType, origin: Origin) -> Symbol:
        """The cast of a value of the new graph, made now or by an earlier use."""
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
        """Write the later uses into the casts that serve them."""
        for index, origins in self._uses.items():
            self._graph.symbols[index].source = tuple(origins)


def origins_of(symbol: Symbol) -> tuple[Origin, ...]:
    """The uses of casts that a symbol stands for; a cast that the user wrote is one by itself."""
    if symbol.op is ops.cast and not symbol.origins:
        source = symbol.args[0].dtype
        return (Origin("x", "cast", symbol.location, CAST, source, symbol.dtype),)
    return symbol.origins


def merged_origins(symbols: Iterable[Symbol]) -> tuple[Origin, ...]:
    """All uses of casts that some symbols stand for, one after another."""
    return tuple(origin for symbol in symbols for origin in origins_of(symbol))
