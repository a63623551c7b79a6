"""Arguments of drawn programs: arrays by shape, dtype, layout and kind of values, and literals.

An argument is Python source that `evaluate_arguments` evaluates, so that a reproduction names it in
one line: `array((3, 4), "float32", "reversed", "normal", 17)`. The same source gives the same bits.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

DTYPES = {
    "float64": 46,
    "float32": 15,
    "int64": 13,
    "int32": 6,
    "bool": 5,
    "uint8": 3,
    "float16": 2,
    "complex128": 2,
    "int8": 2,
    "int16": 2,
    "uint16": 1,
    "uint32": 1,
    "uint64": 1,
    "complex64": 1,
}
LAYOUTS = {
    "C": 60,
    "F": 9,
    "strided": 5,
    "strided_first": 3,
    "reversed": 4,
    "reversed_first": 3,
    "reversed_all": 3,
    "reversed_strided": 2,
    "transposed": 4,
    "broadcast": 2,
    "unaligned": 3,
    "offset": 2,
    "readonly": 1,
}
WORDS = ("ab", "c", "", "abc", "xyz", "12", "7", "Hello", "été")
RECORD = "[('x', 'f8'), ('n', 'i4')]"


def words(text: str) -> list[str]:
    return text.split()


def weighted(generator: random.Random, weights: Mapping[str, float]) -> str:
    return generator.choices(list(weights), list(weights.values()))[0]


def _floats(shape: tuple[int, ...], kind: str, generator: np.random.Generator) -> Array:
    if kind == "integral":
        return generator.integers(-3, 5, shape).astype(float)
    if kind == "positive":
        return generator.uniform(0.1, 5, shape)
    values = np.asarray(generator.normal(0, 2, shape))
    if kind == "special":
        specials = [np.nan, np.inf, -np.inf, -0.0, 0.0, 2.0, 1e30, -1e-30, 0.5]
        chosen = generator.random(shape) < 0.3
        values = np.where(chosen, generator.choice(specials, shape), values)
    return values


def _integers(
    shape: tuple[int, ...], dtype: np.dtype[Any], kind: str, generator: np.random.Generator
) -> Array:
    low, high = (0, 10) if dtype.kind == "u" else (-5, 10)
    if kind == "positive":
        low, high = 1, 6
    if kind == "index":
        low, high = 0, 2
    if kind == "special":
        limits = np.iinfo(dtype)
        return generator.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    return generator.integers(low, high, shape)


def make_values(shape: tuple[int, ...], dtype: str, kind: str, seed: int) -> Array:
    generator = np.random.default_rng(seed)
    if dtype == "str":
        return np.asarray(generator.choice(WORDS, shape))
    if dtype == "record":
        values = np.zeros(shape, eval(RECORD))
        values["x"] = generator.normal(0, 2, shape)
        values["n"] = generator.integers(0, 9, shape)
        return values
    exact = np.dtype(dtype)
    if exact.kind == "b":
        return np.asarray(generator.integers(0, 2, shape).astype(bool))
    with np.errstate(all="ignore"):
        if exact.kind == "f":
            return np.asarray(_floats(shape, kind, generator)).astype(exact)
        if exact.kind == "c":
            parts = [_floats(shape, kind, generator) for _ in range(2)]
            return np.asarray(parts[0] + 1j * parts[1]).astype(exact)
    return np.asarray(_integers(shape, exact, kind, generator)).astype(exact)


def _spread(values: Array, steps: tuple[int, ...]) -> Array:
    """A view with the values of `values`, in memory of its own with these steps."""
    if not values.ndim:
        return values.copy()
    size = tuple(abs(step) * n for step, n in zip(steps, values.shape, strict=True))
    memory = np.zeros(size, values.dtype)
    view = memory[tuple(slice(None, None, step) for step in steps)]
    view[...] = values
    return view


def _unaligned(values: Array) -> Array:
    memory = np.zeros(values.nbytes + 1, np.uint8)
    view = memory[1:].view(values.dtype).reshape(values.shape)
    view[...] = values
    return view


def _transposed(values: Array) -> Array:
    """In memory in the order of rotated axes: for two axes Fortran's, for three another."""
    axes = (*range(1, values.ndim), 0)
    return np.ascontiguousarray(values.transpose(np.argsort(axes))).transpose(axes)


