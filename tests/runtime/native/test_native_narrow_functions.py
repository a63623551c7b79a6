"""Costly functions of narrow floats are look-ups: all values, and programs that mix them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphir import DType, Graph, PromotionError, Symbol, ops
from graphir.runtime import Program, interpret
from graphir.runtime.native.instruction_selection import NarrowFunction
from tests.support.evaluator import same
from tests.support.native_runs import check, needs_llvmlite
from tests.support.tables import every

pytestmark = needs_llvmlite

COSTLY = [
    *(ops.cbrt, ops.expm1, ops.log1p, ops.log2, ops.log10, ops.sin, ops.cos, ops.tan, ops.asin),
    *(ops.acos, ops.atan, ops.sinh, ops.cosh, ops.tanh, ops.asinh, ops.acosh, ops.atanh, ops.erf),
    *(ops.gelu, ops.sigmoid, ops.silu, ops.softplus),
]
CHEAP = [ops.abs, ops.negative, ops.sqrt, ops.exp, ops.floor, ops.square, ops.relu]
NARROW = ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float6_e2m3fn"]


def patterns(dtype: DType) -> Any:
    """Every value of a dtype, NaN of all payloads among them."""
    width = 8 * dtype.storage.itemsize
    bits = np.arange(1 << min(width, dtype.bits), dtype=f"u{width // 8}")
    return bits.view(dtype.storage)


def look_ups(program: Program) -> int:
    """The look-ups in the machine code of a program."""
    kernels = [program.kernels(number) for number in range(len(program.steps))]
    return sum(
        isinstance(instruction[0], NarrowFunction)
        for each in kernels
        for instruction in getattr(each, "code", None).instructions
    )


@every("dtype", NARROW)
def test_all_values(dtype: str) -> None:
    graph = Graph("functions")
    x = graph.input(dtype, ("n",))
    graph.output(*[op(x) for op in (*COSTLY, *CHEAP)])
    check(graph, patterns(DType(dtype)))
    assert look_ups(Program(graph, native="now")) == len(COSTLY)


def test_wide_values_have_no_table() -> None:
    graph = Graph("function")
    x = graph.input("float32", ("n",))
    graph.output(ops.tanh(x), ops.tanh(x.cast("bfloat16").cast("float32") + x))
    assert not look_ups(Program(graph, native="now"))


@given(data=st.data(), seed=st.integers(0, 10_000))
def test_programs_of_narrow_floats(data: st.DataObject, seed: int) -> None:
    random = np.random.default_rng(seed)
    dtypes = [data.draw(st.sampled_from([*NARROW[:2], "float32"])) for _ in range(2)]
    graph = Graph("mixed", rules="jax")
    rows, columns = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 70))
    values: list[Symbol] = [graph.input(dtypes[0], ("m", "n")), graph.input(dtypes[1], ("n",))]
    for _ in range(data.draw(st.integers(1, 6))):
        x = data.draw(st.sampled_from(values))
        kind = data.draw(st.sampled_from(["costly", "cheap", "add", "cast"]))
        if kind == "costly":
            values.append(data.draw(st.sampled_from(COSTLY))(x))
        elif kind == "cheap":
            values.append(data.draw(st.sampled_from(CHEAP))(x))
        elif kind == "add":
            with suppress(PromotionError):
                values.append(x + data.draw(st.sampled_from(values)))
        else:
            values.append(x.cast(data.draw(st.sampled_from([*NARROW, "float32", "float64"]))))
    graph.output(*values[-2:])
    inputs: list[Any] = []
    for symbol, shape in zip(graph.inputs, ((rows, columns), (columns,)), strict=True):
        bits = random.integers(0, 256, (*shape, symbol.dtype.storage.itemsize), np.uint8)
        x = bits.view(symbol.dtype.storage)[..., 0]
        inputs.append(x if data.draw(st.booleans()) else np.flip(x))
    check(graph, *inputs, threads=data.draw(st.integers(1, 2)), whole=False)


def test_threads_share_a_table() -> None:
    graph = Graph("large")
    graph.output(ops.tanh(graph.input("bfloat16", ("n",))))
    x = np.resize(patterns(DType.bfloat16), 3_000_001)
    assert same(Program(graph, threads=2, native="now")(x), interpret(graph, x))
