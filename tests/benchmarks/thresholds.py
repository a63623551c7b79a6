"""Thresholds of the cost model, each removed: what it is worth to a program that it decides.

    python -m tests.benchmarks.thresholds [NAME ...] [--rounds N] [--native now|auto|off]

Prints, for each threshold and program, the microseconds of processor time of a call with the
threshold at its value, and ratios to that: at its least value (0 or 1) and at a value beyond all
sizes. The programs of the three take turns on one thread, and a figure is the least of the rounds.
For thresholds of when a plan looks for machine code all calls count, from the first one on.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from graphir.runtime import Program, record
from graphir.runtime.program.cost_model import COST, CostModel
from tests.benchmarks import whole_numpy
from tests.support.scaled_thresholds import scaled

Array = np.ndarray[Any, Any]
BEYOND = 1 << 60
"""A value beyond all sizes."""


class Case(NamedTuple):
    """A program that a threshold decides, its inputs, and the calls of which the time counts."""

    name: str
    function: Callable[..., Any]
    make: Callable[[np.random.Generator], tuple[Any, ...]]
    calls: int = 1
    first: bool = False


def blur(image: Array, reach: int) -> Array:
    """The sum of the neighbours in a row, in a wider dtype."""
    wide = image.astype(np.float32)
    size = image.shape[1] - reach + 1
    total = wide[:, :size]
    for k in range(1, reach):
        total = total + wide[:, k : k + size]
    return total


def of_halves(a: Array, b: Array) -> Array:
    """The sum of both halves of an elementwise value."""
    value, middle = a * b, len(a) // 2
    return value[:middle] + value[middle:]


def of_points(a: Array, b: Array) -> Array:
    """The sum of both coordinates of an elementwise value."""
    value = a * b
    return value[:, 0] + value[:, 1]


def of_four(a: Array, b: Array, c: Array, d: Array) -> Array:
    """The same with four operands."""
    value = a * b + c * d
    return value[:, 0] + value[:, 1]


WEIGHTS = np.random.default_rng(1).integers(-99, 99, (256, 256), dtype=np.int8)


def quantized_layer(x: Array) -> Array:
    """A product with weights that a model has quantized."""
    return x @ (WEIGHTS.astype(np.float32) * np.float32(0.01))


def dynamic_quantization(x: Array) -> Array:
    """ONNX's DynamicQuantizeLinear: a scale and a zero point of 0-d values."""
    low, high = np.minimum(x.min(), np.float32(0)), np.maximum(x.max(), np.float32(0))
    scale = (high - low) / np.float32(255)
    zero = np.clip(np.round(-low / scale), np.float32(0), np.float32(255))
    return np.clip(np.round(x / scale) + zero, np.float32(0), np.float32(255)).astype(np.uint8)


def normal(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], tuple[Array, ...]]:
    """The inputs of some shapes, of float32."""
    return lambda r: tuple(r.normal(size=shape).astype(np.float32) for shape in shapes)


def _image(r: np.random.Generator) -> tuple[Array, ...]:
    return (r.integers(0, 256, (1024, 1024), dtype=np.uint8),)


_LAYERS = normal((10, 10), *[(10, 10), (10,)] * 3)
_SMALL = [
    Case("relu_layers small", whole_numpy.relu_layers, _LAYERS, 3000, True),
    Case("layer_norm small", whole_numpy.layer_norm, normal((10, 10), (10,), (10,)), 3000, True),
    Case("attention small", whole_numpy.attention, normal(*[(2, 7, 7)] * 3), 3000, True),
]
CASES: dict[str, list[Case]] = {
    "OVERLAPPING_CASTS": [
        Case(f"blur of {n}", lambda x, n=n: blur(x, n), _image) for n in (3, 5, 9, 12)
    ],
    "SLICED_ELEMENTS": [
        Case(f"halves of {n}", of_halves, normal((n,), (n,)), 200) for n in (64, 256, 1024, 4096)
    ],
    "SLICED_LOADS": [
        Case("two operands", of_points, normal((100_000, 2), (100_000, 2)), 10),
        Case("four operands", of_four, normal(*[(100_000, 2)] * 4), 10),
    ],
    "ACCUMULATION_STEP": [
        Case("sums of rows", lambda x: np.cumsum(x * 2, axis=1), normal((500, 200)), 10),
        Case("sums of columns", lambda x: np.cumsum(x * 2, axis=0), normal((200, 500)), 10),
    ],
    "COLUMN_BLOCK": [Case("column_moments", whole_numpy.column_moments, normal((20_000, 50)))],
    "HOISTED_GROWTH": [Case("quantized layer", quantized_layer, normal((4, 256)), 50)],
    "HOISTED_BYTES": [Case("quantized layer", quantized_layer, normal((4, 256)), 50)],
    "SCALARS": [Case("quantization", dynamic_quantization, normal((1000,)), 200)],
    **dict.fromkeys(("FIRST_LOOKS", "SEQUENCE_TRIES", "RARE_TRIES", "STEPWISE_CALLS"), _SMALL),
}
"""The programs of the thresholds that no other benchmark measures."""


def measured(name: str, case: Case, rounds: int, native: Any) -> list[float]:
    """Return the least seconds of the calls at the value, at the least and beyond."""
    arguments = case.make(np.random.default_rng(0))
    recording = record(case.function, *copy.deepcopy(arguments))
    least = 0.0 if CostModel.__annotations__[name] == "Rate" else 1
    values = getattr(COST, name), least, BEYOND
    programs: list[Program | None] = [None] * len(values)
    seconds = [float("inf")] * len(values)
    for turn in range(rounds + 1):
        for i in ((turn + k) % len(values) for k in range(len(values))):
            with scaled(1, **{name: values[i]}):
                start = time.process_time()
                program = programs[i]
                if program is None or case.first:
                    program = Program(recording.graph, threads=1, native=native)
                    programs[i] = program
                    if not case.first:
                        for _ in range(3):
                            program(*recording.inputs)
                        start = time.process_time()
                for _ in range(case.calls):
                    program(*recording.inputs)
                if turn:
                    seconds[i] = min(seconds[i], time.process_time() - start)
    return seconds


def main() -> None:
    """Measure the thresholds and print a line for each program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", default=[*CASES])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--native", choices=("now", "auto", "off"))
    options = parser.parse_args()
    print(f"{'threshold':20}{'program':24}{'us':>10}{'least':>8}{'beyond':>8}")
    for name in options.names:
        for case in CASES[name]:
            native = options.native or ("auto" if case.first else "now")
            value, *others = measured(name, case, options.rounds, native)
            ratios = "".join(f"{seconds / value:8.2f}" for seconds in others)
            time_of_call = f"{value / case.calls * 1e6:10.1f}"
            print(f"{name:20}{case.name:24}{time_of_call}{ratios}", flush=True)


if __name__ == "__main__":
    main()
