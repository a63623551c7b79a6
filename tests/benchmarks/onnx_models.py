"""Programs of small ONNX models beside onnxruntime: python -m tests.benchmarks.onnx_models.

Prints the least time of a warm call, in milliseconds, of a Program and of onnxruntime without
optimizations on one thread, and their ratio; the exit status is 1 if a ratio exceeds `--most`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from time import perf_counter, sleep
from typing import Any

import numpy as np
import onnxruntime
from onnx import numpy_helper, parser

from graphir.runtime import Program, from_onnx

_RANDOM = np.random.default_rng(0)

MODELS: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {
    "convolutions, unknown length": (
        "(float[1, 16, t] x) => (float[1, 16, t] y) { "
        + " ".join(
            f"c{i} = Conv<pads=[1, 1]>({f'r{i}' if i else 'x'}, w) r{i + 1} = Relu(c{i})"
            for i in range(10)
        )
        + " y = Neg(r10) }",
        {"x": (1, 16, 50), "w": (16, 16, 3)},
    ),
    "images": (
        "(float[n, 3, h, w0] x) => (float[n, 8] y) { a = Conv<pads=[1, 1, 1, 1]>(x, w) "
        "b = Relu(a) c = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(b) "
        "d = GlobalAveragePool(c) e = Flatten(d) y = Softmax(e) }",
        {"x": (1, 3, 32, 32), "w": (8, 3, 3, 3)},
    ),
    "detector": (
        "(float[1, 3, 32, 32] x) => (float[k] y) { a = Conv<pads=[1, 1, 1, 1]>(x, w) "
        "m = Constant<value_ints=[-1]>() z = Constant<value_ints=[0]>() "
        "zero = Constant<value_int=0>() one = Constant<value_int=1>() "
        "half = Constant<value_float=0.5>() b = Sigmoid(a) "
        "c = Reshape(b, m) g = Greater(c, half) i = NonZero(g) j = Squeeze(i, z) v = Gather(c, j) "
        "s = Shape(v) k = Squeeze(s) r = Range(zero, k, one) f = Cast<to=1>(r) y = Mul(v, f) }",
        {"x": (1, 3, 32, 32), "w": (4, 3, 3, 3)},
    ),
    "upsampling": (
        "(float[n, 3, h, w0] x) => (float[n, 3, i, j] y) { a = Conv<pads=[1, 1, 1, 1]>(x, w) "
        "s = Constant<value_floats=[1.0, 1.0, 2.0, 2.0]>() y = Resize(a, , s) }",
        {"x": (1, 3, 32, 32), "w": (3, 3, 3, 3)},
    ),
    "recurrent": (
        "(float[20, 1, 16] x) => (float[1, 1, 32] y) "
        "{ h, y = LSTM<hidden_size=32>(x, w, r) }",
        {"x": (20, 1, 16), "w": (1, 128, 16), "r": (1, 128, 32)},
    ),
}  # fmt: skip


def model_of(text: str, shapes: dict[str, tuple[int, ...]]) -> tuple[Any, Any]:
    """Return a model, whose parameters but x are initializers, and x."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}')
    arrays = {
        name: (_RANDOM.standard_normal(shape) * 0.2).astype(np.float32)
        for name, shape in shapes.items()
    }
    x = arrays.pop("x")
    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    model.graph.initializer.extend(tensors)
    return model, x


def least_milliseconds(function: Callable[[], Any], seconds: float) -> float:
    """Return the least time of a call."""
    least, end = float("inf"), perf_counter() + seconds
    while perf_counter() < end:
        start = perf_counter()
        function()
        least = min(least, perf_counter() - start)
    return least * 1e3


def main() -> int:
    """Print the table, and return the exit status."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    options.add_argument("--most", type=float, default=5, help="the largest ratio")
    args = options.parse_args()
    settings = onnxruntime.SessionOptions()
    level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.graph_optimization_level, settings.intra_op_num_threads = level, 1
    ratios: list[float] = []
    for name, parts in MODELS.items():
        model, x = model_of(*parts)
        session: Any = onnxruntime.InferenceSession(
            model.SerializeToString(), settings, providers=["CPUExecutionProvider"]
        )
        program: Any = Program(from_onnx(model), threads=1)
        np.testing.assert_allclose(program(x), session.run(None, {"x": x})[0], 1e-4, 1e-5)
        least_milliseconds(lambda run=program, x=x: run(x), args.seconds)
        sleep(args.seconds)  # regions become machine code meanwhile
        ours = least_milliseconds(lambda run=program, x=x: run(x), args.seconds)
        theirs = least_milliseconds(lambda run=session, x=x: run.run(None, {"x": x}), args.seconds)
        ratios.append(ours / theirs)
        print(f"{name:30} {ours:8.3f} {theirs:8.3f} {ratios[-1]:6.1f}")
    return int(max(ratios) > args.most)


if __name__ == "__main__":
    sys.exit(main())
