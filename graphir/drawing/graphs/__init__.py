"""Pictures of graphs: SVG, DOT and Mermaid, layers framed, casts coloured by what they lose.

Up to 300 symbols are drawn one by one; a larger graph is folded, by layer where it has layers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from graphir.drawing.graphs.levels import Level, Mark, Marks, gravest, mark
from graphir.ir.graph import Graph

# What draws is imported at first use: few programs draw.

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
    """A picture that any browser shows, light or dark as its reader's scheme is.

    `marks` tell of symbols, by their places, how grave the loss of a cast is and why; a cast
    without one is drawn by what its dtypes can lose at most.
    """
    from graphir.drawing.graphs.diagram import diagram
    from graphir.drawing.graphs.svg import graph_picture

    return graph_picture(diagram(graph, marks))


def graph_dot(graph: Graph, marks: Marks | None = None) -> str:
    """A digraph for Graphviz, layers as clusters; `marks` as in `graph_svg`."""
    from graphir.drawing.graphs.diagram import diagram
    from graphir.drawing.graphs.markup import dot

    return dot(diagram(graph, marks))


def graph_mermaid(graph: Graph, marks: Marks | None = None) -> str:
    """A Mermaid flowchart, layers as subgraphs; `marks` as in `graph_svg`."""
    from graphir.drawing.graphs.diagram import diagram
    from graphir.drawing.graphs.markup import mermaid

    return mermaid(diagram(graph, marks))


def graph_html(graph: Graph, marks: Marks | None = None) -> str:
    """A fragment of HTML for notebooks: the picture, and the text of the graph to unfold."""
    from graphir.drawing.graphs.page import fragment

    return fragment(graph_svg(graph, marks), graph)


GRAPH_FORMATS: dict[str, Drawer] = {
    "svg": graph_svg,
    "dot": graph_dot,
    "mermaid": graph_mermaid,
}
"""The functions that draw a graph with marks, by the name of what they make."""
