"""Inputs with default values: what a run takes where the caller passes no value."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from graphir import ExecutionError, Graph
from graphir.passes import lower
from graphir.passes.analysis.rebuild import rebuild
from graphir.runtime import Program, audit, execute, interpret
from tests.support.tables import every

X, W = np.array([1.0, 2.0], "float32"), np.array([0.5, 0.25], "float32")


def scaled() -> Graph:
    graph = Graph("scaled", rules="numpy")
    x, w = graph.input("float32", (2,), name="x"), graph.input("float32", (2,), name="w")
    graph.output(x * w + np.float64(1))
    graph.describe(defaults={"w": W})
    return graph


def audited(graph: Graph, *args: Any, **keywords: Any) -> Any:
    return audit(graph, *args, **keywords).results[0]


@every("run", [interpret, execute, audited])
def test_a_run_takes_defaults_where_no_value_is_passed(run: Any) -> None:
    graph = scaled()
    for each in (graph, lower(graph), rebuild(graph, "jax"), pickle.loads(pickle.dumps(graph))):
        np.testing.assert_allclose(run(each, X), X * W + 1)
        np.testing.assert_allclose(run(each, X, X), X * X + 1)
        np.testing.assert_allclose(run(each, X, w=X), X * X + 1)


def test_an_audit_in_another_dtype_takes_defaults() -> None:
    np.testing.assert_allclose(audit(scaled(), X, as_dtype="float32").results[0], X * W + 1)


@every("native", ["off", "auto"])
def test_a_program_takes_defaults_at_every_call(native: Any) -> None:
    program = Program(scaled(), native=native)
    for x, w in [(X, W), (X, X), (W, W), (X, W)] * 20:
        args = (x,) if w is W else (x, w)
        np.testing.assert_allclose(program(*args), x * w + 1)


def test_an_input_without_default_is_missing() -> None:
    with pytest.raises(ExecutionError, match="is missing x"):
        interpret(scaled())
