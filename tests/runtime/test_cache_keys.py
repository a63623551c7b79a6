"""The keys of caches hold all that the caches read: code, constants, source, state of functions."""

from __future__ import annotations

import array
import contextvars
import ctypes
import importlib.util
import io
import itertools
import linecache
import os
import queue
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from graphir.runtime import interpret, jit, record
from tests.support.tables import every, sampled

X = np.arange(1.0, 4.0)

_ONE_LINE = """
import numpy as np
def scale(x): return np.float32(x)
def shift(x): return np.float64(x)
PAIR = (lambda x: scale(x) * 2.0), (lambda x: scale(x) * 3.0)
NAMES = (lambda x: scale(x)), (lambda x: shift(x))
TYPES = (lambda x: scale(x) * 1), (lambda x: scale(x) * 1.0), (lambda x: scale(x) * True)
SIGNS = (lambda x: scale(x) * 0.0), (lambda x: scale(x) * -0.0)
INNER = (lambda x: (lambda y: scale(y) + 1)(x)), (lambda x: (lambda y: scale(y) + 2)(x))
def closures(k): return (lambda x: scale(x) * k), (lambda x: scale(x) - k)
CLOSURES = *closures(2), *closures(3)
LOOP = [eval(f"lambda x: np.float32(x) * {k}") for k in range(3)]
"""
"""Functions of one line, whose code differs by constants, names, types of constants or columns."""


def load(path: Path, source: str) -> ModuleType:
    """Return a new module of a file with a source."""
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    exec(compile(source, str(path), "exec"), vars(module))
    return module


def differs(function: Callable[..., Any], *args: Any) -> bool:
    """Whether a recording of a function, or its replay, is not what the function returns."""
    expected, recording = function(*args), record(function, *args)
    results = recording.result, interpret(recording.graph, *recording.inputs)
    return any(np.asarray(result).tobytes() != np.asarray(expected).tobytes() for result in results)


def test_recordings_of_functions_of_one_line_run_their_own_code(tmp_path: Path) -> None:
    module = load(tmp_path / "one_line.py", _ONE_LINE)
    wrong = [
        f"{name}[{at}]"
        for name in ("PAIR", "NAMES", "TYPES", "SIGNS", "INNER", "CLOSURES", "LOOP")
        for at, function in enumerate(getattr(module, name))
        if differs(function, X)
    ]
    assert not wrong


def test_a_recording_runs_the_code_that_was_loaded_not_the_file_as_it_is_now(
    tmp_path: Path,
) -> None:
    path = tmp_path / "edited.py"
    source = "import numpy as np\ndef f(x):\n    return x * np.float32(x[0]) * {}\n"
    first = load(path, source.format(2))
    linecache.checkcache(str(path))
    assert not differs(first.f, X)
    second = load(path, source.format(3))  # of equal length: the time alone tells them apart
    os.utime(path, (2e9, 2e9))
    assert not differs(first.f, X)
    assert not differs(second.f, X)
    assert "cast" in {symbol.op.name for symbol in record(second.f, X).graph}
    linecache.checkcache(str(path))
    assert not differs(first.f, X)
    assert not differs(second.f, X)


# -- functions that a jitted function calls


def by_default(x: Any, k: Any = 2.0, *, shift: Any = 1.0) -> Any:
    return x * k + shift


class Layer:
    def scale(self, x: Any, k: Any = 2.0) -> Any:
        return x * k

    def __call__(self, x: Any, k: Any = 2.0) -> Any:
        return x + k

    @property
    def width(self) -> float:
        return 2.0

    def __mul__(self, other: Any) -> float:
        return 4.0

    @staticmethod
    def free(x: Any, k: Any = 2.0) -> Any:
        return x / k

    @classmethod
    def of_class(cls, x: Any, k: Any = 2.0) -> Any:
        return x - k


