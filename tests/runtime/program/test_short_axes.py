"""Reductions over short last axes, taken apart: `interpret`'s bits, without the whole array."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from graphir import DType, Graph, Symbol, ops
from graphir.runtime import Program, interpret
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.rewrites import reductions
from tests.support.evaluator import same
from tests.support.native_runs import TIERS
from tests.support.tables import every, quick

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


@pytest.mark.parametrize("native", TIERS)
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


ORDER_FREE = ("max", "min", "argmax", "argmin")


class Pairs:
    """Reductions of short rows of points against points, whose elements may be NaN or zeros."""

    def __init__(self, dtype: str, size: int, seed: int) -> None:
        draw = np.random.default_rng(seed)
        self.graph = g = Graph("pairs", rules="jax")
        shapes = (7, 1, size), (1, 11, size), (size,)
        x, y, z = (g.input(dtype, shape) for shape in shapes)
        values = draw.choice([-3.0, -1.0, -0.0, 0.0, 0.0, 2.0, 5.0], size=100 * size)
        if x.dtype.is_float:
            values[draw.random(len(values)) < 0.05] = draw.choice([np.nan, np.inf, -np.inf])
            values *= draw.choice([1.0, np.sqrt(2.0)], size=len(values))
        else:
            values = np.abs(values)
        parts = zip(shapes, draw.integers(0, 9, 3), strict=True)
        self.inputs = [
            values[at : at + np.prod(shape)].reshape(shape).astype(x.dtype.storage)
            for shape, at in parts
        ]
        if dtype == "bool":
            pairs = ops.logical_xor(x, y), ops.logical_and(ops.logical_or(x, y), z)
            names: tuple[str, ...] = ("any", "all")
        else:
            pairs = x * y, ops.maximum(x + y, z)
            names = ("sum", *ORDER_FREE, *["mean"] * x.dtype.is_float)
        outputs = [getattr(ops, name)(v, axis=2) for v in pairs for name in names]
        if x.dtype is not DType.bool:
            outputs += [ops.any(pairs[0] > y, axis=2), ops.all(pairs[1] < x, axis=2)]
        g.output(*outputs)


SIZES = (2, 3, 7, 8, 9, 15, 16, 17, 20, 31, 32, 33)


@pytest.mark.parametrize(
    "dtype", quick(["float64", "float32", "float16", "uint8", "int32", "bool"], 2)
)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seeds", [(0,), pytest.param((1, 2), marks=pytest.mark.exhaustive)])
def test_reductions_of_short_rows_have_the_bits_of_the_interpreter(
    seeds: tuple[int, ...], dtype: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(COST, "SPLIT_ROWS", 1)
    monkeypatch.setattr(COST, "SPLIT_INSTRUCTIONS", 400)
    for seed in seeds:
        pairs = Pairs(dtype, size, seed)
        meant = interpret(pairs.graph, *pairs.inputs)
        for native in TIERS:
            program = Program(pairs.graph, native=native, threads=1)
            for each, wanted in zip(program(*pairs.inputs), meant, strict=True):
                assert same(each, wanted)
        is_split = any(symbol.op is ops.slice for symbol in program.lowered.symbols)
        assert is_split == (size in reductions.ROWS) or dtype == "float16"


def test_few_or_costly_elements_stay_in_rows() -> None:
    def is_split(rows: int, size: int, *elementwise: Any) -> bool:
        g = Graph("pairs")
        x, y = g.input("float64", (rows, 1, size)), g.input("float64", (1, rows, size))
        value = x - y
        for op in elementwise:
            value = op(value)
        g.output(ops.sum(value, axis=2))
        return any(symbol.op is ops.slice for symbol in Program(g).lowered.symbols)

    assert is_split(40, 16, ops.abs)
    assert not is_split(20, 16, ops.abs)
    assert not is_split(40, 33, ops.abs)
    assert not is_split(40, 16, ops.exp)
    assert not is_split(40, 16, *[ops.abs, ops.negative] * 15)
    assert is_split(4, 8, ops.exp)


def test_rows_of_more_than_eight_elements_in_memory_stay() -> None:
    for size in (8, 9):
        g = Graph("memory")
        x = g.input("float64", (2000, size))
        g.output(ops.sum(x * x, axis=1))
        is_split = any(symbol.op is ops.slice for symbol in Program(g).lowered.symbols)
        assert is_split == (size == 8)


@every("dtype", ["float64", "float32", "uint8", "bool"])
@every("size", [1, 2, 3, 4, 5])
@every("shape", [(9, 70), (3, 4, 5), (1, 1)])
def test_arrays_in_memory_that_only_short_rows_read(
    shape: tuple[int, ...], size: int, dtype: str
) -> None:
    g = Graph("image", rules="jax")
    x = g.input(dtype, (*shape, size))
    if dtype == "bool":
        g.output(ops.any(x, axis=-1), ops.all(x, axis=-1, keepdims=True))
    else:
        names = "sum", *ORDER_FREE
        g.output(*[getattr(ops, name)(x, axis=len(shape)) for name in names])
    values = np.random.default_rng(size).choice([0.0, -0.0, 1.0, 3.0, np.nan], x.shape)
    values = values if x.dtype.is_float else np.abs(np.nan_to_num(values))
    array = values.astype(x.dtype.storage)
    meant = interpret(g, array)
    for native in TIERS:
        program = Program(g, native=native)
        for operand in (array, np.asfortranarray(array)):
            assert all(map(same, program(operand), meant))
    is_split = any(symbol.op is ops.slice for symbol in program.lowered.symbols)
    assert is_split == (size in reductions.VERY_SHORT) or dtype == "uint8"  # a sum casts bytes


def test_an_array_that_is_read_whole_stays() -> None:
    g = Graph("softmax")
    x = g.input("float64", (40, 3))
    g.output(ops.exp(x - ops.max(x, axis=1, keepdims=True)))
    assert not any(symbol.op is ops.slice for symbol in Program(g).lowered.symbols)


def test_the_array_with_the_short_axis_never_exists() -> None:
    g = Graph("distances")
    a, b = g.input("float64", (40, 3), name="a"), g.input("float64", (50, 3), name="b")
    pairs = ops.unsqueeze(a, axis=1) - ops.unsqueeze(b, axis=0)
    g.output(ops.sum(pairs * pairs, axis=2))
    program = Program(g)
    sizes = [program.lowered.symbols[index].shape for index in program.schedule.materialized]
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
    for native in TIERS:
        assert same(Program(g, native=native)(*inputs), interpret(g, *inputs))
