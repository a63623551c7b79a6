"""jit: state that a function reads from outside its arguments, read again at every call."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from graphir import GraphError, GraphirError
from graphir.numpy_api.arrays.makers import traced_body
from graphir.runtime import jit
from graphir.runtime.jit.loads import is_library_module
from tests.runtime.jit.jitted import X, agree, counted
from tests.runtime.jit.watched_state import CASES, STATE, Layer
from tests.support.tables import every


@every("name", CASES)
def test_what_a_function_reads_is_what_is_there_now(name: str) -> None:
    before = dict(STATE)
    try:
        for f in CASES[name]():
            agree(f, X)
            agree(f, X + 1)
    finally:
        STATE.clear()
        STATE.update(before)


def test_a_trace_serves_all_calls_while_nothing_changes() -> None:
    layer, table = Layer(), {"w": X + 1}
    f, traces = counted(lambda x: layer(x) * table["w"] + np.float32(max(1, 2)))
    for step in range(4):
        f(X + step)
    assert len(traces) == 1
    layer.scale, layer.w = 2.0, layer.w  # the same values
    f(X)
    assert len(traces) == 1
    layer.scale = 3.0
    f(X), f(X)
    assert len(traces) == 2
    layer.scale = 2.0
    f(X)
    assert len(traces) == 2  # the earlier trace holds again


def test_a_changed_array_needs_no_new_program() -> None:
    w = X + 1
    f = jit(lambda x: x * w)
    program = f.program(X)
    assert [one.name for one in f.traced(X).graph.inputs] == ["%x", "%w"]
    for _ in range(20):
        w += 1
        assert f.program(X) is program
    np.testing.assert_array_equal(f(X), X * w)


def test_arrays_that_the_trace_makes_are_constants() -> None:
    f, traces = counted(lambda x: x * np.arange(4) + np.linspace(0, 1, 8).reshape(2, 4)[1])
    agree(f, X), agree(f, X)
    assert len(traces) == 1 + 2  # the function is called by itself too
    assert [one.name for one in f.traced(X).graph.inputs] == ["%x"]


def test_counters_and_logs_cause_no_trace() -> None:
    calls, log, counts, state = 0, [], {"n": 0}, Holder()

    @jit
    def f(x: Any) -> Any:
        nonlocal calls
        calls += 1
        log.append(x.shape)
        counts["n"] += 1
        state.last = x.dtype
        return x * 2

    for _ in range(3):
        f(X)
    assert (calls, log, counts["n"]) == (1, [(4,)], 1)


def test_objects_that_the_trace_makes_are_not_watched() -> None:
    class Total:
        def __init__(self, start: float, empty: bool = True) -> None:
            self.value, self.parts = start, [] if empty else [start]

        def add(self, part: float) -> None:
            self.value = self.value + part
            self.parts.append(part)

    class Nothing:
        def __init__(self) -> None:
            pass

    def total(x: Any) -> Any:
        inner = Total(0.0)
        for part in (1.0, 2.0):
            inner.add(part)
        return x * inner.value + sum(inner.parts) + (Nothing() is None)

    f, traces = counted(total)
    for _ in range(3):
        np.testing.assert_array_equal(f(X), X * 3 + 3)
    assert len(traces) == 1


def test_what_one_function_updates_another_reads() -> None:
    state, log = Holder(), [1]
    state.count = 0

    def scaled(x: Any) -> Any:
        return x * state.count + sum(log)

    @jit
    def f(x: Any) -> Any:
        state.count += 1
        log.append(2)
        return scaled(x)

    for step in range(1, 4):
        np.testing.assert_array_equal(f(X), X * step + 1 + 2 * step)


def test_a_write_to_an_outer_array_is_refused() -> None:
    w = X + 1

    @jit
    def f(x: Any) -> Any:
        w[0] += 1
        return x * w

    with pytest.raises(GraphError, match="f writes to w as it is traced"):
        f(X)


def test_equal_arguments_of_user_classes_are_told_apart() -> None:
    @dataclass(frozen=True)
    class Key:
        name: str

    class Named:
        def __init__(self, k: float) -> None:
            self.k = k

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Named)

        def __hash__(self) -> int:
            return 1

    f, traces = counted(lambda x, named, key: x * named.k + len(key.name))
    for k in (2.0, 3.0):
        np.testing.assert_array_equal(f(X, Named(k), Key("a")), X * k + 1)
    named = Named(4.0)
    f(X, named, Key("ab")), f(X, named, Key("ab"))
    assert len(traces) == 3
    named.k = 5.0
    np.testing.assert_array_equal(f(X, named, Key("ab")), X * 5 + 2)


# -- random numbers

RANDOM = np.random.default_rng(0)
LEGACY = np.random.RandomState(0)
PYTHON = random.Random(0)
DRAWS: dict[str, Callable[[Any], Any]] = {
    "np.random": lambda x: x * np.random.rand(),
    "random": lambda x: x * random.random(),
    "RANDOM": lambda x: x + RANDOM.normal(size=4),
    "LEGACY": lambda x: x + LEGACY.normal(size=4),
    "PYTHON": lambda x: x * PYTHON.gauss(0, 1),
    "a generator without a seed": lambda x: x * np.random.default_rng().normal(),
    "a generator without a seed ": lambda x: x * random.Random().random(),
    "holder.generator": lambda x: x * HOLDER.draw(),
}


class Holder:
    def __init__(self) -> None:
        self.generator = np.random.default_rng(0)

    def draw(self) -> Any:
        return self.generator.normal()


HOLDER = Holder()


@every("name", DRAWS)
def test_draws_of_random_numbers_are_refused(name: str) -> None:
    f = jit(DRAWS[name])
    last = name.strip().rpartition(".")[2]
    for _ in range(2):
        with pytest.raises(GraphError, match=f"draws random numbers.*{last}.*as an argument"):
            f(X)


def test_generators_with_a_seed_of_their_own_and_unused_ones_are_fine() -> None:
    agree(jit(lambda x: x + np.random.default_rng(0).normal(size=4)), X)
    agree(jit(lambda x: x * (2 if RANDOM is not None else 1)), X)


# -- other threads


@contextmanager
def beside(work: Callable[[], Any]) -> Generator[None]:
    """Inside the block, another thread does a piece of work again and again."""
    end, interval = threading.Event(), sys.getswitchinterval()

    def loop() -> None:
        while not end.is_set():
            work()

    thread = threading.Thread(target=loop, daemon=True)
    sys.setswitchinterval(1e-5)
    try:
        thread.start()
        yield
    finally:
        end.set()
        thread.join()
        sys.setswitchinterval(interval)


OUTER = np.ones(4)
WORK: dict[str, Callable[[], Any]] = {
    "np.random": np.random.rand,
    "np.random with a number kept": lambda: np.random.normal(size=3),
    "random": random.random,
    "random in Python": lambda: random.gauss(0, 1),
    "an array": lambda: OUTER.__iadd__(1),
    "a global": lambda: STATE.__setitem__("counter", STATE.get("counter", 0) + 1),
}
NO_DRAWS: list[Callable[[Any], Any]] = [
    lambda x: np.sin(x) + x.sum(),
    lambda x: x * OUTER.shape[0] + default_rng(0).normal(size=4),
    lambda x: max(1, len(STATE)) * x,
]


@every("name", WORK)
def test_what_another_thread_does_is_not_charged_to_the_trace(name: str) -> None:
    STATE["counter"] = 0
    with beside(WORK[name]):
        for f in NO_DRAWS:
            for _ in range(4):
                agree(jit(f), X)
        for _ in range(4):
            jit(lambda x: x * OUTER)(X)  # which of its values enter is the threads' affair
    agree(jit(lambda x: x * OUTER), X)
    del STATE["counter"]


def test_a_write_to_an_outer_array_is_refused_beside_other_threads() -> None:
    with beside(lambda: None), pytest.raises(GraphError, match="writes to OUTER"):
        jit(lambda x: OUTER.__setitem__(0, OUTER[0] + 1) or x)(X)  # the function of no name
    with beside(lambda: None), pytest.raises(GraphError, match="writes to OUTER"):
        jit(lambda x: np.add(OUTER, 1, out=OUTER) is None or x)(X)


@every("name", ["np.random", "random", "RANDOM", "PYTHON"])
def test_draws_are_refused_beside_a_thread_that_draws(name: str) -> None:
    draws = [random.random]
    with beside(WORK["np.random" if name == "RANDOM" else "random"]), beside(np.random.rand):
        for f in (DRAWS[name], lambda x: x * next(draw() for draw in draws)):
            with pytest.raises(GraphError, match="draws random numbers"):
                jit(f)(X)


# -- the profile function


def test_another_profile_function_goes_on() -> None:
    seen: set[str] = set()

    def profile(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            seen.add(frame.f_code.co_name)

    def helper(x: Any) -> Any:
        return x + 1

    f = jit(lambda x: helper(x))
    sys.setprofile(profile)
    try:
        f(X)
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(None)
    assert "helper" in seen
    with pytest.raises(GraphirError):
        jit(lambda x: bool(x))(X)
    assert sys.getprofile() is None


def test_a_profiler_of_c_goes_on() -> None:
    import cProfile

    profiler = cProfile.Profile()
    profiler.enable()
    jit(lambda x: x + 1)(X)
    np.fft.fft(np.ones(4))
    profiler.disable()
    names = {str(one.code) for one in profiler.getstats()}
    assert any("fft" in name for name in names)


def test_the_traced_bodies_of_numpys_functions_are_library_code():
    """They share code with NumPy's own functions, which the watch tells apart by the code."""
    body = traced_body(np.insert)
    assert body is not None
    assert is_library_module(body.__globals__["__name__"])


NUMBERS = iter(range(100))


def test_no_second_trace_takes_from_an_iterator() -> None:
    def steps(x: Any, y: Any) -> Any:
        x += 1
        return y * next(NUMBERS)

    jitted = jit(steps)
    memory = np.arange(5.0)
    with pytest.raises(GraphError, match="share memory"):
        jitted(memory, memory[1:])
    assert np.array_equal(jitted(memory, np.ones(5)), np.ones(5))  # by the second number


def _added(x: Any) -> Any:
    y = np.asarray(x) * 2
    np.add(y, x, out=y)  # might add to the set `np`
    return isinstance(y, np.ndarray), y


def test_a_call_of_numpys_function_is_no_change_of_its_module() -> None:
    f, traces = counted(_added)
    for _ in range(3):
        assert np.array_equal(f(X)[1], X * 3)
    assert len(traces) == 1
