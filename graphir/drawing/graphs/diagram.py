"""The diagram of a graph, independent of the output format: boxes, frames and lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from graphir import ops
from graphir.decorators import uncollected
from graphir.drawing.graphs import labels
from graphir.drawing.graphs.folding import Fold, Group, Part, is_drawn, parts_of
from graphir.drawing.graphs.labels import TITLE, clipped
from graphir.drawing.graphs.levels import (
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
from graphir.ir.inlining import inlined
from graphir.ir.symbol import Symbol
from graphir.location import CastKind
from graphir.text.printer import definitions

Look: TypeAlias = Literal["input", "constant", "op", "cast", "fold", "output"]


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
    """The contents of a picture. `links` maps (from, to), two box numbers, to a line's title."""

    title: str
    boxes: list[NodeBox]
    items: list[Item]
    links: dict[tuple[int, int], str]


_MANY = 24  # more outputs than this number share one box


@uncollected
def diagram(graph: Graph, marks: Marks | None = None, limit: int | None = None) -> Diagram:
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
        entering, leaving = self.borders(links)
        boxes = [
            self.fold(unit, entering[i], leaving[i])
            if isinstance(unit, Fold)
            else self.symbol(unit)
            for i, unit in enumerate(self.units)
        ]
        for box, symbols in self.outputs():
            items.append(len(boxes))
            for symbol in symbols:
                links.setdefault((self.owner[symbol.index], len(boxes)), []).append(symbol)
            boxes.append(box)
        titles = {ends: self.line_title(symbols) for ends, symbols in links.items()}
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

    def links(self) -> dict[tuple[int, int], list[Symbol]]:
        """Return the values on each line between two boxes, in order, once for each use."""
        owner = self.owner
        links: dict[tuple[int, int], list[Symbol]] = {}
        for symbol in filter(is_drawn, self.graph.symbols):
            to = owner[symbol.index]
            for arg in filter(is_drawn, symbol.args):
                if owner[arg.index] != to:
                    links.setdefault((owner[arg.index], to), []).append(arg)
        return links

    def borders(
        self, links: Mapping[tuple[int, int], Sequence[Symbol]]
    ) -> tuple[list[set[DType]], list[set[DType]]]:
        """Return the dtypes that enter each box, and the dtypes that leave it."""
        entering: list[set[DType]] = [set() for _ in self.units]
        leaving: list[set[DType]] = [set() for _ in self.units]
        for (low, high), symbols in links.items():
            dtypes = {symbol.dtype for symbol in symbols}
            leaving[low] |= dtypes
            entering[high] |= dtypes
        for symbol in self.graph.outputs:
            leaving[self.owner[symbol.index]].add(symbol.dtype)
        return entering, leaving

    def symbol(self, symbol: Symbol) -> NodeBox:
        kind, mark = cast_kind(symbol), self.mark(symbol)
        line = self.line(symbol)
        title = labels.title(line, symbol, mark)
        level = mark.level if mark else None
        if kind and level:
            lines = labels.cast_lines(symbol, kind, LEVELS[level])
            return NodeBox(lines, title, "cast", symbol.dtype, level, kind)
        lines = labels.op_lines(symbol, line.partition(":")[0])
        return NodeBox(lines, title, _LOOKS.get(symbol.op.name, "op"), symbol.dtype, level)

    def mark(self, symbol: Symbol) -> Mark | None:
        """Return the mark given for a symbol; for a cast without a mark, that of its dtypes."""
        mark = self.marks.get(symbol.index)
        if mark is None and symbol.op is ops.cast:
            return dtype_mark(symbol.args[0].dtype, symbol.dtype)
        return mark

    def fold(self, fold: Fold, entering: set[DType], leaving: set[DType]) -> NodeBox:
        marks = [mark for symbol in fold.symbols if (mark := self.mark(symbol))]
        levels: list[Level] = [mark.level for mark in marks]
        lossy = sum(level != "exact" for level in levels)
        casts = f"{len(levels)} casts, {lossy} lossy" if levels else ""
        name = fold.path.rpartition("/")[2] or labels.lines_text(fold.symbols)
        lines = labels.fold_lines(name, fold.symbols, entering, leaving, casts)
        title = labels.fold_title(fold.path or name, fold.symbols)
        return NodeBox(lines, title, "fold", level=gravest(levels))

    def outputs(self) -> Iterator[tuple[NodeBox, Sequence[Symbol]]]:
        """Yield a box for each output, or one box for all if there are many."""
        outputs = self.graph.outputs
        if len(outputs) > _MANY:
            lines = f"{len(outputs)} outputs", labels.dtypes_text(s.dtype for s in outputs)
            yield NodeBox(lines, ", ".join(lines), "output"), outputs
            return
        for i, symbol in enumerate(outputs):
            lines = f"output {i}", clipped(labels.type_text(symbol.type))
            title = clipped(f"output {i}: {symbol.type}", TITLE)
            yield NodeBox(lines, title, "output", symbol.dtype), (symbol,)

    def line_title(self, symbols: Sequence[Symbol]) -> str:
        """Return the title of a line: the text of its first value, and the number of others."""
        first = clipped(self.line(symbols[0]), TITLE)
        more = len({symbol.index for symbol in symbols}) - 1
        return f"{first}\nand {more} more" if more else first


_LOOKS: dict[str, Look] = {"input": "input", "constant": "constant"}
