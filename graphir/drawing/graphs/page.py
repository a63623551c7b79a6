"""An HTML fragment with the picture and the text of a graph."""

from __future__ import annotations

from html import escape
from itertools import islice

from graphir.ir.graph import Graph
from graphir.text.printer import text_lines

LINES = 1000
"""The most lines of text in a fragment."""


def fragment(picture: str, graph: Graph) -> str:
    """Return HTML with the picture in a scrolling box, and the graph's text in a folded section."""
    lines = [*islice(text_lines(graph), LINES + 1)]
    if len(lines) > LINES:
        lines[-1] = f"  ... of {len(graph)} symbols; print(graph) shows all"
    return (
        f'<div style="overflow:auto;max-height:80vh">{picture}</div>\n'
        f'<details><summary>text</summary><pre style="overflow:auto">'
        f"{escape(chr(10).join(lines))}</pre></details>"
    )
