"""Threads of machine code: who takes which ranges, and how long workers live."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from graphir import Graph, ops
from graphir.runtime import Program, interpret
from graphir.runtime.program.cost_model import COST
from tests.runtime.native.native_processes import needs_fork, needs_linux, run
from tests.support.evaluator import same
from tests.support.native_runs import needs_llvmlite

pytestmark = needs_llvmlite
BEGIN = (
    "BEGIN\nimport time\nx = np.linspace(-9, 9, 4 * 10**6)\ng = Graph()\n"
    "v = g.input('float64', x.shape)\ng.output((v * v + 1.0) / (v * v + 2.0) - v)\n"
)


@pytest.fixture(autouse=True)
def _shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small programs share their work."""
    monkeypatch.setattr(COST, "NATIVE_SECOND_THREAD", 0)
    monkeypatch.setattr(COST, "SHARED_RANGE", 1)
    monkeypatch.setattr(COST, "SECOND_THREAD", 0)


def graph_of_ranges(shape: tuple[int, ...]) -> Graph:
    g = Graph("ranges", rules="numpy")
    x = g.input("float64", shape)
    g.output(ops.sqrt(x * x + 1.0) - x)
    return g


@pytest.mark.parametrize("threads", [2, 3, 5, 80])
@pytest.mark.parametrize("size", [1, 63, 64, 1000, 100_003])
def test_each_element_is_computed_once_by_any_number_of_threads(threads: int, size: int) -> None:
    graph, x = graph_of_ranges((size,)), np.linspace(-9, 9, size)
    program = Program(graph, threads=threads, native="now")
    meant = interpret(graph, x)
    assert all(same(program(x), meant) for _ in range(20))


def test_callers_that_share_at_once_have_their_own_results() -> None:
    graph = graph_of_ranges((50_000,))
    program = Program(graph, threads=4, native="now")
    inputs = [np.linspace(-k, k, 50_000) for k in range(1, 7)]
    meant = [interpret(graph, x) for x in inputs]
    wrong: list[int] = []

    def call(number: int) -> None:
        for _ in range(200):
            if not same(program(inputs[number]), meant[number]):
                wrong.append(number)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(len(inputs))]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


@needs_linux
def test_workers_end_when_nothing_is_called() -> None:
    run(
        BEGIN + "count = lambda: len(os.listdir('/proc/self/task'))\nbefore = count()\n"
        "alone = Program(g, threads=1, native='now')\nalone(x), alone(x)\n"
        "assert count() == before\n"
        "program = Program(g, threads=3, native='now')\n"
        "for _ in range(5): program(x)\n"
        "assert count() == before + 2, count()\n"
        "cpu, begin = time.process_time(), time.perf_counter()\ntime.sleep(0.2)\n"
        "assert count() == before, count()\nassert time.process_time() - cpu < 0.05\n"
        "assert np.array_equal(program(x), alone(x))"
    )


@needs_fork
def test_a_child_process_starts_workers_of_its_own() -> None:
    run(
        BEGIN + "program = Program(g, threads=2, native='now')\nmeant = program(x)\n"
        "for _ in range(5): program(x)\n"
        "for _ in range(20):\n"
        "    program(x)\n"
        "    child = os.fork()\n"
        "    right = all(np.array_equal(program(x), meant) for _ in range(5))\n"
        "    if not child: os._exit(not right)\n"
        "    assert right and os.waitpid(child, 0)[1] == 0"
    )


def test_a_process_may_end_right_after_a_call() -> None:
    for end in ("", "\nsys.exit()", "\nimport atexit\natexit.register(program, x)"):
        run(
            BEGIN + "import sys\nprogram = Program(g, threads=2, native='now')\n"
            "program(x), program(x)" + end
        )
