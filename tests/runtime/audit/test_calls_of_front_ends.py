"""Calls of JAX, PyTorch and ONNX in audits: their errors are those of the program in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphir.runtime import audit
from graphir.runtime.sources import from_jax, from_onnx, from_torch

jax = pytest.importorskip("jax")
torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx.reference") and pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

RANDOM = np.random.default_rng(39)
X = RANDOM.normal(size=(4, 8)).astype(np.float32)
M = (RANDOM.normal(size=(8, 8)) + 3 * np.eye(8)).astype(np.float32)
W = RANDOM.normal(size=(3, 4, 3)).astype(np.float32)
IDS = np.array([1, 2, 2, 5, 7, 0], np.int32)
lax, jnp = jax.lax, jax.numpy


def require_error(output: Any, actual: Any, exact: Any) -> None:
    """Assert that an output's error is that of the program against the same in float64."""
    assert output.is_known
    error = np.abs(np.asarray(actual, exact.dtype) - exact)
    noise = 1e-12 * max(np.abs(exact).max(), 1e-300)
    np.testing.assert_allclose(output.largest, error.max(), rtol=1e-4, atol=noise)


JAX: dict[str, Callable[[Any], Any]] = {
    "convolution": lambda x: lax.conv(x[None], W.astype(x.dtype), (1,), "SAME"),
    "its gradient": jax.grad(
        lambda x: (lax.conv(x[None], W.astype(x.dtype), (1,), "SAME") ** 2).sum()
    ),
    "scatter-add": jax.grad(lambda x: (jnp.take(x.reshape(8, 4), IDS, axis=0) ** 2).sum()),
    "scatter-mul": lambda x: jnp.ones(8, x.dtype).at[IDS].multiply(x[0, :6]),
    "cholesky": lambda x: jnp.linalg.cholesky(spread(x) @ spread(x).T),
    "solve": lambda x: jnp.linalg.solve(spread(x), x[1]),
    "svd": lambda x: jnp.linalg.svd(spread(x), compute_uv=False),
    "eigh": lambda x: jnp.linalg.eigh(spread(x) + spread(x).T)[0],
    "qr": lambda x: jnp.linalg.qr(spread(x))[1],
    "fft": lambda x: jnp.fft.irfft(jnp.fft.rfft(x)),
    "top_k": lambda x: lax.top_k(x, 3)[0],
    "windows": lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3), (1, 1), "SAME"),
    "cumlogsumexp": lambda x: lax.cumlogsumexp(x, axis=1),
    "digamma": lambda x: jax.scipy.special.digamma(jnp.abs(x) + 1),
}


def spread(x: Any) -> Any:
    return M.astype(x.dtype) * x[0]


@pytest.mark.parametrize("name", JAX)
def test_the_error_of_a_call_of_jax(name: str) -> None:
    tenth = np.float32(0.1)
    program = JAX[name]
    report = audit(from_jax(lambda x: program(x * tenth), X), X)
    with jax.enable_x64(True):
        exact = np.asarray(program(jnp.asarray(X, np.float64) * np.float64(tenth)))
    assert exact.dtype == np.float64
    require_error(report.outputs[0], report.results[0], exact)


def test_draws_of_jax_are_data_of_their_keys() -> None:
    def program(x: Any, key: Any) -> Any:
        first, second = jax.random.split(key)
        kept = jax.random.bernoulli(first, 0.5, x.shape)
        return jnp.where(kept, x * np.float32(0.1), 0), jax.random.permutation(second, x)

    key = jax.random.key(3)
    report = audit(from_jax(program, X, key), X, np.asarray(jax.random.key_data(key)))
    kept, moved = program(X, key)
    exact = np.where(kept == 0, 0, X.astype(np.float64) * np.float64(np.float32(0.1)))
    require_error(report.outputs[0], kept, exact)
    assert report.outputs[1].differing == 0 and not report.hidden
    assert np.array_equal(report.results[1], moved)


def test_draws_in_a_loop_of_jax_are_known() -> None:
    def program(x: Any, key: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            key, y = carry
            key, own = jax.random.split(key)
            return (key, y * 0.5 + jax.random.uniform(own, y.shape)), y.sum()

        return lax.scan(body, (key, x), None, length=3)[1]

    key = jax.random.key(3)
    report = audit(from_jax(program, X, key), X, np.asarray(jax.random.key_data(key)))
    assert report.outputs[0].is_known and not report.hidden


def test_callbacks_of_jax_are_unknown() -> None:
    def called(x: Any) -> Any:
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x * 2.5)

    report = audit(from_jax(called, X), X)
    assert not report.outputs[0].is_known and "pure_callback" in report.unseen[0].what


