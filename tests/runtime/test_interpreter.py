"""The interpreter: exact arithmetic in narrow floats, memory, what results are, and their dims."""

from __future__ import annotations

import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from graphir import DType, ExecutionError, Graph, ops
from graphir.passes import implicit_cast, lower
from graphir.runtime import execute, interpret
from tests.support.evaluator import same
from tests.support.tables import every

BOTH = every("run", [execute, interpret])
BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
UNARY = {"sqrt": np.sqrt, "negative": np.negative, "abs": np.abs, "reciprocal": np.reciprocal}


def graph_of(op: Any, *dtypes: Any, **settings: Any) -> Graph:
    graph = Graph("one", **settings)
    graph.output(op(*(graph.input(dtype, "n") for dtype in dtypes)))
    return graph


# -- arithmetic

NARROW = every("dtype", [ml_dtypes.bfloat16, np.float16])


def patterns(dtype: Any, bits: Any) -> Any:
    return np.asarray(bits, np.uint16).view(dtype)


@NARROW
@every("name", BINARY)
def test_sixteen_bit_arithmetic_on_a_million_pairs(name: str, dtype: Any) -> None:
    """Bit for bit what ml_dtypes and NumPy round, which shows that float32 in between is exact."""
    random = np.random.default_rng(0)
    x, y = (patterns(dtype, random.integers(0, 2**16, 10**6)) for _ in range(2))
    with np.errstate(all="ignore"):
        expected = BINARY[name](x, y)
    assert same(execute(graph_of(ops.find(name), dtype, dtype), x, y), expected)


@NARROW
@every("name", BINARY)
def test_sixteen_bit_arithmetic_of_neighbours_and_of_every_value_with_telling_ones(
    name: str, dtype: Any
) -> None:
    every = np.arange(2**16)
    others = [every, every[::-1], every ^ 0x8000, every ^ 1]
    others += [np.full(2**16, one) for one in (0, 0x8000, 1, 0x3F80, 0x3C01, 0x7F7F, 0x7BFF)]
    graph = graph_of(ops.find(name), dtype, dtype)
    for other in others:
        x, y = patterns(dtype, every), patterns(dtype, other)
        with np.errstate(all="ignore"):
            expected = BINARY[name](x, y)
            # Which of 0.0 and -0.0 is greater is left to the machine.
            told = (x != 0) | (y != 0) | (name not in ("maximum", "minimum"))
        assert same(execute(graph, x, y)[told], expected[told])


@NARROW
@every("name", UNARY)
def test_sixteen_bit_functions_of_every_value(name: str, dtype: Any) -> None:
    every = patterns(dtype, np.arange(2**16))
    with np.errstate(all="ignore"):
        expected = UNARY[name](every)
    assert same(execute(graph_of(ops.find(name), dtype), every), expected)


def test_tensor_float32_rounds_every_result_and_ties_as_asked() -> None:
    tie = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 2.0**-11], np.float32)
    for ties, expected in (
        ("even", [1, 1 + 4 * 2.0**-11, -1]),
        ("away", [1 + 2.0**-10, 1 + 4 * 2.0**-11, -1 - 2.0**-10]),
    ):
        entry = graph_of(ops.positive, DType.tensor_float32, tf32=ties)
        assert execute(entry, tie).tolist() == expected
        cast = Graph("cast", tf32=ties)
        cast.output(cast.input("float32", "n").cast("tensor_float32"))
        assert execute(cast, tie).tolist() == expected
        added = graph_of(ops.add, DType.tensor_float32, DType.tensor_float32, tf32=ties)
        one = np.array([1, 1 + 2.0**-10, -1], np.float32)  # representable, their sums are ties
        small = np.array([2.0**-11, 2.0**-11, -(2.0**-11)], np.float32)
        found = execute(added, one, small)
        assert found.dtype == np.float32 and found.tolist() == expected
        assert Graph.parse(str(lower(added))).tf32 == ties


@every("dtype", ["index", "address"])
@BOTH
def test_index_and_address_are_uint64(dtype: str, run: Any) -> None:
    values = np.array([0, 1, 2**64 - 1], np.uint64)
    found = run(graph_of(ops.add, dtype, dtype), values, values)
    assert found.dtype == np.uint64
    assert found.tolist() == [0, 2, 2**64 - 2]


@BOTH
def test_bfloat16_comes_as_ml_dtypes_has_it(run: Any) -> None:
    x = np.array([1, 257], ml_dtypes.bfloat16)
    found = run(graph_of(ops.square, "bfloat16"), x)
    assert found.dtype == ml_dtypes.bfloat16
    assert found.tolist() == [1, 65536]  # 257 is 256 already


@every("name", ["add", "less", "maximum", "where"])
def test_no_kernel_converts(name: str) -> None:
    """A lowered graph from which a cast is taken by force does not run."""
    graph = Graph("forced")
    x, y = graph.input("int16", "n"), graph.input("float32", "n")
    op = ops.find(name)
    graph.output(op(x != 0, x, y) if name == "where" else op(x, y))
    lowered = lower(graph)
    user = lowered.outputs[0]
    cast = next(arg for arg in user.args if arg.op is ops.cast)
    assert cast.source[0].source is DType.int16
    user.args = tuple(arg.args[0] if arg is cast else arg for arg in user.args)
    ones = np.ones(2, np.int16), np.ones(2, np.float32)
    with pytest.raises((TypeError, ValueError)):
        interpret(lowered, *ones)
    assert same(interpret(graph, *ones), interpret(implicit_cast(graph), *ones))


