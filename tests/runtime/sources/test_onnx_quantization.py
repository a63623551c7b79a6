"""Products of quantized arrays are exact, and dynamic quantization is the standard's function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper, numpy_helper

from graphir.runtime import Program, from_onnx, interpret
from graphir.runtime.native import is_installed
from tests.support.evaluator import same
from tests.support.tables import every

TIERS = ["off", "now"] if is_installed() else ["off"]
SHAPES = [  # around the lengths of sums that a float32 holds: 2**24 / (255 * 128) = 514
    ((2, 11, 257), (257, 40)),
    ((5, 513), (513, 33)),
    ((1, 515), (515, 64)),
    ((3, 1, 4, 1031), (1031, 17)),
    ((2, 6, 70), (2, 70, 20)),
    ((4, 1), (1, 5)),
]
ZEROS = ["none", "zero", "one", "each"]


def draw(random: np.random.Generator, dtype: str, shape: Any) -> Any:
    """Any bytes, or extremes of one sign, whose sums are the longest."""
    limits = np.iinfo(dtype)
    if random.integers(2):
        return np.full(shape, random.choice([limits.min, limits.max]), dtype)
    return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def product_model(inputs: dict[str, Any], constants: dict[str, Any], symbolic: bool) -> Any:
    names = [name if name in {*inputs, *constants} else "" for name in ("a", "b", "az", "bz")]
    node = helper.make_node("MatMulInteger", names, ["y"])
    infos = []
    for name, array in inputs.items():
        names_of = [f"{name}{i}" for i in range(array.ndim - 1)]
        shape = [*(names_of if symbolic and name == "a" else array.shape[:-1]), *array.shape[-1:]]
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        infos.append(helper.make_tensor_value_info(name, kind, shape))
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    outputs = [helper.make_tensor_value_info("y", TensorProto.INT32, None)]
    graph = helper.make_graph([node], "product", infos, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@every("dtypes", [("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8"), ("int8", "uint8")])
@every("shapes", SHAPES)
@every(("zeros", "symbolic"), [(zeros, bool(i % 2)) for i, zeros in enumerate(ZEROS * 2)])
def test_integer_products(dtypes: tuple[str, str], shapes: Any, zeros: str, symbolic: bool) -> None:
    seed = f"{dtypes}{shapes}{zeros}{symbolic}"
    random = np.random.default_rng([*seed.encode()])
    a, b = (draw(random, *pair) for pair in zip(dtypes, shapes, strict=True))
    arrays = {"a": a, "b": b}
    if zeros == "each" and b.ndim == 2:
        arrays |= {"bz": draw(random, dtypes[1], b.shape[-1:])}
    elif zeros in ("one", "zero"):
        pairs = zip(("az", "bz"), dtypes, strict=True)
        for name, dtype in pairs:
            arrays[name] = draw(random, dtype, ()) if zeros == "one" else np.zeros((), dtype)
    wide = {name: array.astype(np.int64) for name, array in arrays.items()}
    exact = (wide["a"] - wide.get("az", 0)) @ (wide["b"] - wide.get("bz", 0))
    expected = exact.astype(np.int32)
    inside = {name for name in arrays if name != "a" and random.integers(3)}
    inputs = {name: array for name, array in arrays.items() if name not in inside}
    constants = {name: array for name, array in arrays.items() if name in inside}
    graph = from_onnx(product_model(inputs, constants, symbolic))
    assert same(interpret(graph, *inputs.values()), expected)
    for tier in TIERS:
        program = Program(graph, threads=1, native=tier)
        assert all(same(program(*inputs.values()), expected) for _ in range(2))
        unaligned = [_unaligned(x) if x.ndim else x for x in inputs.values()]
        assert same(program(*unaligned), expected)


def _unaligned(array: Any) -> Any:
    """The same elements in memory that goes backward in steps of two."""
    memory = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)[..., ::-2]
    memory[...] = array
    return memory


def quantized(x: Any) -> tuple[Any, Any, Any]:
    """The function of the standard (DynamicQuantizeLinear-11), in NumPy."""
    zero = np.float32(0)
    low, high = min(x.min(initial=zero), zero), max(x.max(initial=zero), zero)
    scale = (high - low) / np.float32(255)
    place = np.rint(np.clip(zero - low / scale, 0, 255))
    point = np.uint8(0 if np.isnan(place) else place)
    return np.clip(np.rint(x / scale) + np.float32(point), 0, 255).astype(np.uint8), scale, point


@every("shape", [(7,), (3, 5), (2, 3, 400), ()])
@every("low", [-3.0, 0.5, -9.0])
@every("high", [4.0, 0.75, -1.0])
def test_dynamic_quantization(shape: Any, low: float, high: float) -> None:
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "scale", "point"])
    outputs = [
        helper.make_tensor_value_info(name, kind, None)
        for name, kind in (("y", TensorProto.UINT8), ("scale", 1), ("point", TensorProto.UINT8))
    ]
    x = np.random.default_rng(1).uniform(*sorted((low, high)), shape).astype(np.float32)
    expected = quantized(x)
    for sizes in (shape, [f"n{i}" for i in range(len(shape))]):
        infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)]
        graph = helper.make_graph([node], "quantized", infos, outputs)
        opsets = [helper.make_opsetid("", 21)]
        imported = from_onnx(helper.make_model(graph, opset_imports=opsets, ir_version=10))
        runs = [interpret(imported, x)]
        runs += [Program(imported, native=tier)(x) for tier in TIERS]
        for results in runs:
            assert all(same(a, np.asarray(b)) for a, b in zip(results, expected, strict=True))


def convolved(x: Any, w: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, w)


@every("dtypes", [("uint8", "int8"), ("int8", "uint8"), ("uint8", "uint8"), ("int8", "int8")])
@every("op", ["ConvInteger", "QLinearConv"])
@every("zeros", ["none", "one", "each"])
@every("constant", [True, False])
def test_convolutions_do_not_saturate(
    dtypes: tuple[str, str], op: str, zeros: str, constant: bool
) -> None:
    """onnxruntime, which computes them, saturates sums of two products on some processors."""
    if op == "QLinearConv" and dtypes == ("int8", "uint8"):
        return  # no kernel
    random = np.random.default_rng(0)
    x, w = (draw(random, *pair) for pair in zip(dtypes, ((1, 9, 7, 8), (6, 9, 3, 3)), strict=True))
    x[0, 0], w[0] = np.iinfo(dtypes[0]).max, np.iinfo(dtypes[1]).max
    drawn = [draw(random, dtype, ()) for dtype in dtypes] if zeros != "none" else [0, 0]
    xz, wz = (np.asarray(zero, dtype) for zero, dtype in zip(drawn, dtypes, strict=True))
    whole = convolved(x.astype(np.int64) - xz, w.astype(np.int64) - wz)
    each = np.full(6, wz) if zeros == "each" else wz
    if op == "ConvInteger":
        arrays = {"x": x, "w": w} | ({"xz": xz, "wz": each} if zeros != "none" else {})
        names, expected = [*arrays], whole.astype(np.int32)
    else:
        one, scale = np.float32(1), np.float32(1 / 4096)
        point = np.asarray(7, x.dtype)
        arrays = {"x": x, "one": one, "xz": xz, "w": w, "scale": scale, "wz": each, "yz": point}
        names = ["x", "one", "xz", "w", "scale", "wz", "one", "yz"]
        limits = np.iinfo(x.dtype)
        rounded = np.rint(whole.astype(np.float32) * scale) + 7
        expected = np.clip(rounded, limits.min, limits.max).astype(x.dtype)
    inside = {name: array for name, array in arrays.items() if name != "x" and constant}
    inputs = {name: array for name, array in arrays.items() if name not in inside}
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in inputs.items()
    ]
    kind = helper.np_dtype_to_tensor_dtype(expected.dtype)
    outputs = [helper.make_tensor_value_info("y", kind, None)]
    tensors = [numpy_helper.from_array(np.asarray(a), name) for name, a in inside.items()]
    node = helper.make_node(op, names, ["y"])
    graph = helper.make_graph([node], "convolution", infos, outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    imported = from_onnx(model)
    for result in (interpret(imported, *inputs.values()), Program(imported)(*inputs.values())):
        assert same(result, expected)
