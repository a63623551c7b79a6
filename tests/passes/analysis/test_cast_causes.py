"""Causes and what follows from them; what other rule sets would do; how the report is chosen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from graphir import DType, Graph, GraphError, PromotionRules, ops, rule_sets, rules
from graphir.passes import CastReport, CastRow, cast_report, implicit_cast, lower
from graphir.promotion import registry
from tests.support.drawing import Program, programs


def told(report: CastReport) -> list[tuple[int, str, int | None]]:
    """Line, operand and line of the cause of each implicit cast, from the first line on."""
    rows = report.only("implicit").in_order()
    first = min(row.location.line for row in rows)
    return sorted(
        (
            row.location.line - first,
            row.operand,
            None if row.cause is None else row.cause.location.line - first,
        )
        for row in rows
    )


def test_one_wide_constant_is_the_cause_of_a_cascade() -> None:
    g = Graph("cascade", rules="numpy")
    x, y, i = (g.input(dtype, ("n",)) for dtype in ("float32", "float32", "int32"))
    a = x * g.constant(np.float64(0.1))  # the cause
    b = a + y  # follows
    c = b - i  # follows too
    d = c.cast("float32") + y  # the user's own cast ends it
    e = y * g.constant(np.ones(3))[0]  # another cause
    g.output(d, e, c)
    report = cast_report(g)
    assert told(report) == [
        (0, "lhs", None),
        (1, "rhs", 0),
        (2, "rhs", 0),
        (4, "lhs", None),
    ]
    causes = report.causes().only("implicit")
    assert len(causes) == 2
    ((place, rows),) = report.following().items()
    assert [(row.operand, row.cause is not None and row.cause.place) for row in rows] == [
        ("rhs", place)
    ] * 2
    assert told(cast_report(implicit_cast(g))) == told(report)


def test_a_cascade_passes_through_ops_that_keep_the_dtype_and_ends_where_it_changes() -> None:
    g = Graph("through", rules="numpy")
    x, y = g.input("float32", ("n",)), g.input("float64", ("n",))
    a = x + y
    b = ops.sqrt(a[1:]) + x[1:]
    c = (b > 0) + x[1:]
    g.output(c)
    assert told(cast_report(g)) == [(0, "lhs", None), (1, "rhs", 0), (2, "lhs", None)]


def test_where_no_operand_has_the_dtype_what_was_widened_before_is_the_cause() -> None:
    g = Graph("meeting", rules="numpy")
    i, u, v = g.input("int8", ("n",)), g.input("uint8", ("n",)), g.input("uint16", ("n",))
    a = i + u  # int16, which neither has
    b = a + v  # int32, since a is int16
    g.output(b)
    assert told(cast_report(g)) == [
        (0, "lhs", None),
        (0, "rhs", None),
        (1, "lhs", 0),
        (1, "rhs", 0),
    ]


def test_casts_of_a_lowered_graph_have_their_uses() -> None:
    g = Graph("lowered", rules="max")
    x, i = g.input("float16", ("n",)), g.input("int8", ("n",))
    g.output(x * i)
    (row,) = cast_report(lower(g)).only("implicit")
    assert row.user is not None
    assert (row.user.op.name, row.text) == ("multiply", "i")


@given(programs())
def test_every_row_of_a_random_graph_has_its_use(program: Program) -> None:
    report = cast_report(program.graph)
    for row in report.only("implicit"):
        if row.operand == "result":
            continue
        assert row.user is not None
        assert row.user.op.name == row.op
        assert row.user.op.operand(row.position) == row.operand
        assert row.user.args[row.position] is row.symbol
        chain: set[int] = set()
        cause: CastRow | None = row
        while cause is not None and cause.cause is not None:
            assert id(cause) not in chain
            chain.add(id(cause))
            cause = cause.cause
            assert cause.cause is None  # a cause is no consequence
        assert cause is not None
        assert cause.place <= row.place or cause.symbol.index <= row.symbol.index


def test_what_the_other_rule_sets_would_do() -> None:
    g = Graph("others", rules="max")
    x, y = g.input("int32", ("n",)), g.input("float32", ("n",))
    g.output(x + y)
    (row,) = cast_report(g)
    assert set(row.others) == {each.name for each in rule_sets()} - {"max", "explicit", "python"}
    answers = {name: str(one) for name, one in row.others.items()}
    assert answers["numpy"] == "float64"
    assert answers["jax"] == answers["torch"] == "float32"
    assert answers["jax_strict"].startswith("refuses: they have no upper bound")
    for name, one in row.others.items():
        if isinstance(one, DType):
            assert one is rules(name).promote("int32", "float32")


def test_others_are_those_of_the_rules_in_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of graphs that are explicit by now, and of rule sets that came later."""

    def others(name: str) -> set[str]:
        g = Graph("others", rules=name)
        g.output(g.input("int16", ("n",)) + g.input("float32", ("n",)))
        (row,) = cast_report(Graph.parse(str(implicit_cast(g))))
        return set(row.others)

    assert others("max") - others("jax") == {"jax"}
    assert others("jax") - others("max") == {"max"}
    later = PromotionRules("later", "Joins as max does.", rules("max").lattice)
    monkeypatch.setitem(registry._REGISTRY, "later", later)
    assert "later" in others("jax")


