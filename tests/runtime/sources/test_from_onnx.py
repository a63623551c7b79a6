"""`from_onnx`: rows against the node tests of the onnx package, and what importing does itself."""

from __future__ import annotations

from functools import reduce
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from graphir import ExecutionError, Graph, GraphError, GraphirError, ops, runtime
from graphir.passes import cast_report
from graphir.runtime import from_onnx, interpret, targets
from graphir.runtime.sources.onnx_.bound_node import BoundNode
from graphir.runtime.targets import TargetError
from tests.runtime.sources.onnx_node_tests import (
    generated_cases,
    has_calls,
    imported,
    is_random,
    judge,
)
from tests.runtime.targets.chunks import INEXACT
from tests.runtime.targets.onnx_models import Run, near, session
from tests.support.control_flow import flow_programs
from tests.support.drawing import Program, programs
from tests.support.evaluator import same
from tests.support.tables import every


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


SUMS: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], dict[str, int]]] = {
    # op, shapes of the indices and of the updates, attributes
    "rows": ("ScatterND", (9, 1), (9, 5, 4), {}),
    "columns": ("ScatterND", (3, 9, 2), (3, 9, 4), {}),
    "elements": ("ScatterElements", (6, 12, 4), (6, 12, 4), {"axis": 1}),
    "some": ("ScatterElements", (3, 5, 9), (3, 5, 9), {"axis": -1}),
}


@every("dtype", [np.float32, np.float64, np.int32, np.bool_])
@every("name", SUMS)
def test_sums_at_places_have_the_bits_of_onnxruntime(name: str, dtype: Any) -> None:
    runtime = pytest.importorskip("onnxruntime")
    (op, *shapes, attributes), rng = SUMS[name], np.random.default_rng(0)
    arrays = [(rng.normal(size=size) * 9).astype(dtype) for size in ((6, 5, 4), shapes[1])]
    arrays.append(rng.integers(-4, 4, shapes[0]))
    types = [helper.np_dtype_to_tensor_dtype(x.dtype) for x in arrays]
    values = [value(n, t, *x.shape) for n, t, x in zip("xui", types, arrays, strict=True)]
    node = helper.make_node(op, ["x", "i", "u"], ["y"], reduction="add", **attributes)
    model = model_of([node], values, [value("y", types[0], 6, 5, 4)])
    graph = from_onnx(model)
    assert [x.op for x in graph.symbols if x.op in (ops.call, ops.index_add)] == [ops.index_add]
    session = runtime.InferenceSession(model.SerializeToString())
    (right,) = session.run(None, dict(zip("xui", arrays, strict=True)))
    assert same(interpret(graph, *arrays), right)


# -- models of mixed types

FLOAT, DOUBLE, HALF, INT64 = (
    *(TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16),
    TensorProto.INT64,
)
NUMPY = {FLOAT: np.float32, DOUBLE: np.float64, HALF: np.float16, INT64: np.int64}
MIXED: dict[str, tuple[str, dict[str, int], dict[str, tuple[int, float]], int, list[str]]] = {
    # op, inputs, initializers, declared output; the operands that are cast
    "an initializer gives way": ("Mul", {"x": FLOAT}, {"c": (INT64, 2)}, 0, ["c"]),
    "but not if it loses": ("Mul", {"x": INT64}, {"c": (FLOAT, 0.5)}, 0, ["x"]),
    "a float is rounded": ("Mul", {"x": HALF}, {"c": (FLOAT, 0.1)}, 0, ["c"]),
    "the declared output decides": ("Mul", {"x": INT64}, {"c": (FLOAT, 2.0)}, FLOAT, ["x"]),
    "computed values, declared": ("Add", {"x": FLOAT, "y": INT64}, {}, FLOAT, ["y"]),
    "computed values, the widest": ("Add", {"x": FLOAT, "y": DOUBLE}, {}, 0, ["x"]),
    "most operands": ("Sum", {"x": FLOAT, "y": DOUBLE, "z": FLOAT}, {}, 0, ["y"]),
}


