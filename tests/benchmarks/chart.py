"""The ratios of a benchmark as SVG: bars on a log scale to both sides of NumPy eager."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

_COLOURS = {
    "graphir": "#e8590c",
    "numexpr": "#868e96",
    "jax.jit": "#7048e8",
    "torch": "#c92a2a",
    "torch.compile": "#f08080",
    "onnxruntime": "#1c7ed6",
    "numba": "#2f9e44",
    "MAX": "#0c8599",
}
_FONT = "system-ui, 'DejaVu Sans', sans-serif"
_LEFT, _TOP, _WIDE, _GAP, _BAR = 170, 64, 210, 26, 9
_LEAST, _MOST = 1 / 50, 50


def picture(rows: Sequence[Mapping[str, Any]], abouts: Mapping[str, str], machine: str) -> str:
    """One line a workload, one panel a size, one bar an engine; left of the middle is faster.

    Rows have `workload`, `n`, `engine`, `threads`, `output`, `ratio`, `exact`; fresh outputs are
    shown, of engines whose threads can be set as one bar for each number of them.
    """
    shown = [row for row in rows if row["output"] == "fresh" and row["engine"] != "numpy"]
    parts: list[str] = []
    y, columns = _TOP, 1
    for workload in dict.fromkeys(row["workload"] for row in shown):
        mine = [row for row in shown if row["workload"] == workload]
        sizes = sorted({row["n"] for row in mine})
        columns = max(columns, len(sizes))
        parts.append(_text(12, y + 12, workload, bold=True) + _text(12, y + 26, abouts[workload]))
        heights = [_panel(parts, mine, n, i, y) for i, n in enumerate(sizes)]
        y += max(heights) + _GAP
    width = _LEFT + columns * (_WIDE + _GAP)
    title = "Time, of NumPy eager's: to the left is faster"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{title}" '
            f'viewBox="0 0 {width} {y}" width="{width}" height="{y}" font-family="{_FONT}" '
            'font-size="10" style="max-width:100%;height:auto">',
            f'<rect width="{width}" height="{y}" rx="8" fill="#ffffff"/>',
            _text(12, 20, title, bold=True, size=14),
            _text(12, 36, f"{machine}; fresh outputs; lines at 0.1, 1 and 10"),
            _text(
                12, 50, "1, 2: threads of those that take a number; \u2260: not equal to the bit"
            ),
            *parts,
            "</svg>\n",
        ]
    )


def _panel(parts: list[str], rows: Sequence[Mapping[str, Any]], n: int, i: int, y: float) -> float:
    """Draw one, and tell its height."""
    left = _LEFT + i * (_WIDE + _GAP)
    bars = sorted((row for row in rows if row["n"] == n), key=lambda row: row["ratio"])
    bottom = y + 14 + len(bars) * (_BAR + 2)
    parts.append(_text(left + _WIDE / 2, y + 8, f"n = {n:,}" if n else "0-d", anchor="middle"))
    for value in (0.1, 1, 10):
        x, stroke = _at(left, value), "#495057" if value == 1 else "#dee2e6"
        parts.append(f'<path d="M{x:.1f},{y + 12} V{bottom}" stroke="{stroke}"/>')
    for j, row in enumerate(bars):
        low, high = sorted((_at(left, 1), _at(left, row["ratio"])))
        top = y + 14 + j * (_BAR + 2)
        threads = f" {row['threads']}" if row["threads"] else ""
        inexact = "" if row["exact"] == 1 else " \u2260"
        label = f"{row['engine']}{threads} {row['ratio']:.2f}{inexact}"
        parts.append(
            f'<rect x="{low:.1f}" y="{top}" width="{max(high - low, 1):.1f}" height="{_BAR}" '
            f'fill="{_COLOURS.get(row["engine"], "#495057")}"><title>{escape(label)}</title></rect>'
        )
        faster = row["ratio"] < 1
        anchor = "start" if faster else "end"
        beside = _at(left, 1) + (4 if faster else -4)
        parts.append(_text(beside, top + 8, label, anchor=anchor, size=8))
    return bottom - y


def _at(left: float, ratio: float) -> float:
    kept = min(max(ratio, _LEAST), _MOST)
    return left + _WIDE * math.log(kept / _LEAST) / math.log(_MOST / _LEAST)


def _text(
    x: float, y: float, text: str, anchor: str = "start", bold: bool = False, size: int = 10
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"{weight} '
        f'fill="#212529">{escape(text)}</text>'
    )
