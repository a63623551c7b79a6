"""What targets call impossible, and that it is: the engine itself refuses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

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

        from runtime.targets.onnx_.target import OPSET

        constraints = onnx.defs.get_schema("Cast", OPSET).type_constraints
        if not any(f"tensor({element})" in one.allowed_type_strs for one in constraints):
            raise TypeError(f"Cast gives no {element}")

    return attempt


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
]
