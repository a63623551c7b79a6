"""The search for policy hits: predicates over the cast uses and the symbol dtypes of a graph."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain, compress
from typing import TYPE_CHECKING, Any, TypeAlias

from graphir import ops
from graphir.decorators import uncollected
from graphir.dtypes import DType
from graphir.ir.inlining import inlined
from graphir.ir.liveness import all_live, live_mask
from graphir.passes.analysis.casts.causes import ImpliedUses
from graphir.passes.analysis.casts.conversion import CastConversion
from graphir.passes.analysis.casts.walk import CastWalk, ConversionUse
from graphir.passes.analysis.policies.budget import family, too_wide
from graphir.passes.analysis.policies.hits import CastHit, Hit, WidthHit
from graphir.passes.analysis.policies.verdict import Verdict

if TYPE_CHECKING:
    from graphir.ir.graph import Graph
    from graphir.ir.symbol import Symbol
    from graphir.passes.analysis.policies.policy import Policy


@uncollected
def find_hits(policy: Policy, graph: Graph, outputs: Sequence[Symbol]) -> list[Hit]:
    """Return a policy's hits in a graph, one for each line and kind, in the graph's order.

    With `outputs`, the search covers only the inputs and the symbols that are live for `outputs`.
    It enters the graphs of control flow.
    """
    if graph.has_bodies:
        graph = inlined(graph, outputs)
        outputs = graph.outputs
    hits = _Judgement(policy, graph, graph.symbols).hits()
    if not hits or not outputs or all_live(graph, outputs):
        return hits
    live = list(compress(graph.symbols, live_mask(graph, outputs)))
    return _Judgement(policy, graph, live).hits()


_WidthKey: TypeAlias = tuple[int, DType, str]
"""(id of the location, which the symbols of a line share; dtype; its budget family)."""


class _Judgement:
    """The search of one policy over some symbols of one graph."""

    def __init__(self, policy: Policy, graph: Graph, symbols: Collection[Symbol]) -> None:
        self.policy, self.graph, self.symbols = policy, graph, symbols
        exceeding = too_wide(policy.widest)
        # By DType.code: the concrete dtype of its values if that exceeds the budget, else None.
        self.wide: list[DType | None] = []
        for dtype in DType if exceeding else ():
            concrete = graph.concrete_dtype(dtype)
            self.wide.append(concrete if concrete in exceeding else None)
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
            if verdict.action != "allow":
                yield CastHit(uses.row(*use), verdict, self.policy.widest, times)

    def _uses(self) -> Iterator[tuple[ConversionUse, int]]:
        """Return the first use of each conversion at each line, with the number of its uses."""
        walk, wide = CastWalk(self.graph, self._is_wanted), self.wide
        firsts: dict[tuple[int, int], ConversionUse] = {}
        times: dict[tuple[int, int], int] = {}
        for use in chain(walk.casts(self.symbols), walk.literals(self.symbols)):
            conversion, location, symbol, position = use
            key = (
                id(conversion),
                id(location),
            )  # walk and graph keep the objects alive: ids are unique
            if key in times:
                times[key] += 1
            else:
                firsts[key], times[key] = use, 1
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
