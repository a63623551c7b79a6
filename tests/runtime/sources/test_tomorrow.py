"""A library of tomorrow: what no table here knows is refused by its name, or computed by it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphir import GraphirError, trace
from graphir.runtime import from_onnx, from_torch, interpret, jit, record

X = np.array([3, 1, 2], np.float32)


def dispatched(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as NumPy would add it."""
    overrides = importlib.import_module("numpy._core.overrides")
    dispatch = overrides.array_function_dispatch
    return dispatch(lambda x, **_: (x,), module="numpy", verify=False)(function)


# -- NumPy


def test_functions_and_keywords_that_numpy_adds_are_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    def tomorrow(x: Any, *, step: int = 1) -> Any:
        return np.asarray(x) + np.float32(step)

    monkeypatch.setattr(np, "tomorrow", dispatched(tomorrow), raising=False)
    for program in (lambda x: np.tomorrow(x), lambda x: np.tomorrow(x, step=2) * 2):
        expected = program(X)
        np.testing.assert_array_equal(jit(program)(X), expected)
        np.testing.assert_array_equal(record(program, X.copy()).result, expected)


def test_a_keyword_of_a_newer_numpy_has_numpys_error() -> None:
    for program in (lambda x: np.sum(x, tomorrow=1), lambda x: np.add(x, 1, tomorrow=1)):
        for run in (jit(program), lambda x, f=program: trace(f, x)):
            with pytest.raises(TypeError, match="unexpected keyword argument 'tomorrow'"):
                run(X)


def test_a_ufunc_of_a_stranger_is_refused_by_its_name() -> None:
    def tomorrow(x: float) -> float:
        return x + 1

    stranger = np.frompyfunc(tomorrow, 1, 1)
    with pytest.raises(GraphirError, match="tomorrow"):
        jit(lambda x: stranger(x))(X)


# -- ONNX


def model(op: str = "Relu", domain: str = "", **settings: Any) -> Any:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    helper = onnx.helper
    element = settings.pop("element", onnx.TensorProto.FLOAT)
    opset = settings.pop("opset", onnx.defs.onnx_opset_version())
    ir = settings.pop("ir", 10)
    node = helper.make_node(op, ["x"], ["y"], domain=domain, **settings)
    ends = [helper.make_tensor_value_info(name, element, [3]) for name in "xy"]
    opsets = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] * bool(domain))]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"op": "Tomorrow"}, "no op Tomorrow"),
        ({"op": "Tomorrow", "domain": "com.tomorrow"}, "Tomorrow"),
        ({"op": "Tomorrow", "domain": "com.microsoft"}, "Tomorrow"),
        ({"tomorrow": 1.5}, "Unrecognized attribute: tomorrow"),
        ({"op": "Cast", "to": 99}, "no element type 99, which the attribute to names"),
        ({"op": "EyeLike", "dtype": 99}, "no element type 99"),
        ({"element": 99}, "elem_type: 99"),
        ({"opset": 999}, "got 999; install a newer onnx"),
        ({"ir": 99}, "got 99; install a newer onnx"),
    ],
)
def test_what_onnx_adds_is_refused_by_its_name(settings: dict[str, Any], named: str) -> None:
    """An op of a domain that no library here has is a call, which no engine runs."""
    with pytest.raises(GraphirError, match=named):
        interpret(from_onnx(model(**settings)), X)


# -- torch; JAX is in test_from_jax.py


def test_an_operator_that_torch_adds_is_a_call() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    library = torch.library.Library("tomorrow", "DEF")
    library.define("up(Tensor x, *, Scalar step=1) -> Tensor")
    library.impl("up", lambda x, *, step=1: x + step, "CompositeExplicitAutograd")
    graph = from_torch(lambda x: torch.ops.tomorrow.up(x * 2, step=3), torch.tensor(X))
    np.testing.assert_array_equal(interpret(graph, X), X * 2 + 3)
    library.define("down(Tensor x) -> Tensor")  # that nothing computes
    with pytest.raises((GraphirError, NotImplementedError), match="down"):
        from_torch(lambda x: torch.ops.tomorrow.down(x * 2), torch.tensor(X))