@every("case", MIXED)
def test_mixed_types_are_read_with_a_cast_and_a_note(case: str) -> None:
    op, inputs, constants, output, wrong = MIXED[case]
    node = helper.make_node(op, [*inputs, *constants], ["r"], "mix")
    values = [
        helper.make_tensor(name, element, [], [number])
        for name, (element, number) in constants.items()
    ]
    last = helper.make_node("Identity", ["r"], ["y_"], "last")
    nodes = [node] if output else [node, last]
    outputs = [value("r", output, 2)] if output else [helper.make_empty_tensor_value_info("y_")]
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


def test_a_modulo_of_floats_with_the_sign_of_integers_is_refused() -> None:
    node = helper.make_node("Mod", ["x", "x"], ["y"], "wrap", fmod=0)
    with pytest.raises(GraphError, match=r"node 'wrap' \(Mod\): Mod of floats needs fmod=1"):
        from_onnx(model_of([node], [value("x", FLOAT, 2)], [value("y", FLOAT, 2)]))


def test_casts_of_exporters_name_their_pass_and_nodes_their_layer() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], "InsertedPrecisionFreeCast_h", to=DOUBLE),
        helper.make_node("Cast", ["h"], ["i"], "/net/layers.1/Cast", to=HALF),
    ]
    graph = from_onnx(model_of(nodes, [value("x", FLOAT, 2)], [value("i", HALF, 2)]))
    first, second = cast_report(graph).in_order()
    assert (first.kind, first.op) == ("exporter", "onnxruntime.InsertCastTransformer")
    assert (second.kind, second.location.layer) == ("explicit", "net/layers.1")
    assert str(Graph.parse(str(graph))) == str(graph)


@pytest.mark.parametrize("place", ["value_info", "output", "input"])
def test_a_declared_dtype_that_contradicts_a_value_is_refused_and_a_shape_is_noted(
    place: str,
) -> None:
    nodes = [helper.make_node("Neg", ["x"], ["h"], "neg"), helper.make_node("Abs", ["h"], ["y"])]
    nodes = [] if place == "input" else nodes

    def model(element: int, *shape: int) -> Any:
        stated = value("h" if place == "value_info" else "y", element, *shape)
        if place == "input":
            return model_of([], [value("x", FLOAT, 2)], [value("x", element, *shape)])
        infos = [stated] if place == "value_info" else []
        output = stated if place == "output" else value("y", FLOAT, 2)
        return model_of(nodes, [value("x", FLOAT, 2)], [output], value_info=infos)

    where = {"value_info": r"node 'neg' .*", "output": r"node 2 .*", "input": ""}[place]
    with pytest.raises(
        GraphError, match=rf"{where}is declared float16, and .* gives float(, since x)?;"
    ):
        from_onnx(model(HALF, 2))
    assert not from_onnx(model(FLOAT, 2)).notes
    (note,) = from_onnx(model(FLOAT, 3)).notes
    assert "is declared float[3]" in note and note.endswith("gives float32[2]")


# -- control flow, and back


def test_loops_and_branches_are_control_flow() -> None:
    count = value("i", INT64), value("going", TensorProto.BOOL), value("carry", FLOAT, 2)
    results = value("again", TensorProto.BOOL), value("next", FLOAT, 2), value("row", FLOAT, 2)
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["again"]),
            helper.make_node("Add", ["carry", "x"], ["next"]),
            helper.make_node("Neg", ["next"], ["row"]),
        ],
        "body",
        count,
        results,
    )
    then, other = (
        helper.make_graph([helper.make_node(op, ["x"], [op])], op, [], [value(op, FLOAT, 2)])
        for op in ("Neg", "Abs")
    )
    nodes = [
        helper.make_node("Loop", ["three", "", "x"], ["last", "rows"], body=body),
        helper.make_node("If", ["test"], ["z"], then_branch=then, else_branch=other),
    ]
    model = model_of(
        nodes,
        [value("x", FLOAT, 2), value("test", TensorProto.BOOL)],
        [value("last", FLOAT, 2), value("rows", FLOAT, 3, 2), value("z", FLOAT, 2)],
        initializer=[helper.make_tensor("three", INT64, [], [3])],
    )
    graph = from_onnx(model)
    assert {"scan", "cond"} <= {symbol.op.name for symbol in graph.symbols}
    x = np.array([1, -2], np.float32)
    for test in (True, False):
        last, rows, z = interpret(graph, x, np.array(test))
        np.testing.assert_array_equal(last, 4 * x)
        np.testing.assert_array_equal(rows, [-2 * x, -3 * x, -4 * x])
        np.testing.assert_array_equal(z, -x if test else abs(x))


