"""Programs that write into their arrays, replayed beside NumPy: stencils, rows, scalar loops.

    python -m tests.benchmarks.updates [--only thomas ...] [--native off auto] [--rounds 25]
        [--threads 1] [--check]

Each program is recorded once. The plain function and a Program for each tier are called in turn;
each is measured for a millisecond at least in each round. The figures are the ratios of the median
times and of the least times; the medians of a loaded machine swing. `--check` has status 1 if the
least time of a stencil or of a loop over rows is longer than NumPy's, or that of a loop over
scalars more than 10 times as long.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphir.runtime import Program, record
from tests.numpy_kernels import KERNELS

Make = Callable[[np.random.Generator], tuple[Any, ...]]


def heat_2d(u):
    for _ in range(10):
        u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])


def wave_3d(u, v):
    for _ in range(5):
        v[1:-1, 1:-1, 1:-1] += 0.1 * (u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1])
        u += v


def red_black(u):
    for _ in range(5):
        for first in (1, 2):
            rows = slice(first, -1, 2)
            up, down = slice(first - 1, -2, 2), slice(first + 1, None, 2)
            u[rows, 1:-1] = 0.25 * (u[up, 1:-1] + u[down, 1:-1] + u[rows, 2:] + u[rows, :-2])


def prefix_rows(a):
    for i in range(1, len(a)):
        a[i] = 0.5 * a[i - 1] + a[i]


def thomas_rows(a, b, c, d):
    """A tridiagonal system for each column."""
    n = len(d)
    for i in range(1, n):
        w = a[i - 1] / b[i - 1]
        b[i] -= w * c[i - 1]
        d[i] -= w * d[i - 1]
    d[n - 1] /= b[n - 1]
    for i in range(n - 2, -1, -1):
        d[i] = (d[i] - c[i] * d[i + 1]) / b[i]


def eliminate(a):
    """Gauss's elimination without pivots, a block of rows at once."""
    for k in range(len(a) - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])


def lower_solve(a, b):
    for i in range(len(b)):
        b[i] = (b[i] - a[i, :i] @ b[:i]) / a[i, i]


def edit_table(cost):
    n, m = cost.shape
    for i in range(1, n):
        for j in range(1, m):
            best = np.minimum(cost[i - 1, j], cost[i, j - 1])
            cost[i, j] += np.minimum(best, cost[i - 1, j - 1])


class Case(NamedTuple):
    """A program, the maker of its arguments, and how many of NumPy's times it may take."""

    name: str
    function: Callable[..., Any]
    make: Make
    most: float


def _arrays(*shapes: tuple[int, ...]) -> Make:
    return lambda rng: tuple([rng.random(shape) + 1 for shape in shapes])


def _positive(n: int) -> Make:
    return lambda rng: (rng.random((n, n)) + n * np.eye(n),)


