"""Loops over scalars have the bits of `interpret`, in machine code and as Python functions."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from graphir import DType, ExecutionError, Graph, control, ops
from graphir.runtime import Program, interpret
from graphir.runtime.program.control import ControlStep
from tests.support.control_flow import SCALARS, scalar_programs
from tests.support.evaluator import agree, outcome
from tests.support.tables import every, sampled


def has_loop(program: Program) -> bool:
    """Whether all loops of a program are machine code."""
    steps = [step for step in program.bound({}) if isinstance(step, ControlStep)]
    loops = [step.loop for step in steps if step.symbol.op is not ops.control.part]
    return bool(loops) and all(loop and loop.is_compiled for loop in loops)


@given(scalar_programs(), st.sampled_from(("now", "off")))
def test_drawn_loops(drawn: tuple[Graph, list[Any]], native: Any) -> None:
    graph, inputs = drawn
    note(f"{graph}\n{inputs}")
    meaning = outcome(interpret, graph, *inputs)
    before = [x.tobytes() for x in inputs]
    program = Program(graph, native=native)
    for _ in range(3):
        assert agree(outcome(program, *inputs), meaning)
    assert [x.tobytes() for x in inputs] == before


def built(function: Any, *inputs: Any) -> Graph:
    """The graph of a function of symbols, with the inputs' types."""
    graph = Graph("built", rules="numpy")
    symbols = [graph.input(DType.from_numpy(x.dtype), x.shape) for x in map(np.asarray, inputs)]
    with graph:
        graph.output(*function(*symbols))
    return graph


def collatz(n: Any) -> Any:
    def body(state: Any) -> Any:
        n, steps = state
        return ops.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    return control.while_loop(lambda state: state[0] != 1, body, (n, n.graph.scalar(0)))


def mandelbrot(re: Any) -> Any:
    """A loop over scalars in a scan."""

    def count(carry: Any, c: Any) -> Any:
        def body(state: Any) -> Any:
            x, y, k = state
            return x * x - y * y + c, 2 * x * y + 0.3, k + 1

        start = c * 0, c * 0, c.graph.scalar(0)
        inside = control.while_loop(
            lambda s: ops.logical_and(s[0] * s[0] + s[1] * s[1] < 4, s[2] < 50), body, start
        )
        return carry + inside[2], inside[2]

    return control.scan(count, re.graph.scalar(0), re)


def table(x: Any) -> Any:
    """Elements of a table of two axes, each from its neighbours."""

    def row(i: Any, v: Any) -> Any:
        def element(j: Any, v: Any) -> Any:
            left, above = (
                ops.gather(ops.gather(v, a, 0), b, 0) for a, b in ((i, j - 1), (i - 1, j))
            )
            new = ops.gather(v, i, 0)
            new = ops.index_update(new, left * 0.5 + above * 0.25, j, axis=0)
            return ops.index_update(v, new, i, axis=0)

        return control.fori_loop(1, 6, element, v)

    return [control.fori_loop(1, 7, row, x)]