def test_a_precision_that_a_program_asks_for_is_a_loss() -> None:
    report = audit(from_jax(lambda x: lax.reduce_precision(x, 5, 3), X), X)
    exact = X.astype(np.float64)
    require_error(report.outputs[0], lax.reduce_precision(X, 5, 3), exact)


def test_the_shares_of_a_convolution_of_jax_sum_to_one() -> None:
    def program(x: Any) -> Any:
        y = lax.conv((x * np.float32(0.1))[None], W, (1,), "SAME")
        return lax.conv(y[:, :, :6], W[:, :3], (1,), "SAME").sum()

    (output,) = audit(from_jax(program, X), X).outputs
    assert output.shares is not None and output.rounding is not None
    shares = [share for share in output.shares.values() if share is not None]
    np.testing.assert_allclose(sum(shares) + output.rounding, 1, atol=1e-4)


def test_floats_in_the_jaxprs_of_a_primitive_have_the_dtype_of_the_audit() -> None:
    def program(x: Any) -> Any:
        zero, length = x.dtype.type(0), lambda a, b: jnp.sqrt(a * a + b * b)
        return lax.reduce_window(x, zero, length, (2,), (1,), "VALID")

    x = X.reshape(-1) * 200
    report = audit(from_jax(program, x), x, as_dtype="float16")
    right = np.asarray(program(x.astype(np.float16)))
    assert np.isinf(right).any()
    # A processor with float16 arithmetic fuses a * a + b * b, which rounds once less.
    np.testing.assert_allclose(report.results[0], right, rtol=2**-9)


TORCH: dict[str, Callable[[Any], Any]] = {
    "stft": lambda x: torch.stft(
        x.reshape(1, -1), 8, window=torch.ones(8, dtype=x.dtype), return_complex=True
    ).abs(),
    "solve": lambda x: torch.linalg.solve(spread_tensor(x), x[1]),
    "svdvals": lambda x: torch.linalg.svdvals(spread_tensor(x)),
    "lstsq": lambda x: torch.linalg.lstsq(spread_tensor(x), spread_tensor(x)[:, :2]).solution,
    "mask": lambda x: (x * x)[x > 0],
    "masked_select": lambda x: torch.masked_select(x * x, x > 0),
    "kthvalue": lambda x: torch.kthvalue(x, 2)[0],
    "cdist": lambda x: torch.cdist(x, x * x),
    "digamma": lambda x: torch.special.digamma(x.abs() + 1),
    "embedding_bag": lambda x: torch.nn.functional.embedding_bag(
        torch.from_numpy(IDS % 4).reshape(3, 2), x, mode="mean"
    ),
    "bilinear": lambda x: torch.nn.functional.interpolate(
        x.reshape(1, 1, 4, 8), scale_factor=2, mode="bilinear"
    ),
    "bicubic": lambda x: torch.nn.functional.interpolate(
        x.reshape(1, 1, 4, 8), size=(5, 5), mode="bicubic"
    ),
}


def spread_tensor(x: Any) -> Any:
    return torch.from_numpy(M).to(x.dtype) * x[0]


@pytest.mark.parametrize("name", TORCH)
def test_the_error_of_a_call_of_torch(name: str) -> None:
    tenth = float(np.float32(0.1))
    program, x = TORCH[name], torch.from_numpy(X)
    report = audit(from_torch(lambda x: program(x * tenth), x), X)
    exact = program(x.double() * tenth).numpy()
    require_error(report.outputs[0], report.results[0], exact)


def test_draws_of_torch_are_those_of_the_import() -> None:
    def program(x: Any) -> Any:
        kept = torch.rand(4) > 0.5
        return torch.nonzero(kept), x[kept] * 0.1, torch.nn.functional.dropout(x * 0.1, 0.5, True)

    for seed in range(4):
        torch.manual_seed(seed)
        graph = from_torch(program, torch.from_numpy(X))
        torch.manual_seed(seed + 100)
        report = audit(graph, X)  # `nonzero must give int64[5, 1]; got int64[4, 1]` before
        assert [output.is_known for output in report.outputs] == [True] * 3
        torch.manual_seed(seed)
        right = program(torch.from_numpy(X))
        assert np.array_equal(report.results[0], right[0])
        assert np.array_equal(report.results[2], right[2])


