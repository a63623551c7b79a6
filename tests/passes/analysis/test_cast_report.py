"""The report of casts: a row for each use, and that no pass and no text loses one."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given

from graphir import DType, Graph, Location, ops
from graphir.passes import (
    CastReport,
    CastRow,
    cast_report,
    common_subexpressions,
    dead_code,
    fold_constants,
    implicit_cast,
    legalize,
    lower,
    simplify_casts,
)
from tests.support.drawing import Program, programs
from tests.support.tables import every

FILE = "tests/passes/analysis/test_cast_report.py"


def five() -> tuple[Graph, list[int]]:
    """A graph that uses one int16 value in five float adds, and their lines."""
    graph = Graph("five")
    x = graph.input("int16", "n", name="x")
    y = graph.input("float32", "n", name="y")
    a = x + y
    b = a + x
    c = x + b
    with graph.layer("head"):
        d = c + x
    e = x + d
    graph.output(e)
    return graph, [symbol.location.line for symbol in (a, b, c, d, e)]


def implicit(graph: Graph) -> list[tuple[Any, ...]]:
    rows = cast_report(graph).only("implicit").in_order()
    return [(row.location.line, row.operand, row.location.layer) for row in rows]


def test_one_value_used_by_five_adds_is_one_cast_and_five_rows() -> None:
    graph, lines = five()
    explicit = implicit_cast(graph)
    assert sum(symbol.op is ops.cast for symbol in explicit.symbols) == 1
    expected = list(
        zip(lines, ["lhs", "rhs", "lhs", "rhs", "lhs"], [*[""] * 3, "head", ""], strict=True)
    )
    assert len(set(lines)) == 5
    assert implicit(graph) == implicit(explicit) == expected
    for survivor in (
        Graph.parse(str(explicit)),
        Graph.parse(str(Graph.parse(str(explicit)))),
        common_subexpressions(explicit),
        simplify_casts(explicit),
        lower(graph),
        Graph.parse(str(lower(graph))),
        pickle.loads(pickle.dumps(explicit)),
    ):
        assert implicit(survivor) == expected
        assert {row.location.file for row in cast_report(survivor)} == {FILE}


def test_casts_merged_by_common_subexpressions_keep_all_rows() -> None:
    graph = Graph("merged")
    x = graph.input("int16", "n")
    y = graph.input("float32", "n")
    graph.output((x + 1) + y, (x + 1) * y, y - (1 + x))
    explicit = implicit_cast(graph)
    assert sum(symbol.op is ops.cast for symbol in explicit.symbols) == 3
    merged = common_subexpressions(explicit)
    casts = [symbol for symbol in merged.symbols if symbol.op is ops.cast]
    assert len(casts) == 1
    assert [(origin.operand, origin.op) for origin in casts[0].origins] == [
        *(("lhs", "add"), ("lhs", "multiply"), ("rhs", "subtract"))
    ]
    assert len(implicit(Graph.parse(str(merged)))) == 3


def test_a_row_says_where_why_and_at_what_loss() -> None:
    graph = Graph("row")
    x = graph.input("int32", "n")
    y = graph.input("bfloat16", "n")
    with graph.layer("encoder"):
        total = y * x
    graph.output(total)
    (row,) = cast_report(graph)
    assert isinstance(row, CastRow)
    assert (row.kind, row.op, row.operand, row.rule) == ("implicit", "multiply", "rhs", "max")
    assert (row.source, row.target) == (DType.int32, DType.bfloat16)
    names = ("int32", "int64", "float16", "bfloat16")
    assert row.path == tuple(map(DType, names))
    assert (row.exact, row.witness) == (False, 257)
    assert (row.bytes_before, row.bytes_after) == (4, 2)
    assert row.location == total.location
    assert (row.location.file, row.location.layer) == (FILE, "encoder")
    assert (row.location.line, row.location.column) == (total.location.line, 17)


def mixed() -> Graph:
    """Casts of all three kinds, exact and not."""
    graph = Graph("mixed")
    x = graph.input("int8", "n")
    y = graph.input("bfloat16", "n")
    graph.output((x + y).cast("uint8"))
    return graph


def test_the_three_kinds() -> None:
    report = cast_report(lower(mixed())).in_order()
    kinds = [(row.kind, row.operand, row.op, str(row.source), str(row.target)) for row in report]
    assert kinds == [
        ("implicit", "lhs", "add", "int8", "bfloat16"),
        ("legalization", "lhs", "add", "bfloat16", "float32"),
        ("legalization", "rhs", "add", "bfloat16", "float32"),
        ("legalization", "result", "add", "float32", "bfloat16"),
        ("explicit", "x", "cast", "bfloat16", "uint8"),
    ]
    rules = {row.kind: row.rule for row in report}
    assert rules == {"implicit": "max", "legalization": "legalize", "explicit": "cast"}


def test_only_selects_by_kind_and_by_exactness() -> None:
    report = cast_report(lower(mixed())).in_order()
    assert len(report.only("implicit")) == len(report.only(kind="explicit")) == 1
    assert len(report.only("legalization")) == 3
    assert [row.operand for row in report.only(exact=False)] == ["result", "x"]
    assert [row.operand for row in report.only("legalization", exact=True)] == ["lhs", "rhs"]
    assert len(report.only()) == len(report) == 5
    assert isinstance(report.only("implicit"), CastReport)
    assert not report.only("implicit", exact=False)


def test_a_report_of_a_graph_with_implicit_casts_makes_them_explicit_first() -> None:
    kinds = [row.kind for row in cast_report(mixed()).in_order()]
    assert kinds == ["implicit", "explicit"]
    assert kinds == [row.kind for row in cast_report(implicit_cast(mixed())).in_order()]


def test_json_has_every_field() -> None:
    report = cast_report(lower(mixed())).in_order()
    data = json.loads(report.to_json())
    assert data["graph"] == "mixed"
    assert len(data["casts"]) == 5
    first = data["casts"][0]
    line = first["location"].pop("line")
    assert isinstance(line, int)
    more = {
        *("expression", "text", "loss", "elements", "bytes_added", "damage", "cause", "fix"),
        *("others", "measured", "shares", "times", "uses", "casts"),
    }
    assert more <= set(first)
    assert {name: value for name, value in first.items() if name not in more} == {
        "kind": "implicit",
        "op": "add",
        "operand": "lhs",
        "rule": "max",
        "location": {"file": FILE, "column": 19, "layer": ""},
        "from": "int8",
        "to": "bfloat16",
        "path": ["int8", "int16", "int32", "int64", "float16", "bfloat16"],
        "exact": True,
        "witness": None,
        "bytes_before": 1,
        "bytes_after": 2,
    }
    last = data["casts"][-1]
    assert (last["from"], last["to"], last["exact"], last["witness"]) == (
        *("bfloat16", "uint8", False, "256"),
    )


def test_the_table_is_aligned_and_names_what_is_lost() -> None:
    report = cast_report(lower(mixed())).in_order()
    head, titles, *rows = str(report).splitlines()
    assert head == "graph mixed: 5 uses of casts, 2 can lose something"
    assert len(rows) == 4 and titles.endswith("times")  # the operands of the first are alike
    column = titles.index("operand")
    assert [row[column:].split("  ")[0] for row in rows] == [
        *("lhs of add", "lhs, rhs of add", "result of add", "x of cast")
    ]
    assert all(row.startswith(f"{FILE}:") for row in rows)
    assert "max: i8 -> i16 -> i32 -> i64 -> f16 -> bf16" in rows[0] and "exact" in rows[0]
    assert "loses 257" in rows[2] and "4 -> 2" in rows[2]
    assert repr(report) == str(report)


def test_the_table_names_layers() -> None:
    graph = Graph("layers")
    x = graph.input("int8")
    with graph.layer("a"), graph.layer("b"):
        graph.output(x + graph.scalar[DType.float32](1))
    assert "[a/b]" in str(cast_report(graph))


def test_a_graph_without_casts_says_so() -> None:
    graph = Graph("none")
    graph.output(graph.input("int8") + 1)
    report = cast_report(graph)
    assert str(report) == "graph none: no casts"
    head = {"version": 3, "graph": "none", "rules": "max"}
    rest = {
        "against": None,
        "unseen": [],
        "sentences": [],
        "outputs": [],
        "causes": [],
        "losses": [],
        "casts": [],
    }
    assert not report and json.loads(report.to_json()) == {**head, **rest}


def test_a_report_is_a_sequence() -> None:
    report = cast_report(lower(mixed())).in_order()
    assert report[0] is report.rows[0] and report[-1].kind == "explicit"
    assert list(report) == list(report.rows) and len(report[1:3]) == 2
    with pytest.raises(IndexError):
        report[5]


def test_a_use_that_was_folded_into_a_constant_is_still_reported() -> None:
    graph = Graph("folded")
    y = graph.input("float32", "n")
    one, three = graph.scalar[DType.int16](1), graph.scalar[DType.int64](1)
    graph.output((y + one) * three)
    assert len(implicit(lower(graph))) == len(implicit(graph)) == 2
    assert not any(symbol.op is ops.cast for symbol in lower(graph).symbols)


def test_rows_of_two_parsed_lines_keep_their_places() -> None:
    graph = Graph.parse(
        """graph @text rules=max (%x: int16[], %y: float32[]) -> (float32[]) {
  %0 = add(%x, %y) : float32[] loc("model.py":7:3, layer="first")
  %1 = add(%0, %x) : float32[]
  return %1
}"""
    )
    first, second = cast_report(graph)
    assert first.location == Location.at("model.py", 7, 3, layer="first")
    assert (second.location.file, second.location.line) == ("", 3)


@given(programs(steps=10))
def test_no_use_is_lost_by_passes_or_by_text(program: Program) -> None:
    """What the rules inserted is reported after each pass, as long as an output needs it."""
    explicit = implicit_cast(dead_code(program.graph))
    before = set(cast_report(explicit).only("implicit"))
    for each in (legalize, common_subexpressions, fold_constants, dead_code):
        after = set(cast_report(each(explicit)))
        assert before <= after, before - after
    text = str(explicit)
    assert [str(row.location) for row in cast_report(Graph.parse(text))] == [
        *(str(row.location) for row in cast_report(explicit))
    ]


@every(("rules", "exact"), [("jax", True), ("jax_x32", False)])
def test_a_cast_to_a_weak_dtype_loses_what_its_concrete_dtype_loses(rules: str, exact: bool):
    g = Graph(rules=rules)
    g.output(g.input("int32", ("n",)).cast(DType.weak_float))
    (row,) = cast_report(g)
    assert row.exact is exact