@sampled(3)
@every(
    ("function", "inputs"),
    [
        (collatz, [np.int64(837799)]),
        (mandelbrot, [np.linspace(-2, 1, 30)]),
        (table, [np.arange(42.0).reshape(7, 6)]),
        (
            lambda x: control.scan(lambda c, r: (c * 0.5 + r, c), x[0], x, reverse=True),
            [np.ones(9)],
        ),
    ],
)
@every("native", ["off", "now", "auto"])
def test_loops_as_people_write_them(function: Any, inputs: Any, native: Any) -> None:
    graph = built(function, *inputs)
    program, meaning = Program(graph, native=native), outcome(interpret, graph, *inputs)
    for _ in range(4):
        assert agree(outcome(program, *inputs), meaning)
    if native == "now":
        pytest.importorskip("llvmlite")
        assert has_loop(program)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_loop_in_python_goes_on_in_machine_code(
    reverse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of the turns, of a `scan` the rest of the rows."""
    pytest.importorskip("llvmlite")
    from graphir.runtime.native.scalar_loops import ScalarLoop

    turns: list[int] = []
    compiled = ScalarLoop.is_compiled.fget
    assert compiled

    def late(self: Any) -> bool:
        turns.append(1)
        self._now = len(turns) > 2
        return compiled(self)

    monkeypatch.setattr(ScalarLoop, "is_compiled", property(late))
    xs = np.random.default_rng(0).normal(size=2000)

    def both(xs: Any) -> Any:
        carry, ys = control.scan(
            lambda c, x: (c * 0.5 + x, (c, c > 0)), xs.graph.scalar(0.0), xs, reverse=reverse
        )
        return carry, *ys, control.fori_loop(0, 3000, lambda i, v: v * 0.99 + i, carry)

    graph = built(both, xs)
    meaning = interpret(graph, xs)
    for _ in range(3):
        turns.clear()
        assert agree(Program(graph, native="auto")(xs), meaning)
        assert len(turns) > 3


@every("native", ["off", "now"])
@every("nested", [False, True])
def test_a_signal_ends_a_loop(native: Any, nested: bool) -> None:
    def endless(x: Any) -> Any:
        def loop(v: Any) -> Any:
            return control.while_loop(lambda v: v >= 0, lambda v: v * 0.5, v)

        return [control.fori_loop(0, 9, lambda _, v: loop(v), x) if nested else loop(x)]

    class BellError(Exception):
        pass

    def ring(*_: Any) -> None:
        raise BellError

    program = Program(built(endless, np.float64(1)), native=native)
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(BellError):
            program(np.float64(1))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_other_threads_run_beside_a_loop() -> None:
    pytest.importorskip("llvmlite")
    graph = built(
        lambda n: [control.while_loop(lambda v: v > 0, lambda v: v - 1, n)], np.float64(1)
    )
    program, ticks = Program(graph, native="now"), [0]
    ends = threading.Event()

    def tick() -> None:
        while not ends.is_set():
            ticks[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=tick)
    thread.start()
    program(np.float64(1))
    before = ticks[0]
    program(np.float64(3e8))  # steps of floats, which LLVM does not add up beforehand
    ends.set()
    thread.join()
    assert ticks[0] > before + 2


def test_an_element_beyond_the_array_is_the_error_of_the_interpreter() -> None:
    def beyond(x: Any) -> Any:
        def body(i: Any, v: Any) -> Any:
            return ops.index_update(v, ops.gather(v, i - 1, axis=0) + 1, i, axis=0)

        return [control.fori_loop(0, 9, body, x)]

    x = np.zeros(5)
    graph = built(beyond, x)
    with pytest.raises(ExecutionError, match="index 5 is out of range") as expected:
        interpret(graph, x)
    for native in ("off", "now"):
        program = Program(graph, native=native)
        for _ in range(2):
            with pytest.raises(ExecutionError) as error:
                program(x)
            assert str(error.value) == str(expected.value)
    assert not x.any()


@every("dtype", [x for x in SCALARS if x.family in ("int", "uint")])
def test_divisions_of_integers(dtype: DType) -> None:
    limits = np.iinfo(dtype.storage)
    edges = [limits.min, limits.min + 1, limits.max, 0, 1, 2, 3, 7, 10]
    edges += [-1, -2, -3, -7] if limits.min else [limits.max // 2, limits.max // 2 + 1]
    pairs = np.array([(x, y) for x in edges for y in edges], dtype.storage).T
    graph = Graph("divisions")
    x, y = (graph.input(dtype, (len(edges) ** 2,)) for _ in range(2))
    with graph:
        graph.output(*control.scan(lambda _, r: ((), (r[0] // r[1], r[0] % r[1])), (), (x, y))[1])
    meaning = interpret(graph, *pairs)
    for native in ("off", "now"):
        assert agree(Program(graph, native=native)(*pairs), meaning)


@sampled(2)
@every("dtype", [x for x in SCALARS if x.family in ("int", "uint")])
def test_divisions_by_constants(dtype: DType) -> None:
    """By powers of two machine code shifts."""
    limits = np.iinfo(dtype.storage)
    x = np.array([limits.min, limits.min + 1, limits.max, 0, 1, 2, 5, 77, 100], dtype.storage)
    for divisor in {0, 1, 2, 3, 64, limits.max, max(-1, limits.min), max(-2, limits.min)}:

        def both(c: Any, r: Any, y: Any = divisor) -> Any:
            return c, (r // y, r % y)

        graph = built(lambda x, both=both: control.scan(both, (), x)[1], x)
        meaning = interpret(graph, x)
        for native in ("off", "now"):
            assert agree(Program(graph, native=native)(x), meaning)


# -- in Python, as statements


@sampled(3)
@every("dtype", [np.int8, np.int64, np.uint8, np.uint64])
def test_elements_and_branches_are_expressions(dtype: Any) -> None:
    """Places may count from the end; a choice is clamped; those beyond are the kernel's error."""

    def walk(x: Any, place: Any) -> Any:
        def body(i: Any, state: Any) -> Any:
            v, place, total = state
            value = ops.gather(v, place, axis=0)
            v = ops.index_update(v, value * 2, place, axis=0)
            more = control.switch(i - 1, [lambda: value, lambda: value + 1, lambda: total * 0.5])
            total = control.cond(value > 2, lambda: total + more, lambda: total - 1)
            return v, place + 1, total

        return control.fori_loop(0, 4, body, (x, place, x.graph.scalar(0.0)))

    x = np.arange(6.0)
    for start in (0, 1, 2, 3, 4, *[-4, -6] * (dtype(0).dtype.kind == "i")):
        place = dtype(start)
        graph = built(walk, x, place)
        meaning = outcome(interpret, graph, x, place)
        for native in ("off", "now"):
            program = Program(graph, native=native)
            for _ in range(3):
                assert agree(outcome(program, x, place), meaning)


ELEMENTS: dict[str, Any] = {
    "before": lambda v, i: ops.gather(v, i - 1, axis=0) + ops.gather(v, i, axis=0),
    "the same": lambda v, i: ops.gather(v, i, axis=0) * 2 + 1,
    "two before": lambda v, i: ops.gather(v, i - 2, axis=0) + ops.gather(v, i - 1, axis=0),
    "after": lambda v, i: ops.gather(v, i + 1, axis=0) - ops.gather(v, i, axis=0),
    "from the end": lambda v, i: ops.gather(v, -i, axis=0) + ops.gather(v, i, axis=0),
    "by remainder": lambda v, i: (
        ops.gather(v, i * 7 % 3, axis=0) - ops.gather(v, i * i % 11, axis=0)
    ),
}


@sampled(3)
@every("native", ["off", "now"])
@every("dtype", [np.float32, np.int16])
@every("name", ELEMENTS)
def test_elements_that_were_written_before(name: str, dtype: Any, native: Any) -> None:
    def body(i: Any, v: Any) -> Any:
        v = ops.index_update(v, ELEMENTS[name](v, i), i, axis=0)
        return ops.index_update(v, ELEMENTS[name](v, i), i * 0 + 3, axis=0)

    def nested(i: Any, v: Any) -> Any:
        v = control.fori_loop(2, 9, body, v)
        return ops.index_update(v, ELEMENTS[name](v, i), i, axis=0)

    def function(v: Any) -> Any:
        return control.fori_loop(2, 9, body, v), control.fori_loop(2, 6, nested, v)

    x = np.arange(12).astype(dtype)
    graph = built(function, x)
    program, meaning = Program(graph, native=native), outcome(interpret, graph, x)
    for _ in range(3):
        assert agree(outcome(program, x), meaning)
    if native == "now":
        pytest.importorskip("llvmlite")
        assert has_loop(program)


# -- beside other steps, as one call of machine code


def test_a_loop_is_one_call_of_machine_code() -> None:
    pytest.importorskip("llvmlite")

    def sums(x: Any, rate: Any) -> Any:
        def body(i: Any, state: Any) -> Any:
            v, total = state
            v = ops.index_update(v, ops.gather(v, i - 1, axis=0) * rate, i, axis=0)
            return v, total + i

        v, total = control.fori_loop(1, 9, body, (x * 2, rate * 0))
        return v, total, ops.sort(v, axis=0, stable=False)

    x, rate = np.arange(9.0), np.float64(0.5)
    graph = built(sums, x, rate)
    program, meaning = Program(graph, native="now"), interpret(graph, x, rate)
    for _ in range(3):
        assert agree(program(x, rate), meaning)
    for form in (rate, np.asarray(rate)):
        assert agree(program.machine_code(x, form), meaning)  # pyright: ignore
    for form in (np.float32(0.5), 0.5, np.asarray([0.5]), np.bool_(True), None):
        assert program.machine_code(x, form) is None  # pyright: ignore
    assert (x == np.arange(9.0)).all()


@every("dtype", [DType.from_numpy(char) for char in "bBhHiIlLefd"])
def test_numpy_scalars_enter_machine_code(dtype: DType) -> None:
    pytest.importorskip("llvmlite")
    value = dtype.storage.type(3)
    graph = built(
        lambda x, y: [control.while_loop(lambda v: v < 9, lambda v: v + v, x), x + y],
        *[np.asarray(value)] * 2,
    )
    program, meaning = Program(graph, native="now"), interpret(graph, value, value)
    for _ in range(4):
        assert agree(program(value, value), meaning)
        assert agree(program(np.asarray(value), value), meaning)


def test_a_refusal_and_a_signal_leave_machine_code() -> None:
    pytest.importorskip("llvmlite")

    def beyond(x: Any, i: Any) -> Any:
        return [control.while_loop(lambda i: ops.gather(x, i, axis=0) > 0, lambda i: i + 1, i)]

    x = np.array([1.0, 1, 0, 1, 1])
    program = Program(built(beyond, x, np.int64(0)), native="now")
    for _ in range(3):
        assert program(x, np.int64(0)) == 2
    assert program.machine_code is not None
    for _ in range(2):
        with pytest.raises(ExecutionError, match="index 5 is out of range"):
            program(x, np.int64(3))
        assert program(x, np.int64(1)) == 2


def _older(i: Any, state: Any) -> Any:
    """Reads an element of an array after a write to it."""
    x, y = state
    new = ops.index_update(x, ops.gather(y, i, 0) + 1, i, axis=0)
    return ops.index_update(new, ops.gather(x, i, 0) * 2, i + 1, axis=0), y


def _swapped(i: Any, state: Any) -> Any:
    """Writes to one of two arrays in turn."""
    x, y = state
    return ops.index_update(y, ops.gather(x, i, 0) + 1, i + 1, axis=0), x


def _both(i: Any, state: Any) -> Any:
    """Gives one array twice."""
    x, _ = state
    x = ops.index_update(x, ops.gather(x, i, 0) + 1, i + 1, axis=0)
    return x, x


def _local(i: Any, state: Any) -> Any:
    """Writes to a copy for one turn."""
    x, y = state
    copy = ops.index_update(y, ops.gather(x, i, 0), i, axis=0)
    return ops.index_update(x, ops.gather(copy, i, 0) + 1, i + 1, axis=0), y


def _branch(i: Any, state: Any) -> Any:
    """Writes in a branch."""
    x, y = state
    new = control.cond(
        i > 1, lambda: ops.index_update(x, ops.gather(y, i, 0), i, axis=0), lambda: x
    )
    return new, y


@every("body", [_older, _swapped, _both, _local, _branch])
@every("same", [False, True])
def test_versions_of_arrays(body: Any, same: bool) -> None:
    """A write in machine code must not show in another array, or in an older version."""
    x, y = np.arange(6.0), np.arange(6.0) * 10
    graph = built(lambda x, y: control.fori_loop(0, 4, body, (x, x if same else y)), x, y)
    meaning = interpret(graph, x, y)
    for native in ("off", "now"):
        program = Program(graph, native=native)
        for _ in range(2):
            assert agree(program(x, y), meaning)
    assert x[0] == 0
    assert y[1] == 10
