"""Every elementwise op in machine code, on every dtype: the bits of `interpret`."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from graphir import DType, ExecutionError, Graph, Symbol, ops
from graphir.runtime import Program, interpret
from graphir.semantics.kernels import KERNELS
from tests.support.native_runs import (
    casts,
    check,
    compiled_for,
    every_op,
    graph_of,
    left,
    needs_llvmlite,
    sources,
    step_by_step,
    values,
)
from tests.support.strategies import STRONG

pytestmark = needs_llvmlite

SOME = [
    *(DType.bool, DType.int8, DType.uint64, DType.bfloat16, DType.float32, DType.float64),
    *(DType.complex64, DType.float8_e4m3fn),
]
OTHERS = {
    "x86-64": [DType.float32, DType.float16, DType.float64, DType.int16, DType.uint64],
    "haswell": [DType.float32, DType.float16, DType.float8_e5m2, DType.int64],
}
"""Other processors than that which there is, whose instructions it has, and dtypes for them."""
SHAPES: dict[str, Sequence[Any]] = {
    "0-d first": [(), ("n",), ("n",)],
    "0-d second": [("n",), (), ()],
    "row": [("m", "n"), ("n",), ("m", 1)],
    "column": [("m", 1), ("m", "n"), ()],
    "row and column": [("n",), ("m", 1), ("m", "n")],
}


@pytest.fixture(autouse=True)
def _step_by_step() -> Iterator[None]:
    with step_by_step():
        yield


@pytest.mark.parametrize("dtype", STRONG, ids=str)
def test_every_op_on_arrays(dtype: DType) -> None:
    graph = graph_of(partial(every_op, dtype), *[(dtype, ("n",))] * 3)
    assert len({one.op for one in graph.outputs}) > 30
    check(graph, *(values(dtype, 1100, seed) for seed in range(3)))


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("dtype", SOME, ids=str)
def test_every_op_on_broadcast_operands(dtype: DType, shapes: Any) -> None:
    """Each of the operands is also one that it does not share with others."""
    graph = graph_of(partial(every_op, dtype, operands=2), *((dtype, each) for each in shapes))
    sizes = {"m": 3, "n": 1100} if dtype.is_float else {"m": 70, "n": 37}
    concrete = [[sizes.get(dim, dim) for dim in each] for each in shapes]
    counts = [int(np.prod(each, dtype=int)) for each in concrete]
    inputs = [values(dtype, n, k) for k, n in enumerate(counts)]
    check(graph, *(x.reshape(each) for x, each in zip(inputs, concrete, strict=True)))


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="another architecture")
@pytest.mark.parametrize("cpu", OTHERS)
def test_every_op_and_cast_on_other_processors(cpu: str) -> None:
    with compiled_for(cpu):
        for dtype in OTHERS[cpu]:
            inputs = [values(dtype, 1100, seed) for seed in range(3)]
            check(graph_of(partial(every_op, dtype), *[(dtype, ("n",))] * 3), *inputs)
            check(graph_of(casts, (dtype, ("n",))), sources(dtype))


@pytest.mark.parametrize("dtype", [d for d in STRONG if d.is_integer], ids=str)
def test_shifts_by_any_amount(dtype: DType) -> None:
    graph = graph_of(
        lambda x, y: [ops.left_shift(x, y), ops.right_shift(x, y)], *[(dtype, ("n",))] * 2
    )
    amounts = np.array([0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 31, 32, 33, 63, 64, 65, 127, -1, -64])
    amounts = amounts.astype(np.int8 if dtype.narrow else dtype.storage).astype(dtype.storage)
    x, y = np.meshgrid(values(dtype, 60), amounts)
    check(graph, x.ravel(), y.ravel())

    def known(x: Symbol) -> list[Symbol]:
        by = [x.graph.constant(amount, dtype) for amount in amounts]
        return [shift(x, y) for y in by for shift in (ops.left_shift, ops.right_shift)]

    check(graph_of(known, (dtype, ("n",))), values(dtype, 60))


@pytest.mark.parametrize("dtype", [d for d in STRONG if d.is_integer], ids=str)
def test_division_of_any_integers(dtype: DType) -> None:
    """By 0, of the least by -1, of all signs."""
    graph = graph_of(
        lambda x, y: [ops.floor_divide(x, y), ops.remainder(x, y)], *[(dtype, ("n",))] * 2
    )
    x, y = np.meshgrid(values(dtype, 40), values(dtype, 40, 1))
    check(graph, x.ravel(), y.ravel())


# -- powers of signed integers


def powers(dtype: DType, exponent: Any) -> Graph:
    graph = Graph("powers", rules="explicit")
    x = graph.input(dtype, ("n",))
    y = graph.constant(exponent, dtype) if exponent is not None else graph.input(dtype, ("n",))
    graph.output(x * ops.pow(x + x, y) - x)
    return graph


@pytest.mark.parametrize("dtype", [d for d in STRONG if d.family == "int"], ids=str)
def test_powers_of_signed_integers(dtype: DType) -> None:
    """A known exponent is one of the region; of others the rest is in regions."""
    x, y = values(dtype, 1100), np.abs(values(dtype, 1100, 1).astype(np.int64) % 2)
    for exponent in (0, 1):
        check(powers(dtype, exponent), x)
    if dtype.bits > 2:
        check(powers(dtype, 3), x)
    check(powers(dtype, None), x, (y * 3 if dtype.bits > 2 else y).astype(dtype.storage))


def test_a_negative_exponent_is_refused() -> None:
    """The least of all is told, whichever the block and whether it is known."""
    x, y = np.arange(5000, dtype=np.int32), np.arange(5000, dtype=np.int32)
    y[[10, 4000]] = -3, -7
    for graph, inputs in ((powers(DType.int32, None), (x, y)), (powers(DType.int32, -7), (x,))):
        for run in (partial(interpret, graph), Program(graph, native="now")):
            with pytest.raises(ExecutionError, match=r"int32 \*\* -7 is a fraction"):
                run(*inputs)


# -- what is not native


def test_a_region_with_an_unknown_op_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """An op that has no emitter, nor a ufunc, runs all the same, and is named."""
    from graphir.runtime.native.instruction_selection import NativeCode

    kernels = {**NativeCode.tables["numpy"], "erf": KERNELS["erf"]}
    monkeypatch.setattr(NativeCode, "tables", {"numpy": kernels})
    graph = graph_of(lambda x: [ops.erf(x) + x], (DType.float64, ("n",)))
    program, x = Program(graph, native="now"), values(DType.float64, 1100)
    assert np.array_equal(program(x), interpret(graph, x), equal_nan=True)
    assert left(program) == ["no machine code for erf of float64"]
