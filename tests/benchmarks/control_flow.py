"""The cost of an iteration of control flow, in a Program with and without machine code.

    python -m tests.benchmarks.control_flow [--turns N] [--rounds N]

Prints microseconds an iteration: loops over scalars by the number of ops in the body, scans over
rows, and a loop that writes into an array.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from graphir import Graph, trace
from graphir.control import fori_loop, scan
from runtime import Program


def scalars(turns: int, ops: int) -> tuple[Graph, list[Any]]:
    """A loop over a scalar with so many multiplications and additions."""

    def body(i: Any, x: Any) -> Any:
        for _ in range(ops // 2):
            x = x * 1.0001 + 0.5
        return x

    return trace(lambda x: fori_loop(0, turns, body, x), np.float64(1)).graph, [np.float64(1)]


def rows(turns: int, size: int) -> tuple[Graph, list[Any]]:
    """A scan over rows, whose results are rows too."""
    xs = np.random.default_rng(0).random((turns, size))
    start = np.zeros(size)
    return trace(lambda c, xs: scan(lambda c, x: (c * 0.9 + x, c), c, xs), start, xs).graph, [
        start,
        xs,
    ]


def writes(turns: int, size: int) -> tuple[Graph, list[Any]]:
    """A loop that writes an element of an array in each iteration."""

    def body(i: Any, v: Any) -> Any:
        v[i] = v[i - 1] * 0.5
        return v

    x = np.ones(size)
    return trace(lambda x: fori_loop(1, turns, body, x), x).graph, [x]


def programs(turns: int) -> Iterator[tuple[str, Graph, list[Any]]]:
    """The names of the programs, their graphs and inputs."""
    for ops in (2, 8, 16, 32, 64):
        yield f"loop over a scalar, {ops} ops", *scalars(turns, ops)
    for size in (10, 1000):
        yield f"scan over rows of {size}", *rows(turns, size)
    yield "writes into 100,000 elements", *writes(turns, 100_000)


def seconds(program: Program, inputs: list[Any], rounds: int) -> float:
    """The shortest time of a call, after three calls."""
    times: list[float] = []
    for _ in range(3 + rounds):
        start = time.perf_counter()
        program(*inputs)
        times.append(time.perf_counter() - start)
    return min(times[3:])


def main() -> None:
    """Print a row for each program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    print(f"{'µs an iteration':32}{'NumPy':>10}{'machine code':>14}")
    for name, graph, inputs in programs(args.turns):
        modes = [Program(graph, threads=1, native=mode) for mode in ("off", "now")]
        cells = [1e6 * seconds(program, inputs, args.rounds) / args.turns for program in modes]
        print(f"{name:32}{cells[0]:10.2f}{cells[1]:14.2f}")


if __name__ == "__main__":
    main()
