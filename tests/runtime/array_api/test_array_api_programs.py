"""Random programs: whatever is asked for when, the bits are those of computing op by op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphir import Graph
from graphir.runtime import array_api as xp
from graphir.runtime import interpret
from graphir.runtime.array_api import forcing
from graphir.runtime.array_api.forcing import pending
from tests.benchmarks import array_api as benchmark
from tests.support.tables import every

Step = tuple[int, int, int]

OPS: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y,
    lambda x, y: x * 0.5 - y,
    lambda x, y: xp.where(x > y, x, 1.0),
    lambda x, y: xp.sin(x) / (xp.abs(y) + 1),
    lambda x, y: x - xp.mean(x, axis=0),
    lambda x, y: xp.cumulative_sum(x, axis=1)[:, ::-1] + y,
    lambda x, y: xp.matmul(x, xp.permute_dims(y, (1, 0))),
    lambda x, y: xp.sort(x, axis=-1),
    lambda x, y: xp.concat([x[1:, :], y[:1, :]]),
    lambda x, y: xp.astype(xp.astype(xp.clip(x, -100, 100), xp.int8), xp.float32),
    lambda x, y: xp.astype(xp.round(y), xp.float32) % 7,
    lambda x, y: xp.tril(x) + xp.max(y),
    lambda x, y: xp.take(x, xp.argsort(y[0, :]), axis=0),
    lambda x, y: xp.reshape(xp.roll(x, 2), (3, 3)).T,
    lambda x, y: -xp.sqrt(x * x + y * y),
    lambda x, y: xp.astype(xp.astype(x, xp.float64) * 3 + 1, xp.float32),
]
STEPS = st.tuples(st.integers(0, len(OPS) - 1), st.integers(0, 99), st.integers(0, 99))
FILL = np.array([[1.5, -2.0, 0.0], [np.nan, 3e38, -0.0], [1e-40, -7.25, 100.5]], np.float32)


def run(steps: Sequence[Step], asked: Callable[[int, Any], object]) -> list[Any]:
    """All arrays of a program; `asked` is called with each as it is made."""
    arrays = [xp.asarray(FILL), xp.asarray(FILL[::-1] + np.float32(1))]
    for place, (op, i, j) in enumerate(steps):
        arrays.append(OPS[op](arrays[i % len(arrays)], arrays[j % len(arrays)]))
        asked(place, arrays[-1])
    return arrays


def bits(x: Any) -> tuple[str, bytes]:
    found = np.where(np.isnan(np.asarray(x)), np.float32(np.nan), np.asarray(x))
    return str(found.dtype), found.tobytes()


@pytest.mark.filterwarnings("ignore")
@given(st.lists(STEPS, min_size=1, max_size=10), st.sets(st.integers(0, 9)), st.booleans())
def test_the_order_of_asking_changes_no_bit(steps: list[Step], some: set[int], backwards: bool):
    at_once = [bits(x) for x in run(steps, lambda _, x: np.asarray(x))]
    for _ in range(4):  # the last ones as Programs
        arrays = run(steps, lambda place, x: np.asarray(x) if place in some else None)
        order = list(enumerate(arrays))
        for place, x in reversed(order) if backwards else order:
            assert bits(x) == at_once[place]


@given(st.lists(STEPS, min_size=1, max_size=8))
def test_a_piece_is_what_interpret_says_of_its_graph(steps: list[Step]):
    last = run(steps, lambda *_: None)[-1]
    todo = pending(last.symbol)
    piece = forcing.PendingPiece(todo, [last.symbol])
    graph: Graph = piece.program().graph
    graph.verify()
    found = interpret(graph, *[forcing.value_of(one) for one in piece.inputs])
    assert bits(found) == bits(last)


@every("program", benchmark.PROGRAMS)
def test_the_programs_of_the_benchmark_give_what_numpy_gives(program: Any):
    for size in (1, 100):
        results: list[Any] = []
        for namespace in benchmark.namespaces().values():
            made, count = program(namespace, *benchmark.operands(namespace, size))
            results.append(np.asarray(made))
            assert count >= 40
        for other in results[1:]:
            np.testing.assert_allclose(results[0], other, rtol=1e-5, atol=1e-6)


def test_the_benchmark_measures():
    assert benchmark.recorded(benchmark.operators) > 0
    assert set(benchmark.computed(benchmark.numbers, 1)) >= {"graphir", "NumPy"}
