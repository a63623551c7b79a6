"""Cumulative sums and products in machine code have the bits of the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphir import DType, Graph, ops
from graphir.runtime import Program, interpret, jit
from tests.support.evaluator import same
from tests.support.native_runs import needs_llvmlite, step_by_step
from tests.support.tables import every

pytestmark = needs_llvmlite

DTYPES = ["float32", "float64", "float16", "int8", "int32", "int64", "uint8", "bool"]
SHAPES: list[tuple[tuple[int, ...], int]] = [
    *(((1,), 0), ((70_000,), 0), ((1, 9), 1), ((5, 2), 0), ((3, 0), 1), ((0, 3), 0)),
    *(((17, 1300), 1), ((1300, 17), 0), ((9, 40, 70), 1), ((9, 40, 70), 0), ((3, 900, 8), 1)),
    *(((2, 300, 63), 1), ((200, 64), 0), ((7, 5, 3, 200), 2), ((400, 300), 1), ((23, 1, 999), 1)),
]


@every("dtype", DTYPES)
@every("op", [ops.cumulative_sum, ops.cumulative_prod])
@every(("shape", "axis"), SHAPES)
def test_accumulations(op: Any, shape: tuple[int, ...], axis: int, dtype: str) -> None:
    graph = Graph("sums", rules="jax")
    x = graph.input(dtype, shape)
    graph.output(op(x, axis=axis), op(x + x, axis=axis) * 2)
    draw = np.random.default_rng(0).normal(size=shape)
    values = draw * 9 if op is ops.cumulative_sum else np.exp2(draw / 8)
    if values.size > 3 and DType[dtype].is_float:
        values.flat[0], values.flat[-2] = -0.0, np.nan
    array = values.astype(DType[dtype].storage)
    with np.errstate(all="ignore"):
        meant = interpret(graph, array)
    for threads in (1, 2):
        program = Program(graph, threads=threads, native="now")
        for _ in range(3):
            assert all(map(same, program(array), meant))
        with step_by_step():
            assert all(map(same, program(array), meant))
        assert all(map(same, program(np.asfortranarray(array)), meant))


def test_a_program_of_accumulations_is_one_call() -> None:
    x = np.random.default_rng(0).normal(size=(300, 700)).astype(np.float32)

    def returns(x: Any) -> Any:
        return np.exp(np.cumsum(np.log1p(x * 0.01), axis=-1)), np.cumprod(x, axis=0)[-1]

    function = jit(returns, rules="numpy")
    program = Program(function.traced(x).graph, native="now")
    for _ in range(3):
        assert all(map(same, program(x), returns(x)))
    assert program.machine_code
