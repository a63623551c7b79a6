"""The cost of an iteration of control flow, in a Program with and without machine code.

    python -m tests.benchmarks.control_flow [--turns N] [--rounds N]

Prints microseconds an iteration: loops over scalars by the number of ops in the body, scans over
rows, and a loop that writes into an array. Then, for loops over scalars as people write them,
microseconds of a call of a Program without and with machine code beside the same loop on NumPy's
scalars in Python and, if it is installed, by numba, measured in turn. `/Python` and `/numba` are
the ratios of times.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from graphir import Graph, trace
from graphir.control import cond, fori_loop, scan, while_loop
from graphir.runtime import Program, jit


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


class Loop(NamedTuple):
    """A loop in graphir, the same loop in Python, and its arguments."""

    graphir: Callable[..., Any]
    python: Callable[..., Any]
    arguments: Sequence[Any]


def newton(x: Any, tolerance: Any) -> Any:
    """The square root of x by Newton's method, from x on."""
    return while_loop(lambda y: abs(y * y - x) > tolerance, lambda y: (y + x / y) * 0.5, x)


def newton_python(x: Any, tolerance: Any) -> Any:
    y = x
    while abs(y * y - x) > tolerance:
        y = (y + x / y) * 0.5
    return y


def collatz(n: Any) -> Any:
    """The steps from n to 1."""

    def body(state: Any) -> Any:
        n, count = state
        return np.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1

    return while_loop(lambda state: state[0] > 1, body, (n, n * 0))[1]


def collatz_python(n: Any) -> Any:
    count = n * 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count = count + 1
    return count


def divisor(a: Any, b: Any) -> Any:
    """The greatest common divisor."""
    return while_loop(lambda pair: pair[1] > 0, lambda pair: (pair[1], pair[0] % pair[1]), (a, b))[
        0
    ]


def divisor_python(a: Any, b: Any) -> Any:
    while b > 0:
        a, b = b, a % b
    return a


def lorenz(x: Any, y: Any, z: Any) -> Any:
    """A thousand steps of the Lorenz system."""

    def body(i: Any, state: Any) -> Any:
        x, y, z = state
        dx, dy, dz = 10 * (y - x), x * (28 - z) - y, x * y - 2.5 * z
        return x + dx * 0.01, y + dy * 0.01, z + dz * 0.01

    return fori_loop(0, 1000, body, (x, y, z))


def lorenz_python(x: Any, y: Any, z: Any) -> Any:
    for _ in range(1000):
        dx, dy, dz = 10 * (y - x), x * (28 - z) - y, x * y - 2.5 * z
        x, y, z = x + dx * 0.01, y + dy * 0.01, z + dz * 0.01
    return x, y, z


def pendulum(angle: Any, speed: Any) -> Any:
    """A thousand steps of a pendulum."""

    def body(i: Any, state: Any) -> Any:
        angle, speed = state
        speed = speed - np.sin(angle) * 0.01
        return angle + speed * 0.01, speed

    return fori_loop(0, 1000, body, (angle, speed))


def pendulum_python(angle: Any, speed: Any) -> Any:
    for _ in range(1000):
        speed = speed - np.sin(angle) * 0.01
        angle = angle + speed * 0.01
    return angle, speed


def decays(x: Any) -> Any:
    """A series of exponentials."""
    return fori_loop(0, 1000, lambda i, s: s * 0.5 + np.exp(-s), x)


def decays_python(x: Any) -> Any:
    for _ in range(1000):
        x = x * 0.5 + np.exp(-x)
    return x


def average(start: Any, xs: Any) -> Any:
    """Exponential moving averages."""

    def body(mean: Any, x: Any) -> Any:
        mean = mean * 0.9 + x * 0.1
        return mean, mean

    return scan(body, start, xs)[1]


def average_python(mean: Any, xs: Any) -> Any:
    means = np.empty_like(xs)
    for i in range(xs.shape[0]):
        mean = mean * 0.9 + xs[i] * 0.1
        means[i] = mean
    return means


def population(x: Any) -> Any:
    """The logistic map, all values of it."""

    def body(x: Any, _: Any) -> Any:
        x = 3.7 * x * (1 - x)
        return x, x

    return scan(body, x, length=1000)[1]


def population_python(x: Any) -> Any:
    values = np.empty(1000)
    for i in range(1000):
        x = 3.7 * x * (1 - x)
        values[i] = x
    return values


def escape(re: Any, im: Any) -> Any:
    """The steps after which a point leaves the circle of radius 2, at most 1,000."""

    def body(state: Any) -> Any:
        x, y, count = state
        return x * x - y * y + re, 2 * x * y + im, count + 1

    def inside(state: Any) -> Any:
        x, y, count = state
        return (x * x + y * y < 4) & (count < 1000)

    return while_loop(inside, body, (re * 0, im * 0, re * 0))[2]