LAYER = Layer()
HELPERS = {"plain": by_default, "in a partial": partial(by_default, shift=4.0)}
CALLERS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "the function itself": (by_default, by_default),
    "a helper": (lambda x: by_default(x) - 1.0, by_default),
    "a helper of a container": (lambda x: HELPERS["plain"](x), by_default),
    "a helper in a partial": (lambda x: HELPERS["in a partial"](x), by_default),
    "a method": (lambda x: LAYER.scale(x), Layer.scale),
    "a special method": (lambda x: LAYER(x), Layer.__call__),
    "a static method": (lambda x: LAYER.free(x), Layer.free),
    "a class method": (lambda x: LAYER.of_class(x), Layer.of_class.__func__),  # type: ignore
    "a property": (lambda x: x * LAYER.width, vars(Layer)["width"].fget),
}


@every("name", CALLERS)
def test_a_replaced_part_of_a_function_traces_anew(name: str) -> None:
    f, helper = CALLERS[name]
    jitted, before = jit(f), (helper.__code__, helper.__defaults__, helper.__kwdefaults__)
    try:
        for _ in range(2):
            assert jitted(X).tobytes() == f(X).tobytes()
        if helper.__defaults__:
            helper.__defaults__ = (5.0,)
            assert jitted(X).tobytes() == f(X).tobytes()
        if helper.__kwdefaults__:
            helper.__kwdefaults__ = {"shift": 7.0}
            assert jitted(X).tobytes() == f(X).tobytes()
        helper.__code__ = (lambda *args, **_: args[-1] * 3.0 + 9.0).__code__
        assert jitted(X).tobytes() == f(X).tobytes()
    finally:
        helper.__code__, helper.__defaults__, helper.__kwdefaults__ = before
    assert jitted(X).tobytes() == f(X).tobytes()


# -- state that a look at it changes


