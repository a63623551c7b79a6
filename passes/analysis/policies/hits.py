"""Policy hits: the casts and dtypes that a policy warns of or forbids, and their messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from graphir import ops
from graphir.dtypes import DType
from graphir.ir.implied_casts import ImpliedCast, implied
from graphir.ir.operands import call_text
from graphir.location import Location
from graphir.passes.analysis.cast_syntax import syntax_of
from graphir.passes.analysis.casts.rows import CastRow
from graphir.passes.analysis.policies.budget import limits_on, too_wide, within
from graphir.passes.analysis.policies.verdict import Action, Verdict
from graphir.passes.analysis.suggestions import Promotion, UncastOp, cast_assignment, fix, rewritten
from graphir.rule_reports.findings import count_text

if TYPE_CHECKING:
    from graphir.ir.symbol import Symbol


class CastHit(NamedTuple):
    """The casts with one conversion at one line of the program, merged over loop iterations.

    `row` is the first of these casts, and `times` their number. The fix stays within `limits`, the
    limits of the budget.
    """

    row: CastRow
    verdict: Verdict
    limits: tuple[DType, ...] = ()
    times: int = 1

    @property
    def action(self) -> Action:
        """The policy's action: "warn" or "forbid"."""
        return self.verdict.action

    @property
    def symbol(self) -> Symbol:
        """The op whose operand or result is cast; for a written cast, the cast symbol."""
        return self.row.symbol if self.row.user is None else self.row.user

    @property
    def location(self) -> Location:
        """The location of the hit in the program."""
        return self.row.location

    @property
    def identity(self) -> tuple[Any, ...]:
        """A key that is equal for hits that share one message."""
        row = self.row
        return row.op, row.operand, row.source, row.target, row.loss.kinds, self.verdict

    @property
    def fix(self) -> str:
        """The code to type instead, or "" without a known fix."""
        row, symbol = self.row, self.symbol
        if row.user is None or row.conversion.stores:
            return " ".join(
                cast_assignment(row.location, row.target, syntax_of(symbol.graph)).split()
            )
        number = row.kind == "literal"
        casts = {row.position: row.target} if number else _casts_within(symbol, self.limits)
        op, args, under = symbol.op, symbol.args, symbol.graph.rules
        promotion = Promotion(under, op, args, casts, row.position, row.loss, number)
        return fix(promotion, row.location, too_wide(self.limits))

    @property
    def message(self) -> str:
        """The message: the call, the cast, rule set, loss, the policy's pattern, and the fix."""
        row, rule = self.row, self.symbol.graph.rules.name
        operand = "result" if row.user is None else row.operand
        what = f"{operand} {row.source} -> {row.target} under {rule!r} ({row.loss}), {self.verdict}"
        return f"{_call(self.symbol)}: {what}{_write(self.fix)}"

    def __str__(self) -> str:
        return f"{self.location.layered}: {self.message}{_often(self.times)}"


class WidthHit(NamedTuple):
    """The first symbol on a path with a dtype wider than a policy's `limits` allow.

    `dtype` is the dtype of the symbol, or the dtype to which its operands are cast. `follows`
    counts the later symbols that have their wide dtype from this symbol.
    """

    symbol: Symbol
    dtype: DType
    limits: tuple[DType, ...]
    follows: int = 0
    times: int = 1
    action: Action = "forbid"

    @property
    def location(self) -> Location:
        """The location of the hit in the program."""
        return self.symbol.location

    @property
    def identity(self) -> tuple[Any, ...]:
        """A key that is equal for hits that share one message."""
        return self.symbol.op, self.dtype

    @property
    def fix(self) -> str:
        """The code to type instead, or "" if no dtype of the family is within the limits."""
        symbol, narrow = self.symbol, within(self.dtype, self.limits)
        if narrow is None:
            return ""
        wide = too_wide(self.limits)
        wide_positions = {cast.position for cast in _casts(symbol) if cast.target in wide}
        casts_within = _casts_within(symbol, self.limits)
        casts_to_write = {i: dtype for i, dtype in casts_within.items() if i in wide_positions}
        uncast = UncastOp(symbol.graph.rules, symbol.op, symbol.args)
        return rewritten(uncast, symbol.location, casts_to_write) or f'dtype "{narrow}"'

    @property
    def message(self) -> str:
        """The message: the call, the dtype, the limit, the number of later symbols, the fix."""
        limits = " or ".join(map(str, limits_on(self.dtype, self.limits)))
        what = f"{self.dtype} is wider than {limits}"
        follow = f", and {count_text(self.follows, 'symbol')} after it" if self.follows else ""
        return f"{_call(self.symbol)}: {what}{follow}{_write(self.fix)}"

    def __str__(self) -> str:
        return f"{self.location.layered}: {self.message}{_often(self.times)}"


Hit: TypeAlias = "CastHit | WidthHit"

MAX_SHOWN = 100
"""The most hits that one error lists."""


def refusal(name: str, hits: Sequence[Hit], sentences: Sequence[str] = ()) -> str:
    """Return the text of the one error that lists all forbidden hits of a graph.

    The sentences of the graph's report, which explain wide results, come last.
    """
    casts = sum(isinstance(hit, CastHit) for hit in hits)
    counts = [count_text(casts, "cast")] if casts else []
    counts += [count_text(len(hits) - casts, "dtype")] if casts < len(hits) else []
    lines = [f"the policy of graph {name!r} forbids {' and '.join(counts)}:"]
    lines += [f"  {hit}" for hit in hits[:MAX_SHOWN]]
    if len(hits) > MAX_SHOWN:
        lines.append(f"  ... and {len(hits) - MAX_SHOWN:,} more: graph.policy.hits(graph) has all")
    lines += [f"  {sentence}" for sentence in sentences]
    lines.append("Cast there, or relax the graph's Policy: its casts, forbid, allow or widest.")
    return "\n".join(lines)


def _casts(symbol: Symbol) -> tuple[ImpliedCast, ...]:
    return implied(symbol.graph, symbol).casts


def _casts_within(symbol: Symbol, limits: tuple[DType, ...]) -> dict[int, DType]:
    """Return the implied casts of a symbol's operands, by position, narrowed to the limits."""
    candidates = ((cast, within(cast.target, limits)) for cast in _casts(symbol))
    return {
        each.position: to for each, to in candidates if to is not None and to is not each.source
    }


def _call(symbol: Symbol) -> str:
    if not symbol.args:
        name = f" {symbol.name}" if symbol.op is ops.input else ""
        return f"{symbol.op.name}{name}: {symbol.type}"
    return call_text(symbol.op, symbol.args)


def _write(fix: str) -> str:
    return f"; write {fix}" if fix else ""


def _often(times: int) -> str:
    return f" ({times:,} times)" if times > 1 else ""