def test_others_leave_out_those_that_lack_a_dtype() -> None:
    g = Graph("others", rules="max")
    g.output(g.input("int32", ("n",)) + g.input("bfloat16", ("n",)))
    (row,) = cast_report(g)
    assert "numpy" not in row.others
    assert row.others["jax"] is DType.bfloat16


def test_numbers_take_their_dtype_in_rows_of_their_own() -> None:
    g = Graph("numbers", rules="max")
    x = g.input("bfloat16", ("n",))
    g.output(x * 2.2 + 1.5)
    (row,) = cast_report(g)
    assert (row.kind, row.text, row.op, row.operand) == ("literal", "2.2", "multiply", "rhs")
    assert (row.loss.witness, row.loss.becomes) == (2.2, 2.203125)
    assert row.user is not None
    assert not row.fix
    weak = Graph("weak", rules="jax")
    weak.output(weak.input("bfloat16", ("n",)) * 2.2 + 1.5)
    kinds = [(row.kind, row.exact) for row in cast_report(weak)]
    assert kinds == [("literal", False), ("literal", True)]


def test_filters() -> None:
    g = Graph("filters", rules="max")
    x, b, i = (g.input(dtype, ("n",)) for dtype in ("int32", "bfloat16", "int64"))
    with g.layer("encoder"):
        a = x + b
        with g.layer("inner"):
            c = a * i.cast("float16")
    with g.layer("encoders"):
        d = c + x
    g.output(d)
    report = cast_report(g)
    assert len(report.only(layer="encoder")) == 3
    assert len(report.only(layer="encoder/inner")) == 2
    assert {str(row.source) for row in report.only(dtype="int32")} == {"int32"}
    assert [row.kind for row in report.only(loss="range")] == ["explicit"]
    assert len(report.only(layer="nowhere")) == 0
    assert (
        str(report.only(layer="nowhere")) == f"graph filters: none of {len(report)} uses of casts"
    )
    for wrong in ({"loss": "everything"}, {"kind": "any"}, {"dtype": "int33"}):
        with pytest.raises(GraphError):
            report.only(**wrong)


def test_the_worst_come_first_and_elements_are_counted() -> None:
    g = Graph("ranked", rules="max")
    x, h, b = (g.input(d, ("n", 3)) for d in ("int32", "float16", "bfloat16"))
    g.output(x * h, h + b, b + g.input("float32", ("n", 3)))
    report = cast_report(g)
    damages = [row.damage for row in report]
    assert damages == sorted(damages, reverse=True)
    assert [str(row.target) for row in report] == ["bfloat16", "float16", "float32"]
    assert [(str(row.elements), str(row.bytes_added)) for row in report] == [
        *(("3*n", "6*n"), ("3*n", "6*n"), ("3*n", "12*n")),
    ]


def test_a_report_says_what_other_rules_would_change() -> None:
    g = Graph("against", rules="max")
    g.output(g.input("int32", ("n",)) + g.input("float32", ("n",)))
    report = cast_report(g).compared("numpy")
    assert report.against is not None
    ((change),) = report.against
    assert (change.before, change.after) == (DType.float32, DType.float64)
