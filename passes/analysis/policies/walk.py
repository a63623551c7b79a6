"""One walk over a graph that finds what a policy has to say of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from graphir import ops
from graphir.dtypes import DType
from graphir.gc_pause import uncollected
from graphir.ir.implied_casts import ImpliedCast, implied
from graphir.ir.liveness import all_live, live_mask
from graphir.ir.operands import number_of
from graphir.loss import Loss, literal_loss, loss
from graphir.promotion.scalars import WEAK
from passes.analysis.policies.budget import family
from passes.analysis.policies.hits import CastHit, Hit, WidthHit
from passes.analysis.policies.verdict import Verdict

if TYPE_CHECKING:
    from graphir.ir.graph import Graph
    from graphir.ir.symbol import Symbol
    from passes.analysis.policies.policy import Policy


@uncollected
def find_hits(policy: Policy, graph: Graph, outputs: Sequence[Symbol]) -> list[Hit]:
    """What a policy warns of or forbids in a graph, each line and kind once, in the graph's order.

    Where outputs are given, only in what they need, and in the inputs.
    """
    hits = _walked(policy, graph, graph.symbols)
    if not hits or not outputs or all_live(graph, outputs):
        return hits
    return _walked(policy, graph, compress(graph.symbols, live_mask(graph, outputs)))


def _walked(policy: Policy, graph: Graph, symbols: Iterable[Symbol]) -> list[Hit]:
    # Symbols that were inferred alike share their attributes, so each kind is judged once.
    walk = _Walk(policy, graph)
    plans: dict[int, _Plan | None] = {}
    for symbol in symbols:
        plan = plans.get(id(symbol.attrs), _UNKNOWN)
        if plan is _UNKNOWN:
            if not symbol.args:
                walk.visit_leaf(symbol)
                continue
            plan = plans[id(symbol.attrs)] = walk.plan(symbol)
        if plan is not None:
            # The common case, in line: a line that has been met, with casts of arrays alone.
            if plan.plain and (line := id(symbol.source)) in plan.lines:
                plan.lines[line] += 1
            else:
                walk.visit(symbol, plan)
        if walk.misfits:
            walk.visit_numbers(symbol)
    return walk.finish()


_Lines: TypeAlias = dict[int, int]
"""How often each line is met, by the id of its location, which the symbols of a line share."""


class _Judged(NamedTuple):
    """A cast, what it loses, the verdict on it, and the lines that have it."""

    cast: ImpliedCast
    loss: Loss
    verdict: Verdict
    number: bool
    lines: _Lines


class _Plan(NamedTuple):
    """What symbols of one kind have: casts and the lines of these, and a dtype that is too wide.

    Casts of 0-d operands are in `scalars`, since each may be of a known number; `plain` is what has
    neither those nor a dtype that is too wide.
    """

    casts: tuple[_Judged, ...]
    scalars: tuple[_Judged, ...]
    wide: DType | None
    plain: bool
    lines: _Lines


_UNKNOWN = _Plan((), (), None, False, {})


class _Walk:
    def __init__(self, policy: Policy, graph: Graph) -> None:
        self.policy, self.graph = policy, graph
        self.too_wide = policy.too_wide
        # Numbers whose own dtype lacks them, by place, until an op uses them.
        self.misfits: dict[int, Loss] = {}
        # The first symbol of each line and kind, its casts, and where its line is counted.
        self._noted: list[tuple[Symbol, tuple[_Judged, ...], _Lines]] = []
        self._widths: dict[Any, WidthHit] = {}
        self._times: dict[Any, int] = {}
        # The key of the hit from which a symbol has its wide dtype, by place.
        self._roots: dict[int, Any] = {}
        self._follows: dict[Any, int] = {}
        self._known: dict[Any, _Judged] = {}

    def plan(self, symbol: Symbol) -> _Plan | None:
        """What symbols of this one's kind have; None where that is nothing."""
        needed = implied(self.graph, symbol)
        casts = list(needed.casts)
        if needed.result is not symbol.dtype:
            casts.append(ImpliedCast(-1, "result", needed.result, symbol.dtype))
        if symbol.op is ops.cast and symbol.origins and self.graph.rules_before is None:
            casts.append(ImpliedCast(-1, "result", symbol.args[0].dtype, symbol.dtype))
        wide = self._wide(symbol.dtype, *(cast.target for cast in casts))
        sure: list[_Judged] = []
        scalars: list[_Judged] = []
        for cast in casts:
            judged = self._judged(cast, loss(cast.source, cast.target))
            if cast.position >= 0 and not symbol.args[cast.position].shape:
                scalars.append(judged)
            elif judged.verdict.action != "allow":
                sure.append(judged)
        if not (sure or scalars or wide):
            return None
        return _Plan(tuple(sure), tuple(scalars), wide, not (scalars or wide), {})

    def visit(self, symbol: Symbol, plan: _Plan) -> None:
        """Note the casts of a symbol, and that it is too wide."""
        casts, scalars, wide, _, lines = plan
        if casts:
            self._note(symbol, lines, casts)
        for judged in scalars:
            arg = symbol.args[judged.cast.position]
            found = self._of_constant(arg, judged) if arg.op is ops.constant else judged
            self._note_judged(symbol, found)
        if wide is not None:
            self._note_width(symbol, wide)

    def visit_leaf(self, symbol: Symbol) -> None:
        """Note an input or a constant that is too wide, and a number that its dtype lacks."""
        dtype = symbol.type.dtype
        literal = symbol.attrs["literal"] if symbol.op is ops.constant else None
        if literal is None:
            if (wide := self._wide(dtype)) is not None:
                self._note_width(symbol, wide)
        elif not dtype.weak:
            lost = literal_loss(literal, dtype)
            if _misfits(lost):
                self.misfits[symbol.index] = lost

    def visit_numbers(self, symbol: Symbol) -> None:
        """Note the first use of a number that its own dtype lacks."""
        for position, arg in enumerate(symbol.args):
            lost = self.misfits.pop(arg.index, None)
            if lost is not None:
                source = WEAK[type(arg.attrs["literal"])]
                cast = ImpliedCast(position, symbol.op.operand(position), source, arg.dtype)
                self._note_judged(symbol, self._judged(cast, lost, number=True))

    def finish(self) -> list[Hit]:
        """The hits, those of equal places and kinds as one."""
        limits, follows = self.policy.widest, self._follows
        found: list[Hit] = [
            CastHit(symbol, *judged[:4], limits, lines[id(symbol.source)])
            for symbol, casts, lines in self._noted
            for judged in casts
        ]
        for key, hit in self._widths.items():
            found.append(hit._replace(times=self._times[key], follows=follows.get(key, 0)))
        merged: dict[Any, Hit] = {}
        for hit in found:
            place = hit.location, hit.identity
            merged[place] = _merged(merged[place], hit) if place in merged else hit
        return sorted(merged.values(), key=lambda hit: hit.symbol.index)

    def _note_judged(self, symbol: Symbol, judged: _Judged) -> None:
        if judged.verdict.action != "allow":
            self._note(symbol, judged.lines, (judged,))

    def _note(self, symbol: Symbol, lines: _Lines, casts: tuple[_Judged, ...]) -> None:
        line = id(symbol.source)
        if line not in lines:
            self._noted.append((symbol, casts, lines))
        lines[line] = lines.get(line, 0) + 1

    def _note_width(self, symbol: Symbol, dtype: DType) -> None:
        roots, kin = self._roots, family(dtype)
        of_args = (roots[arg.index] for arg in symbol.args if arg.index in roots)
        key = next((key for key in of_args if key[2] == kin), None)
        if key is not None:
            self._follows[key] = self._follows.get(key, 0) + 1
        else:
            key = id(symbol.source), dtype, kin
            self._times[key] = self._times.get(key, 0) + 1
            self._widths.setdefault(key, WidthHit(symbol, dtype, self.policy.widest))
        if self._wide(symbol.dtype) is not None:
            roots[symbol.index] = key

    def _of_constant(self, constant: Symbol, judged: _Judged) -> _Judged:
        """What is cast where that is a known number: it alone is lost or not."""
        number, literal = _number(constant), constant.attrs["literal"]
        if number is None:
            return judged
        lost = literal_loss(number, judged.cast.target)
        return self._judged(judged.cast, lost, number=literal is not None)

    def _judged(self, cast: ImpliedCast, lost: Loss, number: bool = False) -> _Judged:
        known = self._known.get((cast, lost, number))
        if known is None:
            allowed = number and not _misfits(lost)
            verdict = _FREE if allowed else self.policy.judge(cast.source, cast.target, lost)
            known = self._known[cast, lost, number] = _Judged(cast, lost, verdict, number, {})
        return known

    def _wide(self, *dtypes: DType) -> DType | None:
        for dtype in map(self.graph.concrete_dtype, dtypes) if self.too_wide else ():
            if dtype in self.too_wide:
                return dtype
        return None


_FREE = Verdict("allow", ())


def _misfits(lost: Loss) -> bool:
    """Whether a number is lost, and not just rounded to nearest as all are that meet a dtype."""
    return lost.kinds not in ((), ("precision",))


def _number(constant: Symbol) -> complex | None:
    """The number that a constant is: as the program writes it, else the only one in its array."""
    literal = constant.attrs["literal"]
    return number_of(constant) if literal is None else literal


def _merged(first: Hit, again: Hit) -> Hit:
    times = first.times + again.times
    if isinstance(first, WidthHit) and isinstance(again, WidthHit):
        return first._replace(times=times, follows=first.follows + again.follows)
    return first._replace(times=times)
