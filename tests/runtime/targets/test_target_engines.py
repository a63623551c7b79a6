"""What targets write runs, in every engine that is installed, and gives what `interpret` gives."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from graphir import DType, Graph, ops
from tests.runtime.targets.target_bounds import Asked, differs
from tests.runtime.targets.target_deviations import DEVIATIONS, Deviation, explains
from tests.runtime.targets.target_engines import ENGINES, drawn, meaning, settled
from tests.runtime.targets.target_table import Row, golden, rows
from tests.support.evaluator import same
from tests.support.strategies import STRONG
from tests.support.tables import every

pytestmark = pytest.mark.filterwarnings("ignore")

SEEDS = range(4)


HERE = [name for name, engine in ENGINES.items() if engine.installed]


@every("name", ENGINES)
def test_an_engine_is_here(name: str) -> None:
    package = ENGINES[name].package
    pytest.importorskip(package, reason=f"{package} is not installed: nothing runs what is written")
    assert name in HERE


@cache
def runs(target: str) -> dict[str, list[DType]]:
    """The dtypes that an op takes and the target does not refuse, by the row of the table."""
    refused = golden()[target]["rows"]
    everything = "." * len(STRONG)
    return {
        row.name: [
            dtype
            for dtype, verdict in zip(STRONG, refused.get(row.name, everything), strict=True)
            if verdict == "." and row.graph(dtype) is not None
        ]
        for row in rows()
    }


@pytest.mark.exhaustive
@pytest.mark.parametrize("engine", HERE)
@pytest.mark.parametrize("row", rows(), ids=[row.name for row in rows()])
@np.errstate(all="ignore")
def test_what_runs_gives_what_interpret_gives(row: Row, engine: str) -> None:
    for dtype in runs(engine)[row.name]:
        graph = row.graph(dtype)
        assert graph is not None
        found = [*compared(engine, graph)]
        assert found, (dtype, "nothing was compared")
        for asked in found:
            wrong = differs(asked) & ~explains(asked)
            assert not wrong.any(), (dtype, asked.inputs, asked.ours, asked.theirs)


def compared(engine: str, graph: Graph) -> Any:
    """What comes of a graph of one op, on several inputs, here and there."""
    run, (symbol,) = ENGINES[engine].load(graph), graph.outputs
    for seed in SEEDS if graph.inputs else [0]:
        inputs = drawn(graph, seed)
        if (ours := settled(inputs, meaning(graph))) is not None:
            yield asked_of(engine, symbol, inputs, ours[0], run(*inputs)[0])


def asked_of(engine: str, symbol: Any, inputs: Any, ours: Any, theirs: Any) -> Asked:
    assert (theirs.dtype, theirs.shape) == (ours.dtype, ours.shape)
    return Asked(engine, symbol, tuple(inputs), ours, theirs)


CLAIMS = [(row, name) for row in DEVIATIONS for name in row.engines.split() if name in HERE]


@every("row, engine", CLAIMS)
def test_deviations_are_as_claimed(row: Deviation, engine: str) -> None:
    graph = row.graph()
    inputs = [np.array(x).astype(DType(row.dtype).storage) for x in row.inputs]
    ours, theirs = meaning(graph)(*inputs)[0], ENGINES[engine].load(graph)(*inputs)[0]
    for claim, found in ((row.ours, ours), (row.theirs, theirs)):
        assert same(np.array(claim).astype(found.dtype), found), found
    asked = asked_of(engine, graph.outputs[0], inputs, ours, theirs)
    assert differs(asked).any()
    assert not (differs(asked) & ~row.explains(asked)).any()


@pytest.mark.parametrize("engine", HERE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@np.errstate(all="ignore")
def test_quotients_by_one_number_are_rounded_once(dtype: str, engine: str) -> None:
    values = np.array([5.0, 7.0, 10.0, np.finfo(dtype).max], dtype)
    graph = Graph("quotients", rules="explicit")
    x, y = graph.input(dtype, values.shape), graph.input(dtype, ())
    graph.output(x / y)
    for divisor in (3.0, float(np.finfo(dtype).max)):
        inputs = values, np.array(divisor, dtype)
        (ours,), (theirs,) = meaning(graph)(*inputs), ENGINES[engine].load(graph)(*inputs)
        assert same(ours, theirs), (ours, theirs)


@every("engine", HERE)
@every("axis", [None, 1])
def test_sums_at_indices_are_added_in_order_along_any_axis(engine: str, axis: int | None) -> None:
    graph, rng = Graph("sums", rules="explicit"), np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in ((3, 4, 2), (9, 2))]
    arrays.append(rng.integers(-4, 4, (5, 9)))
    x, updates, indices = (graph.input(str(each.dtype), each.shape) for each in arrays)
    updates = updates if axis else updates[:, 0]
    graph.output(ops.index_add(x, updates, indices, axis=axis))
    assert same(meaning(graph)(*arrays)[0], ENGINES[engine].load(graph)(*arrays)[0])
