"""An error of a run names the operands of the user's program, whatever way the program ran."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphir import ExecutionError, Graph, ops
from graphir.passes import implicit_cast, lower
from graphir.runtime import Program, execute, interpret
from tests.support.tables import every

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


@every("name", CASES)
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


MEMORY = """
import os, resource
import numpy as np
from graphir import ExecutionError, Graph, ops
from graphir.runtime import Program, interpret
g = Graph("g")
x = g.input("float32", (2_000_000,))
y = ops.sort(ops.exp(x), axis=0)
g.output(y * 2.0 + x, ops.sum(y), ops.reshape(y, shape=(1000, 2000)))
x, kept, ends = np.ones(2_000_000, np.float32), Program(g, threads=1), set()
kept(x), interpret(g, x)
for room in range(0, 32, 4):
    for run in (kept, lambda x: interpret(g, x), lambda x: Program(g, threads=1)(x)):
        size = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (size + (room << 20), -1))
        try:
            run(x)
            ends.add("done")
        except MemoryError as error:
            assert isinstance(error, ExecutionError), error
            ends.add("refused")
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
print(sorted(ends))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory by Linux")
def test_out_of_memory_is_one_error_at_every_headroom() -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True)
    assert done.stdout == "['done', 'refused']\n", done.stderr
