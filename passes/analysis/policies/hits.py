"""The casts and symbols that a policy does not allow: their search, texts, errors and warnings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, compress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from graphir import ops
from graphir.decorators import uncollected
from graphir.display import count_text, printable
from graphir.dtypes import DType
from graphir.errors import CastWarning
from graphir.ir.implied_casts import ImpliedCast, implied
from graphir.ir.inlining import inlined
from graphir.ir.liveness import all_live, live_mask
from graphir.ir.operands import call_text
from graphir.location import Location, user_frame
from graphir.loss import loss
from graphir.passes.analysis.casts.conversion import CastConversion, CastWalk, ConversionUse
from graphir.passes.analysis.casts.rows import CastRow, ImpliedUses
from graphir.passes.analysis.explanations.edits import Edit, UncastOp, assignment_edit
from graphir.passes.analysis.explanations.fixes import Promotion
from graphir.passes.analysis.expressions import syntax_of
from graphir.passes.analysis.policies.patterns import (
    Action,
    Verdict,
    family,
    limits_on,
    named_limits,
    too_wide,
    within,
)
from graphir.passes.analysis.rebuild import is_literal
from graphir.promotion import PromotionRules
from graphir.source_text import is_cell

if TYPE_CHECKING:
    from graphir.ir.graph import Graph
    from graphir.ir.symbol import Symbol
    from graphir.passes.analysis.policies.policy import Policy


class CastHit(NamedTuple):
    """The casts with one conversion at one line of the program, merged over loop iterations.

    `row` is the first of these casts, and `times` their number. The fix stays within `limits`, the
    limits of the budget, and makes no dtype that the forbidden `words` name.
    """

    row: CastRow
    verdict: Verdict
    limits: tuple[DType, ...] = ()
    times: int = 1
    words: tuple[str, ...] = ()

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
        named = named_limits(self.words, row.target)
        if named:
            edit = edit_within(row, named)
        elif row.user is None or row.conversion.stores:
            edit = assignment_edit(row.location, row.target, syntax_of(symbol.graph))
        else:
            number = row.kind == "literal"
            casts = {row.position: row.target} if number else _casts_within(symbol, self.limits)
            uncast = UncastOp(symbol.graph.rules, symbol.op, symbol.args)
            promotion = Promotion(uncast, casts, row.position, row.loss, number)
            edit = promotion.edit(row.location, too_wide(self.limits))
        return "" if edit is None else edit.text

    @property
    def message(self) -> str:
        """The message: the call, the cast, rule set, loss, the policy's pattern, and the fix."""
        row, rule = self.row, self.symbol.graph.rules.name
        operand = "result" if row.user is None else row.operand
        what = f"{operand} {row.source} -> {row.target} under {rule!r} ({row.loss}), {self.verdict}"
        return f"{_call(self.symbol)}: {what}{_write(self.fix)}"

    def __str__(self) -> str:
        return f"{self.location.layered}: {self.message}{_often(self.times)}"


def edit_within(row: CastRow, limits: tuple[DType, ...]) -> Edit | None:
    """Return the edit that casts the operands of a row's op within limits; None without one.

    The rules then make no wider dtype of them. A comment says the first integer that it loses.
    """
    if row.user is None or row.location.compound or row.kind not in ("implicit", "literal"):
        return None
    uncast = UncastOp(PromotionRules.find(row.rule), row.user.op, row.operands)
    promotion = Promotion(uncast, {}, row.position, row.loss)
    demanded = promotion.operands({}) or ()
    narrow = [(x.dtype, within(to, limits)) for x, to in zip(row.operands, demanded, strict=False)]
    casts = {i: to for i, (dtype, to) in enumerate(narrow) if to is not None and to is not dtype}
    after = promotion.operands(casts) or demanded
    if not casts or any(dtype in too_wide(limits) for dtype in after):
        return None
    casts = {i: to for i, to in casts.items() if not is_literal(row.operands[i])} or casts
    edit = uncast.edit(row.location, casts)
    pairs = [(row.operands[i].dtype, to) for i, to in casts.items()]
    losses = [loss(*pair).witness for pair in pairs if pair[0].is_integer]
    lost = [x for x in losses if isinstance(x, int)]
    return edit._replace(text=f"{edit.text}  # loses {min(lost)}") if edit and lost else edit


def forbid_edits(rows: Iterable[CastRow], words: Sequence[str]) -> None:
    """Give rows, of casts that a gate's words forbid, edits that make no dtype that these name."""
    for row in rows:
        limits = named_limits(words, row.target)
        if limits and row.edit is not None:
            row.edit = edit_within(row, limits)


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
        edit = uncast.edit(symbol.location, casts_to_write)
        return f'dtype "{narrow}"' if edit is None else edit.text

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


@uncollected
def find_hits(policy: Policy, graph: Graph, outputs: Sequence[Symbol]) -> list[Hit]:
    """Return a policy's hits in a graph, one for each line and kind, in the graph's order.

    With `outputs`, the search covers only the inputs and the symbols that are live for `outputs`.
    It enters the graphs of control flow.
    """
    if graph.has_bodies:
        graph = inlined(graph, outputs)
        outputs = graph.outputs
    symbols = graph.symbols
    if outputs and not all_live(graph, outputs):
        symbols = list(compress(symbols, live_mask(graph, outputs)))
    return _Judgement(policy, graph, symbols).hits()


_WidthKey: TypeAlias = tuple[int, DType, str]
"""(id of the location, which the symbols of a line share; dtype; its budget family)."""


