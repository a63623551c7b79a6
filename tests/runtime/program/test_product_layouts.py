"""Products that NumPy computes in a layout of their operands, in small plans."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphir.runtime import Program, interpret, record
from tests.support.layouts import unaligned
from tests.support.tables import every, sampled

PROGRAMS = {
    "transposed": lambda a, b: a.T @ b + 1,
    "reversed": lambda a, b: np.dot(a[::-1].T, b),
    "strided": lambda a, b: np.dot(a[::2].T, b[::2]),
    "gram": lambda a, b: a.T @ a + b[0],
    "vectors": lambda a, b: np.dot(b[::-1], b),
}


@sampled(3)
@every("name", PROGRAMS)
@every("dtype", [np.float64, np.float32, np.int32, np.complex128])
@every("shape", [(4, 5), (1, 5), (5, 1), (3, 3), (1, 1), (60, 70)])
def test_products_in_a_layout(name: str, dtype: Any, shape: tuple[int, int]) -> None:
    """Also of operands that lie otherwise than those of the recording."""
    rng = np.random.default_rng(0)
    a, b = ((rng.normal(size=size) * 5).astype(dtype) for size in (shape, shape[:1]))
    graph = record(PROGRAMS[name], a, b).graph
    program = Program(graph, native="off")
    others = np.repeat(a, 2, 0)[::2], np.repeat(b, 2)[::2]
    apart = unaligned(a), unaligned(b)
    for x, y in ((a, b), (np.asfortranarray(a), b), others, (a[::-1], b[::-1]), apart):
        expected = interpret(graph, x, y)
        for _ in range(2):
            assert program(x, y).tobytes() == expected.tobytes()
