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

from runtime import record
from tests.recorded_programs import PROGRAMS

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


def cost(program: Callable[..., Any], args: Sequence[Any], rounds: int = 9) -> tuple[float, int]:
    """Microseconds an op over NumPy, and how many NumPy calls' worth of symbols there were."""
    plain, recorded, symbols = [], [], 1
    for _ in range(rounds):
        given = copy.deepcopy(args)
        start = time.perf_counter()
        program(*given)
        plain.append(time.perf_counter() - start)
        given = copy.deepcopy(args)
        start = time.perf_counter()
        symbols = len(record(program, *given).graph)
        recorded.append(time.perf_counter() - start)
    over = statistics.median(recorded) - statistics.median(plain)
    return over / symbols * 1e6, symbols


def main() -> None:
    """Print a line for each program, and the median."""
    found: list[float] = []
    for program, args in {**LOOPS, **PROGRAMS}.items():
        each, symbols = cost(program, args)
        if symbols >= 50:  # what starting costs is no op's
            found.append(each)
            print(f"{program.__name__:22} {each:6.1f} us an op, {symbols} symbols")
    median = statistics.median(found)
    print(f"median {median:.1f} us, at most {max(found):.1f}; limit {LIMIT:.0f}")


if __name__ == "__main__":
    main()
