"""Drawings of lattices: a listing by levels, SVG, DOT and Mermaid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphir.drawing.diagram import Diagram, NodeBox
from graphir.drawing.dot_and_mermaid import dot, mermaid
from graphir.drawing.svg import diagram_svg
from graphir.dtype_lattices.order import Lattice
from graphir.dtypes import DType
from graphir.escape import printable
from graphir.markup import LARGEST, folded, fragment, paragraphs, tag, verbatim


def lattice_text(lattice: Lattice[Any]) -> str:
    """Return a listing of a lattice: nodes by level from below, each with the nodes above it."""
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
    return "\n".join(lines)


def lattice_diagram(lattice: Lattice[Any]) -> Diagram:
    """Return the diagram of a lattice, which grows upwards."""
    number = {node: i for i, node in enumerate(lattice.nodes)}
    boxes = [
        NodeBox(
            (printable(str(node), None),), "", "node", node if isinstance(node, DType) else None
        )
        for node in lattice.nodes
    ]
    links = {(number[low], number[high]): f"{low} < {high}" for low, high in lattice.pairs()}
    return Diagram(f"Lattice {lattice.name}", boxes, [*number.values()], links, True)


def lattice_dot(lattice: Lattice[Any]) -> str:
    """Return a DOT digraph of a lattice for Graphviz that grows upwards."""
    return dot(lattice_diagram(lattice))


def lattice_mermaid(lattice: Lattice[Any]) -> str:
    """Return a Mermaid flowchart of a lattice that grows upwards."""
    return mermaid(lattice_diagram(lattice))


def lattice_svg(lattice: Lattice[Any]) -> str:
    """Return the SVG of a lattice with the least nodes at the bottom."""
    return diagram_svg(lattice_diagram(lattice))


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


LATTICE_FORMATS: dict[str, Callable[[Lattice[Any]], str]] = {
    "text": lattice_text,
    "dot": lattice_dot,
    "mermaid": lattice_mermaid,
    "svg": lattice_svg,
}
"""The functions that draw a lattice, by the name of the format."""
