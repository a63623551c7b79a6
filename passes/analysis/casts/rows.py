"""CastRow: one use of one cast, with its provenance, loss, fix, measurements, and other answers.

Uses attributes each cast to its user, and to the earlier cast that caused it, if any. A cascade
starts where an op casts an operand; its result then has a wider dtype, and later ops cast their
operands to that dtype in turn. One walk over the graph passes, from operand to result, the row of
the cast that gave a symbol its dtype.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from graphir.drawing.loss_levels import level
from graphir.ir.inlining import runs_of
from graphir.ir.operands import number_of
from graphir.location import INTERMEDIATE, LEGALIZE
from graphir.loss import Loss
from graphir.ops.attribute_record import AttributeRecord
from graphir.ops.dims import Size
from graphir.passes.analysis.casts.behind_casts import demanding
from graphir.passes.analysis.casts.conversion import CastConversion, Kind, StepLoss
from graphir.passes.analysis.casts.measured import Measured
from graphir.passes.analysis.explanations.dtype_walk import ProgramFacts
from graphir.passes.analysis.explanations.edits import Edit
from graphir.passes.analysis.explanations.fixes import row_edit
from graphir.passes.analysis.expressions import Expression, expression
from graphir.passes.analysis.policies.ignores import accepting_line
from graphir.public import (
    DType,
    Graph,
    GraphirError,
    Location,
    Op,
    PromotionRules,
    Symbol,
    TensorType,
    ops,
    rule_sets,
)
from graphir.rule_reports.explanation import reason


class CastRow:
    """One use of one cast: `operand` of `op` at `location`, from `source` to `target`.

    `symbol` is the cast (or the constant that it was folded into) in the explicit graph. `place` is
    the row's position in graph order. After an audit (see runtime.audit), `measured` has the
    effect of the cast on the run's values, and `shares` the part of each output's error that the
    cast explains (None if unknown). All uses of one cast have equal `measured` and `shares`.
    """

    # Class attributes as defaults: reports have many rows, and most rows lack measurements.
    measured: Measured | None = None
    shares: tuple[float, ...] | None = ()
    vanished: bool = False
    """Whether the run changed elements on the way to outputs, none of which differs."""
    rank: int = 0
    """The position of the row's site in an audited report."""

    def __init__(
        self, conversion: CastConversion, location: Location, symbol: Symbol, place: int, uses: Uses
    ) -> None:
        self.conversion = conversion
        self.location = location
        self.symbol = symbol
        self.place = place
        self.uses = uses

    @property
    def kind(self) -> Kind | StepLoss:
        """The kind: who asked for the cast (an op, a literal, the user, `legalize`, a store)."""
        return self.conversion.kind

    @property
    def op(self) -> str:
        """The name of the op that uses the cast."""
        return self.conversion.op

    @property
    def operand(self) -> str:
        """The name of the operand that is cast; "result" for a cast of the op's result."""
        return self.conversion.operand

    @property
    def rule(self) -> str:
        """The rule set that asks for the cast; else "cast", "legalize" or "assign"."""
        return self.conversion.rule

    @property
    def source(self) -> DType:
        """The dtype before the cast."""
        return self.conversion.source

    @property
    def target(self) -> DType:
        """The dtype after the cast."""
        return self.conversion.target

    @property
    def path(self) -> tuple[DType, ...]:
        """The path up the rule set's lattice; (source, target) without a lattice path."""
        return self.conversion.path

    @property
    def damage(self) -> float:
        """The estimated relative error of the cast; 0.0 for an exact cast."""
        return self.conversion.damage

    @property
    def share(self) -> float | None:
        """The largest part of an output's error that the cast explains; None if unknown."""
        return None if self.shares is None else max(map(abs, self.shares), default=0.0)

    @property
    def user(self) -> Symbol | None:
        """The symbol of the explicit graph that uses the cast here; None if unknown."""
        return self.uses.of(self).user

    @property
    def position(self) -> int:
        """The position of the operand among those of its user."""
        return self.uses.of(self).position

    @property
    def operands(self) -> Sequence[Symbol]:
        """The operands of the user before its inserted casts; () if the user is unknown."""
        return () if self.user is None else self.uses.operands(self.user)

    @property
    def cause(self) -> CastRow | None:
        """The row of the earlier cast that caused this cast; None for a first cause."""
        return self.uses.of(self).cause

    @property
    def demanding(self) -> Symbol | None:
        """The op in a graph of control flow that gives the target; None for another cast."""
        user = self.user if self.op in ops.CONTROL else None
        return None if user is None else demanding(user, self.target)

    @property
    def loss(self) -> Loss:
        """The possible loss by the dtypes; for a known number, its actual loss."""
        return self.conversion.loss

    @property
    def exact(self) -> bool:
        """Whether the target represents every value of the source."""
        return self.conversion.loss.exact

    @property
    def code(self) -> str:
        """The code of the finding, as in SARIF and in comments: `cast/precision`."""
        return f"cast/{level(self.loss, self.source, self.target)}"

    @property
    def accepting_line(self) -> int:
        """The line whose comment accepts the cast, as `# graphir: ignore[cast/precision]`; or 0."""
        below, location = 0, self.location
        if location.end_line > location.line and (expression := self.expression) is not None:
            below = expression.text.count("\n", 0, self.span[0])
        return accepting_line(location, self.code, below)

    @property
    def witness(self) -> complex | None:
        """The simplest value that the cast changes (a known number: itself); None if exact."""
        return self.conversion.loss.witness

    @property
    def layer(self) -> str:
        """The layer path of the graph at the cast, such as `encoder/attention`."""
        return self.location.layer

    @property
    def is_trivial(self) -> bool:
        """Whether nothing is converted: a number that the dtype holds, a cast to its own dtype."""
        return self.exact and (self.is_number or self.source is self.target)

    @property
    def is_number(self) -> bool:
        """Whether a Python number takes a dtype, other than that of a loop or of a branch."""
        is_stored = self.kind == "assignment" and self.source.weak
        return is_stored or (self.kind == "literal" and self.op not in ops.CONTROL)

    @property
    def in_library(self) -> bool:
        """Whether a function of a source's library casts a value of its own, not an operand."""
        return self._is_of_library and self.operand == INTERMEDIATE

    @property
    def _is_of_library(self) -> bool:
        """Whether the operand is that of a function of a source's library, not of an op."""
        return "." in self.op and bool(self.symbol.graph.provenance.library)

    @property
    def bytes_before(self) -> int:
        """The bytes of an element in storage before the cast."""
        return self.conversion.source.storage.itemsize

    @property
    def bytes_after(self) -> int:
        """The bytes of an element in storage after the cast."""
        return self.conversion.target.storage.itemsize

    @property
    def elements(self) -> Size:
        """The number of converted elements: an int, or an expression of symbolic dims.

        A cast in a loop counts as often as the loop runs, by name if the graph does not say it.
        """
        return self.symbol.size * runs_of(self.symbol)

    @property
    def bytes_added(self) -> Size:
        """The bytes of the array that the cast allocates."""
        return self.elements * self.bytes_after

    @property
    def expression(self) -> Expression | None:
        """The source expression at the location; None if the source is unavailable."""
        return expression(self.location)

    @property
    def span(self) -> tuple[int, int]:
        """The (start, end) offsets of the cast operand in the text of the expression.

        The span is the whole text for the cast of a result and for a text of several ops, and
        (0, 0) if unknown.
        """
        source = self.expression
        if source is None:
            return 0, 0
        if self.operand == "result" or self.location.compound or self._is_of_library:
            return 0, len(source.text)
        if self.conversion.stores:  # the last span; one at 0 is the assignment's target
            return source.spans[-1] if source.spans and source.spans[-1][0] else (0, 0)
        return source.spans[self.position] if self.position < len(source.spans) else (0, 0)

    @property
    def text(self) -> str:
        """The source text of the cast operand, such as `x[1:]`; "" if unknown.

        The operand of a library's function, such as the weight of torch.linear, is not in the text
        that calls the function.
        """
        if self._is_of_library:
            return ""
        source, (start, end) = self.expression, self.span
        return " ".join(source.text[start:end].split()) if source else ""

    @cached_property
    def edit(self) -> Edit | None:
        """The edit in place of the cast; None if the cast needs no fix."""
        return row_edit(self)

    @property
    def fix(self) -> str:
        """The code to type instead, in one line; "" if the cast needs no fix."""
        return "" if self.edit is None else self.edit.seen_from(self.location)

    @property
    def others(self) -> Mapping[str, DType | str]:
        """By name of each other rule set, the operand's dtype or the reason for a refusal."""
        return others(self)

    def to_json(self) -> dict[str, Any]:
        """Return the row for JSON (see casts.schema.json), as a site of one use."""
        from graphir.passes.analysis.casts.sites import CastSite

        return CastSite(self).to_json()

    def facts(self) -> dict[str, Any]:
        """Return the JSON fields shared by rows of one location and conversion."""
        source, cause = self.expression, self.demanding
        demand: dict[str, Any] = {}
        if cause is not None:
            demand["demanded_by"] = {"op": cause.op.name, "location": cause.location.to_json()}
        if self.in_library:
            demand["in_library"] = True
        return {
            **self.conversion.facts,
            "others": {name: str(answer) for name, answer in self.others.items()},
            **demand,
            "location": self.location.to_json(),
            "expression": cut(source.brief) if source else None,
            "text": cut(self.text) or None,
            "fix": self.fix or None,
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CastRow):
            return NotImplemented
        return self.conversion == other.conversion and self.location == other.location

    def __hash__(self) -> int:
        return hash((self.conversion, self.location))

    def __repr__(self) -> str:
        conversion = self.conversion
        what = f"{conversion.kind} cast of {conversion.operand} of {conversion.op}"
        return f"<{what} at {self.location}: {conversion.source} -> {conversion.target}>"


