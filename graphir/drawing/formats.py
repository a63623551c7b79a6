"""Drawings of graphs and lattices as SVG, DOT and Mermaid, and as fragments for notebooks.

Graphs have layers in frames and casts coloured by loss. A drawing shows up to 300 symbols one by
one. A larger graph is folded: several symbols share a box, by layer where the graph has layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from graphir.display import LARGEST, folded, fragment, paragraphs, printable, tag, verbatim
from graphir.drawing.diagram import Cluster, Diagram, Item, Look, NodeBox, graph_diagram
from graphir.drawing.loss_levels import KINDS, Marks
from graphir.drawing.svg import diagram_svg, shade
from graphir.dtype_lattices.order import Lattice
from graphir.dtypes import DType
from graphir.ir.graph import Graph
from graphir.location import CastKind
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


# -- lattices


def lattice_text(lattice: Lattice[Any]) -> str:
    """Return a listing of a lattice: nodes by level from below, each with the nodes above it."""
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
    return "\n".join(lines)


def lattice_diagram(lattice: Lattice[Any]) -> Diagram:
    """Return the diagram of a lattice, which grows upwards."""
    number = {node: i for i, node in enumerate(lattice.nodes)}
    boxes = [
        NodeBox(
            (printable(str(node), None),), "", "node", node if isinstance(node, DType) else None
        )
        for node in lattice.nodes
    ]
    links = {(number[low], number[high]): f"{low} < {high}" for low, high in lattice.pairs()}
    return Diagram(f"Lattice {lattice.name}", boxes, [*number.values()], links, True)


def lattice_dot(lattice: Lattice[Any]) -> str:
    """Return a DOT digraph of a lattice for Graphviz that grows upwards."""
    return dot(lattice_diagram(lattice))


def lattice_mermaid(lattice: Lattice[Any]) -> str:
    """Return a Mermaid flowchart of a lattice that grows upwards."""
    return mermaid(lattice_diagram(lattice))


def lattice_svg(lattice: Lattice[Any]) -> str:
    """Return the SVG of a lattice with the least nodes at the bottom."""
    return diagram_svg(lattice_diagram(lattice))


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


LATTICE_FORMATS: dict[str, Callable[[Lattice[Any]], str]] = {
    "text": lattice_text,
    "dot": lattice_dot,
    "mermaid": lattice_mermaid,
    "svg": lattice_svg,
}
"""The functions that draw a lattice, by the name of the format."""


# -- DOT and Mermaid, with the shapes and colours of the SVG

_DOT_SHAPES = {"input": "oval", "cast": "hexagon", "fold": "box3d", "output": "oval"}
_MERMAID_SHAPES: dict[Look, tuple[str, str]] = {
    "input": ("([", "])"),
    "op": ("(", ")"),
    "cast": ("{{", "}}"),
    "fold": ("[[", "]]"),
    "output": ("([", "])"),
}


def dot(diagram: Diagram) -> str:
    """Return a DOT digraph, with titles as tooltips; the nodes of a lattice have their names."""
    lines = [
        f"digraph {_quote(diagram.title)} {{",
        f"  rankdir={'BT' if diagram.is_lattice else 'TB'};",
        '  node [fontname="monospace", fontsize=11, style=filled];',
        '  graph [fontname="monospace", fontsize=11, labeljust=l, style="rounded,filled"];',
        *_dot_items(diagram, diagram.items, ""),
    ]
    for (a, b), title in diagram.links.items():
        ends = f"{_dot_name(diagram, a)} -> {_dot_name(diagram, b)}"
        lines.append(f"  {ends} [tooltip={_quote(title)}];")
    return "\n".join([*lines, "}"])


def _dot_name(diagram: Diagram, box: int) -> str:
    return _quote(diagram.boxes[box].lines[0]) if diagram.is_lattice else f"n{box}"


def _dot_items(diagram: Diagram, items: Sequence[Item], path: str) -> Iterator[str]:
    space = "  " * (path.count("_") + 1)
    for i, item in enumerate(items):
        if not isinstance(item, Cluster):
            yield f"{space}{_dot_name(diagram, item)} [{_dot_box(diagram.boxes[item])}];"
            continue
        yield f"{space}subgraph cluster{path}_{i} {{"
        yield f"{space}  label={_quote(item.name)}; tooltip={_quote(item.path)};"
        yield f'{space}  color="#ced4da"; fillcolor="#f8f9fa";'
        yield from _dot_items(diagram, item.items, f"{path}_{i}")
        yield f"{space}}}"


def _dot_box(box: NodeBox) -> str:
    fill, stroke = shade(box)
    dashes = ",dotted" if box.kind == "legalization" else ",dashed" * bool(_dashes(box.kind))
    style = f"filled{',rounded' * (box.look == 'op')}{dashes}{',bold' * (box.kind == 'assignment')}"
    return (
        f"label={_quote(chr(10).join(box.lines))}, tooltip={_quote(box.title)}, "
        f'shape={_DOT_SHAPES.get(box.look, "box")}, style="{style}", '
        f'fillcolor="{fill}", color="{stroke}"'
    )


def _dashes(kind: CastKind | None) -> str:
    return KINDS[kind].dashes if kind else ""


def _quote(text: str) -> str:
    r"""Quote a string for DOT, and escape its special characters, such as `\n` for a line break."""
    for special, entity in (("&", "&amp;"), ("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
        text = text.replace(special, entity)
    return f'"{text}"'


def mermaid(diagram: Diagram) -> str:
    """Return a Mermaid flowchart of a diagram."""
    direction = "BT" if diagram.is_lattice else "TB"
    lines = [f"flowchart {direction}", *_mermaid_items(diagram, diagram.items, "")]
    lines += [f"  n{a} --> n{b}" for a, b in diagram.links]
    for i, box in enumerate(diagram.boxes):
        fill, stroke = shade(box)
        dashes = f",stroke-dasharray:{dash}" if (dash := _dashes(box.kind)) else ""
        lines.append(f"  style n{i} fill:{fill},stroke:{stroke},color:#212529{dashes}")
    return "\n".join(lines)


def _mermaid_items(diagram: Diagram, items: Sequence[Item], path: str) -> Iterator[str]:
    space = "  " * (path.count("_") + 1)
    for i, item in enumerate(items):
        if isinstance(item, Cluster):
            yield f"{space}subgraph layer{path}_{i}[{_entities(item.name)}]"
            yield from _mermaid_items(diagram, item.items, f"{path}_{i}")
            yield f"{space}end"
        else:
            box = diagram.boxes[item]
            left, right = _MERMAID_SHAPES.get(box.look, "[]")
            yield f"{space}n{item}{left}{_entities(chr(10).join(box.lines))}{right}"


def _entities(text: str) -> str:
    """Quote a label, with numeric entities for characters that Mermaid or HTML may interpret."""
    characters = (
        c if c.isalnum() or c in " .,:→…+-" else "<br/>" if c == "\n" else f"#{ord(c)};"
        for c in text
    )
    return f'"{"".join(characters)}"'
