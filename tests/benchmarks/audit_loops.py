"""What an audit of a Python loop costs, beside its bound: ten programs, an op of NumPy at a time.

    python -m tests.benchmarks.audit_loops [--rounds 3] [--steps 1000] [--only pixels]

The bound is 1 s, 10 times the plain run, and 60 us for each recorded symbol. Times are those of the
processor, medians of rounds in which plain runs and audits alternate.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from graphir.hints import Array
from graphir.runtime import record
from tests.benchmarks.audit_cost import seconds


def pixels(image: Array) -> Array:
    """Grade an image pixel by pixel."""
    result = np.zeros_like(image)
    for i in range(image.size):
        light = (image[i] / np.float32(255)) ** np.float32(2.2)
        result[i] = np.minimum(light * np.float32(300), np.float32(255))
    return result


def pendulum(steps: Array) -> Array:
    """Integrate a pendulum by Euler's method."""
    angle, speed = np.float32(0.5), np.float32(0)
    for step in steps:
        speed = speed - np.sin(angle) * step
        angle = angle + speed * step
    return np.array([angle, speed])


def kalman(heights: Array) -> Array:
    """Filter heights by a Kalman filter of two states."""
    change = np.array([[1, 0.1], [0, 1]], np.float32)
    state, spread = np.zeros(2, np.float32), np.eye(2, dtype=np.float32)
    for height in heights:
        state = change @ state
        spread = change @ spread @ change.T + np.float32(1e-3)
        gain = spread[:, 0] / (spread[0, 0] + np.float32(0.5))
        state = state + gain * (height - state[0])
        spread = spread - np.outer(gain, spread[0])
    return state


def running_statistics(values: Array) -> Any:
    """Return mean and variance by Welford's method."""
    mean = squares = np.float32(0)
    for count, value in enumerate(values, 1):
        difference = value - mean
        mean = mean + difference / np.float32(count)
        squares = squares + difference * (value - mean)
    return mean, squares / np.float32(len(values))


def hashed(codes: Array) -> Any:
    """Hash bytes by FNV-1a."""
    value = np.uint32(2166136261)
    with np.errstate(over="ignore"):
        for code in codes:
            value = (value ^ np.uint32(code)) * np.uint32(16777619)
    return value


def letter_counts(codes: Array) -> Array:
    """Count the letters of a text."""
    counts = np.zeros(26, np.int32)
    for code in codes:
        counts[code - 97] += 1
    return counts / counts.sum()


def circle(points: Array) -> Any:
    """Estimate pi from random points."""
    inside = np.float32(0)
    for x, y in points:
        inside = inside + (x * x + y * y <= np.float32(1)).astype(np.float32)
    return np.float32(4) * inside / np.float32(len(points))


def power_iteration(matrix: Array, steps: int) -> Any:
    """Return the largest eigenvalue of a symmetric matrix."""
    vector = np.ones(len(matrix), matrix.dtype)
    for _ in range(steps):
        product = matrix @ vector
        vector = product / np.sqrt((product * product).sum())
    return vector @ (matrix @ vector)


def totals(lines: list[str]) -> Array:
    """Sum the columns of a text of comma-separated values."""
    total = np.zeros(3, np.float32)
    for line in lines:
        row = np.array([float(x) for x in line.split(",")], np.float32)
        total += row * np.float32(0.01)
    return total


def life(board: Array, steps: int) -> Array:
    """Play the game of life."""
    for _ in range(steps):
        near = np.zeros(board.shape, np.uint8)
        for row in (-1, 0, 1):
            for column in (-1, 0, 1):
                if row or column:
                    near = near + np.roll(board, (row, column), (0, 1))
        board = ((near == 3) | ((board == 1) & (near == 2))).astype(np.uint8)
    return board


def programs(steps: int) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return the programs with inputs, for about so many rounds of a scalar loop."""
    random = np.random.default_rng(0)
    reals = random.uniform(0.1, 1, steps).astype(np.float32)
    letters = random.integers(97, 123, steps).astype(np.uint8)
    matrix = random.uniform(0, 1, (8, 8)).astype(np.float32)
    lines = [f"{x:.2f},{2 * x:.2f},{3 * x:.2f}" for x in reals]
    return [
        (pixels, (random.integers(0, 256, steps).astype(np.uint8),)),
        (pendulum, (reals / 100,)),
        (kalman, (reals[: steps // 4],)),
        (running_statistics, (reals,)),
        (hashed, (letters,)),
        (letter_counts, (letters,)),
        (circle, (random.uniform(0, 1, (steps, 2)).astype(np.float32),)),
        (power_iteration, (matrix + matrix.T, steps // 2)),
        (totals, (lines,)),
        (life, (random.integers(0, 2, (16, 16)).astype(np.uint8), steps // 8)),
    ]


def measure(program: Callable[..., Any], inputs: tuple[Any, ...], rounds: int) -> str:
    """Return a line of what an audit of a program costs, in `rounds` rounds."""
    plain: list[float] = []
    recorded: list[float] = []
    audits: list[float] = []
    symbols = 0
    for _ in range(rounds):
        plain.append(seconds(lambda: program(*inputs)))
        start = time.thread_time()
        recording = record(program, *inputs)
        recorded.append(time.thread_time() - start)
        str(recording.audit())
        audits.append(time.thread_time() - start)
        symbols = len(recording.graph)
    once, first, whole = map(statistics.median, (plain, recorded, audits))
    bound = 1 + 10 * once + 60e-6 * symbols
    return (
        f"{program.__name__:18} {symbols:7,} symbols, plain {once:5.3f} s, "
        f"audit {whole:5.2f} s ({first:4.2f} s recording, {whole / symbols * 1e6:3.0f} us a symbol)"
        f", bound {bound:5.2f} s: {whole / bound:3.1f} of it"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    record(np.square, np.ones(2)).audit()  # imports
    for program, inputs in programs(options.steps):
        if options.only in program.__name__:
            print(measure(program, inputs, options.rounds))


if __name__ == "__main__":
    main()
