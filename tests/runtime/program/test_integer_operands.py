"""Large products of integers read the operands of casts; what else reads a cast has its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from graphir import DType, Graph, Symbol, ops
from graphir.runtime import Program, interpret
from graphir.runtime.native import is_installed
from graphir.runtime.program.region_steps import RegionStep
from tests.support.evaluator import same
from tests.support.tables import every

Function: TypeAlias = "Callable[[Symbol, Symbol], list[Symbol]]"

M, K, N = 70, 90, 80
TIERS = ["off", "now"] if is_installed() else ["off"]


def product(a: Symbol, b: Symbol) -> list[Symbol]:
    return [a.cast("int32") @ b.cast("int32")]


def with_cast(a: Symbol, b: Symbol) -> list[Symbol]:
    wide = a.cast("int32")
    return [wide @ b.cast("int32"), wide]


def with_sum(a: Symbol, b: Symbol) -> list[Symbol]:
    wide = a.cast("int64")
    return [wide @ b.cast("int64"), wide + 1]


def square(a: Symbol, b: Symbol) -> list[Symbol]:
    left, right = a[:, :M].cast("int32"), b[:M, :M].cast("int32")
    return [(left @ right) @ left.transpose(0, 1)]


def with_update(a: Symbol, b: Symbol) -> list[Symbol]:
    source = a + a
    wide = source.cast("int32")
    updates = source[:, :1] * 3
    changed = ops.slice_update(source, updates, start=(0, 0), stop=(M, 1), step=(1, 1))
    return [wide @ b.cast("int32"), changed]


def pair(dtype: str) -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    bits = (random.integers(0, 256, shape, np.uint8) for shape in ((M, K), (K, N)))
    if dtype == "bool":
        left, right = (each > 99 for each in bits)
    else:
        left, right = (each.astype(dtype) for each in bits)
    return left, right


def check(program: Program, graph: Graph, inputs: Any) -> None:
    expected = interpret(graph, *inputs)
    results = program(*inputs)
    if len(graph.outputs) == 1:
        results, expected = (results,), (expected,)
    assert all(same(*each) for each in zip(results, expected, strict=True))


def graph_of(function: Function, dtype: str) -> Graph:
    graph = Graph("operands")
    left, right = (graph.input(DType(dtype), shape) for shape in ((M, K), (K, N)))
    graph.output(*function(left, right))
    return graph


@every("native", TIERS)
@every("dtype", ["bool", "int8", "uint8", "int16", "uint16"])
@every("function", [product, with_cast, with_sum])
def test_products_of_casts_agree_with_the_interpreter(
    function: Function, dtype: str, native: Any
) -> None:
    graph, inputs = graph_of(function, dtype), pair(dtype)
    program = Program(graph, native=native)
    for _ in range(2):
        check(program, graph, inputs)


@every("native", TIERS)
@every("function", [square, with_update])
def test_products_of_views_and_of_written_arrays(function: Function, native: Any) -> None:
    graph, inputs = graph_of(function, "int8"), pair("int8")
    program = Program(graph, native=native)
    for _ in range(2):
        check(program, graph, inputs)
    strided = [np.asfortranarray(each) for each in inputs]
    check(program, graph, strided)


def test_casts_that_products_alone_read_are_no_steps() -> None:
    for function, count in ((product, 0), (with_cast, 1), (with_sum, 1)):
        plan = Program(graph_of(function, "int8")).plan({})
        assert sum(isinstance(step, RegionStep) for step in plan.bound) == count


def test_explain_says_how_integers_are_multiplied() -> None:
    graph = graph_of(product, "int8")
    assert "products of floats by BLAS" in Program(graph, native="off").explain(*pair("int8"))
    text = Program(graph, native="now").explain(*pair("int8"))
    assert ("blocks in machine code" in text) is is_installed()
