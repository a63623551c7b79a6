"""The DOT and Mermaid forms of a diagram, with the shapes and colours of the SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphir.drawing.diagram import Cluster, Diagram, Item, Look, NodeBox
from graphir.drawing.loss_levels import KINDS
from graphir.drawing.svg import shade
from graphir.location import CastKind

_DOT_SHAPES: dict[Look, str] = {
    "input": "oval",
    "cast": "hexagon",
    "fold": "box3d",
    "output": "oval",
}
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
