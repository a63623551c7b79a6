"""Drawings of lattices: a listing by levels, DOT and Mermaid."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from graphir.errors import GraphError
from graphir.lattice import Lattice
from graphir.promotion import PromotionRules


def lattice_of(rules: PromotionRules) -> Lattice[Any]:
    """The lattice of a rule set; GraphError where it has none."""
    if rules.lattice is None:
        raise GraphError(
            f"rule set {rules.name!r} has no lattice: its common dtypes are no joins of one order; "
            f"`graphir table --rules {rules.name}` shows them"
        )
    return rules.lattice


def levels(lattice: Lattice[Any]) -> list[list[Any]]:
    """The nodes by the length of the longest chain below each, the least first."""
    height: dict[Any, int] = dict.fromkeys(lattice.nodes, 0)
    # As many rounds as there are levels: each moves every node above its neighbours below.
    for _ in lattice.nodes:
        for low, above in lattice.edges.items():
            for high in above:
                height[high] = max(height[high], height[low] + 1)
    return [
        [node for node in lattice.nodes if height[node] == level]
        for level in range(max(height.values(), default=-1) + 1)
    ]


def lattice_text(lattice: Lattice[Any]) -> str:
    """Level by level from below, each node and what lies directly above it."""
    layers = levels(lattice)
    count = sum(map(len, lattice.edges.values()))
    lines = [
        f"lattice {lattice.name}: {len(lattice)} nodes, {count} edges, {len(layers)} levels",
        "each line: a node -> the nodes directly above it",
    ]
    width = max((len(str(node)) for node in lattice), default=0)
    for number, layer in enumerate(layers):
        for i, node in enumerate(layer):
            label = f"level {number}" if i == 0 else ""
            above = ", ".join(map(str, lattice.edges.get(node, ())))
            arrow = f"{str(node).ljust(width)} -> {above}" if above else f"{node} (top)"
            lines.append(f"{label.ljust(9)} {arrow}")
    return "\n".join(lines)


def lattice_dot(lattice: Lattice[Any]) -> str:
    """A digraph for Graphviz, growing upwards, each level in one rank."""
    lines = [f"digraph {_quoted(lattice.name)} {{", "  rankdir=BT;", "  node [shape=box];"]
    for layer in levels(lattice):
        lines += [f"  {{ rank=same; {' '.join(f'{_quoted(node)};' for node in layer)} }}"]
    lines += [f"  {_quoted(low)} -> {_quoted(high)};" for low, high in _edges(lattice)]
    return "\n".join([*lines, "}"])


def lattice_mermaid(lattice: Lattice[Any]) -> str:
    """A Mermaid flowchart, growing upwards."""
    ids = {node: f"n{i}" for i, node in enumerate(lattice)}
    lines = ["flowchart BT", *(f"  {ids[node]}[{_quoted(node)}]" for node in lattice)]
    return "\n".join([*lines, *(f"  {ids[a]} --> {ids[b]}" for a, b in _edges(lattice))])


LATTICE_FORMATS: dict[str, Callable[[Lattice[Any]], str]] = {
    "text": lattice_text,
    "dot": lattice_dot,
    "mermaid": lattice_mermaid,
}
"""The functions that draw a lattice, by the name of what they make."""


def _edges(lattice: Lattice[Any]) -> list[tuple[Any, Any]]:
    return [(low, high) for low, above in lattice.edges.items() for high in above]


def _quoted(node: Any) -> str:
    return json.dumps(str(node), ensure_ascii=False)
