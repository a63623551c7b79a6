"""Machine code on arrays of any size that lie in memory in any way, and written to any place."""

from __future__ import annotations

import ctypes
import math
import mmap
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, note, settings

from graphir import DType, Graph, Symbol, ops
from graphir.runtime import Program, interpret
from graphir.runtime.native.region_calls import KernelCall
from tests.support.evaluator import agree, same
from tests.support.layouts import LAYOUTS
from tests.support.native_runs import (
    check,
    graph_of,
    left,
    needs_llvmlite,
    needs_sums,
    run_drawn,
    step_by_step,
    values,
)
from tests.support.program_calls import calls
from tests.support.tables import every

pytestmark = needs_llvmlite

MIXED = (DType.float32, DType.bfloat16, DType.int16, DType.bool, DType.float64)
SIZES = [*range(71), *(2**k + d for k in range(7, 13) for d in (-1, 0, 1))]


@pytest.fixture
def _step_by_step() -> Iterator[None]:
    with step_by_step():
        yield


def mixed(x: Symbol, b: Symbol, i: Symbol, c: Symbol, d: Symbol) -> list[Symbol]:
    """Several dtypes and results; a function of NumPy in the middle, and one at the end."""
    y = x * b.cast("float32") - i.cast("float32")
    z = ops.where(c, ops.tanh(y), x) + y
    return [z, ops.less(z, x), ops.exp(z).cast("bfloat16"), i + i, d * z.cast("float64")]


def plain(x: Symbol, b: Symbol, i: Symbol, c: Symbol, d: Symbol) -> list[Symbol]:
    """The same without functions of NumPy."""
    y = ops.where(c, x * b.cast("float32"), ops.sqrt(x))
    return [y - i.cast("float32"), ops.greater(i.cast("float64"), d), b * b]


FUNCTIONS = every("function", [mixed, plain])


def operands(shape: Any) -> list[Any]:
    size = int(np.prod(shape, dtype=int))
    return [values(dtype, size, k).reshape(shape) for k, dtype in enumerate(MIXED)]


@FUNCTIONS
@pytest.mark.usefixtures("_step_by_step")
def test_every_size(function: Any) -> None:
    """And nothing is written beside the results."""
    graph = graph_of(function, *((dtype, ("n",)) for dtype in MIXED))
    program, dtypes = Program(graph, native="now"), [one.dtype for one in graph.outputs]
    for size in SIZES:
        inputs = operands(size)
        wide = [np.full(size + 200, 7, dtype.storage) for dtype in dtypes]
        program(*inputs, out=tuple(one[100 : 100 + size] for one in wide))
        wanted = [np.full_like(one, 7) for one in wide]
        for one, found in zip(wanted, interpret(graph, *inputs), strict=True):
            one[100 : 100 + size] = found
        assert agree(wide, wanted), size
    assert not left(program)


@FUNCTIONS
def test_calls_without_python(function: Any) -> None:
    """From the third on: arrays, 0-d ones, and those that are not plain, which Python takes."""
    graph = graph_of(function, *((dtype, ("n",)) for dtype in MIXED))
    scalars = graph_of(function, *((dtype, ()) for dtype in MIXED))
    for size in (1, 31, 32, 33, 1023, 1025, 3000):
        program, inputs = Program(graph, native="now"), operands(size)
        wanted = interpret(graph, *inputs)
        for _ in range(4):
            assert agree(program(*inputs), wanted)
        assert program.machine_code
        for layout in LAYOUTS[:-1]:
            laid = [layout(x) for x in inputs]
            assert agree(program(*laid), interpret(graph, *laid)), layout
    program = Program(scalars, native="now")
    for k in range(20):
        inputs = [values(dtype, k + 1)[k].reshape(()) for dtype in MIXED]
        assert agree(program(*map(np.asarray, inputs)), interpret(scalars, *inputs))
    assert program.machine_code


@every("layout", LAYOUTS)
@pytest.mark.usefixtures("_step_by_step")
def test_layouts(layout: Any) -> None:
    shapes = {(33,): mixed, (3, 700): mixed, (40, 3): plain, (2, 33, 5): plain, (5, 0): plain}
    for shape, function in shapes.items():
        graph = graph_of(function, *((dtype, shape) for dtype in MIXED))
        check(graph, *map(layout, operands(shape)), whole=0 not in shape)


@pytest.mark.usefixtures("_step_by_step")
def test_strides() -> None:
    """Of each sign and of 0, of more than an element, one layout for each operand."""
    graph = graph_of(plain, *((dtype, ("n",)) for dtype in MIXED))
    whole = operands(4000)
    cuts = [np.s_[::2], np.s_[::-1], np.s_[::3], np.s_[::-2], np.s_[5:]]
    for turn in range(5):
        inputs = [x[cut][:1200] for x, cut in zip(whole, [*cuts[turn:], *cuts[:turn]], strict=True)]
        check(graph, *inputs)
        inputs[turn] = np.broadcast_to(inputs[turn][7], 1200)
        check(graph, *inputs)