def test_a_draw_by_values_with_errors_says_so() -> None:
    def program(x: Any) -> Any:
        return torch.bernoulli(torch.sigmoid(x)) * x

    report = audit(from_torch(program, torch.from_numpy(X)), X)
    assert report.outputs[0].differing == 0 and not report.hidden
    assert [step.what for step in report.unseen if step.decides] == ["torch.aten.bernoulli.default"]
    assert "decided by values" in str(report)


def test_the_shares_of_a_call_of_torch_sum_to_one() -> None:
    def program(x: Any) -> Any:
        return torch.fft.irfft(torch.fft.rfft(x * 0.1) * torch.from_numpy(X[:1, :5])).sum()

    (output,) = audit(from_torch(program, torch.from_numpy(X)), X).outputs
    assert output.shares is not None and output.rounding is not None
    shares = [share for share in output.shares.values() if share is not None]
    np.testing.assert_allclose(sum(shares) + output.rounding, 1, atol=1e-4)


def test_gradients_that_a_scaler_unscales_have_errors() -> None:
    def program(x: Any) -> Any:
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        weight = torch.nn.Parameter(torch.ones(x.shape[-1]))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        with torch.enable_grad():
            scaler.scale((x.bfloat16() * weight.bfloat16()).float().pow(2).sum()).backward()
        scaler.unscale_(optimizer)
        return weight.grad

    report = audit(from_torch(program, torch.from_numpy(X)), X)
    assert np.array_equal(report.results[0], program(torch.from_numpy(X)).numpy())
    (output,) = report.outputs
    assert output.differing == output.elements and not report.unseen


def model_of(op: str, arrays: dict[str, Any], outputs: int = 1, **attributes: Any) -> Any:
    helper = onnx.helper
    node = helper.make_node(op, [*arrays], [f"y{i}" for i in range(outputs)], **attributes)
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in arrays.items()
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in node.output]
    graph = helper.make_graph([node], "g", values, results)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


IMAGE = RANDOM.normal(size=(1, 4, 9, 9)).astype(np.float32)
KERNELS = RANDOM.normal(size=(6, 4, 3, 3)).astype(np.float32)
CELL = {
    "x": RANDOM.normal(size=(5, 1, 3)).astype(np.float32),
    "w": RANDOM.normal(size=(1, 16, 3)).astype(np.float32),
    "r": RANDOM.normal(size=(1, 16, 4)).astype(np.float32),
}
NODES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "Conv": ("Conv", {"x": IMAGE, "w": KERNELS}, {"strides": [2, 1], "pads": [1, 0, 1, 2]}),
    "groups": ("Conv", {"x": IMAGE, "w": KERNELS[:4, :1]}, {"group": 4, "auto_pad": "SAME_UPPER"}),
    "ConvTranspose": ("ConvTranspose", {"x": IMAGE, "w": KERNELS[:4]}, {"strides": [2, 2]}),
    "LSTM": ("LSTM", CELL, {"hidden_size": 4}),
    "Resize": (
        "Resize",
        {"x": IMAGE, "roi": np.zeros(0, np.float32), "s": np.array([1, 1, 2, 2], np.float32)},
        {"mode": "linear"},
    ),
    "Pad": ("Pad", {"x": IMAGE, "p": np.array([0, 0, 1, 1, 0, 0, 1, 1])}, {"mode": "reflect"}),
    "Slice": ("Slice", {"x": IMAGE, "a": np.zeros(1, int), "b": np.array([2**63 - 1])}, {}),
    "STFT": (
        "STFT",
        {"x": X.reshape(1, 32, 1), "step": np.array(4), "w": np.ones(8, np.float32)},
        {},
    ),
}


@pytest.mark.parametrize("name", NODES)
def test_the_error_of_a_call_of_onnx(name: str) -> None:
    op, arrays, attributes = NODES[name]
    model = model_of(op, arrays, **attributes)
    report = audit(from_onnx(model), *arrays.values())
    narrow = {"s"} if op == "Resize" else set[str]()
    wide = {
        key: x.astype(np.float64) if x.dtype == np.float32 and key not in narrow else x
        for key, x in arrays.items()
    }
    evaluator = onnx.reference.ReferenceEvaluator(model_of(op, wide, **attributes))
    require_error(report.outputs[0], report.results[0], evaluator.run(None, wide)[0])