def _cases() -> list[Case]:
    kernels = {each.name: each.function for each in KERNELS}
    square = (100, 100)
    wholes: list[tuple[str, Make]] = [
        ("jacobi_1d", lambda rng: (10, rng.random(10_000), rng.random(10_000))),
        ("jacobi_1d", lambda rng: (10, rng.random(100_000), rng.random(100_000))),
        ("jacobi_1d", lambda rng: (3, rng.random(2_000_000), rng.random(2_000_000))),
        ("fdtd_2d", lambda rng: (*[rng.random((120, 110)) for _ in range(3)], np.ones(10))),
        ("heat_3d", lambda rng: (rng.random((26, 25, 24)).astype(np.float32), 5, 0.1)),
        ("floyd_warshall", lambda rng: (rng.integers(1, 60, square).astype(np.int32),)),
        ("julia", lambda rng: (rng.uniform(-1.5, 1.5, square) + 1j * rng.random(square), 20)),
        ("cyclic_reduction", lambda rng: (*[rng.random(2**15 - 1) + k for k in (0, 4, 0, 0)],)),
        ("odd_even_transposition", lambda rng: (rng.integers(0, 99, 20_000)[:200].repeat(100),)),
    ]
    singles: list[tuple[str, Make]] = [
        ("cholesky", _positive(40)),
        ("gauss_seidel", lambda rng: (*_positive(40)(rng), rng.random(40), np.zeros(40), 5)),
        ("seidel_2d", lambda rng: (3, rng.random((20, 20)))),
        ("thomas", lambda rng: (*[rng.random(100 - k) + k + 1 for k in (1, 0, 1, 0)],)),
        ("back_substitution", lambda rng: (np.triu(*_positive(30)(rng)), rng.random(30))),
        ("convolve_valid", lambda rng: (rng.random(100), rng.random(5))),
        ("batcher_merge", lambda rng: (rng.random(64),)),
        ("spring_chain", lambda rng: (rng.random(24), np.zeros(24), 0.05, 12)),
    ]
    rows = [
        Case("heat_2d", heat_2d, _arrays(square), 1),
        Case("heat_2d large", heat_2d, _arrays((600, 600)), 1),
        Case("wave_3d", wave_3d, _arrays((24, 24, 24), (24, 24, 24)), 1),
        Case("red_black", red_black, _arrays((200, 150)), 1),
        Case("prefix_rows", prefix_rows, _arrays((20, 10_000)), 1),
        Case("thomas_rows", thomas_rows, _arrays(*[(12 - k, 10_000) for k in (1, 0, 1, 0)]), 1),
        Case("eliminate", eliminate, _positive(150), 1),
    ]
    scalars = [
        Case("lower_solve", lower_solve, _arrays(square, (100,)), 10),
        Case("edit_table", edit_table, _arrays((20, 20)), 10),
    ]
    return [
        *[Case(_label(name, make), kernels[name], make, 1) for name, make in wholes],
        *rows,
        *[Case(name, kernels[name], make, 10) for name, make in singles],
        *scalars,
    ]


def _label(name: str, make: Make) -> str:
    sizes = [x.size for x in make(np.random.default_rng(0)) if isinstance(x, np.ndarray)]
    return f"{name} {max(sizes)}" if name == "jacobi_1d" else name


def _clock(function: Callable[..., Any], calls: Sequence[Any]) -> float:
    """The mean seconds of a function over some calls, each with arguments of its own."""
    start = time.perf_counter()
    for arguments in calls:
        function(*arguments)
    return (time.perf_counter() - start) / len(calls)


def measured(
    case: Case, tiers: Sequence[Any], rounds: int, threads: int | None
) -> list[list[float]]:
    """The times of NumPy, and then those of a Program for each tier, in seconds a call."""
    arguments = case.make(np.random.default_rng(0))
    recording = record(case.function, *copy.deepcopy(arguments))
    programs = [Program(recording.graph, native=native, threads=threads) for native in tiers]
    functions: list[Callable[..., Any]] = [case.function, *programs]
    first = [_clock(case.function, [copy.deepcopy(arguments)]) for _ in range(3)]
    calls = max(1, min(200, int(1e-3 / min(first))))
    for program in programs:  # as long as a plan looks for machine code
        end = time.perf_counter() + 0.5
        while time.perf_counter() < end:
            program(*recording.inputs)
    times: list[list[float]] = [[] for _ in functions]
    with np.errstate(all="ignore"):
        for number in range(rounds):
            for k in range(len(functions)):
                k = (k + number) % len(functions)
                own = [recording.inputs if k else copy.deepcopy(arguments) for _ in range(calls)]
                times[k].append(_clock(functions[k], own))
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--native", nargs="*", default=["off", "auto"])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    missed = False
    print("the times of a Program as parts of NumPy's: by the medians, and by the least")
    columns = "  ".join([f"{tier:>6} {'least':>6}" for tier in asked.native])
    print(f"{'program':22} {'NumPy, us':>10}  {columns} {'most':>5}")
    for case in _cases():
        if asked.only and not any(name in case.name for name in asked.only):
            continue
        numpy_times, *others = measured(case, asked.native, asked.rounds, asked.threads)
        figures: list[str] = []
        for times in others:
            least = min(times) / min(numpy_times)
            middle = statistics.median(times) / statistics.median(numpy_times)
            figures.append(f"{middle:6.2f} {least:6.2f}")
            missed |= least > case.most
        middle = statistics.median(numpy_times) * 1e6
        print(f"{case.name:22} {middle:10.0f}  {'  '.join(figures)} {case.most:5}", flush=True)
    return int(asked.check and missed)


if __name__ == "__main__":
    sys.exit(main())
