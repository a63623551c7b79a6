"""Calls of small programs, beside NumPy.

    python -m tests.benchmarks.calls [--only WORD] [--native now|auto|off] [--rounds N]

Prints, for each program, the best microseconds of a call of NumPy, of the jitted function and of
its Program, called in turn, and the ratio of the jitted call to NumPy's. The last line, `fresh`,
has the median milliseconds from the imports to the first result, in new processes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from graphir.numpy_api.trace import trace
from graphir.runtime import Program, jit
from tests.benchmarks import whole_numpy as whole
from tests.benchmarks.kernels import best

ROOT = Path(__file__).resolve().parent.parent.parent

FRESH = """
import numpy as np, time
from graphir import Graph, ops
from graphir.runtime import execute
start = time.perf_counter()
g = Graph("first")
x = g.input("float32", (10,))
g.output(ops.exp(x) * 2 + x)
execute(g, np.ones(10, np.float32))
print(time.perf_counter() - start)
"""


def tanh_layer(x: Any, w: Any, b: Any) -> Any:
    """A layer with a hyperbolic tangent."""
    return np.tanh(x @ w + b)


def programs() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """The programs with their arrays of about 10 to 100 elements, by name."""
    draw = np.random.default_rng(0)

    def floats(*shapes: tuple[int, ...], dtype: Any = np.float32) -> tuple[Any, ...]:
        return tuple(draw.normal(size=shape).astype(dtype) for shape in shapes)

    gated = floats((64,), (64,), (64, 64), (64, 64), (64,))
    image = draw.integers(0, 256, (6, 5, 3), dtype=np.uint8)
    return {
        "layers: tanh of 64": (tanh_layer, floats((64,), (64, 64), (64,))),
        "layers: relu of 64": (whole.tiny_relu_layer, floats((1, 64), (64, 64), (64,))),
        "layers: gated cell of 64": (whole.tiny_gated_cell, gated),
        "layers: three of 8": (whole.relu_layers, floats((4, 8), *[(8, 8), (8,)] * 3)),
        "products: 8 x 8": (np.matmul, floats((8, 8), (8, 8))),
        "attention: 2 x 4 x 8": (whole.attention, floats(*[(2, 4, 8)] * 3)),
        "softmax: 10 x 10": (whole.softmax, floats((10, 10))),
        "softmax: layer norm of 10 x 10": (whole.layer_norm, floats((10, 10), (10,), (10,))),
        "sums: likelihood of 100": (whole.normal_log_likelihood, floats(*[(100,)] * 3)),
        "columns: moments of 20 x 5": (whole.column_moments, floats((20, 5))),
        "argmax: 10 x 10": (whole.predicted_classes, floats((10, 10))),
        "sorts: 10 x 10": (whole.sorted_rows, floats((10, 10))),
        "short axis: 8 distances": (whole.squared_distances, floats((8, 3), (8, 3))),
        "images: tone curve": (whole.tone_curve, (image, np.ones(3, np.float32))),
        "update: Adam of 100": (whole.adam_step, (*floats(*[(100,)] * 3), np.ones(100, "f4"))),
        "0-d: gated": (lambda x, y: np.exp(x) * y + x, (np.array(0.5), np.array(2.0))),
    }


def main() -> None:
    """Measure the programs and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="the programs whose names contain this word")
    parser.add_argument("--native", default="now", choices=["now", "auto", "off"])
    parser.add_argument("--rounds", type=int, default=3000)
    options = parser.parse_args()
    np.seterr(all="ignore")
    os.environ["GRAPHIR_NATIVE"] = {"now": "1", "off": "0"}.get(options.native, "")
    print(f"{'':34}{'NumPy':>10}{'jit':>10}{'Program':>10}{'ratio':>8}")
    for name, (function, arrays) in programs().items():
        if options.only not in name:
            continue
        graph = trace(function, *arrays, rules="numpy").graph
        program = Program(graph, native=options.native)
        jitted = jit(function, rules="numpy")
        calls = [partial(each, *arrays) for each in (function, jitted, program)]
        for call in calls[1:]:
            best(call, call, 200)
        numpy, ours = best(calls[0], calls[1], options.rounds)
        _, alone = best(calls[0], calls[2], options.rounds)
        figures = [f"{1e6 * seconds:10.2f}" for seconds in (numpy, ours, alone)]
        print(f"{name:34}{''.join(figures)}{ours / numpy:8.2f}", flush=True)
    if options.only in "fresh":
        del os.environ["GRAPHIR_NATIVE"]
        command = [sys.executable, "-c", FRESH]
        seconds = [
            float(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
            for _ in range(7)
        ]
        print(f"fresh {1e3 * statistics.median(seconds):.1f} ms")


if __name__ == "__main__":
    main()