MAX_QUOTE = 500
"""The most characters of the program that JSON quotes for a row."""


def cut(text: str) -> str:
    """Shorten a text to MAX_QUOTE characters, with an ellipsis at the cut."""
    return text if len(text) <= MAX_QUOTE else f"{text[: MAX_QUOTE - 1]}\N{HORIZONTAL ELLIPSIS}"


def size_json(size: Size) -> int | str:
    """Return a size for JSON: an int, or an expression of symbolic dims as text."""
    return size if isinstance(size, int) else str(size)


# -- attribution


class CastUse(NamedTuple):
    """The symbol that a cast serves, the operand's position, and the row that caused the cast.

    `cause` is None if the row is its own cause.
    """

    user: Symbol | None = None
    position: int = 0
    cause: CastRow | None = None


class Uses:
    """The uses of the casts in an explicit graph, computed at the first query.

    A cast is a consequence if the operand that demands its dtype has that dtype only through an
    earlier implicit cast. The cause of a consequence is the cause of that earlier cast, or the
    earlier cast itself if it has none. A cast that the user wrote ends a cascade. Legalization
    changes the dtypes of ops, so that most casts of a legalized graph count as their own cause.
    """

    def __init__(self, graph: Graph, rows: Sequence[CastRow]) -> None:
        self.graph, self.rows = graph, rows
        self._operands: dict[int, list[Symbol]] = {}
        self._uses_beside_stores: dict[int, frozenset[_UseKey] | None] = {}

    def of(self, row: CastRow) -> CastUse:
        """Return the use of a row."""
        return self._by_place.get(row.place, _NONE)

    @cached_property
    def facts(self) -> ProgramFacts:
        """What the source says about the symbols of the graph."""
        return ProgramFacts(self.graph, ())

    def operands(self, user: Symbol) -> list[Symbol]:
        """Return the operands of a symbol before the casts that passes inserted for it."""
        operands = self._operands.get(user.index)
        if operands is None:
            operands = [self._uncast(user, position) for position in range(len(user.args))]
            self._operands[user.index] = operands
        return operands

    def _uncast(self, user: Symbol, position: int) -> Symbol:
        """Return an operand without the casts that passes inserted for this use.

        A cast that stores a value in an array is part of the operand, unless the cast serves this
        use too.
        """
        arg = user.args[position]
        if arg.op is ops.cast:
            key = _use_key(user, position)
            while arg.op is ops.cast and arg.origins and self._serves(arg, key):
                arg = arg.args[0]
        return arg

    def _serves(self, cast: Symbol, key: _UseKey) -> bool:
        """Whether an inserted cast serves the use `key`; True for any cast that stores nothing."""
        if cast.index not in self._uses_beside_stores:
            uses = [(x.op, x.operand, x.location) for x in cast.origins if not x.stores]
            are_all = len(uses) == len(cast.origins)
            self._uses_beside_stores[cast.index] = None if are_all else frozenset(uses)
        uses_served = self._uses_beside_stores[cast.index]
        return uses_served is None or key in uses_served

    @cached_property
    def _by_place(self) -> dict[int, CastUse]:
        walk = _Walk(self.rows)
        for symbol in self.graph.symbols:
            if symbol.args:
                walk.visit(symbol)
        return walk.uses


