"""Drawings of lattices with highlighted paths: a listing by levels, SVG, DOT and Mermaid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from graphir.drawing.diagram import Diagram, Look, NodeBox
from graphir.drawing.dot_and_mermaid import dot, mermaid
from graphir.drawing.svg import diagram_svg
from graphir.dtype_lattices.order import Lattice
from graphir.dtypes import DType
from graphir.errors import GraphError
from graphir.escape import printable
from graphir.markup import LARGEST, folded, fragment, paragraphs, tag, verbatim

Paths: TypeAlias = Iterable[Sequence[Any]]
"""Chains of nodes from below, as `Lattice.reason` returns; a node or its text."""


class Highlights(NamedTuple):
    """The highlighted elements of a drawing: the edges and nodes of paths, and their end nodes."""

    edges: frozenset[tuple[Any, Any]] = frozenset()
    nodes: frozenset[Any] = frozenset()
    joins: frozenset[Any] = frozenset()


def highlights_of(lattice: Lattice[Any], paths: Paths) -> Highlights:
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
    return Highlights(frozenset(steps), frozenset(nodes), joins)


def lattice_text(lattice: Lattice[Any], paths: Paths = ()) -> str:
    """Return a listing of a lattice: nodes by level from below, each with the nodes above it.

    The highlighted paths and their joins follow.
    """
    paths = [tuple(path) for path in paths]
    joins = highlights_of(lattice, paths).joins
    layers = lattice.levels()
    lines = [
        f"lattice {lattice.name}: {len(lattice)} nodes, {len(lattice.pairs())} edges, "
        f"{len(layers)} levels",
        "each line: a node -> the nodes directly above it",
    ]
    width = max((len(str(node)) for node in lattice), default=0)
    for number, layer in enumerate(layers):
        for i, node in enumerate(layer):
            label = f"level {number}" if i == 0 else ""
            above = ", ".join(map(str, lattice.edges.get(node, ())))
            arrow = f"{str(node).ljust(width)} -> {above}" if above else f"{node} (top)"
            lines.append(f"{label.ljust(9)} {arrow}")
    lines += [f"path      {' -> '.join(map(str, path))}" for path in paths]
    if joins:
        lines.append(f"join      {', '.join(str(node) for node in lattice if node in joins)}")
    return "\n".join(lines)


def lattice_diagram(lattice: Lattice[Any], paths: Paths = ()) -> Diagram:
    """Return the diagram of a lattice, which grows upwards, with highlighted paths."""
    highlights = highlights_of(lattice, paths)
    looks = dict[Any, Look](dict.fromkeys(highlights.nodes, "marked"))
    looks |= dict.fromkeys(highlights.joins, "join")
    number = {node: i for i, node in enumerate(lattice.nodes)}
    ends = {(low, high): (number[low], number[high]) for low, high in lattice.pairs()}
    boxes = [
        NodeBox(
            (printable(str(node), None),),
            "",
            looks.get(node, "node"),
            node if isinstance(node, DType) else None,
        )
        for node in lattice.nodes
    ]
    return Diagram(
        f"Lattice {lattice.name}",
        boxes,
        [*number.values()],
        {ends[low, high]: f"{low} < {high}" for low, high in ends},
        True,
        frozenset(ends[edge] for edge in highlights.edges),
        frozenset(ends[edge] for edge in lattice.redundant()),
    )


def lattice_dot(lattice: Lattice[Any], paths: Paths = ()) -> str:
    """Return a DOT digraph of a lattice for Graphviz that grows upwards."""
    return dot(lattice_diagram(lattice, paths))


def lattice_mermaid(lattice: Lattice[Any], paths: Paths = ()) -> str:
    """Return a Mermaid flowchart of a lattice that grows upwards."""
    return mermaid(lattice_diagram(lattice, paths))


def lattice_svg(lattice: Lattice[Any], paths: Paths = ()) -> str:
    """Return the SVG of a lattice with the least nodes at the bottom."""
    return diagram_svg(lattice_diagram(lattice, paths))


def lattice_html(lattice: Lattice[Any]) -> str:
    """Return an HTML fragment for notebooks: the SVG, and the levels of a lattice too large for it.

    The levels of others are in a folded section.
    """
    head = f"Lattice {lattice.name}: {len(lattice)} nodes, {len(lattice.pairs())} edges"
    levels = verbatim(lattice_text(lattice).split("\n"))
    drawing = lattice_svg(lattice) if len(lattice) <= _MOST else ""
    if drawing and len(drawing) <= LARGEST // 2:
        levels = tag("div", drawing, class_="scroll light") + folded("Levels", levels)
    return fragment(paragraphs([head]), levels)


_MOST = 100  # the most nodes of a drawing in a notebook


LATTICE_FORMATS: dict[str, Callable[[Lattice[Any], Paths], str]] = {
    "text": lattice_text,
    "dot": lattice_dot,
    "mermaid": lattice_mermaid,
    "svg": lattice_svg,
}
"""The functions that draw a lattice with paths, by the name of the format."""
