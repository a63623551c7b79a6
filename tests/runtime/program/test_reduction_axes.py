"""Reductions of last axes and others are two reductions, with the bits of one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphir import Graph, ops
from graphir.passes import lower
from graphir.runtime import Program, interpret
from graphir.runtime.program.rewrites.reductions import split_reductions
from graphir.runtime.program.rows import sums_by_halves
from tests.support.evaluator import same
from tests.support.native_runs import TIERS
from tests.support.tables import every, sampled

SHAPES: list[tuple[tuple[int, ...], Any]] = [
    ((3, 4, 5, 6), (0, 2, 3)),
    ((3, 4, 5, 6), (0, 1, 3)),
    ((40, 2, 30, 2), (1, 3)),
    ((9, 3, 700), (0, 2)),
    ((700, 3, 9), (0, 2)),
    ((4, 3, 1, 50, 1), (0, 3)),
    ((2, 3, 4, 3, 200), (0, 2, 4)),
    ((5, 1, 6), (0, 2)),
    ((2, 0, 3), (0, 2)),
]
OPS = [ops.sum, ops.mean, ops.max, ops.min, ops.any, ops.all]


def graph_of(op: Any, dtype: str, shape: tuple[int, ...], axis: Any, keepdims: bool) -> Graph:
    graph = Graph("axes", rules="numpy")
    graph.output(op(graph.input(dtype, shape), axis=axis, keepdims=keepdims))
    return graph


@sampled(4)
@every("dtype", ["float32", "float64", "float16", "int32", "bool"])
@every(("shape", "axis"), SHAPES)
@every("op", OPS)
def test_two_reductions_have_the_bits_of_one(
    op: Any, shape: tuple[int, ...], axis: Any, dtype: str
) -> None:
    if op in (ops.max, ops.min) and not np.prod(shape):
        pytest.skip("there is no maximum of nothing")
    x = np.random.default_rng(len(shape)).normal(size=shape) * 3
    for special in (False, True):
        if special and x.size:
            x = np.copysign(0.0, x)
            x.flat[-1] = np.nan if dtype.startswith("f") else 1
        for keepdims in (False, True):
            graph = graph_of(op, dtype, shape, axis, keepdims)
            operand = x.astype(graph.inputs[0].dtype.storage)
            meant = interpret(graph, operand)
            assert same(interpret(split_reductions(lower(graph)), operand), meant)
            for native in TIERS:
                assert same(Program(graph, native=native)(operand), meant)


def test_which_reductions_are_two() -> None:
    for shape, axis in SHAPES:
        lowered = lower(graph_of(ops.max, "float32", shape, axis, False))
        names = [each.op.name for each in split_reductions(lowered).symbols]
        assert names.count("max") == (1 if 0 in shape or shape == (5, 1, 6) else 2), shape
    lowered = lower(graph_of(ops.mean, "complex64", (3, 4, 5), (0, 2), False))
    assert split_reductions(lowered) is lowered
    lowered = lower(graph_of(ops.sum, "float64", (3, 4, 5), (0, 2), False))
    assert (split_reductions(lowered) is lowered) != sums_by_halves()