def _readonly(values: Array) -> Array:
    memory = values.copy()
    memory.flags.writeable = False
    return memory


def _steps(last: int, first: int = 1, middle: int = 1) -> Callable[[Array], Array]:
    def spread(values: Array) -> Array:
        steps = [middle] * values.ndim
        if steps:
            steps[0] = first
            steps[-1] = last if values.ndim > 1 or last != 1 else first
        return _spread(values, tuple(steps))

    return spread


_LAYOUT_MAKERS: dict[str, Callable[[Array], Array]] = {
    "C": np.copy,
    "F": lambda values: np.array(values, order="F"),
    "strided": _steps(2),
    "strided_first": _steps(1, 2),
    "reversed": _steps(-1),
    "reversed_first": _steps(1, -1),
    "reversed_all": _steps(-1, -1, -1),
    "reversed_strided": _steps(-2, 1, -1),
    "transposed": lambda values: _transposed(values) if values.ndim > 1 else values.copy(),
    "broadcast": lambda values: (
        np.broadcast_to(values[:1].copy(), values.shape) if values.ndim else values.copy()
    ),
    "unaligned": _unaligned,
    "offset": lambda values: (
        np.concatenate([values[:1], values])[1:] if values.ndim else values.copy()
    ),
    "readonly": _readonly,
}


def array(shape: tuple[int, ...], dtype: str, layout: str, kind: str, seed: int) -> Array:
    return _LAYOUT_MAKERS[layout](make_values(shape, dtype, kind, seed))


@dataclass(frozen=True)
class Argument:
    """One argument of one call: an array if `shape` is a tuple, else the source `literal`.

    A literal may name earlier arguments of the call (`a[1:]` is a view of the argument `a`) and
    names of the program's module. `alternatives` are other literals of the same type.
    """

    shape: tuple[int, ...] | None = None
    dtype: str = "float64"
    layout: str = "C"
    kind: str = "normal"
    seed: int = 0
    literal: str = ""
    alternatives: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        if self.shape is None:
            return self.literal
        return f'array({self.shape}, "{self.dtype}", "{self.layout}", "{self.kind}", {self.seed})'

    def with_other_values(self, generator: random.Random) -> Argument:
        if self.shape is None:
            options = self.alternatives or (self.literal,)
            return replace(self, literal=generator.choice(options))
        return replace(self, seed=generator.randrange(10**6))

    def with_other_layout(self, generator: random.Random) -> Argument:
        return replace(self, layout=weighted(generator, LAYOUTS), seed=generator.randrange(10**6))

    def with_other_dtype(self, generator: random.Random) -> Argument:
        if self.dtype in ("str", "record") or self.shape is None:
            return self
        same_kind = [name for name in DTYPES if np.dtype(name).kind == np.dtype(self.dtype).kind]
        return replace(self, dtype=generator.choice(same_kind))

    def with_dimensions(self, dimensions: Mapping[int, int]) -> Argument:
        if self.shape is None:
            return self
        return replace(self, shape=tuple(dimensions.get(n, n) for n in self.shape))


def evaluate_arguments(
    arguments: Mapping[str, Argument], namespace: Mapping[str, Any]
) -> dict[str, Any]:
    scope = {**namespace, "np": np, "array": array}
    values: dict[str, Any] = {}
    for name, argument in arguments.items():
        values[name] = scope[name] = eval(argument.source, scope)
    return values


def owner(value: Array) -> Array:
    """The array that owns the memory of `value`."""
    while isinstance(value.base, np.ndarray):
        value = value.base
    return value
