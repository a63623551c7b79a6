"""Drawings of graphs: SVG, DOT and Mermaid, with layers in frames and casts coloured by loss.

A drawing shows up to 300 symbols one by one. A larger graph is folded: several symbols share a box,
by layer where the graph has layers.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from graphir.drawing.diagram import graph_diagram
from graphir.drawing.dot_and_mermaid import dot, mermaid
from graphir.drawing.loss_levels import Marks
from graphir.drawing.svg import diagram_svg
from graphir.ir.graph import Graph
from graphir.markup import folded, fragment, paragraphs, tag, verbatim
from graphir.text.printer import text_lines


def graph_svg(graph: Graph, marks: Marks | None = None) -> str:
    """Return the SVG of a graph, light or dark by the reader's colour scheme.

    `marks` maps a symbol's index to the level and the reason of its loss. A cast without a mark is
    drawn with the worst loss that its two dtypes allow.
    """
    return diagram_svg(graph_diagram(graph, marks))


def graph_dot(graph: Graph, marks: Marks | None = None) -> str:
    """Return a DOT digraph with layers as clusters; `marks` is as for `graph_svg`."""
    return dot(graph_diagram(graph, marks))


def graph_mermaid(graph: Graph, marks: Marks | None = None) -> str:
    """Return a Mermaid flowchart with layers as subgraphs; `marks` is as for `graph_svg`."""
    return mermaid(graph_diagram(graph, marks))


GRAPH_FORMATS: dict[str, Callable[[Graph, Marks | None], str]] = {
    "svg": graph_svg,
    "dot": graph_dot,
    "mermaid": graph_mermaid,
}
"""The functions that draw a graph with marks, by the name of the format."""


_LIMITS = (60, 24, 8)
"""The numbers of boxes to which the picture of a graph is folded, until it is small enough."""

_ROOM = 36_000  # the most characters of a picture in a notebook
_LINES = 30  # the most lines of text


def graph_html(graph: Graph, marks: Marks | None = None) -> str:
    """Return an HTML fragment: the picture in a scrolling box, and the graph's text, folded.

    The picture of a large graph is folded further than that of `graph_svg`, and left out if it is
    too large even so.
    """
    lines = [*islice(text_lines(graph), _LINES + 1)]
    if len(lines) > _LINES:
        lines[_LINES - 1 :] = [f"  ... of {len(graph)} symbols; print(graph) shows all"]
    text = verbatim(lines)
    pictures = (diagram_svg(graph_diagram(graph, marks, limit)) for limit in _LIMITS)
    picture = next((picture for picture in pictures if len(picture) <= _ROOM), "")
    if not picture:
        return fragment(paragraphs([repr(graph)]), text)
    style = "overflow:auto;max-height:min(80vh,600px)"
    return fragment(tag("div", picture, class_="light", style=style), folded("Text", text))
