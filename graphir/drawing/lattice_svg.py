"""The SVG of a lattice: rounded boxes tinted by dtype family, curved lines, highlighted paths."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from graphir.drawing.hasse import FONT, HEIGHT, LatticeBox, Point, layout
from graphir.drawing.marks import ACCENT, Marks
from graphir.dtype_lattices.order import Lattice
from graphir.dtypes import DType
from graphir.escape import printable

FAMILY = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

TINTS = {
    "bool": ("#f1f3f5", "#868e96"),
    "uint": ("#e3fafc", "#1098ad"),
    "int": ("#e7f5ff", "#1c7ed6"),
    "float": ("#fff4e6", "#e8590c"),
    "complex": ("#f3f0ff", "#7048e8"),
    "weak": ("#ebfbee", "#2f9e44"),
    "other": ("#f8f9fa", "#495057"),
}
"""The fill and stroke colours of boxes, by dtype family."""


def picture(lattice: Lattice[Any], marks: Marks) -> str:
    """Return the SVG of a lattice, which a browser shrinks to the available width.

    The title of a line names its two nodes. Redundant edges are dotted. The background is light on
    every page. The SVG has no style sheet: the page does not style it, and it does not style the
    page.
    """
    plan = layout(lattice)
    redundant = set(lattice.redundant())
    name = escaped(f"Lattice {lattice.name}")
    width, height = number(plan.width), number(plan.height)
    # Highlighted edges come last, so that they lie on top of the others.
    edges = sorted(plan.lines, key=lambda edge: edge in marks.edges)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{name}" '
            f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'style="max-width:100%;height:auto">',
            f"<title>{name}</title>",
            f'<rect class="paper" width="{width}" height="{height}" rx="8" fill="#ffffff"/>',
            '<g fill="none">',
            *(_line(edge, plan.lines[edge], marks, edge in redundant) for edge in edges),
            "</g>",
            f'<g font-family="{FAMILY}" font-size="{number(FONT)}" text-anchor="middle">',
            *(_node(node, box, marks) for node, box in plan.boxes.items()),
            "</g>",
            "</svg>",
        ]
    )


def _line(edge: tuple[Any, Any], points: Sequence[Point], marks: Marks, redundant: bool) -> str:
    stroke = 'stroke="#868e96" stroke-width="1.3"'
    if edge in marks.edges:
        stroke = f'stroke="{ACCENT}" stroke-width="3"'
    if redundant:
        stroke += ' stroke-dasharray="2 4"'
    title = escaped(f"{edge[0]} < {edge[1]}")
    return f'<path {stroke} d="{curve(points)}"><title>{title}</title></path>'


def curve(points: Sequence[Point]) -> str:
    """Return an SVG path: vertical within rows, an S curve between rows.

    An S curve stays between the heights of its two ends.
    """
    parts: list[str] = []
    for (x, y), (to_x, to_y) in zip(points[::2], points[1::2], strict=True):
        half = (y + to_y) / 2
        bend = ((x, half), (to_x, half), (to_x, to_y))
        parts.append(f"{'L' if parts else 'M'}{pair(x, y)} C{' '.join(pair(*p) for p in bend)}")
    return " ".join(parts)


def _node(node: Any, box: LatticeBox, marks: Marks) -> str:
    fill, stroke, ink = *TINTS[kind_of(node)], "#212529"
    frame, bold = "1.2", ""
    if node in marks.nodes:
        stroke, frame = ACCENT, "2.5"
    if node in marks.joins:
        fill, ink, bold = ACCENT, "#ffffff", ' font-weight="bold"'
    x, y = number(box.x - box.width / 2), number(box.y - HEIGHT / 2)
    # The baseline is computed here, because some viewers do not know dominant-baseline.
    at = f'x="{number(box.x)}" y="{number(box.y + FONT * 0.34)}"'
    return (
        f'<g><rect x="{x}" y="{y}" width="{number(box.width)}" height="{number(HEIGHT)}" rx="6" '
        f'fill="{fill}" stroke="{stroke}" stroke-width="{frame}"/>'
        f'<text {at} fill="{ink}"{bold}>{escaped(str(node))}</text></g>'
    )


def kind_of(node: Any) -> str:
    """Return the key of a node's tint: its dtype family, "weak", or "other" for no dtype."""
    if not isinstance(node, DType):
        return "other"
    return "weak" if node.weak else node.family


def escaped(text: str) -> str:
    """Escape a text for XML, and replace its unprintable characters."""
    return escape(printable(text, None))


def number(value: float) -> str:
    """Format a length to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")


def pair(x: float, y: float) -> str:
    """Format a point of an SVG path."""
    return f"{number(x)},{number(y)}"
