"""What a process imports: nothing that writes machine code before a program has run for a while."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.native_runs import needs_llvmlite

_SMALL = """
import sys
import numpy as np
from graphir import Graph, ops
from graphir.runtime import execute, jit
graph = Graph("small")
x = graph.input("float32", ("n",))
graph.output(ops.softmax(x * x + 1), x.sum())
{calls}
late = [name for name in sys.modules if name.startswith(("llvmlite", "graphir.runtime.native."))]
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


_FORK = """
import os, signal, sys, threading, time
import numpy as np
from graphir import Graph
from graphir.runtime import Program
graph, one, importing = Graph("double"), np.ones(9, np.float32), threading.Event()
graph.output(graph.input("float32", ("n",)) * 2.0)
class Slow:
    def find_spec(name, path, target=None):
        if name == "{module}":
            importing.set()
            time.sleep(0.3)
sys.meta_path.insert(0, Slow)
thread = threading.Thread(target=lambda: Program(graph, native="now")(one))
thread.start()
assert importing.wait(20)
child = os.fork()
if not child:
    signal.alarm(20)
    Program(graph, native="now")(one)
    os._exit(0)
thread.join()
assert os.waitpid(child, 0)[1] == 0
"""


@needs_llvmlite
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("module", ["graphir.runtime.native.row_loops", "llvmlite.ir"])
def test_a_fork_waits_for_a_thread_that_imports(module: str) -> None:
    command = [sys.executable, "-c", _FORK.format(module=module)]
    subprocess.run(command, check=True, timeout=100)
