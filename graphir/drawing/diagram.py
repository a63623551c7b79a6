"""Diagrams, independent of the output format: boxes, frames and lines; the diagram of a graph.

The diagram of a large graph is folded: symbols that follow one another in the graph share a box. A
graph's order is topological, so no box both needs and feeds another box.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

from graphir import ops
from graphir.decorators import uncollected
from graphir.display import printable
from graphir.drawing.loss_levels import (
    KINDS,
    LEVELS,
    Level,
    Mark,
    Marks,
    cast_kind,
    dtype_mark,
    gravest,
)
from graphir.dtypes import DType
from graphir.ir.graph import Graph
from graphir.ir.inlining import Junction, inlined
from graphir.ir.symbol import Symbol
from graphir.location import CastKind, Location, Origin
from graphir.ops.types import TensorType
from graphir.text.printer import definitions, elements

Look: TypeAlias = Literal["input", "constant", "op", "cast", "fold", "output", "node"]
"""The shape of a box; the last is that of nodes of a lattice."""


class NodeBox(NamedTuple):
    """One box: lines of text, the first in bold, and a title that a browser shows on hover.

    `level` is the loss level of a cast, or the gravest level among folded casts. `kind` says why
    the cast exists.
    """

    lines: tuple[str, ...]
    title: str
    look: Look
    dtype: DType | None = None
    level: Level | None = None
    kind: CastKind | None = None


class Cluster(NamedTuple):
    """The frame of a layer: its name, its path, and its items (box numbers and inner frames)."""

    name: str
    path: str
    items: list[Item]


Item: TypeAlias = int | Cluster


class Diagram(NamedTuple):
    """The contents of a picture. `links` maps (from, to), two box numbers, to a line's title.

    The diagram of a lattice grows upwards.
    """

    title: str
    boxes: list[NodeBox]
    items: list[Item]
    links: dict[tuple[int, int], str]
    is_lattice: bool = False


_MANY = 24  # more outputs than this number share one box


@uncollected
def graph_diagram(graph: Graph, marks: Marks | None = None, limit: int | None = None) -> Diagram:
    """Return the diagram of a graph, folded if the graph is large (see `parts_of`).

    The graphs of control flow are layers, as graphir.ir.inlining has them.
    """
    return _Drawing(inlined(graph), marks or {}).diagram(limit)


class _Drawing:
    """The state of building a diagram; `owner[i]` is the number of the box of symbol i."""

    def __init__(self, graph: Graph, marks: Marks) -> None:
        self.graph, self.marks = graph, marks
        self.line: Callable[[Symbol], str] = definitions(graph)
        self.units: list[Symbol | Fold] = []
        self.owner = [0] * len(graph.symbols)

    def diagram(self, limit: int | None) -> Diagram:
        graph = self.graph
        items = self.boxes_and_frames(parts_of(graph, limit))
        links = self.links()
        boxes = [
            self.fold(unit) if isinstance(unit, Fold) else self.symbol(unit) for unit in self.units
        ]
        for box, symbols in self.outputs():
            items.append(len(boxes))
            for symbol in symbols:
                links.setdefault((self.owner[symbol.index], len(boxes)), symbol)
            boxes.append(box)
        titles = {ends: clipped(self.line(symbol), TITLE) for ends, symbol in links.items()}
        return Diagram(f"Graph {clipped(graph.name, TITLE)}", boxes, items, titles)

    def boxes_and_frames(self, parts: Sequence[Part]) -> list[Item]:
        """Number the boxes, and return the tree of boxes and frames."""
        items: list[Item] = []
        for part in parts:
            if isinstance(part, Group):
                name = clipped(part.path.rpartition("/")[2])
                items.append(
                    Cluster(name, clipped(part.path, TITLE), self.boxes_and_frames(part.parts))
                )
                continue
            for symbol in part.symbols if isinstance(part, Fold) else (part,):
                self.owner[symbol.index] = len(self.units)
            items.append(len(self.units))
            self.units.append(part)
        return items

    def links(self) -> dict[tuple[int, int], Symbol]:
        """Return the first value on each line between two boxes."""
        owner = self.owner
        links: dict[tuple[int, int], Symbol] = {}
        for symbol in filter(is_drawn, self.graph.symbols):
            to = owner[symbol.index]
            for arg in filter(is_drawn, symbol.args):
                if owner[arg.index] != to:
                    links.setdefault((owner[arg.index], to), arg)
        return links

    def symbol(self, symbol: Symbol) -> NodeBox:
        kind, mark = cast_kind(symbol), self.mark(symbol)
        line = self.line(symbol)
        title = symbol_title(line, symbol, mark)
        level = mark.level if mark else None
        if kind and level:
            arrow = f"{symbol.args[0].dtype.short} → {symbol.dtype.short}"
            lines = clipped(KINDS[kind].prefix + arrow, 2 * LABEL), LEVELS[level]
            return NodeBox(lines, title, "cast", symbol.dtype, level, kind)
        lines = op_lines(symbol, line.partition(":")[0])
        return NodeBox(lines, title, _LOOKS.get(symbol.op.name, "op"), symbol.dtype, level)

    def mark(self, symbol: Symbol) -> Mark | None:
        """Return the mark given for a symbol; for a cast without a mark, that of its dtypes."""
        mark = self.marks.get(symbol.index)
        if mark is None and symbol.op is ops.cast:
            return dtype_mark(symbol.args[0].dtype, symbol.dtype)
        return mark

    def fold(self, fold: Fold) -> NodeBox:
        """Return a folded box: name, the counts of ops and casts; all ops and places in its title.

        The counts in the box leave out ops that compute nothing.
        """
        symbols = fold.symbols
        name = fold.path.rpartition("/")[2] or lines_text(symbols)
        ops_text = _counts_text([s for s in symbols if s.op.computes] or symbols, 3)
        lines = [f"{clipped(name)} ({len(symbols)} symbols)", ops_text]
        levels: list[Level] = [m.level for symbol in symbols if (m := self.mark(symbol))]
        if levels:
            lossy = sum(level != "exact" for level in levels)
            lines.append(f"{len(levels)} casts, {lossy} lossy")
        title = [
            f"{fold.path or name}: {len(symbols)} symbols",
            _counts_text(symbols),
            f"from {place_text(symbols[0].location)} to {place_text(symbols[-1].location)}",
        ]
        return NodeBox(
            tuple(clipped(line, 2 * LABEL) for line in lines),
            "\n".join(clipped(line, 2 * TITLE) for line in title),
            "fold",
            level=gravest(levels),
        )

    def outputs(self) -> Iterator[tuple[NodeBox, Sequence[Symbol]]]:
        """Yield a box for each output, or one box for all if there are many."""
        outputs = self.graph.outputs
        if len(outputs) > _MANY:
            lines = f"{len(outputs)} outputs", dtypes_text(s.dtype for s in outputs)
            yield NodeBox(lines, ", ".join(lines), "output"), outputs
            return
        for i, symbol in enumerate(outputs):
            lines = f"output {i}", clipped(type_text(symbol.type))
            title = clipped(f"output {i}: {symbol.type}", TITLE)
            yield NodeBox(lines, title, "output", symbol.dtype), (symbol,)


_LOOKS: dict[str, Look] = {"input": "input", "constant": "constant"}


# -- texts

LABEL = 26
"""The most characters of a line in a box."""

TITLE = 240
"""The most characters of a line of a title."""

_DIGITS = 9  # the most characters of a number in a box; a longer number is rounded
_USES = 6  # the most uses of a cast that a title lists


def clipped(text: str, most: int = LABEL) -> str:
    """Return a text with unprintable characters replaced, cut to `most` characters."""
    return printable(text, most)


def type_text(type_: TensorType) -> str:
    """Format a type with a short dtype name: `f32[n, 64]`, or `f32` for a 0-d type."""
    shape = f"[{', '.join(map(str, type_.shape))}]" if type_.shape else ""
    return f"{type_.dtype.short}{shape}"


def op_lines(symbol: Symbol, name: str) -> tuple[str, ...]:
    """Return the lines of a symbol's box: its op, input name or constant, and its type."""
    text = name.removeprefix("%") if symbol.op is ops.input else symbol.op.name
    if type(symbol.op) is Junction and symbol.op.operands:
        text = f"{symbol.op.operands[0]} of {symbol.op.name}"
    if symbol.op is ops.constant and not symbol.rank:
        text = _number(symbol)
    return clipped(text), clipped(type_text(symbol.type))


