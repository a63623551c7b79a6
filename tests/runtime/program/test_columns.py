"""Reductions over outer axes, block by block and in machine code, have `interpret`'s bits."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from graphir import Graph, Symbol, ops
from graphir.numpy_api.trace import trace
from graphir.runtime import Program, interpret
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.rewrites.fusion import ColumnsStep
from tests.support.evaluator import same
from tests.support.native_runs import TIERS, needs_llvmlite

NATIVE = TIERS
SPACES = (
    ((2000, 50), (0,)),
    ((30, 4, 40, 5), (0, 1)),
    ((300, 4, 9), (0, 1)),
    ((7, 90, 33), (1,)),
    ((3, 5, 60, 2, 3), (1, 2)),
    ((1000, 3), (0,)),
    ((70, 301), (0,)),
    ((200, 1, 70), (0,)),
    ((4, 1, 700), (1,)),
)
DTYPES = ("float32", "float64", "int32", "uint8", "int64")


@pytest.fixture(autouse=True)
def small_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads, blocks and machine code for small arrays."""
    monkeypatch.setattr(COST, "CACHE", 1 << 8)
    for name in ("SECOND_THREAD", "NATIVE_SECOND_THREAD"):
        monkeypatch.setattr(COST, name, 0)
    monkeypatch.setattr(COST, "COLUMN_ELEMENTS", 0)


def column_steps(program: Program) -> list[ColumnsStep]:
    (plan,) = program.plans
    return [step for step in plan.fused if isinstance(step, ColumnsStep)]


def drawn_array(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return numbers of both signs; of floats, some lanes of -0.0 alone, and a few NaN."""
    array = random.normal(size=shape) * 3
    if dtype.startswith("float"):
        array[..., :2] = -0.0
        array[random.random(shape) < 0.3] = -0.0
        array[random.random(shape) < 0.001] = np.nan
    else:
        array = array % 100
    array = array.astype(dtype)
    layout = random.random()
    if layout < 0.2:
        return np.asfortranarray(array)
    if layout < 0.4 and len(shape) > 1:  # rows at other distances than in C order
        room = np.zeros((shape[0], shape[1] + 1, *shape[2:]), dtype)
        room[:, : shape[1]] = array
        return room[:, : shape[1]]
    return array


def drawn_graph(seed: int) -> tuple[Graph, list[np.ndarray]]:
    """Return a graph of reductions of elementwise values over the same axes, and its inputs."""
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    shape, axes = SPACES[seed % len(SPACES)]
    dtype = draw.choice(DTYPES)
    graph = Graph("drawn", rules="jax")
    x, y = graph.input(dtype, shape), graph.input(dtype, shape[-1:])
    centred = x - y
    values: list[Symbol] = [x, centred, centred * centred]
    if dtype.startswith("float"):
        values += [ops.exp(centred), ops.tanh(x)]
    names = ["sum", "prod", "max", "min", *["mean"] * dtype.startswith("float")]
    reductions = [
        getattr(ops, draw.choice(names))(
            draw.choice(values), axis=axes, keepdims=draw.random() < 0.5
        )
        for _ in range(draw.randint(1, 4))
    ]
    reductions.append(ops.any(centred > x, axis=axes))
    outputs = [*reductions, *([values[2]] if draw.random() < 0.3 else [])]
    if draw.random() < 0.3:
        axis = axes[0]
        total = ops.sum(values[2], axis=axes, keepdims=True)
        outputs.append(values[1] * ops.broadcast_to(total, shape=shape) if axis >= 0 else total)
    graph.output(*dict.fromkeys(outputs))
    return graph, [drawn_array(numbers, shape, dtype), drawn_array(numbers, shape[-1:], dtype)]


@pytest.mark.parametrize("native", NATIVE)
@pytest.mark.parametrize("threads", [1, 2])
def test_drawn_reductions_have_the_bits_of_the_interpreter(native: Any, threads: int) -> None:
    fused = 0
    for seed in range(72):
        graph, inputs = drawn_graph(seed)
        meant = interpret(graph, *inputs)
        program = Program(graph, native=native, threads=threads, block=[None, 1024][seed // 9 % 2])
        results = program(*inputs)
        fused += bool(column_steps(program))
        assert all(map(same, results, meant)), seed
    assert (fused > 20) == (native != "off")


@pytest.mark.parametrize("dtype", ["int8", "uint16", "bool", "float32"])
def test_reductions_of_inputs_alone(dtype: str) -> None:
    shape, axes = (90, 77), (0,)
    graph = Graph("inputs", rules="jax")
    x = graph.input(dtype, shape)
    names = ("any", "all") if dtype == "bool" else ("sum", "max", "min", "prod")
    graph.output(*[getattr(ops, name)(x, axis=axes) for name in names])
    array = drawn_array(np.random.default_rng(0), shape, dtype)
    for threads in (1, 2):
        program = Program(graph, native="now", threads=threads)
        assert all(map(same, program(array), interpret(graph, array)))


def test_a_single_lane_is_no_column() -> None:
    g = Graph("lane")
    x = g.input("float32", (5000, 1))
    g.output(ops.sum(x * x, axis=0))
    array = np.random.default_rng(0).normal(size=(5000, 1)).astype(np.float32)
    program = Program(g, native="now")
    assert same(program(array), interpret(g, array)) and not column_steps(program)


@needs_llvmlite
def test_the_explanation_says_what_never_exists() -> None:
    g = Graph("moments")
    x = g.input("float32", (2000, 50))
    g.output(ops.sum(x * x, axis=0), ops.max(x, axis=0))
    text = Program(g, native="now", block=1024).explain(np.ones((2000, 50), np.float32))
    assert "steps 0, 1, 2 run together on blocks of" in text
    assert "1 of 1 results of the region stay in scratch memory" in text


def test_a_filled_array_beside_a_region_is_no_reduction_of_it() -> None:
    g = Graph("filled", rules="numpy")
    x = g.input("float64", (200, 700))
    with g:
        g.output(ops.sum(x * 2.0, axis=0), ops.full("float64", 3, (4,)))
    array = np.random.default_rng(0).normal(size=(200, 700))
    results = Program(g, native="off")(array)
    assert all(map(same, results, interpret(g, array)))


@pytest.mark.parametrize("native", TIERS)
def test_reductions_of_windows_read_no_memory_after_the_array(native: Any) -> None:
    def windows(x: Any) -> Any:
        view = np.lib.stride_tricks.sliding_window_view(x, 300)
        return view.max(0), view.sum(0), np.trace(np.broadcast_to(x[:60], (90, 90, 60)))

    for dtype in (np.int64, np.float64):
        x = np.arange(1000).astype(dtype)
        program = Program(trace(windows, x, rules="numpy").graph, native=native, threads=2)
        for _ in range(2):
            assert all(map(same, program(x), windows(x)))
