"""Small programs as one call of machine code: kernels, NumPy's products, views, scratch memory."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphir import DType, Graph, Symbol, ops
from graphir.numpy_api.trace import trace
from graphir.runtime import Program, interpret, jit
from graphir.runtime.native.drivers import sequences
from graphir.runtime.program.cost_model import COST
from tests.support.evaluator import same
from tests.support.native_runs import needs_llvmlite, needs_sums

pytestmark = [needs_llvmlite, needs_sums]


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def layer(x: Any, w: Any, b: Any) -> Any:
    return np.tanh(x @ w + b)


def gated(x: Any, h: Any, w: Any, b: Any) -> Any:
    gate = 1 / (1 + np.exp(-(x @ w + h @ w + b)))
    return gate * h + (1 - gate) * np.tanh(x)


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.swapaxes(-1, -2) * 0.125
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True)) @ v


def steps_of_slices(x: Any) -> Any:
    for _ in range(5):
        x = x[1:, :-1] + x[:-1, 1:]
    return x, x.sum(axis=-1)


def two_products(x: Any, w: Any) -> Any:
    return x @ w, w[1:3] @ w


PROGRAMS: list[tuple[Callable[..., Any], list[tuple[int, ...]]]] = [
    (layer, [(64,), (64, 64), (64,)]),
    (layer, [(1, 64), (64, 64), (64,)]),
    (layer, [(7, 5), (5, 3), (3,)]),
    (layer, [(2, 7, 5), (5, 3), (3,)]),
    (layer, [(2, 3, 4, 5), (2, 3, 5, 9), (9,)]),
    (gated, [(33,), (33,), (33, 33), (33,)]),
    (attention, [(2, 8, 6)] * 3),
    (attention, [(8, 6), (9, 6), (9, 6)]),
    (steps_of_slices, [(9, 40)]),
    (two_products, [(4, 4), (4, 4)]),
    (lambda x, y: x @ y, [(17,), (17,)]),
    (lambda x, y: x @ y, [(5, 17), (17,)]),
    (lambda x, w: x @ w.T + x[0, :9], [(5, 17), (9, 17)]),
]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHIR_NATIVE", "1")


def parts(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.complex64], ids=str)
@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_whole_program_is_one_call(number: int, dtype: Any) -> None:
    function, shapes = PROGRAMS[number]
    if number < 9 and dtype in (np.int32, np.complex64):
        pytest.skip("a program of real functions")
    scale = 9 if dtype is np.int32 else 1
    inputs = [normal(*shape, seed=k) * scale for k, shape in enumerate(shapes)]
    inputs = [x.astype(dtype) for x in inputs]
    jitted = jit(function, rules="numpy")
    wanted = parts(function(*inputs))
    for _ in range(5):
        assert all(map(same, parts(jitted(*inputs)), wanted))
    program = jitted.program(*inputs)
    assert program.machine_code is not None
    assert all(map(same, parts(program.machine_code(*inputs)), wanted))


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_other_inputs_take_python(number: int) -> None:
    """Strided, negative strides, unaligned, read-only, the same array twice, other shapes."""
    function, shapes = PROGRAMS[number]
    inputs = [normal(*shape, seed=k) for k, shape in enumerate(shapes)]
    jitted = jit(function, rules="numpy")
    jitted(*inputs)
    program = jitted.program(*inputs)
    variants: list[list[Any]] = []
    for make in (_strided, _reversed, _unaligned, _read_only):
        variants += [[make(x) if k == n else x for n, x in enumerate(inputs)] for k in (0, 1)]
    if len(inputs) > 1 and shapes[0] == shapes[1]:
        variants.append([inputs[0], inputs[0], *inputs[2:]])
    for variant in variants:
        for _ in range(2):
            assert all(map(same, parts(jitted(*variant)), parts(function(*variant))))
            expected = parts(interpret(program.graph, *variant[: len(program.graph.inputs)]))
            assert all(map(same, parts(program(*variant[: len(inputs)])), expected))
        assert all(map(same, parts(jitted(*inputs)), parts(function(*inputs))))


def _strided(x: Any) -> Any:
    return np.repeat(x, 2, axis=-1)[..., ::2]


def _reversed(x: Any) -> Any:
    return x[::-1].copy()[::-1] if x.ndim > 1 else x  # tracing refuses functions of vectors


def _unaligned(x: Any) -> Any:
    memory = np.empty(x.nbytes + 1, np.uint8)
    moved = memory[1:].view(x.dtype).reshape(x.shape)
    moved[...] = x
    return moved


def _read_only(x: Any) -> Any:
    x = x.copy()
    x.setflags(write=False)
    return x


def test_one_matrix_and_its_transpose() -> None:
    """NumPy calls another function of BLAS if both are one memory."""
    function = jit(lambda x, y: x @ y.T + 1, rules="numpy")
    x, y = normal(40, 33), normal(40, 33, seed=1)
    for left, right in ((x, y), (x, x), (x, y), (y, y), (x, x.copy())):
        for _ in range(5):
            assert same(function(left, right), left @ right.T + 1)


SORTS: list[Callable[..., Any]] = [
    lambda x: np.sort(x, axis=-1),
    lambda x: np.argsort(x, axis=-1),
    lambda x: np.argsort(x, axis=-1, kind="stable"),
    lambda x: np.sort(x[:, ::-1], axis=-1)[:, 1:] + 1,
    lambda x: np.sort(x.T, axis=-1) * 2,
]


@pytest.mark.parametrize("code", "fdiIlLqQ")
@pytest.mark.parametrize("shape", [(10, 10), (1, 100), (7, 1), (3, 300)], ids=str)
def test_sorts_are_sequences(shape: tuple[int, ...], code: str) -> None:
    """With zeros of both signs, infinities and NaN; an unstable order is NumPy's."""
    x = np.ceil(normal(*shape, dtype=np.float64) * 3)
    if code in "fd":
        x.flat[::11] = np.nan
        x.flat[1::13] = -np.inf
    x = np.abs(x).astype(code) if code.isupper() else x.astype(code)
    for sort in SORTS:
        function = jit(sort, rules="numpy")
        wanted = interpret(function.traced(x).graph, x)
        for _ in range(5):
            assert same(function(x), wanted)
        assert function.program(x).machine_code is not None or not x[:, 1:].size


