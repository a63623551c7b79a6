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
from runtime import interpret, targets
from runtime.binding import sizes_of
from tests.drawing import Program, programs
from tests.engines import ADDED, Bound, agree, every, near, settled, steps
from tests.hlo import compiled, interpreted

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
    """Whether floats are what XLA's own rules give.

    A product is not rounded before it is added to; where the divisor is known, a quotient that is 0
    may have no sign, and one by 0 be 0.
    """
    if symbol.dtype.format is None:
        return False
    if symbol.op in (ops.add, ops.subtract):
        return near(ADDED, symbol.dtype, expected, found, *operands)
    if symbol.op not in (ops.divide, ops.floor_divide):
        return False
    known = np.broadcast_to(operands[1] != 0, expected.shape)
    return near(Bound(0), symbol.dtype, expected[known], found[known])


@pytest.mark.parametrize("name", sorted(ops.CATALOGUE))
@given(st.data())
@settings(max_examples=8)
def test_programs_of_every_op_on_the_reference(name: str, data: st.DataObject) -> None:
    agrees(data.draw(programs(op=ops.CATALOGUE[name], steps=5)), reference)


@pytest.mark.parametrize("engine", [xla, jitted])
@pytest.mark.parametrize("name", sorted(ops.CATALOGUE))
@given(st.data())
@settings(max_examples=2, phases=[Phase.generate])  # compiling is slow, so nothing is shrunk
def test_programs_of_every_op_compiled(name: str, engine: Engine, data: st.DataObject) -> None:
    agrees(data.draw(programs(op=ops.CATALOGUE[name], steps=5)), engine)
