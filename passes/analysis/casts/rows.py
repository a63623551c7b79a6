"""CastRow: one use of one cast, with its provenance, loss, fix, measurements, and other answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from graphir.ir.inlining import runs_of
from graphir.ir.operands import number_of
from graphir.location import INTERMEDIATE
from graphir.loss import Loss
from graphir.ops.attribute_record import AttributeRecord
from graphir.ops.dims import Size
from graphir.passes.analysis.casts.behind_casts import demanding
from graphir.passes.analysis.casts.conversion import CastConversion, Kind, StepLoss
from graphir.passes.analysis.casts.measured import Measured
from graphir.passes.analysis.explanations.edits import Edit
from graphir.passes.analysis.explanations.fixes import row_edit
from graphir.passes.analysis.expressions import Expression
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

if TYPE_CHECKING:
    from graphir.passes.analysis.casts.uses import Uses


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
        return self.uses.expression(self.location)

    @property
    def span(self) -> tuple[int, int]:
        """The (start, end) offsets of the cast operand in the text of the expression.

        The span is the whole text for the cast of a result and for a text of several ops, and
        (0, 0) if unknown.
        """
        expression = self.expression
        if expression is None:
            return 0, 0
        if self.conversion.operand == "result" or self.location.compound or self._is_of_library:
            return 0, len(expression.text)
        if (
            self.conversion.stores
        ):  # the value is the last span; a span at 0 is the assignment's target
            return expression.spans[-1] if expression.spans and expression.spans[-1][0] else (0, 0)
        position = self.position
        return expression.spans[position] if position < len(expression.spans) else (0, 0)

    @property
    def text(self) -> str:
        """The source text of the cast operand, such as `x[1:]`; "" if unknown.

        The operand of a library's function, such as the weight of torch.linear, is not in the text
        that calls the function.
        """
        if self._is_of_library:
            return ""
        expression, (start, end) = self.expression, self.span
        return " ".join(expression.text[start:end].split()) if expression else ""

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
        expression, cause = self.expression, self.demanding
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
            "expression": cut(expression.brief) if expression else None,
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


# -- what other rules do


class _Scalar(NamedTuple):
    """A Python number, whose dtype is weak, or a 0-d constant; rule sets may inspect its value."""

    value: complex
    dtype: DType

    @property
    def type(self) -> TensorType:
        """The type of the constant, which is all that most rule sets consider."""
        return TensorType(self.dtype)


_Operand: TypeAlias = TensorType | _Scalar


def others(row: CastRow) -> Mapping[str, DType | str]:
    """Return, by name of each other rule set, the operand's dtype or the reason for a refusal.

    Omits rule sets that lack a dtype of the operands. Returns an empty mapping for a cast that no
    rule set asked for (written by the user, legalization, assignment), and for an unknown use.
    """
    conversion = row.conversion
    user, position, _ = row.uses.of(row)
    if user is None or conversion.kind not in ("implicit", "literal") or conversion.stores:
        return {}
    operands = tuple(map(_operand, row.uses.operands(user)))
    attrs = user.attrs  # a record hashes by its identity
    return _others(rule_sets(), conversion.rule, user.op, operands, attrs, position)  # pyright: ignore[reportArgumentType]


def _operand(before: Symbol) -> _Operand:
    """Return an operand for other rules: a number, or a type."""
    number = number_of(before)
    return before.type if number is None else _Scalar(number, before.dtype)


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
    dtypes = {x.dtype for x in operands if isinstance(x, TensorType) or not x.dtype.weak}
    return {
        rules.name: _answer(rules, op, operands, attrs, position)
        for rules in candidates
        if rules.name not in ("explicit", rule)
        and all(rules.has(rules.concrete_dtype(dtype)) for dtype in dtypes)
    }


def _answer(
    rules: PromotionRules,
    op: Op,
    operands: tuple[_Operand, ...],
    attrs: AttributeRecord,
    position: int,
) -> DType | str:
    graph = Graph("question", rules=rules)
    settings = {name: value for name, value in attrs.items() if name != "dtype"}
    try:
        symbol = graph.apply(op, [_new_operand(graph, operand) for operand in operands], settings)
        return graph.infer(op, symbol.args, symbol.attrs).operands[position]
    except GraphirError as error:
        return f"refuses: {reason(error)}"


def _new_operand(graph: Graph, operand: _Operand) -> Symbol | complex:
    """Return an operand in a graph under other rules; a Python number stays a literal."""
    if isinstance(operand, _Scalar):
        if operand.dtype.weak:
            return operand.value
        if graph.rules.by_value:
            value = np.asarray(operand.value, operand.dtype.storage)
            return graph.constant(value, operand.dtype)
    type_ = operand.type if isinstance(operand, _Scalar) else operand
    return graph.input(TensorType(graph.rules.concrete_dtype(type_.dtype), type_.shape))
