"""Promotion tables as SVG, whose cells are coloured by loss.

A picture that a page links to answers no pointer. So marks other than colour repeat what a colour
says: a cell that can lose values is italic, a refusal is a dash, and a cell whose swapped pair
gives another result has a frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from graphir.drawing.svg import FAMILY, escaped
from graphir.dtypes import DType
from graphir.promotion.rules import PromotionRules
from graphir.rule_reports.tables import (
    COLORS,
    Loss,
    Table,
    asymmetry,
    counts,
    loss_of,
    ordered,
    short_name,
)

ROW, BASELINE, FONT, GLYPH, PADDING = 20, 14, 12, 7.3, 10
"""A row's height and baseline, the font size, a monospaced glyph's width, a cell's free width."""

_HEAD, _ACCENT = "#f3f3f3", "#c2255c"


class TableCell(NamedTuple):
    """A cell: its text, the kind of its loss, and whether swapped operands give another result."""

    text: str
    loss: Loss
    unlike: bool = False


def table_cell(table: Table, a: DType, b: DType) -> TableCell:
    """Return the cell of a pair in a promotion table."""
    result = table[a][b]
    return TableCell(short_name(result), loss_of(a, b, result), result is not table[b][a])


def table_svg(rules: PromotionRules) -> str:
    """Return the table of all pairs as SVG, with a legend of the colours below it."""
    table = ordered(rules)
    rows = {str(a): [table_cell(table, a, b) for b in table] for a in table}
    heads = [b.short for b in table]
    return grid_svg(f"Promotion under {rules.name}", heads, rows, counts(table), asymmetry(table))


def grid_svg(
    title: str,
    heads: Sequence[str],
    rows: Mapping[str, Sequence[TableCell | None]],
    legend: Mapping[Loss, str],
    frames: Iterable[str] = (),
) -> str:
    """Return a grid of coloured cells as SVG; None is an empty cell.

    Heads are written upwards. `legend` describes the colours, and `frames` the frames.
    """
    top = _width(heads)
    bottom = top + ROW * len(rows)
    columns = zip(*rows.values(), strict=True)
    widths = [_width(["xx", *(cell.text for cell in column if cell)]) for column in columns]
    edges = list(accumulate(widths, initial=_width(rows)))
    legend_lines, right = _legend(legend, frames, bottom + ROW // 2)
    width, height, name = max(edges[-1], right) + 1, bottom + ROW * 2, escaped(title)
    band = f"M0 0H{edges[-1]}V{top}H{edges[0]}V{bottom}H0z"
    centers = [(low + high) / 2 for low, high in pairwise(edges)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{name}" '
            f'viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
            f"<title>{name}</title>",
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
            f'<path fill="{_HEAD}" d="{band}"/>',
            f'<g font-family="{FAMILY}" font-size="{FONT}" text-anchor="middle" fill="#1a1a1a">',
            *(_upwards(x, top - ROW, head) for x, head in zip(centers, heads, strict=True)),
            *(_text(edges[0] / 2, top + ROW * i, row) for i, row in enumerate(rows)),
            *_cells([*rows.values()], edges, top),
            *legend_lines,
            "</g>",
            "</svg>",
        ]
    )


def _cells(rows: Sequence[Sequence[TableCell | None]], edges: Sequence[int], top: int) -> list[str]:
    """Return the cells: boxes and texts of each kind of loss, dashes, lines, then frames."""
    boxes, texts, frames, dashes = dict.fromkeys(COLORS, ""), dict.fromkeys(COLORS, ""), "", ""
    for i, row in enumerate(rows):
        y = top + ROW * i
        cells = [
            (x, end, cell) for (x, end), cell in zip(pairwise(edges), row, strict=True) if cell
        ]
        for x, end, cell in cells:
            center = (x + end) // 2
            if cell.loss == "raises":
                dashes += f"M{center - 3} {y + ROW // 2}h6"
            else:
                texts[cell.loss] += _text(center, y, cell.text)
            frames += _box(x + 2, y + 2, end - x - 4, ROW - 4) if cell.unlike else ""
        for loss in COLORS:  # cells that touch share a box
            spans = [(x, end) for x, end, cell in cells if cell.loss == loss]
            starts, ends = {x for x, _ in spans}, {end for _, end in spans}
            for x, end in zip(sorted(starts - ends), sorted(ends - starts), strict=True):
                boxes[loss] += _box(x, y, end - x, ROW)
    lines = "".join(f"M{x} {top}v{ROW * len(rows)}" for x in edges)
    lines += "".join(f"M{edges[0]} {top + ROW * i}H{edges[-1]}" for i in range(len(rows)))
    return [
        *(_path(COLORS[loss], path) for loss, path in boxes.items() if path),
        f'<g font-style="italic">{texts.pop("loses")}</g>',
        *texts.values(),
        f'<path stroke="#555" d="{dashes}"/>',
        f'<path stroke="#fff" d="{lines}"/>',
        *([_path("none", frames)] if frames else []),
    ]


def _legend(legend: Mapping[Loss, str], frames: Iterable[str], y: int) -> tuple[list[str], int]:
    """Return the elements of the legend in a line, and its right end."""
    elements: list[str] = []
    x = 1
    described = [(COLORS[loss], text) for loss, text in legend.items()]
    for fill, text in [*described, *(("none", text) for text in frames)]:
        width = _width([text])
        elements += [_path(fill, _box(x, y, width, ROW)), _text(x + width / 2, y, text)]
        x += width + 6
    return elements, x


def _width(texts: Iterable[str]) -> int:
    """Return the width of a column that holds texts."""
    return round(max(map(len, texts), default=0) * GLYPH) + PADDING


def _box(x: int, y: int, width: int, height: int) -> str:
    return f"M{x} {y}h{width}v{height}h-{width}z"


def _path(fill: str, path: str) -> str:
    """Return the boxes of a colour, or the frames."""
    stroke = f' stroke="{_ACCENT}" stroke-width="1.5"' if fill == "none" else ""
    return f'<path fill="{fill}"{stroke} d="{path}"/>'


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:g}" y="{y + BASELINE}">{escaped(text)}</text>'


def _upwards(x: float, y: float, text: str) -> str:
    place = f"translate({x + 4:g} {y + ROW - 5:g})rotate(-90)"
    return f'<text transform="{place}" text-anchor="start">{escaped(text)}</text>'
