"""Programs of about 40 ops over large arrays, of several kinds, whose audits differ in cost.

Each takes the arrays that `inputs_of` makes.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def trivial(x: Any, y: Any) -> Any:
    """Sums and products of float32: a plain run is bound by memory."""
    for _ in range(10):
        total = x + y
        x = (total - x) + total * y
    return x


def running_sums(x: Any, y: Any) -> Any:
    """Sums that a loop repeats on its own results, with two outputs: each sum may accumulate."""
    for _ in range(20):
        x = x + y
        y = x - y
    return x, y


def constants(x: Any) -> Any:
    """An array with Python numbers, the cheapest ops there are."""
    for _ in range(10):
        x = (x * 1.01 + 0.1 - 0.05) / 1.02
    return x


def transcendental(x: Any, y: Any) -> Any:
    for _ in range(6):
        squashed = np.tanh(x)
        gate = 1 / (1 + np.exp(-squashed))
        x = np.maximum(np.sqrt(gate) * y, x) - np.log1p(gate)
    return x


def normalized(x: Any, y: Any) -> Any:
    """Reductions in the middle."""
    for _ in range(8):
        centred = x - x.mean()
        variance = (centred * centred).mean()
        x = centred / np.sqrt(variance + np.float32(1e-5)) * y
    return x


def broadcast(x: Any, y: Any) -> Any:
    """Rows and columns, spread over a matrix."""
    matrix, row, column = x.reshape(-1, 1600), y[:1600], y[: x.size // 1600, None]
    for _ in range(8):
        matrix = (matrix * row + column - row) / (column + np.float32(2))
    return matrix


def brightened(x: Any, y: Any) -> Any:
    """An image of uint8, and sums in uint16."""
    image, mask = (x * 255).astype(np.uint8), (y * 50).astype(np.uint16)
    result = image
    for _ in range(6):
        sums = result.astype(np.uint16) * 3 + mask
        bounded = np.minimum(sums // 4, 255).astype(np.uint8)
        result = np.where((bounded ^ image) > 100, bounded, image)
    return result


def mixed(x: Any, y: Any) -> Any:
    """Arrays of int32, float32 and float64, with a lossy cast in each line."""
    counts, weights = (x * 1000).astype(np.int32), y.astype(np.float64)
    for _ in range(6):
        amounts = counts * x
        x = (amounts.astype(np.float32) + x) * weights - amounts
        x = x.astype(np.float32) * np.float32(0.01)
        counts = counts + 1
    return x, counts


def half_precision(x: Any, y: Any) -> Any:
    x, y = x.astype(np.float16), y.astype(np.float16)
    for _ in range(10):
        total = x + y
        x = (total * y - x) * np.float16(0.5)
    return x


PROGRAMS = (
    trivial,
    running_sums,
    constants,
    transcendental,
    normalized,
    broadcast,
    brightened,
    mixed,
    half_precision,
)


def inputs_of(program: Any, elements: int) -> tuple[Any, ...]:
    """Return float32 arrays of so many elements, a multiple of 1600, for a program's parameters."""
    generator = np.random.default_rng(0)
    count = program.__code__.co_argcount
    return tuple(generator.uniform(0.1, 1, (count, elements)).astype(np.float32))
