"""Products of integers with vectors, rows and columns as sums: the bits of `interpret`."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphir import DType, Graph, ops
from graphir.runtime import Program, interpret
from graphir.runtime.native import is_installed
from graphir.runtime.program.cutting import Call
from tests.support.evaluator import same
from tests.support.native_runs import TIERS
from tests.support.tables import every

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
SHAPES: list[tuple[Any, Any]] = [
    (("m", "k"), ("k",)),
    (("k",), ("k", "n")),
    (("k",), ("k",)),
    ((3, "m", "k"), ("k",)),
    (("k",), (2, "k", "n")),
    ((1, "k"), ("k", "n")),
    (("m", "k"), ("k", 1)),
    ((1, "k"), ("k", 1)),
]


def numbers(random: np.random.Generator, dtype: str, shape: Any, sizes: dict[str, int]) -> Any:
    storage, limits = DType(dtype).storage, np.iinfo(dtype)
    shape = [sizes.get(dim, dim) for dim in shape]
    x = random.integers(limits.min, limits.max, shape, storage, endpoint=True)
    return x if random.random() < 0.5 else np.asfortranarray(x)[..., ::-1]


@given(data=st.data(), seed=st.integers(0, 10_000))
def test_they_agree_with_the_interpreter(data: st.DataObject, seed: int) -> None:
    random = np.random.default_rng(seed)
    shapes = data.draw(st.sampled_from(SHAPES))
    dtype = data.draw(st.sampled_from(INTEGERS))
    wide = [each for each in INTEGERS if DType(dtype).exact_in(DType(each))]
    to = data.draw(st.sampled_from(wide))
    graph = Graph("vectors", rules="numpy")
    x, y = (graph.input(dtype, shape) for shape in shapes)
    product = x.cast(to) @ y.cast(to)
    graph.output(product, ops.maximum(product, 1) + 1)
    native = data.draw(st.sampled_from(["off", "now"] if is_installed() else ["off"]))
    program = Program(graph, threads=data.draw(st.integers(1, 2)), native=native)
    assert not any(isinstance(s, Call) and s.symbol.op is ops.matmul for s in program.steps)
    for _ in range(2):
        sizes = {dim: data.draw(st.integers(0, 200)) for dim in ("m", "n", "k")}
        inputs = [numbers(random, dtype, shape, sizes) for shape in shapes]
        results = zip(program(*inputs), interpret(graph, *inputs), strict=True)
        assert all(same(*pair) for pair in results)


@every("shapes", [((2000, 1500), (1500,)), ((1500,), (1500, 2000))])
def test_large_ones_on_threads(shapes: Any) -> None:
    random = np.random.default_rng(0)
    graph = Graph("vectors", rules="numpy")
    graph.output(graph.input("int8", shapes[0]).cast("int32") @ graph.input("int32", shapes[1]))
    inputs = [numbers(random, *pair, {}) for pair in zip(("int8", "int32"), shapes, strict=True)]
    for native in TIERS:
        program = Program(graph, threads=2, native=native)
        assert same(program(*inputs), interpret(graph, *inputs))


def test_floats_stay_products() -> None:
    graph = Graph("vectors")
    graph.output(graph.input("float32", (4, 5)) @ graph.input("float32", (5,)))
    assert any(isinstance(step, Call) for step in Program(graph).steps)
