"""Graphs with control flow under other rules: rebuilds, differences, refusals."""

import json

import numpy as np
import pytest
from hypothesis import given, settings

from graphir import DType, Graph, PromotionError, rules
from graphir import control as cf
from graphir.passes import diff, rebuild
from tests.support.control_flow import flow_graphs
from tests.support.tables import every


def mixing(under: str) -> Graph:
    """A scan whose weak carry its body promotes, and a cond whose branches meet."""
    g = Graph("p", rules=under)
    x = g.input(DType.float32, (3,), name="x")
    n = g.input(DType.int32, (3,), name="n")
    scale = g.constant(np.float64(2.5))
    total, _ = cf.scan(lambda c, r: (c + r * 1.5, ()), 0.0, n)
    z = cf.cond(x[0] > 1, lambda a: a + n, lambda a: a * scale, x)
    g.output(total, z)
    return g


@every("after", ["jax", "jax_x32", "torch", "numpy"])
@every("before", ["jax", "numpy"])
def test_a_rebuilt_graph_is_the_graph_as_built(before: str, after: str) -> None:
    new = rebuild(mixing(before), after).verify()
    built = mixing(after)
    assert [str(x.type) for x in new.outputs] == [str(x.type) for x in built.outputs]
    assert new.has_bodies and len(new) == len(built)


def test_a_difference_names_the_line_in_the_body() -> None:
    result = diff(mixing("numpy"), "torch")
    rows = {(change.symbol.location.layer, change.symbol.op.name) for change in result}
    assert ("body of scan", "multiply") in rows
    assert ("false branch of cond", "multiply") in rows
    assert {str(change.after) for change in result if change.symbol.op.name == "cond"} == {
        "float32"
    }
    assert any("a * scale" in text for text in result.sentences)
    assert "[body of scan]" in str(result)
    assert json.loads(result.to_json())["changes"]


def test_a_carry_that_the_rules_widen_is_refused_with_the_op_named() -> None:
    g = Graph("p", rules="jax")
    x = g.input(DType.float32, (3,), name="x")
    n = g.input(DType.int32, (3,), name="n")
    g.output(cf.while_loop(lambda v: v.sum() < 5, lambda v: v * n, x))
    with pytest.raises(PromotionError, match=r"keep the type of carry 0.*multiply.*float64"):
        rebuild(g, "numpy")
    result = diff(g, "numpy")
    assert "multiply" in str(result.refused[0].errors[0])
    wide = [change for change in result if change.symbol.op.name == "multiply"]
    assert str(wide[0].after) == "float64"


def test_refusals_in_bodies_are_all_listed() -> None:
    with pytest.raises(PromotionError) as caught:
        rebuild(mixing("numpy"), "tensorflow")
    text = str(caught.value)
    assert text.count("multiply(") == 2 and "add(lhs: float32[3]" in text


@settings(max_examples=settings().max_examples)
@given(flow_graphs(rules=("jax", "numpy", "torch", "max")))
def test_drawn_graphs_under_their_own_and_other_rules(graph: Graph) -> None:
    assert not diff(graph, graph.rules.name)
    for name in ("jax", "numpy"):
        result = diff(graph, name)
        json.loads(result.to_json())
        assert str(result)
        if not (result.refused or result.both_refused or result.broken):
            assert rebuild(graph, rules(name)).verify().has_bodies == graph.has_bodies
