"""Ops over rows written out where machine code computes them: the bits of their kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphir import DType, Graph, Symbol, ops
from graphir.passes import lower
from graphir.runtime import Program, interpret
from graphir.runtime.program.rewrites.expansion import expand_composites
from tests.support.evaluator import same
from tests.support.native_runs import TIERS, needs_llvmlite
from tests.support.tables import every, sampled

DTYPES = [DType.float16, DType.bfloat16, DType.float32, DType.float64]
SHAPES = [(7,), (3, 70), (2, 5, 129), (4, 3, 1), (0, 8), (3, 0), (40, 1000)]


def _norm(x: Symbol, axis: Any) -> Symbol:
    sizes = [x.graph.input(x.dtype, x.shape[-1:]) for _ in range(2)]
    return ops.layer_norm(x * 2.0, *sizes, epsilon=1e-3)


CASES = {
    "var": lambda x, axis: ops.var(x, axis=axis),
    "var of computed": lambda x, axis: ops.var(x * x + 1.0, axis=axis, keepdims=True) + x,
    "corrected": lambda x, axis: ops.var(x, axis=axis, correction=1),
    "corrected by more than the elements": lambda x, axis: ops.std(x, axis=axis, correction=50),
    "mean beside": lambda x, axis: (
        ops.mean(x, axis=axis) / ops.var(x, axis=axis) + ops.std(x, axis=axis, correction=2)
    ),
    "std": lambda x, axis: x / ops.std(x, axis=axis, keepdims=True),
    "layer_norm": _norm,
    "softmax": lambda x, axis: ops.softmax(x * 2.0, axis=-1 if axis is None else axis),
    "logsoftmax": lambda x, axis: ops.logsoftmax(x, axis=-1 if axis is None else axis) + 1.0,
    "softmax of columns": lambda x, axis: ops.softmax(x, axis=0),
    "outer": lambda x, axis: ops.outer(x.reshape((x.type.size,)), x.reshape((x.type.size,))[:3]),
}

STATISTICS = [each for each in CASES if {"var", "corrected", "std", "mean"} & {*each.split()}]


def graph_of(case: str, dtype: DType, shape: tuple[int, ...], axis: Any = -1) -> Graph:
    graph = Graph("rows")
    x = graph.input(dtype, shape)
    graph.output(CASES[case](x, axis))
    return graph


def inputs_of(graph: Graph) -> list[Any]:
    draw = np.random.default_rng(3)
    found: list[Any] = []
    for one in graph.inputs:
        values = draw.standard_normal(one.shape)
        values.flat[::71] = draw.choice([np.nan, np.inf, -0.0, 1e-40, 300.0])
        found.append(values.astype(np.float32).astype(one.dtype.storage))
    return found


@sampled(4)
@every("case", CASES)
@every("dtype", DTYPES)
def test_same_bits(case: str, dtype: DType) -> None:
    for shape in SHAPES:
        axes = (-1, None, 0, (0, -1)) if case in STATISTICS else (-1,)
        for axis in axes if len(shape) > 1 else (-1,):
            graph = graph_of(case, dtype, shape, axis)
            inputs = inputs_of(graph)
            with np.errstate(all="ignore"):
                wanted = interpret(graph, *inputs)
                assert same(interpret(expand_composites(lower(graph)), *inputs), wanted)
            for native in TIERS:
                assert same(Program(graph, native=native)(*inputs), wanted), (shape, axis, native)


def test_what_is_written_out() -> None:
    """Not statistics of complex numbers, nor corrected ones of very many; a mean is read once."""
    for dtype, axis in ((DType.bfloat16, -1), (DType.float32, 0)):
        names = [
            each.op.name
            for each in expand_composites(lower(graph_of("std", dtype, (3, 4), axis))).symbols
        ]
        assert "std" not in names
    for graph in (
        graph_of("corrected", DType.float32, (1, (1 << 24) + 1)),
        graph_of("var", DType.complex64, (3, 4)),
    ):
        lowered = lower(graph)
        assert expand_composites(lowered) is lowered
    both = expand_composites(lower(graph_of("mean beside", DType.float32, (3, 4), 0)))
    assert sum(each.op is ops.mean for each in both.symbols) == 2


@needs_llvmlite
def test_rows_are_machine_code() -> None:
    program = Program(graph_of("layer_norm", DType.float32, (40, 1000)), native="now")
    program(*inputs_of(program.graph))
    told = program.explain()
    assert "layer_norm" not in told
    assert "NumPy" not in told
