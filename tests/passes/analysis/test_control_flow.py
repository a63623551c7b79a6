"""Casts inside the graphs of control flow: rows, causes, sentences, sizes and policies."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphir import DType, Graph, PromotionError, Symbol
from graphir import control as cf
from graphir.passes import CastReport, Policy, cast_report
from graphir.passes.reports.html import report_html
from graphir.passes.reports.json_ import schema
from graphir.passes.reports.sarif import report_sarif
from graphir.passes.reports.text import report_details, report_markdown, report_text
from tests.support.tables import every


def program(rules: str = "numpy", policy: Policy | None = None, start: Any = 0.0) -> Graph:
    """A scan and a cond whose graphs widen float32 by a float64."""
    g = Graph("p", rules=rules, policy=policy)
    x = g.input(DType.float32, (3,), name="x")
    scale = g.constant(np.float64(2.5))
    with g.layer("encoder"):
        c, ys = cf.scan(lambda c, r: (c + r * scale, r), start, x)
    z = cf.cond(x[0] > 1, lambda a: a + a, lambda a: a * scale, x)
    g.output(c, ys, z)
    return g


def places(report: CastReport) -> set[tuple[str, str, str, str]]:
    return {(row.operand, row.op, row.layer, str(row.target)) for row in report}


def test_casts_in_bodies_are_rows_in_a_layer_that_names_the_op() -> None:
    report = cast_report(program("jax"))
    assert places(report) == {
        ("operands[0]", "scan", "encoder", "float64"),
        ("lhs", "multiply", "encoder/body of scan", "float64"),
        ("rhs", "greater", "", "float32"),
        ("lhs", "multiply", "false branch of cond", "float64"),
        ("result[0]", "cond", "", "float64"),
    }
    assert {row.text for row in report if row.op == "multiply"} == {"r", "a"}
    assert len(report.only(layer="encoder")) == 2


@every("writer", [report_text, report_details, report_markdown, report_html, report_sarif])
def test_all_formats_name_the_body(writer: Callable[[CastReport], str]) -> None:
    text = writer(cast_report(program("jax")))
    assert "encoder/body of scan" in text and "false branch of cond" in text
    assert '"layer": "encoder/body of scan"' in cast_report(program("jax")).to_json()


def test_an_op_in_a_body_is_named_where_it_widens_a_carry_or_a_branch() -> None:
    details = report_details(cast_report(program("jax")))
    title = next(line for line in details.splitlines() if "weak_float -> float64" in line)
    assert ", as multiply at " in title and "[encoder/body of scan]" in title
    (branch,) = [row for row in cast_report(program("jax")) if row.op == "cond"]
    assert branch.cause is not None and branch.cause.layer == "false branch of cond"
    assert branch.fix == '(a + a).astype("float64")'


def test_json_names_the_op_that_widens_a_carry() -> None:
    document = json.loads(cast_report(program("jax")).to_json())
    pytest.importorskip("jsonschema").validate(document, schema())
    causes = {cast["op"]: cast.get("demanded_by") for cast in document["casts"]}
    assert causes["scan"]["op"] == "multiply" and causes["multiply"] is None
    assert causes["scan"]["location"]["layer"] == "encoder/body of scan"
    assert causes["cond"]["location"]["layer"] == "false branch of cond"


@every("rules", ["numpy", "jax", "max"])
def test_the_sentence_names_the_line_in_the_body(rules: str) -> None:
    sentences = cast_report(program(rules, start=np.float64(0))).sentences
    assert any("multiplies by `scale`, a float64" in text for text in sentences)


def test_a_loop_that_starts_wide_is_told_to_start_narrow() -> None:
    g = Graph("p", rules="numpy")
    x = g.input(DType.float32, (3,), name="x")
    total, _ = cf.scan(lambda c, r: (c + r, ()), 0.0, x)
    g.output(total)
    (sentence,) = cast_report(g).sentences
    assert "adds `c`, a float64" in sentence and sentence.endswith(
        "; start scan with np.float32(0.0)"
    )


def test_bytes_of_a_body_count_its_runs() -> None:
    g = Graph("p", rules="numpy")
    x = g.input(DType.float32, ("n",), name="x")
    wide = g.constant(np.float64(2.5))

    def body(y: Symbol) -> Symbol:
        return (y * wide).cast("float32")

    y = cf.while_loop(lambda y: (y * wide).sum() < 5, body, x)
    rows = cf.map(lambda r: r * wide, x)
    g.output(y, rows)
    sizes = {(row.layer, row.op): str(row.bytes_added) for row in cast_report(g)}
    assert sizes["body of while_loop", "multiply"] == "8*n*while_loop_runs"
    assert sizes["condition of while_loop", "multiply"] == "8*n*while_loop_runs+8*n"
    assert sizes["body of scan", "multiply"] == "8*n"
    assert "8*n*while_loop_runs in all" in report_details(cast_report(g))


def test_nested_bodies_and_text() -> None:
    g = Graph("p", rules="jax")
    x = g.input(DType.float32, (3,), name="x")
    half = g.constant(np.float16(0.5))

    def body(state: Any) -> Any:
        i, v = state
        return i + 1, cf.cond(i > 2, lambda: v * half, lambda: v + 1)

    g.output(cf.while_loop(lambda s: s[0] < 5, body, (0, x))[1])
    report = cast_report(g)
    layer = "body of while_loop/true branch of cond"
    assert ("rhs", "multiply", layer, "float32") in places(report)
    assert places(cast_report(Graph.parse(str(g)))) == places(report)


def test_dead_carries_of_a_loop_are_judged() -> None:
    def build(policy: Policy | None = None) -> None:
        g = Graph("p", rules="numpy", policy=policy)
        x = g.input(DType.float32, (), name="x")
        k = g.constant(np.float64(2.5))
        state = cf.while_loop(lambda s: s[1] < 5, lambda s: (s[0] + x * k, s[1] + 1), (k, x))
        g.output(state[1])

    build()
    with pytest.raises(PromotionError, match=r"body of while_loop\]: multiply"):
        build(Policy(forbid="to:float64"))


@every(
    ("policy", "text"),
    [
        (Policy(forbid="to:float64"), r"\[encoder/body of scan\]: multiply\(.*forbidden by"),
        (Policy(forbid="to:float64"), r"cond\(.*result\[0\] float32 -> float64"),
        (Policy(widest="float32"), "float64 is wider than float32"),
    ],
)
def test_policies_enter_bodies(policy: Policy, text: str) -> None:
    with pytest.raises(PromotionError, match=text):
        program("jax", policy)


def test_policies_warn_in_bodies() -> None:
    with pytest.warns(UserWarning, match="float64") as caught:
        program("jax", Policy(warn="to:float64"))
    assert {warning.filename for warning in caught} == {__file__}
