"""Lattices by name: the published ones, and those of the rule sets."""

from __future__ import annotations

import difflib
from typing import Any

from graphir.dtype_lattices.order import Lattice
from graphir.dtype_lattices.published import PUBLISHED, published
from graphir.errors import GraphError
from graphir.promotion.registry import find_rules, rule_sets
from graphir.promotion.rules import PromotionRules


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
