"""Policy: the actions for the implicit casts of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

from graphir.errors import GraphError, PromotionError
from graphir.passes.analysis.policies.patterns import cast_pattern

# The modules that search for casts are imported at first use: most graphs have no policy.
if TYPE_CHECKING:
    from graphir.dtypes import DType
    from graphir.ir.graph import Graph
    from graphir.ir.symbol import Symbol
    from graphir.loss import Loss
    from graphir.passes.analysis.policies.hits import CastHit

Action: TypeAlias = Literal["allow", "warn", "forbid"]


class Verdict(NamedTuple):
    """The action for a cast, and the words of the policy that decided it."""

    action: Action
    why: tuple[str, ...]

    def __str__(self) -> str:
        verb = {"allow": "allowed", "warn": "warned of", "forbid": "forbidden"}[self.action]
        return f"{verb} by {', '.join(self.why)}"


@dataclass(frozen=True, init=False)
class Policy:
    """The actions for the implicit casts of a graph.

    `casts` is the default action: "allow", "warn" or "forbid". The patterns in `forbid`, `warn` and
    `allow` refine the default (see `cast_pattern`): the strictest action whose patterns match a
    cast wins. A Python number that takes the dtype of its partner is no cast, unless it overflows
    or underflows. Raises GraphError for an unknown pattern or action.
    """

    casts: Action
    forbid: tuple[str, ...]
    warn: tuple[str, ...]
    allow: tuple[str, ...]

    def __init__(
        self,
        casts: Action = "allow",
        forbid: str | Iterable[str] = (),
        warn: str | Iterable[str] = (),
        allow: str | Iterable[str] = (),
    ) -> None:
        if casts not in get_args(Action):
            raise GraphError("casts is 'allow', 'warn' or 'forbid'", got=f"{casts!r}")
        self.__dict__.update(
            casts=casts, forbid=_kinds(forbid), warn=_kinds(warn), allow=_kinds(allow)
        )

    @property
    def silent(self) -> bool:
        """Whether the policy allows every graph."""
        return self.casts == "allow" and not (self.forbid or self.warn)

    def judge(self, source: DType, target: DType, loss: Loss) -> Verdict:
        """Return the verdict on a cast with this loss: the action and the matching patterns."""
        sets: tuple[tuple[Action, tuple[str, ...]], ...]
        sets = ("forbid", self.forbid), ("warn", self.warn), ("allow", self.allow)
        for action, words in sets:
            why = tuple(repr(w) for w in words if cast_pattern(w).matches(source, target, loss))
            if why:
                return Verdict(action, why)
        return Verdict(self.casts, (f"casts={self.casts!r}",))

    def hits(self, graph: Graph, outputs: Sequence[Symbol] = ()) -> list[CastHit]:
        """Return what the policy warns of or forbids: one hit per line and kind, in graph order.

        Omits casts that are not live for `outputs` (by default the outputs of the graph). An
        explicit graph, as after `implicit_cast`, implies no casts.
        """
        from graphir.passes.analysis.policies.hits import find_hits

        return find_hits(self, graph, outputs or graph.outputs)

    def check(self, graph: Graph, outputs: Sequence[Symbol] = ()) -> None:
        """Raise one PromotionError for all forbidden hits; without any, warn at the hits' lines."""
        if self.silent:
            return
        from graphir.passes.analysis.casts.report import cast_report
        from graphir.passes.analysis.policies.hits import refusal, warn_of

        hits = self.hits(graph, outputs)
        forbidden = [hit for hit in hits if hit.action == "forbid"]
        if forbidden:
            report = cast_report(graph.with_outputs(outputs or graph.outputs))
            raise PromotionError(refusal(graph.name, forbidden, report.sentences))
        warn_of(hits)


def _kinds(words: str | Iterable[str]) -> tuple[str, ...]:
    """Check patterns and return them sorted and distinct."""
    kinds = [words] if isinstance(words, str) else list(words)
    for word in kinds:
        if not isinstance(word, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise GraphError("a kind of cast is text such as 'to:float64'", got=f"{word!r}")
    for word in sorted(kinds):
        cast_pattern(word)
    return tuple(sorted({word.strip() for word in kinds}))
