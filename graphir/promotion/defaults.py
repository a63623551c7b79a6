"""The rule set in force where none is named: that of a `with` block, else the process's."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
