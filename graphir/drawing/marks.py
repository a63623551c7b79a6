"""What paths mark in the drawing of a lattice, and the colour of the marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from graphir.errors import GraphError
from graphir.lattice.order import Lattice

Paths: TypeAlias = Iterable[Sequence[Any]]
"""Chains of edges from below, as `Lattice.reason` gives them; nodes may be given by their text."""

ACCENT = "#c2255c"
"""The colour of paths, which nothing else has."""


class Marks(NamedTuple):
    """What paths mark in a drawing: edges, nodes on the way, and joins, where paths end."""

    edges: frozenset[tuple[Any, Any]] = frozenset()
    nodes: frozenset[Any] = frozenset()
    joins: frozenset[Any] = frozenset()


def marks(lattice: Lattice[Any], paths: Paths) -> Marks:
    """What paths mark; GraphError for a step that is no edge of the lattice."""
    nodes_by_name = {str(node): node for node in lattice}
    chains = [tuple(nodes_by_name.get(str(node), node) for node in path) for path in paths]
    steps = [step for chain in chains for step in pairwise(chain)]
    for low, high in steps:
        if high not in lattice.edges.get(low, ()):
            raise GraphError(f"lattice {lattice.name!r} has no edge from {low} to {high}")
    nodes = [node for chain in chains for node in chain]
    if missing := [node for node in nodes if node not in lattice]:
        raise GraphError(f"{missing[0]} is not in lattice {lattice.name!r}")
    joins = frozenset(chain[-1] for chain in chains if chain)
    return Marks(frozenset(steps), frozenset(nodes), joins)