def test_the_error_of_a_quantized_lstm_of_onnxruntime() -> None:
    sizes = {"x": (5, 3, 6), "b": (2, 32), "h": (2, 3, 4), "c": (2, 3, 4), "ws": 2, "rs": 2}
    arrays = {name: RANDOM.random(size).astype(np.float32) / 64 for name, size in sizes.items()}
    for name, shape in {"w": (2, 6, 16), "r": (2, 4, 16), "wz": 2, "rz": 2}.items():
        arrays[name] = RANDOM.integers(-127, 128, shape).astype(np.int8)
    settings = {"domain": "com.microsoft", "hidden_size": 4, "direction": "bidirectional"}
    model = model_of("DynamicQuantizeLSTM", arrays, 3, **settings)
    model.graph.node[0].input[:] = ["x", "w", "r", "b", "", "h", "c", "", "ws", "wz", "rs", "rz"]
    for output, shape in zip(model.graph.output, ((5, 2, 3, 4), (2, 3, 4), (2, 3, 4)), strict=True):
        output.CopyFrom(onnx.helper.make_tensor_value_info(output.name, 1, shape))
    report = audit(from_onnx(model), *arrays.values())
    assert [0 < (output.norm or 0) < 1e-6 for output in report.outputs] == [True] * 3


@pytest.mark.parametrize("result", ["Neg(next)", "Cast<to = 1>(end)"])
def test_ends_of_slices_beyond_2_53_hide_no_errors(result: str) -> None:
    nodes = f"next = Slice(a, start, end) c = {result}"
    body = f"b (float[8] carry, float[8] a) => (float[8] next, float[M] c) {{ {nodes} }}"
    scan = f"last, y = Scan <num_scan_inputs: int = 1, body: graph = {body}> (first, xx)"
    inputs = "float[N, 8] x, float[8] first, int64[1] start, int64[1] end"
    text = f"g ({inputs}) => (float[N, M] y) {{ xx = Mul(x, x) {scan} }}"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {text}')
    report = audit(from_onnx(model), X, X[0], np.zeros(1, int), np.array([2**63 - 1]))
    assert report.outputs[0].is_known == result.startswith("Neg")


def test_the_shares_of_a_graph_of_convolutions_sum_to_one() -> None:
    helper = onnx.helper
    weights = [RANDOM.normal(size=(4, 4, 3, 3)).astype(np.float32) / 6 for _ in range(8)]
    nodes = [
        helper.make_node("Conv", [f"x{i}", f"w{i}"], [f"x{i + 1}"], pads=[1] * 4) for i in range(8)
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x0", 1, IMAGE.shape)],
        [helper.make_tensor_value_info("x8", 1, IMAGE.shape)],
        [onnx.numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    report = audit(from_onnx(model), IMAGE)
    (output,) = report.outputs
    assert output.shares is not None and output.rounding is not None
    shares = [share for share in output.shares.values() if share is not None]
    np.testing.assert_allclose(sum(shares) + output.rounding, 1, atol=1e-3)
    assert [row.kind for row in report.losses] == ["rounding"] * 8
    report = audit(from_onnx(model), IMAGE, as_dtype="float16")
    assert 2e-4 < (report.outputs[0].norm or 0) < 5e-3


@pytest.mark.parametrize(
    ("dtype", "broken"), [("float16", 2), ("bfloat16", 0), ("float8_e5m2", None)]
)
def test_floats_in_the_graphs_of_a_node_have_the_dtype_of_the_audit(
    dtype: str, broken: int | None
) -> None:
    then = "then () => (float y) { square = Mul(x, x) y = Sqrt(square) }"
    other = "other () => (float z) { z = ReduceSum(x) }"  # of another rank, so that If is a call
    text = f"y = If (first) <then_branch: graph = {then}, else_branch: graph = {other}>"
    text = f"g (bool first, float[4] x) => (float y) {{ {text} }}"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {text}')
    for tree in (model.graph, *(x.g for x in model.graph.node[0].attribute)):
        tree.output[0].type.tensor_type.ClearField("shape")
    x = np.array([0.1, 1.5, 300, -400], np.float32)
    report = audit(from_onnx(model), np.array(True), x, as_dtype=dtype)
    assert report.outputs[0].broken == broken


@pytest.mark.parametrize("zero", [(), (np.int32(7),)])
def test_integers_that_a_node_scales_do_not_overflow_in_the_dtype_of_an_audit(zero: Any) -> None:
    x, scale = np.array([100_000, 3, -4_000_000], np.int32), np.float32(0.001)
    arrays = dict(zip("xsz", (x, scale, *zero), strict=False))
    report = audit(
        from_onnx(model_of("DequantizeLinear", arrays)), *arrays.values(), as_dtype="float16"
    )
    right = (x - sum(zero)).astype(np.float64) * np.float16(scale).astype(np.float64)
    assert np.array_equal(report.results[0], right.astype(np.float16))