EXACT = tuple(op for name, op in ops.CATALOGUE.items() if name not in INEXACT)
"""The ops whose results in ONNX have the same bits, so that a place or an order is the same too."""


@settings(max_examples=60, deadline=None)
@given(st.one_of(programs(catalogue=EXACT), flow_programs(catalogue=EXACT)))
def test_models_of_drawn_graphs_mean_the_same(program: Program) -> None:
    try:
        model = targets.onnx(program.graph)
        expected = results_of(program.graph, *program.inputs)
    except GraphirError:
        assume(False)
        raise
    graph = from_onnx(model)
    try:
        actual = results_of(graph, *program.inputs)
    except ExecutionError:  # a value is right or refused
        assume(False)
        raise
    for ours, theirs in zip(actual, expected, strict=True):
        assert same(ours, theirs) or near(ours, theirs, within=1e-3)


def results_of(graph: Graph, *inputs: Any) -> tuple[Any, ...]:
    """Return the outputs of a graph."""
    results = interpret(graph, *inputs)
    return results if isinstance(results, tuple) else (results,)


@every("part", range(2))
def test_node_tests_mean_the_same_after_a_round_trip(part: int) -> None:
    count = 0
    for case in generated_cases()[part * 9 :: 29]:
        if judge(case).problem or is_random(case):
            continue
        graph, feeds = imported(case)
        try:
            run = Run(targets.onnx(graph))
        except TargetError:
            assert has_calls(graph)
            continue
        ours, theirs = results_of(graph, *feeds), run(*feeds)
        for x, y in zip(ours, theirs, strict=True):
            assert near(x, y, within=2e-2 if x.itemsize < 4 else 1e-4), case.name
        count += 1
    assert count > 30


# -- calls


@every(
    ("op", "shapes", "attrs"),
    [
        ("LRN", [(1, 4, 2, 2)], {"size": 3, "alpha": 0.5}),
        ("MaxPool", [(1, 2, 7, 6)], {"kernel_shape": [3, 2], "pads": [1] * 4, "ceil_mode": 1}),
        ("ConvTranspose", [(1, 4, 5, 5), (4, 3, 3, 2), (6,)], {"group": 2}),
        ("LSTM", [(5, 3, 4), (1, 12, 4), (1, 12, 3)], {"hidden_size": 3, "clip": 0.3}),
    ],
)
def test_calls_do_not_deviate_as_the_reference_evaluator_does(
    op: str, shapes: list[tuple[int, ...]], attrs: dict[str, Any]
) -> None:
    names = [f"x{i}" for i in range(len(shapes))]
    node = helper.make_node(op, names, ["y"], **attrs)
    inputs = [value(name, FLOAT, *shape) for name, shape in zip(names, shapes, strict=True)]
    model = model_of([node], inputs, [helper.make_empty_tensor_value_info("y")])
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    (expected,) = session(model).run(None, dict(zip(names, arrays, strict=True)))
    np.testing.assert_allclose(interpret(from_onnx(model), *arrays), expected, rtol=1e-5)
    try:
        (deviating,) = ReferenceEvaluator(model).run(None, dict(zip(names, arrays, strict=True)))
        assert deviating.shape != expected.shape or not np.allclose(deviating, expected)
    except ValueError:
        pass  # it cannot transpose convolutions in groups


@every("op", ["LayerNormalization", "GroupNormalization"])
def test_a_small_variance_about_a_large_mean_is_normalized(op: str) -> None:
    groups = {"num_groups": 1} if op == "GroupNormalization" else {}
    model = model_of(
        [helper.make_node(op, ["x", "scale", "shift"], ["y"], **groups)],
        [value("x", TensorProto.FLOAT, 1, 4)],
        [value("y", TensorProto.FLOAT, 1, 4)],
        initializer=[
            helper.make_tensor(name, TensorProto.FLOAT, [4], [number] * 4)
            for name, number in (("scale", 1.0), ("shift", 0.0))
        ],
    )
    x = np.float32([[4000, 4001, 4002, 4003]])
    expected = (x - x.mean()) / x.std()
    assert np.allclose(interpret(from_onnx(model), x), expected, 1e-4)


