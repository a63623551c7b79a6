"""What recording costs: the time of an op of a recorded program, less what plain NumPy takes.

    python -m tests.benchmarks.recording_cost

Prints microseconds an op, medians over programs on small arrays, where NumPy hides nothing.
"""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphir.runtime import record
from tests.support.recorded_programs import PROGRAMS

LIMIT = 20.0
"""Microseconds an op may cost over NumPy."""


def elementwise(x: Any, y: Any) -> Any:
    for _ in range(200):
        x = x * 0.5 + y
        y = np.sin(x) - y
    return y


def scalars(x: Any) -> Any:
    total = x[0] * 0
    for i in range(300):
        total = total + x[i % 8] * 2.0
    return total


def slices(x: Any) -> Any:
    for _ in range(100):
        x[1:-1] = (x[:-2] + x[2:]) / 2
    return x


def reductions(x: Any) -> Any:
    for _ in range(150):
        x = x - x.mean() + x.max() * 1e-3
    return x.sum()


LOOPS: dict[Callable[..., Any], tuple[Any, ...]] = {
    elementwise: (np.ones(8, np.float32), np.arange(8.0)),
    scalars: (np.arange(8.0),),
    slices: (np.arange(10.0),),
    reductions: (np.arange(8.0),),
}


def nothing(*args: Any) -> None:
    """What a recording costs before its first op."""


def seconds(function: Callable[..., Any], *args: Any) -> float:
    """The time that this thread computes for; that of others on the machine is not counted."""
    given = copy.deepcopy(args)
    start = time.thread_time()
    function(*given)
    return time.thread_time() - start


def cost(program: Callable[..., Any], args: Sequence[Any], rounds: int = 15) -> tuple[float, int]:
    """Microseconds an op over NumPy and over an empty recording, and the number of ops."""
    over = [
        seconds(record, program, *args) - seconds(record, nothing, *args) - seconds(program, *args)
        for _ in range(rounds)
    ]
    ops = len(record(program, *copy.deepcopy(args)).graph)
    return statistics.median(over) / ops * 1e6, ops


def main() -> None:
    """Print a line for each program, the median, and what an empty recording costs."""
    found: list[float] = []
    for program, args in {**LOOPS, **PROGRAMS}.items():
        each, ops = cost(program, args)
        found.append(each)
        print(f"{program.__name__:22} {each:6.1f} us an op, {ops} ops")
    start = statistics.median(seconds(record, nothing) for _ in range(21)) * 1e3
    print(f"median {statistics.median(found):.1f} us, at most {max(found):.1f}; limit {LIMIT:.0f}")
    print(f"a recording of nothing {start:.2f} ms")


if __name__ == "__main__":
    main()
