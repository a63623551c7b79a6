"""Stencils over one another, which run together on blocks of rows, have `interpret`'s bits."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphir import trace
from graphir.runtime import Program, interpret
from graphir.runtime.native import is_installed
from graphir.runtime.program.wavefronts import WavefrontStep
from tests.support.evaluator import same
from tests.support.scaled_thresholds import scaled
from tests.support.tables import every, quick, sampled

NATIVE = ("off", "auto", "now")
"""The tiers; "auto" runs the stages in NumPy until machine code pays."""

SMALL = {
    "CACHE": 1 << 12,
    "NATIVE_WINDOWS": 1 << 12,
    "SECOND_THREAD": 500,
    "NATIVE_SECOND_THREAD": 500,
}
"""Figures with which small arrays are large, and windows have a few rows."""

LARGE = {
    "CACHE": 3 << 12,
    "NATIVE_WINDOWS": 1 << 15,
    "SECOND_THREAD": 500,
    "NATIVE_SECOND_THREAD": 500,
}

Function = Callable[..., Any]


def program_of(function: Function, *arrays: np.ndarray, **options: Any) -> Program:
    return Program(trace(function, *arrays, rules="numpy").graph, **options)


def wavefronts(program: Program, *arrays: np.ndarray) -> list[WavefrontStep]:
    program(*arrays)
    (plan,) = program.plans
    return [step for step in plan.fused if isinstance(step, WavefrontStep)]


def check(function: Function, *arrays: np.ndarray, small: dict[str, int] = SMALL) -> list[Any]:
    """Return the wavefronts of a function after a test of its bits and its inputs."""
    before = [array.copy() for array in arrays]
    expected = interpret(trace(function, *arrays, rules="numpy").graph, *arrays)
    expected = expected if isinstance(expected, tuple) else (expected,)
    steps: list[WavefrontStep] = []
    with scaled(1, **small), np.errstate(all="ignore"):
        for native in NATIVE:
            for threads in (1, 2, 3):
                program = program_of(function, *arrays, native=native, threads=threads)
                for _ in range(2):
                    results = program(*arrays)
                    results = results if isinstance(results, tuple) else (results,)
                    assert all(map(same, results, expected)), (native, threads)
                steps = wavefronts(program, *arrays)
    assert all(map(same, before, arrays))
    return steps


def blur(image: Any) -> Any:
    for _ in range(4):
        sides = image[:-2, 1:-1] + image[2:, 1:-1] + image[1:-1, :-2] + image[1:-1, 2:]
        image = 0.5 * image[1:-1, 1:-1] + 0.125 * sides
    return image


def heat(field: Any) -> Any:
    field = field.copy()
    for _ in range(4):
        around = field[:-2, 1:-1] + field[2:, 1:-1] + field[1:-1, :-2] + field[1:-1, 2:]
        field[1:-1, 1:-1] += 0.1 * (around - 4 * field[1:-1, 1:-1])
    return field


def rod(field: Any) -> Any:
    field = field.copy()
    for _ in range(5):
        field[1:-1] += 0.1 * (field[:-2] - 2 * field[1:-1] + field[2:])
    return field


def volume(field: Any) -> Any:
    for _ in range(3):
        inner = field[1:-1, 1:-1, 1:-1]
        around = field[:-2, 1:-1, 1:-1] + field[2:, 1:-1, 1:-1] + field[1:-1, 1:-1, 2:]
        field = field.copy()
        field[1:-1, 1:-1, 1:-1] = inner + 0.1 * (around - 3 * inner)
    return field


def wave(u: Any, before: Any, speed: Any) -> Any:
    for _ in range(4):
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inner
        after = u.copy()
        after[1:-1, 1:-1] = 2 * inner - before[1:-1, 1:-1] + speed[1:-1, 1:-1] * around
        u, before = after, u
    return u, before


def fields(e: Any, hx: Any, hy: Any) -> Any:
    e, hx, hy = e.copy(), hx.copy(), hy.copy()
    for _ in range(3):
        hx -= 0.5 * (e[:, 1:] - e[:, :-1])
        hy += 0.5 * (e[1:] - e[:-1])
        e[1:-1, 1:-1] += 0.5 * (hy[1:, 1:-1] - hy[:-1, 1:-1] - hx[1:-1, 1:] + hx[1:-1, :-1])
    return e, hx, hy


def bounded(field: Any) -> Any:
    for _ in range(3):
        after = field.copy()
        after[1:-1, 1:-1] = 0.25 * (field[:-2, 1:-1] + field[2:, 1:-1]) + field[1:-1, 2:] / 3
        after[0] = 0
        after[-1] = after[-2]
        after[:, 0] = after[:, 1]
        after[:, -1] = 2 * after[:, -2] - after[:, -3]
        field = after
    return field


def functions(field: Any) -> Any:
    for _ in range(3):
        field = np.tanh(field[:-1, 1:] + np.exp(-np.abs(field[1:, :-1])))
    return field


def two(field: Any) -> Any:
    first = field[:-2] + field[2:]
    second = first[1:] * first[:-1]
    third = second[3:] - first[:-4]
    return first, third, second[::2]


def draws(*shapes: tuple[int, ...], dtype: Any = np.float32) -> list[np.ndarray]:
    random_ = np.random.default_rng(0)
    return [random_.normal(size=shape).astype(dtype) for shape in shapes]


@sampled(3)
@every(
    ("function", "shapes"),
    [
        *((blur, [(70, 90)]), (heat, [(70, 90)]), (rod, [(9000,)]), (volume, [(40, 12, 13)])),
        *((wave, [(60, 50)] * 3), (fields, [(50, 40), (50, 39), (49, 40)]), (two, [(80, 70)])),
        (functions, [(70, 60)]),
    ],
)
def test_a_chain_of_stencils_is_one_step(function: Function, shapes: Any) -> None:
    for dtype in (np.float32, np.float64):
        steps = check(function, *draws(*shapes, dtype=dtype), small=LARGE)
        assert len(steps) == is_installed()
        assert all(len(step.members) > 1 for step in steps)


def test_updates_of_borders_are_stages() -> None:
    for dtype in (np.float32, np.int64):
        steps = check(bounded, *draws((70, 60), dtype=dtype), small=LARGE)
        assert bool(steps) is is_installed()


class Drawn:
    """A drawn chain of stencils and updates of slices."""

    def __init__(self, seed: int) -> None:
        draw = self.draw = random.Random(seed)
        self.random = np.random.default_rng(seed)
        self.shape = draw.choice([(3000,), (90, 40), (60, 70), (200, 8), (30, 9, 11), (40, 1)])
        self.dtype = draw.choice(["f4", "f4", "f8", "i4", "i2", "f2", "c8", "?"])
        count = draw.randint(1, 3)
        self.arrays = [self._array() for _ in range(count)]
        self.values = [f"a{k}" for k in range(count)]
        self.shapes = dict.fromkeys(self.values, self.shape)
        self.lines: list[str] = []
        for _ in range(draw.randint(2, 9)):
            (self._update if draw.random() < 0.4 else self._stencil)()
        if draw.random() < 0.2:
            self._add(f"np.abs({self.values[-1]}[0]) * 2", self.shape[1:])
            self.values[-2:] = self.values[:-3:-1]
        outputs = dict.fromkeys(
            [self.values[-1], *draw.sample(self.values, draw.choice([0, 0, 1]))]
        )
        names = ", ".join(f"a{k}" for k in range(count))
        body = "".join(f"    {line}\n" for line in self.lines)
        self.source = f"def f({names}):\n{body}    return {', '.join(outputs)},\n"

    def _array(self) -> np.ndarray:
        array = self.random.normal(size=self.shape) * 5
        array[self.random.random(self.shape) < 0.05] = -0.0
        array = array.astype(self.dtype)
        return self.draw.choice([array, array, np.asfortranarray(array), array[::-1]])

    def _operands(self, shape: tuple[int, ...]) -> list[str]:
        """Return operands of a shape: shifted slices of values."""
        draw, operands = self.draw, list[str]()
        for _ in range(draw.randint(2, 4)):
            name = draw.choice(self.values[-3:])
            key: list[str] = []
            for size, own in zip(shape, self.shapes[name], strict=True):
                start = draw.randint(0, max(0, min(own - size, 4)))
                key.append(f"{start}:{start + size}")
            if all(own >= n for own, n in zip(self.shapes[name], shape, strict=True)):
                operands.append(f"{name}[{', '.join(key)}]")
        return operands

    def _value(self, shape: tuple[int, ...]) -> str:
        operands = self._operands(shape)
        if not operands:
            return "0"
        if self.dtype == "?":
            return self.draw.choice([" & ", " ^ ", " | "]).join(operands)
        text = self.draw.choice([" + ", " * ", " - "]).join(operands)
        kinds = [f"{text}", f"np.abs({text})" if self.dtype != "c8" else text, f"({text}) * 2"]
        if self.dtype in ("f4", "f8"):
            kinds += [f"np.exp(-np.abs({text}))", f"np.sqrt(np.abs({text})) / 3"]
        return self.draw.choice(kinds)

    def _stencil(self) -> None:
        source = self.shapes[self.draw.choice(self.values[-2:])]
        shape = tuple([max(1, n - self.draw.choice([0, 0, 1, 2])) for n in source])
        value = self._value(shape)
        if value != "0":
            self._add(value, shape)

    def _update(self) -> None:
        draw, source = self.draw, self.draw.choice(self.values[-2:])
        shape = self.shapes[source]
        self._add(f"{source}.copy()", shape)
        for _ in range(draw.randint(1, 2)):
            key: list[str] = []
            inner: list[int] = []
            for size in shape:
                first = draw.choice([0, 1, 1, 2]) % size
                end = draw.choice([size, size - 1, size - 1, first + 1])
                end = max(first + 1, end)
                key.append(f"{first}:{end}")
                inner.append(end - first)
            name = self.values[-1]
            if draw.random() < 0.2:
                to, at = draw.choice([0, 1, -1]), draw.choice([0, 1, -1])
                self.lines.append(f"{name}[{to}] = {name}[{at}] * 2")
                continue
            value = draw.choice(["0", self._value(tuple(inner)), self._value(tuple(inner))])
            self.lines.append(f"{name}[{', '.join(key)}] = {value}")

    def _add(self, text: str, shape: tuple[int, ...]) -> None:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.values.append(name)
        self.shapes[name] = shape


def drawn_steps(seed: int) -> int:
    """Return the number of wavefronts of a drawn chain after a test of its bits."""
    drawn = Drawn(seed)
    space: dict[str, Any] = {"np": np}
    exec(drawn.source, space)
    try:
        return len(check(space["f"], *drawn.arrays))
    except Exception as error:
        raise AssertionError(
            f"seed {seed}, {drawn.dtype} {drawn.shape}:\n{drawn.source}"
        ) from error


@pytest.mark.parametrize("first", quick([0, 10, 20, 30], 4))
def test_drawn_chains(first: int) -> None:
    count = sum(map(drawn_steps, range(first, first + 10)))
    assert count > 1 if is_installed() else count == 0


def test_explain_names_the_stages() -> None:
    (array,) = draws((600, 800))
    program = program_of(heat, array, native="now", threads=1)
    text = str(program.explain(array))
    assert ("steps 5, 12, 19, 26 run together" in text) is is_installed()
    assert ("3 of their 4 arrays stay in scratch memory" in text) is is_installed()


def test_stencils_of_other_rows_stay_apart() -> None:
    def function(field: Any) -> Any:
        first = field[1:] - field[:-1]
        second = first[::2] + 1
        return second, np.flip(first, 0) * 2

    assert not check(function, *draws((900, 30)), small=LARGE)


def test_an_update_of_few_rows_is_no_stage() -> None:
    def function(field: Any) -> Any:
        field = field.copy()
        for row in range(1, 20):
            field[row] -= 0.5 * field[row - 1]
        return field

    assert not check(function, *draws((60, 300)), small=LARGE)


def test_threads_that_compute_the_same_rows_share_no_result() -> None:
    def function(field: Any) -> Any:
        first = np.exp(-np.abs(field[:-2] * field[2:]))
        return first[1:] * first[:-1], first

    (step,) = check(function, *draws((300, 63)), small=LARGE) or [None]
    assert step is None or len(step.memories) == 3


@every("native", NATIVE)
def test_results_go_into_arrays_of_the_caller(native: Any) -> None:
    (array,) = draws((90, 80))
    expected = interpret(trace(heat, array, rules="numpy").graph, array)
    with scaled(1, **LARGE):
        program = program_of(heat, array, native=native, threads=2)
        out = np.empty_like(array)
        assert program(array, out=out) is out
        assert same(out, expected)
        own = array.copy()
        assert same(program(own, out=own), expected)


def test_a_call_leaves_no_cycle_that_holds_its_arrays() -> None:
    pytest.importorskip("llvmlite")  # without it no stencils are fused
    (array,) = draws((90, 80))
    gc.collect()
    gc.disable()
    try:
        with scaled(1, **LARGE):
            program = program_of(blur, array, native="auto")
            assert wavefronts(program, array)
            counts: list[int] = []
            for _ in range(4):
                program(array)
                counts.append(sys.getrefcount(array))
    finally:
        gc.enable()
    assert len(set(counts)) == 1
