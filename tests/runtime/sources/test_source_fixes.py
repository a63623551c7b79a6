"""Fixes and sentences in the words of the library: `.to(torch.float32)`, `Cast(to=FLOAT)`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphir.passes import cast_report
from graphir.runtime import audit, from_jax, from_onnx, from_torch


def test_torch_converts_by_to() -> None:
    torch = pytest.importorskip("torch")
    wide = torch.tensor([0.1, 0.2], dtype=torch.float64)

    def mix(x: Any, n: Any) -> Any:
        return (x * wide) / n

    narrow, ints = torch.ones(2), torch.tensor([3, 7], dtype=torch.int32)
    report = cast_report(from_torch(mix, narrow, ints))
    assert [row.fix for row in report if row.op == "multiply"] == ["x.to(torch.float64) * wide"]
    (sentence,) = report.sentences
    assert sentence.endswith("write x * wide.to(torch.float32) (inferred: float32)")


def test_torch_names_its_dtypes_in_the_fix_of_a_loss() -> None:
    torch = pytest.importorskip("torch")

    def total(x: Any, y: Any) -> Any:
        return x * y

    x = torch.full((3,), 200, dtype=torch.uint8)
    (row,) = audit(from_torch(total, x, x), x.numpy(), x.numpy()).losses
    assert row.fix == "x.to(torch.int32) * y.to(torch.int32)"


def test_autocast_names_the_parameters_of_functions_of_python() -> None:
    torch = pytest.importorskip("torch")
    attention = torch.nn.MultiheadAttention(4, 2)
    x = torch.ones(3, 4)
    with torch.autocast("cpu", torch.bfloat16):
        graph = from_torch(lambda x: attention(x, x, x)[0], x)
    casts = {row.operand for row in cast_report(graph) if row.op.endswith("attention_forward")}
    assert {"out_proj_weight", "out_proj_bias"} <= casts
    assert not any(name.startswith("argument") for name in casts)


def test_jax_converts_by_astype() -> None:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        graph = from_jax(lambda x, y: x * y, np.ones(2, "float32"), np.ones(2))
        (row,) = cast_report(graph)
        assert row.fix == 'x.astype("float64") * y'


def test_onnx_has_nodes() -> None:
    onnx = pytest.importorskip("onnx")
    info, of = onnx.helper.make_tensor_value_info, onnx.TensorProto
    node = onnx.helper.make_node("Mul", ["x", "x"], ["y"], name="/half/Mul")
    graph = onnx.helper.make_graph(
        [node], "g", [info("x", of.FLOAT16, [2])], [info("y", of.FLOAT16, [2])]
    )
    report = audit(from_onnx(onnx.helper.make_model(graph)), np.full(2, 300, "float16"))
    (row,) = report.losses
    assert row.fix == "multiply of Cast(x, to=FLOAT), Cast(x, to=FLOAT)"


def test_a_node_cast_that_loses_values_keeps_the_type_of_its_operand() -> None:
    onnx = pytest.importorskip("onnx")
    info, of = onnx.helper.make_tensor_value_info, onnx.TensorProto
    node = onnx.helper.make_node("Cast", ["ids"], ["small"], "/embed/Cast", to=of.INT8)
    graph = onnx.helper.make_graph(
        [node], "g", [info("ids", of.INT64, [2])], [info("small", of.INT8, [2])]
    )
    report = audit(from_onnx(onnx.helper.make_model(graph)), np.array([3, 300]))
    (sentence,) = report.sentences
    assert "because `/embed/Cast` changes 1 of 2 elements by int64 -> int8" in sentence
    assert sentence.endswith("300 became 44); write ids, without this Cast")