def symbol_title(line: str, symbol: Symbol, mark: Mark | None) -> str:
    """Return a symbol's title: its line of text, its mark's reason, and its location or uses.

    A cast has a line for each of its first uses.
    """
    lines = [line]
    if mark:
        lines.append(mark.reason)
    lines += [_use(origin) for origin in symbol.origins[:_USES]]
    if (more := len(symbol.origins) - _USES) > 0:
        lines.append(f"and {more} more uses")
    if not symbol.origins and (place := place_text(symbol.location)):
        lines.append(f"at {place}")
    return "\n".join(clipped(each, TITLE) for each in lines)


def place_text(location: Location) -> str:
    """Format a location and its layer; empty where both are unknown."""
    return location.layered if location.file else location.layer and f"[{location.layer}]"


def _counts_text(symbols: Sequence[Symbol], most: int | None = None) -> str:
    """Format the counts of ops, the most frequent first, the others as an ellipsis."""
    counts = Counter(symbol.op.name for symbol in symbols)
    common = [f"{count} {op}" for op, count in counts.most_common(most)]
    return ", ".join([*common, "…"] if len(common) < len(counts) else common)


def lines_text(symbols: Sequence[Symbol]) -> str:
    """Return a name for symbols from their source lines: `net.py:3-7`."""
    first, last = symbols[0].location, symbols[-1].location
    if not first.file or not first.line or first.file != last.file:
        return f"%{symbols[0].index} … %{symbols[-1].index}"
    low, high = sorted((first.line, last.line))
    file = first.file.replace("\\", "/").rpartition("/")[2]
    return f"{file}:{low}" if low == high else f"{file}:{low}-{high}"