FOLDS: list[Callable[..., Any]] = [
    lambda x: x.sum(axis=0),
    lambda x: x.max(axis=0, keepdims=True),
    lambda x: (x * 2).min(axis=1),
    lambda x: x[:, ::2].sum(axis=(0, 1)),
    lambda x: x.prod(axis=1),
    lambda x: ((x > 0).any(axis=0), (x < 9).all(axis=0)),
]


@pytest.mark.parametrize("code", "fdbBhlQ")
def test_folds_are_sequences(code: str) -> None:
    x = normal(5, 9, 6) * 2
    if code in "fd":
        x[0, 0], x[1, 2, 3], x[:, :, 5] = np.inf, np.nan, -0.0
    x = np.abs(x).astype(code) if code.isupper() else x.astype(code)
    means = [lambda x: x.mean(axis=0), lambda x: x - x.mean(axis=(0, 1))] if code in "fd" else []
    for fold in (*FOLDS, *means):
        function = jit(fold, rules="jax")
        wanted = parts(interpret(function.traced(x).graph, x))
        for _ in range(5):
            assert all(map(same, parts(function(x)), wanted))
        assert function.program(x).machine_code is not None


@pytest.mark.parametrize("lanes", [1, 7, 40, 300])
def test_folds_of_more_rows_than_the_dtype_holds(lanes: int) -> None:
    x = (normal(1100 // lanes * 2 + 300, lanes + 1) * 40).astype(np.int8)
    function = jit(lambda x: (x.min(axis=0), x.max(axis=0)), rules="numpy")
    for _ in range(3):
        assert all(map(same, function(x), (x.min(axis=0), x.max(axis=0))))


@pytest.mark.parametrize("count", [3, 7, 10, 100, 4097])
def test_means_of_floats_round_once(count: int) -> None:
    """NumPy divides float32 in float64."""
    random = np.random.default_rng(count)
    x = random.integers(0, 1 << 31, (count, 3)).astype(np.int32).view(np.float32)
    function = jit(lambda x: x.mean(axis=0), rules="numpy")
    with np.errstate(all="ignore"):
        small = [np.ldexp(x, -140), np.full((count, 2), 1e-45, np.float32)]
        x = np.concatenate([x, *small], axis=1)
        wanted = np.mean(x, axis=0)
    for _ in range(5):
        assert same(function(x), wanted)


def test_means_of_more_rows_than_float32_has_numbers_for() -> None:
    from ctypes import c_void_p

    from graphir.runtime.native.drivers.operations import mean_operation
    from graphir.runtime.native.probe import engine
    from graphir.runtime.program.tier import ColumnMean

    rows = (1 << 24) + 3
    sums = np.random.default_rng(0).uniform(1, 1e7, 1000).astype(np.float32)
    wanted = np.true_divide(sums, np.intp(rows), casting="unsafe", out=np.empty_like(sums))
    operation = mean_operation(ColumnMean(sums.dtype, sums.size, rows))
    record = (c_void_p * 1)(sums.ctypes.data)
    engine().FUNCTION(operation.function)(record, *operation.arguments)
    assert same(sums, wanted)


def test_a_sum_of_bools_is_a_bool() -> None:
    for rows in (9, 4000):  # a sequence, and a call of its own
        x = np.arange(5) < np.arange(rows)[:, None]
        g = Graph("bools", rules="max")
        g.output(ops.sum(g.input("bool", x.shape), axis=0))
        program, wanted = Program(g), interpret(g, x)
        for _ in range(3):
            assert program(x).tobytes() == wanted.tobytes()


EMPTY: list[tuple[Callable[..., Any], list[tuple[int, ...]]]] = [
    (np.sort, [(0,)]),
    (lambda x: np.argsort(x) + 1, [(3, 0)]),
    (lambda x, y: np.sort(np.stack([x, y])), [(0,), (0,)]),
    (lambda x, y, z: np.concatenate([x, y]) @ z, [(0, 3), (0, 3), (3, 4)]),
    (lambda x, y: np.roll(x, 1, axis=0) @ y, [(0, 3), (3, 4)]),
    (lambda x, y: np.concatenate([np.stack([x, x]).T.reshape(0, 3), y]) @ y.T, [(0, 3), (2, 3)]),
    (lambda x: np.tile(x, (2, 0)).sum(axis=0), [(3, 2)]),
    (lambda x: (x.sum(axis=0), x.mean(axis=1)), [(0, 3)]),
    (lambda x: x.sum(axis=0), [(3, 0)]),
    (lambda x: x.reshape(0), [(0,)]),
    (lambda x: (x[::-1], x.T.reshape(-1)), [(2, 0)]),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("number", range(len(EMPTY)))
def test_operations_on_arrays_without_elements(number: int) -> None:
    function, shapes = EMPTY[number]
    arrays = [normal(*shape) for shape in shapes]
    jitted, wanted = jit(function, rules="numpy"), parts(function(*arrays))
    for _ in range(5):
        assert all(map(same, parts(jitted(*arrays)), wanted))


# -- drawn programs


@st.composite
def drawn_graphs(draw: Any) -> tuple[Graph, list[Any]]:
    """Products, elementwise ops, reductions of rows and views, of small matrices."""
    graph = Graph("drawn")
    dtype = draw(st.sampled_from([DType.float32, DType.float64, DType.float16, DType.int64]))
    sizes = st.integers(1, 9) | st.sampled_from([16, 33])
    inputs: list[Any] = []
    pool: list[Symbol] = []
    for k in range(draw(st.integers(1, 3))):
        shape = (draw(sizes), draw(sizes))
        pool.append(graph.input(dtype, shape, name=f"x{k}"))
        inputs.append((normal(*shape, seed=k) * 3).astype(dtype.to_numpy()))
    pool.append(graph.constant[dtype]((normal(9, 9) * 2).astype(dtype.to_numpy())))
    for _ in range(draw(st.integers(2, 7))):
        pool.append(_drawn_op(draw, pool, dtype))
    outputs = [each for each in pool if each.op is not ops.input][-draw(st.integers(1, 2)) :]
    graph.output(*outputs)
    return graph, inputs


def _drawn_op(draw: Any, pool: list[Symbol], dtype: DType) -> Symbol:
    x = draw(st.sampled_from(pool))
    way = draw(st.integers(0, 10))
    fitting = [y for y in pool if x.rank == y.rank == 2 and x.shape[-1] == y.shape[0]]
    if way <= 1 and fitting:
        return x @ draw(st.sampled_from(fitting))
    if way == 2 and x.rank:
        return draw(st.sampled_from([ops.sum, ops.max]))(x, axis=-1, keepdims=draw(st.booleans()))
    if way == 3 and x.rank == 2:
        return draw(st.sampled_from([lambda s: s.T, lambda s: s[:1], lambda s: s[:, ::-1]]))(x)
    if way == 4 and dtype.is_float:
        return draw(st.sampled_from([ops.tanh, ops.exp]))(x)
    if way == 7 and x.rank:
        reduce = draw(st.sampled_from([ops.sum, ops.max, ops.min, ops.prod]))
        return reduce(x, axis=0, keepdims=draw(st.booleans()))
    if way == 8 and x.rank:
        return ops.sort(x, axis=-1)
    others = [y for y in pool if y.shape == x.shape] or [x]
    y = draw(st.sampled_from(others))
    if way == 9 and x.rank == 1:
        return ops.stack([x, y, x], axis=draw(st.integers(0, 1)))
    if way == 9 and x.rank == 2 and x.shape[0] < 20:
        move = draw(st.sampled_from([ops.tile, ops.concat, ops.repeat, ops.roll]))
        arguments = {ops.tile: ((1, 2),), ops.repeat: (2, 0), ops.roll: (2, 1)}
        return ops.concat([x, y], axis=1) if move is ops.concat else move(x, *arguments[move])
    return draw(st.sampled_from([ops.add, ops.multiply, ops.maximum]))(x, y)


@settings(max_examples=150, deadline=None)
@given(drawn_graphs())
def test_drawn_programs(drawn: tuple[Graph, list[Any]]) -> None:
    graph, inputs = drawn
    program = Program(graph, native="now")
    wanted = parts(interpret(graph, *inputs))
    for _ in range(5):
        assert all(map(same, parts(program(*inputs)), wanted))


def test_drawn_programs_are_sequences() -> None:
    """The property above is about machine code: most of its programs become one call."""
    counts = [0, 0]

    @settings(max_examples=60, deadline=None, database=None)
    @given(drawn_graphs())
    def count(drawn: tuple[Graph, list[Any]]) -> None:
        program = Program(drawn[0], native="now")
        for _ in range(5):
            program(*drawn[1])
        counts[program.machine_code is not None] += 1

    count()
    assert counts[1] > 10


# -- when, and beside what


def test_what_is_called_long_enough_becomes_a_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the background, regions or not; the first calls compile nothing."""
    monkeypatch.setenv("GRAPHIR_NATIVE", "")
    monkeypatch.setattr(COST, "COMPILE_COST", 1e5)
    monkeypatch.setattr(COST, "COMPILE_COST_INSTRUCTION", 0)
    monkeypatch.setattr(COST, "IMPORT_COST", 1e5)
    monkeypatch.setattr(COST, "LOOK_CALLS", 8)
    for function in (lambda x, y: x @ y, lambda x, y: np.tanh(x @ y)):
        graph = jit(function, rules="numpy").traced(normal(8, 8), normal(8, 8)).graph
        program, x = Program(graph), normal(8, 8)
        program(x, x)
        assert program.machine_code is None
        for _ in range(1000):
            program(x, x)
            if program.machine_code is not None:
                break
            time.sleep(0.001)  # for the background thread
        assert same(program.machine_code(x, x), function(x, x))


def test_a_product_of_other_bits_stays_in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "multiplies_as_numpy", lambda dtype: False)
    monkeypatch.setattr(sequences, "_ready", {})
    function = jit(layer, rules="numpy")
    inputs = normal(5, 4), normal(4, 3), normal(3)
    for _ in range(5):
        assert same(function(*inputs), layer(*inputs))
    assert function.program(*inputs).machine_code is None


def test_the_probe_compares_bits() -> None:
    assert sequences.multiplies_as_numpy(np.dtype(np.float32))
    assert not sequences.multiplies_as_numpy(np.dtype("V4"))


def test_a_failure_of_the_compiler_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError("no memory")

    monkeypatch.setattr(sequences, "_ready", {})
    monkeypatch.setattr(sequences, "_driver", fail)
    function = jit(layer, rules="numpy")
    inputs = normal(6, 4), normal(4, 3), normal(3)
    for _ in range(5):
        assert same(function(*inputs), layer(*inputs))
    assert function.program(*inputs).machine_code is None


@pytest.mark.parametrize("size", [8, 90])
def test_threads_call_one_sequence(size: int) -> None:
    """Each call has scratch memory of its own; long calls release the GIL."""
    function = jit(lambda x, w: np.tanh(np.maximum(x @ w, 0) @ w) @ w, rules="numpy")
    cases = [(normal(size, size, seed=k), normal(size, size, seed=9)) for k in range(4)]
    wanted = [function.__wrapped__(*case) for case in cases]
    function(*cases[0])
    failures: list[int] = []

    def call(k: int) -> None:
        for _ in range(300):
            if not same(function(*cases[k]), wanted[k]):
                failures.append(k)

    threads = [threading.Thread(target=call, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


VIEWS = ("{}[::-1]", "{}.T", "{}[1:]", "{}[:, ::2]", "{}[None]", "{}.reshape(-1)", "{}[2]")


def test_views_of_results_that_are_views_themselves() -> None:
    """A result is a copy of a view, in C order; a view of it lies in the memory of the other."""
    b = np.arange(30.0).reshape(5, 6)
    for first, second in itertools.product(VIEWS, VIEWS[:-1]):
        u, own = first.format("b"), "(b * 2)"
        lines = f"u = {u}; w = {first.format(own)}; v = {second.format('u')}"
        source = f"def f(b): {lines}; return u, {second.format('w')}, v, v + 1, w, u + 1"
        space: dict[str, Any] = {"np": np}
        exec(source, space)
        try:
            space["f"](b)
        except IndexError:
            continue
        graph = trace(space["f"], b, rules="numpy").graph
        program, expected = Program(graph, native="now"), interpret(graph, b)
        assert all(map(same, program(b), expected)), source
        assert all(map(same, program(b), expected)), source
