"""Searches in sorted vectors in machine code: NumPy's places for all dtypes, sizes and values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from graphir import Graph, ops
from graphir.runtime import Program, interpret
from graphir.runtime.native.array_ops import searches as native
from tests.support.native_runs import needs_llvmlite
from tests.support.tables import every

pytestmark = needs_llvmlite

Array = NDArray[Any]
DTYPES = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]
DTYPES += [np.dtype(np.float32), np.dtype(np.float64)]


def numbers(random: np.random.Generator, dtype: np.dtype[Any], shape: Any) -> Array:
    """Few distinct values, or all; of floats also zeros of both signs, infinities and NaN."""
    if dtype.kind == "f":
        special = [0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, 5e-324, 1e-45, np.nan]
        few = special if random.random() < 0.5 else special[:-1]
        values = random.normal(size=shape) if random.random() < 0.2 else random.choice(few, shape)
        return np.asarray(values, dtype)
    limits = np.iinfo(dtype)
    low, high = (0, 9) if random.random() < 0.5 else (limits.min, limits.max)
    return random.integers(low, high, shape, dtype, endpoint=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_places_are_numpys(dtype: np.dtype[Any], seed: int, data: st.DataObject) -> None:
    random = np.random.default_rng(seed)
    line = numbers(random, dtype, data.draw(st.integers(0, 70)))
    order = data.draw(st.sampled_from(["sorted", "sorted", "random", "without NaN"]))
    if order == "without NaN":
        line = line[line == line]
    if order != "random":
        line = np.sort(line)
    shape = data.draw(st.sampled_from([(33,), (5, 31), (2, 3, 17), (100,), (7,), ()]))
    values, side = numbers(random, dtype, shape), data.draw(st.sampled_from(["left", "right"]))
    tier = native.Searches(now=True)

    def search(line: Array, values: Array) -> Array:
        return np.asarray(np.searchsorted(line, values, side=side), dtype=np.int64)

    result = tier.search(search, side, data.draw(st.integers(1, 2)), line, values)
    assert not tier.why
    assert result.dtype == np.int64 and np.array_equal(result, search(line, values))
    assert result.shape == values.shape
    assert bool(tier.kernels) is (values.size >= max(32, line.size) and line.size > 0)


@every("side", ["left", "right"])
@every("dtype", ["float32", "float64", "int32", "uint8", "bfloat16"])
def test_programs_on_threads_agree_with_the_interpreter(dtype: str, side: str) -> None:
    graph = Graph("search")
    line, values = graph.input(dtype, ("n",)), graph.input(dtype, ("m", 3))
    graph.output(ops.searchsorted(line, values, side=side) + 1)
    program = Program(graph, threads=2, native="now")
    random = np.random.default_rng(0)
    storage = graph.inputs[0].dtype.storage
    for size, count in ((1, 50), (1000, 100_001), (4097, 70_000)):
        x = np.sort(random.integers(0, 99, size)).astype(storage)
        y = random.integers(-3, 103, (count, 3)).astype(storage)
        assert np.array_equal(program(x, y), interpret(graph, x, y))
        assert np.array_equal(program(x, y[::-1]), interpret(graph, x, y[::-1]))
    assert np.array_equal(program(x[::-1].copy(), y), interpret(graph, x[::-1].copy(), y))
    assert "search in machine code" in program.explain(x, y)
