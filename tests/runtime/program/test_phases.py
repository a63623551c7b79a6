"""Programs over rows: regions that run together on each block of rows have `interpret`'s bits."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from graphir import Graph, Symbol, ops
from graphir.runtime import Program, interpret
from graphir.runtime.native.drivers import row_phases as native_phases
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.phases import PhasesStep
from tests.support.evaluator import same
from tests.support.native_runs import TIERS

NATIVE = TIERS
UNARY = (ops.exp, ops.tanh, ops.negative, ops.abs, ops.square, ops.sqrt)
BINARY = (ops.add, ops.subtract, ops.multiply, ops.divide, ops.maximum)


@pytest.fixture(autouse=True)
def small_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few rows, for small arrays."""
    monkeypatch.setattr(COST, "CACHE", 1 << 11)
    monkeypatch.setattr(COST, "NATIVE_ROWS", 1 << 11)


def phase_steps(program: Program, *inputs: Any) -> list[PhasesStep]:
    program(*inputs)
    (plan,) = program.plans
    return [step for step in plan.fused if isinstance(step, PhasesStep)]


class Drawn:
    """A drawn program over rows: elementwise ops, reductions, and their broadcasts back."""

    def __init__(self, seed: int) -> None:
        draw = self.draw = random.Random(seed)
        self.random = np.random.default_rng(seed)
        lead = draw.choice([(37,), (5, 9), (2, 3, 7)])
        self.axes = draw.choice([1, 1, 1, 2])
        row = draw.choice([(8,), (33,), (130,), (300,)])
        self.shape = (*lead, *([3] if self.axes == 2 else []), *row)
        self.lead = len(lead)
        self.dtypes = draw.choice([("float32",), ("float64", "float32"), ("int32",), ("bfloat16",)])
        self.graph = Graph("drawn", rules="jax")
        self.inputs: list[np.ndarray] = []
        self.whole = [self._input(self.shape) for _ in range(draw.randint(1, 2))]
        self.kept = [self._input(self.shape[-1:])]
        self.flat: list[Symbol] = []
        if draw.random() < 0.3:
            self.kept.append(self._input((*self.shape[: self.lead], *[1] * self.axes)))
        for _ in range(draw.randint(4, 12)):
            self._step()
        outputs = [self.whole[-1], *self.kept[-1:], *self.flat[-1:]]
        if draw.random() < 0.3:
            outputs.append(draw.choice(self.whole))
        self.graph.output(*dict.fromkeys(outputs))

    def _input(self, shape: tuple[int, ...]) -> Symbol:
        dtype = self.draw.choice(self.dtypes)
        symbol = self.graph.input(dtype, shape)
        storage = symbol.dtype.storage
        if dtype == "int32":
            array = self.random.integers(-50, 50, shape, dtype=storage)
        else:
            array = self.random.normal(size=shape)
            array[self.random.random(shape) < 0.02] = -0.0
            if self.draw.random() < 0.2:
                array[self.random.random(shape) < 0.01] = np.nan
            array = array.astype(storage)
        if len(shape) > 1 and self.draw.random() < 0.3:
            array = np.asfortranarray(array)
        self.inputs.append(array)
        return symbol

    def _step(self) -> None:
        draw, kind = self.draw, self.draw.random()
        x = draw.choice(self.whole[-3:])
        axis = tuple(range(self.lead, len(self.shape)))
        if kind < 0.35:
            names = ["sum", "max", "min"] + ["mean"] * (not x.dtype.is_integer)
            reduce = getattr(ops, draw.choice(names))
            keepdims = draw.random() < 0.6
            result = reduce(x, axis=axis, keepdims=keepdims)
            if keepdims:
                self.kept.append(result)
                return
            self.flat.append(result)
            if draw.random() < 0.7:
                shape = (*self.shape[: self.lead], *[1] * self.axes)
                self.kept.append(ops.reshape(result, shape=shape))
        elif kind < 0.5 and self.flat:
            self.flat.append(self._compute(draw.choice(self.flat), draw.choice(self.flat)))
        elif kind < 0.6:
            y = draw.choice(self.kept[1:] or self.kept)
            self.kept.append(self._compute(y, y))
        elif kind < 0.65 and self.axes == 1 and x.shape[-1] < 200:
            self.whole.append(ops.sort(x, axis=len(self.shape) - 1))
        else:
            self.whole.append(self._compute(x, draw.choice([*self.kept, *self.whole])))

    def _compute(self, x: Symbol, y: Symbol) -> Symbol:
        if self.draw.random() < 0.25 and not x.dtype.is_integer:
            return self.draw.choice(UNARY)(x)
        op = self.draw.choice(BINARY[:3] if x.dtype.is_integer else BINARY)
        return op(x, y)


