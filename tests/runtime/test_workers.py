"""Threads that wait for further work: one thread serves many calls, and none outlives its use."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from graphir import Graph, ops
from graphir.runtime import Program, interpret, workers
from graphir.runtime.workers import run_aside
from tests.support.evaluator import same


@pytest.fixture(autouse=True)
def _no_others(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(workers, "WAIT", 0.5)
    workers._dismiss()
    yield
    workers._dismiss()


def called() -> int:
    """The thread that a worker's function ran in."""
    done, idents = threading.Event(), list[int]()

    def work() -> None:
        idents.append(threading.get_ident())
        done.set()

    run_aside(work)
    assert done.wait(10)
    return idents[0]


def idle(count: int) -> bool:
    """Whether so many workers wait, or will within a while."""
    end = time.monotonic() + 10
    while len(workers._idle) != count and time.monotonic() < end:
        time.sleep(0.001)
    return len(workers._idle) == count


def exp_of(size: int, threads: int) -> tuple[Program, Any]:
    graph = Graph("exp")
    graph.output(ops.exp(graph.input("float32", (size,))) + 1)
    x = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    return Program(graph, threads=threads, block=1000, native="off"), x


def test_one_thread_serves_calls_in_turn() -> None:
    idents: set[int] = set()
    for _ in range(5):
        idents.add(called())
        assert idle(1)
    assert len(idents) == 1 and threading.get_ident() not in idents


def test_calls_at_once_have_a_thread_each() -> None:
    barrier = threading.Barrier(4)
    for _ in range(3):
        run_aside(barrier.wait)  # pyright: ignore
    barrier.wait(10)
    assert idle(3)


def test_an_idle_thread_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "WAIT", 0.001)
    before = called()
    assert idle(0)
    assert called() and before


def test_work_may_come_as_the_worker_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "WAIT", 1e-5)
    for _ in range(500):
        called()


def test_a_worker_whose_work_never_comes_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt may come after its caller has taken it from the list."""
    monkeypatch.setattr(workers, "WAIT", 0.05)
    monkeypatch.setattr(workers, "LATE", 0.05)
    before = _tasks()
    called()
    assert idle(1)
    workers._idle.pop()
    end = time.monotonic() + 10
    while _tasks() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert _tasks() <= before


def _tasks() -> int:
    """The threads of this process, those that Python does not list among them."""
    return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0


def test_programs_keep_no_arrays_alive() -> None:
    program, x = exp_of(30_000, 2)
    assert same(program(x), interpret(program.graph, x))
    assert idle(1)
    reference = weakref.ref(x)
    del x
    assert reference() is None


def test_one_thread_alone_needs_no_workers() -> None:
    program, x = exp_of(30_000, 1)
    assert same(program(x), interpret(program.graph, x))
    assert not workers._idle


def test_callers_at_once() -> None:
    program, x = exp_of(20_000, 3)
    expected, failures = interpret(program.graph, x), list[int]()

    def call() -> None:
        for k in range(100):
            if not same(program(x), expected):
                failures.append(k)

    callers = [threading.Thread(target=call) for _ in range(3)]
    for one in callers:
        one.start()
    for one in callers:
        one.join()
    assert not failures


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_ends_the_workers_and_its_child_has_its_own() -> None:
    program, x = exp_of(30_000, 2)
    expected = interpret(program.graph, x)
    program(x)
    assert idle(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest may have other threads
        child = os.fork()
    if not child:
        os._exit(0 if same(program(x), expected) and same(program(x), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not workers._idle and same(program(x), expected)


_LAST = """
import numpy as np, warnings, os
from graphir import Graph, ops
from graphir.runtime import Program, workers
workers.WAIT = 60
warnings.simplefilter("error")
graph = Graph("exp")
graph.output(ops.exp(graph.input("float32", (30_000,))) + 1)
program = Program(graph, threads=2, block=1000, native="off")
program(np.ones(30_000, np.float32))
print("done")
"""


def test_a_process_ends_while_workers_wait() -> None:
    command = [sys.executable, "-c", _LAST]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")
