"""`cast_report` and CastReport: a row for every use of every cast, the worst first; and LossRow.

After an audit a LossRow, a step of arithmetic that lost values, stands beside the rows of casts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args

from numpy.typing import NDArray

from graphir.decorators import uncollected
from graphir.display import brief
from graphir.dtypes import DTypeLike
from graphir.ir.inlining import inlined
from graphir.ir.liveness import live_mask
from graphir.location import INTERMEDIATE
from graphir.loss import LOSS_KINDS, Loss, LossKind
from graphir.passes.analysis import ItemSequence
from graphir.passes.analysis.casts.behind_casts import undone_casts
from graphir.passes.analysis.casts.conversion import CastConversion, CastWalk, Kind, StepLoss
from graphir.passes.analysis.casts.measured import (
    ExactValue,
    Measured,
    OutputError,
    Unseen,
    parts_unseen,
    unique_parts,
)
from graphir.passes.analysis.casts.rows import CastRow, Uses
from graphir.passes.analysis.casts.sites import CastSites, LayerTotals, layers, ranked
from graphir.passes.analysis.diff import GraphDiff
from graphir.passes.analysis.explanations.causes import DtypeCause, LossCause, Remedy
from graphir.passes.analysis.explanations.dtype_causes import dtype_causes, made_narrow
from graphir.passes.analysis.explanations.edits import Edit
from graphir.passes.analysis.explanations.fixes import loss_edit
from graphir.passes.analysis.explanations.loss_causes import explained_losses
from graphir.passes.analysis.policies.ignores import (
    UnusedIgnore,
    accepting_line,
    has_comments,
    unused_ignores,
)
from graphir.passes.analysis.policies.patterns import CastPattern, cast_pattern
from graphir.passes.implicit_cast import implicit_cast
from graphir.promotion import RulesLike
from graphir.public import DType, Graph, GraphError, Location, Symbol, ops, rules
from graphir.source_text import displayed_path

if TYPE_CHECKING:
    from graphir.passes.reports.sentences import Sentence


_Row = TypeVar("_Row", bound=CastRow)


class ProgramInterface(NamedTuple):
    """The facts about a recorded program that its explicit graph lacks.

    `arguments` are the inputs that are data of the program; None if all are. `step_results` are the
    inputs that opaque steps computed of data (see runtime.audit.opaque). `output_names` are the
    names of the outputs; empty if the program gives none.
    """

    arguments: tuple[Symbol, ...] | None = None
    step_results: tuple[Symbol, ...] = ()
    output_names: tuple[str, ...] = ()


class CastReport(ItemSequence[CastRow]):
    """The uses of casts in a graph, the most damaging first.

    `str()` gives a table, whose rows fit the terminal if stdout is one, `.to_json()` the data (see
    casts.schema.json). `graph` is the graph of the query and `explicit` the same graph with
    explicit casts; `view` is the explicit graph with its control flow inline, whose symbols the
    rows have. After an audit, `outputs` has the errors of the outputs, `results` their values,
    `losses` the steps of arithmetic that lost values. `unseen` has the parts of the program that
    the graph lacks and that may cast or, after an audit, hide an error. `against` is the comparison
    with other rules, or None.
    """

    def __init__(
        self, graph: Graph, explicit: Graph, rows: Sequence[CastRow], view: Graph | None = None
    ) -> None:
        self.graph, self.explicit, self.rows = graph, explicit, tuple(rows)
        self.view = explicit if view is None else view
        self._whole: CastReport | None = None
        self.of = len(rows)
        """The number of rows of the whole report, before filters such as `only`."""
        self.losses: tuple[LossRow, ...] = ()
        """The steps of arithmetic that lost values, the worst first; empty without an audit."""
        self.outputs: tuple[OutputError, ...] = ()
        self.results: tuple[NDArray[Any], ...] = ()
        self.references: tuple[ExactValue, ...] = ()
        """The values of the outputs in the reference run of an audit."""
        self.loss_causes: tuple[LossCause, ...] = ()
        """The causes of errors of outputs, the gravest first; empty without an audit."""
        self.graded: Mapping[tuple[Edit, ...], Remedy | None] = {}
        """The remedies of wide dtypes that an audit has run, by their parts; None of bad ones."""
        self.unseen: tuple[Unseen, ...] = ()
        self.against: GraphDiff | None = None
        self.kept: DType | None = None
        """The dtype that results should have, if the caller says it."""
        self.given: tuple[Unseen, ...] = ()
        """What a recording has no ops for, such as the values that it took as given."""
        self.gate: tuple[str, ...] = ()
        """The words of a gate; what they forbid is a finding, at any loss."""
        self.accepted: frozenset[tuple[str, int, str]] = frozenset()
        """The file, line and code of each comment that accepts findings; the rows lack these."""
        self.unused: tuple[UnusedIgnore, ...] = ()
        """The comments of these files that accept nothing."""
        self._layer, self._is_full, self._is_accepting = "", False, False
        self.program = ProgramInterface()

    @property
    def _items(self) -> tuple[CastRow, ...]:
        return self.rows

    def output_name(self, number: int) -> str:
        """Return the name of an output: a variable of the program, or `output0`."""
        names = self.program.output_names
        return names[number] if names else f"output{number}"

    def only(
        self,
        kind: Kind | StepLoss | None = None,
        exact: bool | None = None,
        layer: str | None = None,
        dtype: DTypeLike | None = None,
        loss: LossKind | None = None,
        matching: Iterable[str] = (),
    ) -> CastReport:
        """Return a report of the rows that satisfy all given criteria.

        `kind` is the kind of cast or of lossy step, `exact` whether every value survives, `layer` a
        layer path (its sublayers count), `dtype` the source or the target, `loss` a kind of loss.
        `matching` are words of policies, such as "to:float64": a row matches one of them at least.
        Raises GraphError for an unknown kind, dtype, loss or word.
        """
        _require_choice(kind, (*get_args(Kind), *get_args(StepLoss)), "a cast is")
        _require_choice(loss, LOSS_KINDS, "a cast can lose")
        wanted_dtype = None if dtype is None else DType(dtype)
        patterns = [cast_pattern(word) for word in matching] or [CastPattern()]

        def satisfies(row: CastRow) -> bool:
            return (
                kind in (None, row.kind)
                and exact in (None, row.exact)
                and (layer is None or _is_within(row.layer, layer))
                and (wanted_dtype is None or wanted_dtype in (row.source, row.target))
                and (loss is None or loss in row.loss.kinds)
                and any(x.matches(row.source, row.target, row.loss) for x in patterns)
            )

        rows, losses = (tuple(filter(satisfies, x)) for x in (self.rows, self.losses))
        report = self._with(rows=rows, losses=losses, _whole=self.unfiltered)
        report._layer = self._layer if layer is None else layer
        return report.in_full() if kind is not None or exact else report

    def in_full(self) -> CastReport:
        """Return the report with all rows in its tables: exact numbers, casts that change nothing.

        Without it, the tables leave those out unless `only` asks for a kind or for exact casts.
        """
        return self._with(_is_full=True)

    def keeping(self, dtype: DTypeLike) -> CastReport:
        """Return the report with the causes of all dtypes wider than this one in `sentences`.

        The causes are then also the casts and the arguments that the program asks for.
        """
        return self._with(kept=DType(dtype), _whole=None)

    def gated(self, words: Iterable[str]) -> CastReport:
        """Return the report with the words of a gate: any, or words of policies."""
        return self._with(gate=tuple(words))

    def without_accepted(self) -> CastReport:
        """Return the report without the findings that comments in the source accept.

        Such a comment is `# graphir: ignore[cast/precision]`; `accepted` has their lines.
        """
        symbols = self.view.symbols
        if not has_comments(symbols):
            return self
        used: dict[tuple[str, int], set[str]] = {}

        def stays(location: Location, code: str, line: int | None = None) -> bool:
            line = accepting_line(location, code) if line is None else line
            if line:
                used.setdefault((location.source, line), set()).add(code)
            return not line

        def rows_of(rows: Sequence[_Row]) -> tuple[_Row, ...]:
            return tuple(x for x in rows if stays(x.location, x.code, x.accepting_line))

        def seen(parts: Iterable[Unseen]) -> tuple[Unseen, ...]:
            return tuple(x for x in parts if stays(x.location, "audit/unseen"))

        new = self._with(rows=rows_of(self.rows), losses=rows_of(self.losses), _whole=None)
        causes = [x for x in self.loss_causes if stays(x.place, x.code)]
        new.loss_causes, new.unseen, new.given = tuple(causes), seen(self.unseen), seen(self.given)
        for cause in self.dtype_causes:
            stays(cause.place, cause.code)
        new.of, new._is_accepting = len(new.rows), True
        new.accepted = frozenset(
            (displayed_path(source), line, code)
            for (source, line), codes in used.items()
            for code in codes
        )
        new.unused = tuple(unused_ignores(symbols, used))
        return new

    def causes(self) -> CastReport:
        """Return a report of the causes only: the first cast of each cascade."""
        rows = tuple(row for row in self if row.cause is None)
        return self._with(rows=rows, _whole=self.unfiltered)

    def in_order(self) -> CastReport:
        """Return a report with the rows in the order of the graph."""
        return self._with(rows=tuple(sorted(self, key=attrgetter("place"))))

    def following(self) -> Mapping[int, Sequence[CastRow]]:
        """Return the consequences of each cause, keyed by the cause's `place`."""
        by_cause: dict[int, list[CastRow]] = {}
        for row in self:
            if row.cause is not None:
                by_cause.setdefault(row.cause.place, []).append(row)
        return by_cause

    @cached_property
    def sites(self) -> CastSites:
        """The rows and the losses merged by location and conversion, as all formats show them."""
        rows = [*self.rows, *self.losses]
        return CastSites(sorted(rows, key=attrgetter("rank")) if self.losses else rows)

    @cached_property
    def lines(self) -> CastSites:
        """The sites of tables: without what `in_full` adds, equal ones of a line merged."""
        rows = [x for x in self.sites.rows if self._is_full or not x.is_trivial]
        return CastSites(rows, by_line=True)

    @cached_property
    def dtype_causes(self) -> list[DtypeCause]:
        """The steps by which values have wider dtypes than the data, those of outputs first."""
        graded, causes = self.graded, self._inferred
        if self._is_accepting:
            causes = [x for x in causes if not accepting_line(x.place, x.code)]
        return [replace(x, fix=x.fix and graded.get(x.fix.parts, x.fix)) for x in causes]

    @cached_property
    def _inferred(self) -> list[DtypeCause]:
        """The causes as the graph alone has them; reports of one graph share them."""
        graph = inlined(self.graph)
        return dtype_causes(graph, self._data_of(graph), self.kept)

    @cached_property
    def undone_casts(self) -> Mapping[int, Symbol]:
        """The casts of the explicit graph that a promotion undoes (see behind_casts)."""
        return undone_casts(self.explicit)

    def _data_of(self, graph: Graph) -> list[Symbol]:
        """Return the inputs of a graph that are data of the program, and not its parameters.

        Without any, the data are the values that the program makes in dtypes narrower than its own.
        """
        arguments, step_results, _ = self.program
        if arguments is None:
            names = zip(graph.input_names, graph.inputs, strict=True)
            data = [x for name, x in names if name not in graph.defaults]
        else:
            wanted = {x.index for x in (*arguments, *step_results)}
            pairs = zip(self.explicit.inputs, graph.inputs, strict=False)  # an audit adds draws
            data = [x for twin, x in pairs if twin.index in wanted]
        return data or made_narrow(graph)

    @cached_property
    def layers(self) -> list[LayerTotals]:
        """The totals of casts, bytes and losses by layer, or by function without layers.

        Those of the layer that `only` selects, and of its parts.
        """
        totals = layers(self.unfiltered)
        return [x for x in totals if _is_within(x.layer, self._layer)] if self._layer else totals

    @property
    def unfiltered(self) -> CastReport:
        """The report with all rows."""
        return self if self._whole is None else self._whole

    @cached_property
    def answers(self) -> list[Sentence]:
        """What the whole report explains, the gravest answer first."""
        from graphir.passes.reports.sentences import answers_of

        whole = self.unfiltered
        return answers_of(self) if whole is self else whole.answers

    @property
    def sentences(self) -> list[str]:
        """The sentences that explain wide results, wrapped integers and large errors."""
        from graphir.passes.reports.sentences import sentences

        return sentences(self.unfiltered)

    @property
    def hidden(self) -> bool:
        """Whether a part of the program that was not seen may hide an error or a cast."""
        return any(part.hides or part.casts for part in self.unseen)

    @cached_property
    def audited(self) -> bool:
        """Whether an audit measured any of the casts or found losses."""
        return bool(self.losses) or any(row.measured is not None for row in self)

    def of_program(self, program: ProgramInterface, unseen: Iterable[Unseen] = ()) -> CastReport:
        """Return the report of a recorded program, whose recording lacks the `unseen` parts."""
        parts = tuple(unique_parts([*unseen, *self.unseen]))
        return self._with(program=program, unseen=parts)

    def of_graph(self, graph: Graph, program: Graph) -> CastReport:
        """Return the report of `graph`, with the unseen parts of the `program` that it is from."""
        parts = tuple(unique_parts([*self.unseen, *parts_unseen(program)]))
        return self._with(graph=graph, unseen=parts)

    def measured(
        self,
        measures: Mapping[int, Measured],
        outputs: Sequence[OutputError],
        results: Sequence[NDArray[Any]] = (),
        unseen: Sequence[Unseen] = (),
        losses: Mapping[int, StepLoss] = MappingProxyType({}),
        causes: Sequence[LossCause] = (),
    ) -> CastReport:
        """Return the report with the measurements of a run.

        `measures` is keyed by the index of each cast in the explicit graph, and of each step of
        `losses`. The result sorts the rows by their share in the output errors, after those of
        `causes` (see `ranked`).
        """
        has_shares = not outputs or any(error.shares is not None for error in outputs)
        symbols, uses = self.explicit.symbols, Uses(self.explicit, ())
        new = self._with(
            losses=tuple(
                LossRow(kind, symbols[place], len(self) + i, measures[place], uses)
                for i, (place, kind) in enumerate(losses.items())
            ),
            outputs=tuple(outputs),
            results=tuple(results),
            unseen=tuple(unique_parts([*unseen, *self.unseen])),
            loss_causes=tuple(causes),
        )
        for row in (*new.rows, *new.losses):
            place = row.symbol.index
            parts = [(error.shares or {}).get(place, 0.0) for error in outputs]
            numbers = tuple(part for part in parts if part is not None)
            row.shares = numbers if has_shares and len(numbers) == len(parts) else None
            row.measured = measures.get(place)
        new._find_vanished()
        ranks = ranked(CastSites([*new.rows, *new.losses]), causes, new.dtype_causes)
        for row in (*new.rows, *new.losses):
            row.rank = ranks[row.place]
        by_rank = attrgetter("rank")
        new = new._with(
            rows=tuple(sorted(new.rows, key=by_rank)), losses=tuple(sorted(new.losses, key=by_rank))
        )
        return new._with(loss_causes=explained_losses(new))

    def with_fixes(
        self, causes: Sequence[LossCause], graded: Mapping[tuple[Edit, ...], Remedy | None]
    ) -> CastReport:
        """Return the report with the fixes that an audit has run."""
        return self._with(loss_causes=tuple(causes), graded=graded)

    def _find_vanished(self) -> None:
        """Set `vanished` of the rows whose changes reach outputs, none of which differs."""
        pairs = [*zip(self.explicit.outputs, self.outputs, strict=False)]
        wrong = [x for x, error in pairs if error.differing or not error.is_known]
        reaching = live_mask(self.explicit, [x for x, _ in pairs])
        visible = live_mask(self.explicit, wrong)
        for row in (*self.rows, *self.losses):
            is_changed = row.measured is not None and row.measured.changed
            place = row.symbol.index
            row.vanished = bool(is_changed and reaching[place] and not visible[place])

    def compared(self, other: RulesLike, is_gate: bool = False) -> CastReport:
        """Return the report with `.against`, the comparison of the graph with other rules.

        The comparison has no edits of its own if the report has some, if it keeps a dtype, or if it
        `is_gate`: a gate has edits that it does not forbid.
        """
        diff = GraphDiff(self.graph, self.graph.rules, rules(other))
        has_edits = any(answer.edits for answer in self.answers)
        diff.advises = not (has_edits or is_gate or self.unfiltered.kept)
        return self._with(against=diff)

    def to_json(self) -> str:
        """Return the report as a JSON document."""
        from graphir.passes.reports.json_ import report_json

        return report_json(self)

    def __str__(self) -> str:
        from graphir.passes.reports.text import terminal_text

        return terminal_text(self)

    def __repr__(self) -> str:
        return brief(str(self))

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks."""
        from graphir.passes.reports.html import report_fragment

        return report_fragment(self)

    def _with(self, **changes: Any) -> CastReport:
        new = copy(self)
        for name, attribute in vars(CastReport).items():
            is_shared = name in _OF_GRAPH and changes.keys().isdisjoint(_READ_BY_CAUSES)
            if isinstance(attribute, cached_property) and not is_shared:
                vars(new).pop(name, None)
        vars(new).update(changes)
        return new


_OF_GRAPH = {"_inferred", "undone_casts"}
"""The cached attributes that reports of one graph share."""
_READ_BY_CAUSES = {"graph", "explicit", "kept", "program"}
"""The attributes of a report from which these follow."""


@uncollected
def cast_report(graph: Graph) -> CastReport:
    """Return a CastReport with a row for every use of every cast in a graph, the worst first.

    Runs `implicit_cast` first if the graph's casts are implicit. A Python number that changes as it
    takes a dtype has a row of kind "literal". A lowered graph has rows of kind "legalization"; a
    graph with implicit casts has none, even if it says how a kernel of its library computes.
    """
    explicit = implicit_cast(graph)
    return _report(graph, explicit, graph is not explicit)


def report_with_kernels(
    graph: Graph, kept: Sequence[Symbol] = ()
) -> tuple[CastReport, Sequence[Symbol]]:
    """Return a `cast_report` for an audit, and the twins of `kept` symbols in its explicit graph.

    The report also has the casts by which a library's kernels round.
    """
    explicit, twins, is_new = explicit_with(graph, kept)
    return _report(graph, explicit, is_new, inside_kernels=True), twins


def explicit_with(graph: Graph, kept: Sequence[Symbol]) -> tuple[Graph, Sequence[Symbol], bool]:
    """Return a graph with explicit casts, the twins of `kept` symbols, and if the casts are new."""
    extended, twins, count = graph, (), len(graph.outputs)
    if kept:
        extended = graph.with_outputs((*graph.outputs, *kept))
    explicit = implicit_cast(extended)
    if kept:
        twins = explicit.outputs[count:]
        explicit.set_interface(outputs=explicit.outputs[:count])
    return explicit, twins, extended is not explicit


def _report(
    graph: Graph, explicit: Graph, is_implicit: bool, inside_kernels: bool = False
) -> CastReport:
    """Return the report of a graph; an explicit graph does not distinguish literals."""
    view = inlined(explicit)
    rows: list[CastRow] = []
    uses = Uses(view, rows)
    walk = CastWalk(view)
    for conversion, location, symbol, _ in walk.casts(view.symbols):
        is_inside = is_implicit and conversion.kind == "legalization"
        is_inside = is_inside and not (inside_kernels and not conversion.loss.exact)
        if not is_inside and not _is_same(graph, conversion):
            rows.append(CastRow(conversion, location, symbol, len(rows), uses))
    if is_implicit:
        before = inlined(graph)
        both = ([x for x in g.symbols if x.op is ops.constant] for g in (before, view))
        constants = {x.index: new for x, new in zip(*both, strict=True)}  # as passes rewrite them
        for conversion, location, user, position in CastWalk(before).literals(before.symbols):
            constant = constants[user.args[position].index]
            rows.append(CastRow(conversion, location, constant, len(rows), uses))
    worst_first = sorted(rows, key=attrgetter("conversion.damage"), reverse=True)
    report = CastReport(graph, explicit, worst_first, view)
    report.unseen = tuple(parts_unseen(explicit))
    return report


def _is_same(graph: Graph, conversion: CastConversion) -> bool:
    """Whether a value only stops or starts being weak, and keeps the dtype in which it is stored.

    A loop of JAX takes a strong carry where its body returns a weak one.
    """
    dtypes = conversion.source, conversion.target
    if not any(dtype.weak for dtype in dtypes) or conversion.operand != INTERMEDIATE:
        return False
    concrete = graph.rules.concrete_dtype
    return concrete(dtypes[0]) is concrete(dtypes[1])


def _is_within(layer: str, whole: str) -> bool:
    return f"{layer}/".startswith(f"{whole}/")


def _require_choice(value: str | None, choices: Sequence[str], what: str) -> None:
    if value is not None and value not in choices:
        raise GraphError(f"{what} {', '.join(choices)}", got=f"{value!r}")


# -- losses of arithmetic

_KINDS: Mapping[StepLoss, LossKind] = {
    "wrap": "range",
    "overflow": "range",
    "underflow": "underflow",
    "invalid": "special",
}
"""The kinds of losses that are no loss of precision."""


class LossRow(CastRow):
    """A step of arithmetic that lost values: `symbol` is the step, `measured` has its loss.

    The row has the properties of a cast row. Its operand is the result of the op, and its source
    and target are the dtype of the result.
    """

    def __init__(
        self, kind: StepLoss, symbol: Symbol, place: int, measured: Measured, uses: Uses
    ) -> None:
        dtype, loss = symbol.graph.storage_dtype(symbol), Loss((_KINDS.get(kind, "precision"),))
        conversion = CastConversion(
            kind, symbol.op.name, "result", kind, dtype, dtype, (dtype,), loss
        )
        super().__init__(conversion, symbol.location, symbol, place, uses)
        self.measured = measured

    @property
    def code(self) -> str:
        """The code of the finding: `loss/wrap`."""
        return f"loss/{self.kind}"

    @cached_property
    def edit(self) -> Edit | None:
        """The edit that keeps the values; None if the source does not say."""
        return loss_edit(self)
