"""The casts that a policy does not allow: their search, texts, errors and warnings."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, compress
from typing import TYPE_CHECKING, Any, NamedTuple

from graphir.decorators import uncollected
from graphir.errors import CastWarning
from graphir.escape import printable
from graphir.ir.implied_casts import implied
from graphir.ir.inlining import inlined
from graphir.ir.liveness import all_live, live_mask
from graphir.ir.operands import call_text
from graphir.location import Location, user_frame
from graphir.passes.analysis.cast_syntax import syntax_of
from graphir.passes.analysis.casts.causes import ImpliedUses
from graphir.passes.analysis.casts.conversion import CastConversion
from graphir.passes.analysis.casts.rows import CastRow
from graphir.passes.analysis.casts.walk import CastWalk, ConversionUse
from graphir.passes.analysis.suggestions import Promotion, cast_assignment, fix
from graphir.rule_reports.findings import count_text
from graphir.source_text import is_cell

if TYPE_CHECKING:
    from graphir.ir.graph import Graph
    from graphir.ir.symbol import Symbol
    from graphir.passes.analysis.policies.policy import Action, Policy, Verdict


class CastHit(NamedTuple):
    """The casts with one conversion at one line of the program, merged over loop iterations.

    `row` is the first of these casts, and `times` their number.
    """

    row: CastRow
    verdict: Verdict
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
            return cast_assignment(row.location, row.target, syntax_of(symbol.graph))
        number = row.kind == "literal"
        casts = {cast.position: cast.target for cast in implied(symbol.graph, symbol).casts}
        casts = {row.position: row.target} if number else casts
        op, args, under = symbol.op, symbol.args, symbol.graph.rules
        promotion = Promotion(under, op, args, casts, row.position, row.loss, number)
        return fix(promotion, row.location)

    @property
    def message(self) -> str:
        """The message: the call, the cast, rule set, loss, the policy's pattern, and the fix."""
        row, rule = self.row, self.symbol.graph.rules.name
        operand = "result" if row.user is None else row.operand
        what = f"{operand} {row.source} -> {row.target} under {rule!r} ({row.loss}), {self.verdict}"
        write = f"; write {self.fix}" if self.fix else ""
        return f"{call_text(self.symbol.op, self.symbol.args)}: {what}{write}"

    def __str__(self) -> str:
        often = f" ({self.times:,} times)" if self.times > 1 else ""
        return f"{self.location.layered}: {self.message}{often}"


MAX_SHOWN = 100
"""The most hits that one error lists."""


def refusal(name: str, hits: Sequence[CastHit], sentences: Sequence[str] = ()) -> str:
    """Return the text of the one error that lists all forbidden hits of a graph.

    The sentences of the graph's report, which explain wide results, come last.
    """
    lines = [f"the policy of graph {name!r} forbids {count_text(len(hits), 'cast')}:"]
    lines += [f"  {hit}" for hit in hits[:MAX_SHOWN]]
    if len(hits) > MAX_SHOWN:
        lines.append(f"  ... and {len(hits) - MAX_SHOWN:,} more: graph.policy.hits(graph) has all")
    lines += [f"  {sentence}" for sentence in sentences]
    lines.append("Cast there, or relax the graph's Policy: its casts, forbid or allow.")
    return "\n".join(lines)


@uncollected
def find_hits(policy: Policy, graph: Graph, outputs: Sequence[Symbol]) -> list[CastHit]:
    """Return a policy's hits in a graph, one for each line and kind, in the graph's order.

    With `outputs`, the search covers only the inputs and the symbols that are live for `outputs`.
    It enters the graphs of control flow.
    """
    if graph.has_bodies:
        graph = inlined(graph, outputs)
        outputs = graph.outputs
    hits = _hits(policy, graph, graph.symbols)
    if not hits or not outputs or all_live(graph, outputs):
        return hits
    return _hits(policy, graph, list(compress(graph.symbols, live_mask(graph, outputs))))


def _hits(policy: Policy, graph: Graph, symbols: Collection[Symbol]) -> list[CastHit]:
    """Return the hits among some symbols of a graph; hits of equal location and identity merge."""
    if graph.rules_before is not None:  # the graph is explicit: it implies no casts
        return []

    def judge(conversion: CastConversion) -> Verdict:
        return policy.judge(conversion.source, conversion.target, conversion.loss)

    def is_wanted(conversion: CastConversion) -> bool:
        return conversion.is_silent and judge(conversion).action != "allow"

    walk, uses = CastWalk(graph, is_wanted), ImpliedUses(graph)
    times: Counter[tuple[int, int]] = Counter()
    firsts: dict[tuple[int, int], ConversionUse] = {}
    for use in chain(walk.casts(symbols), walk.literals(symbols)):
        key = id(use[0]), id(use[1])  # walk and graph keep the objects alive: ids are unique
        times[key] += 1
        firsts.setdefault(key, use)
    hits_by_place: dict[Any, CastHit] = {}
    for key, use in firsts.items():
        hit = CastHit(uses.row(*use), judge(use[0]), times[key])
        place = hit.location, hit.identity
        first = hits_by_place.get(place)
        if first is not None:
            hit = first._replace(times=first.times + hit.times)
        hits_by_place[place] = hit
    return sorted(hits_by_place.values(), key=lambda hit: hit.symbol.index)


def warn_of(hits: Iterable[CastHit]) -> None:
    """Warn of each hit at its line; filters by module and the once-per-line default apply."""
    modules: dict[str, dict[str, Any]] = {}
    for hit in hits:
        place = hit.location
        path = (
            place.source or f"<{printable(place.file)}>"
        )  # warnings look for no file with a name in <>
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
