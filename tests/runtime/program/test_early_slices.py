"""Slices of elementwise values, as elementwise ops on slices: `interpret`'s bits, without values
that only slices read."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from graphir import Graph, Symbol, ops
from graphir.numpy_api.trace import trace
from graphir.runtime import Program, interpret
from tests.support.evaluator import same
from tests.support.native_runs import TIERS, needs_llvmlite
from tests.support.tables import every, sampled

SIZE = 48


def image(dtype: str = "uint8", *shape: int) -> Any:
    shape = shape or (SIZE, 40, 3)
    return (np.random.default_rng(3).random(shape) * 255).astype(dtype)


def arrays(program: Program) -> set[Any]:
    """The shapes of values in memory that regions compute."""
    return {
        program.lowered.symbols[index].shape
        for index in program.schedule.materialized
        if program.lowered.symbols[index].op.kind in ("elementwise", "cast")
    }


def check(function: Any, *inputs: Any, native: Any = "now") -> Program:
    """The program of a NumPy function has the bits of `interpret`."""
    graph = trace(function, *inputs, rules="numpy").graph
    program = Program(graph, native=native, threads=1)
    for _ in range(3):
        outs, meant = program(*inputs), interpret(graph, *inputs)
        both = [each if isinstance(each, tuple) else (each,) for each in (outs, meant)]
        assert all(map(same, *both))
    return program


def grey(img: Any) -> Any:
    f = img.astype(np.float32)
    return (0.299 * f[..., 0] + 0.587 * f[..., 1] + 0.114 * f[..., 2]).astype(np.uint8)


@every("native", TIERS)
def test_channels_are_cast_where_they_are_read(native: Any) -> None:
    assert arrays(check(grey, image(), native=native)) == {(SIZE, 40)}


def test_operands_that_are_broadcast() -> None:
    def scaled(x: Any, mean: Any, row: Any, whole: Any) -> Any:
        f = (np.where(row > 0, x, 1) - mean) / 3 + np.full((SIZE, 40, 3), 2.0, np.float32)
        f = f * np.broadcast_to(mean, f.shape) + whole
        return f[..., 0] * f[:, :, 2] - f[..., 1]

    x = image("float32")
    program = check(scaled, x, x[0, 0], x[0, :, :1] - 100, np.float32(3))
    assert (SIZE, 40, 3) not in arrays(program)


def test_slices_of_slices_and_rows() -> None:
    def halves(x: Any) -> Any:
        y = x * 2 + 1
        top, bottom = y[: SIZE // 2], y[SIZE // 2 :]
        return top[::2] * bottom[1::2], bottom[::2][:, None, 1:][:, 0].sum(-1)

    assert (SIZE, 64) not in arrays(check(halves, image("float32", SIZE, 64)))


def test_the_interior_of_differences() -> None:
    def gradient(f: Any) -> Any:
        dx, dy = f[:, 1:] - f[:, :-1], f[1:] - f[:-1]
        return np.sqrt(dx[:-1] ** 2 + dy[:, :-1] ** 2)

    assert arrays(check(gradient, image("float64", SIZE, 60))) == {(SIZE - 1, 59)}


def test_slices_that_overlap_stay() -> None:
    def stencil(u: Any) -> Any:
        y = np.sqrt(u)
        return y[2:] + y[1:-1] + y[:-2]

    assert (SIZE, 60) in arrays(check(stencil, image("float32", SIZE, 60)))


@needs_llvmlite
def test_overlapping_slices_of_wider_casts_move_in_machine_code() -> None:
    def blur(u: Any) -> Any:
        y = u.astype(np.float32)
        return y[2:] + y[1:-1] + y[:-2]

    assert arrays(check(blur, image("uint8", SIZE, 60))) == {(SIZE - 2, 60)}
    for dtype, native in (("uint8", "off"), ("float64", "now")):
        assert (SIZE, 60) in arrays(check(blur, image(dtype, SIZE, 60), native=native))


def test_values_that_other_ops_read_stay() -> None:
    def outputs(x: Any) -> Any:
        y = x * 2
        return y, y[..., 0] + y[..., 1]

    def sums(x: Any) -> Any:
        y = x * 2
        return y.sum(0), y[..., 0] + y[..., 1]

    def views(x: Any) -> Any:
        y = x * 2
        return y[..., 0], y[..., 1] + 1

    def reshapes(x: Any) -> Any:
        y = x * 2
        return y[..., :1].reshape(-1) + 1

    def elements(x: Any) -> Any:
        y = x * 2
        return y[0, 0, 0] + y[1, 1, 1]

    for function in (outputs, sums, views, reshapes, elements):
        assert (SIZE, 40, 3) in arrays(check(function, image("float32"))), function


def test_an_operand_that_is_updated_after_the_value() -> None:
    def update(x: Any, y: Any) -> Any:
        z = x + y
        w = z * 2
        z[:, 1] = 7
        return w[:, ::2] - w[:, 1::2], z

    x = image("float32", SIZE, 64)
    check(update, x, x[::-1].copy())


def test_a_power_refuses_exponents_that_no_slice_reads() -> None:
    g = Graph("powers", rules="numpy")
    x, y = g.input("int64", (SIZE, 64), name="x"), g.input("int64", (SIZE, 64), name="y")
    power = x**y
    g.output(power[:, :32] * power[:, 32:63][:, :1])
    inputs = image("int64", SIZE, 64), np.full((SIZE, 64), 2)
    inputs[1][0, 63] = -1
    for native in TIERS:
        with pytest.raises(Exception, match="is a fraction"):
            Program(g, native=native)(*inputs)


def test_locations() -> None:
    graph = trace(grey, image(), rules="numpy").graph
    lines = {symbol.location.line for symbol in graph.symbols if symbol.op is ops.cast}
    symbols = Program(graph).lowered.symbols
    assert {symbol.location.line for symbol in symbols if symbol.op is ops.cast} == lines
    assert all(symbol.location.function == "grey" for symbol in symbols if symbol.op is ops.slice)


class Drawn:
    """A drawn program of elementwise values and slices of them."""

    def __init__(self, seed: int) -> None:
        draw = self.draw = random.Random(seed)
        self.graph = Graph("drawn", rules="numpy")
        self.inputs: list[Any] = []
        self.shape = draw.choice([(96, 36), (24, 48, 3), (3, 40, 36), (4096,)])
        shapes = [self.shape, self.shape, self.shape[-1:], (*self.shape[:-1], 1), ()]
        values = [self._input(shape) for shape in shapes]
        for _ in range(draw.randint(1, 6)):
            values.append(self._compute(draw.choice(values), draw.choice(values)))
        values = [x for x in values if x.shape == self.shape]
        results: list[Symbol] = []
        for _ in range(draw.randint(1, 3)):
            parts = self._parts(values[-1] if draw.random() < 0.8 else draw.choice(values))
            total = parts[0]
            for part in parts[1:]:
                total = self._compute(total, part)
            total = self._compute(total, parts[0])
            if draw.random() < 0.3:
                total = ops.sum(total, axis=draw.randrange(total.rank))
            results.append(total)
            if draw.random() < 0.3 and total.rank > 1:
                results.append(self._compute(*[total[:, k::2][:, :16] for k in (0, 1)]))
        self.graph.output(*dict.fromkeys(results))

    def _input(self, shape: tuple[int, ...]) -> Symbol:
        dtype = self.draw.choice(["float64", "float32", "int16", "uint8", "float16"])
        array = np.random.default_rng(len(self.inputs)).random(shape) * 100
        array = np.asarray(array).astype(dtype)
        if self.draw.random() < 0.3 and len(shape) > 1:
            array = np.asfortranarray(array)
        self.inputs.append(array)
        return self.graph.input(dtype, shape)

    def _compute(self, x: Symbol, y: Symbol) -> Symbol:
        if self.draw.random() < 0.3:
            return x.cast(self.draw.choice(["float32", "float64", "int32"]))
        return self.draw.choice((ops.add, ops.subtract, ops.multiply, ops.maximum))(x, y)

    def _parts(self, x: Symbol) -> list[Symbol]:
        axis, count = self.draw.randrange(x.rank), self.draw.choice([2, 3])
        lead, size = (slice(None),) * axis, x.shape[axis]
        assert isinstance(size, int)
        if self.draw.random() < 0.4:
            return [x[(*lead, slice(k, size - size % count, count))] for k in range(count)]
        if self.draw.random() < 0.4 and x.rank > 1:
            places = self.draw.sample(range(size), count)
            return [x[(*lead, k)] for k in places]
        if self.draw.random() < 0.5:
            return [x[(*lead, slice(k, size - 2 + k))] for k in range(count)]
        part = size // count
        return [x[(*lead, slice(k * part, (k + 1) * part))] for k in range(count)]


@every(
    "function",
    [
        lambda x: np.exp2(np.diff(x * 2)),
        lambda x: np.exp2((x * 2)[:, 0]) + (x * 2)[:, 1],
        lambda x: np.fft.fft((x + 1)[::2, None]).real,
        lambda x: (np.exp2(x * 2), (x * 2).sum(-1), np.exp2(x.mean(0, keepdims=True)) * x),
        lambda x: np.exp2(x[1:] + x[:-1]) * x[1:],
    ],
)
def test_calls_of_numpy_read_slices(function: Any) -> None:
    """A call of NumPy in a graph gives a tuple, which has no shape."""
    x = np.random.default_rng(0).normal(size=(1300, 3))
    check(function, x)
    check(function, x.astype(np.float32), native="off")


@sampled(2)
@every("native", TIERS)
def test_drawn_programs_have_the_bits_of_the_interpreter(native: Any) -> None:
    before = after = 0
    for seed in range(120):
        drawn = Drawn(seed)
        meant = interpret(drawn.graph, *drawn.inputs)
        program = Program(drawn.graph, native=native, threads=1 + seed % 2)
        results = program(*drawn.inputs)
        both = [x if isinstance(x, tuple) else (x,) for x in (results, meant)]
        assert all(map(same, *both)), seed
        before += drawn.shape in {s.shape for s in drawn.graph.symbols if s.op is not ops.input}
        after += drawn.shape in arrays(program)
    assert after < before - 30
