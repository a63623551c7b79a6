"""Rule sets and lattices by name: `rules(name)`, `register`, `lattice(name)`, the default rules."""

from __future__ import annotations

import difflib
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from graphir.decorators import PublicNames
from graphir.dtype_lattices.order import Lattice
from graphir.dtype_lattices.published import PUBLISHED, published
from graphir.errors import GraphError
from graphir.import_names import declared_names, load_declared

if TYPE_CHECKING:
    from typing import Self

    from graphir.promotion import RuleSetName
    from graphir.promotion.rules import PromotionRules


# -- The default rule set: that of the innermost `with rules(...)` block, else the process's

BLOCKS: ContextVar[tuple[PromotionRules, ...]] = ContextVar("default rules", default=())
"""The rule sets of the enclosing `with` blocks, the innermost last.

Each context has its own tuple.
"""

_OF_PROCESS: list[PromotionRules | None] = [None]


def default() -> PromotionRules | None:
    """Return the rule set of the innermost `with rules(...)` block, else the process's or None."""
    return BLOCKS.get()[-1] if BLOCKS.get() else _OF_PROCESS[0]


class DefaultInside(PublicNames):
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


# -- The registry of rule sets: `rules(name)` returns a rule set, `register` adds one

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
    (graphir.import_names). GraphError names similar rule sets if none has the name.

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
    _OF_PROCESS[0] = None if which is None else rules(which)


# -- Lattices by name: the published ones, and those of the rule sets


def lattice(name: str) -> Lattice[Any]:
    """Return the published lattice of that name, or else the lattice of the rule set of that name.

    The function raises GraphError if the name belongs to neither, or to a rule set without a
    lattice.
    """
    text = str(name)
    if text in PUBLISHED:
        return published(text)
    names_found = find_rules(text)
    if names_found is not None:
        return lattice_of(names_found)
    names = [*PUBLISHED, *(rules.name for rules in rule_sets() if rules.lattice)]
    near = difflib.get_close_matches(text, names, n=3) or names
    raise GraphError(f"no lattice is named {name!r}", fix=f"use {', '.join(near)}")


def lattice_of(rules: PromotionRules) -> Lattice[Any]:
    """Return the lattice of a rule set; raise GraphError if the rule set has none."""
    if rules.lattice is None:
        raise GraphError(
            f"rule set {rules.name!r} has no lattice: its common dtypes are no joins of one order",
            fix=f"see `graphir table --rules {rules.name}`",
        )
    return rules.lattice
