"""Reductions of rows in machine code: rows side by side, their remainders, and NumPy's order."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from graphir import DType, Graph, Symbol, ops
from graphir.runtime import Program, interpret
from tests.support.evaluator import same
from tests.support.native_runs import left, needs_llvmlite, step_by_step, values
from tests.support.scaled_thresholds import scaled
from tests.support.tables import every

pytestmark = needs_llvmlite

LENGTHS = (1, 2, 7, 8, 9, 16, 33, 100, 127, 128, 129, 136, 200, 257, 512, 1000, 1031, 3000)
"""Around a vector, a leaf of NumPy's sum, and a block."""

DTYPES = ("float32", "float64", "int32", "int16", "uint8", "bool", "bfloat16", "float16")


def array_of(symbol: Symbol, seed: int) -> Any:
    """Drawn values, some of them NaN and -0.0, in one of several layouts."""
    draw, shape, storage = np.random.default_rng(seed), symbol.shape, symbol.dtype.storage
    wide = (*shape[:-1], 2 * shape[-1])
    array = draw.normal(size=wide) * 50
    if symbol.dtype.is_float:
        array[draw.random(wide) < 0.01] = -0.0
        array[draw.random(wide) < (0.002 if seed % 3 == 0 else 0)] = np.nan
    array = array.astype(storage) if symbol.dtype.is_float else abs(array).astype(storage)
    layouts = [
        np.ascontiguousarray(array[..., ::2]),
        np.asfortranarray(array[..., ::2]),
        array[..., ::2],
        array[..., : shape[-1]][..., ::-1],
        array[..., : shape[-1]],
    ]
    return layouts[seed % len(layouts)]


def reductions(graph: Graph, draw: random.Random, values: list[Symbol]) -> list[Symbol]:
    """A few reductions of values by rows."""
    results: list[Symbol] = []
    for _ in range(draw.randint(1, 4)):
        value = draw.choice(values)
        is_bool = value.dtype is DType.bool
        names = ["any", "all"] if is_bool else ["sum", "max", "min", "argmax", "argmin"]
        names += ["mean"] * value.dtype.is_float
        reduce = getattr(ops, draw.choice(names))
        results.append(reduce(value, axis=value.rank - 1, keepdims=draw.random() < 0.5))
    return results


@every("dtype", DTYPES)
def test_drawn_reductions_have_the_bits_of_the_interpreter(dtype: str) -> None:
    native = 0
    lengths = [*enumerate(LENGTHS)][:: 1 if dtype.startswith("float") else 3]
    for seed, length in lengths:
        draw = random.Random(f"{dtype} {seed}")
        rows = draw.choice([(1,), (4,), (5,), (11,), (2, 6), (3, 7), (0,), ()])
        g = Graph("rows", rules="jax")
        x, y = (g.input(dtype, (*rows, length)) for _ in range(2))
        each, along = g.input(dtype, (*rows, 1)), g.input(dtype, (length,))
        if dtype == "bool":
            whole = [x, ops.logical_or(x, along), ops.logical_and(y, each)]
        else:
            whole = [x, x - each, (x - each) * along + y, ops.maximum(x, y)]
        if x.dtype.is_float:  # whose vector code may branch
            whole += [ops.exp(x - each), ops.log(y)]
        outputs = reductions(g, draw, whole)
        g.output(*outputs, *draw.sample(whole[1:], draw.randint(0, 2)))
        arrays = [array_of(symbol, seed + k) for k, symbol in enumerate(g.inputs)]
        program, meant = Program(g, native="now", threads=1), interpret(g, *arrays)
        with step_by_step():
            results = program(*arrays)
        native += not left(program)
        both = [z if isinstance(z, tuple) else (z,) for z in (results, meant)]
        assert all(map(same, *both)), (rows, length)
    assert native > len(lengths) // 2


@every("threads", [1, 2])
def test_parts_of_long_rows_have_the_bits_of_the_interpreter(threads: int) -> None:
    g = Graph("long", rules="jax")
    x = g.input("float32", (7, 300_007))
    g.output(ops.sum(x * x, axis=1), ops.max(x, axis=1), ops.mean(ops.exp(x), axis=1))
    array = np.random.default_rng(0).normal(size=(7, 300_007)).astype(np.float32)
    program = Program(g, native="now", threads=threads)
    assert all(map(same, program(array), interpret(g, array)))


PLACE_SHAPES = [(7, 1), (5, 63), (4, 64), (9, 65), (300, 64), (2, 5000), (1, 40_000)]


@every("dtype", ["float64", "float32", "float16", "bfloat16", "int32", "uint8"])
@every("shape", PLACE_SHAPES)
@every("kind", ["normal", "equal zeros", "nan", "ties", "infinite"])
def test_places_and_extremes_are_those_of_the_interpreter(
    dtype: str, shape: tuple[int, ...], kind: str
) -> None:
    random_ = np.random.default_rng(len(kind) + shape[1])
    x = random_.normal(size=shape) * 5
    if kind == "equal zeros":
        x = np.copysign(0.0, x)
    elif kind == "nan":
        x[random_.random(shape) < 1 / 30] = np.nan
    elif kind == "ties":
        x = np.round(x / 4)
    elif kind == "infinite":
        x = np.copysign(np.inf, x)
        x[::2, 0] = -np.nan  # the other rows have none
    storage = DType[dtype].storage
    x = (x if storage.kind in "fV" else np.abs(np.nan_to_num(x, posinf=9, neginf=9))).astype(
        storage
    )
    g = Graph("places", rules="jax")
    v = g.input(dtype, shape)
    outputs = [ops.argmax(v, axis=1), ops.argmin(v + v, axis=1, keepdims=True)]
    outputs += [ops.argmax(v - 1, axis=None), ops.max(-v, axis=1), ops.min(v + 1, axis=1)]
    g.output(*outputs, *[ops.sum(v * 2, axis=1), ops.argmin(v * 2, axis=1, dtype="int32")])
    meant = interpret(g, x)
    for threads in (1, 2):
        program = Program(g, threads=threads, native="now")
        with step_by_step():
            assert all(all(map(same, program(x), meant)) for _ in range(2))
        assert not left(program)


