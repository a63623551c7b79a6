"""The same program under other rules: as if its lines were run again; all refusals at once."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphir import DType, Graph, GraphError, GraphirError, PromotionError, TensorType, ops, rules
from graphir.passes import common_subexpressions, implicit_cast, rebuild
from graphir.passes.analysis.rebuild import rebuilt
from graphir.runtime import execute
from graphir.text.printer import large_constants
from tests.passes.analysis.programs import NAMES, Program, programs

OTHER = st.sampled_from(NAMES)


def told(error: GraphirError) -> str:
    """What an error says, whatever the call is called in which an input or a number arose."""
    return re.sub(
        r"^(\S+ )(input \S+ \S+|input\(\)|input|full\(\)|full|scalar): ", r"\1", str(error)
    )


# -- as if the lines were run again


@given(programs(), OTHER)
def test_rebuilding_is_building_again(program: Program, other: str):
    graph = program.build()
    new = rebuilt(graph, rules(other))
    try:
        again = program.build(other)
    except GraphirError as error:
        first = next(iter(new.refusals.values()))
        assert told(first.error) == told(error)
        assert type(first.error) is type(error) and first.error.location == error.location
        assert not first.follows
    else:
        assert not new.refusals and str(new.graph) == str(again)
        assert new.graph.verify() and new.graph.rules is rules(other)
        assert str(rebuild(graph, other)) == str(again)


@given(programs())
def test_under_its_own_rules_a_program_stays_what_it_is(program: Program):
    graph = program.build()
    assert str(rebuilt(graph, graph.rules).graph) == str(graph)
    assert rebuild(graph, program.rules) is graph


@given(programs(), OTHER)
def test_text_is_rebuilt_as_the_graph_is(program: Program, other: str):
    graph = program.build()
    parsed = Graph.parse(str(graph), large_constants(graph))
    live, read = rebuilt(graph, rules(other)), rebuilt(parsed, rules(other))
    assert read.refusals.keys() == live.refusals.keys()
    assert read.refusals or str(read.graph) == str(live.graph)


@given(programs())
def test_merged_literals_are_taken_anew_in_each_expression(program: Program):
    graph = program.build()
    merged = common_subexpressions(graph)
    new = rebuilt(merged, merged.rules)
    assert not new.refusals
    pairs = [(s, twin) for s, twin in zip(merged, new.twins, strict=True) if twin is not None]
    assert all(twin.type is symbol.type and twin.op is symbol.op for symbol, twin in pairs)


# -- what keeps its dtype, and what takes one anew


def program(name: str) -> Graph:
    g = Graph("p", rules=name)
    x = g.input("int16", ("n",), name="x")
    g.output(x * 3, x.cast("float64") * 0.5, x + np.int32(7), x / 2)
    return g


def test_casts_constants_and_inputs_stay_and_literals_do_not():
    before, after = program("max"), rebuild(program("max"), "jax")
    assert [str(s.dtype) for s in before.outputs] == ["int16", "float64", "int32", "float64"]
    assert [str(s.dtype) for s in after.outputs] == ["int16", "float64", "int32", "float32"]
    for graph, dtypes in ((before, ["int16", "float64"]), (after, ["weak_int", "weak_float"])):
        literals = [s for s in graph if s.attrs.get("literal") is not None]
        assert [str(s.dtype) for s in literals][:2] == dtypes
        assert [s.attrs["literal"] for s in literals] == [3, 0.5, 2]
    [seven] = [s for s in after if s.op is ops.constant and s.attrs["literal"] is None]
    assert seven.dtype is DType.int32
    assert (after.input_names, after.inputs[0].dtype) == (["x"], DType.int16)
    assert [s.location for s in after.outputs] == [s.location for s in before.outputs]


def test_what_is_rebuilt_runs():
    found = execute(rebuild(program("max"), "jax"), np.array([5, 6], np.int16))
    assert [array.dtype.name for array in found] == ["int16", "float64", "int32", "float32"]
    assert found[3].tolist() == [2.5, 3.0]


def test_settings_names_layers_and_promises_are_kept():
    types = (TensorType("float32", ("n",)),)
    g = Graph("kept", in_types=types, out_types=types, rules="max", tf32="away")
    with g.layer("deep"):
        g.output(g[0] + 1.5)
    new = rebuild(g, "jax")
    assert (new.name, new.tf32, new.out_types) == ("kept", "away", types)
    assert new.outputs[0].location.layer == "deep" and new.rules_before is None
    assert str(new) == str(g).replace("rules=max", "rules=jax").replace(
        "constant {dtype=float32, value=0x1.8p+0", "constant {dtype=weak_float, value=0x1.8p+0"
    ).replace(": float32[] loc", ": weak_float[] loc")


def test_a_number_without_a_dtype_takes_one_anew_or_is_refused():
    g = Graph(rules="jax")
    two, ones = g.scalar(2), g.full(1.0, (3,))
    x = g.input("float16", (3,))
    g.output(x * two, x + ones)
    new = rebuild(g, "jax_x32")
    assert [str(s.dtype) for s in new.outputs] == ["float16", "float16"]
    with pytest.raises(PromotionError, match="'max' refuses 3 of 5") as caught:
        rebuild(g, "max")
    lines = str(caught.value).splitlines()
    assert "scalar: the literal 2 has no dtype of its own under 'max'" in lines[1]
    assert "full: the literal 1.0 has no dtype of its own under 'max'" in lines[2]


def test_a_weak_dtype_that_was_given_is_kept():
    g = Graph(rules="max")
    g.output(g.full(1.0, (3,), "weak_float"), g.full(1, (3,), "weak_float"))
    assert [str(s.dtype) for s in rebuilt(g, rules("max")).graph.outputs] == ["weak_float"] * 2
    g = Graph(rules="jax")
    g.output(g.full(1, (3,), "weak_float"))
    assert [str(s.dtype) for s in rebuild(g, "jax_x32").outputs] == ["weak_float"]


def test_a_full_takes_its_dtype_anew_unless_it_was_given():
    g = Graph(rules="numpy")
    g.output(g.full(1, (3,)), g.full(1, (3,), "int64"), g.full(True, (3,)))
    for graph in (g, Graph.parse(str(g))):
        dtypes = [str(s.dtype) for s in rebuild(graph, "jax").outputs]
        assert dtypes == ["weak_int", "int64", "bool"]
    assert "full {dtype=int64, value=1, shape=[3], literal=1}" in str(g)
    assert "literal" not in str(implicit_cast(g))


def test_a_literal_is_taken_anew_where_it_stood_for_another_number():
    g = Graph(rules="jax")
    x = g.input("int8", (1,))
    g.output(x**200, ops.clip(x, -300, 1.5), g.input("bool", (1,)) ** 2)
    assert [s.attrs["value"].item() for s in g if s.op is ops.constant] == [8, -44, 1.5, True]
    for graph in (g, Graph.parse(str(g))):
        assert str(rebuild(graph, "jax_x32")) == str(g).replace("=jax", "=jax_x32")
        new = rebuild(graph, "numpy_legacy")
        assert [str(s.dtype) for s in new.outputs] == ["int16", "float64", "int8"]


def test_one_that_is_used_twice_is_one_still():
    g = Graph(rules="jax")
    x = g.input("int8", (3,))
    two = g.scalar(2)
    g.output(x + two, x * two)
    new = rebuild(g, "torch" if "torch" in NAMES else "jax_x32")
    assert len(new) == len(g) == 4
    assert new.outputs[0].args[1] is new.outputs[1].args[1]


def test_a_shared_subexpression_is_rebuilt_once():
    g = Graph(rules="max")
    x, y = g.input("int8", (3,)), g.input("uint64", (3,))
    both = x + y
    g.output(both * both, both - x)
    new = rebuild(g, "jax")
    assert len(new) == len(g) and new.outputs[0].args[0] is new.outputs[1].args[0]


def test_literals_that_were_merged_are_taken_anew_in_each_expression():
    g = Graph(rules="jax")
    x, y = g.input("int8", (3,)), g.input("float16", (3,))
    first = x + 1
    second = y * 1
    g.output(first, second)
    merged = common_subexpressions(g)
    assert len(merged) == len(g) - 1
    new = rebuild(merged, "max")
    assert [str(s.args[1].dtype) for s in new.outputs] == ["int8", "float16"]


def test_a_number_that_was_merged_into_a_literal_is_alone_still():
    g = Graph(rules="numpy")
    x = g.input("bool", (3,))
    index = ops.gather(x, 1, axis=0)  # an int64 literal, as g.scalar(1) is under numpy
    one = g.scalar(1)
    g.output(index, x + one, one)
    merged = common_subexpressions(g)
    assert len(merged) == len(g) - 1
    new = rebuilt(merged, rules("numpy"))
    assert not new.refusals and [str(s.dtype) for s in new.graph.outputs] == [
        *("bool", "int64", "int64"),
    ]
    found = rebuilt(merged, rules("max")).refusals.values()
    assert [refusal.symbol.op.name for refusal in found] == ["add", "constant"]


def test_text_knows_where_an_expression_ends():
    g = Graph(rules="jax")
    x = g.input("float16", (3,))
    g.output(g.scalar(2) * x)
    with pytest.raises(PromotionError, match="the literal 2 has no dtype"):
        rebuild(g, "max")
    with pytest.raises(PromotionError, match="the literal 2 has no dtype"):
        rebuild(Graph.parse(str(g)), "max")
    without = re.sub(r" to [:\d]+", "", str(g))  # as text was, where both only start at one place
    assert str(rebuild(Graph.parse(without), "max").outputs[0].dtype) == "float16"


def test_text_without_places_has_its_literals_in_its_expressions():
    text = """
    graph @bare rules=max (%x: int16[n]) -> (int16[n]) {
      %0 = constant {dtype=int16, value=1, literal=1} : int16[]
      %1 = add(%x, %0) : int16[n]
      return %1
    }"""
    for rules_ in ("jax", "max_strict"):
        new = rebuild(Graph.parse(text), rules_)
        assert new.outputs[0].dtype is DType.int16
    weak = text.replace("rules=max", "rules=jax").replace("dtype=int16", "dtype=weak_int")
    new = rebuild(
        Graph.parse(weak.replace("literal=1} : int16[]", "literal=1} : weak_int[]")), "max"
    )
    assert [str(s.dtype) for s in new] == ["int16", "int16", "int16"]


def test_an_open_graph_is_rebuilt_without_outputs():
    g = Graph(rules="max")
    _ = g.input("int8") + 1
    assert rebuild(g, "jax").outputs == ()


# -- refusals


def refusing() -> tuple[Graph, dict[str, int]]:
    """A graph that jax_strict refuses at two lines, and the lines."""
    g = Graph("port", rules="max")
    lines: dict[str, Any] = {}
    i, x = g.input("index", name="i"), g.input("int8", ("n",), name="x")
    y = g.input("float32", ("n",), name="y")
    lines["add"] = x + y
    lines["multiply"] = lines["add"] * x
    lines["fine"] = y * 2.0
    lines["less"] = lines["fine"] < i
    g.output(lines["multiply"], lines["less"])
    return g, {name: symbol.location.line for name, symbol in lines.items()}


def test_all_refusals_are_one_error():
    g, lines = refusing()
    with pytest.raises(PromotionError) as caught:
        rebuild(g, "jax_strict")
    head, *told_lines, last = str(caught.value).splitlines()
    assert head == "'jax_strict' refuses 4 of 8 symbols of graph 'port':"
    assert last == "Cast there, or keep rules='max'."
    assert [line.split(": ", 2)[1].split("(")[0] for line in told_lines if ".py:" in line] == [
        *("input %i", "add", "multiply", "less"),
    ]
    add = next(line for line in told_lines if ": add(" in line)
    assert f"test_rebuild.py:{lines['add']}:" in add
    for part in ("lhs: int8[n]", "rhs: float32[n]", "'jax_strict'", ".cast(DType.float32)"):
        assert part in add
    assert "build the graph under rules='jax'" in add


def test_what_follows_from_a_refusal_is_told_apart():
    g, lines = refusing()
    found = rebuilt(g, rules("jax_strict")).refusals
    assert {refusal.symbol.op.name: refusal.follows for refusal in found.values()} == {
        "input": False,
        "add": False,
        "multiply": True,
        "less": True,
    }
    assert [refusal.error.location.line for refusal in found.values()][1:] == [
        *(lines["add"], lines["multiply"], lines["less"]),
    ]
    with pytest.raises(PromotionError, match="2 of them follow from operands that are refused:"):
        rebuild(g, "jax_strict")


def test_users_of_what_is_refused_are_asked_about_the_type_it_had():
    g = Graph(rules="max")
    x, y = g.input("int32", (3,)), g.input("bfloat16", (3,))
    total = (x + y) + y
    g.output(total, (x + y) * x)
    found = rebuilt(g, rules("max_strict"))
    assert [(s.op.name, place) for place, (s, *_) in found.refusals.items()] == [
        *(("add", 2), ("add", 4), ("multiply", 5)),
    ]
    assert found.twins[3] is not None and found.twins[3].dtype is DType.bfloat16


def test_a_literal_beside_what_is_refused_is_no_refusal_of_its_own():
    g = Graph(rules="max")
    x, i = g.input("int8", (3,)), g.input("index", (3,))
    g.output((x + i) * 2, i + 3)
    assert [r.symbol.op.name for r in rebuilt(g, rules("jax")).refusals.values()] == [
        *("input", "add", "add"),
    ]


def test_a_dtype_that_the_rules_lack_does_not_spread_beyond_a_cast():
    g = Graph(rules="max")
    i = g.input("index", (3,), name="i")
    g.output(i.cast("int64") * 2)
    found = rebuilt(g, rules("jax"))
    assert [r.symbol.op.name for r in found.refusals.values()] == ["input"]
    assert "JAX has no index" in str(found.refusals[0].error)


def test_a_cast_to_a_dtype_that_the_rules_lack_is_refused():
    g = Graph(rules="max")
    g.output(g.input("float32", (3,)).cast("tensor_float32") + 1.0)
    found = [refusal.symbol.op.name for refusal in rebuilt(g, rules("jax")).refusals.values()]
    assert found == ["cast", "add"]


def test_long_lists_end_and_say_where_the_rest_is():
    g = Graph("long", rules="max")
    x, y = g.input("int8", (3,)), g.input("float32", (3,))
    for _ in range(150):
        _ = x + y
    with pytest.raises(PromotionError, match=r"diff\(graph, 'jax_strict'\) has all 150") as caught:
        rebuild(g, "jax_strict")
    assert len(str(caught.value).splitlines()) == 103


def test_a_broken_promise_is_told():
    g = Graph("word", out_types=[TensorType("float64", ("n",))], rules="max")
    g.output(g.input("int16", ("n",)) / 2)
    with pytest.raises(PromotionError) as caught:
        rebuild(g, "jax")
    assert "promises (float64[n]) and has (float32[n]) under 'jax'" in str(caught.value)
    assert str(rebuild(g, "max_strict").out_types) == str(g.out_types)


def test_an_explicit_graph_is_refused_with_the_reason():
    with pytest.raises(GraphError, match="'p' is explicit: what 'max' decided is in its casts"):
        rebuild(implicit_cast(program("max")), "jax")
    with pytest.raises(GraphError, match="no rule set is named 'jacks'"):
        rebuild(program("max"), "jacks")


def test_nothing_is_left_in_the_graph_that_was_given():
    g, _ = refusing()
    before = str(g), len(g)
    with pytest.raises(PromotionError):
        rebuild(g, "jax_strict")
    assert (str(g), len(g)) == before