class ImpliedUses(Uses):
    """The uses of the casts that a graph implies, recorded as the walk yields them."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph, ())
        self._users: dict[int, CastUse] = {}

    def row(
        self, conversion: CastConversion, location: Location, symbol: Symbol, position: int
    ) -> CastRow:
        """Return the row of a use (see passes.analysis.casts.conversion).

        The row of an implied cast has the operand as its symbol.
        """
        place = len(self._users)
        casts_implied = symbol.op is not ops.cast and bool(symbol.args)
        self._users[place] = CastUse(symbol, position) if casts_implied else _NONE
        value = symbol.args[position] if casts_implied and position >= 0 else symbol
        return CastRow(conversion, location, value, place, self)

    def of(self, row: CastRow) -> CastUse:
        """Return the use of a row."""
        return self._users[row.place]

    def operands(self, user: Symbol) -> list[Symbol]:
        """Return the operands of a symbol; the graph has no inserted casts."""
        return list(user.args)


_NONE = CastUse()

_UseKey: TypeAlias = tuple[str, str, Location]
"""The op name, operand name and location by which an origin identifies its use."""


def _use_key(user: Symbol, position: int) -> _UseKey:
    return user.op.name, user.op.operand(position), user.location


class _Queues:
    """The rows of one cast in the order of its uses; `take` returns each row once."""

    def __init__(self, rows: Sequence[CastRow]) -> None:
        self.first = rows[0]
        self._uses: dict[_UseKey, deque[CastRow]] = {}
        self._places: dict[int, deque[CastRow]] = {}
        self._used_rows: set[int] = set()
        for row in rows:
            key = row.conversion.op, row.conversion.operand, row.location
            self._uses.setdefault(key, deque()).append(row)
            self._places.setdefault(id(row.location), deque()).append(row)

    def take(self, user: Symbol, position: int) -> CastRow | None:
        """Return the next row with the use's op and operand, else with its location, or None."""
        for queue in (
            self._uses.get(_use_key(user, position), ()),
            self._places.get(id(user.source), ()),
        ):
            while queue:
                row = queue.popleft()
                if row.place not in self._used_rows:
                    self._used_rows.add(row.place)
                    return row
        return None


