"""Memory of Programs: results of their own, `out=`, recycling, and as much as a block needs."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphir import ExecutionError, Graph, ops
from graphir.runtime import Program, execute, interpret
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.memory import Recycler
from graphir.runtime.program.rows import sums_by_halves
from tests.support.evaluator import same
from tests.support.tables import every

LARGE = 300_000  # elements of float32 that are more than a megabyte, from which memory is recycled


def graph_of(function: Any, shape: Any = ("n",), dtype: str = "float32") -> Graph:
    graph = Graph("memory")
    made = function(graph.input(dtype, shape, name="x"), graph.input(dtype, shape, name="y"))
    graph.output(*(made if isinstance(made, tuple) else (made,)))
    return graph


def outputs(made: Any) -> tuple[Any, ...]:
    return made if isinstance(made, tuple) else (made,)


FUNCTIONS = {
    "one": lambda x, y: x * y + x,
    "two": lambda x, y: (x * y + x, x - y),
    "inputs": lambda x, y: (x, y, x),
    "constant": lambda x, y: (x + y, x.graph.constant(np.arange(4, dtype=np.float32), "float32")),
    "views": lambda x, y: (ops.flip(x, axis=0), x[1:], (x + y)[::2], x + y, x + y),
    "sums": lambda x, y: (x.sum(), (x + y).max(), x),
    "moved": lambda x, y: x[1:] + y[:-1],
    "full": lambda x, y: (x * 0.5, ops.cumulative_sum(y, axis=0), ops.concat([x, y])),
}
FUNCTION = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
WAYS = pytest.mark.parametrize(
    "settings", [{}, {"block": 7, "threads": 3}, {"block": 7, "threads": 1}], ids=str
)


# -- results


@pytest.mark.exhaustive
@FUNCTION
@WAYS
@pytest.mark.parametrize("size", [0, 1, 100, LARGE])
def test_results_share_memory_with_nothing(function: Any, settings: Any, size: int) -> None:
    if settings and size == LARGE:
        settings = settings | {"block": 9973}
    if not size and function in (FUNCTIONS[name] for name in ("sums", "moved", "views")):
        size = 2  # the least that they take
    program = Program(graph_of(function), **settings)
    random = np.random.default_rng(size)
    held: list[Any] = []
    for _ in range(5):
        x, y = random.standard_normal((2, size)).astype(np.float32)
        found = outputs(program(x, y))
        assert all(map(same, found, outputs(interpret(program.graph, x, y))))
        assert all(one.flags.writeable for one in found)
        held.append((found, [one.copy() for one in found], (x, y), (x.copy(), y.copy())))
    for found, copies, inputs, before in held:
        assert all(map(same, found, copies)) and all(map(same, inputs, before))
    arrays = [one for found, _, inputs, _ in held for one in (*found, *inputs)]
    for k, one in enumerate(arrays):
        assert not any(np.may_share_memory(one, other) for other in arrays[:k])


@every(
    "holding",
    [
        lambda x: x,
        lambda x: x[5:9],
        lambda x: x.view(np.uint8)[::7].view(),
        lambda x: memoryview(x),
        lambda x: memoryview(x[::3]),
        lambda x: np.asarray(memoryview(x)),
        lambda x: np.broadcast_to(x, (2, LARGE)),
        lambda x: x.reshape(2, -1).T,
        lambda x: np.from_dlpack(x),
    ],
)
def test_memory_that_is_held_in_any_way_is_not_used_again(holding: Any) -> None:
    program = Program(graph_of(lambda x, y: x + y))
    x = np.ones(LARGE, np.float32)
    place = program(x, x).ctypes.data
    kept = holding(program(x, x))
    before = np.array(kept)
    later = [program(x * k, x) for k in range(5)]
    assert same(np.array(kept), before)
    del kept, later
    assert place in [program(x, x).ctypes.data for _ in range(8)]


def test_memory_that_nobody_holds_is_used_again() -> None:
    recycler = Recycler()
    one = recycler.empty((LARGE,), np.dtype(np.float32))
    first, other = one.ctypes.data, recycler.empty((LARGE,), np.dtype(np.float32))
    assert first != other.ctypes.data
    del one
    assert recycler.empty((LARGE // 2, 2), np.dtype(np.int32)).ctypes.data == first


def test_memory_kept_does_not_grow_with_the_shapes_seen() -> None:
    program = Program(graph_of(lambda x, y: x + y))
    for k in range(50):
        x = np.ones(LARGE + k, np.float32)
        program(x, x)
        program(x, x)
    kept = sum(memory.array.nbytes for memory in program.memory.recycler.memories)
    assert kept <= COST.UNFIT_RESULTS * x.nbytes


def test_threads_never_get_one_memory() -> None:
    """Also if another thread runs after each line of the recycler."""
    recycler, overwritten = Recycler(), list[int]()
    codes = {Recycler._array.__code__, Recycler.empty.__code__}

    def switch(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code not in codes:
            return None
        if event in ("line", "return"):
            time.sleep(0)
        return switch

    def work(number: int) -> None:
        for _ in range(200):
            result = recycler.empty((COST.RECYCLED,), np.dtype(np.uint8))
            result[:] = number
            time.sleep(0)
            overwritten.extend(result[[0, -1]][result[[0, -1]] != number])

    threading.settrace(switch)
    try:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        threading.settrace(None)
    assert not overwritten


def test_memories_of_several_sizes_are_used_again() -> None:
    recycler, places = Recycler(), list[tuple[int, ...]]()
    for _ in range(5):
        results = [recycler.empty((n * LARGE,), np.dtype(np.float32)) for n in range(1, 5)]
        places.append(tuple([result.ctypes.data for result in results]))
        del results
    assert len(set(places)) == 1


# -- out=


@FUNCTION
@WAYS
def test_out(function: Any, settings: Any) -> None:
    """Fresh; strided; overlapping the inputs by every offset, exactly too."""
    program = Program(graph_of(function), **settings)
    size = 20
    memory = np.arange(1, 100, dtype=np.float32)
    y = np.linspace(-1, 1, size, dtype=np.float32)
    for offset in (None, 0, -1, 1, 3, 5, -9, 40):
        x = memory.copy()[30 : 30 + size]
        expected = outputs(interpret(program.graph, x, y))
        outs = [np.full_like(one, np.nan) for one in expected]
        if offset is None:
            outs = [np.repeat(one, 2, axis=0)[::2] if one.ndim else one for one in outs]
        elif outs[0].ndim:
            outs[0] = x.base[30 + offset : 30 + offset + len(outs[0])]
        out = tuple(outs) if len(outs) > 1 else outs[0]
        assert program(x, y, out=out) is out
        assert all(map(same, outs, expected)), offset
        fresh = tuple(np.empty_like(one) for one in expected)
        assert all(map(same, program(memory[30 : 30 + size], y=y, out=fresh), expected))


X = np.ones(4, np.float32)
READ_ONLY = np.ones(4, np.float32)
READ_ONLY.flags.writeable = False
WRONG = {
    "a number": (3.0, "got a float"),
    "too many": ((X.copy(), X.copy()), "each of 1 outputs; got 2"),
    "none": ((), "each of 1 outputs; got 0"),
    "float64": (np.ones(4), r"must be float32 of shape \(4,\); got float64"),
    "byte order": (np.ones(4, ">f4"), "must be float32"),
    "too long": (np.ones(5, np.float32), r"of shape \(5,\)"),
    "2-d": (np.ones((4, 1), np.float32), r"of shape \(4, 1\)"),
    "read-only": (READ_ONLY, "read-only"),
    "repeated": (np.broadcast_to(X[:1], 4), "read-only"),
}


@every(("out", "told"), WRONG.values())
def test_out_that_is_unfit(out: Any, told: str) -> None:
    program = Program(graph_of(lambda x, y: x + y))
    for _ in range(2):
        with pytest.raises(ExecutionError, match=told):
            program(X, X, out=out)
    assert same(program(X, X), X + X)


def test_out_of_two_outputs_that_is_unfit() -> None:
    program = Program(graph_of(lambda x, y: (x + y, x - y)))
    one = np.empty(4, np.float32)
    for out, told in (
        ((one, one), "share memory"),
        ((one, None), r"out\[1\] must be a NumPy array"),
        (one, "got 1"),
    ):
        with pytest.raises(ExecutionError, match=told):
            program(X, X, out=out)


# -- copies


def test_pickled_and_copied() -> None:
    program = Program(graph_of(FUNCTIONS["views"]), threads=2, block=5)
    x, y = np.random.default_rng(0).standard_normal((2, 50)).astype(np.float32)
    program(x, y)
    for other in (pickle.loads(pickle.dumps(program)), copy.deepcopy(program), copy.copy(program)):
        assert (other.threads, other.block) == (2, 5)
        assert all(map(same, other(x, y), program(x, y)))


# -- how much


def test_errors_let_go_of_arrays() -> None:
    """Without waiting for the collection of cycles."""
    program = Program(graph_of(lambda x, y: (x + x) ** y, dtype="int64"), threads=2)
    x = np.ones(LARGE, np.int64)
    y = x.copy()
    y[-3] = -1
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            with pytest.raises(ExecutionError, match="pow"):
                program(x, y)
        assert len(program.memory.recycler.memories) == 1
    finally:
        gc.enable()


RUN = """
import numpy as np, sys, threading
from graphir import Graph
from graphir.runtime import execute, Program
def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) / 1024
graph = Graph("mapped")
x = graph.input("float32", ("n",), name="x")
graph.output(x * 2.0 + 1.0, ((x * x).cast("bfloat16") * x.cast("bfloat16")).sum(), x.max())
n = 25 << 20
given = np.memmap(sys.argv[1] + "/x", np.float32, "w+", shape=n)
for k in range(0, n, 1 << 20):
    given[k : k + (1 << 20)] = k >> 20
