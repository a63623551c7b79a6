"""An HTML fragment with the picture and the text of a graph."""

from __future__ import annotations

from itertools import islice

from graphir.drawing.graphs.diagram import diagram
from graphir.drawing.graphs.levels import Marks
from graphir.drawing.graphs.svg import NOTEBOOK_STYLE, graph_picture
from graphir.ir.graph import Graph
from graphir.markup import folded, fragment, paragraphs, tag, verbatim
from graphir.text.printer import text_lines

_LIMITS = (60, 24, 8)
"""The numbers of boxes to which the picture of a graph is folded, until it is small enough."""

_ROOM = 36_000  # the most characters of a picture
_LINES = 30  # the most lines of text


def graph_fragment(graph: Graph, marks: Marks | None = None) -> str:
    """Return a fragment with the picture in a scrolling box, and the graph's text, folded.

    The picture of a large graph is folded further than that of `graph_svg`, and left out if it is
    too large even so.
    """
    lines = [*islice(text_lines(graph), _LINES + 1)]
    if len(lines) > _LINES:
        lines[_LINES - 1 :] = [f"  ... of {len(graph)} symbols; print(graph) shows all"]
    picture = _picture(graph, marks)
    text = verbatim(lines)
    if not picture:
        return fragment(paragraphs([repr(graph)]), text)
    style = tag("style", NOTEBOOK_STYLE)
    box = tag("div", picture, style="overflow:auto;max-height:min(80vh,600px)")
    return fragment(style, box, folded("Text", text))


def _picture(graph: Graph, marks: Marks | None) -> str:
    for limit in _LIMITS:
        picture = graph_picture(diagram(graph, marks, limit))
        if len(picture) <= _ROOM:
            return picture
    return ""