SMALL_STRIDES = [*range(-9, -1), *range(2, 10)]


def squares(x: Symbol) -> list[Symbol]:
    """Vector code alone."""
    return [x ^ x if x.dtype is DType.bool else x * x]


def squares_and_tanh(x: Symbol) -> list[Symbol]:
    """A function of NumPy, which reads copies of strided inputs."""
    y = x.cast("float32")
    return [*squares(x), ops.tanh(y) + y]


@every("function", [squares, squares_and_tanh])
@every("stride", SMALL_STRIDES)
@pytest.mark.usefixtures("_step_by_step")
def test_small_strides_of_every_size(stride: int, function: Any) -> None:
    for dtype in (DType.bool, DType.int8, DType.bfloat16, DType.float16, *MIXED[::2], DType.int64):
        graph = graph_of(function, (dtype, ("n",)))
        program = Program(graph, threads=1, native="now")
        for size in (*range(1, 40), *range(62, 67), *range(94, 99), 1023, 1025, 3000):
            whole = values(dtype, abs(stride) * (size + 2))
            x = whole[1 if stride > 0 else -2 :: stride][:size]
            outs, meant = program(x), interpret(graph, x)
            both = [each if isinstance(each, tuple) else (each,) for each in (outs, meant)]
            assert all(map(same, *both)), (dtype, size)
        assert not left(program)


@every("stride", SMALL_STRIDES)
def test_rows_of_small_strides(stride: int) -> None:
    """Rows side by side, and phases, read their operands with strides too."""

    def sums(x: Symbol) -> list[Symbol]:
        return [ops.sum(x * x, axis=1), ops.max(x, axis=1)]

    def phases(x: Symbol) -> list[Symbol]:
        y = x - ops.mean(x, axis=1, keepdims=True)
        return [y * ops.rsqrt(ops.mean(y * y, axis=1, keepdims=True))]

    for dtype in (DType.int8, DType.int16, DType.float32, DType.float64):
        for function in (sums, phases) if dtype.is_float else (sums,):
            for shape in ((40, 37), (9, 64), (130, 500)):
                count = shape[0] * shape[1] * abs(stride)
                whole = np.nan_to_num(values(dtype, count)) % 3
                check(graph_of(function, (dtype, shape)), whole.reshape(shape[0], -1)[:, ::stride])


PAGE = mmap.PAGESIZE


