"""`from_onnx`: rows against the node tests of the onnx package, and what importing does itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

from onnx import TensorProto, helper

from runtime import from_onnx, interpret
from tests.runtime.sources.onnx_node_tests import generated_cases, judge


def model_of(nodes: list[Any], inputs: list[Any], outputs: list[Any], **more: Any) -> Any:
    """Return a model of some nodes."""
    graph = helper.make_graph(nodes, "graph", inputs, outputs, **more)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def value(name: str, element: int, *shape: Any) -> Any:
    """Return a value's name and type."""
    return helper.make_tensor_value_info(name, element, shape)


def test_sampled_node_tests() -> None:
    cases = generated_cases()[::12]
    verdicts = [judge(case) for case in cases]
    assert sum(not verdict.problem for verdict in verdicts) >= 0.9 * len(cases)


def test_shapes_computed_by_nodes_are_folded() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"], axis=0),
        helper.make_node("Unsqueeze", ["n", "axes"], ["n1"]),
        helper.make_node("Concat", ["n1", "rest"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    ints = [
        helper.make_tensor("zero", TensorProto.INT64, [], [0]),
        helper.make_tensor("axes", TensorProto.INT64, [1], [0]),
        helper.make_tensor("rest", TensorProto.INT64, [1], [-1]),
    ]
    model = model_of(
        nodes,
        [value("x", TensorProto.FLOAT, "n", 3, 4)],
        [value("y", TensorProto.FLOAT, "n", 12)],
        initializer=ints,
    )
    graph = from_onnx(model)
    assert [symbol.op.name for symbol in graph.symbols] == ["input", "reshape"]
    assert str(graph.outputs[0].type) == "float32[n, 12]"
    x = np.ones((2, 3, 4), np.float32)
    assert interpret(graph, x).shape == (2, 12)
