"""The pipelines of the planner: what verification finds, preconditions, and plans for inputs."""

from __future__ import annotations

import numpy as np
import pytest

from graphir import ExecutionError, Graph, GraphError, ops
from graphir.passes import lower
from graphir.passes.pipeline import Pipeline
from graphir.runtime import Program, interpret
from graphir.runtime.program import planning
from graphir.runtime.program.planning import (
    PLANNING,
    STEP_FUSIONS,
    STEP_REWRITES,
    PlanDraft,
    StepRewrite,
)
from tests.support.evaluator import same


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


def draft_of(program: Program) -> PlanDraft:
    return PlanDraft([*program.bound({})], program)


def test_each_pass_keeps_the_value_of_the_graph() -> None:
    graph = lower(softmax_of_a_product())
    inputs = [np.random.default_rng(0).normal(size=x.shape).astype("f4") for x in graph.inputs]
    for count in range(len(PLANNING) + 1):
        planned = Pipeline(PLANNING[:count], verify_each=True)(graph)
        assert all(map(same, interpret(planned, *inputs), interpret(graph, *inputs)))


def test_rewrites_apply_if_their_preconditions_hold() -> None:
    plain, updating = (draft_of(Program(g())) for g in (softmax_of_a_product, update_of_rows))
    both = (*STEP_REWRITES, *STEP_FUSIONS)
    applied = [
        {entry.change.__name__ for entry in both if entry.when(x)} for x in (plain, updating)
    ]
    assert "fuse_phases" in applied[0] and "mark_updates" not in applied[0]
    assert "mark_updates" in applied[1] and "fuse_phases" not in applied[1]
    assert "read_narrow_operands" in applied[0] & applied[1]


def test_verification_names_the_rewrite_that_drops_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def drop_first_step(draft: PlanDraft) -> None:
        draft.steps = draft.steps[1:]

    wrong = StepRewrite(drop_first_step, PlanDraft.always)
    monkeypatch.setattr(planning, "STEP_REWRITES", (*STEP_REWRITES, wrong))
    with pytest.raises(GraphError, match="in rewrite drop_first_step"):
        Program(softmax_of_a_product()).plan({})


def test_verification_finds_reads_after_an_update_in_place() -> None:
    draft = draft_of(Program(update_of_rows())).rewrite()
    draft.verify()
    overwritten = draft.steps[-1]
    draft.steps = [*draft.steps, overwritten]
    with pytest.raises(GraphError, match="reads cells without values"):
        draft.verify()


def test_plan_for_gives_the_plan_that_a_call_runs() -> None:
    program = Program(softmax_of_a_product())
    x, y = np.ones((40, 30), "f4"), np.ones((30, 50), "f4")
    plan = program.plan_for(x, y=y)
    program(x, y)
    assert program.plans == [plan] and plan.shapes == [(40, 50), (40, 30)]
    with pytest.raises(ExecutionError, match="x"):
        program.plan_for(x.T, y)