@pytest.mark.parametrize("native", NATIVE)
def test_drawn_programs_have_the_bits_of_the_interpreter(native: Any) -> None:
    fused = 0
    for seed in range(60):
        drawn = Drawn(seed)
        meant = interpret(drawn.graph, *drawn.inputs)
        program = Program(drawn.graph, native=native, threads=1 + seed % 2)
        fused += bool(phase_steps(program, *drawn.inputs))
        results = program(*drawn.inputs)
        both = [x if isinstance(x, tuple) else (x,) for x in (results, meant)]
        assert all(map(same, *both)), seed
    assert fused > 12


def test_a_softmax_is_one_step_without_whole_intermediates() -> None:
    g = Graph("softmax")
    x = g.input("float32", (64, 50))
    weights = ops.exp(x - ops.max(x, axis=1, keepdims=True))
    g.output(weights / ops.sum(weights, axis=1, keepdims=True))
    program, array = Program(g), np.random.default_rng(0).normal(size=(64, 50)).astype(np.float32)
    (step,) = phase_steps(program, array)
    assert len(step.members) == 3 and len(step.results) == 1


def test_a_mean_that_broadcasts_along_another_axis_is_no_phase() -> None:
    g = Graph("square")
    x = g.input("float32", (40, 40))
    g.output(x - ops.mean(x, axis=1))  # of the row with the number of the column
    program, array = Program(g), np.random.default_rng(0).normal(size=(40, 40)).astype(np.float32)
    assert not phase_steps(program, array)
    assert same(program(array), interpret(g, array))


def test_the_explanation_says_which_steps_run_together() -> None:
    g = Graph("centred")
    x = g.input("float32", (64, 50))
    g.output(x - ops.mean(x, axis=1, keepdims=True))
    text = Program(g, native="off").explain(np.ones((64, 50), np.float32))
    assert "steps 0, 1 run together on the same 64 rows" in text
    assert "1 of their 2 results stay in scratch memory" in text


def test_two_threads_have_the_bits_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(COST, "NATIVE_ROWS", 1 << 14)
    native_phases._driver.cache_clear()  # both threads compile the loop over phases
    g = Graph("norm")
    x = g.input("float32", (4096, 300))
    centred = x - ops.mean(x, axis=1, keepdims=True)
    g.output(centred / ops.sqrt(ops.mean(centred * centred, axis=1, keepdims=True)))
    array = np.random.default_rng(0).normal(size=(4096, 300)).astype(np.float32)
    program = Program(g, threads=2, native="now")
    assert same(program(array), interpret(g, array)) and same(program(array), program(array))


def test_the_work_of_all_phases_together_decides_on_threads() -> None:
    g = Graph("softmax")
    x = g.input("float32", (6400, 100))
    weights = ops.exp(x - ops.max(x, axis=1, keepdims=True))
    g.output(weights / ops.sum(weights, axis=1, keepdims=True))
    array = np.random.default_rng(0).normal(size=(6400, 100)).astype(np.float32)
    (step,) = phase_steps(Program(g, threads=2, native="off"), array)
    assert max(member.threads for member in step.members) == 1 and step.threads == 2
    (alone,) = phase_steps(Program(g, threads=1, native="off"), array)
    assert alone.threads == 1


def test_phases_without_code_share_the_time_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    g = Graph("norm")
    x = g.input("float32", (6400, 100))
    centred = x - ops.mean(x, axis=1, keepdims=True)
    g.output(centred / ops.sqrt(ops.mean(centred * centred, axis=1, keepdims=True) + 1e-5))
    array = np.ones((6400, 100), np.float32)
    program = Program(g, threads=1, native="off")
    (step,) = phase_steps(program, array)
    spent: list[float] = []
    tier = SimpleNamespace(pays=False, placed=lambda *_: None, charge=spent.append)
    for member in step.members:
        monkeypatch.setattr(member, "native", tier)
    program(array)
    assert len(spent) == len(step.members) > 2 and len({*spent}) == 1 and spent[0] > 0