def escape_python(re: Any, im: Any) -> Any:
    x, y, count = re * 0, im * 0, re * 0
    while x * x + y * y < 4 and count < 1000:
        x, y = x * x - y * y + re, 2 * x * y + im
        count = count + 1
    return count


def peaks(xs: Any, level: Any) -> Any:
    """The elements above a level that rises with each of them."""

    def body(state: Any, x: Any) -> Any:
        level, count = state
        new = cond(x > level, lambda: (level * 0.5 + x * 0.5, count + 1), lambda: (level, count))
        return new, new[0]

    return scan(body, (level, level * 0), xs)


def peaks_python(xs: Any, level: Any) -> Any:
    count, levels = level * 0, np.empty_like(xs)
    for i in range(xs.shape[0]):
        if xs[i] > level:
            level, count = level * 0.5 + xs[i] * 0.5, count + 1
        levels[i] = level
    return (level, count), levels


def prefix(xs: Any) -> Any:
    """Prefix sums, written into an array."""

    def body(i: Any, sums: Any) -> Any:
        sums[i] = sums[i - 1] + sums[i]
        return sums

    return fori_loop(1, 1000, body, xs)


def prefix_python(xs: Any) -> Any:
    sums = xs.copy()
    for i in range(1, 1000):
        sums[i] = sums[i - 1] + sums[i]
    return sums


def polynomial(x: Any, factors: Any) -> Any:
    """Horner's rule in float32."""
    return scan(lambda y, a: (y * x + a, None), x * 0, factors)[0]


def polynomial_python(x: Any, factors: Any) -> Any:
    y = x * 0
    for i in range(factors.shape[0]):
        y = y * x + factors[i]
    return y


_DRAW = np.random.default_rng(0)
_ROW = _DRAW.random(1000)
LOOPS = {
    "newton": Loop(newton, newton_python, (np.float64(3e9), np.float64(1e-5))),
    "collatz": Loop(collatz, collatz_python, (np.int64(837_799),)),
    "divisor": Loop(
        divisor, divisor_python, (np.int64(7540113804746346429), np.int64(4660046610375530309))
    ),
    "lorenz": Loop(lorenz, lorenz_python, (np.float64(1), np.float64(1), np.float64(1))),
    "pendulum": Loop(pendulum, pendulum_python, (np.float64(1), np.float64(0))),
    "decays": Loop(decays, decays_python, (np.float64(1),)),
    "average": Loop(average, average_python, (np.float64(0), _ROW)),
    "population": Loop(population, population_python, (np.float64(0.4),)),
    "escape": Loop(escape, escape_python, (np.float64(-0.5), np.float64(0.5))),
    "peaks": Loop(peaks, peaks_python, (_ROW, np.float64(0))),
    "prefix": Loop(prefix, prefix_python, (_ROW,)),
    "polynomial": Loop(polynomial, polynomial_python, (np.float32(0.99), _ROW.astype(np.float32))),
}


def beside_python_and_numba(rounds: int) -> Iterator[tuple[str, list[float]]]:
    """Yield names and medians of microseconds: Python, without and with machine code, and numba."""
    compilers = [importlib.import_module("numba").njit] if find_spec("numba") else []
    for name, (graphir, python, arguments) in LOOPS.items():
        graph = jit(graphir, rules="numpy").traced(*arguments).graph
        modes = [Program(graph, native=mode) for mode in ("off", "now")]
        calls = [python, *modes, *[compiler(python) for compiler in compilers]]
        counts = [_calls(call, arguments) for call in calls]
        taken: list[list[float]] = [[] for _ in calls]
        for _ in range(rounds):
            for call, count, times in zip(calls, counts, taken, strict=True):
                start = time.perf_counter()
                for _ in range(count):
                    call(*arguments)
                times.append((time.perf_counter() - start) / count)
        yield name, [1e6 * statistics.median(times) for times in taken]


def _calls(call: Callable[..., Any], arguments: Sequence[Any]) -> int:
    """Return the number of calls that take two milliseconds or more, after a few calls."""
    for _ in range(5):
        call(*arguments)
    start = time.perf_counter()
    call(*arguments)
    return int(0.002 / (time.perf_counter() - start)) + 1


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
    heads = ("Python", "NumPy", "machine code", "/Python", "numba", "/numba")
    print(f"\n{'µs a call':16}" + "".join(f"{head:>14}" for head in heads))
    for name, (python, off, now, *numba) in beside_python_and_numba(args.rounds):
        cells = [python, off, now, off / python, *[x for y in numba for x in (y, now / y)]]
        print(f"{name:16}" + "".join(f"{cell:14.2f}" for cell in cells))


if __name__ == "__main__":
    main()
