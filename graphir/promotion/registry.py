"""The registry of rule sets: `rules(name)` returns a rule set, `register` adds one."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, TypeAlias

from graphir.entry_points import declared_names, load_declared
from graphir.errors import GraphError
from graphir.hints import RuleSetName
from graphir.promotion.defaults import DefaultInside, default, set_default

if TYPE_CHECKING:
    from graphir.promotion.rules import PromotionRules

RulesLike: TypeAlias = "PromotionRules | RuleSetName"

_REGISTRY: dict[str, PromotionRules] = {}
_RELEASED: dict[str, PromotionRules] = {}
"""The rule sets of measured releases that were asked for, such as `jax@0.10`."""


def register(new: PromotionRules) -> PromotionRules:
    """Add a rule set to the registry and return the registered rule set.

    If a rule set with the same name and an equal lattice is present, the function returns the
    present rule set. It raises GraphError if another rule set has the name, or if `new` is no
    PromotionRules.
    """
    if not isinstance(new, DefaultInside):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise GraphError("register() takes a PromotionRules", got=repr(new))
    if is_registered(new):
        return new
    present = _REGISTRY.setdefault(new.name, new)
    if present is not new and not present.is_same_lattice(new):
        raise GraphError(
            f"a rule set named {new.name!r} is registered already, as rules({new.name!r})",
            fix="give another one another name",
        )
    return present


def rules(which: RulesLike | None = None) -> PromotionRules:
    """Return the rule set with a name; without a name, return the default rule set.

    The default is that of the innermost `with rules(...)` block, else the rule set most recently
    given to set_default_rules(), else "max".

    If the registry lacks a name, the function looks for it in other distributions
    (graphir.entry_points). GraphError names similar rule sets if none has the name.

    A rule set as the argument is registered, so that text and reports can find it by its name.
    `jax@0.10` is the rule set of a measured release of a library; `jax` is that of the newest.
    `with rules("max_strict"):` makes a rule set the default inside the block.

    Type checkers know the names of the project's rule sets alone; `PromotionRules.find(name)` is
    the same for any text.
    """
    if which is None:
        return rules_in_force(_REGISTRY["max"])
    if isinstance(which, DefaultInside):
        return register(which)
    return require_rules(which)


def require_rules(name: str) -> PromotionRules:
    """Return the rule set of that name; raise GraphError with similar names if none has it."""
    matches = find_rules(name)
    if matches is None:
        names = [*_REGISTRY, *declared_names("graphir.rules")]
        base = _REGISTRY.get(str(name).partition("@")[0])
        names += [f"{base.name}@{release}" for release in base.releases] if base else []
        near = difflib.get_close_matches(str(name), names, n=3) or names
        raise GraphError(
            f"no rule set is named {name!r}",
            fix=(f"use {', '.join(near)}", "add one by register()"),
        )
    return matches


def find_rules(name: str) -> PromotionRules | None:
    """Return the rule set of that name, registered or declared by a distribution, or None."""
    try:
        return _REGISTRY.get(name) or _RELEASED[name]
    except TypeError:
        return None
    except KeyError:
        base, _, release = name.partition("@")
        if base in _REGISTRY and release in _REGISTRY[base].releases:
            return _RELEASED.setdefault(name, _REGISTRY[base].with_release(release))
        declared = load_declared("graphir.rules", name)
        return None if declared is None else register(declared)


def is_registered(which: PromotionRules) -> bool:
    """Whether the registry returns this rule set for its name."""
    return which in (_REGISTRY.get(which.name), _RELEASED.get(which.name))


def rules_in_force(otherwise: PromotionRules) -> PromotionRules:
    """Return the rule set of the innermost `with rules(...)`, else the process's or `otherwise`."""
    return default() or otherwise


def rule_sets() -> tuple[PromotionRules, ...]:
    """Return every registered rule set, in order of registration."""
    return tuple(_REGISTRY.values())


def set_default_rules(which: RulesLike | None) -> None:
    """Set the process's default rule set, used outside of `with rules(...)`.

    None restores "max".
    """
    set_default(None if which is None else rules(which))
