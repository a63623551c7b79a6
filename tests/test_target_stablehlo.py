"""StableHLO: verified by jaxlib's MLIR, run by XLA and by its own interpreter, as `interpret`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

pytest.importorskip("jax", reason="JAX is not installed, so nothing reads StableHLO")

import jax

from graphir import DType, Graph
from runtime import interpret
from runtime.targets import stablehlo
from tests.engines import agree, graph_of, inputs_of, outcome, settled
from tests.evaluator import same
from tests.hlo import compiled, interpreted
from tests.peers import CALLS
from tests.strategies import STRONG, pool

Engine = Callable[[str, Sequence[DType]], Callable[[Sequence[Any]], list[Any]]]
"""Text and the dtypes of its results to a function of inputs."""


def reference(text: str, dtypes: Sequence[DType]) -> Callable[[Sequence[Any]], list[Any]]:
    return lambda inputs: interpreted(text, inputs, [dtype.storage for dtype in dtypes])


def xla(text: str, dtypes: Sequence[DType]) -> Callable[[Sequence[Any]], list[Any]]:
    run = compiled(text)
    return lambda inputs: [settled(one) for one in run([settled(one) for one in inputs])]


ENGINES: dict[str, Engine] = {"reference": reference, "xla": xla}
by_engine = pytest.mark.parametrize("engine", ENGINES)


def taken(engine: str) -> list[DType]:
    """The dtypes that an engine has."""
    return [d for d in STRONG if engine == "reference" or not str(d).startswith("float6_")]


@pytest.fixture(autouse=True)
def x64() -> Any:
    with jax.enable_x64(True):
        yield


# -- every op of every dtype


def several(name: str, dtypes: Sequence[DType]) -> list[tuple[Graph, list[Graph]]]:
    """Graphs of an op on all dtypes that it takes, and those of each: NumPy orders complex ones."""
    found: dict[str, list[Graph]] = {"max": [], "numpy": []}
    for dtype in dtypes:
        rules = "max" if graph_of(name, dtype) or not dtype.is_complex else "numpy"
        if graph := graph_of(name, dtype, rules):
            found[rules].append(graph)
    return [(joined(graphs, rules), graphs) for rules, graphs in found.items() if graphs]


def joined(graphs: Sequence[Graph], rules: str) -> Graph:
    """One graph that computes what several of one op do."""
    new, found = Graph(rules=rules), []
    for graph in graphs:
        op, inputs = graph.outputs[0].op, [new.input(x.type) for x in graph.inputs]
        found.append(op(*([inputs] if op.variadic else inputs), **CALLS[op.name].attrs))
    new.output(*found)
    return new


@by_engine
@pytest.mark.parametrize("name", CALLS)
def test_every_op_of_every_dtype(name: str, engine: str) -> None:
    for graph, each in several(name, taken(engine)):
        dtypes = [x.dtype for x in graph.outputs]
        run = ENGINES[engine](stablehlo(graph), dtypes)
        for seed in range(4):
            inputs = [inputs_of(one, seed) for one in each]
            results = run([x for one in inputs for x in one])
            for one, dtype, found, operands in zip(each, dtypes, results, inputs, strict=True):
                expected = outcome(partial(interpret, one), *operands)
                if expected is None or (engine, name, one.inputs[0].dtype) in DEVIATING:
                    continue  # an integer to a negative power
                ours = settled(expected) if engine == "xla" else expected
                assert agree(name, dtype, ours, found, *operands), (operands, ours, found)


DEVIATING = {
    (engine, "signbit", dtype)
    for engine in ENGINES
    for dtype in STRONG
    if dtype.format and dtype.format.specials == "fnuz"
} | {("xla", "reciprocal", DType.float8_e8m0fnu)}


@by_engine
@pytest.mark.parametrize("tf32", ["even", "away"])
@pytest.mark.parametrize("source", STRONG, ids=str)
def test_every_cast_has_the_same_bits(source: DType, tf32: str, engine: str) -> None:
    if source not in taken(engine):
        pytest.skip("XLA has no floats of 6 bits")
    values = settled(pool(source)) if engine == "xla" else pool(source)
    graph = Graph(tf32=tf32)
    x = graph.input(source, values.shape)
    wanted = [d for d in taken(engine) if d.is_complex or d is DType.bool or not source.is_complex]
    graph.output(*map(x.cast, wanted))
    found = ENGINES[engine](stablehlo(graph), wanted)([values])
    for dtype, one, other in zip(wanted, interpret(graph, values), found, strict=True):
        assert same(settled(one) if engine == "xla" else one, other), (dtype, one, other)
