"""The same program under other rules: its ops, inputs and literals, built once more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from graphir import Graph, GraphError, GraphirError, PromotionError, PromotionRules, Symbol, ops
from graphir.arguments import call_text, symbols_of
from graphir.literals import literal_array
from graphir.location import placed
from graphir.promotion import rules as rules_named
from passes.rewriting import uncollected

SHOWN = 100
"""The most refusals that one error lists."""


class Refusal(NamedTuple):
    """A symbol that the other rules refuse, and the error they give at its line.

    `follows` where one of its operands was refused before.
    """

    symbol: Symbol
    error: GraphirError
    follows: bool


class Rebuilt(NamedTuple):
    """A graph under other rules: `twins[i]` is what the symbol at place i has become.

    A literal written in an expression has none, since it takes a dtype anew in each. A refused
    symbol's twin stands for it with an assumed type and no operands; `refusals` is by its place.
    `broken` is the error of a graph whose `out_types` are not what comes out.
    """

    graph: Graph
    twins: list[Symbol | None]
    refusals: dict[int, Refusal]
    broken: GraphirError | None


def rebuild(graph: Graph, rules: str | PromotionRules) -> Graph:
    """The same program built under other rules; under its own, the graph itself.

    Casts, constants and inputs keep their dtypes; literals take one anew. Raises one PromotionError
    that lists every symbol which the rules refuse, each with its line; GraphError for a graph whose
    rules are gone, being explicit.
    """
    wanted = rules_named(rules)
    if wanted is graph.rules:
        return graph
    new = rebuilt(graph, wanted)
    if new.refusals or new.broken:
        raise _refused(graph, new)
    return new.graph


@uncollected
def rebuilt(
    graph: Graph, rules: PromotionRules, assumed: Sequence[Symbol | None] | None = None
) -> Rebuilt:
    """The same program built under other rules as far as they allow it.

    Where they refuse a symbol, its users are told the type that it has among those `assumed`, by
    place (by default: the type it had). In a graph read from text, which says where an expression
    starts and not where it ends, `g.scalar(2) + x` counts as `2 + x`.
    """
    if graph.rules_before is not None:
        raise GraphError(
            f"graph {graph.name!r} is explicit: what {graph.rules_before!r} decided is in its casts "
            "already; take the graph as it was before implicit_cast"
        )
    rebuilding = _Rebuilding(graph, rules, graph.symbols if assumed is None else assumed)
    for symbol in graph.symbols:
        rebuilding.add(symbol)
    return rebuilding.finished()


def literals_in_expressions(graph: Graph) -> set[int]:
    """The places of the literals that were written as such, `x + 1`, not as `g.scalar(1)`.

    One that the rules would not have given its dtype by itself was; any other, where it has the
    location of its first user, or none.
    """
    first: dict[int, Symbol] = {}
    for symbol in graph.symbols:
        for arg in symbol.args:
            if arg.op is ops.constant and arg.attrs["literal"] is not None:
                first.setdefault(arg.index, symbol)
    return {
        place
        for place, user in first.items()
        if not graph.symbols[place].location.file
        or graph.symbols[place].location.matches(user.location)
        or not _stands_alone(graph, graph.symbols[place])
    }


def _stands_alone(graph: Graph, literal: Symbol) -> bool:
    """Whether a literal has the dtype that the rules give it by itself."""
    try:
        return graph.rules.literal(literal.attrs["literal"], ()) is literal.dtype
    except GraphirError:
        return False


class _Rebuilding:
    """One walk over the symbols of a graph."""

    def __init__(
        self, graph: Graph, rules: PromotionRules, assumed: Sequence[Symbol | None]
    ) -> None:
        self.old, self.assumed = graph, assumed
        self.new = Graph(graph.name, out_types=graph.out_types, rules=rules, tf32=graph.tf32)
        self.written = literals_in_expressions(graph)
        places = [symbol.index for symbol in graph.inputs]
        self.names = dict(zip(places, graph.input_names, strict=True))
        self.twins: list[Symbol | None] = []
        self.refusals: dict[int, Refusal] = {}

    def add(self, symbol: Symbol) -> None:
        """Build the twin of the next symbol."""
        self.twins.append(None if symbol.index in self.written else self._twin(symbol))

    def finished(self) -> Rebuilt:
        """What has been built, with its inputs and outputs."""
        new, old = self.new, self.old
        new.inputs = self._built(old.inputs)
        new.input_names = list(old.input_names)
        new.outputs = tuple(self._built(old.outputs))
        return Rebuilt(new, self.twins, self.refusals, _broken(new))

    def _built(self, symbols: Iterable[Symbol]) -> list[Symbol]:
        """What symbols have become; of a literal that is an output too, itself."""
        found = [(symbol, self.twins[symbol.index]) for symbol in symbols]
        return [self._twin(symbol) if twin is None else twin for symbol, twin in found]

    def _twin(self, symbol: Symbol) -> Symbol:
        before = len(self.new.symbols)
        try:
            return self._alone(symbol) if _of_literal(symbol) else self._applied(symbol)
        except GraphirError as error:
            del self.new.symbols[before:]
            return self._refused(symbol, error)

    def _alone(self, symbol: Symbol) -> Symbol:
        """A literal that no expression gives its dtype."""
        new, value = self.new, symbol.attrs["literal"]
        dtype, array = literal_array(value, new.rules.literal(value, ()), new.rules, new.tf32)
        attrs = {"dtype": dtype, "value": array, "literal": value}
        found = new.infer(ops.constant, (), attrs)
        return new.append(ops.constant, (), found.attrs, found.type, symbol.source)

    def _applied(self, symbol: Symbol) -> Symbol:
        new, op, before = self.new, symbol.op, len(self.new.symbols)
        args = symbols_of(new, op, self._operands(symbol))
        for constant in new.symbols[before:]:
            constant.source = symbol.source
        found = new.infer(op, args, self._attrs(symbol))
        return new.append(op, args, found.attrs, found.type, symbol.source)

    def _operands(self, symbol: Symbol) -> list[Any]:
        """What the operands have become; a literal in the expression, itself."""
        found = [(arg, self.twins[arg.index]) for arg in symbol.args]
        return [arg.attrs["literal"] if twin is None else twin for arg, twin in found]

    def _attrs(self, symbol: Symbol) -> dict[str, Any]:
        """The attributes; a number that was given no dtype takes one anew."""
        attrs = symbol.attrs
        if symbol.op is not ops.full or not symbol.weak:
            return attrs
        if self.old.rules.literal(attrs["value"], ()) is not symbol.dtype:
            return attrs
        return {**attrs, "dtype": self.new.rules.literal(attrs["value"], ())}

    def _refused(self, symbol: Symbol, error: GraphirError) -> Symbol:
        """Note a refusal, and let the users of the symbol go on with the type assumed for it."""
        follows = any(arg.index in self.refusals for arg in symbol.args)
        # One that has a place already has that of this file, where constants are made.
        cause = error.__context__ if error.location is not None else error
        plain = cause if isinstance(cause, GraphirError) else error
        told = placed(plain, symbol.location, self._call(symbol))
        self.refusals[symbol.index] = Refusal(symbol, told, follows)
        known = self.assumed[symbol.index]
        type_ = symbol.type if known is None else known.type
        return self.new.append(symbol.op, (), symbol.attrs, type_, symbol.source)

    def _call(self, symbol: Symbol) -> str:
        if symbol.op is ops.input:
            return f"input %{self.names[symbol.index]}: {symbol.type}"
        if _of_literal(symbol):
            return f"scalar({symbol.attrs['literal']!r})"
        return call_text(symbol.op, self._operands(symbol))


def _of_literal(symbol: Symbol) -> bool:
    return symbol.op is ops.constant and symbol.attrs["literal"] is not None


def _broken(graph: Graph) -> GraphError | None:
    """The error of a graph whose outputs are not of the types that it promises."""
    found = tuple(symbol.type for symbol in graph.outputs)
    if not found or graph.out_types in (None, found):
        return None
    promised = ", ".join(map(str, graph.out_types or ()))
    return GraphError(
        f"graph {graph.name!r} promises ({promised}) and has ({', '.join(map(str, found))}) under "
        f"{graph.rules.name!r}; .cast(...) the outputs, or promise that"
    )


def _refused(graph: Graph, new: Rebuilt) -> PromotionError:
    """One error for all: first causes, then what follows from them."""
    first = [refusal for refusal in new.refusals.values() if not refusal.follows]
    rest = [refusal for refusal in new.refusals.values() if refusal.follows]
    rules = new.graph.rules.name
    head = f"{rules!r} refuses {len(new.refusals)} of {len(graph)} symbols of graph {graph.name!r}"
    lines = [f"{head}:" if first else f"{rules!r} breaks a promise:"]
    lines += [f"  {refusal.error}" for refusal in first[:SHOWN]]
    if rest:
        lines.append(f"  {len(rest)} of them follow from operands that are refused:")
        lines += [f"  {refusal.error}" for refusal in rest[: max(SHOWN - len(first), 0)]]
    if len(new.refusals) > SHOWN:
        lines.append(f"  ... passes.diff(graph, {rules!r}) has all {len(new.refusals)}")
    if new.broken:
        lines.append(f"  {new.broken}")
    lines.append(f"Cast there, or keep rules={graph.rules.name!r}.")
    return PromotionError("\n".join(lines))
