"""Programs that write into their arrays, replayed beside NumPy: stencils, rows, scalar loops.

    python -m tests.benchmarks.updates [--only thomas ...] [--native auto] [--rounds 25] [--check]

Each program is recorded once. Its Program and the plain function are called in turn; the figure is
the ratio of their median times. `--check` has status 1 if a stencil or a loop over rows takes
longer than NumPy, or a loop over scalars more than 10 times as long.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from runtime import Program, record


def jacobi_1d(a, b):
    for _ in range(10):
        b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3
        a[1:-1] = (b[:-2] + b[1:-1] + b[2:]) / 3


def heat_2d(u):
    for _ in range(10):
        u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])


def wave_3d(u, v):
    for _ in range(5):
        v[1:-1, 1:-1, 1:-1] += 0.1 * (u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1])
        u += v


def prefix_rows(a):
    for i in range(1, len(a)):
        a[i] = 0.5 * a[i - 1] + a[i]


def lower_solve(a, b):
    for i in range(len(b)):
        b[i] = (b[i] - a[i, :i] @ b[:i]) / a[i, i]


def thomas(a, b, c, d):
    n = len(d)
    for i in range(1, n):
        w = a[i - 1] / b[i - 1]
        b[i] -= w * c[i - 1]
        d[i] -= w * d[i - 1]
    d[n - 1] /= b[n - 1]
    for i in range(n - 2, -1, -1):
        d[i] = (d[i] - c[i] * d[i + 1]) / b[i]


def edit_table(cost):
    n, m = cost.shape
    for i in range(1, n):
        for j in range(1, m):
            best = np.minimum(cost[i - 1, j], cost[i, j - 1])
            cost[i, j] += np.minimum(best, cost[i - 1, j - 1])


class Case(NamedTuple):
    """A program, the shapes of its arguments, and how many of NumPy's times it may take."""

    function: Callable[..., None]
    shapes: tuple[tuple[int, ...], ...]
    most: float


CASES = (
    Case(jacobi_1d, ((10_000,), (10_000,)), 1),
    Case(heat_2d, ((100, 100),), 1),
    Case(wave_3d, ((24, 24, 24), (24, 24, 24)), 1),
    Case(prefix_rows, ((20, 10_000),), 1),
    Case(lower_solve, ((100, 100), (100,)), 10),
    Case(thomas, ((100,), (100,), (100,), (100,)), 10),
    Case(edit_table, ((20, 20),), 10),
)


def measured(case: Case, native: Any, rounds: int) -> tuple[float, float]:
    """The median seconds of NumPy and of the Program."""
    draw = np.random.default_rng(0)
    arrays = [draw.random(shape) + 1 for shape in case.shapes]
    recording = record(case.function, *[x.copy() for x in arrays])
    program, inputs = Program(recording.graph, native=native), recording.inputs
    for _ in range(30):
        program(*inputs)
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        own = [x.copy() for x in arrays]
        for taken, function, given in ((times[0], case.function, own), (times[1], program, inputs)):
            start = time.perf_counter()
            function(*given)
            taken.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--native", default="auto")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    missed = False
    print(f"{'program':12} {'NumPy, us':>10} {'Program, us':>12} {'ratio':>6} {'most':>5}")
    for case in CASES:
        name = case.function.__name__
        if asked.only and name not in asked.only:
            continue
        plain, replayed = measured(case, asked.native, asked.rounds)
        ratio = replayed / plain
        missed |= ratio > case.most
        print(f"{name:12} {plain * 1e6:10.0f} {replayed * 1e6:12.0f} {ratio:6.2f} {case.most:5}")
    return int(asked.check and missed)


if __name__ == "__main__":
    sys.exit(main())
