"""Program is `interpret` to the bit: every op, dtype, layout, block size and number of threads."""

from __future__ import annotations

import zlib
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, seed, settings

from graphir import DType, ExecutionError, Graph, Op, ops
from graphir.conversions import convert
from graphir.runtime import Program, execute, interpret
from tests.support.evaluator import agree, outcome, same
from tests.support.layouts import LAYOUTS
from tests.support.program_calls import BLOCKS, calls
from tests.support.strategies import STRONG
from tests.support.tables import every, sampled

LARGE = (1, 5, 17, 40, 129)
LAYOUT = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: one.__name__)


def check(graph: Graph, *inputs: Any, blocks: Any = BLOCKS, threads: Any = (1, 3)) -> None:
    meaning = outcome(interpret, graph, *inputs)
    assert meaning is not ExecutionError
    for block in blocks:
        for number in threads:
            program = Program(graph, threads=number, block=block)
            assert agree(outcome(program, *inputs), meaning), (block, number)


def is_interpreted(call: Any) -> None:
    """Twice, for the second call takes another way; into arrays that are given; and explained."""
    graph, inputs, block, threads = call
    note(f"{graph}\nblock={block}, threads={threads}, {[(x.dtype, x.shape) for x in inputs]}")
    meaning = outcome(interpret, graph, *inputs)
    program = Program(graph, threads=threads, block=block)
    for _ in range(2):
        assert agree(outcome(program, *inputs), meaning)
    if meaning is not ExecutionError:
        outs = tuple(np.empty_like(x) for x in meaning)
        program(*inputs, out=outs)
        assert agree(outs, meaning)
        assert len(program.explain(*inputs).splitlines()) > len(program.steps)


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", ops.CATALOGUE.values(), ids=ops.CATALOGUE)
def test_every_op(op: Op) -> None:
    @seed(zlib.crc32(op.name.encode()))
    @settings(max_examples=settings().max_examples // 2)
    @given(calls(op=op, steps=3, largest=2000))
    def each(call: Any) -> None:
        is_interpreted(call)

    each()


@pytest.mark.exhaustive
@settings(max_examples=settings().max_examples * 8)
@given(calls(largest=60000, pool=LARGE))
def test_graphs_of_many_blocks(call: Any) -> None:
    is_interpreted(call)


@pytest.mark.exhaustive
@settings(max_examples=settings().max_examples * 4)
@given(calls(largest=2000, steps=25))
def test_large_graphs(call: Any) -> None:
    is_interpreted(call)


# -- layouts, shapes and sizes

FUNCTIONS = (
    lambda x, y: (x * y + x) * y - x,
    lambda x, y: (x - y, x * y * y),
    lambda x, y: ops.where(ops.equal(x, y), x, y) / y,
)


def graph_of(function: Any, *types: Any, tf32: str = "even") -> Graph:
    """A graph of a function on inputs of (dtype, shape)."""
    rules = "numpy" if types[0][0].is_complex else "max"
    graph = Graph("one", rules=rules, tf32=tf32)
    made = function(*(graph.input(dtype, shape) for dtype, shape in types))
    graph.output(*(made if isinstance(made, tuple) else (made,)))
    return graph


def normal(dtype: DType, shape: Any, seed: int) -> Any:
    """Values of a dtype, complex ones too."""
    real, imaginary = np.random.default_rng(seed).standard_normal((2, *np.atleast_1d(shape))) * 3
    return (real + imaginary * 1j if dtype.is_complex else real).astype(dtype.storage)


LAID_OUT = (DType.float32, DType.bfloat16, DType.float16, DType.tensor_float32, DType.complex64)


@pytest.mark.exhaustive
@LAYOUT
@pytest.mark.parametrize("dtype", LAID_OUT, ids=str)
def test_layouts(layout: Any, dtype: DType) -> None:
    for function in FUNCTIONS:
        graph = graph_of(function, *[(dtype, (2, "n"))] * 2)
        for size in (0, 1, 2, 127, 129, 4097):
            x, y = (layout(normal(dtype, (2, size), size + k)) for k in range(2))
            check(graph, x, y, blocks=(None, max(size, 1), 133))


SHAPES = (
    ((300, 1), (1, 70)),
    ((300, 70), (70,)),
    ((300, 70), (300, 1)),
    ((300, 70), (1, 1)),
    ((300, 70), ()),
    ((30, 1, 70), (1, 10, 1)),
    ((30, 10, 70), (10, 1)),
    ((5, 4099), (4099,)),
    ((1, 20011), (3, 1)),
)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", [DType.float32, DType.bfloat16, DType.complex128], ids=str)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_broadcast_operands(shapes: Any, dtype: DType) -> None:
    inputs = [normal(dtype, shape, 1).reshape(shape) for shape in shapes]
    for function in FUNCTIONS:
        graph = graph_of(function, *((dtype, shape) for shape in shapes))
        check(graph, *inputs, blocks=(None, 64, 70, 1000, 4099))


def test_products_of_one_complex_number() -> None:
    """In place NumPy takes them for a reduction, and rounds otherwise."""
    for size in (1, 9, 65):
        x, y = (normal(DType.complex128, size, k) for k in range(2))
        graph = graph_of(lambda x, y: x * y * x * y, *[(DType.complex128, "n")] * 2)
        check(graph, x, y, blocks=(None, 1, 8, 64))


def test_squares_of_complex_scalars() -> None:
    """NumPy has another loop for them than for arrays, 0-d ones too, with other last bits."""
    for k in range(20):
        check(graph_of(ops.square, (DType.complex128, ())), normal(DType.complex128, 1, k)[0])


# -- roundings

CHAINS = (
    lambda x, y: (x * y + x) * y - x,
    lambda x, y: ops.maximum(x + y, x) / y,
    lambda x, y: ops.where(ops.less(x, y), x, y) + ops.abs(x),
    lambda x, y: ops.sqrt(x) - (-y) * ops.exp(x),
)
NARROW = [d for d in STRONG if (d.is_float and d.bits <= 19) or (d.is_integer and d.bits <= 8)]


def all_values(dtype: DType) -> Any:
    """All values of a narrow dtype, 2**16 or more of them."""
    if dtype is DType.tensor_float32:
        return (np.arange(2**19, dtype=np.uint32) << 13).view(np.float32)
    patterns = np.arange(2**16) % 2**dtype.bits
    if dtype.is_integer:
        return patterns.astype(dtype.storage)
    return patterns.astype(f"u{dtype.storage.itemsize}").view(dtype.storage)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_chains_on_every_pattern(dtype: DType) -> None:
    x = all_values(dtype)
    y = np.random.default_rng(0).permutation(x)
    for tf32 in ("even", "away") if dtype is DType.tensor_float32 else ("even",):
        for function in CHAINS[: 4 if dtype.is_float else 3]:
            graph = graph_of(partial(_cast_after, function), *[(dtype, "n")] * 2, tf32=tf32)
            check(graph, x, y, blocks=(None, 4095), threads=(2,))
            check(graph, x[-99:], y[-99:], blocks=(None,), threads=(1,))


def _cast_after(function: Any, *inputs: Any) -> Any:
    x = function(*inputs)
    return x, x.cast("float16").cast("bfloat16"), x.cast("float32").cast("tensor_float32")


def _there_and_back(target: DType, x: Any) -> Any:
    return x.cast(target), x.cast(target).cast("float32")


@every("target", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
@every("source", ["float32", "float64"])
def test_casts_of_scalars_to_integers(source: str, target: str) -> None:
    """Values at both ends of the integers, beyond them, and no number."""
    graph = Graph("scalars", rules="numpy")
    x = graph.input(source, ())
    graph.output((x * x.graph.scalar[source](1.0)).cast(target))
    low, high = (float(each) for each in (DType(target).min, DType(target).max))
    near = [end + part for end in (low, high, 0.0) for part in (-1, -0.5, -0.25, 0, 0.25, 0.5, 1)]
    program = Program(graph, native="off")
    for number in [*near, 2 * low, 2 * high, 1e30, -1e30, np.inf, -np.inf, np.nan, -0.0]:
        given = np.asarray(number, source)
        assert same(program(given), interpret(graph, given)), number


@every("tf32", ["even", "away"])
def test_casts_of_float32_are_those_of_convert(tf32: str) -> None:
    """The first 16 bits all there are, the last those of ties and their neighbours."""
    low = [0, 1, 0xFFF, 0x1000, 0x1001, 0x2FFF, 0x3000, 0x3001, 0x7FFF, 0x8000, 0x8001, 0xFFFF]
    x = (np.arange(2**16, dtype=np.uint32)[:, None] << 16 | np.array(low, np.uint32)).ravel()
    x = x.view(np.float32)
    targets = [d for d in STRONG if not d.is_complex and (tf32 == "even" or d.bits == 19)]
    for target in targets:
        graph = graph_of(partial(_there_and_back, target), (DType.float32, "n"), tf32=tf32)
        wanted = convert(x, DType.float32, target, tf32)
        found, back = Program(graph, threads=2)(x)
        assert same(found, wanted), target
        assert same(back, convert(wanted, target, DType.float32)), target


# -- reductions

ROWS = ("sum", "mean", "prod", "var", "std", "argmax", "argmin", "max", "min")
WHOLE = ("softmax", "logsoftmax", "cumulative_sum", "cumulative_prod", "sort", "argsort")
LENGTHS = (
    (127,),
    (128,),
    (129,),
    (1000,),
    (2000,),
    (20011,),
    (7, 129),
    (3, 2003),
    (40, 3),
    (3, 5, 257),
)


@pytest.mark.exhaustive
@pytest.mark.parametrize("shape", LENGTHS, ids=str)
@pytest.mark.parametrize("dtype", [DType.float32, DType.float16, DType.int16], ids=str)
def test_reductions(dtype: DType, shape: tuple[int, ...]) -> None:
    x = normal(dtype, shape, 7)
    for axis in {-1, 0, *range(1, len(shape) - 1)} | {None}:
        made: list[Any] = []
        graph = Graph("rows", rules="numpy")
        y = graph.input(dtype, shape)
        for source in (y, y * y + y):
            made += [getattr(ops, name)(source, axis=axis) for name in ROWS]
            if axis is not None:
                made += [_row(name, source, axis) for name in WHOLE]
            made += [getattr(ops, name)(ops.less(source, 3), axis=axis) for name in ("any", "all")]
        graph.output(*made)
        check(graph, x, blocks=(None, 128, 1000), threads=(1, 3))


def _row(name: str, source: Any, axis: int) -> Any:
    floats = name in ("softmax", "logsoftmax") and source.dtype.is_integer
    return getattr(ops, name)(source.cast("float32") if floats else source, axis=axis)


@LAYOUT
def test_reductions_of_layouts(layout: Any) -> None:
    """Unaligned rows too, which NumPy copies some thousands at a time."""
    for shape in ((20011,), (3, 9001)):
        graph = graph_of(
            lambda x: (x.sum(), x.sum(axis=-1), x.mean(axis=0), x.max()), (DType.float32, shape)
        )
        check(graph, layout(normal(DType.float32, shape, 3)), blocks=(None, 1000))


# -- sizes of graphs


@sampled(3)
@every("shape", [(), (1000,)])
def test_ten_thousand_nodes(shape: Any) -> None:
    graph = Graph("deep")
    x = graph.input("float32", shape, name="x")
    y, z = x, x * 0.5
    for k in range(3333):
        y, z = y * z + (k % 7) * 0.125, y
    graph.output(y, z)
    given = np.asarray(normal(DType.float32, shape, 5).reshape(shape) / 9)
    check(graph, given, blocks=(None,), threads=(1,))
    program = Program(graph)
    assert len(program.explain(given).splitlines()) > len(program.steps)


def test_execute_keeps_its_program() -> None:
    graph = graph_of(lambda x: x + 1, (DType.float32, "n"))
    x = np.ones(3, np.float32)
    assert same(execute(graph, x), execute(graph, x))
    first = graph.memo("program")
    execute(graph, np.ones(5, np.float32))
    assert isinstance(first, Program) and graph.memo("program") is first
