"""`from_onnx`: rows against the node tests of the onnx package, and what importing does itself."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

from onnx import TensorProto, helper

from graphir import Graph, GraphError
from passes import cast_report
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


# -- models of mixed types

FLOAT, DOUBLE, HALF, INT64 = (
    *(TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16),
    TensorProto.INT64,
)
NUMPY = {FLOAT: np.float32, DOUBLE: np.float64, HALF: np.float16, INT64: np.int64}
MIXED: dict[str, tuple[str, dict[str, int], dict[str, tuple[int, float]], int, list[str]]] = {
    # op, inputs, initializers, declared output; the operands that are cast
    "an initializer gives way": ("Mul", {"x": FLOAT}, {"c": (INT64, 2)}, INT64 * 0, ["c"]),
    "but not if it loses": ("Mul", {"x": INT64}, {"c": (FLOAT, 0.5)}, 0, ["x"]),
    "a float is rounded": ("Mul", {"x": HALF}, {"c": (FLOAT, 0.1)}, 0, ["c"]),
    "the declared output decides": ("Mul", {"x": INT64}, {"c": (FLOAT, 2.0)}, FLOAT, ["x"]),
    "computed values, declared": ("Add", {"x": FLOAT, "y": INT64}, {}, FLOAT, ["y"]),
    "computed values, the widest": ("Add", {"x": FLOAT, "y": DOUBLE}, {}, 0, ["x"]),
    "most operands": ("Sum", {"x": FLOAT, "y": DOUBLE, "z": FLOAT}, {}, 0, ["y"]),
}


@pytest.mark.parametrize("case", MIXED)
def test_mixed_types_are_read_with_a_cast_and_a_note(case: str) -> None:
    op, inputs, constants, output, wrong = MIXED[case]
    node = helper.make_node(op, [*inputs, *constants], ["r"], "mix")
    values = [
        helper.make_tensor(name, element, [], [number])
        for name, (element, number) in constants.items()
    ]
    last = helper.make_node("Identity", ["r"], ["y_"], "last")
    nodes = [node] if output else [node, last]
    outputs = [value("r", output, 2)] if output else [value("y_", FLOAT, 2)]
    model = model_of(
        nodes, [value(name, element, 2) for name, element in inputs.items()], outputs,
        initializer=values,
    )  # fmt: skip
    graph = from_onnx(model)
    rows = [row for row in cast_report(graph).rows if row.op == f"onnx.{op}"]
    formals = {"Mul": ["A", "B"], "Add": ["A", "B"], "Sum": ["data_0"] * 3}[op]
    places = [*inputs, *constants]
    assert [row.operand for row in rows] == [formals[places.index(name)] for name in wrong]
    assert len(graph.notes) == len(wrong)
    for name, note in zip(wrong, graph.notes, strict=True):
        assert op in note and "mix" in note and f"'{name}'" in note
    arrays = {name: np.array([1, 3]).astype(NUMPY[element]) for name, element in inputs.items()}
    for name, (element, number) in constants.items():
        arrays[name] = np.asarray(number, NUMPY[element])
    to = graph.outputs[0].dtype.storage
    total = np.multiply if op == "Mul" else np.add
    expected = reduce(total, [array.astype(to) for array in arrays.values()])
    np.testing.assert_array_equal(
        interpret(graph, *[arrays[name] for name in inputs]), expected, strict=True
    )


def test_an_operand_that_no_cast_is_sure_to_mend_is_refused() -> None:
    node = helper.make_node("Sqrt", ["x"], ["y"], "root")
    model = model_of([node], [value("x", INT64, 2)], [value("y", TensorProto.BOOL, 2)])
    with pytest.raises(GraphError, match=r"node 'root' \(Sqrt\): Sqrt takes no int64"):
        from_onnx(model)


def test_casts_of_exporters_name_their_pass_and_nodes_their_layer() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], "InsertedPrecisionFreeCast_h", to=DOUBLE),
        helper.make_node("Cast", ["h"], ["i"], "/net/layers.1/Cast", to=HALF),
    ]
    graph = from_onnx(model_of(nodes, [value("x", FLOAT, 2)], [value("i", HALF, 2)]))
    first, second = sorted(cast_report(graph).rows, key=lambda row: row.location.line)
    assert (first.kind, first.op) == ("exporter", "onnxruntime.InsertCastTransformer")
    assert (second.kind, second.location.layer) == ("explicit", "net/layers.1")
    assert str(Graph.parse(str(graph))) == str(graph)
