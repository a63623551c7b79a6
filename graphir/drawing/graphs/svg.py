"""The SVG of a graph: boxes tinted by dtype, casts by loss, layers in frames, light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphir.drawing.graphs.diagram import Diagram, NodeBox
from graphir.drawing.graphs.layout import (
    FONT,
    LEADING,
    SMALL,
    Frame,
    GraphLayout,
    Placement,
    layout,
    width,
)
from graphir.drawing.graphs.levels import LEVELS
from graphir.drawing.graphs.shades import DARK_SHADES, DASHES, SHADES, shade
from graphir.drawing.hasse import Point
from graphir.drawing.lattice_svg import FAMILY, TINTS, escaped, number, pair
from graphir.drawing.marks import ACCENT
from graphir.location import CastKind

_INK, _FAINT, _PAPER, _LINE = "#212529", "#5c636a", "#ffffff", "#868e96"
_FRAMES, _RIM = ("#f8f9fa", "#f1f3f5"), "#ced4da"
_MARGIN = 16.0


def graph_picture(diagram: Diagram) -> str:
    """Return the SVG of a diagram at its natural size.

    Boxes and lines have titles. Colours follow the reader's colour scheme through a style sheet.
    The style sheet is the same in all pictures and selects only their own classes, so many pictures
    can share a page.
    """
    plan = layout(diagram)
    legend = list(_legend(diagram))
    room = max(plan.width, *(end for _, end in legend), 0.0)
    wide, tall = room + 2 * _MARGIN, plan.height + 2 * _MARGIN + _LEGEND * bool(legend)
    size = f'width="{number(wide)}" height="{number(tall)}"'
    name = escaped(diagram.title)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="graphir" role="img" '
            f'aria-label="{name}" viewBox="0 0 {number(wide)} {number(tall)}" {size}>',
            f"<title>{name}</title>",
            f"<style>{_STYLE}</style>",
            f'<rect class="g-paper" {size} rx="8" fill="{_PAPER}"/>',
            f'<g font-family="{FAMILY}" font-size="{number(FONT)}">',
            f"<g {_translate(_MARGIN + (room - plan.width) / 2, _MARGIN)}>",
            *(_frame(frame) for frame in plan.frames),
            f'<g class="g-lines" fill="none" stroke="{_LINE}" stroke-width="1.3">',
            *_lines(diagram, plan),
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


def _translate(x: float, y: float) -> str:
    return f'transform="translate({pair(x, y)})"'


def _frame(frame: Frame) -> str:
    title = f"layer {escaped(frame.cluster.path)}"
    x, y = frame.place.x + 12, frame.place.y + 17
    shade = _FRAMES[frame.depth % 2]
    return (
        f'<g class="g-frame{frame.depth % 2}"><title>{title}</title>'
        f'<rect {_place(frame.place)} rx="8" fill="{shade}" stroke="{_RIM}"/>'
        f'<text x="{number(x)}" y="{number(y)}" class="g-faint" fill="{_FAINT}" font-weight="bold">'
        f"{escaped(frame.cluster.name)}</text></g>"
    )


def _lines(diagram: Diagram, plan: GraphLayout) -> Iterator[str]:
    for ends, points in plan.lines.items():
        x, y = points[-1]
        head = f"M{pair(x - 3.5, y - 6)} L{pair(x, y)} L{pair(x + 3.5, y - 6)}"
        title = "\n".join(escaped(line) for line in diagram.links[ends].split("\n"))
        yield f'<path d="{_curve(points)} {head}"><title>{title}</title></path>'


def _curve(points: Sequence[Point]) -> str:
    """Return the SVG path of a line: S curves where it leans, and vertical pieces between them."""
    parts = [f"M{pair(*points[0])}"]
    for (x, y), (to_x, to_y) in zip(points[::2], points[1::2], strict=True):
        if abs(x - to_x) > 0.05:
            half = (y + to_y) / 2
            parts.append(f"V{number(y)} C{pair(x, half)} {pair(to_x, half)} {pair(to_x, to_y)}")
    return " ".join([*parts, f"V{number(points[-1][1])}"])


def _box(box: NodeBox, place: Placement) -> str:
    name, (fill, stroke) = shade(box)
    frame = _frame_of(box.kind) if box.kind else 'stroke-width="1.2"'
    title = "\n".join(escaped(line) for line in box.title.split("\n"))
    return (
        f'<g class="g-{name}"><title>{title}</title>'
        f'{_shape(box.look, place)} fill="{fill}" stroke="{stroke}" {frame}/>'
        f"{''.join(_writing(box.lines, place))}</g>"
    )


def _frame_of(kind: CastKind) -> str:
    dashes = f' stroke-dasharray="{DASHES[kind]}"' if DASHES[kind] else ""
    return f'stroke-width="2"{dashes}'


def _shape(look: str, place: Placement) -> str:
    """Return the outline of a box: a pill for input or output, a hexagon for a cast, else a box."""
    if look == "cast":
        x, y, right, foot = place.x, place.y, place.x + place.width, place.y + place.height
        half, tip = (y + foot) / 2, 8.0
        corners = [(x + tip, y), (right - tip, y), (right, half), (right - tip, foot)]
        corners += [(x + tip, foot), (x, half)]
        return f'<polygon points="{" ".join(pair(*corner) for corner in corners)}"'
    radius = {"input": place.height / 2, "output": place.height / 2, "constant": 0.0}.get(look, 6.0)
    return f'<rect {_place(place)} rx="{number(radius)}"'


def _writing(lines: Sequence[str], place: Placement) -> Iterator[str]:
    x = number(place.x + place.width / 2)
    # The baseline is computed here, because some viewers do not know dominant-baseline.
    y = place.y + place.height / 2 - (len(lines) - 1) * LEADING / 2 + FONT * 0.34
    for i, line in enumerate(lines):
        at = f'x="{x}" y="{number(y + i * LEADING)}" text-anchor="middle"'
        yield f"<text {at} {_FURTHER if i else _FIRST}>{escaped(line)}</text>"


_FIRST = f'fill="{_INK}" font-weight="bold"'
_FURTHER = f'class="g-faint" fill="{_FAINT}" font-size="{number(SMALL)}"'


def _place(place: Placement) -> str:
    x, y, wide, tall = map(number, place)
    return f'x="{x}" y="{y}" width="{wide}" height="{tall}"'


# -- the legend

_LEGEND, _KEY = 34.0, 16.0  # the height of the legend with the room above it, and without
_KINDS: dict[CastKind, str] = {
    "implicit": "implicit",
    "assignment": "by assignment",
    "explicit": "written by the user",
    "legalization": "by legalize",
    "autocast": "by autocast",
    "exporter": "by an exporter",
}


def _legend(diagram: Diagram) -> Iterator[tuple[str, float]]:
    """Yield a legend entry for each colour and dash pattern in the diagram, and its right end."""
    levels = {box.level for box in diagram.boxes}
    kinds = {box.kind for box in diagram.boxes}
    entries = [
        (text, level, _frame_of("explicit"), SHADES[level])
        for level, text in LEVELS.items()
        if level in levels
    ]
    entries += [
        (text, "plain", _frame_of(kind), (_PAPER, _LINE))
        for kind, text in _KINDS.items()
        if kind in kinds
    ]
    x = 0.0
    for text, name, frame, (fill, stroke) in entries:
        shape = _shape("cast", Placement(x, 0.0, 30.0, _KEY))
        at = f'x="{number(x + 36)}" y="{number(_KEY / 2 + SMALL * 0.34)}"'
        yield (
            f'<g class="g-{name}">{shape} fill="{fill}" stroke="{stroke}" {frame}/>'
            f"<text {at} {_FURTHER}>{text}</text></g>",
            x := x + 36 + width(text, SMALL) + 18,
        )


# -- the style


def _style() -> str:
    """Return the style sheet: dark colours by class, and a highlight for a line on hover."""
    over = f".graphir .g-lines path:hover{{stroke:{ACCENT};stroke-width:3}}"
    return f"{over}@media (prefers-color-scheme:dark){{{_rules(_dark())}}}"


def _notebook_style() -> str:
    """Return a style sheet with the colours of a notebook's theme, whatever the reader's scheme."""
    light, dark = (
        f':is([data-jp-theme-light="{is_light}"],.vscode-{name})'
        for is_light, name in (("true", "light"), ("false", "dark"))
    )
    return _rules(_light(), f"{light} ") + _rules(_dark(), f"{dark} ")


def _rules(rules: Sequence[tuple[str, str]], within: str = "") -> str:
    return "".join(f"{within}.graphir {where}{{{what}}}" for where, what in rules)


def _light() -> list[tuple[str, str]]:
    return [
        (".g-paper", f"fill:{_PAPER}"),
        ("text", f"fill:{_INK}"),
        (".g-faint", f"fill:{_FAINT}"),
        (".g-plain>polygon", f"fill:{_PAPER}"),
        *((f".g-frame{i}>rect", f"fill:{fill};stroke:{_RIM}") for i, fill in enumerate(_FRAMES)),
        *_shades(TINTS),
        *_shades(SHADES),
    ]


def _dark() -> list[tuple[str, str]]:
    return [
        (".g-paper", "fill:#16181b"),
        ("text", "fill:#f1f3f5"),
        (".g-faint", "fill:#adb5bd"),
        (".g-plain>polygon", "fill:#16181b"),
        (".g-frame0>rect", "fill:#1f2327;stroke:#495057"),
        (".g-frame1>rect", "fill:#282d32;stroke:#495057"),
        *_shades(DARK_SHADES),
    ]


def _shades(colours: Mapping[Any, tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for name, (fill, stroke) in colours.items():
        for shape in ("rect", "polygon") if name in LEVELS else ("rect",):
            yield f".g-{name}>{shape}", f"fill:{fill};stroke:{stroke}"


_STYLE = _style()
NOTEBOOK_STYLE = _notebook_style()
"""The style sheet of pictures in a notebook, beside that of the pictures themselves."""
