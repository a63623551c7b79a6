"""What an op of the array API namespace costs: recorded alone, and computed beside others.

    python -m tests.benchmarks.array_api [--check]

Microseconds an op, the least of several rounds, interleaved; array-api-strict where it is
installed. `--check` has status 1 where recording an op takes more than its target.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from timeit import repeat
from types import ModuleType
from typing import Any

import numpy as np

from graphir.runtime import array_api

RECORDED = 25.0
"""Microseconds that recording an op may take."""

_ROUNDS = 7
_SIZES = (1, 100, 10_000, 1_000_000)


def operators(xp: Any, x: Any, y: Any) -> tuple[Any, int]:
    """Operators on arrays."""
    for _ in range(20):
        x = x * y + y
    return x, 40


def numbers(xp: Any, x: Any, y: Any) -> tuple[Any, int]:
    """Operators with Python scalars."""
    for _ in range(20):
        x = 0.5 * x + 1.0
    return x, 40


def functions(xp: Any, x: Any, y: Any) -> tuple[Any, int]:
    """Elementwise functions."""
    for _ in range(10):
        x = xp.where(xp.sin(x) > y, xp.minimum(x, y), y)
    return x, 40


def reductions(xp: Any, x: Any, y: Any) -> tuple[Any, int]:
    """Sums and means, broadcast back."""
    for _ in range(10):
        x = x - xp.mean(x, axis=-1, keepdims=True) + xp.sum(y)
    return x, 40


def parts(xp: Any, x: Any, y: Any) -> tuple[Any, int]:
    """Reshaping, slices and joins."""
    for _ in range(10):
        x = xp.reshape(xp.concat([x[1:, ...], y[:1, ...]]), y.shape) + y
    return x, 50


PROGRAMS = (operators, numbers, functions, reductions, parts)


def namespaces() -> dict[str, ModuleType]:
    """Those there are."""
    found: dict[str, ModuleType] = {"graphir": array_api, "NumPy": np}
    try:
        import array_api_strict
    except ImportError:
        return found
    return found | {"strict": array_api_strict}


def operands(xp: Any, size: int) -> tuple[Any, Any]:
    """Two vectors of a size."""
    x, y = (xp.asarray(np.full(size, value, np.float32)) for value in (0.5, 0.25))
    return x, y


def recorded(program: Callable[..., Any]) -> float:
    """The time to record an op."""
    x, y = operands(array_api, 100)
    return _least({"": lambda: program(array_api, x, y)}, 20)[""] / program(array_api, x, y)[1]


def computed(program: Callable[..., Any], size: int) -> dict[str, float]:
    """The time of an op whose program is run to its values, by namespace."""
    runs: dict[str, Callable[[], Any]] = {}
    for name, xp in namespaces().items():
        x, y = operands(xp, size)
        runs[name] = lambda xp=xp, x=x, y=y: np.asarray(program(xp, x, y)[0])
    number = 20 if size < 100_000 else 1
    x, y = operands(array_api, size)
    count = program(array_api, x, y)[1]
    return {name: time / count for name, time in _least(runs, number).items()}


def _least(functions: dict[str, Callable[[], Any]], number: int) -> dict[str, float]:
    for function in functions.values():
        for _ in range(3):
            function()
    rounds = [
        [repeat(one, number=number, repeat=1)[0] for one in functions.values()]
        for _ in range(_ROUNDS)
    ]
    times = [min(of) / number * 1e6 for of in zip(*rounds, strict=True)]
    return dict(zip(functions, times, strict=True))


def main() -> int:
    """Print all, and say whether recording is within its target."""
    beyond = False
    for program in PROGRAMS:
        time = recorded(program)
        beyond |= time > RECORDED
        print(f"{program.__name__}: an op is recorded in {time:.2f} us")
        for size in _SIZES:
            found = computed(program, size)
            print(
                f"  {size:9,} elements:",
                ", ".join(f"{name} {us:.2f}" for name, us in found.items()),
            )
    return int(beyond and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
