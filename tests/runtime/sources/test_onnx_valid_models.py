"""Models that onnxruntime takes have its values, in the interpreter and in a Program."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
import onnx.version_converter
from onnx import TensorProto, helper, parser

from graphir import ExecutionError, GraphError
from graphir.runtime import Program, from_onnx, interpret
from tests.runtime.targets.onnx_models import session

UNKNOWN_RANK = (
    "(float[2, 3, 4] x, float[k] s) => (float[a, b, c, d] y) "
    "{{ i = Cast<to=7>(s) r = Reshape(x, i) {} }}"
)
"""A graph whose value r has a rank that no type states."""


def parsed(text: str, opset: int = 17, *domains: str) -> Any:
    """Return the model of a graph in the syntax of onnx.parser."""
    imports = ", ".join(f'"{name}" : {1 if name else opset}' for name in ("", *domains))
    return parser.parse_model(f"<ir_version: 8, opset_import: [{imports}]> g {text}")


def require_values(model: Any, feeds: dict[str, Any], rtol: float = 1e-4) -> Any:
    """Compare a model's graph with onnxruntime, and return the graph."""
    expected = session(model).run(None, feeds)
    graph = from_onnx(model)
    program: Any = Program(graph)
    for results in (interpret(graph, **feeds), program(**feeds)):
        for actual, target in zip(several(results), expected, strict=True):
            assert actual.dtype == target.dtype and actual.shape == target.shape
            np.testing.assert_allclose(actual, target, rtol=rtol, atol=1e-5)
    return graph


def several(results: Any) -> Any:
    return results if isinstance(results, tuple) else (results,)


