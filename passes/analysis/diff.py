"""`diff`: the differences between two rule sets, in their tables or in the dtypes of a graph."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, overload

from graphir.decorators import uncollected
from graphir.display import brief, printable
from graphir.ir.inlining import Junction, inlined, original_of
from graphir.passes.analysis import ItemSequence
from graphir.passes.analysis.rebuild import Literals, Rebuilt, rebuilt
from graphir.passes.rewriter import bodies_of
from graphir.promotion import RulesLike
from graphir.promotion import rules as rules_named
from graphir.public import DType, Graph, GraphError, GraphirError, Op, PromotionRules, Symbol, ops
from graphir.rule_reports.facts import OF_OPS, facts, infer_op
from graphir.rule_reports.tables import VERSION, aligned, cell_name
from graphir.text.printer import names_of

if TYPE_CHECKING:
    from graphir.passes.reports.sentences import Sentence


class DtypePair(NamedTuple):
    """A pair of dtypes that two rule sets promote differently; None is a refusal."""

    lhs: DType
    rhs: DType
    before: DType | None
    after: DType | None


class Result(NamedTuple):
    """An op on arrays of one dtype whose result dtype differs; None is a refusal."""

    op: str
    dtype: DType
    before: DType | None
    after: DType | None


class RulesDiff(ItemSequence[DtypePair]):
    """The table cells in which two rule sets differ, over the dtypes that both have.

    `str()` gives a table. `pairs` counts all pairs of dtypes, `both_refuse` the pairs that both
    rule sets refuse. `facts` are the questions besides the join with different answers, each
    with both answers. `ops` are the ops on arrays of one dtype whose result dtypes differ.
    """

    def __init__(self, before: PromotionRules, after: PromotionRules) -> None:
        self.before, self.after = before, after
        self.dtypes = [d for d in DType if d in before.dtypes and d in after.dtypes]
        cells = [
            DtypePair(a, b, before.answer(a, b), after.answer(a, b))
            for a in self.dtypes
            for b in self.dtypes
        ]
        self.pairs = len(cells)
        self.both_refuse = sum(cell.before is None and cell.after is None for cell in cells)
        self.cells = tuple(cell for cell in cells if cell.before is not cell.after)

    @property
    def _items(self) -> tuple[DtypePair, ...]:
        return self.cells

    def only(self, rules_: PromotionRules) -> list[DType]:
        """Return the dtypes that `rules_`, one of the two rule sets, has and the other lacks."""
        return [dtype for dtype in DType if dtype in rules_.dtypes and dtype not in self.dtypes]

    @cached_property
    def facts(self) -> tuple[tuple[str, str, str], ...]:
        """The questions besides the join with different answers: (question, before, after)."""
        after = dict(facts(self.after, self.dtypes))
        return tuple(
            (subject, answer, after[subject])
            for subject, answer in facts(self.before, self.dtypes)
            if after.get(subject, answer) != answer
        )

    @cached_property
    def ops(self) -> tuple[Result, ...]:
        """The ops on arrays of one dtype, without attributes, whose result dtypes differ."""
        results = [
            Result(op.name, dtype, _result(self.before, op, dtype), _result(self.after, op, dtype))
            for op in ops.CATALOGUE.values()
            if op.operands
            for dtype in self.dtypes
        ]
        return tuple(result for result in results if result.before is not result.after)

    def to_json(self) -> str:
        """Return the cells, facts and ops as a JSON document; null is a refusal."""
        document: dict[str, Any] = {"version": VERSION}
        document |= {"before": self.before.name, "after": self.after.name}
        document |= {"pairs": self.pairs, "both_refuse": self.both_refuse}
        document["only_before"] = [str(dtype) for dtype in self.only(self.before)]
        document["only_after"] = [str(dtype) for dtype in self.only(self.after)]
        document["cells"] = _objects(DtypePair._fields, self)
        document["facts"] = _objects(("question", "before", "after"), self.facts)
        document["ops"] = _objects(Result._fields, self.ops)
        return json.dumps(document, indent=2)

    def __str__(self) -> str:
        names = self.before.name, self.after.name
        lines = self.headlines()
        if self.cells:
            lines += ["", *aligned([("lhs", "rhs", *names), *self.pair_rows()])]
        besides = self.facts_besides
        if besides:
            lines += ["", "besides the join:"]
        for subject, *answers in besides:
            answer_lines = aligned(list(zip(names, answers, strict=True)))
            lines += [f"  {subject}", *(f"    {line}" for line in answer_lines)]
        if self.ops:
            table = aligned([("of", *names, "ops"), *self.op_rows()])
            lines += ["", "op by op, on arrays of one dtype:", *table]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return brief(str(self))

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the headline, and the tables in folded sections."""
        from graphir.passes.reports.html import rules_difference_fragment

        return rules_difference_fragment(self)

    def pair_rows(self) -> list[tuple[str, ...]]:
        """Return table rows of lhs, rhs, before and after.

        Cells with one change and equal lists of partners share a row.
        """
        return _group(self.cells)

    def op_rows(self) -> list[tuple[str, ...]]:
        """Return table rows of dtypes, before, after and ops; equal changes share a row."""
        return _by_op(self.ops)

    @property
    def facts_besides(self) -> list[tuple[str, str, str]]:
        """The `facts` without those about the results of ops, which `op_rows` has."""
        return [fact for fact in self.facts if fact[0] not in OF_OPS]

    def headlines(self) -> list[str]:
        """Return the line that counts differences, and lines of the dtypes that one set lacks."""
        names = self.before.name, self.after.name
        lost_cells = sum(cell.after is None for cell in self)
        new = sum(cell.before is None for cell in self)
        parts = [
            f"{len(self) - lost_cells - new} have another dtype",
            f"{lost_cells} are refused by {names[1]} alone",
            f"{new} by {names[0]} alone",
        ]
        head = (
            f"{names[0]} and {names[1]} differ in {len(self)} of {self.pairs} pairs of the dtypes "
            f"that both have: {', '.join(parts)}; both refuse {self.both_refuse}"
        )
        alone = [
            (name, self.only(x)) for name, x in zip(names, (self.before, self.after), strict=True)
        ]
        alone_lines = (f"only {name} has {' '.join(map(str, x))}" for name, x in alone if x)
        return [head, *alone_lines]


