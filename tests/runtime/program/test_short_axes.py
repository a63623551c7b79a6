"""Reductions over short last axes, taken apart: `interpret`'s bits, without the whole array."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from graphir import Graph, Symbol, ops
from runtime import Program, interpret
from tests.support.evaluator import same

BINARY = (ops.add, ops.subtract, ops.multiply, ops.divide)


class Drawn:
    """A drawn program that broadcasts points against points and adds over some axis."""

    def __init__(self, seed: int) -> None:
        draw = self.draw = random.Random(seed)
        self.random = np.random.default_rng(seed)
        self.count = draw.randint(2, 8)
        self.outer = draw.choice([(19,), (6, 11), (1, 9), (3, 4, 5)])
        self.dtype = draw.choice(["float64", "float32", "int16", "bfloat16", "uint64"])
        self.graph = Graph("drawn", rules="jax")
        self.inputs: list[np.ndarray] = []
        whole = (*self.outer, self.count)
        shapes = [whole, (self.count,), (1,) * len(self.outer) + (self.count,)]
        shapes += [(*self.outer, 1), (*self.outer[:-1], 1, self.count), ()]
        values = [self._input(whole)] + [self._input(s) for s in draw.choices(shapes, k=3)]
        for _ in range(draw.randint(2, 7)):
            values.append(self._compute(draw.choice(values), draw.choice(values)))
        values = [x for x in values[4:] if x.rank == len(whole)] or [values[0] + values[0]]
        results = [self._sum(draw.choice(values)) for _ in range(draw.randint(1, 3))]
        if draw.random() < 0.2:
            results.append(values[-1])
        if draw.random() < 0.5 and results[0].rank:
            results.append(results[0] + results[0])
        self.graph.output(*dict.fromkeys(results))

    def _input(self, shape: tuple[int, ...]) -> Symbol:
        symbol = self.graph.input(self.dtype, shape)
        if symbol.dtype.is_integer:
            array = self.random.integers(0, 99, shape).astype(symbol.dtype.storage)
        else:
            array = np.asarray(self.random.normal(size=shape))
            array = np.where(self.random.random(shape) < 0.3, -0.0, array)
            array = array.astype(symbol.dtype.storage)
        if len(shape) > 1 and self.draw.random() < 0.3:
            array = np.asfortranarray(array)
        self.inputs.append(array)
        return symbol

    def _compute(self, x: Symbol, y: Symbol) -> Symbol:
        if self.draw.random() < 0.2:
            return x**2 if self.draw.random() < 0.5 else -x
        return self.draw.choice(BINARY[:3] if x.dtype.is_integer else BINARY)(x, y)

    def _sum(self, x: Symbol) -> Symbol:
        op = ops.mean if not x.dtype.is_integer and self.draw.random() < 0.3 else ops.sum
        axis = x.rank - 1 if self.draw.random() < 0.6 else self.draw.randrange(x.rank)
        return op(x, axis=axis, keepdims=self.draw.random() < 0.3)


@pytest.mark.parametrize("native", ["off", "now"])
def test_drawn_programs_have_the_bits_of_the_interpreter(native: Any) -> None:
    apart = 0
    for seed in range(80):
        drawn = Drawn(seed)
        meant = interpret(drawn.graph, *drawn.inputs)
        program = Program(drawn.graph, native=native, threads=1)
        apart += any(symbol.op is ops.slice for symbol in program.lowered.symbols)
        results = program(*drawn.inputs)
        both = [x if isinstance(x, tuple) else (x,) for x in (results, meant)]
        assert all(map(same, *both)), seed
    assert apart > 25


def test_the_array_with_the_short_axis_never_exists() -> None:
    g = Graph("distances")
    a, b = g.input("float64", (40, 3), name="a"), g.input("float64", (50, 3), name="b")
    pairs = ops.unsqueeze(a, axis=1) - ops.unsqueeze(b, axis=0)
    g.output(ops.sum(pairs * pairs, axis=2))
    program = Program(g)
    sizes = [program.lowered.symbols[index].shape for index in program.materialized]
    assert (40, 50) in sizes and (40, 50, 3) not in sizes


def test_a_sum_whose_operand_is_needed_whole_stays() -> None:
    g = Graph("both")
    a = g.input("float64", (40, 3), name="a")
    doubled = a + a
    g.output(doubled, ops.sum(doubled, axis=1))
    assert not any(symbol.op is ops.slice for symbol in Program(g).lowered.symbols)


def test_squares_are_products() -> None:
    g = Graph("squares")
    x = g.input("float32", (9,), name="x")
    g.output(x**2 + x**3)
    names = [symbol.op.name for symbol in Program(g).lowered.symbols]
    assert names.count("multiply") == 1 and names.count("pow") == 1


def test_the_further_operands_of_rows_lie_in_memory() -> None:
    g = Graph("places", rules="numpy")
    x, chosen = g.input("float32", (9,), name="x"), g.input("bool", (9,), name="chosen")
    places = ops.searchsorted(x * 2.0, chosen.cast("float32"))
    g.output(places + places)
    inputs = np.arange(9).astype(np.float32), np.arange(9) % 2 == 0
    for native in ("off", "now"):
        assert same(Program(g, native=native)(*inputs), interpret(g, *inputs))