given.flush()
out = np.memmap(sys.argv[1] + "/y", np.float32, "w+", shape=n)
sums = np.empty((), "bfloat16"), np.empty((), np.float32)
few = np.ones(9, np.float32)
execute(graph, few)
before, most, is_done = anonymous(), [0.0], threading.Event()
def watch():
    while not is_done.wait(0.001):
        most[0] = max(most[0], anonymous())
watcher = threading.Thread(target=watch)
watcher.start()
found = execute(graph, given, out=(out, *sums))
is_done.set()
watcher.join()
assert found[0] is out and out[-1] == given[-1] * 2 + 1 and out[0] == 1 and sums[1] == 24
print(most[0] - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.skipif(
    not sums_by_halves(), reason="this NumPy adds 8,192 elements at a time: sums take whole arrays"
)
def test_mapped_files_in_constant_memory(tmp_path: Path) -> None:
    """100 MB in, 100 MB out, on less than 16."""
    command = [sys.executable, "-W", "error", "-c", "import ml_dtypes\n" + textwrap.dedent(RUN)]
    found = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert 0 < float(found.stdout) < 16


def test_execute_takes_out() -> None:
    x = np.arange(9, dtype=np.float32)
    out = np.empty_like(x)
    graph = graph_of(lambda x, y: x - y)
    assert execute(graph, x, y=x, out=out) is out and same(out, x - x)
    assert execute(graph, x, x, out=x) is x and not x.any()