# -- layout


@every("op", [ops.exp, ops.sinh, ops.sum, ops.softmax])
def test_a_strided_input_counts_as_a_contiguous_one(op: Any) -> None:
    wide = np.random.default_rng(2).standard_normal((50, 64)).astype(np.float32)
    graph = Graph("strided")
    graph.output(op(graph.input("float32", ("n", "m"))))
    for strided in (wide[:, ::2], wide[::-1], wide.T):
        assert same(interpret(graph, strided), interpret(graph, np.ascontiguousarray(strided)))


@BOTH
def test_results_are_contiguous(run: Any) -> None:
    graph = Graph("moved")
    x = graph.input("float32", ("n", "m"))
    graph.output(x.T, x[:, 1:], ops.flip(x), x.unsqueeze(0).broadcast_to(2, "n", "m"))
    for result in run(graph, np.ones((3, 4), np.float32)):
        assert result.flags.c_contiguous


# -- memory


@BOTH
def test_a_value_is_freed_after_its_last_use(run: Any) -> None:
    size = 2_000_000
    graph = Graph("long")
    first = value = graph.input("float32", "n")
    for step in range(60):
        value = ops.abs(value + first) if step % 2 else value * 0.5
    graph.output(value)
    array = np.ones(size, np.float32)
    tracemalloc.start()
    try:
        run(graph, array)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * array.nbytes


@BOTH
def test_what_no_output_needs_is_not_computed(run: Any) -> None:
    graph = Graph("dead")
    x = graph.input("int32", ())
    _ = x**-1  # would raise
    graph.output(x + 1)
    assert run(graph, 4) == 5


def aliased() -> Graph:
    graph = Graph("aliased")
    x = graph.input("float32", ("n", 2))
    tf = graph.input("tensor_float32", "n")
    known = graph.constant(np.ones((2, 2), np.float32))
    made = x + 1
    graph.output(
        *(x, x, x.reshape(-1), x[1:], x.T, tf, tf.cast("float32"), known, known),
        *(known.reshape(4), graph.full["int8"](1, (2, 2)), known.broadcast_to(3, 2, 2)),
        *(made, made, made.reshape(-1), ops.positive(x), made.cast("float32"), x.rebind("n", 2)),
    )
    return graph


@BOTH
def test_results_alias_nothing_and_can_be_written_to(run: Any) -> None:
    graph = aliased()
    inputs = np.ones((3, 2), np.float32), np.ones(3, np.float32)
    found = run(graph, *inputs)
    before = [result.copy() for result in found]
    for i, result in enumerate(found):
        result[...] = 7
        for other, kept in zip(found[i + 1 :], before[i + 1 :], strict=True):
            assert same(other, kept)
    assert all((array == 1).all() for array in inputs)
    again = run(graph, *inputs)
    assert all(map(same, again, before))


@BOTH
def test_results_can_be_inputs_of_the_next_run(run: Any) -> None:
    graph = graph_of(ops.square, "float32")
    value = np.full(3, 2, np.float32)
    for _ in range(3):
        value = run(graph, value)
    assert value.tolist() == [256, 256, 256]


# -- inputs and dims


@BOTH
def test_dims_are_bound_by_inputs_and_serve_the_whole_graph(run: Any) -> None:
    graph = Graph("dims")
    x = graph.input("int64", ("2*n",), name="x")
    y = graph.input("int64", ("n-1",), name="y")
    steps = graph.range["int64"](0, x.shape[0])
    ends = ops.concat([x[1:] - x[:-1], y])
    graph.output(x * steps, ends, ops.shape_of(ends), graph.full["int8"](3, ("n", "n+1")))
    for n in (1, 2, 5):
        long, short = np.arange(2 * n), np.arange(n - 1)
        first, second, sizes, third = run(graph, y=short, x=long)
        assert first.tolist() == (long * long).tolist()
        assert second.tolist() == [1] * (2 * n - 1) + short.tolist()
        assert sizes.tolist() == [3 * n - 2]
        assert third.shape == (n, n + 1) and (third == 3).all()
    with pytest.raises(ExecutionError, match="y"):
        run(graph, np.arange(4), np.arange(3))


@BOTH
def test_empty_arrays(run: Any) -> None:
    graph = Graph("empty")
    x = graph.input("int16", ("n", 3))
    graph.output(x + 1.5 * x.cast("float32"), x.sum(axis=0), ops.mean(x.cast("float32")))
    added, total, mean = run(graph, np.empty((0, 3), np.int16))
    assert added.shape == (0, 3) and added.dtype == np.float32
    assert total.tolist() == [0, 0, 0] and total.dtype == np.int16
    assert np.isnan(mean)


@BOTH
def test_one_output_is_an_array_several_are_a_tuple(run: Any) -> None:
    one, two = Graph("one"), Graph("two")
    one.output(one.input("int8") + 1)
    x = two.input("int8")
    two.output(x + 1, x - 1)
    found = run(one, 1)
    assert isinstance(found, np.ndarray) and found.shape == () and found == 2
    assert [int(value) for value in run(two, 1)] == [2, 0]
    assert isinstance(run(two, 1), tuple)
