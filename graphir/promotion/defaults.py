"""The rule set in force where none is named: that of a `with` block, else the process's."""

from __future__ import annotations

from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from typing import Self

    from graphir.promotion.rules import PromotionRules

BLOCKS: ContextVar[tuple[PromotionRules, ...]] = ContextVar("default rules", default=())
"""The rule sets of the `with` blocks around, in each context its own."""

_OF_PROCESS: list[PromotionRules | None] = [None]


def default() -> PromotionRules | None:
    """The rule set of the innermost `with rules(...)` block, else of the process, if any is set."""
    return BLOCKS.get()[-1] if BLOCKS.get() else _OF_PROCESS[0]


def set_default(rules: PromotionRules | None) -> None:
    """Set or clear the default of the process."""
    _OF_PROCESS[0] = rules


class DefaultInside:
    """What makes a rule set the default inside `with rules(...):`."""

    def __enter__(self) -> Self:
        BLOCKS.set((*BLOCKS.get(), cast("Any", self)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        BLOCKS.set(BLOCKS.get()[:-1])
