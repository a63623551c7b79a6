"""The picture of a graph with every cast in it, coloured by what it loses."""

from __future__ import annotations

from graphir import Graph, GraphError
from graphir.drawing.graphs import GRAPH_FORMATS, Mark, gravest, mark
from passes.analysis.casts import CastReport, cast_report


def draw(subject: Graph | CastReport, format: str = "svg") -> str:  # noqa: A002 -- as elsewhere
    """A graph as "svg", "dot" or "mermaid", what is implicit made explicit; GraphError for others.

    Casts are marked by what a report says of them, that of the graph or the one given; by their
    dtypes (see `graphir.drawing.graphs`) where it says nothing.
    """
    if format not in GRAPH_FORMATS:
        raise GraphError(f"a graph is drawn as {', '.join(GRAPH_FORMATS)}, not {format!r}")
    report = cast_report(subject) if isinstance(subject, Graph) else subject
    return GRAPH_FORMATS[format](report.explicit, marks_of(report))


def marks_of(report: CastReport) -> dict[int, Mark]:
    """What a report says of casts, by their places in the explicit graph: the gravest of its rows.

    So it is of constants that casts were folded into; numbers as the program writes them have none.
    """
    marks: dict[int, Mark] = {}
    for row in report:
        if row.kind == "literal" and not row.symbol.args:
            continue
        new, place = mark(row.loss, row.source, row.target), row.symbol.index
        old = marks.get(place)
        if old is None or gravest((old.level, new.level)) != old.level:
            marks[place] = new
    return marks
