"""What a process imports: nothing that writes machine code before a program has run for a while."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.native_runs import needs_llvmlite

_SMALL = """
import sys
import numpy as np
from graphir import Graph, ops
from runtime import execute, jit
graph = Graph("small")
x = graph.input("float32", ("n",))
graph.output(ops.softmax(x * x + 1), x.sum())
{calls}
late = [name for name in sys.modules if name.startswith(("llvmlite", "runtime.native."))]
print(*late)
"""

_CALLS = """
one = np.ones(10, np.float32)
for _ in range(3):
    execute(graph, one)
    jit(lambda x: np.tanh(x @ x + x))(one)
"""


@needs_llvmlite
@pytest.mark.parametrize("native", ["", "1"])
def test_a_few_calls_import_no_compiler(monkeypatch: pytest.MonkeyPatch, native: str) -> None:
    monkeypatch.setenv("GRAPHIR_NATIVE", native)
    command = [sys.executable, "-c", _SMALL.format(calls=_CALLS)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert bool(result.stdout.strip()) == (native == "1"), result.stdout
