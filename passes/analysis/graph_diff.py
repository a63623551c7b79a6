"""The comparison of one graph under two rule sets: the symbols whose dtype changes, and why.

The graph is rebuilt under both rule sets. A changed symbol with a changed operand is a consequence;
a changed symbol whose operands are unchanged is a first cause.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, overload

from graphir import DType, Graph, GraphirError, PromotionRules, Symbol
from graphir.escape import brief, printable
from graphir.gc_pause import uncollected
from graphir.ir.inlining import Junction, inlined, original_of
from graphir.passes.analysis.rebuild import Rebuilt, rebuilt
from graphir.passes.analysis.written_literals import Literals
from graphir.passes.rewriter import bodies_of
from graphir.rule_reports.tables import VERSION, aligned
from graphir.text.printer import names_of

End: TypeAlias = "DType | GraphirError"
"""The outcome of a symbol under a rule set: its dtype, or the error that the rule set raises."""


class Change(NamedTuple):
    """A symbol whose dtype differs between two rule sets, or which one of them refuses.

    `before` and `after` are its dtypes, or the error of the rule set. `causes` are its changed
    operands; a first cause has no changed operand.
    """

    symbol: Symbol
    before: End
    after: End
    causes: tuple[Symbol, ...]

    @property
    def errors(self) -> tuple[GraphirError, ...]:
        """The errors of the rule sets that refuse the symbol."""
        return tuple(end for end in (self.before, self.after) if isinstance(end, GraphirError))


class GraphDiff(Sequence[Change]):
    """The symbols of a graph that change under another rule set, as a sequence of Change.

    `str()` lists first causes, then their consequences. `both_refused` are the symbols that both
    rule sets refuse; they are not changes. `broken` is the error of outputs that differ from the
    graph's `out_types` under the second rule set, or None. `view` is the graph with its control
    flow inline, whose symbols the changes have.
    """

    def __init__(self, graph: Graph, before: PromotionRules, after: PromotionRules) -> None:
        self.graph, self.before, self.after = graph, before, after
        self.view = inlined(graph)
        changes, self.broken = _compare(graph, self.view, before, after)
        self.changes = tuple(change for change in changes if len(change.errors) < 2)
        self.both_refused = tuple(change for change in changes if len(change.errors) == 2)

    def __len__(self) -> int:
        return len(self.changes)

    @overload
    def __getitem__(self, at: int) -> Change: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Change]: ...
    def __getitem__(self, at: int | slice) -> Change | Sequence[Change]:
        return self.changes[at]

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    @property
    def causes(self) -> tuple[Change, ...]:
        """The first causes: changes without a changed operand."""
        return tuple(change for change in self if not change.causes)

    @property
    def refused(self) -> tuple[Change, ...]:
        """The changes in which one of the rule sets raises."""
        return tuple(change for change in self if change.errors)

    @property
    def sentences(self) -> list[str]:
        """The sentences that explain why outputs have other dtypes."""
        from graphir.passes.reports.sentences import differences

        return differences(self)

    def to_json(self) -> str:
        """Return the changes as a JSON document; a refusal is null, with its error beside it."""
        return json.dumps({"version": VERSION, **self.facts()}, indent=2)

    def facts(self) -> dict[str, Any]:
        """Return the content of the JSON document as a dict."""
        names = names_of(self.view)
        document: dict[str, Any] = {"graph": self.graph.name, "symbols": len(self.view)}
        document |= {"before": self.before.name, "after": self.after.name}
        document["changes"] = [_json(change, names) for change in self]
        document["both_refused"] = [_json(change, names) for change in self.both_refused]
        document["sentences"] = self.sentences
        document["broken"] = None if self.broken is None else str(self.broken)
        return document

    def table(self) -> list[tuple[str, ...]]:
        """Return rows of location, symbols, dtype before, dtype after and causes.

        The first row is the header. First causes come before their consequences.
        """
        first, rest = self.causes, [change for change in self if change.causes]
        head = ("where", "symbol", self.before.name, self.after.name, "because of")
        return [head, *_rows((*first, *rest), names_of(self.view))]

    def __str__(self) -> str:
        rows = self.table()
        table = aligned(rows) if len(rows) > 1 else []
        return "\n".join([self.headline(), *self.sentences, *table, *self.errors()])

    def __repr__(self) -> str:
        return brief(str(self))

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks."""
        from graphir.passes.reports.html_rows import difference_fragment

        return difference_fragment(self)

    def headline(self) -> str:
        """Return the line that counts changed symbols, first causes and refusals."""
        counts = [
            f"{len(self)} of {len(self.view)} symbols change",
            f"{len(self.causes)} of them first causes",
            f"{self.after.name} refuses {_refusals(change.after for change in self)}",
            f"{self.before.name} {_refusals(change.before for change in self)}",
            f"both {len(self.both_refused)}",
        ]
        return (
            f"graph {printable(self.graph.name)}, {self.before.name} -> {self.after.name}: "
            + ", ".join(counts)
        )

    def errors(self) -> list[str]:
        """Return lines with each error once, under a heading for each rule set that raises it."""
        changes = (*self.causes, *(change for change in self if change.causes))
        both = [str(error) for change in self.both_refused for error in change.errors]
        sections = {
            f"{self.after.name} refuses": _error_texts(change.after for change in changes),
            f"{self.before.name} refuses": _error_texts(change.before for change in changes),
            "both refuse": dict.fromkeys(both),
            "broken promise": [] if self.broken is None else [str(self.broken)],
        }
        lines: list[str] = []
        for heading, errors in sections.items():
            lines += ["", f"{heading}:", *(f"  {error}" for error in errors)] if errors else []
        return lines