class Holder:
    """A holder of an iterator."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def draw(self) -> Any:
        return next(self.values)


class Counting:
    """An iterator in Python."""

    def __init__(self) -> None:
        self.count = 1

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        self.count += 1
        return self.count


def generated() -> Iterator[float]:
    yield from (2.0, 3.0, 4.0, 5.0, 6.0)


def method_of(holder: Holder) -> Callable[[Any], Any]:
    return lambda x: x * holder.draw()


ITERATORS: dict[str, Callable[[], Any]] = {
    "list": lambda: iter([2.0, 3.0, 4.0, 5.0, 6.0]),
    "tuple": lambda: iter((2.0, 3.0, 4.0, 5.0, 6.0)),
    "range": lambda: iter(range(2, 9)),
    "dict": lambda: iter({2.0: 1, 3.0: 1, 4.0: 1, 5.0: 1, 6.0: 1}),
    "text": lambda: map(float, "23456"),
    "generator": generated,
    "generator expression": lambda: (float(k) for k in range(2, 9)),
    "zip": lambda: map(sum, zip(range(2, 9), range(7), strict=True)),
    "enumerate": lambda: map(sum, enumerate(range(2, 9))),
    "filter": lambda: filter(None, range(9)),
    "reversed": lambda: reversed([2.0, 3.0, 4.0, 5.0, 6.0]),
    "count": lambda: itertools.count(2),
    "cycle": lambda: itertools.cycle([2.0, 3.0]),
    "chain": lambda: itertools.chain([2.0], [3.0, 4.0, 5.0, 6.0]),
    "file": lambda: map(float, io.StringIO("2\n3\n4\n5\n6\n")),
    "class": Counting,
}
PLACES: dict[str, Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "cell": lambda it: ((lambda x: x * next(it)), ()),
    "element": lambda it: ((lambda x, its=[it]: x * next(its[0])), ()),
    "attribute": lambda it: (method_of(Holder(it)), ()),
    "argument": lambda it: ((lambda x, given: x * next(given)), (it,)),
    "loop": lambda it: ((lambda x: x * next(v for v in it)), ()),
    "unpacking": lambda it: ((lambda x: x * (lambda a, b: a - 2 * b)(next(it), next(it))), ()),
}


@sampled(4)
@every("place", PLACES)
def test_iterators_go_on_at_every_call(place: str) -> None:
    wrong: list[str] = []
    for name, make in ITERATORS.items():
        (f, given), (plain, others) = PLACES[place](make()), PLACES[place](make())
        jitted = jit(f)
        results = [(jitted(X, *given), plain(X, *others)) for _ in range(2)]
        if any(one.tobytes() != np.asarray(two).tobytes() for one, two in results):
            wrong.append(name)
    assert not wrong


def test_iterators_that_the_trace_makes_cause_no_trace() -> None:
    count = [0]

    def weighted(pairs: Any, x: Any) -> Any:
        return sum(x * k for k, _ in pairs)

    def f(x: Any) -> Any:
        count[0] += 1
        rows = iter([x, x * 2])
        return (
            weighted(zip(range(3), "abc", strict=True), x)
            + next(rows)
            + sum(v for v in map(float, "12"))
        )

    jitted = jit(f)
    for _ in range(3):
        assert jitted(X).tobytes() == f(X).tobytes()
    assert count == [4]


QUEUE: Any = queue.SimpleQueue()
VARIABLE: contextvars.ContextVar[float] = contextvars.ContextVar("VARIABLE", default=1.0)
LINE, NUMBER, BYTES = array.array("d", [1.0, 2.0]), ctypes.c_double(1.0), bytearray(b"abc")
VIEW = memoryview(BYTES)
LOG = io.StringIO()
CHANGES: dict[str, tuple[Callable[[Any], Any], Callable[[], Any]]] = {
    "queue": (lambda x: x * QUEUE.get(), lambda: None),
    "context variable": (lambda x: x * VARIABLE.get(), lambda: VARIABLE.set(5.0)),
    "array": (lambda x: x * LINE[1], lambda: LINE.__setitem__(1, 7.0)),
    "ctypes": (lambda x: x * NUMBER.value, lambda: setattr(NUMBER, "value", 5.0)),
    "bytearray": (lambda x: x * BYTES[0], lambda: BYTES.__setitem__(0, 3)),
    "memoryview": (lambda x: x * VIEW[1], lambda: BYTES.__setitem__(1, 3)),
    "set order": (lambda x: x * next(iter(HELPER_SET)), lambda: reorder(HELPER_SET)),
    "file": (lambda x: x * LOG.write("line"), lambda: LOG.write("l")),
}
HELPER_SET = {0, 8}


def reorder(values: set[int]) -> None:
    """Change the order of iteration of a set, with the same elements."""
    first = next(iter(values))
    others = values - {first}
    values.clear()
    values.update(others)
    values.add(first)


@every("name", CHANGES)
def test_state_of_pythons_compiled_types_is_read_at_every_call(name: str) -> None:
    f, change = CHANGES[name]
    jitted = jit(f)
    for step in range(3):
        for _ in range(2):
            QUEUE.put(step + 2.0)
            QUEUE.put(step + 2.0)
            start = LOG.tell()
            assert jitted(X).tobytes() == f(X).tobytes()
            assert LOG.tell() - start == (8 if name == "file" else 0)
        change()


def test_equal_values_that_differ_are_arguments_of_their_own() -> None:
    zone = timezone(timedelta(hours=5))
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    pairs: list[tuple[Any, Any]] = [
        (Decimal("1.0"), Decimal("1.00")),
        (noon, noon.astimezone(zone)),
        (frozenset([0, 8]), frozenset([8, 0])),
        (range(0), range(1, 1)),
        ((1, 2.0), (1.0, 2)),
    ]
    f = jit(lambda x, value: x * len(repr(value)) + len(f"{value}") + ord(repr(value)[-3]))
    for pair in pairs:
        for value in pair:
            expected = X * len(repr(value)) + len(f"{value}") + ord(repr(value)[-3])
            assert f(X, value).tobytes() == expected.tobytes(), value
