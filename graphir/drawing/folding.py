"""Folding of large graphs: which symbols are drawn one by one, and which share a box.

Symbols that share a box follow one another in the graph. A graph's order is topological, so no box
both needs and feeds another box.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias

from graphir.ir.graph import Graph
from graphir.ir.inlining import Junction
from graphir.ir.symbol import Symbol

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