@pytest.mark.skipif(sys.platform == "win32", reason="memory is protected by mprotect")
@pytest.mark.parametrize("dtype", [DType.uint8, DType.int16, DType.float32, DType.float64])
@pytest.mark.usefixtures("_step_by_step")
def test_nothing_is_read_beyond_a_strided_input(dtype: DType) -> None:
    """The pages before and after the input may not be read."""
    memory = mmap.mmap(-1, 5 * PAGE)
    protect = ctypes.CDLL(None).mprotect
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    both = [ctypes.c_void_p(start), ctypes.c_void_p(start + 4 * PAGE)]
    whole = np.frombuffer(memory, np.uint8)[PAGE : 4 * PAGE].view(dtype.storage)
    whole[:] = np.arange(whole.size) % 99
    try:
        assert not any(protect(page, ctypes.c_size_t(PAGE), 0) for page in both)
        for stride in (*SMALL_STRIDES, -1, 1):
            program = Program(graph_of(squares, (dtype, ("n",))), threads=1, native="now")
            for size in (*range(1, 100), (whole.size - 1) // abs(stride) + 1):
                span = abs(stride) * (size - 1) + 1
                if span <= whole.size:
                    for x in (whole[:span], whole[-span:]):
                        assert same(program(x[::stride]), x[::stride] * x[::stride])
    finally:
        for page in both:
            protect(page, ctypes.c_size_t(PAGE), mmap.PROT_READ | mmap.PROT_WRITE)


@pytest.mark.usefixtures("_step_by_step")
def test_three_axes_with_operands_along_some() -> None:
    shapes = [(4, 1, 50), (3, 1), (4, 3, 50), (50,), (4, 1, 1)]
    inputs = [operands(shape)[k] for k, shape in enumerate(shapes)]
    for function in (mixed, plain):
        check(graph_of(function, *zip(MIXED, shapes, strict=True)), *inputs)


# -- results written where operands lie

PLACES = {
    "itself": lambda x: x[:2000],
    "one further": lambda x: x[1:2001],
    "backwards": lambda x: x[1999::-1],
    "every other": lambda x: x[:4000:2],
    "another": lambda x: np.empty_like(x[:2000]),
}


@pytest.mark.usefixtures("_step_by_step")
@every("size", [2, 3, 4, 7, 8])
@every("dtype", [DType.float32, DType.float64, DType.uint8, DType.bool])
def test_short_last_axes(size: int, dtype: DType) -> None:
    """Operands broadcast along the last axis, or along all others; ranges begin anywhere."""
    for lead in ((5,), (11,), (7, 13), (3, 5, 7), (400,)):
        shapes = (*lead, size), (*lead, 1), (size,)
        graph = Graph("short", rules="numpy")
        x, each, all_ = [graph.input(dtype, shape) for shape in shapes]
        y = (x ^ each) | all_ if dtype is DType.bool else x * each + all_
        graph.output(*([y, ops.tanh(y) * each] if dtype.is_float else [y]))
        given = [values(dtype, math.prod(shape)).reshape(shape) for shape in shapes]
        for block in (None, 37):
            program = Program(graph, threads=2, native="now", block=block)
            both = [
                x if isinstance(x, tuple) else (x,)
                for x in (program(*given), interpret(graph, *given))
            ]
            assert all(map(same, *both))
    assert f"{size} equal" in program.explain(*given)


@every("place", PLACES.values())
@every("stepwise", [True, False])
def test_in_place(place: Any, stepwise: bool) -> None:
    def make(x: Symbol, y: Symbol) -> list[Symbol]:
        return [ops.tanh(x * y) + x]

    graph = graph_of(make, *[(DType.float32, ("n",))] * 2)
    for size in (2000, 20):
        memory, y = values(DType.float32, 4000), values(DType.float32, size, 1)
        x, out = memory[:size], place(memory)[:size]
        wanted = interpret(graph, x.copy(), y)
        if stepwise:
            with step_by_step():
                assert Program(graph, native="now")(x, y, out=out) is out
        else:
            Program(graph, native="now")(x, y, out=out)
        assert same(out, wanted)


# -- what instructions may be given


@pytest.mark.usefixtures("_step_by_step")
def test_masks_whose_bytes_are_not_0_and_1() -> None:
    def make(c: Symbol, x: Symbol, y: Symbol) -> list[Symbol]:
        return [ops.where(c, x, y), ops.logical_not(c), ops.where(ops.logical_not(c), y, x)]

    graph = graph_of(make, *((d, ("n",)) for d in (DType.bool, DType.float32, DType.float32)))
    mask = np.arange(1100).astype(np.uint8).view(bool)
    check(graph, mask, *(values(DType.float32, 1100, k) for k in range(2)))


@pytest.mark.usefixtures("_step_by_step")
@every("dtype", [DType.float32, DType.float16, DType.int8, DType.complex64])
def test_constants(dtype: DType) -> None:
    """Scalars and arrays, as operands of instructions and of functions; results that are given."""

    def make(x: Symbol) -> list[Symbol]:
        g = x.graph
        given = g.constant(values(dtype, 1100, 3), dtype)
        one, three = (g.constant(values(dtype, 30)[k], dtype) for k in (9, 5))
        return [x * one + given, three - x, given * given, x, ops.square(x * three) * one, x * one]

    check(graph_of(make, (dtype, (1100,))), values(dtype, 1100))


@every("dtype", [DType.float32, DType.float64, DType.int8, DType.float16])
def test_sums_of_every_length(dtype: DType) -> None:
    """NumPy's tree has leaves of 64 to 128 elements; eights of them are added in lanes."""

    def make(x: Symbol) -> list[Symbol]:
        return [ops.sum(x * x, axis=1)]

    graph = graph_of(make, (dtype, (2, "n")))
    program = Program(graph, native="now")
    wanted = Program(graph, native="off")
    x = np.random.default_rng(5).standard_normal((2, 2100)) * 9
    for size in (*range(1, 530), *range(1000, 1060), *range(2030, 2060)):
        given = x[:, :size].astype(dtype.storage)
        assert program(given).tobytes() == wanted(given).tobytes(), size


@every("way", ["steps", "one call"])
def test_constants_in_any_order(way: str) -> None:
    """As they are in graphs that were read from files."""
    array = values(DType.float32, 1200).reshape(40, 30)
    graph = Graph("constants")
    x = graph.input("float32", (40, 30))
    for one in (array, np.asfortranarray(array), array[::-1, ::-1]):
        x = x * graph.constant_of((DType.float32, one))
    graph.output(x)
    with step_by_step() if way == "steps" else nullcontext():
        for _ in range(3):
            check(graph, array)


@every("block", [16, 150, None])
def test_means_of_rows(block: int | None) -> None:
    """Whole, and in parts, which are divided once."""
    graph = graph_of(
        lambda x: [ops.mean(x * x, axis=1), ops.sum(x * x, axis=1)], (DType.float32, ("m", "n"))
    )
    program = Program(graph, threads=2, block=block, native="now")
    for length in (40, 100, 128, 129, 160, 1000):
        x = np.linspace(1, 2, 7 * length, dtype=np.float32).reshape(7, length)
        wanted = interpret(graph, x)
        assert all(map(same, program(x), wanted)), length
    assert not left(program)


def test_threads() -> None:
    """Ranges of any threads are the same results; those of sums too."""

    def make(x: Symbol, y: Symbol) -> list[Symbol]:
        z = ops.tanh(x * y) + x
        return [z, ops.sum(z), ops.mean(z * z, axis=-1), ops.max(z, axis=1)]

    graph = graph_of(make, (DType.float32, ("m", "n")), (DType.float32, ("n",)))
    for shape in ((7, 30001), (300, 1001), (1, 200_003)):
        x, y = (
            values(DType.float32, shape[0] * shape[1]).reshape(shape),
            values(DType.float32, shape[1], 1),
        )
        for threads in (1, 2, 3):
            check(graph, np.nan_to_num(x) % 3, np.nan_to_num(y) % 3, threads=threads)


@pytest.mark.usefixtures("_step_by_step")
@every("threads", [2, 3])
@every("axis", [None, 0, 1])
def test_threads_take_ranges_from_a_counter(threads: int, axis: int | None) -> None:
    """Each element has one range; ranges have whole rows where a region reduces them."""

    def make(x: Symbol, y: Symbol) -> list[Symbol]:
        z = ops.sqrt(x * x + y) / (y + 2.0)
        return [z] if axis is None else [z, ops.sum(z, axis=axis), ops.max(z, axis=axis)]

    graph = graph_of(make, (DType.float32, ("m", "n")), (DType.float32, ("n",)))
    x, y = values(DType.float32, 1500 * 1003).reshape(1500, 1003), values(DType.float32, 1003, 1)
    program = Program(graph, threads=threads, native="now")
    share = KernelCall._share
    with patch.object(KernelCall, "_share", autospec=True, side_effect=share) as takers:
        for _ in range(3):
            both = [
                z if isinstance(z, tuple) else (z,) for z in (program(x, y), interpret(graph, x, y))
            ]
            assert all(map(same, *both))
    assert takers.called == (axis != 0)


@pytest.mark.usefixtures("_step_by_step")
def test_ranges_of_strided_inputs_may_be_less_than_a_vector() -> None:
    """They are read element by element, not beyond their ends."""
    found: list[Any] = []

    def cut(self: KernelCall, *args: Any) -> Any:
        made = whole(self, *args)
        found.extend(made[0])
        return made

    whole = KernelCall.cut
    program = Program(
        graph_of(lambda x: [ops.square(x)], (DType.float32, ("n",))), 3, block=1, native="now"
    )
    with patch.object(KernelCall, "cut", cut):
        for size in range(1, 300):
            x = values(DType.float32, 2 * size)[::2]
            wanted = np.square(x)
            assert same(program(x), wanted)
    assert {b - a for a, b in found}.issuperset(range(2, 64))


# -- graphs that are drawn


@settings(max_examples=settings().max_examples)
@given(calls(largest=2000, steps=12))
def test_drawn_graphs(call: Any) -> None:
    """Step by step; then as programs run, of which the third call has no Python in it."""
    graph, inputs, block, threads = call
    note(f"{graph}\nblock={block}, threads={threads}, {[(x.dtype, x.shape) for x in inputs]}")
    run_drawn(graph, inputs, block, threads)


@needs_sums
def test_many_functions_on_a_small_stack() -> None:
    """What is kept between them takes smaller blocks; a region that is too long is NumPy's."""
    graph = Graph("many")
    x = graph.input("float32", ("n",))
    kept = [ops.sin(x * float(i)) for i in range(60)]
    total = kept[0]
    for one in kept[1:]:
        total = total * one + x
    graph.output(total, ops.sum(total))
    array = np.linspace(0.1, 1, 5000, dtype=np.float32)
    program = Program(graph, native="now", threads=1)
    found: list[Any] = []
    before = threading.stack_size(192 << 10)
    try:
        caller = threading.Thread(target=lambda: found.extend([program(array) for _ in range(3)]))
        caller.start()
        caller.join()
    finally:
        threading.stack_size(before)
    assert left(program) == []
    wanted = interpret(graph, array)
    assert all(same(*pair) for each in found for pair in zip(each, wanted, strict=True))
    assert len(found) == 3


def test_regions_that_are_too_long() -> None:
    graph = Graph("long")
    x = y = graph.input("float32", ("n",))
    for _ in range(1001):
        y = y + x
    graph.output(y)
    program = Program(graph, native="now")
    array = np.linspace(0.1, 1, 50, dtype=np.float32)
    assert same(program(array), interpret(graph, array))
    assert "instructions in one region, more than 1000" in left(program)[0]
