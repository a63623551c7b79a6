"""The registry of rule sets: `rules(name)` finds one, `register` adds one."""

from __future__ import annotations

import difflib

from graphir.dtypes import DType
from graphir.errors import GraphError
from graphir.promotion.explicit import EXPLICIT
from graphir.promotion.max import MAX, MAX_STRICT
from graphir.promotion.python import PYTHON
from graphir.promotion.rules import Explanation, PromotionRules, default

__all__ = ["Explanation", "PromotionRules", "implicit_cast_type", "register", "rule_sets", "rules"]

_REGISTRY: dict[str, PromotionRules] = {}


def register(new: PromotionRules) -> PromotionRules:
    """Make a rule set findable by its name; GraphError where the name is taken by another."""
    if not isinstance(new, PromotionRules):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise GraphError(f"register() takes a PromotionRules, not {new!r}")
    if _REGISTRY.setdefault(new.name, new) is not new:
        raise GraphError(f"a rule set named {new.name!r} is registered already")
    return new


def rules(which: str | PromotionRules | None = None) -> PromotionRules:
    """The rule set of that name; without one, the default: that of the innermost block, or "max".

    A rule set given itself is registered by that, so that text and reports find it by its name.
    `with rules("max_strict"):` makes a rule set the default inside the block.
    """
    if which is None:
        return default() or MAX
    if isinstance(which, PromotionRules):
        return register(which)
    try:
        return _REGISTRY[which]
    except (KeyError, TypeError):
        near = difflib.get_close_matches(str(which), _REGISTRY, n=3) or _REGISTRY
        raise GraphError(
            f"no rule set is named {which!r}; there is {', '.join(near)}, and register() adds one"
        ) from None


def rule_sets() -> tuple[PromotionRules, ...]:
    """Every registered rule set, in order of registration."""
    return tuple(_REGISTRY.values())


def implicit_cast_type(
    lhs: object, rhs: object, rules: str | PromotionRules | None = None
) -> DType:
    """The dtype in which two operands meet under a rule set (see PromotionRules.promote)."""
    return _rules(rules).promote(lhs, rhs)


_rules = rules

for _each in (MAX, MAX_STRICT, EXPLICIT, PYTHON):
    register(_each)
