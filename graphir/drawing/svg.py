"""The SVG of a diagram: boxes tinted by dtype, casts by loss, layers in frames, light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from graphir.display import printable
from graphir.drawing.diagram import Diagram, NodeBox
from graphir.drawing.layout import (
    FONT,
    LEADING,
    SMALL,
    DiagramLayout,
    Ends,
    Frame,
    Placement,
    Point,
    layout,
    width,
)
from graphir.drawing.loss_levels import KINDS, LEVELS, Level
from graphir.location import CastKind

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
"""The fill and stroke colours of boxes, by dtype family, "weak", or "other" for no dtype."""

SHADES: dict[Level, tuple[str, str]] = {
    "exact": ("#d3f9d8", "#2b8a3e"),
    "precision": ("#ffec99", "#b35c00"),
    "range": ("#ffc9c9", "#c92a2a"),
    "value": ("#eebefa", "#862e9c"),
}
"""The fill and stroke colours of casts, by level of loss."""

_INK, FAINT, PAPER, _LINE = "#212529", "#5c636a", "#ffffff", "#868e96"
_FRAMES, _RIM = ("#f8f9fa", "#f1f3f5"), "#ced4da"
_MARGIN = 16.0

# Inverted lightness keeps the hues. Notebooks set the filter by their own theme (graphir.display).
STYLE = (
    ".graphir path:hover{stroke-width:3}"
    "@media (prefers-color-scheme:dark){.graphir{filter:invert(.92) hue-rotate(180deg)}}"
)


def shade(box: NodeBox) -> tuple[str, str]:
    """Return the fill and stroke of a box.

    A cast and a box with a loss have the colours of the loss level; other boxes have those of their
    dtype.
    """
    if box.level and (box.kind or box.level != "exact"):
        return SHADES[box.level]
    return TINTS["other" if box.dtype is None else "weak" if box.dtype.weak else box.dtype.family]


def diagram_svg(diagram: Diagram) -> str:
    """Return the SVG of a diagram at its natural size, or less if a lattice has less room.

    Boxes and lines have titles. A picture is dark where the reader's colour scheme is. Its style
    sheet selects only elements of such pictures, so many pictures can share a page.
    """
    plan = layout(diagram)
    legend = list(_legend(diagram))
    room = max(plan.width, *(end for _, end in legend), 0.0)
    wide, tall = room + 2 * _MARGIN, plan.height + 2 * _MARGIN + _LEGEND * bool(legend)
    size = f'width="{number(wide)}" height="{number(tall)}"'
    name = escaped(diagram.title)
    shrinking = ' style="max-width:100%;height:auto"' if diagram.is_lattice else ""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="graphir" role="img" '
            f'aria-label="{name}" viewBox="0 0 {number(wide)} {number(tall)}" {size}{shrinking}>',
            f"<title>{name}</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="paper" {size} rx="8" fill="{PAPER}"/>',
            f'<g font-family="{FAMILY}" font-size="{number(FONT)}">',
            f"<g {_translate(_MARGIN + (room - plan.width) / 2, _MARGIN)}>",
            *map(_frame, plan.frames),
            f'<g fill="none" stroke="{_LINE}" stroke-width="1.3">',
            *(_line(diagram, plan, ends) for ends in plan.lines),
            "</g>",
            *(_box(box, plan.boxes[i]) for i, box in enumerate(diagram.boxes)),
            "</g>",
            f"<g {_translate(_MARGIN, tall - _MARGIN - _KEY)}>",
            *(element for element, _ in legend),
            "</g>",
            "</g>",
            "</svg>",
        ]
    )


def escaped(text: str) -> str:
    """Escape a text for XML, and replace its unprintable characters but line breaks."""
    return escape(printable(text, None, keep="\n"))


def number(value: float) -> str:
    """Format a length to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")


def _pair(x: float, y: float) -> str:
    return f"{number(x)},{number(y)}"


def _translate(x: float, y: float) -> str:
    return f'transform="translate({_pair(x, y)})"'


def _frame(frame: Frame) -> str:
    x, y = frame.place.x + 12, frame.place.y + 17
    return (
        f"<g><title>layer {escaped(frame.cluster.path)}</title>"
        f'<rect {_place(frame.place)} rx="8" fill="{_FRAMES[frame.depth % 2]}" stroke="{_RIM}"/>'
        f'<text x="{number(x)}" y="{number(y)}" fill="{FAINT}" font-weight="bold">'
        f"{escaped(frame.cluster.name)}</text></g>"
    )


