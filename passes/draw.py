"""The picture of a graph with every cast in it, coloured by what it loses."""

from __future__ import annotations

from typing import TypeAlias

from graphir import Graph, GraphError, Location, Symbol
from graphir.dtypes import DType
from graphir.pictures import GRAPH_FORMATS, LEVELS, Mark, level
from passes.casts import CastReport, CastRow, cast_report
from passes.implicit_cast import implicit_cast
from passes.rewriting import origins_of

_Use: TypeAlias = tuple[DType, DType, Location]


def draw(graph: Graph, format: str = "svg") -> str:  # noqa: A002 -- the word of the command line
    """A graph as "svg", "dot" or "mermaid", what is implicit made explicit; GraphError for others.

    Casts are marked by what the report of casts says of them (see `graphir.pictures`).
    """
    if format not in GRAPH_FORMATS:
        raise GraphError(f"a graph is drawn as {', '.join(GRAPH_FORMATS)}, not {format!r}")
    explicit = implicit_cast(graph)
    return GRAPH_FORMATS[format](explicit, marks_of(explicit, cast_report(explicit)))


def marks_of(graph: Graph, report: CastReport) -> dict[int, Mark]:
    """What the report of an explicit graph says of its symbols: of each, by its gravest use."""
    known: dict[_Use, Mark] = {}
    for row in report:
        use = row.source, row.target, row.location
        known[use] = _graver(known.get(use), _mark(row))
    found: dict[int, Mark] = {}
    for symbol in graph.symbols:
        for use in _uses(symbol):
            if use in known:
                found[symbol.index] = _graver(found.get(symbol.index), known[use])
    return found


def _uses(symbol: Symbol) -> list[_Use]:
    return [(origin.source, origin.target, origin.location) for origin in origins_of(symbol)]


def _mark(row: CastRow) -> Mark:
    if row.exact:
        return Mark("exact", f"{row.kind}, exact")
    found = level(row.source, row.target)
    return Mark(found, f"{row.kind}, {LEVELS[found]}: {row.witness} does not survive")


def _graver(one: Mark | None, other: Mark) -> Mark:
    order = list(LEVELS)
    return other if one is None or order.index(one.level) < order.index(other.level) else one
