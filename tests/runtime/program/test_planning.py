"""The pipelines of the planner: what verification finds."""

from __future__ import annotations

import numpy as np
import pytest

from graphir import ExecutionError, Graph, GraphError, ops
from graphir.passes import lower
from graphir.passes.pipeline import Pipeline
from graphir.runtime import Program, interpret
from graphir.runtime.program.planning import PLANNING, rewrite_steps
from tests.support.evaluator import same
from tests.support.verified_steps import verify


def softmax_of_a_product() -> Graph:
    g = Graph(rules="numpy")
    x, y = g.input("float32", (40, 30), name="x"), g.input("float32", (30, 50), name="y")
    g.output(ops.softmax(x @ y, axis=-1), x * 2)
    return g


def update_of_rows() -> Graph:
    g = Graph(rules="numpy")
    x, y = g.input("float32", (40, 30), name="x"), g.input("float32", (4, 30), name="y")
    bounds = {"start": (8, 0), "stop": (12, 30), "step": (1, 1)}
    g.output(ops.slice_update(x + 1, y * 2, **bounds))
    return g


def test_each_pass_keeps_the_value_of_the_graph() -> None:
    graph = lower(softmax_of_a_product())
    inputs = [np.random.default_rng(0).normal(size=x.shape).astype("f4") for x in graph.inputs]
    for count in range(len(PLANNING) + 1):
        planned = Pipeline(PLANNING[:count], verify_each=True)(graph)
        assert all(map(same, interpret(planned, *inputs), interpret(graph, *inputs)))


def test_verification_finds_a_step_that_is_missing() -> None:
    program = Program(softmax_of_a_product())
    rewritten = rewrite_steps([*program.bound({})], program)
    verify(rewritten, program)
    with pytest.raises(GraphError, match="no step computes some outputs"):
        verify(rewritten._replace(steps=rewritten.steps[1:]), program)


def test_verification_finds_reads_after_an_update_in_place() -> None:
    program = Program(update_of_rows())
    rewritten = rewrite_steps([*program.bound({})], program)
    verify(rewritten, program)
    with pytest.raises(GraphError, match="reads cells without values"):
        verify(rewritten._replace(steps=[*rewritten.steps, rewritten.steps[-1]]), program)


def test_plan_for_gives_the_plan_that_a_call_runs() -> None:
    program = Program(softmax_of_a_product())
    x, y = np.ones((40, 30), "f4"), np.ones((30, 50), "f4")
    plan = program.plan_for(x, y=y)
    program(x, y)
    assert program.plans == [plan] and plan.shapes == [(40, 50), (40, 30)]
    with pytest.raises(ExecutionError, match="x"):
        program.plan_for(x.T, y)
