"""The nodes and edges that paths highlight in the drawing of a lattice, and their colour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from graphir.dtype_lattices.order import Lattice
from graphir.errors import GraphError

Paths: TypeAlias = Iterable[Sequence[Any]]
"""Chains of nodes from below, as `Lattice.reason` returns; a node or its text."""

ACCENT = "#c2255c"
"""The colour of highlighted paths. No other element of a drawing has it."""


class Marks(NamedTuple):
    """The highlighted elements of a drawing: the edges and nodes of paths, and their end nodes."""

    edges: frozenset[tuple[Any, Any]] = frozenset()
    nodes: frozenset[Any] = frozenset()
    joins: frozenset[Any] = frozenset()


def marks(lattice: Lattice[Any], paths: Paths) -> Marks:
    """Return the elements that paths highlight.

    Raises GraphError for a step that is not an edge of the lattice, and for an unknown node.
    """
    nodes_by_name = {str(node): node for node in lattice}
    chains = [tuple(nodes_by_name.get(str(node), node) for node in path) for path in paths]
    steps = [step for chain in chains for step in pairwise(chain)]
    for low, high in steps:
        if high not in lattice.edges.get(low, ()):
            raise GraphError(
                f"lattice {lattice.name!r} has no edge from {low} to {high}",
                fix="mark an edge of lattice.edges",
            )
    nodes = [node for chain in chains for node in chain]
    if missing := [node for node in nodes if node not in lattice]:
        raise GraphError(f"{missing[0]} is not in lattice {lattice.name!r}")
    joins = frozenset(chain[-1] for chain in chains if chain)
    return Marks(frozenset(steps), frozenset(nodes), joins)
