"""Drawn NumPy programs: `python -m tests.runtime.program.fuzz_programs [--count N] [--seed N]`.

A program is a function of a few arrays: elementwise functions, reductions over any axes and what is
broadcast back, products of matrices, stencils of slices, assignments to slices, sorts, sums along
an axis, lookups and casts, over arrays of any layout. NumPy runs each statement as it is drawn, so
that programs raise nothing. Each runs by machine code and without, on one thread and on several,
with caches as they are and so small that small arrays are cut, and twice; its results have the bits
of `interpret`.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from contextlib import nullcontext
from random import Random
from typing import Any

import numpy as np

from graphir import GraphirError
from graphir.numpy_api.trace import trace
from runtime import Program, interpret
from runtime.program.cost_model import scaled
from tests.support.evaluator import same
from tests.support.native_runs import step_by_step

DTYPES = ["f4", "f4", "f4", "f8", "f8", "i4", "i8", "i1", "u1", "f2", "?"]
UNARY = [
    *("np.exp({x})", "np.exp(-np.abs({x}))", "np.log(np.abs({x}) + 1)", "np.tanh({x})", "-{x}"),
    *(
        "np.sqrt(np.abs({x}))",
        "{x} * 2",
        "{x} ** 2",
        "np.log1p(np.abs({x}))",
        "1 / (1 + {x} * {x})",
    ),
    *("np.maximum({x}, 0)", "np.expm1({x} * 0.1)", "np.abs({x})", "np.clip({x}, -1, 2)", "{x} > 0"),
    *("np.log({x})", "np.sin({x})", "np.rint({x})", "{x} + 0.5", "3 - {x}", "np.sign({x})"),
]
BINARY = [
    *("{x} + {y}", "{x} - {y}", "{x} * {y}", "np.maximum({x}, {y})", "{x} / (np.abs({y}) + 1)"),
    *(
        "np.where({x} > {y}, {x}, {y})",
        "{x} * 0.9 + {y} * 0.1",
        "np.minimum({x}, {y})",
        "{x} < {y}",
    ),
]
REDUCTIONS = [
    *("{x}.sum({axis})", "{x}.mean({axis})", "{x}.max({axis})", "{x}.min({axis})"),
    *("np.sum({x} * {x}, {axis})", "np.sum(np.exp(-np.abs({x})), {axis})", "{x}.std({axis})"),
    *(
        "np.any({x} > 0, {axis})",
        "np.all({x} > -2, {axis})",
        "{x}.var({axis})",
        "np.prod({x}, {axis})",
        "np.argmax({x}, {axis})",
        "np.argmin(-{x}, {axis})",
    ),
]
ROWS = [
    *("{x} - {x}.mean({kept})", "({x} - {x}.mean({kept})) / ({x}.std({kept}) + 1)"),
    *("np.exp({x} - {x}.max({kept}))", "{x} / np.sqrt(np.mean({x} * {x}, {kept}) + 1)"),
    *("np.exp({x} - {x}.max({kept})) / np.exp({x} - {x}.max({kept})).sum({kept})",),
    *("np.sort({x}, {last})", "np.cumsum({x}, {last})", "np.argsort({x}, {last}, kind='stable')"),
    *(
        "np.argmax({x}, {last})",
        "np.argmin({x}, {last})",
        "{x} - np.max({x}, {last}, keepdims=True)",
    ),
]
MOVES = [
    *(
        "{x}[..., ::-1]",
        "{x}.T",
        "{x}[1:-1]",
        "{x}[::2]",
        "{x}[..., 1:]",
        "{x}[:, None]",
        "{x}[None]",
    ),
    *("np.swapaxes({x}, -1, -2)", "{x}.reshape(-1)", "np.concatenate([{x}, {x}[:1]])", "{x}[0]"),
    *(
        "np.roll({x}, 1, 0)",
        "np.pad({x}, 1)",
        "{x}[np.array([1, 0, 1])]",
        "{x}[..., None]",
        "{x}[-1]",
    ),
    *("np.stack([{x}, {x}], -1)", "{x}.astype(np.float32)", "{x}.astype(np.float64)", "{x}.copy()"),
    *(
        "{x}.astype(np.int32)",
        "{x}.astype(np.int8)",
        "{x}.astype(np.float16)",
        "{x}.astype(np.uint8)",
    ),
    *("np.diff({x})", "np.broadcast_to({x}, (3, *{x}.shape))", "np.take({x}, [0, 1, 0], -1)"),
]
STENCILS = [
    *("{x}[:-2] + {x}[2:] - 2 * {x}[1:-1]", "{x}[..., :-1] * 0.5 + {x}[..., 1:] * 0.5"),
    *("{x}[1:-1, 1:-1] + 0.1 * ({x}[:-2, 1:-1] + {x}[2:, 1:-1] + {x}[1:-1, :-2])",),
    *("np.roll({x}, 1, 0) + np.roll({x}, -1, 0)", "{x}[1:] * 0.5 - {x}[:-1]"),
]
UPDATES = [
    *(
        "{z}[1:-1] += 0.1 * ({z}[:-2] + {z}[2:] - 2 * {z}[1:-1])",
        "{z}[0] = 0",
        "{z}[..., 0] += {z}[..., 1]",
    ),
    *(
        "{z}[1:-1] = {x}[2:] - {x}[:-2]",
        "{z}[-1] = {z}[-2]",
        "{z}[:, 1:] = {z}[:, :-1]",
        "{z}[1:-1, 1:-1] += 0.1 * {z}[:-2, 1:-1]",
        "{z} *= 0.5",
        "{z}[::2] = 1",
    ),
]
PRODUCTS = [
    *(
        "{x} @ {y}",
        "{x} @ np.swapaxes({y}, -1, -2)",
        "np.maximum({x} @ np.swapaxes({y}, -1, -2) + 1, 0)",
    ),
    *("{x} @ {x}.T", "np.sum(({x}[:, None] - {y}[None]) ** 2, -1)", "np.dot({x}, {y})"),
    *(
        "np.einsum('ij,kj->ik', {x}, {y})",
        "np.outer({x}, {y})",
        "{x}.astype(np.int32) @ {x}.astype(np.int32).T",
    ),
    *("np.einsum('...ij,...kj->...ik', {x}, {y})", "np.sum({x}[:, None] * {y}[None], 1)"),
    *(
        "{x} / (1 + np.abs({x} @ {x}.reshape(-1)[: {x}.shape[-1]])[..., None])",
        "np.stack([{x}, {y}, {x}], -1) * {x}[..., None] + np.arange(3)",
    ),
]
KINDS = [
    UNARY,
    UNARY,
    BINARY,
    BINARY,
    REDUCTIONS,
    REDUCTIONS,
    ROWS,
    ROWS,
    MOVES,
    STENCILS,
    UPDATES,
    PRODUCTS,
]
SHAPES: list[tuple[int, ...]] = [
    *((40,), (300,), (2000,), (3, 4), (17, 33), (60, 130), (9, 300), (130, 7), (50, 3), (200, 64)),
    *((2, 9, 16), (4, 33, 3), (3, 20, 40), (2, 3, 8, 16), (1, 64), (33, 1), (5, 1, 40), (1100, 5)),
]
LARGE: list[tuple[int, ...]] = [(300, 1000), (1000, 300), (200_000,), (8, 100, 64), (40_000, 3)]
MOST = 1 << 20
"""The most elements of a value."""


class Drawn:
    """A program, drawn statement by statement, and arrays for it."""

    def __init__(self, number: int) -> None:
        self.pick, self.random = Random(number), np.random.default_rng(number)
        pick = self.pick
        large = pick.random() < 0.05
        shape = pick.choice(LARGE if large else SHAPES)
        if pick.random() < 0.03:  # arrays without elements
            shape = (0, *shape[1:])
        others = [shape, shape[-1:], (*shape[:-1], 1), shape[::-1], pick.choice(SHAPES)]
        dtypes = [pick.choice(DTYPES)] * 3 + [pick.choice(DTYPES)]
        shapes = [shape, *[pick.choice([shape, *others]) for _ in range(pick.randint(0, 2))]]
        self.arrays = [self._array(each, pick.choice(dtypes)) for each in shapes]
        self.names = [f"a{k}" for k in range(len(shapes))]
        self.values = {
            name: array.copy() for name, array in zip(self.names, self.arrays, strict=True)
        }
        self.lines: list[str] = []
        self.live = [*self.names]
        for _ in range(pick.randint(2, 5 if large else 14)):
            self._statement(pick.choice(KINDS))
        outputs = dict.fromkeys([self.live[-1], *pick.sample(self.live, min(2, len(self.live)))])
        body = "".join(f"    {line}\n" for line in self.lines)
        self.source = f"def f({', '.join(self.names)}):\n{body}    return {', '.join(outputs)},\n"

    def _array(self, shape: tuple[int, ...], code: str) -> np.ndarray:
        draw, dtype = self.random, np.dtype(code)
        if dtype.kind in "iu":
            array = draw.integers(-20 if dtype.kind == "i" else 0, 20, shape).astype(dtype)
        elif dtype.kind == "b":
            array = draw.random(shape) < 0.5
        else:
            array = draw.normal(size=shape) * self.pick.choice([1, 1, 10])
            array[draw.random(shape) < 0.02] = -0.0
            if self.pick.random() < 0.2:
                special = draw.choice([np.nan, np.inf, -np.inf, 0.0], size=shape)
                array = np.where(draw.random(shape) < 0.01, special, array)
            array = array.astype(dtype)
        kind = self.pick.random()
        if kind < 0.15:
            return np.asfortranarray(array)
        if kind < 0.25 and array.size:
            return np.repeat(array, 2, -1)[..., ::2]
        return array[::-1] if kind < 0.3 else array

    def _statement(self, templates: list[str]) -> None:
        pick = self.pick
        x, y = pick.choice(self.live[-4:]), pick.choice(self.live)
        rank, pairs = np.ndim(self.values[x]), np.size(self.values[x]) * np.size(self.values[y])
        if templates is PRODUCTS and max(pairs, np.size(self.values[x]) ** 2) > 64 * MOST:
            return
        axes = [*range(-rank, rank)] or [0]
        axis: Any = pick.choice(
            [None, -1, pick.choice(axes), pick.choice(axes), tuple(range(1, rank))]
        )
        keepdims = pick.random() < 0.5
        text = pick.choice(templates).format(
            x=x,
            y=y,
            z="z",
            last=f"axis={pick.choice([-1, -1, pick.choice(axes)])}",
            axis=f"axis={axis}, keepdims={keepdims}",
            kept=f"axis={pick.choice([-1, -1, axis])}, keepdims=True",
        )
        name = f"v{len(self.lines)}"
        lines = [f"{name} = {text}"]
        if templates is UPDATES:
            lines = [f"{name} = {x}.copy()", text.replace("z", name)]
        trial = self.values.copy()
        try:
            for line in lines:
                exec(line, {"np": np}, trial)
        except (ValueError, TypeError, IndexError, MemoryError, np.exceptions.AxisError):
            return
        value = trial[name]
        if np.size(value) > MOST or np.ndim(value) > 4:
            return
        self.values, self.live = trial, [*self.live, name]
        self.lines += lines


def run(number: int) -> str:
    """Return how a drawn program ended: equal, refused, or the difference with the program."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        drawn = Drawn(number)
        space: dict[str, Any] = {"np": np}
        exec(drawn.source, space)
        try:
            graph = trace(space["f"], *drawn.arrays, rules="numpy").graph
        except (GraphirError, TypeError, IndexError):
            return "refused"
        before = [array.copy() for array in drawn.arrays]
        expected = interpret(graph, *drawn.arrays)
        expected = expected if isinstance(expected, tuple) else (expected,)
        modes: list[tuple[Any, int, bool]] = [("off", 1, False), ("now", 1, False)]
        modes += [(drawn.pick.choice(["off", "now"]), 2, drawn.pick.random() < 0.7)]
        modes += [(drawn.pick.choice(["now", "auto"]), drawn.pick.choice([1, 2, 3]), True)]
        for native, threads, small in modes:
            apart = step_by_step() if drawn.pick.random() < 0.4 else nullcontext()
            with scaled(512 if small else 1), apart:
                program = Program(graph, native=native, threads=threads)
                for call in range(2):
                    results = program(*drawn.arrays)
                    results = results if isinstance(results, tuple) else (results,)
                    for k, (x, y) in enumerate(zip(results, expected, strict=True)):
                        if not same(np.asarray(x), np.asarray(y)):
                            mode = f"native={native!r} threads={threads} small={small} call {call}"
                            return f"seed {number}, {mode}, output {k}:\n{drawn.source}"
            if not all(map(same, before, drawn.arrays)):
                return f"seed {number}: an input has changed\n{drawn.source}"
    return "equal"


def main() -> None:
    """Draw programs and print those that differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    ends = {"equal": 0, "refused": 0}
    failures = 0
    for number in range(options.seed, options.seed + options.count):
        try:
            end = run(number)
        except Exception as error:
            end = f"seed {number}: {type(error).__name__}: {error}\n{Drawn(number).source}"
        if end in ends:
            ends[end] += 1
        else:
            failures += 1
            print(end, flush=True)
    print(f"{ends['equal']} equal, {ends['refused']} refused, {failures} differ")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
