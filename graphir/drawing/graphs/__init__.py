"""Drawings of graphs: SVG, DOT and Mermaid, with layers in frames and casts coloured by loss.

A drawing shows up to 300 symbols one by one. A larger graph is folded: several symbols share a box,
by layer where the graph has layers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from graphir.drawing.graphs.levels import Level, Mark, Marks, gravest, mark
from graphir.ir.graph import Graph

# The functions import the drawing modules when they are called, because few programs draw.

__all__ = [
    "GRAPH_FORMATS",
    "Level",
    "Mark",
    "Marks",
    "graph_dot",
    "graph_html",
    "graph_mermaid",
    "graph_svg",
    "gravest",
    "mark",
]

Drawer: TypeAlias = Callable[[Graph, "Marks | None"], str]


def graph_svg(graph: Graph, marks: Marks | None = None) -> str:
    """Return the SVG of a graph, light or dark by the reader's colour scheme.

    `marks` maps a symbol's index to the level and the reason of its loss. A cast without a mark is
    drawn with the worst loss that its two dtypes allow.
    """
    from graphir.drawing.graphs.diagram import diagram
    from graphir.drawing.graphs.svg import graph_picture

    return graph_picture(diagram(graph, marks))


def graph_dot(graph: Graph, marks: Marks | None = None) -> str:
    """Return a DOT digraph with layers as clusters; `marks` is as for `graph_svg`."""
    from graphir.drawing.graphs.diagram import diagram
    from graphir.drawing.graphs.markup import dot

    return dot(diagram(graph, marks))


def graph_mermaid(graph: Graph, marks: Marks | None = None) -> str:
    """Return a Mermaid flowchart with layers as subgraphs; `marks` is as for `graph_svg`."""
    from graphir.drawing.graphs.diagram import diagram
    from graphir.drawing.graphs.markup import mermaid

    return mermaid(diagram(graph, marks))


def graph_html(graph: Graph, marks: Marks | None = None) -> str:
    """Return an HTML fragment for notebooks: the SVG, and the graph's text in a folded section."""
    from graphir.drawing.graphs.page import graph_fragment

    return graph_fragment(graph, marks)


GRAPH_FORMATS: dict[str, Drawer] = {
    "svg": graph_svg,
    "dot": graph_dot,
    "mermaid": graph_mermaid,
}
"""The functions that draw a graph with marks, by the name of the format."""