def _line(diagram: Diagram, plan: DiagramLayout, ends: Ends) -> str:
    points = plan.lines[ends]
    (x, y), head = points[-1], ""
    if not diagram.is_lattice:
        head = f" M{_pair(x - 3.5, y - 6)} L{_pair(x, y)} L{_pair(x + 3.5, y - 6)}"
    title = escaped(diagram.links[ends])
    return f'<path d="{curve(points)}{head}"><title>{title}</title></path>'


def curve(points: Sequence[Point]) -> str:
    """Return the SVG path of a line: S curves where it leans, and vertical pieces between them.

    An S curve stays between the heights of its two ends.
    """
    parts = [f"M{_pair(*points[0])}"]
    for (x, y), (to_x, to_y) in zip(points[::2], points[1::2], strict=True):
        if abs(x - to_x) > 0.05:
            half = (y + to_y) / 2
            parts.append(f"V{number(y)} C{_pair(x, half)} {_pair(to_x, half)} {_pair(to_x, to_y)}")
    return " ".join([*parts, f"V{number(points[-1][1])}"])


def _box(box: NodeBox, place: Placement) -> str:
    fill, stroke = shade(box)
    frame = _frame_of(box.kind) if box.kind else 'stroke-width="1.2"'
    title = f"<title>{escaped(box.title)}</title>" if box.title else ""
    return (
        f'<g>{title}{_shape(box.look, place)} fill="{fill}" stroke="{stroke}" {frame}/>'
        f"{''.join(_writing(box, place))}</g>"
    )


def _frame_of(kind: CastKind) -> str:
    dashes = f' stroke-dasharray="{dash}"' if (dash := KINDS[kind].dashes) else ""
    return f'stroke-width="2"{dashes}'


def _shape(look: str, place: Placement) -> str:
    """Return the outline of a box: a pill for input or output, a hexagon for a cast, else a box."""
    if look == "cast":
        x, y, right, foot = place.x, place.y, place.x + place.width, place.y + place.height
        half, tip = (y + foot) / 2, 8.0
        corners = [(x + tip, y), (right - tip, y), (right, half), (right - tip, foot)]
        corners += [(x + tip, foot), (x, half)]
        return f'<polygon points="{" ".join(_pair(*corner) for corner in corners)}"'
    radius = {"input": place.height / 2, "output": place.height / 2, "constant": 0.0}.get(look, 6.0)
    return f'<rect {_place(place)} rx="{number(radius)}"'


def _writing(box: NodeBox, place: Placement) -> Iterator[str]:
    x = number(place.x + place.width / 2)
    # The baseline is computed here, because some viewers do not know dominant-baseline.
    y = place.y + place.height / 2 - (len(box.lines) - 1) * LEADING / 2 + FONT * 0.34
    weight = "" if box.look == "node" else ' font-weight="bold"'
    for i, line in enumerate(box.lines):
        style = _FURTHER if i else f'fill="{_INK}"{weight}'
        at = f'x="{x}" y="{number(y + i * LEADING)}"'
        yield f'<text {at} text-anchor="middle" {style}>{escaped(line)}</text>'


_FURTHER = f'fill="{FAINT}" font-size="{number(SMALL)}"'


def _place(place: Placement) -> str:
    x, y, wide, tall = map(number, place)
    return f'x="{x}" y="{y}" width="{wide}" height="{tall}"'


# -- the legend

_LEGEND, _KEY = 34.0, 16.0  # the height of the legend with the room above it, and without


def _legend(diagram: Diagram) -> Iterator[tuple[str, float]]:
    """Yield a legend entry for each colour and dash pattern in the diagram, and its right end."""
    levels, kinds = {box.level for box in diagram.boxes}, {box.kind for box in diagram.boxes}
    entries: list[tuple[str, CastKind, tuple[str, str]]] = [
        *((LEVELS[level], "explicit", SHADES[level]) for level in LEVELS if level in levels),
        *((KINDS[kind].legend, kind, (PAPER, _LINE)) for kind in KINDS if kind in kinds),
    ]
    x = 0.0
    for text, kind, (fill, stroke) in entries:
        shape = _shape("cast", Placement(x, 0.0, 30.0, _KEY))
        at = f'x="{number(x + 36)}" y="{number(_KEY / 2 + SMALL * 0.34)}"'
        yield (
            f'<g>{shape} fill="{fill}" stroke="{stroke}" {_frame_of(kind)}/>'
            f"<text {at} {_FURTHER}>{text}</text></g>",
            x := x + 36 + width(text, SMALL) + 18,
        )