def _error_texts(ends: Iterable[End]) -> dict[str, None]:
    """Return the distinct error texts among outcomes, in order, as dict keys."""
    return dict.fromkeys(str(end) for end in ends if isinstance(end, GraphirError))


@uncollected
def _compare(
    graph: Graph, view: Graph, before: PromotionRules, after: PromotionRules
) -> tuple[list[Change], GraphirError | None]:
    """Return the symbols that differ or that both refuse, and the second's out_types error."""
    first = _as_it_is(graph) if before is graph.rules else rebuilt(graph, before)
    second = first if after is before else rebuilt(graph, after, first.twins)
    both = _ends(view, graph, first), _ends(view, graph, second)
    changes: dict[int, Change] = {}
    for symbol, first_end, second_end in zip(view.symbols, *both, strict=True):
        if first_end is None or second_end is None:
            continue  # a literal in an expression: its user shows the change
        if first_end is not second_end:
            causes = [arg for arg in dict.fromkeys(symbol.args) if arg.index in changes]
            changes[symbol.index] = Change(symbol, first_end, second_end, tuple(causes))
    return list(changes.values()), second.broken


def _as_it_is(graph: Graph) -> Rebuilt:
    """Return the Rebuilt of a graph under its own rules, without a rebuild."""
    if graph.rules_before is not None:
        return rebuilt(graph, graph.rules)  # raises the GraphError for explicit graphs
    inside = Literals(graph).inside
    twins = [None if symbol.index in inside else symbol for symbol in graph.symbols]
    flow = (symbol for symbol in graph.symbols if symbol.op.kind == "control")
    bodies = {symbol.index: list(map(_as_it_is, bodies_of(symbol))) for symbol in flow}
    return Rebuilt(graph, twins, {}, None, bodies)


def _ends(view: Graph, graph: Graph, rebuilt: Rebuilt) -> list[End | None]:
    """Return the outcome of each symbol of the view; None for a literal in an expression."""
    if view is graph:
        return [_end(rebuilt, place, 0) for place in range(len(graph.symbols))]
    places = dict(_places(graph, rebuilt))
    ends: list[End | None] = []
    for symbol in view.symbols:
        original = original_of(symbol)
        part = symbol.op.place if type(symbol.op) is Junction else 0
        entry = None if original is None else places.get(original)
        ends.append(None if entry is None else _end(*entry, part))
    return ends


def _end(rebuilt: Rebuilt, place: int, part: int) -> End | None:
    twin, refusal = rebuilt.twins[place], rebuilt.refusals.get(place)
    if twin is None or refusal is not None:
        return None if twin is None or refusal is None else refusal.error
    type_ = twin.type.parts[part] if twin.op.kind == "control" else twin.type
    return getattr(type_, "dtype", DType.bool)  # an opaque value has none


def _places(graph: Graph, rebuilt: Rebuilt) -> Iterator[tuple[Symbol, tuple[Rebuilt, int]]]:
    """Yield the symbols of a graph and of its control flow, each with its place in a Rebuilt."""
    for symbol in graph.symbols:
        yield symbol, (rebuilt, symbol.index)
        inner = rebuilt.bodies.get(symbol.index, ())
        for body, of_body in zip(bodies_of(symbol), inner, strict=bool(inner)):
            yield from _places(body, of_body)


def _rows(changes: Iterable[Change], names: Mapping[int, str]) -> list[tuple[str, ...]]:
    """Return table rows; equal changes at one location, as a loop makes them, share a row."""
    alike: dict[tuple[str, ...], list[str]] = {}
    because: dict[tuple[str, ...], str] = {}
    for change in changes:
        symbol, ends = change.symbol, [_name(end) for end in (change.before, change.after)]
        causes = [(names[cause.index], cause.location.layered) for cause in change.causes]
        key = (symbol.location.layered, symbol.op.name, *ends, *(where for _, where in causes))
        alike.setdefault(key, []).append(names[symbol.index])
        because.setdefault(key, ", ".join(f"{name} ({where})" for name, where in causes))
    return [
        (key[0], f"{_several(names_of_row)} {key[1]}", *key[2:4], because[key] or "itself")
        for key, names_of_row in alike.items()
    ]


def _several(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} ... {names[-1]} ({len(names)})"


def _name(end: End) -> str:
    return str(end) if isinstance(end, DType) else "refused"


def _refusals(ends: Iterable[End]) -> int:
    return sum(isinstance(end, GraphirError) for end in ends)


def _json(change: Change, names: Mapping[int, str]) -> dict[str, Any]:
    symbol = change.symbol
    ends = {"before": change.before, "after": change.after}
    return {
        "symbol": names[symbol.index],
        "op": symbol.op.name,
        "location": symbol.location.to_json(),
        **{key: str(end) if isinstance(end, DType) else None for key, end in ends.items()},
        "because": [names[cause.index] for cause in change.causes],
        "errors": {key: str(e) for key, e in ends.items() if isinstance(e, GraphirError)},
    }
