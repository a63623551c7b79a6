"""When machine code takes over from NumPy: by the time spent there, and for all ways of calling."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphir import Graph, ops
from graphir.runtime import Program, execute, interpret, workers
from graphir.runtime.native import compilation
from graphir.runtime.native import kernels as policy
from graphir.runtime.program.cost_model import COST
from tests.support.native_runs import needs_llvmlite, needs_sums

X = np.linspace(-3, 3, 100, dtype=np.float32)


@pytest.fixture(autouse=True)
def _unforced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRAPHIR_NATIVE", raising=False)


def graph(summed: bool = False) -> Graph:
    g = Graph()
    x = g.input("float32", ("n",))
    y = x * x + 1.5
    g.output(ops.sum(y) * y if summed else y)
    return g


def comes(what: Callable[[], Any]) -> Any:
    """What is there within a while."""
    end = time.monotonic() + 60
    while not (found := what()) and time.monotonic() < end:
        time.sleep(0.01)
    return found


def kernels(program: Program) -> list[Any]:
    return [program.kernels(number) for number, _ in enumerate(program.steps)]


@needs_llvmlite
@pytest.mark.parametrize(
    "summed", [False, pytest.param(True, marks=needs_sums)], ids=["one step", "two steps"]
)
def test_at_once_it_is_compiled_by_the_first_call(summed: bool) -> None:
    program = Program(graph(summed), native="now")
    assert program(X).tobytes() == interpret(program.graph, X).tobytes()
    assert all(one.compiled_kernels for one in kernels(program))


@needs_llvmlite
def test_what_runs_briefly_is_not_even_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "submit", None)
    program = Program(graph())
    for n in (100, 10**4, 10**5):
        program(np.ones(n, np.float32))
    assert not any("code" in vars(one) for one in kernels(program))


@needs_llvmlite
@pytest.mark.parametrize("way", ["positions", "names", "out", "execute", "steps", "views"])
def test_what_is_called_long_enough_is_compiled_meanwhile(
    monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(COST, "COMPILE_COST", 1e5)
    monkeypatch.setattr(COST, "COMPILE_COST_INSTRUCTION", 0)
    monkeypatch.setattr(COST, "LOOK_CALLS", 8)
    g = graph()
    program = Program(g)
    x = np.ones(10**6, np.float32) if way == "steps" else X[::2] if way == "views" else X
    out = np.empty_like(x)
    call = {
        "names": lambda: program(x0=x),
        "out": lambda: program(x, out=out),
        "execute": lambda: execute(g, x),
    }.get(way, lambda: program(x))
    wanted = interpret(g, x).tobytes()

    def compiled() -> Any:
        assert call().tobytes() == wanted
        used = g.memo("program") if way == "execute" else program
        return kernels(used)[0].compiled_kernels

    assert comes(compiled)
    assert call().tobytes() == wanted


@pytest.mark.parametrize("broken", ["start", "job"])
def test_jobs_are_done_after_an_interrupt_or_a_failure(
    broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    def asked_for() -> list[int]:
        compilation.submit(done.append, 1)
        return done

    done = list[int]()
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    if broken == "job":
        compilation.submit(interrupted)
    else:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(threading.Thread, "start", interrupted)
            compilation.submit(len, "")
    assert comes(asked_for)


@needs_llvmlite
def test_shapes_in_turn_keep_what_was_made() -> None:
    program = Program(graph(), native="now")
    out = np.empty_like(X)
    for x in (X, X[:50]):
        program(x)
    made = [plan.native for plan in program.plans]
    assert len(made) == 2 and all(made)
    for x in (X, X[:50], X[::2]) * 3:
        assert program(x).tobytes() == interpret(program.graph, x).tobytes()
    assert program(X, out=out) is out
    assert [plan.native for plan in program.plans] == made


@needs_llvmlite
@pytest.mark.parametrize("n", [100, 10**6])
def test_inputs_are_rounded_for_all_that_read_them(n: int) -> None:
    g = Graph()
    x = g.input("tensor_float32", ("n",))
    g.output(x * x, ops.max(x))
    program, given = Program(g, native="now"), np.linspace(-3, 3, n, dtype=np.float32)
    wanted = [one.tobytes() for one in interpret(g, given)]
    for _ in range(4):
        assert [one.tobytes() for one in program(given)] == wanted


@needs_llvmlite
@needs_sums
def test_a_long_sum_is_one_call() -> None:
    g = Graph()
    x = g.input("float32", ("n",))
    g.output(ops.sum(x * x))
    program, given = Program(g, threads=1, native="now"), np.ones(10**6, np.float32)
    for _ in range(3):
        assert program(given) == 1e6
    assert program.machine_code


@needs_llvmlite
def test_long_calls_of_views_take_a_kernel_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(COST, "STEPWISE", -1)
    program = Program(graph(), native="now")
    for x in (X[::2], X[::-1][:50]):
        program(x)
        assert program(x).tobytes() == interpret(program.graph, x).tobytes()
    assert len(kernels(program)[0].compiled_kernels) > 1  # not that of contiguous arrays alone


@needs_llvmlite
@needs_sums
@pytest.mark.parametrize("shape", [(5, 3), (2, 4, 3), (9, 31), (300, 32), (40, 63)])
def test_short_rows_need_no_python(shape: tuple[int, ...]) -> None:
    """A row and a column, broadcast; sums of rows."""
    g = Graph(rules="numpy")
    x, row = g.input("float32", shape), g.input("float32", shape[-1:])
    column = g.input("float32", (*shape[:-1], 1))
    y = (x * row + column) * (x - row) * (column + row) + x
    g.output(y, (y * y).sum(axis=-1))
    rng = np.random.default_rng(0)
    given = [rng.normal(size=one.shape).astype(np.float32) for one in g.inputs]
    program, wanted = Program(g, native="now"), interpret(g, *given)
    for _ in range(3):
        assert [one.tobytes() for one in program(*given)] == [one.tobytes() for one in wanted]
    assert program.machine_code


def slow_rows(shape: tuple[int, ...], roots: int) -> tuple[Program, list[Any], bytes]:
    """Rows times one of their length, and so many roots; inputs, and the bits of the result."""
    g = Graph(rules="numpy")
    x, gain = g.input("float32", shape), g.input("float32", shape[-1:])
    y = x
    for _ in range(roots):
        y = np.sqrt(y * gain + 1)
    g.output(y)
    given = [np.ones(one.shape, np.float32) for one in g.inputs]
    return Program(g, native="now"), given, interpret(g, *given).tobytes()


@needs_llvmlite
@pytest.mark.parametrize(("rows", "native"), [(30, True), (1000, False)])
def test_short_rows_are_not_computed_by_elements_where_that_takes_long(
    rows: int, native: bool
) -> None:
    program, given, wanted = slow_rows((rows, 20), 10)
    for _ in range(3):
        assert program(*given).tobytes() == wanted
    assert bool(program.machine_code) == native


@needs_llvmlite
def test_what_takes_long_in_numpy_takes_steps() -> None:
    """Where rows are too short for a call without Python; a single slow call decides nothing."""
    program, given, wanted = slow_rows((80, 90, 9), 20)
    assert program(*given).tobytes() == wanted
    assert not kernels(program)[0].compiled_kernels
    for _ in range(3000):
        program(*given)
        if kernels(program)[0].compiled_kernels:
            break
    assert kernels(program)[0].compiled_kernels
    assert program(*given).tobytes() == wanted


def test_steps_that_cost_more_than_one_function_are_given_up() -> None:
    """The estimate decides first, and then the least time that calls step by step have taken."""
    plan = Program(graph(), threads=1).plan({"n": 100})
    plan.price, plan.prefers_steps = 100 * COST.STEPWISE, True
    for count in range(1, 2 * COST.STEPWISE_CALLS):
        assert plan.stepwise == (count <= COST.STEPWISE_CALLS)
        plan.count_stepwise(101 * COST.STEPWISE)
    plan.count_stepwise(99 * COST.STEPWISE)
    assert plan.stepwise


# -- threads


def test_helpers_that_never_begin_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(workers, "_idle", [])
    monkeypatch.setattr(workers, "start_new_thread", lambda *given: asked.append(given))
    x = np.ones(10**6, np.float32)
    program = Program(graph(), threads=3, block=1 << 16, native="off")
    assert program(x).tobytes() == interpret(program.graph, x).tobytes()
    assert len(asked) == 2
    for function, args in asked:
        function(*args)  # too late: there is nothing to do


def test_no_thread_to_be_had_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*given: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(workers, "_idle", [])
    monkeypatch.setattr(workers, "start_new_thread", none)
    x = np.ones(10**6, np.float32)
    program = Program(graph(), threads=2, block=1 << 16, native="off")
    assert program(x).tobytes() == interpret(program.graph, x).tobytes()
