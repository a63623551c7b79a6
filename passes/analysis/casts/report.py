"""The report of casts: every use of every cast, the worst first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from operator import attrgetter
from typing import Any, get_args, overload

from numpy.typing import NDArray

from graphir import DType, Graph, GraphError, PromotionRules, Symbol, ops, rules
from graphir.dtypes import DTypeLike
from graphir.gc_pause import uncollected
from graphir.loss import LOSS_KINDS, LossKind
from passes.analysis.casts.causes import Uses
from passes.analysis.casts.conversion import Kind
from passes.analysis.casts.measured import Measured, OutputError, Unseen
from passes.analysis.casts.rows import CastRow
from passes.analysis.casts.sites import CastSites
from passes.analysis.casts.walk import CastWalk
from passes.analysis.graph_diff import GraphDiff
from passes.implicit_cast import implicit_cast


class CastReport(Sequence[CastRow]):
    """The uses of casts in a graph, the most damaging first.

    `str()` is a table, `.to_json()` the data (see casts.schema.json). `graph` is what was asked
    about and `explicit` the same with its casts; `outputs` and `results` are what a run saw,
    `unseen` what it did not, `against` what would change under other rules.
    """

    def __init__(self, graph: Graph, explicit: Graph, rows: Sequence[CastRow]) -> None:
        self.graph, self.explicit, self.rows = graph, explicit, tuple(rows)
        self.of = len(rows)
        """The number of rows from which these were chosen."""
        self.outputs: tuple[OutputError, ...] = ()
        self.results: tuple[NDArray[Any], ...] = ()
        self.unseen: tuple[Unseen, ...] = ()
        self.against: GraphDiff | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> CastRow: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[CastRow]: ...
    def __getitem__(self, at: int | slice) -> CastRow | Sequence[CastRow]:
        return self.rows[at]

    def __iter__(self) -> Iterator[CastRow]:
        return iter(self.rows)

    def only(
        self,
        kind: Kind | None = None,
        exact: bool | None = None,
        layer: str | None = None,
        dtype: DTypeLike | None = None,
        loss: LossKind | None = None,
    ) -> CastReport:
        """The rows of one kind, exact or not, in a layer or its parts, from or to a dtype, by loss.

        GraphError for a kind, a dtype or a loss that there is none of.
        """
        _require_choice(kind, get_args(Kind), "a cast is")
        _require_choice(loss, LOSS_KINDS, "a cast can lose")
        wanted_dtype = None if dtype is None else DType(dtype)
        rows = [
            row
            for row in self
            if kind in (None, row.kind)
            and exact in (None, row.exact)
            and (layer is None or f"{row.layer}/".startswith(f"{layer}/"))
            and (wanted_dtype is None or wanted_dtype in (row.source, row.target))
            and (loss is None or loss in row.loss.kinds)
        ]
        return self._with(rows=tuple(rows))

    def causes(self) -> CastReport:
        """The rows that are causes: what is left when each cascade is told by its first cast."""
        return self._with(rows=tuple(row for row in self if row.cause is None))

    def in_order(self) -> CastReport:
        """The rows in the order of the graph."""
        return self._with(rows=tuple(sorted(self, key=attrgetter("place"))))

    def following(self) -> Mapping[int, Sequence[CastRow]]:
        """The rows that follow from each cause, by its place."""
        by_cause: dict[int, list[CastRow]] = {}
        for row in self:
            if row.cause is not None:
                by_cause.setdefault(row.cause.place, []).append(row)
        return by_cause

    @cached_property
    def sites(self) -> CastSites:
        """The rows merged by place, as every format writes them."""
        return CastSites(self.rows)

    @property
    def hidden(self) -> bool:
        """Whether an error may be hidden behind a step that a run did not see."""
        return any(step.hides for step in self.unseen)

    @property
    def audited(self) -> bool:
        """Whether a run saw any of the casts."""
        return any(row.measured is not None for row in self)

    def measured(
        self,
        measures: Mapping[int, Measured],
        outputs: Sequence[OutputError],
        results: Sequence[NDArray[Any]] = (),
        unseen: Sequence[Unseen] = (),
    ) -> CastReport:
        """The report with what a run saw, by the place of each cast in the explicit graph.

        The rows are in the order of what they are responsible for.
        """
        has_shares = not outputs or any(error.shares is not None for error in outputs)
        shares: dict[int, tuple[float, ...] | None] = {}
        for row in self:
            place = row.symbol.index
            if place not in shares:
                parts = tuple((error.shares or {}).get(place, 0.0) for error in outputs)
                shares[place] = _known_shares(parts) if has_shares else None
            row.measured, row.shares = measures.get(place), shares[place]
        rank: dict[int, float] = {}
        for site in self.sites:
            rank.update(dict.fromkeys((row.place for row in site.rows), site.share or 0.0))
        rows = sorted(self, key=lambda row: (rank[row.place], row.damage), reverse=True)
        return self._with(
            rows=tuple(rows), outputs=tuple(outputs), results=tuple(results), unseen=tuple(unseen)
        )

    def compared(self, other: str | PromotionRules) -> CastReport:
        """The report with what would change in the graph under other rules, as `.against`."""
        return self._with(against=GraphDiff(self.graph, self.graph.rules, rules(other)))

    def to_json(self) -> str:
        """The report as a JSON document."""
        from passes.reports.json_ import report_json

        return report_json(self)

    def __str__(self) -> str:
        from passes.reports.text import report_text

        return report_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        from passes.reports.notebook import report_fragment

        return report_fragment(self)

    def _with(self, **changes: Any) -> CastReport:
        new = copy(self)
        vars(new).pop("sites", None)
        vars(new).update(changes)
        return new


def _known_shares(parts: tuple[float | None, ...]) -> tuple[float, ...] | None:
    """The shares of a cast in all outputs; None if one of them is not known."""
    parts_known = tuple(part for part in parts if part is not None)
    return parts_known if len(parts_known) == len(parts) else None


@uncollected
def cast_report(graph: Graph) -> CastReport:
    """Every use of every cast in a graph, the worst first; what is implicit is made explicit first.

    Numbers that the program writes and that their dtype rounds have rows too.
    """
    explicit = implicit_cast(graph)
    rows: list[CastRow] = []
    uses = Uses(explicit, rows)
    walk = CastWalk(explicit)
    for conversion, location, symbol, _ in walk.casts(explicit.symbols):
        rows.append(CastRow(conversion, location, symbol, len(rows), uses))
    if graph is not explicit:  # in an explicit graph they are constants like others
        constants = _rewritten_constants(graph, explicit)
        for conversion, location, user, position in CastWalk(graph).literals(graph.symbols):
            constant = constants[user.args[position].index]
            rows.append(CastRow(conversion, location, constant, len(rows), uses))
    worst_first = sorted(rows, key=attrgetter("conversion.damage"), reverse=True)
    return CastReport(graph, explicit, worst_first)


def _require_choice(value: Any, choices: Sequence[str], what: str) -> None:
    if value is not None and value not in choices:
        raise GraphError(f"{what} {', '.join(choices)}, not {value!r}")


def _rewritten_constants(graph: Graph, explicit: Graph) -> Mapping[int, Symbol]:
    """The constants of the explicit graph, by the places that they have in the graph."""
    before = [x.index for x in graph.symbols if x.op is ops.constant]
    after = [x for x in explicit.symbols if x.op is ops.constant]
    return dict(zip(before, after, strict=True))