def normal(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


# -- ops whose meaning depends on the version, the rank, or the size of an axis

RANK_4 = {"x": normal(2, 3, 4), "s": np.array([2, 3, 2, 2], np.float32)}
NORM = (
    "y = BatchNormalization(r, w, w, w, w)",
    "(float[2, 3, 4] x, float[k] s, float[3] w) => (float[a, b, c, d] y) "
    "{{ i = Cast<to=7>(s) r = Reshape(x, i) {} }}",
)


@pytest.mark.parametrize("opset", [9, 11, 13])
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax", "BatchNormalization"])
def test_ops_of_an_unknown_rank_mean_what_their_version_says(op: str, opset: int) -> None:
    if op == "BatchNormalization":
        model = parsed(NORM[1].format(NORM[0]), opset)
        require_values(model, {**RANK_4, "w": np.array([0.2, 0.4, 0.8], np.float32)})
    else:
        require_values(parsed(UNKNOWN_RANK.format(f"y = {op}(r)"), opset), RANK_4)


@pytest.mark.parametrize(
    ("opset", "node"),
    [
        (10, "f = Constant<value_floats=[1.0, 1.0, 2.0, 2.0]>() y = Resize(r, f)"),
        (9, "f = Constant<value=float[4] {1, 1, 2, 2}>() y = Upsample(r, f)"),
        (12, "y = Flatten<axis=2>(r)"),
        (16, "y = GlobalAveragePool(r)"),
        (11, "y = Softmax<axis=-1>(r)"),
    ],
)  # fmt: skip
def test_calls_compute_the_version_of_the_node(opset: int, node: str) -> None:
    node = node.replace("value_floats=[1.0, 1.0, 2.0, 2.0]", "value=float[4] {1, 1, 2, 2}")
    text = UNKNOWN_RANK.format(node)
    text = text.replace("a, b, c, d", "a, b") if "Flatten" in node else text
    require_values(parsed(text, opset), RANK_4)


def test_a_rank_that_a_computed_shape_tells_is_known() -> None:
    nodes = {
        "r = Reshape(x, i)": 4,
        "r = Expand(x, i)": 4,
        "r = ConstantOfShape(i)": 4,
        "j = Constant<value=int64[3] {1, 2, 1}>() r = Slice(x, j, i3)": 3,
        "r = Tile(x, i3)": 3,
        "r = ReduceSum<keepdims=0>(x, i1)": 2,
        "r = ReduceSum<keepdims=1>(x, i1)": 3,
        "r = Unsqueeze(x, i1)": 4,
        "r = Squeeze(o, i1)": 3,
        "r = STFT(signal, step, none, length)": 4,
    }
    inputs = (
        "(float[2, 3, 4] x, int64[4] i, int64[3] i3, int64[1] i1, float[1, 2, 3, 4] o, "
        "float[1, n, 1] signal, int64 step, int64 length)"
    )
    for text, rank in nodes.items():
        text = text.replace("none", "")
        outputs = ", ".join(f"d{axis}" for axis in range(rank))
        (output,) = from_onnx(
            parsed(f"{inputs} => (float[{outputs}] y) {{ {text} y = Neg(r) }}")
        ).outputs
        assert output.op.name == "negative", text


SLICES = ("-5, 5", "3, 1000000000", "0, 5", "-5, 9223372036854775807", "2, -1", "0, -3", "-1, -9")


@pytest.mark.parametrize("bounds", SLICES)
def test_slices_of_a_symbolic_size_are_cut_at_its_ends(bounds: str) -> None:
    first, last = bounds.split(", ")
    model = parsed(
        "(float[n] x) => (float[m] y) { "
        f"a = Constant<value=int64[1] {{{first}}}>() b = Constant<value=int64[1] {{{last}}}>() "
        "y = Slice(x, a, b) }"
    )
    for n in (3, 4, 5, 7, 12):
        require_values(model, {"x": normal(n)})


# -- sizes and types that a run tells, and what exporters leave out


def test_an_unknown_size_may_be_declared_as_minus_one() -> None:
    graph = require_values(
        parsed("(float[-1, 3] x) => (float[-1, 3] y) { y = Neg(x) }"), {"x": normal(2, 3)}
    )
    assert str(graph.inputs[0].type) == "float32[x_0, 3]"


def test_an_output_needs_no_shape() -> None:
    for node in ("y = Neg(x)", "y = Reshape(x, s)", "y = NonZero(x)"):
        model = parsed(f"(float[2, 3] x, int64[1] s) => (float[1] y) {{ {node} }}")
        tensor = model.graph.output[0].type.tensor_type
        tensor.ClearField("shape")
        tensor.elem_type = TensorProto.INT64 if "NonZero" in node else TensorProto.FLOAT
        require_values(model, {"x": normal(2, 3), "s": np.array([6])})


def test_a_declared_number_that_depends_on_values_is_not_trusted() -> None:
    model = parsed("(float[5] x) => (int64[1, 4] y) { z = NonZero(x) y = Neg(z) }")
    model.graph.value_info.append(helper.make_tensor_value_info("z", TensorProto.INT64, [1, 4]))
    for x in ([0, 1, 2, 0, 3], [1, 1, 1, 1, 1]):
        require_values(model, {"x": np.array(x, np.float32)})


def test_sizes_without_a_name_are_not_one_size() -> None:
    model = parsed("(float[a, b] x, float[b, c] z) => (float[a, c] y) { y = MatMul(x, z) }")
    for name in ("?", "None"):
        for info in (*model.graph.input, *model.graph.output):
            for dim in info.type.tensor_type.shape.dim:
                dim.dim_param = name
        require_values(model, {"x": normal(2, 3), "z": normal(3, 4)})


LATE = "(float[n] x) => ({} y) {{ z = NonZero(x) k = Shape<start=1>(z) {} }}"
LATE_NODES = {
    "c = Squeeze(k) zero = Constant<value_int=0>() one = Constant<value_int=1>() "
    "y = Range(zero, c, one)": "int64[m]",
    "y = ConstantOfShape(k)": "float[m]",
    "o = Constant<value_floats=[2.0]>() e = Expand(o, k) y = Exp(e)": "float[m]",
    "o = Constant<value_ints=[0]>() y = Slice(z, o, hundred, one)": "int64[1, m]",
}


@pytest.mark.parametrize("node", LATE_NODES)
def test_sizes_that_a_call_binds_serve_steps_that_read_nothing_of_it(node: str) -> None:
    one = "hundred = Constant<value_ints=[100]>() one = Constant<value_ints=[1]>() "
    node = one + node if "hundred" in node else node
    model = parsed(LATE.format(LATE_NODES[node.removeprefix(one)], node))
    for x in ([0, 1, 2, 0, 3], [0, 0], [1]):
        require_values(model, {"x": np.array(x, np.float32)})


def test_a_loop_may_run_as_often_as_a_call_tells() -> None:
    body = (
        "body = b (int64 i, bool t, float a) => (bool u, float v, float w) "
        "{ one = Constant<value_float=1.0>() u = Identity(t) v = Add(a, one) w = Identity(a) }"
    )
    model = parsed(
        "(float[n] x) => (float[m] y) { z = NonZero(x) k = Shape<start=1>(z) c = Squeeze(k) "
        f"zero = Constant<value_float=0.0>() last, y = Loop<{body}>(c, , zero) }}"
    )
    for x in ([0, 1, 2, 0, 3], [1]):
        require_values(model, {"x": np.array(x, np.float32)})


def test_a_program_binds_its_steps_to_the_sizes_of_a_call_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = (
        "(float[n] x) => (float[m] y) { z = NonZero(x) o = Constant<value_ints=[0]>() "
        "q = Squeeze(z, o) v = Gather(x, q) y = Exp(v) }"
    )
    program: Any = Program(from_onnx(parsed(text)))
    numbers: list[int] = []
    bind_step: Any = Program.bind_step
    monkeypatch.setattr(
        Program, "bind_step", lambda *args: (numbers.append(args[1]), bind_step(*args))[1]
    )
    a, b = np.array([0, 1, 2, 3], np.float32), np.array([0, 0, 2, 3], np.float32)
    for x in (a, b, a, a, a, b, b, b, a, b):
        np.testing.assert_allclose(program(x), np.exp(x[x != 0]), rtol=1e-6)
    del numbers[:]
    for x in (a, b, a, b):
        program(x)
    assert set(numbers) == {0}  # the call, whose sizes differ from run to run
    for _ in range(3):
        program(a)
    del numbers[:]
    program(a)
    assert not numbers  # by a plan


WINDOWS = {
    "Conv": ("y = Conv<{}>(x, w)", ""),
    "ConvTranspose": ("y = ConvTranspose<{}>(x, w)", ""),
    "MaxPool": ("y = MaxPool<{}>(x)", ", kernel_shape=[3]"),
    "AveragePool": ("y = AveragePool<{}>(x)", ", kernel_shape=[3]"),
}
PADDINGS = ("pads=[1, 2]", 'auto_pad="VALID"', 'auto_pad="SAME_UPPER"', 'auto_pad="SAME_LOWER"')


@pytest.mark.parametrize("op", WINDOWS)
def test_sizes_of_windows_over_a_symbolic_size_are_those_of_the_standard(op: str) -> None:
    node, more = WINDOWS[op]
    for padding in PADDINGS if op != "ConvTranspose" else PADDINGS[:1]:
        for step in (1, 2, 3):
            attrs = f"{padding}, strides=[{step}]{more}"
            types = "(float[1, 4, t] x, float[4, 4, 3] w) => (float[a, b, c] y)"
            model = parsed(f"{types} {{ {node.format(attrs)} }}")
            for size in (9, 10, 11):
                graph = require_values(model, {"x": normal(1, 4, size), "w": normal(4, 4, 3)})
                names = {*map(str, graph.outputs[0].shape)}
                assert any("t" in name for name in names), attrs


def test_sizes_of_a_resize_are_known_and_the_plan_names_its_engine() -> None:
    text = "(float[n, 1, h, 4] x) => (float[a, b, c, d] y) {{ s = Constant<value_floats={}>() {} }}"
    node = "y = Resize<{}>(x, , s)"
    for scales, shape in {
        "[1.0, 1.0, 2.0, 0.5]": "[n, 1, 2*h, 2]",
        "[1.0, 1.0, 0.5, 1.0]": "(h)//2",
    }.items():
        graph = require_values(
            parsed(text.format(scales, node.format('mode="nearest"'))), {"x": normal(2, 1, 5, 4)}
        )
        assert shape in str(graph.outputs[0].type)
        assert "onnx.Resize by onnxruntime" in Program(graph).explain()
    attrs = 'mode="linear", coordinate_transformation_mode="align_corners"'
    graph = from_onnx(parsed(text.format("[1.0, 1.0, 2.0, 2.0]", node.format(attrs)), 19))
    assert "onnx.Resize by reference evaluator" in Program(graph).explain()


# -- ops of onnxruntime's own

FUSED = (
    "h = com.microsoft.FusedMatMul<alpha=0.5, transB=1>(x, w)",
    "h = com.microsoft.Gelu(x)",
    "h = com.microsoft.BiasGelu(x, b)",
    "h = com.microsoft.FastGelu(x, b)",
    "h = com.microsoft.QuickGelu(x)",
    "h = com.microsoft.SkipLayerNormalization(x, x, b, b)",
    "h = com.microsoft.Attention<num_heads=2>(x, v, c)",
    "h = com.microsoft.DynamicQuantizeMatMul(x, q, s)",
    "h = SimplifiedLayerNormalization(x, b)",
)


@pytest.mark.parametrize("node", FUSED)
def test_ops_of_onnxruntime_stand_before_standard_ones(node: str) -> None:
    model = parsed(
        "(float[2, n, 8] x, float[8, 8] w, float[8, 24] v, float[24] c, float[8] b, int8[8, 4] q, "
        f"float s) => (float[a, d, e] y) {{ {node} g = Neg(h) y = Softmax(g) }}",
        17,
        "com.microsoft",
    )
    feeds = {"x": normal(2, 3, 8), "w": normal(8, 8), "v": normal(8, 24), "c": normal(24)}
    feeds |= {"b": normal(8), "q": np.arange(32, dtype=np.int8).reshape(8, 4)}
    require_values(model, {**feeds, "s": np.array(0.1, np.float32)})


def test_an_op_that_nobody_has_is_refused_by_its_name() -> None:
    for domain in ("com.microsoft", "org.nobody"):
        model = parsed(
            f"(float[2] x) => (float[2] y) {{ h = {domain}.Foo(x) y = Neg(h) }}", 17, domain
        )
        with pytest.raises(GraphError, match=rf"node 1 \(Foo\): onnx has no op Foo .*{domain}"):
            from_onnx(model)


def test_what_needs_onnxruntime_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    graph = from_onnx(parsed(UNKNOWN_RANK.format("y = Softmax(r)"), 11))
    with pytest.raises(ExecutionError, match="install onnxruntime"):
        interpret(graph, **RANK_4)
    text = "(float[2] x) => (float[2] y) { h = com.microsoft.Gelu(x) y = Neg(h) }"
    with pytest.raises(GraphError, match=r"node 1 \(Gelu\): .*; install onnxruntime"):
        from_onnx(parsed(text, 17, "com.microsoft"))
    image, weights = normal(1, 3, 4, 4), normal(2, 3, 3, 3)
    text = "(float[1, 3, 4, 4] x, float[2, 3, 3, 3] w) => (float[1, 2, 2, 2] y) { y = Conv(x, w) }"
    assert interpret(from_onnx(parsed(text)), image, weights).shape == (1, 2, 2, 2)


def test_layer_normalization_of_an_early_version_is_that_of_the_standard() -> None:
    model = parsed(
        "(float[2, 4] x, float[4] w) => (float[2, 4] y) { y = LayerNormalization(x, w) }", 12
    )
    graph = require_values(model, {"x": normal(2, 4), "w": normal(4)})
    assert "call" not in {symbol.op.name for symbol in graph.symbols}


def test_opsets_before_7_are_refused_with_the_converter_that_helps() -> None:
    text = "(float[2, 3] x, float[2] y) => (float[2, 3] z) {z = Add<broadcast=1, axis=0>(x, y)}"
    model = parsed(text, 6)
    with pytest.raises(GraphError, match=r"opsets before 7 of .*got opset 6") as error:
        from_onnx(model)
    converted = eval(error.value.fixes[0], {"onnx": onnx, "model": model})
    x, y = normal(2, 3), normal(2)
    np.testing.assert_array_equal(interpret(from_onnx(converted), x, y), x + y[:, None])
