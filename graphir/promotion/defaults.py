"""The default rule set: that of the innermost `with rules(...)` block, else the process's."""

from __future__ import annotations

from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from typing import Self

    from graphir.promotion.rules import PromotionRules

BLOCKS: ContextVar[tuple[PromotionRules, ...]] = ContextVar("default rules", default=())
"""The rule sets of the enclosing `with` blocks, the innermost last.

Each context has its own tuple.
"""

_OF_PROCESS: list[PromotionRules | None] = [None]


def default() -> PromotionRules | None:
    """Return the rule set of the innermost `with rules(...)` block, else the process's or None."""
    return BLOCKS.get()[-1] if BLOCKS.get() else _OF_PROCESS[0]


def set_default(rules: PromotionRules | None) -> None:
    """Set the default rule set of the process, or clear it with None."""
    _OF_PROCESS[0] = rules


class DefaultInside:
    """Context manager: inside `with rules(...):` the rule set is the default."""

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
