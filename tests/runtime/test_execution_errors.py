"""An error of a run names the operands of the user's program, whatever way the program ran."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphir import ExecutionError, Graph, ops
from passes import implicit_cast, lower
from runtime import Program, execute, interpret

BF16 = Graph("g").input("bfloat16").dtype.to_numpy()

CASES: dict[str, tuple[str, Callable[[Any, Any], Any], Any, Any, str]] = {
    "cast of one": ("max", lambda x, y: x**y, np.int8(3), np.int16(-1), "pow(int8[], int16[])"),
    "cast of both": (
        "jax",
        lambda x, y: x**y,
        np.uint32(3),
        np.int32(-1),
        "pow(uint32[], int32[])",
    ),
    "literal": (
        "numpy",
        lambda x, y: y ** (x - x - 1),
        np.int8(0),
        np.int64(2),
        "pow(int64[], int8[",
    ),
    "cast twice": (
        "max",
        lambda x, y: ops.pow(x.cast("int64") + 0, y),
        np.int8(3),
        np.int32(-1),
        "pow(int64[], int32[])",
    ),
    "folded": (
        "numpy",
        lambda x, y: ops.pow(x.graph.scalar(2, "int8"), y),
        np.int8(3),
        np.int64(-1),
        "pow(int8[], int64[])",
    ),
    "index": (
        "max",
        lambda x, y: ops.gather(x, y),
        np.ones(3, BF16),
        np.array([7], np.int8),
        "gather(bfloat16[n], int8[m])",
    ),
    "slice": (
        "max",
        lambda x, y: x[:5] + y.sum(),
        np.ones(3, BF16),
        np.ones(2),
        "slice(bfloat16[n])",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_operands_are_told_alike(name: str) -> None:
    rules, build, x, y, told = CASES[name]
    g = Graph("g", rules=rules)
    dims = iter("nm")
    a, b = (g.input(str(one.dtype), (next(dims),) * one.ndim) for one in (x, y))
    g.output(build(a, b))
    messages: list[str] = []
    for run in (
        lambda: interpret(g, x, y),
        lambda: interpret(implicit_cast(g), x, y),
        lambda: interpret(lower(g), x, y),
        lambda: execute(g, x, y),
        lambda: Program(g, native="off")(x, y),
        lambda: Program(g, threads=2, block=4)(x, y),
    ):
        with pytest.raises(ExecutionError) as caught:
            run()
        messages.append(str(caught.value))
    assert len(set(messages)) == 1, messages
    assert told in messages[0]