SHORT_DTYPES = ("float16", "float32", "float64", "int8", "int32", "uint8", "bool")


def short_rows(dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    """Elements with ties, zeros of both signs and, in some rows, NaN or infinities."""
    draw, storage = np.random.default_rng(seed), DType[dtype].storage
    x = draw.choice([-5.0, -1.5, -0.0, 0.0, 0.0, 1.5, 3.0], size=shape)
    if storage.kind != "f":
        return np.abs(x).astype(storage)
    if seed % 3 == 0:
        x = np.copysign(0.0, x)
    elif seed % 3 == 1:
        x = x * np.sqrt(2.0) + draw.normal(size=shape)
    special = draw.choice([np.nan, -np.nan, np.inf, -np.inf], size=shape)
    is_special = (draw.random(shape) < 0.3) & (draw.random((*shape[:-1], 1)) < 0.3)
    return np.where(is_special, special, x).astype(storage)


@every("dtype", SHORT_DTYPES)
def test_short_rows_have_the_bits_of_the_interpreter(dtype: str) -> None:
    """Whatever their number is beside that of rows side by side."""
    g = Graph("short", rules="jax")
    x, each = g.input(dtype, ("m", "n")), g.input(dtype, ("m", 1))
    if dtype == "bool":
        values = [x, ops.logical_xor(x, each)]
        names = ["any", "all"]
    else:
        values = [x, x - each]
        names = ["sum", "max", "min", "argmax", "argmin", *["mean"] * x.dtype.is_float]
    g.output(*[getattr(ops, name)(v, axis=1) for v in values for name in names], values[1])
    program = Program(g, native="now", threads=1)
    with step_by_step():
        for size in range(1, 71):
            for rows in (23, 4) if size % 7 == 0 else (13,):
                inputs = short_rows(dtype, (rows, size), size), short_rows(dtype, (rows, 1), size)
                assert all(map(same, program(*inputs), interpret(g, *inputs))), (rows, size)
    assert not left(program)


@every("name", ["max", "min", "argmax", "argmin"])
@every("dtype", ["float32", "int8"])
@every("size", [5, 8, 13, 150])
def test_the_least_and_greatest_elements_are_found(name: str, dtype: str, size: int) -> None:
    """In rows of nothing but the elements from which a reduction starts, and beside a sum."""
    g = Graph("ends", rules="jax")
    x = g.input(dtype, (8, size))
    g.output(getattr(ops, name)(x, axis=1), ops.sum(x, axis=1))
    storage = x.dtype.storage
    ends = (-np.inf, np.inf) if storage.kind == "f" else (-128, 127)
    array = np.repeat(np.array(ends * 4, storage)[:, None], size, axis=1)
    array[4:6, -1] = ends[::-1]
    array[6:, size // 2 :] = 0
    with step_by_step():
        program = Program(g, native="now", threads=1)
        assert all(map(same, program(array), interpret(g, array)))
    assert not left(program)


@every("dtype", ["float64", "float32", "float16", "int32"])
def test_short_rows_without_reductions_lie_side_by_side(dtype: str) -> None:
    """Where an operand is broadcast along them: a step that follows a reduction."""
    g = Graph("scaled", rules="jax")
    x, y, z = (g.input(dtype, shape) for shape in (("m", "n"), ("m", 1), ("n",)))
    g.output((x - y) * z, x * (y + z))
    program = Program(g, native="now", threads=1)
    for size in range(1, 40):
        for rows in (1, 5, 1024) if size % 13 == 9 else (50,):
            shapes = (rows, size), (rows, 1), (size,)
            inputs = [short_rows(dtype, shape, size) for shape in shapes]
            with step_by_step():
                assert all(map(same, program(*inputs), interpret(g, *inputs))), (rows, size)
    assert not left(program)


def test_softmax_of_many_short_rows_is_machine_code() -> None:
    g = Graph("softmax", rules="jax")
    x = g.input("float32", ("m", "n"))
    y = ops.exp(x - ops.max(x, axis=1, keepdims=True))
    g.output(y / ops.sum(y, axis=1, keepdims=True))
    for size in (9, 10, 17, 24, 31):
        program = Program(g, native="now", threads=1)
        array = np.random.default_rng(size).normal(size=(3001, size)).astype(np.float32)
        for _ in range(2):
            assert same(program(array), interpret(g, array))
        assert not left(program)


@np.errstate(all="ignore")
def test_rows_and_batches_of_narrow_dtypes() -> None:
    """Layouts of arrays do not depend on the name of the dtype, which NumPy refuses for <f1."""
    for dtype in (DType.float8_e5m2, DType.bfloat16):
        graph = Graph("rows", rules="explicit")
        x = graph.input(dtype, (6, 40))
        graph.output(ops.softmax(x, axis=1), ops.softmax(x, axis=0), ops.abs(x))
        batch = Graph("batch", rules="explicit")
        y = batch.input(dtype, (3, 4, 20))
        columns = y.permute(0, 2, 1).cast(DType.float32)
        batch.output(ops.matmul(columns, y.cast(DType.float32)), ops.softmax(ops.abs(y), axis=2))
        for each in (graph, batch):
            array = values(dtype, 240).reshape(each.inputs[0].shape)
            with scaled(512):
                program = Program(each, native="now", threads=1)
                for _ in range(2):
                    assert all(map(same, program(array), interpret(each, array))), dtype