class _Walk:
    def __init__(self, rows: Sequence[CastRow]) -> None:
        self.uses: dict[int, CastUse] = {}
        by_cast: dict[int, list[CastRow]] = {}
        for row in rows:
            by_cast.setdefault(row.symbol.index, []).append(row)
        self.rows = {index: _Queues(each) for index, each in by_cast.items()}
        # By index, the row of the cast that gave a symbol its dtype; absent without such a cast.
        self.causes: dict[int, CastRow] = {}

    def visit(self, symbol: Symbol) -> None:
        if symbol.op is ops.cast:
            self._pass_on(symbol)
            return
        rows, dtype_causes, dtype = self.rows, self.causes, symbol.type.dtype
        asking = [
            (row, position)
            for position, arg in enumerate(symbol.args)
            if arg.index in rows and (row := rows[arg.index].take(symbol, position)) is not None
        ]
        causes: dict[DType, CastRow | None] = {}
        for row, position in asking:
            implicit, target = row.kind == "implicit", row.conversion.target
            if implicit and target not in causes:
                causes[target] = self._cause(symbol, target)
            cause = (causes[target] if implicit else None) or row
            self.uses[row.place] = CastUse(symbol, position, None if cause is row else cause)
            if implicit and target is dtype:
                dtype_causes[symbol.index] = cause
        if not asking and dtype_causes:
            for arg in symbol.args:
                if arg.index in dtype_causes and arg.type.dtype is dtype:
                    dtype_causes[symbol.index] = dtype_causes[arg.index]
                    return

    def _pass_on(self, cast: Symbol) -> None:
        """Record the cause of a cast's dtype.

        A legalization cast has the cause of its operand; an implicit cast of a result, or of a
        NumPy function, is a cause. An identity of a NumPy function has no row.
        """
        source, origins = cast.args[0], cast.origins
        if origins and origins[0].rule == LEGALIZE and source.index in self.causes:
            self.causes[cast.index] = self.causes[source.index]
        elif (
            origins
            and origins[0].kind == "implicit"
            and (origins[0].operand == "result" or origins[0].in_call)
            and cast.index in self.rows
        ):
            self.causes[cast.index] = self.rows[cast.index].first

    def _cause(self, user: Symbol, target: DType) -> CastRow | None:
        """Return the row that gave an operand the dtype `target`; None if no cast gave it."""
        causes, rows = self.causes, self.rows
        natural = [a for a in user.args if a.type.dtype is target and a.index not in rows]
        if natural:
            operand_causes = [causes[a.index] for a in natural if a.index in causes]
            return operand_causes[0] if len(operand_causes) == len(natural) else None
        # No operand has the dtype before the casts: the dtype is the join of several operands.
        values = [a.args[0] for a in user.args if a.index in rows and a.args]
        return next((causes[a.index] for a in values if a.index in causes), None)


