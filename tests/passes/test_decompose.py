"""Decompositions against kernels: bits where exact, units of the last place where bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from graphir import DType, Graph, GraphError, Op, ops
from graphir.passes import decompose, lower
from graphir.runtime import interpret
from graphir.semantics.evaluation import machine
from tests.runtime.targets.target_bounds import Asked, distance, magnitude, same_bits
from tests.runtime.targets.target_engines import drawn
from tests.runtime.targets.target_table import rows
from tests.support.accuracy import BOUNDS
from tests.support.strategies import STRONG

COMPOSITES = [op for op in ops.CATALOGUE.values() if op.decomposition]
ATTRIBUTES: dict[str, list[dict[str, Any]]] = {
    "gelu": [{"approximate": "tanh"}, {"approximate": "quick"}],
    "sort": [{"descending": True}],
    "argsort": [{"descending": True, "dtype": "int32"}],
    "var": [{"axis": 0, "correction": 1}, {"axis": None, "keepdims": True}],
    "std": [{"axis": 0, "correction": 100}],
    "mean": [{"axis": 0, "keepdims": True}],
    "numpy_sum": [{"initial": 2.5}, {"selection": True, "initial": 2.5}, {"axis": 0, "initial": 1}],
    "matmul": [{"layout": ("matmul", (1, 64), (1, 64), False)}],
}
"""Further attributes of ops, beside those of the target table."""


def graphs_of(op: Op) -> Iterator[Graph]:
    """A graph of the op at each dtype, asked in each way."""
    for row in rows():
        for attrs in [row.call.attrs, *ATTRIBUTES.get(row.name, [])] if row.op is op else ():
            call = row._replace(call=row.call._replace(attrs=attrs))
            yield from filter(None, map(call.graph, STRONG))


@pytest.mark.parametrize("op", COMPOSITES, ids=str)
@pytest.mark.parametrize("seeds", [(0,), pytest.param((1, 2, 3), marks=pytest.mark.exhaustive)])
@np.errstate(all="ignore")
def test_a_decomposition_computes_what_the_kernel_does(op: Op, seeds: tuple[int, ...]) -> None:
    assert op.decomposition
    ulps, decomposed = op.decomposition.ulps, 0
    for graph in graphs_of(op):
        dtype, lowered = graph.outputs[0].dtype, lower(graph)
        rewritten = decompose(lowered)
        if rewritten is lowered or (ulps and machine(dtype) is not dtype):
            continue
        decomposed += 1
        assert decompose(rewritten) is rewritten  # the parts of composites are primitives
        assert rewritten.outputs[0].type == graph.outputs[0].type
        for seed in seeds:
            inputs = drawn(graph, seed)
            ours, theirs = interpret(graph, *inputs), interpret(rewritten, *inputs)
            close = same_bits(ours, theirs)
            if ulps:
                near = BOUNDS[op.name].near(*inputs) if op.name in BOUNDS else 0.0
                size = np.maximum(magnitude(ours), magnitude(np.asarray(near)))
                unit = np.spacing(size.astype(dtype.part.storage))
                apart = distance(Asked("", graph.outputs[0], tuple(inputs), ours, theirs))
                close = close | (apart <= ulps * unit)
            assert close.all(), (str(rewritten), inputs, ours, theirs)
    assert decomposed


def test_parts_stand_where_the_composite_does() -> None:
    graph = Graph("g")
    x = graph.input("float32", ("n", 4), name="x")
    with graph.layer("head"):
        graph.output(ops.softmax(x))
    parts = [symbol for symbol in decompose(lower(graph)).symbols if symbol.op is not ops.input]
    assert [symbol.op.name for symbol in parts] == ["max", "subtract", "exp", "sum", "divide"]
    assert {str(symbol.location) for symbol in parts} == {str(graph.outputs[0].location)}
    assert {symbol.location.layer for symbol in parts} == {"head"}


def test_ops_of_the_target_stay() -> None:
    graph = Graph("g")
    x = graph.input("float32", (3,), name="x")
    graph.output(ops.silu(x))
    kept = decompose(graph, keep={"sigmoid"})
    assert [symbol.op.name for symbol in kept.symbols] == ["input", "sigmoid", "multiply"]
    assert decompose(kept, keep={"sigmoid"}) is kept
    assert decompose(graph, keep={"silu"}) is graph
    assert decompose(graph, where=lambda symbol: symbol.rank > 1) is graph


def test_a_composite_that_rounds_once_is_lowered_first() -> None:
    graph = Graph("g")
    graph.output(ops.softmax(graph.input("bfloat16", (3,), name="x")))
    with pytest.raises(GraphError, match=r"softmax of bfloat16 at .* use decompose\(lower"):
        decompose(graph)
    assert decompose(lower(graph)).outputs[0].dtype is DType.bfloat16


def test_named_sizes_may_be_zero() -> None:
    graph = Graph("g")
    x = graph.input("float32", ("n", "m"), name="x")
    graph.output(ops.softmax(x), ops.var(x, axis=0, correction=1), ops.tile(x, (2, 3)))
    rewritten = decompose(lower(graph))
    for shape in ((0, 2), (2, 0), (1, 1), (3, 2)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        for ours, theirs in zip(interpret(graph, x), interpret(rewritten, x), strict=True):
            assert ours.shape == theirs.shape and same_bits(ours, theirs).all()
