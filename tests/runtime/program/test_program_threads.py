"""Programs shared by threads and processes; what callers see of blocks: errors, state."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from graphir import ExecutionError, Graph, Op, ops
from graphir.runtime import Program, execute, interpret
from graphir.runtime.program.blocks import share
from graphir.runtime.program.memory import Workspace
from tests.support.evaluator import same
from tests.support.tables import every, quick

SHAPES = ((1, 1), (2, 3), (0, 4), (33, 31), (100, 100), (128, 129), (3, 4097), (3, 40000))


def threads() -> list[threading.Thread]:
    """Those that there are, but for the one that compiles."""
    return [one for one in threading.enumerate() if one.name != "graphir native"]


def mixed() -> Graph:
    """Regions, rows, a whole kernel and an op that may refuse."""
    graph = Graph("mixed")
    x = graph.input("bfloat16", ("n", "m"), name="x")
    y = graph.input("float32", ("m",), name="y")
    i = graph.input("int32", ("n", "m"), name="i")
    wide = x.cast("float32")
    graph.output(x * x + x, (wide * y).sum(axis=-1), (i + 1) ** i, ops.softmax(wide, axis=0))
    return graph


def inputs_of(shape: tuple[int, int]) -> list[Any]:
    random = np.random.default_rng(shape)
    x, y = random.standard_normal(shape), random.standard_normal(shape[1])
    i = random.integers(0, 5, shape, np.int32)
    return [x.astype(ml_dtypes.bfloat16), y.astype(np.float32), i]


def refused_inputs() -> list[Any]:
    """A negative exponent in one block of many."""
    x, y, i = inputs_of(SHAPES[-1])
    i[2, 777] = -1
    return [x, y, i]


def chain(size: str = "n", dtype: str = "float32") -> Graph:
    graph = Graph("chain")
    x, y = (graph.input(dtype, (size,), name=name) for name in "xy")
    graph.output(x / (y - y) * x + y)
    return graph


# -- threads


@every("op", [ops.sort, ops.argsort])
def test_threads_sort_rows(op: Op) -> None:
    graph = Graph("sorts")
    graph.output(op(graph.input("float64", ("n", "m")), axis=-1))
    x = np.random.default_rng(0).choice(np.array([0.0, -0.0, np.nan, 1, -1]), (300, 2000))
    program = Program(graph, threads=2)
    assert same(program(x), interpret(graph, x))
    assert "2 threads:" in program.explain(x)


@every("settings", [{"threads": 1}, {"threads": 3, "block": 777}])
def test_callers_share_a_program(settings: Any) -> None:
    """Mixed shapes, refused calls among them, results held while others are computed."""
    graph = mixed()
    program = Program(graph, **settings)
    cases = [(inputs_of(shape), interpret(graph, *inputs_of(shape))) for shape in SHAPES]
    refused, errors = refused_inputs(), []

    def work(number: int) -> None:
        try:
            held: list[Any] = []
            for k in range(60):
                if k % 20 == number:
                    with pytest.raises(ExecutionError, match="pow"):
                        program(*refused)
                    continue
                given, expected = cases[(number * 7 + k) % len(cases)]
                held.append((program(*given), expected))
                if len(held) > 5:
                    found, expected = held.pop(0)
                    assert all(map(same, found, expected))
        except BaseException as error:
            errors.append(error)

    callers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for one in callers:
        one.start()
    for one in callers:
        one.join()
    assert not errors
    assert threads() == [threading.main_thread()]
    assert 1 <= len(program.memory.free) <= 4 * program.threads


def test_no_thread_is_left() -> None:
    before = {*threading.enumerate()}
    program = Program(mixed(), threads=4, block=500, native="off")
    program(*inputs_of((100, 100)))
    with pytest.raises(ExecutionError):
        program(*refused_inputs())
    assert before.issuperset(threading.enumerate())


# -- errors


@every("threads", [1, 2, 4])
@every("block", [None, 777])
def test_an_error_in_a_block(threads: int, block: int | None) -> None:
    graph = mixed()
    program = Program(graph, threads=threads, block=block)
    refused, given = refused_inputs(), inputs_of(SHAPES[-1])
    with pytest.raises(ExecutionError) as meant:
        interpret(graph, *refused)
    for _ in range(3):
        with pytest.raises(ExecutionError) as found:
            program(*refused)
        assert str(found.value) == str(meant.value)
        assert "test_program_threads.py" in str(found.value) and "pow(int32[n, m]" in str(
            found.value
        )
        assert all(map(same, program(*given), interpret(graph, *given)))


def inputs_refused() -> list[Any]:
    x, y, i = inputs_of((2, 3))
    return [
        ((), {}),
        ((x, y), {}),
        ((x, y, i, i), {}),
        ((x, y, i), {"x": x}),
        ((x, y), {"z": i}),
        ((x, y, i.astype(np.int64)), {}),
        ((x, y, 3), {}),
        ((x, y, i.tolist()), {}),
        ((x, y, None), {}),
        ((x, y[:2], i), {}),
        ((x[0], y, i), {}),
        ((x, y, np.ma.masked_array(i)), {}),
        ((x, y), {"i": i.astype(">i4").astype(">i8")}),
        ((x, y, i.astype(object)), {}),
    ]


@every(("given", "named"), inputs_refused())
def test_inputs_are_refused_as_interpret_refuses_them(given: Any, named: Any) -> None:
    graph = mixed()
    program = Program(graph)
    with pytest.raises(ExecutionError) as meant:
        interpret(graph, *given, **named)
    for run in (program, program, lambda *xs, **ys: execute(graph, *xs, **ys)):
        with pytest.raises(ExecutionError) as found:
            run(*given, **named)
        assert str(found.value) == str(meant.value)
        program(*inputs_of((2, 3)))


def test_weak_inputs_are_refused_as_interpret_refuses_them() -> None:
    graph = Graph("weak", rules="jax")
    graph.output(graph.input("weak_float", (), name="x") + 1)
    with pytest.raises(ExecutionError, match="weak_float") as meant:
        interpret(graph, np.ones(1))
    with pytest.raises(ExecutionError) as found:
        execute(graph, np.ones(1))
    assert str(found.value) == str(meant.value)


@every("setting", ["threads", "block"])
@every("value", [0, -1, 1.5, "2"])
def test_counts(setting: str, value: Any) -> None:
    with pytest.raises(ExecutionError, match=f"{setting} is a count"):
        Program(chain(), **{setting: value})


# -- what callers have set


@every("threads", [1, 3])
def test_float_errors_never_warn_and_state_is_the_callers(threads: int) -> None:
    """Warnings are errors in the whole suite; here floats raise, too."""
    program = Program(chain(), threads=threads, block=100)
    x = np.linspace(-1e38, 1e38, 1000, dtype=np.float32)
    with np.errstate(all="raise"):
        before = np.geterr()
        for _ in range(2):
            found = program(x, x)
        assert np.geterr() == before
    assert same(found, interpret(program.graph, x, x))


# -- processes


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
from graphir import Graph, ops
from graphir.runtime import Program, interpret
from tests.support.evaluator import same
graph = Graph("long")
x = graph.input("float64", ("n",), name="x")
y = x
for _ in range(40):
    y = ops.sin(y) + ops.exp(y) * x
graph.output(y)
program = Program(graph, threads=int(sys.argv[1]))
given = np.linspace(0, 1, 20_000_000)
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    program(given)
except KeyboardInterrupt:
    stopped = time.perf_counter()
else:
    sys.exit("it was not interrupted")
while len(threading.enumerate()) > 1 and time.perf_counter() < stopped + 5:
    pass
assert threading.enumerate() == [threading.main_thread()]
few = given[:300_000]
assert same(program(few), interpret(graph, few))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX has them")
@pytest.mark.parametrize("threads", quick(["2", "1"], 2))
def test_an_interrupt_stops_a_long_call(threads: str) -> None:
    """Which would last more than a minute."""
    command = [sys.executable, "-c", INTERRUPTED, threads]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert found.returncode == 0, found.stderr


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no alarm clock")
def test_an_interrupt_waits_for_those_who_help() -> None:
    """They still write to what the call is about to let go of."""
    caller, begun, done = threading.get_ident(), threading.Event(), list[int]()

    def work(workspace: Workspace, numbers: Any) -> None:
        if threading.get_ident() == caller:
            begun.wait()
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            return
        begun.set()
        time.sleep(0.2)
        done.append(1)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            share(2, work, 2, Workspace(), [])
        assert done
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_after_use() -> None:
    program = Program(mixed(), threads=2, block=500)
    given = inputs_of((100, 100))
    program(*given)
    before = [one.copy() for one in program(*given)]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for found in pool.starmap(program, [given] * 4):
            assert all(map(same, found, before))
    assert all(map(same, program(*given), before))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