def _objects(
    names: Iterable[str], rows: Iterable[Iterable[DType | str | None]]
) -> list[dict[str, str | None]]:
    """Return rows as objects of JSON, whose values are texts; null is a refusal."""
    texts = ([None if x is None else str(x) for x in row] for row in rows)
    return [dict(zip(names, row, strict=True)) for row in texts]


def _group(cells: Sequence[DtypePair]) -> list[tuple[str, ...]]:
    """Return table rows; cells with one change and equal lists of partners share a row.

    A pair that changes alike in both operand orders appears once.
    """
    ends_by_pair = {cell[:2]: cell[2:] for cell in cells}
    partners: dict[tuple[DType, tuple[DType | None, ...]], list[DType]] = {}
    pairs: set[tuple[DType, DType]] = set()
    for a, b, *ends in cells:
        if (b, a) not in pairs or ends_by_pair.get((b, a)) != tuple(ends):
            pairs.add((a, b))
            partners.setdefault((a, tuple(ends)), []).append(b)
    rows: dict[tuple[Any, ...], list[DType]] = {}
    for (a, ends), others in partners.items():
        rows.setdefault((ends, *others), []).append(a)
    return [(_names(lhs), _names(rhs), *map(cell_name, ends)) for (ends, *rhs), lhs in rows.items()]


def _result(rules: PromotionRules, op: Op, dtype: DType) -> DType | None:
    inference = infer_op(rules, op, *(dtype,) * len(op.operands))
    return None if inference is None else inference.type.dtype