class _Judgement:
    """The search of one policy over some symbols of one graph."""

    def __init__(self, policy: Policy, graph: Graph, symbols: Collection[Symbol]) -> None:
        self.policy, self.graph, self.symbols = policy, graph, symbols
        exceeding = too_wide(policy.widest)
        # By DType.code: the concrete dtype of its values if that exceeds the budget, else None.
        concrete = map(graph.concrete_dtype, DType if exceeding else ())
        self.wide = [dtype if dtype in exceeding else None for dtype in concrete]
        # By symbol index: the dtype beyond the budget to which an operand is cast.
        self._meeting: dict[int, DType] = {}

    def hits(self) -> list[Hit]:
        """Return the hits; hits of equal location and identity merge."""
        hits_by_place: dict[Any, Hit] = {}
        for hit in chain(self._cast_hits(), self._width_hits()):
            key = hit.location, hit.identity
            hits_by_place[key] = _merge(hits_by_place[key], hit) if key in hits_by_place else hit
        return sorted(hits_by_place.values(), key=lambda hit: hit.symbol.index)

    def _cast_hits(self) -> Iterator[CastHit]:
        if self.graph.rules_before is not None:  # the graph is explicit: it implies no casts
            return
        uses = ImpliedUses(self.graph)
        for use, times in self._uses():
            verdict = self._verdict(use[0])
            row = uses.row(*use) if verdict.action != "allow" else None
            if row is not None and not row.accepting_line:
                words = self.policy.forbid
                yield CastHit(row, verdict, self.policy.widest, times, words)

    def _uses(self) -> Iterator[tuple[ConversionUse, int]]:
        """Return the first use of each conversion at each line, with the number of its uses."""
        walk, wide = CastWalk(self.graph, self._is_wanted), self.wide
        firsts: dict[tuple[int, int], ConversionUse] = {}
        times: dict[tuple[int, int], int] = {}
        for use in chain(walk.casts(self.symbols), walk.literals(self.symbols)):
            conversion, location, symbol, position = use
            key = id(conversion), id(location)  # unique: walk and graph keep the objects alive
            firsts.setdefault(key, use)
            times[key] = times.get(key, 0) + 1
            if wide and position >= 0 and (dtype := wide[conversion.target.code]):
                self._meeting.setdefault(symbol.index, dtype)
        return zip(firsts.values(), times.values(), strict=True)

    def _is_wanted(self, conversion: CastConversion) -> bool:
        wide = bool(self.wide) and self.wide[conversion.target.code] is not None
        return wide or self._verdict(conversion).action != "allow"

    def _verdict(self, conversion: CastConversion) -> Verdict:
        """Return the policy's verdict on a cast; the mere rounding of a literal is allowed."""
        if not conversion.is_silent:
            return _FREE
        return self.policy.judge(conversion.source, conversion.target, conversion.loss)

    def _width_hits(self) -> Iterator[WidthHit]:
        """Yield the first symbol beyond the budget on each path of such symbols, one per line."""
        roots: dict[int, _WidthKey] = {}
        hits: dict[_WidthKey, WidthHit] = {}
        for symbol in self.symbols if self.wide else ():
            own = self.wide[symbol.type.dtype.code]
            dtype = own or self._meeting.get(symbol.index)
            if dtype is None or (symbol.op is ops.constant and symbol.attrs["literal"] is not None):
                continue
            of_operands = (roots[arg.index] for arg in symbol.args if arg.index in roots)
            key = next((key for key in of_operands if key[2] == family(dtype)), None)
            if key is not None:
                hits[key] = hits[key]._replace(follows=hits[key].follows + 1)
            else:
                key = id(symbol.source), dtype, family(dtype)
                hit = hits.get(key) or WidthHit(symbol, dtype, self.policy.widest, times=0)
                hits[key] = hit._replace(times=hit.times + 1)
            if own:
                roots[symbol.index] = key
        yield from hits.values()


_FREE = Verdict("allow", ())


def _merge(first: Hit, again: Hit) -> Hit:
    times = first.times + again.times
    if isinstance(first, WidthHit) and isinstance(again, WidthHit):
        return first._replace(times=times, follows=first.follows + again.follows)
    return first._replace(times=times)


def warn_of(hits: Iterable[Hit]) -> None:
    """Warn of each hit at its line; filters by module and the once-per-line default apply."""
    modules: dict[str, dict[str, Any]] = {}
    for hit in hits:
        place = hit.location
        # Warnings look for no file with a name in <>.
        path = place.source or f"<{printable(place.file)}>"
        names = modules.get(path)
        if names is None:
            names = modules[path] = _module(path)
        warnings.warn_explicit(
            f"{hit.message} [{printable(place.layer)}]" if place.layer else hit.message,
            CastWarning,
            place.file if is_cell(place.file) else path,
            place.line,
            module=names.get("__name__", "<string>"),
            registry=names.setdefault("__warningregistry__", {}),
        )


def _module(path: str) -> dict[str, Any]:
    """Return the globals of the module at a path, from a running frame or an imported module.

    Without such a module, as for another cell of a notebook, returns the globals of the caller.
    """
    frame = asking = user_frame()
    while frame is not None:
        if frame.f_code.co_filename == path:
            return frame.f_globals
        frame = frame.f_back
    for module in list(sys.modules.values()):
        names: dict[str, Any] = getattr(module, "__dict__", {})
        if names.get("__file__") == path:
            return names
    return asking.f_globals
