"""Lattices by name: the published ones, and those of the rule sets."""

from __future__ import annotations

import difflib
from typing import Any

from graphir.errors import GraphError
from graphir.lattice.order import Lattice
from graphir.lattice.published import PUBLISHED, published
from graphir.promotion.registry import find_rules, rule_sets
from graphir.promotion.rules import PromotionRules


def lattice(name: str) -> Lattice[Any]:
    """The published lattice of that name, or else the lattice of the rule set of that name.

    GraphError where there is neither, or a rule set that has no lattice.
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
    """The lattice of a rule set; GraphError where it has none."""
    if rules.lattice is None:
        raise GraphError(
            f"rule set {rules.name!r} has no lattice: its common dtypes are no joins of one order; "
            f"`graphir table --rules {rules.name}` shows them"
        )
    return rules.lattice
