"""Random partial orders, and their least upper bounds by networkx."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx
from hypothesis import strategies as st


def minimal_bounds(edges: Mapping[Any, Any], *nodes: Any) -> set[Any]:
    """The minimal common upper bounds, by networkx's reachability alone."""
    graph = nx.DiGraph((a, b) for a, above in edges.items() for b in above)
    graph.add_nodes_from(edges)
    common = set.intersection(*({n} | nx.descendants(graph, n) for n in nodes))
    return {n for n in common if not any(m != n and nx.has_path(graph, m, n) for m in common)}


@st.composite
def orders(draw: st.DrawFn) -> dict[int, list[int]]:
    """A random acyclic order over at most 7 nodes, mentioned in random order."""
    size = draw(st.integers(1, 7))
    names = draw(st.permutations(range(size)))
    pairs = [(i, j) for i in range(size) for j in range(i + 1, size)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True) if pairs else st.just([]))
    edges: dict[int, list[int]] = {name: [] for name in draw(st.permutations(names))}
    for i, j in chosen:
        edges[names[i]].append(names[j])
    return edges
