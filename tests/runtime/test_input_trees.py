"""Arguments that are trees of arrays: each leaf is the input of its path, or the path is named."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

from graphir import ExecutionError
from graphir.runtime import Program, audit, execute, from_jax, from_torch, interpret

jax = pytest.importorskip("jax")
torch = pytest.importorskip("torch")

Layer = namedtuple("Layer", ["scale", "bias"])
X = np.arange(8, dtype=np.float32).reshape(4, 2)
PARAMETERS = {
    "layers": [Layer(np.float32(2), np.arange(3, dtype=np.float32)), (np.float32(3),)],
    "a": {"w": np.arange(6, dtype=np.float32).reshape(2, 3)},
    "absent": None,
}


def model(parameters: Any, x: Any, rates: Any) -> Any:
    (scale, bias), (factor,) = parameters["layers"]
    return (x @ parameters["a"]["w"] + bias * scale) * rates[0] - factor


GRAPH = from_jax(model, PARAMETERS, X, (0.5,))
EXPECTED = (X @ PARAMETERS["a"]["w"] + np.arange(3) * 2) * 0.5 - 3
RUNS = {
    "audit": lambda graph, *args, **keywords: audit(graph, *args, **keywords).results[0],
    "execute": execute,
    "interpret": interpret,
    "Program": lambda graph, *args, **keywords: Program(graph)(*args, **keywords),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_graph_takes_the_arguments_of_its_function(run: Any) -> None:
    backward = dict(reversed(PARAMETERS.items()))
    for args in ((PARAMETERS, X, (0.5,)), (backward, X, [0.5]), (PARAMETERS, X, 0.5)):
        assert np.array_equal(run(GRAPH, *args), EXPECTED)
    assert np.array_equal(run(GRAPH, x=X, rates=(0.5,), parameters=PARAMETERS), EXPECTED)
    assert np.array_equal(run(GRAPH, *jax.tree.leaves((PARAMETERS, X, (0.5,)))), EXPECTED)


def test_a_graph_of_torch_takes_the_arguments_of_its_function() -> None:
    def scaled(parameters: Any, x: Any) -> Any:
        return x * parameters["z"] + parameters["a"][0]

    tensors = {"z": torch.full((2,), 3.0), "a": (torch.ones(2),)}
    graph = from_torch(scaled, tensors, torch.from_numpy(X))
    for run in RUNS.values():
        assert np.array_equal(run(graph, tensors, torch.from_numpy(X)), X * 3 + 1)


def test_registered_classes_are_trees() -> None:
    class State:
        def __init__(self, w: Any) -> None:
            self.w = w

    jax.tree_util.register_dataclass(State, data_fields=["w"], meta_fields=[])
    graph = from_jax(lambda state, x: x * state["s"].w, {"s": State(X)}, X)
    assert np.array_equal(execute(graph, {"s": State(X)}, X), X * X)


REFUSED = {
    "has no leaf for input 'parameters_a_w'": ({"layers": PARAMETERS["layers"]}, X, (0.5,)),
    "has no input for argument 1['more']": ({**PARAMETERS, "more": X}, X, (0.5,)),
    "has no input for argument 1['a']['v']": ({**PARAMETERS, "a": {"v": X}}, X, (0.5,)),
    "has no input for argument 3[1]": (PARAMETERS, X, (0.5, 0.5)),
    "is missing rates_0": (PARAMETERS, X, ()),
    "input 'parameters_a_w' of graph 'model' is float32[2, 3]": (
        {**PARAMETERS, "a": {"w": X.astype(float)}},
        X,
        (0.5,),
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_other_trees_are_refused_by_path(text: str) -> None:
    for run in RUNS.values():
        with pytest.raises(ExecutionError) as caught:
            run(GRAPH, *REFUSED[text])
        assert text in str(caught.value)


def test_leaves_of_one_name_are_refused() -> None:
    leaves = {"a_b": X, "a": {"b": X + 1}}
    graph = from_jax(lambda p: p["a_b"] - p["a"]["b"], leaves)
    with pytest.raises(ExecutionError, match="has no leaf for input 'p_a_b_1'"):
        execute(graph, leaves)


def test_a_list_of_numbers_is_no_tree() -> None:
    with pytest.raises(ExecutionError, match=r"input 'x' of .* got a list; use np.asarray"):
        execute(from_jax(lambda x: x + 1, X[0]), [0.0, 1.0])