def _by_op(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """Return table rows; ops with the same change on the same dtypes share a row.

    "its own" stands for the operands' dtype, for ops with several result dtypes.
    """
    ends_by_side: dict[tuple[str, int], set[DType | None]] = {}
    for op, _, *ends in results:
        for side, end in enumerate(ends):
            ends_by_side.setdefault((op, side), {None}).add(end)
    dtypes_by_change: dict[tuple[str, ...], list[DType]] = {}
    for op, dtype, *ends in results:
        names_told = [
            "its own" if end is dtype and len(ends_by_side[op, side]) > 2 else cell_name(end)
            for side, end in enumerate(ends)
        ]
        dtypes_by_change.setdefault((op, *names_told), []).append(dtype)
    rows: dict[tuple[str, ...], list[str]] = {}
    for (op, *names_told), dtypes in dtypes_by_change.items():
        rows.setdefault((_names(dtypes), *names_told), []).append(op)
    return [(*row, " ".join(names)) for row, names in rows.items()]


def _names(dtypes: Iterable[DType]) -> str:
    return " ".join(dtype.short for dtype in dtypes)


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


class GraphDiff(ItemSequence[Change]):
    """The symbols of a graph that change under another rule set, as a sequence of Change.

    `str()` lists first causes, then their consequences. `both_refused` are the symbols that both
    rule sets refuse; they are not changes. `broken` is the error of outputs that differ from the
    graph's `out_types` under the second rule set, or None. `view` is the graph with its control
    flow inline, whose symbols the changes have.
    """

    def __init__(self, graph: Graph, before: PromotionRules, after: PromotionRules) -> None:
        self.graph, self.before, self.after = graph, before, after
        self.advises = True
        """Whether sentences have edits: not in a report whose answers or gates ask for others."""
        self.view = inlined(graph)
        changes, self.broken = _compare(graph, self.view, before, after)
        self.changes = tuple(change for change in changes if len(change.errors) < 2)
        self.both_refused = tuple(change for change in changes if len(change.errors) == 2)

    @property
    def _items(self) -> tuple[Change, ...]:
        return self.changes

    @property
    def causes(self) -> tuple[Change, ...]:
        """The first causes: changes without a changed operand."""
        return tuple(change for change in self if not change.causes)

    @property
    def _causes_first(self) -> list[Change]:
        return sorted(self, key=lambda change: bool(change.causes))

    @property
    def refused(self) -> tuple[Change, ...]:
        """The changes in which one of the rule sets raises."""
        return tuple(change for change in self if change.errors)

    @property
    def answers(self) -> list[Sentence]:
        """The sentences that explain why outputs have other dtypes, with what to write instead."""
        from graphir.passes.reports.sentences import differences

        return differences(self)

    @property
    def sentences(self) -> list[str]:
        """The answers as texts."""
        return list(map(str, self.answers))

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
        head = ("where", "symbol", self.before.name, self.after.name, "because of")
        return [head, *_rows(self._causes_first, names_of(self.view))]

    def __str__(self) -> str:
        rows = self.table()
        table = aligned(rows) if len(rows) > 1 else []
        sentences = (line for answer in self.answers for line in answer.lines)
        return "\n".join([self.headline(), *sentences, *table, *self.errors()])

    def __repr__(self) -> str:
        return brief(str(self))

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks."""
        from graphir.passes.reports.html import difference_fragment

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
        changes = self._causes_first
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


@overload
def diff(subject: Graph, before: RulesLike, after: RulesLike | None = None) -> GraphDiff: ...
@overload
def diff(subject: RulesLike, before: RulesLike, after: None = None) -> RulesDiff: ...
def diff(
    subject: Graph | RulesLike, before: RulesLike, after: RulesLike | None = None
) -> GraphDiff | RulesDiff:
    """Compare two rule sets: `diff("max", "jax")`, or a graph under both: `diff(g, "max", "jax")`.

    For a graph, the GraphDiff has every symbol whose dtype differs when the program is rebuilt
    under either rule set; `diff(graph, "jax")` compares with the graph's own rules. An array that
    the rules converted as it entered the graph (`max_strict`) counts with its converted dtype.
    Raises GraphError for an explicit graph, and for three rule sets.
    """
    if isinstance(subject, Graph):
        rules = (subject.rules, before) if after is None else (before, after)
        return GraphDiff(subject, rules_named(rules[0]), rules_named(rules[1]))
    if after is not None:
        raise GraphError("diff compares two rule sets, or one graph under two", got="three")
    return RulesDiff(rules_named(subject), rules_named(before))