# -- what other rules do


_Operand: TypeAlias = tuple[TensorType, complex | None]
"""The type of an operand, and the value of a number, which rule sets may inspect."""


def others(row: CastRow) -> Mapping[str, DType | str]:
    """Return, by name of each other rule set, the operand's dtype or the reason for a refusal.

    Omits rule sets that lack a dtype of the operands. Returns an empty mapping for a cast that no
    rule set asked for (written by the user, legalization, assignment), and for an unknown use.
    """
    conversion = row.conversion
    user, position, _ = row.uses.of(row)
    if user is None or conversion.kind not in ("implicit", "literal") or conversion.stores:
        return {}
    operands = tuple((x.type, number_of(x)) for x in row.uses.operands(user))
    attrs = user.attrs  # a record hashes by its identity
    return _others(rule_sets(), conversion.rule, user.op, operands, attrs, position)  # pyright: ignore[reportArgumentType]


@lru_cache(maxsize=4096)
def _others(
    candidates: tuple[PromotionRules, ...],
    rule: str,
    op: Op,
    operands: tuple[_Operand, ...],
    attrs: AttributeRecord,
    position: int,
) -> Mapping[str, DType | str]:
    """Return the answers of all rule sets but "explicit" and `rule` for the operand at a position.

    Equal uses share one mapping.
    """
    answers = _answers(candidates, rule, op, operands, attrs)  # pyright: ignore[reportArgumentType]
    return {
        name: answer if isinstance(answer, str) else answer[position]
        for name, answer in answers.items()
    }


@lru_cache(maxsize=256)
def _answers(
    candidates: tuple[PromotionRules, ...],
    rule: str,
    op: Op,
    operands: tuple[_Operand, ...],
    attrs: AttributeRecord,
) -> Mapping[str, Sequence[DType] | str]:
    """Return the dtypes of all operands under each other rule set, or the reason for a refusal."""
    dtypes = {x.dtype for x, number in operands if number is None or not x.dtype.weak}
    return {
        rules.name: _answer(rules, op, operands, attrs)
        for rules in candidates
        if rules.name not in ("explicit", rule)
        and all(rules.has(rules.concrete_dtype(dtype)) for dtype in dtypes)
    }


def _answer(
    rules: PromotionRules, op: Op, operands: tuple[_Operand, ...], attrs: AttributeRecord
) -> Sequence[DType] | str:
    graph = Graph("question", rules=rules)
    settings = {name: value for name, value in attrs.items() if name != "dtype"}
    try:
        symbol = graph.apply(op, [_new_operand(graph, *operand) for operand in operands], settings)
        return graph.infer(op, symbol.args, symbol.attrs).operands
    except GraphirError as error:
        return f"refuses: {reason(error)}"


def _new_operand(graph: Graph, type_: TensorType, number: complex | None) -> Symbol | complex:
    """Return an operand in a graph under other rules; a Python number stays a literal."""
    if number is not None and type_.dtype.weak:
        return number
    if number is not None and graph.rules.by_value:
        return graph.constant(np.asarray(number, type_.dtype.storage), type_.dtype)
    return graph.input(TensorType(graph.rules.concrete_dtype(type_.dtype), type_.shape))
