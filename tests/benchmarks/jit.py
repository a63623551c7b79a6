"""What a call of a jitted function costs beside its Program's, and tracing an operation.

    python -m tests.benchmarks.jit [--check]

Microseconds of processor time, which others on the machine do not lengthen, interleaved, the least
of several rounds; `--check` has status 1 beyond the targets.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time
from timeit import repeat
from typing import Any

import numpy as np

from graphir import TensorType, trace
from graphir.runtime import jit

CALL, OPERATION = 3.0, 15.0
_ROUNDS = 7


def ten(x: Any, y: Any) -> Any:
    """Ten ops on arrays, or on an array and a number."""
    for _ in range(5):
        x = x * y + y
    return x


def operators(x: Any, y: Any) -> Any:
    """A thousand ops that Python's operators add."""
    for _ in range(500):
        x = x * y + y
    return x


def universal(x: Any, y: Any) -> Any:
    """A thousand ops that NumPy's universal functions add."""
    for _ in range(500):
        x = np.add(np.sin(x), y)
    return x


def functions(x: Any, y: Any) -> Any:
    """Many ops that other functions of NumPy add."""
    for _ in range(250):
        x = np.where(x > y, np.sum(x, axis=0), np.concatenate([x, y])[:100])
        x = np.ravel(np.reshape(np.clip(x, -1, 1), (10, 10)))
    return x


def least(*functions: Callable[[], Any], number: int) -> list[float]:
    """The microseconds of each, by turns."""
    rounds = [
        [repeat(f, timer=process_time, number=number, repeat=1)[0] for f in functions]
        for _ in range(_ROUNDS)
    ]
    return [min(times) / number * 1e6 for times in zip(*rounds, strict=True)]


def calls() -> dict[str, tuple[float, float]]:
    """The Program and the jitted function, of arrays, and of an array and a number."""
    x = np.linspace(0, 1, 100, dtype=np.float32)
    found: dict[str, tuple[float, float]] = {}
    for name, y, entered in (("arrays", x + 1, x + 1), ("a number", 2.0, np.array(2.0))):
        jitted = jit(ten, rules="numpy")
        jitted(x, y)
        program: Any = jitted.program(x, y)
        one, other = least(
            lambda p=program, e=entered: p(x, e), lambda f=jitted, y=y: f(x, y), number=10_000
        )
        found[name] = one, other
    return found


def tracing() -> dict[str, float]:
    """Microseconds for each op that is traced."""
    type_ = TensorType("float32", (100,))
    found: dict[str, float] = {}
    for function in (operators, universal, functions):
        count = len(trace(function, type_, type_).graph)
        (time,) = least(lambda f=function: trace(f, type_, type_), number=1)
        found[function.__name__] = time / count
    return found


def main() -> int:
    """Print both, and say whether they are within the targets."""
    beyond = False
    for name, (program, jitted) in calls().items():
        print(f"call on {name}: Program {program:.2f}, jit {jitted:.2f} (+{jitted - program:.2f})")
        beyond |= jitted - program > CALL
    for name, time in tracing().items():
        print(f"trace an op, {name}: {time:.2f}")
        beyond |= time > OPERATION
    return int(beyond and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
