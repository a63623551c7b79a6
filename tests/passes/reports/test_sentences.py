"""The sentences above a table: why a result is wide, and which line lost its values."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from graphir import Graph
from graphir.passes import cast_report
from graphir.passes.reports import REPORT_FORMATS
from graphir.runtime import record
from tests.passes.reports import explained_programs as programs
from tests.support.tables import every

X = np.linspace(1, 2, 6, dtype=np.float32)


def sentences(function: Any, *arrays: Any) -> list[str]:
    with np.errstate(all="ignore"):
        return record(function, *arrays).audit().sentences


def test_a_wide_result_has_the_step_the_operand_and_its_maker() -> None:
    report = record(programs.scaled, X).audit()
    expected = (
        "the result is float64 because line 12 multiplies by `scale`, a float64 of line 7; "
        "write np.float32(3) in line 7 "
    )
    measured = [f"{expected}(measured: float32, error 2.6e-08)"]
    assert report.sentences == measured
    assert report.sites[0].row.location.line == 12
    assert record(programs.scaled, X).report().sentences == [f"{expected}(inferred: float32)"]
    for name, writer in REPORT_FORMATS.items():
        text = writer(report).replace("\\", "").replace("&quot;", '"')
        assert "multiplies by `scale`" in text, name
    assert json.loads(report.to_json())["sentences"] == measured


def test_the_fix_of_a_wide_result_makes_it_narrow() -> None:
    sentence = sentences(programs.scaled, X)[0]
    fix = sentence.partition("write ")[2].partition(" in line ")[0]
    scale = eval(fix, {"np": np})
    assert eval("x * scale", {"x": X, "scale": scale}).dtype == np.float32


def test_a_promotion_of_narrow_operands_is_named() -> None:
    (sentence,) = sentences(programs.indexed, X)
    assert "promotes float32 and int64 to float64: x * np.arange(6)" in sentence
    assert "write np.arange(6, dtype=np.float32) (measured: float32, error " in sentence


@every("function", [programs.asked, programs.stored_narrow, programs.summed, programs.halved])
def test_what_the_program_asks_for_is_not_explained(function: Any) -> None:
    x = X if function in (programs.asked, programs.stored_narrow) else np.arange(6, dtype=np.int32)
    assert sentences(function, x) == []


def test_data_have_the_dtype_to_which_the_program_casts_them() -> None:
    (sentence,) = sentences(programs.loaded, ["1 2", "3 4"])
    assert sentence.startswith("the result is float64 because line")
    assert "multiplies by `np.array([0.2, 0.8])`, a float64" in sentence


def test_a_wrap_whose_effect_is_unknown_comes_before_truncations() -> None:
    report = record(programs.looked_up, np.arange(100, 256).astype(np.uint8)).audit()
    assert not report.outputs[0].is_known
    assert report.sites[0].row.kind == "wrap"
    assert "wraps 60 of 156 elements" in report.sentences[0]


def test_integers_that_wrap_on_their_way_to_bitwise_ops_are_not_accused() -> None:
    assert sentences(programs.hashed_keys, np.arange(9, dtype=np.uint32) * np.uint32(77)) == []


def test_numbers_that_the_program_makes_are_followed() -> None:
    (sentence,) = sentences(programs.squared_number)
    assert "wraps 1 of 1 elements (int32 multiply: 70000 * 70000" in sentence


def test_each_wrong_output_has_its_line_the_gravest_first() -> None:
    second, first = sentences(programs.two_wraps, np.full(4, 200, np.uint8))
    assert first.startswith("output0 is wrong by 85 % because line 32 wraps 4 of 4 elements")
    assert "(uint8 add: 200 + 100 = 300 became 44) in `x + np.uint8(100)`" in first
    assert second.startswith("output1") and "line 33" in second


def test_filters_keep_the_sentences() -> None:
    report = record(programs.two_wraps, np.full(4, 200, np.uint8)).audit()
    assert report.only(kind="overflow").sentences == report.sentences != []


def test_a_small_error_is_not_explained() -> None:
    assert sentences(programs.rounded, X) == []


def test_a_truncating_array_gets_a_dtype_where_it_is_made() -> None:
    (sentence,) = sentences(programs.truncated, np.array([1, 2, 3]))
    assert "write np.zeros(3, dtype=np.float64) in line " in sentence


def test_floats_out_of_range_are_clipped() -> None:
    (sentence,) = sentences(programs.bytes_of, np.array([0.5, 1.5], np.float32))
    assert sentence.endswith("write np.clip(x * 255, 0, 255).astype(np.uint8) (not tried)")


def test_a_wrap_before_a_mask_is_right() -> None:
    state = np.array([2**63 + 5, 3], np.uint64)
    report = record(programs.hashed, state).audit()
    assert report.outputs[0].differing == 0 and report.sentences == []
    assert [row.kind for row in report.losses] == ["wrap"]


def test_a_graph_has_the_sentence() -> None:
    graph = Graph("g", rules="max")
    x, y = graph.input("float32", (3,), name="x"), graph.input("float16", (3,), name="y")
    graph.output(x * graph.scalar(np.float64(2), "float64") + y)
    (sentence,) = cast_report(graph).sentences
    assert sentence.startswith("the result is float64 because line ")
    assert "multiplies by" in sentence


def test_rows_that_differ_in_their_number_are_one() -> None:
    def weighted(x: Any) -> Any:
        total = x
        for weight in (0.1, 0.3, 0.7):
            total = total * weight
        return total

    report = record(weighted, X).report()
    (site,) = report.sites
    assert (site.times, len(report)) == (3, 3)


def test_a_widening_inside_a_program_of_mixed_inputs_names_its_consequences() -> None:
    g = Graph("block", rules="jax")
    x, weights = g.input("bfloat16", (4, 4)), g.input("bfloat16", (4, 4))
    scale = g.input("float32", (4,))
    normal = x * scale
    hidden = normal @ weights
    g.output(hidden - weights)
    line = normal.location.line
    (sentence,) = cast_report(g).sentences
    assert sentence == (
        f"bfloat16 becomes float32, for 2 steps after it, because line {line} multiplies by "
        f'`scale`, a float32 of line {line - 1}; write x * scale.astype("bfloat16") '
        "(inferred: bfloat16)"
    )


def test_a_widening_without_consequences_is_no_sentence() -> None:
    g = Graph("local", rules="jax")
    x, scale = g.input("bfloat16", (4,)), g.input("float32", (4,))
    g.output((x * scale).astype("bfloat16") + x, g.input("float32", (2,)))
    assert cast_report(g).sentences == []


def test_a_wide_operand_that_the_program_asks_for_is_no_sentence() -> None:
    g = Graph("accumulated", rules="jax")
    x, weights = g.input("bfloat16", (4, 4)), g.input("bfloat16", (4, 4))
    hidden = x.astype("float32") @ weights
    g.output(hidden * hidden, g.input("float32", (2,)))
    assert cast_report(g).sentences == []
