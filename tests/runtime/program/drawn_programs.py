"""A NumPy program drawn from a seed, statement by statement, with arrays to call it with.

NumPy runs each statement as it is drawn, so that programs raise nothing. The statements are those
of `drawn_statements`. No name of graphir but `graphir.control` stands here: a seed draws the same
program wherever the modules of graphir are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import numpy as np

from graphir import control
from tests.runtime.program.drawn_statements import (
    BATCHES,
    BROAD,
    CHANNELS,
    COPIES,
    KINDS,
    PLACES,
    PRODUCTS,
    SAME_SIZE,
    TYPED,
    UPDATES,
    VIEWS,
)
from tests.support import layouts

DTYPES = ["f4", "f4", "f4", "f8", "f8", "i4", "i8", "i1", "u1", "f2", "?"]
SHAPES: list[tuple[int, ...]] = [
    *((40,), (300,), (2000,), (3, 4), (17, 33), (60, 130), (9, 300), (130, 7), (50, 3), (200, 64)),
    *((2, 9, 16), (4, 33, 3), (3, 20, 40), (2, 3, 8, 16), (1, 64), (33, 1), (5, 1, 40), (1100, 5)),
]
BROAD_DTYPES = [*DTYPES, "c8", "c16", "u2", "u4", "u8", "i2"]
BROAD_SHAPES: list[tuple[int, ...]] = [
    *((), (1,), (9,), (40,), (1, 1), (1, 7), (7, 1), (3, 0, 4), (33, 9), (2, 3, 8, 16), (4, 33, 3)),
    *((2, 1, 5), (6, 40, 8), (3, 4, 1), (120, 3), (17, 1300), (5, 5, 5), (70, 20), (2, 20, 20)),
]
LAYOUTS = (
    *(np.array, layouts.strided, layouts.backwards, layouts.fortran, layouts.transposed),
    *(layouts.repeated, layouts.rows_repeated, layouts.unaligned),
)
LARGE: list[tuple[int, ...]] = [(300, 1000), (1000, 300), (200_000,), (8, 100, 64), (40_000, 3)]
NUMPY_ERRORS = (ArithmeticError, AttributeError, IndexError, MemoryError, TypeError, ValueError)
NUMPY_VALUES: Any = (np.ndarray, np.generic, bool, int, float, complex)
"""What NumPy and Python compute; other values belong to a graph."""
MOST = 1 << 20
"""The most elements of a value."""


def turns(count: int, body: Any, value: Any) -> Any:
    """Return a value after some turns of a loop, in NumPy or in a graph."""
    if not isinstance(value, NUMPY_VALUES):
        return control.fori_loop(0, count, body, value)
    for i in range(count):
        value = body(np.int64(i), value)
    return value


def choice(truth: Any, on_true: Any, on_false: Any, value: Any) -> Any:
    """Return one of two functions of a value, in NumPy or in a graph."""
    if not isinstance(truth, NUMPY_VALUES):
        return control.cond(truth, on_true, on_false, value)
    return (on_true if truth else on_false)(value)


def rows(function: Any, carry: Any, array: Any) -> Any:
    """Return the last carry and the stacked results of a scan, in NumPy or in a graph."""
    if not isinstance(array, NUMPY_VALUES):
        return control.scan(function, carry, array)
    results: list[Any] = []
    for row in array:
        carry, result = function(carry, row)
        results.append(result)
    return carry, np.stack(results)


def shifted(value: Any) -> Any:
    """Return a copy of an array in which each row is the one before."""
    value = value.copy()
    value[1:] = value[:-1]
    return value


SPACE: dict[str, Any] = {
    "np": np,
    "turns": turns,
    "choice": choice,
    "rows": rows,
    "shifted": shifted,
}


class Drawn:
    """A program, drawn statement by statement from some kinds, and arrays for it."""

    def __init__(self, number: int, kinds: Sequence[list[str]] = KINDS) -> None:
        self.pick, self.random = Random(number), np.random.default_rng(number)
        pick = self.pick
        self.is_broad = kinds is BROAD
        large = pick.random() < 0.05
        all_shapes = [*SHAPES, *BROAD_SHAPES] if self.is_broad else SHAPES
        shape = pick.choice(LARGE if large else all_shapes)
        if pick.random() < 0.03:  # arrays without elements
            shape = (0, *shape[1:])
        others = [shape, shape[-1:], (*shape[:-1], 1), shape[::-1], pick.choice(all_shapes)]
        all_dtypes = BROAD_DTYPES if self.is_broad else DTYPES
        dtypes = [pick.choice(all_dtypes)] * 3 + [pick.choice(all_dtypes)]
        shapes = [shape, *[pick.choice([shape, *others]) for _ in range(pick.randint(0, 2))]]
        self.arrays = [self._array(each or (1,), pick.choice(dtypes)) for each in shapes]
        if self.is_broad:
            self.arrays = [*self._laid_out(shapes)]
        self.names = [f"a{k}" for k in range(len(shapes))]
        self.values: dict[str, Any] = {
            name: array.copy() for name, array in zip(self.names, self.arrays, strict=True)
        }
        self.lines: list[str] = []
        self.live = [*self.names]
        for _ in range(pick.randint(2, 5 if large else 14)):
            self._statement(pick.choice(kinds))
        outputs = dict.fromkeys([self.live[-1], *pick.sample(self.live, min(2, len(self.live)))])
        if kinds is not KINDS:
            outputs |= dict.fromkeys(self._views([*outputs]))
        body = "".join(f"    {line}\n" for line in self.lines)
        self.source = f"def f({', '.join(self.names)}):\n{body}    return {', '.join(outputs)},\n"

    def _views(self, names: Sequence[str]) -> Iterator[str]:
        """Yield some views of values."""
        for name in names:
            text = self.pick.choice(VIEWS).format(x=name)
            try:
                eval(text, SPACE, self.values)
            except NUMPY_ERRORS:
                continue
            if self.pick.random() < 0.3:
                yield text

    def _laid_out(self, shapes: Sequence[tuple[int, ...]]) -> Iterator[np.ndarray]:
        """Yield the arrays in some layout; some are the first array, or a view of its memory."""
        arrays = [x.reshape(shape) for x, shape in zip(self.arrays, shapes, strict=True)]
        first = self.pick.choice(LAYOUTS)(arrays[0])
        for array in arrays:
            kind = self.pick.random()
            if kind < 0.15 and first.shape == array.shape:
                yield first if kind < 0.05 or not first.ndim else first[::-1]
            else:
                yield array if kind < 0.6 else self.pick.choice(LAYOUTS)(array)

    def small(self) -> list[np.ndarray]:
        """The first elements of the arrays, at most 2 to 4 along each axis."""
        most = {1: 1, 0: 0}
        parts: list[np.ndarray] = []
        for array in self.arrays:
            sizes = [most.setdefault(n, min(n, self.pick.choice([2, 3, 4]))) for n in array.shape]
            parts.append(array[*map(slice, sizes), ...])
        return parts

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
            if dtype.kind == "c":
                array.imag = draw.normal(size=shape)
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
        if (
            templates in (PRODUCTS, BATCHES, CHANNELS)
            and max(pairs, np.size(self.values[x]) ** 2) > 64 * MOST
        ):
            return
        axes = [*range(-rank, rank)] or [0]
        axis: Any = pick.choice(
            [None, -1, pick.choice(axes), pick.choice(axes), tuple(range(1, rank))]
        )
        keepdims = pick.random() < 0.5
        dtype = np.asarray(self.values[x]).dtype
        some = (
            pick.sample(range(rank), pick.randint(1, max(1, rank)))
            if rank and self.is_broad
            else []
        )
        alike = [each for each in SAME_SIZE if dtype in map(np.dtype, each)] or SAME_SIZE
        name = f"v{len(self.lines)}"
        text = pick.choice(templates).format(
            x=x,
            y=y,
            z=name,
            t=pick.choice(alike[0]) if templates is TYPED else "",
            last=f"axis={pick.choice([-1, -1, pick.choice(axes)])}",
            axis=f"axis={axis}, keepdims={keepdims}",
            axes=f"axis={tuple(some)}, keepdims={keepdims}",
            kept=f"axis={pick.choice([-1, -1, axis])}, keepdims=True",
        )
        lines = [f"{name} = {text}"]
        if templates in (UPDATES, COPIES, PLACES):
            lines = [f"{name} = {x}.copy()", text]
        trial: dict[str, Any] = {**self.values, **SPACE}
        try:
            for line in lines:
                exec(line, trial)
        except NUMPY_ERRORS:
            return
        value = trial[name]
        if np.size(value) > MOST or np.ndim(value) > 4:
            return
        self.values, self.live = trial, [*self.live, name]
        self.lines += lines
