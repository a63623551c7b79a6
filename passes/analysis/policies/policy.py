"""Policy: what happens to the implicit casts of a graph, and which dtypes it may have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from graphir.dtypes import DType, DTypeLike
from graphir.errors import GraphError, PromotionError
from passes.analysis.policies.budget import limit, too_wide
from passes.analysis.policies.verdict import Action, Verdict

# What finds and tells of casts is imported where a policy asks for it: most graphs have none.
if TYPE_CHECKING:
    from graphir.ir.graph import Graph
    from graphir.ir.symbol import Symbol
    from graphir.loss import Loss
    from passes.analysis.policies.hits import Hit


@dataclass(frozen=True, init=False)
class Policy:
    """What happens to the implicit casts of a graph, and the widest dtypes that it may have.

    `casts` is what happens to each: "allow", "warn" or "forbid". The kinds of casts in `forbid`,
    `warn` and `allow` refine it (see `cast_pattern`): of the sets that name a cast the strictest
    wins, and `casts` holds where none does. `widest` are dtypes that no symbol may exceed, be it by
    promotion or by the program's own hand: int and uint limit both, float also the parts of complex
    numbers, complex these alone. A Python number that takes the dtype of its partner is no cast,
    unless it overflows or underflows there. GraphError for words that name no kind.
    """

    casts: Action
    forbid: tuple[str, ...]
    warn: tuple[str, ...]
    allow: tuple[str, ...]
    widest: tuple[DType, ...]

    def __init__(
        self,
        casts: Action = "allow",
        forbid: str | Iterable[str] = (),
        warn: str | Iterable[str] = (),
        allow: str | Iterable[str] = (),
        widest: DTypeLike | Iterable[DTypeLike] = (),
    ) -> None:
        if casts not in get_args(Action):
            raise GraphError(f"casts is 'allow', 'warn' or 'forbid', not {casts!r}")
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
        """Whether it has nothing to say of any graph."""
        return self.casts == "allow" and not (self.forbid or self.warn or self.widest)

    @property
    def too_wide(self) -> frozenset[DType]:
        """The dtypes that exceed the widest."""
        return too_wide(self.widest)

    def judge(self, source: DType, target: DType, loss: Loss) -> Verdict:
        """What happens to a cast that loses this, and the words that say so."""
        from passes.analysis.policies.patterns import cast_pattern

        sets: tuple[tuple[Action, tuple[str, ...]], ...]
        sets = ("forbid", self.forbid), ("warn", self.warn), ("allow", self.allow)
        for action, words in sets:
            why = tuple(repr(w) for w in words if cast_pattern(w).matches(source, target, loss))
            if why:
                return Verdict(action, why)
        return Verdict(self.casts, (f"casts={self.casts!r}",))

    def hits(self, graph: Graph, outputs: Sequence[Symbol] = ()) -> list[Hit]:
        """All that it warns of or forbids in a graph, each line and kind once, in graph order.

        Casts that no output needs (of those given, or else those that the graph has) are left out.
        A graph whose casts are written down, as after `implicit_cast`, implies none.
        """
        from passes.analysis.policies.judgement import find_hits

        return find_hits(self, graph, outputs or graph.outputs)

    def check(self, graph: Graph, outputs: Sequence[Symbol] = ()) -> None:
        """Raise one PromotionError for all hits that it forbids; else warn, at their lines."""
        if self.silent:
            return
        from passes.analysis.policies.hits import refusal
        from passes.analysis.policies.warning import warn_of

        hits = self.hits(graph, outputs)
        forbidden = [hit for hit in hits if hit.action == "forbid"]
        if forbidden:
            raise PromotionError(refusal(graph.name, forbidden))
        warn_of(hits)


def _several(value: Any) -> Iterable[Any]:
    """What was given, one or several."""
    several = isinstance(value, Iterable) and not isinstance(value, (str, DType, type))
    return value if several else (value,)  # pyright: ignore[reportUnknownVariableType]


def _kinds(words: str | Iterable[str]) -> tuple[str, ...]:
    """Words that each name a kind of cast, sorted; there is mostly none."""
    kinds = list(_several(words))
    if kinds:
        from passes.analysis.policies.patterns import cast_pattern

        for word in kinds:
            if not isinstance(word, str):
                raise GraphError(f"a kind of cast is text such as 'to:float64', not {word!r}")
        for word in sorted(kinds):
            cast_pattern(word)
    return tuple(sorted({word.strip() for word in kinds}))
