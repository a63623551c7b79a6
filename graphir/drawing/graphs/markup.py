"""The DOT and Mermaid forms of a diagram, with the shapes and colours of the SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphir.drawing.graphs.diagram import Cluster, Diagram, Item, Look, NodeBox
from graphir.drawing.graphs.shades import shade
from graphir.location import CastKind

_DOT_SHAPES: dict[Look, tuple[str, str]] = {
    "input": ("oval", ""),
    "constant": ("box", ""),
    "op": ("box", "rounded"),
    "cast": ("hexagon", ""),
    "fold": ("box3d", ""),
    "output": ("oval", ""),
}
_DOT_DASHES: dict[CastKind | None, str] = {
    "implicit": "dashed",
    "assignment": "dashed,bold",
    "legalization": "dotted",
    "autocast": "dashed",
    "exporter": "dashed",
}

_MERMAID_SHAPES: dict[Look, tuple[str, str]] = {
    "input": ("([", "])"),
    "constant": ("[", "]"),
    "op": ("(", ")"),
    "cast": ("{{", "}}"),
    "fold": ("[[", "]]"),
    "output": ("([", "])"),
}
_MERMAID_DASHES: dict[CastKind | None, str] = {
    "implicit": ",stroke-dasharray:6 3",
    "assignment": ",stroke-dasharray:6 2 2 2",
    "legalization": ",stroke-dasharray:2 3",
    "autocast": ",stroke-dasharray:4 2",
    "exporter": ",stroke-dasharray:4 2",
}


# -- DOT


def dot(diagram: Diagram) -> str:
    """Return a DOT digraph that grows downwards, with titles as tooltips."""
    lines = [
        f"digraph {_quote(diagram.title)} {{",
        '  node [fontname="monospace", fontsize=11, style=filled];',
        '  graph [fontname="monospace", fontsize=11, labeljust=l, style="rounded,filled"];',
        *_dot_items(diagram, diagram.items, ""),
    ]
    for (a, b), title in diagram.links.items():
        lines.append(f"  n{a} -> n{b} [tooltip={_quote(title)}];")
    return "\n".join([*lines, "}"])


def _dot_items(diagram: Diagram, items: Sequence[Item], path: str) -> Iterator[str]:
    space = "  " * (path.count("_") + 1)
    for i, item in enumerate(items):
        if not isinstance(item, Cluster):
            yield f"{space}n{item} [{_dot_box(diagram.boxes[item])}];"
            continue
        yield f"{space}subgraph cluster{path}_{i} {{"
        yield f"{space}  label={_quote(item.name)}; tooltip={_quote(item.path)};"
        yield f'{space}  color="#ced4da"; fillcolor="#f8f9fa";'
        yield from _dot_items(diagram, item.items, f"{path}_{i}")
        yield f"{space}}}"


def _dot_box(box: NodeBox) -> str:
    shape, corners = _DOT_SHAPES[box.look]
    fill, stroke = shade(box)[1]
    style = ",".join(filter(None, ("filled", corners, _DOT_DASHES.get(box.kind))))
    return (
        f"label={_quote(chr(10).join(box.lines))}, tooltip={_quote(box.title)}, "
        f'shape={shape}, style="{style}", fillcolor="{fill}", color="{stroke}"'
    )


def _quote(text: str) -> str:
    r"""Quote a string for DOT, and escape its special characters, such as `\n` for a line break."""
    for special, entity in (("&", "&amp;"), ("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
        text = text.replace(special, entity)
    return f'"{text}"'


# -- Mermaid


def mermaid(diagram: Diagram) -> str:
    """Return a Mermaid flowchart of a diagram that grows downwards."""
    lines = ["flowchart TB", *_mermaid_items(diagram, diagram.items, "")]
    lines += [f"  n{a} --> n{b}" for a, b in diagram.links]
    classes: dict[tuple[str, CastKind | None], list[int]] = {}
    for i, box in enumerate(diagram.boxes):
        classes.setdefault((shade(box)[0], box.kind), []).append(i)
    for (name, kind), numbers in classes.items():
        fill, stroke = shade(diagram.boxes[numbers[0]])[1]
        style = f"fill:{fill},stroke:{stroke},color:#212529{_MERMAID_DASHES.get(kind, '')}"
        label = f"{name}_{kind or 'op'}"
        lines.append(f"  classDef {label} {style}")
        lines.append(f"  class {','.join(f'n{i}' for i in numbers)} {label}")
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
            left, right = _MERMAID_SHAPES[box.look]
            yield f"{space}n{item}{left}{_entities(chr(10).join(box.lines))}{right}"


def _entities(text: str) -> str:
    """Quote a label, with numeric entities for characters that Mermaid or HTML may interpret."""
    characters = (
        c if c.isalnum() or c in _PLAIN else "<br/>" if c == "\n" else f"#{ord(c)};" for c in text
    )
    return f'"{"".join(characters)}"'


_PLAIN = " .,:→…+-"
