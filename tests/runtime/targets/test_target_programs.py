"""Drawn programs on other engines: StableHLO on its interpreter and on XLA, and JAX under jit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, assume, given, note, settings
from hypothesis import strategies as st

pytest.importorskip("jax", reason="JAX is not installed, so nothing is run by it")

import jax

from graphir import DType, Graph, GraphirError, Symbol, ops
from graphir.runtime import interpret, targets
from graphir.runtime.binding import sizes_of
from tests.runtime.targets.hlo import compiled, interpreted
from tests.support.drawing import Program, programs
from tests.support.engines import ADDED, agree, every, near, settled, steps
from tests.support.evaluator import same

Array = Any
Engine = Callable[[Graph, Sequence[Array]], Sequence[Array]]
NARROW = {DType.float6_e2m3fn, DType.float6_e3m2fn}
"""The dtypes that XLA has not."""


@pytest.fixture(autouse=True)
def x64() -> Any:
    with jax.enable_x64(True):
        yield


def reference(graph: Graph, inputs: Sequence[Array]) -> Sequence[Array]:
    """By StableHLO's own interpreter."""
    text = targets.stablehlo(graph, sizes_of(graph, inputs))
    note(text)
    return interpreted(text, inputs, [x.dtype.storage for x in graph.outputs])


def xla(graph: Graph, inputs: Sequence[Array]) -> Sequence[Array]:
    """As StableHLO, by XLA."""
    text = targets.stablehlo(graph, sizes_of(graph, inputs))
    note(text)
    return compiled(text)(inputs)


def jitted(graph: Graph, inputs: Sequence[Array]) -> Sequence[Array]:
    """As a function of jax.numpy, compiled."""
    found = jax.jit(targets.jax(graph))(*inputs)
    return [jax.device_get(one) for one in (found if isinstance(found, tuple) else (found,))]


def agrees(program: Program, engine: Engine) -> None:
    """Each op on what the engine has for its operands, so that no difference hides another."""
    flushes = engine is not reference
    try:
        interpret(*(program.graph, *program.inputs))
    except GraphirError:
        assume(False)
    graph = every(program.graph)
    assume(not flushes or not NARROW & {x.dtype for x in graph.symbols})
    inputs = [settled(x) if flushes else x for x in program.inputs]
    found = engine(graph, inputs)
    for symbol, expected, result, operands in steps(graph, inputs, found):
        if flushes:
            expected, result = settled(expected), settled(result)
        fine = agree(symbol.op.name, symbol.dtype, expected, result, *operands)
        fine = fine or (flushes and by_xla(symbol, expected, result, operands))
        assert fine, (symbol, operands, expected, result)


def by_xla(symbol: Symbol, expected: Array, found: Array, operands: Sequence[Array]) -> bool:
    """Whether a sum of floats is what XLA makes of a product that it does not round first."""
    if symbol.dtype.format is None or symbol.op not in (ops.add, ops.subtract):
        return False
    return near(ADDED, symbol.dtype, expected, found, *operands)


@pytest.mark.parametrize("name", sorted({*ops.CATALOGUE} - {"index_add"}))
@given(st.data())
@settings(max_examples=8)
def test_programs_of_every_op_on_the_reference(name: str, data: st.DataObject) -> None:
    program = data.draw(programs(op=ops.CATALOGUE[name], steps=5))
    # The interpreter of StableHLO writes a scatter's result to its operand, which is returned too.
    assume(all(symbol.op is not ops.index_add for symbol in program.graph.symbols))
    agrees(program, reference)


@pytest.mark.parametrize("engine", [xla, jitted])
@pytest.mark.parametrize("name", sorted(ops.CATALOGUE))
@given(st.data())
@settings(max_examples=2, phases=[Phase.generate])  # compiling is slow, so nothing is shrunk
def test_programs_of_every_op_compiled(name: str, engine: Engine, data: st.DataObject) -> None:
    agrees(data.draw(programs(op=ops.CATALOGUE[name], steps=5)), engine)


@pytest.mark.parametrize("engine", [reference, xla, jitted])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(divisor=st.sampled_from([3.0, 10.0, 0.0, np.inf, "greatest"]))
@settings(max_examples=5)
def test_quotients_by_what_is_broadcast_are_rounded_once(
    dtype: str, engine: Engine, divisor: Any
) -> None:
    """XLA itself takes a product with the reciprocal: 1.6666667 for 5 / 3, and 0 beside 3e38."""
    most = np.finfo(dtype).max
    values = np.array([5.0, -7.0, 0.0, -0.0, np.inf, np.nan, most, most / 3], dtype)
    inputs = [values, np.array(most if divisor == "greatest" else divisor, dtype)]
    graph = Graph()
    x, y = graph.input(dtype, values.shape), graph.input(dtype, ())
    divisors = y, graph.constant[dtype](inputs[1])
    graph.output(*(op(x, z) for z in divisors for op in (ops.divide, ops.floor_divide)))
    for found, expected in zip(engine(graph, inputs), interpret(graph, *inputs), strict=True):
        assert same(found, expected)