def dtypes_text(dtypes: Iterable[DType]) -> str:
    """Format dtypes in short names, each once, in the order of DType, at most four."""
    there = set(dtypes)
    shorts = [dtype.short for dtype in DType if dtype in there]
    return ", ".join([*shorts[:4], *(["…"] if len(shorts) > 4 else [])]) or "()"


def _number(symbol: Symbol) -> str:
    value = elements(symbol.attrs["value"], symbol.dtype)
    return text if len(text := str(value)) <= _DIGITS else f"{value:.6g}"


def _use(origin: Origin) -> str:
    where = place_text(origin.location)
    use = f"{origin.operand} of {origin.op}" + (f" at {where}" if where else "")
    return f"{use}, {origin.rule}: {origin.source} -> {origin.target}"


# -- folding of large graphs

LIMIT = 300
"""The most boxes of a picture; a graph of more symbols is folded."""

DEEPEST = 6
"""The greatest depth of nested layers that a picture distinguishes."""

_FEW = 8  # runs of at most this many symbols outside of layers are drawn one by one in any graph
_PIECES, _PIECE = 24, 32  # the most pieces of the other runs, and the least size


class Fold(NamedTuple):
    """Symbols drawn as one box: a layer, or symbols outside of layers if `path` is empty."""

    path: str
    symbols: Sequence[Symbol]


class Group(NamedTuple):
    """The frame of a layer, and its parts."""

    path: str
    parts: list[Part]


Part: TypeAlias = Symbol | Fold | Group


def parts_of(graph: Graph, limit: int | None = None) -> list[Part]:
    """Return the parts of a graph's picture, in the graph's order.

    A graph of up to `limit` symbols, by default LIMIT, is drawn completely, in the frames of its
    layers. In a larger graph layers are folded: the innermost layers first, then outer layers,
    until at most `limit` boxes remain. Symbols outside of layers are cut into pieces. A layer that
    the program leaves and enters again is several parts.
    """
    limit = LIMIT if limit is None else limit
    symbols = [symbol for symbol in graph.symbols if is_drawn(symbol)]
    paths = {path: _layers(path) for path in {symbol.location.layer for symbol in symbols}}
    if len(symbols) <= limit:
        return _visible_parts(symbols, (), paths, DEEPEST, whole=True)
    for depth in range(DEEPEST, -1, -1):
        parts = _visible_parts(symbols, (), paths, depth, whole=False)
        if _count(parts) <= limit:
            return parts
    return [*_pieces(symbols)]


def is_drawn(symbol: Symbol) -> bool:
    """Whether a symbol has a box: all do but those that gather the values of a loop."""
    return not (type(symbol.op) is Junction and symbol.op.gathers)


def _count(parts: Sequence[Part]) -> int:
    return sum(_count(part.parts) if isinstance(part, Group) else 1 for part in parts)


def _layers(path: str) -> tuple[str, ...]:
    """Return the names of the nested layers in a layer path, at most DEEPEST."""
    return tuple(filter(None, path.split("/")))[:DEEPEST]


def _visible_parts(
    symbols: Sequence[Symbol],
    outer: tuple[str, ...],
    paths: dict[str, tuple[str, ...]],
    depth: int,
    whole: bool,
) -> list[Part]:
    """Return the parts of symbols in the layer `outer`, with layers folded below a depth.

    `paths` has the names of the layers in each path. Innermost layers are folded at every depth,
    unless `whole`.
    """
    parts: list[Part] = []
    runs = groupby(symbols, lambda symbol: paths[symbol.location.layer][: len(outer) + 1])
    for layer, run in runs:
        members = list(run)
        if layer == outer:
            parts += members if whole or len(members) <= _FEW else _pieces(members)
        elif whole or (depth and any(paths[x.location.layer] != layer for x in members)):
            inner = _visible_parts(members, layer, paths, depth - 1, whole)
            parts.append(Group("/".join(layer), inner))
        else:
            parts.append(Fold("/".join(layer), members))
    return parts


def _pieces(symbols: Sequence[Symbol]) -> list[Fold]:
    """Cut symbols into pieces of equal size."""
    size = max(_PIECE, -(-len(symbols) // _PIECES))
    return [Fold("", symbols[start : start + size]) for start in range(0, len(symbols), size)]
