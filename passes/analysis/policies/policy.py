"""Policy: the actions for the implicit casts of a graph, and the budget of dtypes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from graphir.dtypes import DType, DTypeLike
from graphir.errors import GraphError, PromotionError
from graphir.passes.analysis.policies.patterns import Action, Verdict, cast_pattern, limit, too_wide

# The modules that search for casts are imported at first use: most graphs have no policy.
if TYPE_CHECKING:
    from graphir.hints import CastKindName
    from graphir.ir.graph import Graph
    from graphir.ir.symbol import Symbol
    from graphir.loss import Loss
    from graphir.passes.analysis.policies.hits import Hit
    from graphir.passes.analysis.policies.patterns import CastKind

CastKinds: TypeAlias = "CastKindName | CastKind | Iterable[CastKindName | CastKind]"


@dataclass(frozen=True, init=False)
class Policy:
    """The actions for the implicit casts of a graph, and the widest dtypes that it may have.

    `casts` is the default action: "allow", "warn" or "forbid". The patterns in `forbid`, `warn` and
    `allow` refine the default (see `cast_pattern`): the strictest action whose patterns match a
    cast wins. `widest` are the limits of the dtype budget. No symbol may exceed them, neither by
    promotion nor by a dtype that the program names itself: an int or uint limit applies to int and
    uint, a float limit to floats and to the parts of complex numbers, a complex limit to complex
    numbers alone. A Python number that takes the dtype of its partner is no cast, unless it
    overflows or underflows. Raises GraphError for an unknown pattern, action or limit.
    """

    casts: Action
    forbid: tuple[str, ...]
    warn: tuple[str, ...]
    allow: tuple[str, ...]
    widest: tuple[DType, ...]

    def __init__(
        self,
        casts: Action = "allow",
        forbid: CastKinds = (),
        warn: CastKinds = (),
        allow: CastKinds = (),
        widest: DTypeLike | Iterable[DTypeLike] = (),
    ) -> None:
        if casts not in get_args(Action):
            raise GraphError("casts is 'allow', 'warn' or 'forbid'", got=f"{casts!r}")
        limits = {limit(DType(each)) for each in _several(widest)}
        self.__dict__.update(
            casts=casts,
            forbid=_kinds(forbid),
            warn=_kinds(warn),
            allow=_kinds(allow),
            widest=tuple(sorted(limits, key=str)),
        )

    @property
    def silent(self) -> bool:
        """Whether the policy allows every graph."""
        return self.casts == "allow" and not (self.forbid or self.warn or self.widest)

    @property
    def too_wide(self) -> frozenset[DType]:
        """The dtypes that exceed the limits in `widest`."""
        return too_wide(self.widest)

    def judge(self, source: DType, target: DType, loss: Loss) -> Verdict:
        """Return the verdict on a cast with this loss: the action and the matching patterns."""
        sets: tuple[tuple[Action, tuple[str, ...]], ...]
        sets = ("forbid", self.forbid), ("warn", self.warn), ("allow", self.allow)
        for action, words in sets:
            why = tuple(repr(w) for w in words if cast_pattern(w).matches(source, target, loss))
            if why:
                return Verdict(action, why)
        return Verdict(self.casts, (f"casts={self.casts!r}",))

    def hits(self, graph: Graph, outputs: Sequence[Symbol] = ()) -> list[Hit]:
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
        from graphir.passes.analysis.policies.hits import refusal, warn_of

        hits = self.hits(graph, outputs)
        forbidden = [hit for hit in hits if hit.action == "forbid"]
        if forbidden:
            raise PromotionError(refusal(graph.name, forbidden, _sentences(graph, outputs)))
        warn_of(hits)


def _sentences(graph: Graph, outputs: Sequence[Symbol]) -> list[str]:
    """Return the sentences that explain why outputs are wider than all inputs."""
    from graphir.passes.analysis.casts.report import cast_report

    return cast_report(graph.with_outputs(outputs or graph.outputs)).sentences


def _several(value: Any) -> Iterable[Any]:
    """Return an iterable as it is, and a single value as a tuple."""
    several = isinstance(value, Iterable) and not isinstance(value, (str, DType, type))
    return value if several else (value,)  # pyright: ignore[reportUnknownVariableType]


def _kinds(words: CastKinds) -> tuple[str, ...]:
    """Check patterns and return them sorted and distinct."""
    kinds = list(_several(words))
    for word in kinds:
        if not isinstance(word, str):
            raise GraphError("a kind of cast is text such as 'to:float64'", got=f"{word!r}")
    for word in sorted(kinds):
        cast_pattern(word)
    return tuple(sorted({word.strip() for word in kinds}))
