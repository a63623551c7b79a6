"""StableHLO: verified by jaxlib's MLIR, run by XLA and by its own interpreter, as `interpret`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed, so nothing reads StableHLO")

import jax

from graphir import DType, Graph, Symbol, ops
from graphir.runtime import interpret
from graphir.runtime.targets import stablehlo
from graphir.runtime.targets.stablehlo_.target import module_text
from tests.peers import CALLS
from tests.runtime.targets.hlo import REFUSED, compiled, interpreted, parsed
from tests.support.engines import agree, graph_of, inputs_of, outcome, settled
from tests.support.evaluator import same
from tests.support.strategies import STRONG, pool

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
}


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


@by_engine
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_subnormal_numbers_become_the_least_float8_e8m0fnu(dtype: str, engine: str) -> None:
    graph = Graph()
    x = graph.input(dtype, (4,))
    graph.output(x.cast("float8_e8m0fnu"))
    values = np.array([1e-40, -1e-40, 0.0, -0.0]).astype(x.dtype.storage)
    run = interpreted if engine == "reference" else lambda text, given, _: compiled(text)(given)
    (found,) = run(stablehlo(graph), [values], [graph.outputs[0].dtype.storage])
    assert same(found, interpret(graph, values))
    assert found.astype(np.float64)[0] == 2.0**-127


# -- where engines mean something else


class Deviation(NamedTuple):
    """A program, what an engine makes of it where `interpret` gives something else, and why."""

    engines: str
    program: Callable[..., Symbol]
    inputs: tuple[Any, ...]
    theirs: Any
    why: str


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


NAN = np.array([np.nan], DType.float8_e4m3fnuz.storage)
DEVIATIONS = [
    Deviation("xla", lambda x: x != 0, (f32(1e-45),), [False], "takes subnormal numbers for 0"),
    Deviation("xla", lambda x: x * 0.5, (f32(1.5e-38),), [0], "makes subnormal results 0"),
    Deviation(
        "xla",
        lambda x, y: x * x - y,
        (f32(1 + 2**-12), f32(1 + 2**-11)),
        [2**-24],
        "does not round a product that is added to: one rounding of two",
    ),
    Deviation(
        "reference xla",
        lambda x: x.sum(),
        (f32(2**24, *[1] * 15),),
        2**24,
        "adds one after another, where NumPy adds eight sums",
    ),
    Deviation(
        "reference xla", ops.signbit, (NAN,), [False], "has no sign of the one NaN of fnuz formats"
    ),
    Deviation(
        "reference",
        ops.sign,
        (np.array([complex(np.inf, 1)]),),
        [complex(np.nan, np.nan)],
        "divides by the magnitude, which is infinite",
    ),
]
"""Also: of 0.0 and -0.0 NumPy's maximum is one by its place, and that of IEEE 754 is 0.0."""


@pytest.mark.parametrize("row", DEVIATIONS, ids=lambda row: row.why)
def test_deviations_are_what_their_rows_say(row: Deviation) -> None:
    graph = Graph()
    given = [graph.input(DType.from_numpy(x.dtype), x.shape) for x in row.inputs]
    graph.output(row.program(*given))
    dtype, ours = graph.outputs[0].dtype, interpret(graph, *row.inputs)
    theirs = np.array(row.theirs).astype(dtype.storage)
    assert not same(ours, theirs)
    for engine in row.engines.split():
        [found] = ENGINES[engine](stablehlo(graph), [dtype])(row.inputs)
        assert same(found, theirs), (engine, found)


# -- the text


def test_every_line_has_a_place_and_every_cast_its_uses() -> None:
    graph = Graph("net")
    x, w = graph.input("int16", (3,), name="x"), graph.input("float32", (3,), name="w")
    with graph.layer('a "b"\n'):
        graph.output(x * w + x, ops.argsort(w))
    module = parsed(stablehlo(graph))
    places = [str(one.location) for one in walk(module.operation)]
    assert not [
        place for place in places if "tests/runtime/targets/test_target_stablehlo.py" not in place
    ]
    casts = [str(op.location) for op in walk(module.operation) if op.name == "stablehlo.convert"]
    assert len(casts) == 1 and 'fused<"cast">' in casts[0]
    for use in ("lhs of multiply", "rhs of add"):
        assert (
            f'"{use}, max: int16 -> float32"("tests/runtime/targets/test_target_stablehlo.py":'
            in casts[0]
        )
    assert sum(r"a \22b\22\0A" in place for place in places) > 3


def walk(operation: Any) -> Iterator[Any]:
    """An operation and all inside it."""
    yield operation
    for region in operation.regions:
        for block in region.blocks:
            for each in block.operations:
                yield from walk(each.operation)


MIXED: dict[str, Callable[..., Symbol]] = {
    "add": lambda x, w: x + w,
    "multiply": lambda x, w: x * w,
    "less": lambda x, w: x < w,
    "where": lambda x, w: ops.where(w > 0, x, w),
    "maximum": ops.maximum,
    "concat": lambda x, w: ops.concat([x, w]),
    "outer": ops.outer,
    "atan2": ops.atan2,
    "clip": lambda x, w: ops.clip(x, w, w),
    "layer_norm": lambda x, w: ops.layer_norm(w, x, w),
    "searchsorted": ops.searchsorted,
    "scatter": lambda x, w: ops.scatter(w, x, np.arange(3)),
}


@pytest.mark.parametrize("name", MIXED)
def test_without_our_casts_the_verifier_refuses(name: str) -> None:
    graph = Graph(name)
    graph.output(MIXED[name](graph.input("int16", (3,)), graph.input("float32", (3,))))
    parsed(stablehlo(graph))
    with pytest.raises(REFUSED, match=r"(?i)type|compatible|same"):
        parsed(module_text(graph))


def test_products_summed_are_the_one_op_that_stablehlo_mixes_dtypes_in() -> None:
    graph = Graph("matmul")
    graph.output(graph.input("int16", (3,)) @ graph.input("float32", (3,)))
    parsed(module_text(graph))
