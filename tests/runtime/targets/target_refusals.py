"""What targets call impossible, and that it is: the engine itself refuses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from graphir import DType


class Refusal(NamedTuple):
    """A reason that a target gives, as a pattern, and what its engine refuses for that reason."""

    target: str
    reason: str
    attempt: Callable[[], Any]


def _float6(dtype: DType) -> Callable[[], Any]:
    """An array of JAX."""

    def attempt() -> None:
        import jax.numpy as jnp

        jnp.asarray(np.zeros(2, dtype.storage))

    return attempt


def _complex(kind: str) -> Callable[[], Any]:
    """A model of one node on complex numbers."""

    def attempt() -> None:
        import onnx

        count = onnx.defs.get_schema(kind).min_input
        names = [f"x{i}" for i in range(count)]
        typed = [
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.COMPLEX64, [2])
            for name in (*names, "y")
        ]
        node = onnx.helper.make_node(kind, names, ["y"])
        graph = onnx.helper.make_graph([node], "complex", typed[:-1], typed[-1:])
        try:
            onnx.checker.check_model(onnx.helper.make_model(graph), full_check=True)
        except onnx.shape_inference.InferenceError as error:
            raise TypeError(str(error)) from error

    return attempt


def _cast_to(element: str) -> Callable[[], Any]:
    """A dtype among those that Cast gives, at the target's opset."""

    def attempt() -> None:
        import onnx

        from graphir.runtime.targets.onnx_.target import OPSET

        constraints = onnx.defs.get_schema("Cast", OPSET).type_constraints
        if not any(f"tensor({element})" in one.allowed_type_strs for one in constraints):
            raise TypeError(f"Cast gives no {element}")

    return attempt


def _added_at_indices() -> None:
    """A model of one node that adds float16 numbers at indices."""
    import onnx

    session = pytest.importorskip("onnxruntime").InferenceSession
    errors = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")
    half, long = onnx.TensorProto.FLOAT16, onnx.TensorProto.INT64
    types = {"x": (half, [2]), "i": (long, [1]), "u": (half, [1]), "y": (half, [2])}
    typed = [onnx.helper.make_tensor_value_info(name, *type_) for name, type_ in types.items()]
    node = onnx.helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], reduction="add")
    graph = onnx.helper.make_graph([node], "adds", typed[:-1], typed[-1:])
    opset = onnx.helper.make_opsetid("", 18)
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=10)
    x, i = np.ones(2, np.float16), np.zeros(1, np.int64)
    try:
        session(model.SerializeToString()).run(None, {"x": x, "i": i, "u": x[:1]})
    except errors.RuntimeException as error:
        raise RuntimeError(str(error)) from error


_LACKING = {
    DType.float8_e3m4: "float8e3m4",
    DType.float8_e4m3: "float8e4m3",
    DType.float8_e4m3b11fnuz: "float8e4m3b11fnuz",
    DType.float6_e2m3fn: "float6e2m3",
    DType.float6_e3m2fn: "float6e3m2",
}
REFUSALS = [
    *(
        Refusal("jax", f"JAX has no arrays of {dtype}", _float6(dtype))
        for dtype in (DType.float6_e2m3fn, DType.float6_e3m2fn)
    ),
    *(
        Refusal("onnx", "ONNX moves complex numbers alone", _complex(kind))
        for kind in ("Add", "Abs", "Equal", "Sin", "ReduceSum", "MatMul")
    ),
    *(
        Refusal("onnx", rf"ONNX has no {dtype} at opset \d+", _cast_to(element))
        for dtype, element in _LACKING.items()
    ),
    Refusal("onnx", "ONNX has no engine that adds narrow floats at indices", _added_at_indices),
]
