"""Regions that are reduced over outer axes in registers: `interpret`'s bits, for any layout."""

from __future__ import annotations

import random
from typing import Any
from unittest import mock

import numpy as np
import pytest

from graphir import GraphirError
from graphir.numpy_api.trace import trace
from graphir.runtime import Program, interpret
from graphir.runtime.native import probe
from graphir.runtime.native.column_reductions import column_reductions
from tests.support.evaluator import same
from tests.support.native_runs import needs_llvmlite
from tests.support.scaled_thresholds import scaled
from tests.support.tables import every

pytestmark = [needs_llvmlite, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

SHAPES = [(300, 50), (70, 33), (5, 40, 17), (3, 9, 64), (1000, 2), (2, 130, 100), (64, 7, 3, 5)]
VALUES = [
    *("x * y", "(x - y) * (x - y) + 1", "np.abs(x) + y", "np.exp(-np.abs(x)) * y", "x > y"),
    *("np.where(x > y, x, y * 2)", "np.tanh(x) * y", "x / (np.abs(y) + 1)"),
]
SMALL = {"CACHE": 1 << 10, "BLOCK_LEAST": 64, "BLOCK_MOST": 512, "ONE_BLOCK": 100}
SMALL |= {"SECOND_THREAD": 500, "NATIVE_SECOND_THREAD": 500, "COLUMN_ELEMENTS": 64}


def drawn(seed: int) -> tuple[Any, list[np.ndarray]]:
    """A function that reduces values over outer axes, and its arrays."""
    pick, draw = random.Random(seed), np.random.default_rng(seed)
    shape = pick.choice(SHAPES)
    dtype = pick.choice(["f4", "f8", "i4", "i8", "u1", "f2"])

    def array(shape: tuple[int, ...]) -> np.ndarray:
        values = draw.normal(size=shape) * pick.choice([1, 3, 50])
        if dtype[0] == "f":
            values[draw.random(shape) < 0.01] = pick.choice([np.nan, -0.0])
        return values.astype(dtype)

    x = array(shape)
    if pick.random() < 0.3:
        x = array((*shape[:-1], 2 * shape[-1]))[..., ::2]
    elif pick.random() < 0.3:
        x = array((2 * shape[0], *shape[1:]))[::-2]
    y = array(pick.choice([shape[-1:], (*shape[:-1], 1), shape, (1,) * len(shape), shape[1:]]))
    axis = pick.choice([0, tuple(range(len(shape) - 1)), len(shape) - 2])
    first = pick.choice(["sum", "mean", "max", "min", "prod", "any", "all"])
    second = pick.choice(["v", "v.sum(axis=axis)", "v.max(axis=axis)"])
    text = f"lambda x, y: (lambda v: (v.{first}(axis=axis), {second}))({pick.choice(VALUES)})"
    return eval(text, {"np": np, "axis": axis}), [x, y]


@every("seed", range(60))
def test_drawn_reductions(seed: int) -> None:
    function, arrays = drawn(seed)
    try:
        graph = trace(function, *arrays, rules="numpy").graph
    except GraphirError:
        return
    expected = interpret(graph, *arrays)
    for threads in (1, 2):
        with scaled(1, **SMALL):
            results = Program(graph, native="now", threads=threads)(*arrays)
        assert all(map(same, results, expected))


def test_the_values_have_no_memory() -> None:
    graph = trace(lambda x: np.square(x - x[0]).sum(axis=0), np.ones((70, 90)), rules="numpy").graph
    program = "graphir.runtime.native.kernels.ColumnWriter"
    with scaled(1, **SMALL), mock.patch(program, side_effect=AssertionError) as writer:
        Program(graph, native="now")(np.ones((70, 90)))
    assert writer.called


@pytest.mark.parametrize("values", ["x", "x * 2", "np.tanh(x)"])
def test_where_llvm_fails_numpy_reduces(values: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_start", lambda: (None, "no LLVM"))
    column_reductions.cache_clear()
    x = np.linspace(-1, 1, 100_000, dtype=np.float32).reshape(1000, 100)
    graph = trace(eval(f"lambda x: ({values}).sum(axis=0)", {"np": np}), x, rules="numpy").graph
    program = Program(graph, native="now")
    for _ in range(3):
        assert same(program(x), interpret(graph, x))
    column_reductions.cache_clear()
