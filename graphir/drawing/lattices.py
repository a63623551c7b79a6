"""Drawings of lattices with highlighted paths: a listing by levels, SVG, DOT and Mermaid."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from graphir.drawing.lattice_svg import picture
from graphir.drawing.marks import ACCENT, Paths, marks
from graphir.dtype_lattices.order import Lattice
from graphir.markup import LARGEST, folded, fragment, paragraphs, tag, verbatim


def lattice_text(lattice: Lattice[Any], paths: Paths = ()) -> str:
    """Return a listing of a lattice: nodes by level from below, each with the nodes above it.

    The highlighted paths and their joins follow.
    """
    paths = [tuple(path) for path in paths]
    joins = marks(lattice, paths).joins
    layers = lattice.levels()
    lines = [
        f"lattice {lattice.name}: {len(lattice)} nodes, {len(lattice.pairs())} edges, "
        f"{len(layers)} levels",
        "each line: a node -> the nodes directly above it",
    ]
    width = max((len(str(node)) for node in lattice), default=0)
    for number, layer in enumerate(layers):
        for i, node in enumerate(layer):
            label = f"level {number}" if i == 0 else ""
            above = ", ".join(map(str, lattice.edges.get(node, ())))
            arrow = f"{str(node).ljust(width)} -> {above}" if above else f"{node} (top)"
            lines.append(f"{label.ljust(9)} {arrow}")
    lines += [f"path      {' -> '.join(map(str, path))}" for path in paths]
    if joins:
        lines.append(f"join      {', '.join(str(node) for node in lattice if node in joins)}")
    return "\n".join(lines)


def lattice_dot(lattice: Lattice[Any], paths: Paths = ()) -> str:
    """Return a DOT digraph for Graphviz that grows upwards, with each level in one rank."""
    highlights = marks(lattice, paths)
    lines = [f"digraph {_quote(lattice.name)} {{", "  rankdir=BT;", "  node [shape=box];"]
    for layer in lattice.levels():
        lines += [f"  {{ rank=same; {' '.join(f'{_quote(node)};' for node in layer)} }}"]
    for node in lattice:
        if node in highlights.joins:
            style = f'style=filled, fillcolor="{ACCENT}", color="{ACCENT}", fontcolor=white'
            lines.append(f"  {_quote(node)} [{style}];")
        elif node in highlights.nodes:
            lines.append(f'  {_quote(node)} [color="{ACCENT}", penwidth=2];')
    for low, high in lattice.pairs():
        style = f' [color="{ACCENT}", penwidth=3]' if (low, high) in highlights.edges else ""
        lines.append(f"  {_quote(low)} -> {_quote(high)}{style};")
    return "\n".join([*lines, "}"])


def lattice_mermaid(lattice: Lattice[Any], paths: Paths = ()) -> str:
    """Return a Mermaid flowchart of a lattice that grows upwards."""
    highlights = marks(lattice, paths)
    ids = {node: f"n{i}" for i, node in enumerate(lattice)}
    lines = ["flowchart BT", *(f"  {ids[node]}[{_quote(node)}]" for node in lattice)]
    lines += [f"  {ids[a]} --> {ids[b]}" for a, b in lattice.pairs()]
    for node in lattice:
        if node in highlights.joins:
            lines.append(f"  style {ids[node]} fill:{ACCENT},stroke:{ACCENT},color:#ffffff")
        elif node in highlights.nodes:
            lines.append(f"  style {ids[node]} stroke:{ACCENT},stroke-width:2px")
    numbers = [str(i) for i, edge in enumerate(lattice.pairs()) if edge in highlights.edges]
    if numbers:
        lines.append(f"  linkStyle {','.join(numbers)} stroke:{ACCENT},stroke-width:3px")
    return "\n".join(lines)


def lattice_svg(lattice: Lattice[Any], paths: Paths = ()) -> str:
    """Return the SVG of a lattice with the least nodes at the bottom."""
    return picture(lattice, marks(lattice, paths))


def lattice_html(lattice: Lattice[Any]) -> str:
    """Return an HTML fragment for notebooks: the SVG, and the levels of a lattice too large for it.

    The levels of others are in a folded section.
    """
    head = f"Lattice {lattice.name}: {len(lattice)} nodes, {len(lattice.pairs())} edges"
    levels = verbatim(lattice_text(lattice).split("\n"))
    drawing = lattice_svg(lattice) if len(lattice) <= _MOST else ""
    if drawing and len(drawing) <= LARGEST // 2:
        levels = tag("div", drawing, class_="scroll light") + folded("Levels", levels)
    return fragment(paragraphs([head]), levels)


_MOST = 100  # the most nodes of a drawing in a notebook


LATTICE_FORMATS: dict[str, Callable[[Lattice[Any], Paths], str]] = {
    "text": lattice_text,
    "dot": lattice_dot,
    "mermaid": lattice_mermaid,
    "svg": lattice_svg,
}
"""The functions that draw a lattice with paths, by the name of the format."""


def _quote(node: Any) -> str:
    return json.dumps(str(node), ensure_ascii=False)
