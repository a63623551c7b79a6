"""Reports, pictures and policies of drawn graphs with control flow, in all formats."""

import json
from collections.abc import Iterator

from hypothesis import given, settings

from graphir import Graph, Symbol, ops
from graphir.passes import Policy, cast_report, draw, implicit_cast
from graphir.passes.reports.html import report_html
from graphir.passes.reports.json_ import schema
from graphir.passes.reports.sarif import report_sarif
from graphir.passes.reports.text import report_details, report_markdown, report_text
from graphir.passes.rewriter import bodies_of, origins_of
from tests.support.control_flow import flow_graphs
from tests.support.strategies import draws


def all_symbols(graph: Graph) -> Iterator[Symbol]:
    for symbol in graph.symbols:
        yield symbol
        for body in bodies_of(symbol):
            yield from all_symbols(body)


@settings(deadline=None)
@given(flow_graphs())
def test_every_cast_in_every_body_is_a_row(graph: Graph) -> None:
    explicit = implicit_cast(graph)
    casts = [x for x in all_symbols(explicit) if x.op is ops.cast]
    uses = sorted(
        (str(use.target), use.location.line)
        for cast in casts
        for use in origins_of(cast)
        if use.source is not use.target or use.rule == "cast"
    )
    rows = [row for row in cast_report(graph) if row.symbol.op is ops.cast]
    assert sorted((str(row.target), row.location.line) for row in rows) == uses
    assert all(row.user is None or row.user.graph is row.symbol.graph for row in rows)


@draws(5, 40, flow_graphs())
def test_all_formats_write_drawn_graphs(graph: Graph) -> None:
    report = cast_report(graph)
    document = json.loads(report.to_json())
    assert set(document) <= set(schema()["properties"])
    json.loads(report_sarif(report))
    for writer in (report_text, report_details, report_markdown, report_html):
        assert writer(report)
    for form in ("svg", "dot", "mermaid"):
        assert draw(report, form)
    hits = Policy(casts="forbid").hits(graph)
    assert all(str(hit) for hit in hits)
    silent = [row for row in report if row.kind == "implicit"]
    assert silent or not any(hit.action == "forbid" and hit.row.kind == "implicit" for hit in hits)
