"""The colours of boxes and the dashes of casts, shared by all output formats."""

from __future__ import annotations

from graphir.drawing.graphs.diagram import NodeBox
from graphir.drawing.graphs.levels import Level
from graphir.drawing.lattice_svg import TINTS, kind_of
from graphir.location import CastKind

SHADES: dict[Level, tuple[str, str]] = {
    "exact": ("#d3f9d8", "#2b8a3e"),
    "precision": ("#ffec99", "#b35c00"),
    "range": ("#ffc9c9", "#c92a2a"),
    "value": ("#eebefa", "#862e9c"),
}
"""The fill and stroke colours of casts, by level of loss."""

DASHES: dict[CastKind, str] = {
    "implicit": "6 3",
    "assignment": "6 2 1.5 2",
    "explicit": "",
    "legalization": "1.5 3",
    "autocast": "4 1.5",
    "exporter": "4 1.5",
}
"""The dash patterns of the frames of casts, by kind of cast."""

DARK_SHADES: dict[str, tuple[str, str]] = {
    "bool": ("#2b2f33", "#868e96"),
    "uint": ("#0b3a42", "#3bc9db"),
    "int": ("#10304f", "#4dabf7"),
    "float": ("#43260f", "#ffa94d"),
    "complex": ("#2b2354", "#9775fa"),
    "weak": ("#173a20", "#69db7c"),
    "other": ("#2b2f33", "#adb5bd"),
    "exact": ("#123d1c", "#51cf66"),
    "precision": ("#5c4400", "#ffd43b"),
    "range": ("#5f1a1a", "#ff8787"),
    "value": ("#4a1d57", "#e599f7"),
}
"""The fill and stroke colours for the dark colour scheme."""


def shade(box: NodeBox) -> tuple[str, tuple[str, str]]:
    """Return the name of a box's colours, and its fill and stroke.

    A cast and a box with a loss have the colours of the loss level; other boxes have those of their
    dtype.
    """
    if box.level and (box.kind or box.level != "exact"):
        return box.level, SHADES[box.level]
    tint = kind_of(box.dtype)
    return tint, TINTS[tint]
