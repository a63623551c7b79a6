"""The registry of rule sets: `rules(name)` finds one, `register` adds one."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from graphir.entry_points import declared_names, load_declared
from graphir.errors import GraphError
from graphir.promotion.defaults import DefaultInside, default, set_default

if TYPE_CHECKING:
    from graphir.promotion.rules import PromotionRules

_REGISTRY: dict[str, PromotionRules] = {}


def register(new: PromotionRules) -> PromotionRules:
    """Make a rule set findable by its name; GraphError where the name is taken by another.

    One made of an equal lattice is no other: the first is returned.
    """
    if not isinstance(new, DefaultInside):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise GraphError("register() takes a PromotionRules", got=repr(new))
    present = _REGISTRY.setdefault(new.name, new)
    if present is not new and not present.is_same_lattice(new):
        raise GraphError(
            f"a rule set named {new.name!r} is registered already, as rules({new.name!r})",
            fix="give another one another name",
        )
    return present


def rules(which: str | PromotionRules | None = None) -> PromotionRules:
    """The rule set of that name; without one, the default.

    The default is that of the innermost `with rules(...)` block, else what set_default_rules() was
    given last, else "max".

    A name that is unknown here is looked for in other distributions (graphir.entry_points).

    A rule set given itself is registered by that, so that text and reports find it by its name.
    `with rules("max_strict"):` makes a rule set the default inside the block.
    """
    if which is None:
        return rules_in_force(_REGISTRY["max"])
    if isinstance(which, DefaultInside):
        return register(which)
    matches = find_rules(which)
    if matches is None:
        names = [*_REGISTRY, *declared_names("graphir.rules")]
        near = difflib.get_close_matches(str(which), names, n=3) or names
        raise GraphError(
            f"no rule set is named {which!r}; there is {', '.join(near)}, and register() adds one"
        )
    return matches


def find_rules(name: str) -> PromotionRules | None:
    """The rule set of that name, here or in a distribution that declares it; None for none."""
    try:
        return _REGISTRY[name]
    except (KeyError, TypeError):
        declared = load_declared("graphir.rules", name)
        return None if declared is None else register(declared)


def rules_in_force(otherwise: PromotionRules) -> PromotionRules:
    """The rule set of the innermost `with rules(...)`, else the process's, else another."""
    return default() or otherwise


def rule_sets() -> tuple[PromotionRules, ...]:
    """Every registered rule set, in order of registration."""
    return tuple(_REGISTRY.values())


def set_default_rules(which: str | PromotionRules | None) -> None:
    """Make a rule set the default of the process, outside of `with rules(...)`; None: "max"."""
    set_default(None if which is None else rules(which))
