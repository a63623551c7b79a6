"""A graph as DOT and as Mermaid, in the shapes and colours of its SVG."""

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
}


# -- DOT


def dot(diagram: Diagram) -> str:
    """A diagram for Graphviz, growing downwards, with titles as tooltips."""
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
    r"""A quoted string in which nothing is special: `\n` in a label would be a line of its own."""
    for special, entity in (("&", "&amp;"), ("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
        text = text.replace(special, entity)
    return f'"{text}"'


# -- Mermaid


def mermaid(diagram: Diagram) -> str:
    """A Mermaid flowchart of a diagram, growing downwards."""
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
    """A quoted label, with whatever could mean something to Mermaid or HTML as its number."""
    characters = (
        c if c.isalnum() or c in _PLAIN else "<br/>" if c == "\n" else f"#{ord(c)};" for c in text
    )
    return f'"{"".join(characters)}"'


_PLAIN = " .,:→…+-"