def test_calls_are_exported_as_their_nodes() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "/body/Conv"),
        helper.make_node("MaxPool", ["c"], ["y"], "/body/Pool", kernel_shape=[2, 2]),
    ]
    model = model_of(
        nodes,
        [value("x", FLOAT, 1, 2, 6, 6), value("w", FLOAT, 3, 2, 3, 3)],
        [value("y", FLOAT, 1, 3, 3, 3)],
    )
    graph = from_onnx(model)
    exported = targets.onnx(graph)
    assert [node.op_type for node in exported.graph.node] == ["Conv", "MaxPool"]
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(s.shape).astype(np.float32) for s in graph.inputs)
    (result,) = Run(exported)(x, w)
    np.testing.assert_allclose(result, interpret(graph, x, w), rtol=1e-5)


def test_an_axis_beyond_the_rank_is_no_other_axis() -> None:
    model = model_of(
        [helper.make_node("TopK", ["x", "k"], ["y", "places"], axis=3)],
        [value("x", TensorProto.FLOAT, 2, 4)],
        [value("y", TensorProto.FLOAT, "a", "b")],
        initializer=[helper.make_tensor("k", TensorProto.INT64, [1], [1])],
    )
    with pytest.raises(GraphirError, match="TopK"):
        interpret(from_onnx(model), np.ones((2, 4), np.float32))


def test_random_nodes_are_notes() -> None:
    node = helper.make_node("RandomNormalLike", ["x"], ["y"], "noise")
    values = [value(name, TensorProto.FLOAT, 3) for name in "xy"]
    (note,) = from_onnx(model_of([node], values[:1], values[1:])).notes
    assert note.startswith("noise") and "RandomNormalLike is random" in note


def test_a_function_of_another_version_is_a_note() -> None:
    old = [helper.make_opsetid("", 11)]
    nodes = [helper.make_node("Softmax", ["x"], ["t"]), helper.make_node("Sin", ["t"], ["y"])]
    function = helper.make_function("own", "Old", ["x"], ["y"], nodes, old)
    node = helper.make_node("Old", ["x"], ["y"], "old", domain="own")
    values = [value(name, TensorProto.FLOAT, 2, 3, 4) for name in "xy"]
    model = model_of([node], values[:1], values[1:])
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("own", 1))
    (note,) = from_onnx(model).notes
    assert "imports version 11 of 'ai.onnx'" in note and note.endswith("another Softmax")


def test_calls_keep_constants_that_passes_merge() -> None:
    """Equal initializers become one constant; the session of a call still has its own inside."""
    size = 64  # 16 KiB of weights, and small zero points
    weights = np.random.default_rng(0).normal(size=(1, 4 * size, size)).astype("float32")
    inside: list[bool] = []
    function_of = BoundNode._function_of

    def seen(self: Any, engine: Any, with_constants: bool) -> Any:
        inside.append(with_constants)
        return function_of(self, engine, with_constants)

    nodes = [
        helper.make_node("LSTM", [x, f"w{x}", f"r{x}", "", "", f"h{x}"], [y], hidden_size=size)
        for x, y in (("x", "y"), ("z", "w"))
    ]
    nodes.insert(1, helper.make_node("Squeeze", ["y", "axes"], ["z"]))
    initializers = [
        helper.make_tensor(name, TensorProto.FLOAT, array.shape, array.ravel())
        for x in "xz"
        for name, array in (
            (f"w{x}", weights),
            (f"r{x}", weights),
            (f"h{x}", np.full((1, 2, size), 0.5, "float32")),
        )
    ]
    initializers.append(helper.make_tensor("axes", TensorProto.INT64, [1], [1]))
    inputs, outputs = [value("x", 1, 3, 2, size)], [value("w", 1, 3, 1, 2, size)]
    model = model_of(nodes, inputs, outputs, initializer=initializers)
    graph = from_onnx(model)
    given = np.random.default_rng(1).normal(size=(3, 2, size)).astype("float32")
    with patch.object(BoundNode, "_function_of", seen):
        program = runtime.Program(graph)
        results = [program(given) for _ in range(2)]
    assert inside == [True, True]
    assert all(same(result, interpret(graph, given)) for result in results)
