"""Random NumPy functions, and what exact arithmetic makes of them: the oracle of audits.

A function is a list of steps on named arrays, all vectors of one length. `run` computes them with
NumPy; `exact` with fractions and Python's integers, where no dtype rounds and none wraps. A step
is only drawn where float64 has its exact results, if they are floats: what float64 rounds itself is
no error.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

SIZE = 4
INTS = ("i1", "u1", "i2", "i4", "i8", "u8")
FLOATS = ("f2", "f4", "f8")


def number(value):
    """A NumPy or Python number as an exact one: a Fraction, or inf or NaN as a float."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, float) and not math.isfinite(value) else Fraction(value)


def is_float64(value):
    if isinstance(value, float):
        return True
    try:
        return Fraction(float(value)) == value
    except OverflowError:
        return False


class InexactError(Exception):
    """A result that float64 rounds, or that no exact arithmetic has."""


def exactly(function):
    """An operation on finite numbers alone."""

    def apply(*values):
        if any(isinstance(value, float) for value in values):
            raise InexactError
        return function(*values)

    return apply


BINARY = {
    "add": (np.add, exactly(lambda x, y: x + y)),
    "subtract": (np.subtract, exactly(lambda x, y: x - y)),
    "multiply": (np.multiply, exactly(lambda x, y: x * y)),
    "maximum": (np.maximum, exactly(max)),
}
UNARY = {
    "negative": (lambda x: -x, exactly(lambda x: -x)),
    "square": (np.square, exactly(lambda x: x * x)),
    "abs": (abs, exactly(abs)),
}


def seen_whole(function):
    """A compiled step on float64, of which exact arithmetic knows what it does to exact values."""

    def apply(values):
        if not all(is_float64(value) and not isinstance(value, float) for value in values):
            raise InexactError
        return [number(v) for v in function(np.array([float(v) for v in values]))]

    return apply


OPAQUE = {
    "fft": lambda x: np.fft.fft(x).real.astype("f8"),
    "interp": lambda x: np.interp(x, [-8.0, 0.0, 8.0], [-1.0, 0.0, 4.0]),
    "inv": lambda x: np.linalg.inv(np.diag(x) + 3 * np.eye(SIZE)).sum(axis=0).astype("f8"),
    "vectorize": lambda x: np.vectorize(lambda v: 2.0 * v, otypes=["f8"])(x),
    "apply": lambda x: np.apply_along_axis(lambda v: v[::-1].astype("f8"), 0, x),
    "bytes": lambda x: np.frombuffer(x.astype("f8").tobytes()) * 1.0,
    "list": lambda x: np.array(x.tolist(), "f8"),
    "reduceat": lambda x: np.add.reduceat(x.astype("f8"), [0, 1, 2, 3]),
    "size": lambda x: np.full(SIZE, float(len(x[x > 1]))),
}


@dataclass
class Function:
    """Inputs by name, the steps, and the names of the results."""

    inputs: dict
    steps: list = field(default_factory=list)
    results: list = field(default_factory=list)

    def run(self, *arrays):
        """The function in NumPy."""
        held = dict(zip(self.inputs, arrays, strict=True))
        for step in self.steps:
            with np.errstate(all="ignore"):
                step_in_numpy(held, *step)
        return tuple(held[name] for name in self.results)

    def exact(self):
        """The results in exact arithmetic."""
        held = {name: [number(v) for v in array] for name, array in self.inputs.items()}
        for step in self.steps:
            step_exactly(held, *step)
        return [held[name] for name in self.results]


def step_in_numpy(held, kind, new, *given):
    if kind == "binary":
        held[new] = BINARY[given[0]][0](held[given[1]], held[given[2]])
    elif kind == "unary":
        held[new] = UNARY[given[0]][0](held[given[1]])
    elif kind == "cast":
        held[new] = held[given[1]].astype(given[0])
    elif kind == "assign":
        held[new] = np.zeros(SIZE, given[0])
        held[new][:] = held[given[1]]
    elif kind == "in place":
        held[new] = held[given[1]].copy()
        BINARY[given[0]][0](held[new], held[given[2]], out=held[new], casting="unsafe")
    elif kind == "sum":
        held[new] = np.repeat(held[given[0]].cumsum(dtype=held[given[0]].dtype)[-1:], SIZE)
    elif kind == "reverse":
        held[new] = held[given[0]][::-1]
    elif kind == "where":
        x, y, z = (held[name] for name in given)
        held[new] = np.where(x > y, y, z)
    elif kind == "branch":
        x, y, z = (held[name] for name in given)
        held[new] = y if x[0] > 1 else z
    elif kind == "scale":
        held[new] = held[given[1]] * float(held[given[0]][1])
    elif kind == "opaque":
        held[new] = OPAQUE[given[0]](held[given[1]])
    else:
        raise AssertionError(kind)


def truncated(value):
    """NaN and the infinities are no integers, and stay."""
    return value if isinstance(value, float) else Fraction(math.trunc(value))


def step_exactly(held, kind, new, *given):
    if kind in ("binary", "in place"):
        held[new] = list(map(BINARY[given[0]][1], held[given[1]], held[given[2]]))
    elif kind == "unary":
        held[new] = list(map(UNARY[given[0]][1], held[given[1]]))
    elif kind == "cast":
        values = held[given[1]]
        # A cast of integers leaves the fractions that an assignment of floats lost.
        truncates = given[0] in INTS and given[2]
        held[new] = list(map(truncated, values)) if truncates else list(values)
    elif kind == "assign":
        held[new] = list(held[given[1]])
    elif kind == "sum":
        if any(isinstance(value, float) for value in held[given[0]]):
            raise InexactError
        held[new] = [sum(held[given[0]])] * SIZE
    elif kind == "reverse":
        held[new] = held[given[0]][::-1]
    elif kind == "where":
        held[new] = [y if x > y else z for x, y, z in zip(*(held[n] for n in given), strict=True)]
    elif kind == "branch":
        held[new] = list(held[given[1]] if held[given[0]][0] > 1 else held[given[2]])
    elif kind == "scale":
        held[new] = [exactly(lambda v: v * held[given[0]][1])(v) for v in held[given[1]]]
    elif kind == "opaque":
        held[new] = seen_whole(OPAQUE[given[0]])(held[given[1]])


def values(rng, dtype):
    """Some are small, some at the ends of the range, some beyond that of others."""
    if dtype in INTS:
        info = np.iinfo(dtype)
        near = [info.max - rng.randrange(3), info.min + rng.randrange(3), rng.randrange(-9, 9)]
        drawn = [rng.choice([*near, rng.randrange(100)]) for _ in range(SIZE)]
        return np.array([min(max(v, info.min), info.max) for v in drawn], dtype)
    scale = rng.choice([1, 1, 1, 1000, 60000 if dtype == "f2" else 10**6])
    drawn = [rng.randrange(-64, 64) / 8 * scale for _ in range(SIZE)]
    if rng.random() < 0.1:
        drawn[rng.randrange(SIZE)] = rng.choice([math.nan, math.inf])
    with np.errstate(all="ignore"):
        return np.array(drawn, dtype)


def drawn_step(rng, names, new):
    one = lambda: rng.choice(names)  # noqa: E731
    dtype = rng.choice(INTS + FLOATS)
    return rng.choice(
        [
            *[("binary", new, rng.choice(list(BINARY)), one(), one())] * 4,
            *[("unary", new, rng.choice(list(UNARY)), one())] * 2,
            *[("cast", new, dtype, one())] * 4,
            *[("assign", new, dtype, one())] * 3,
            *[("in place", new, rng.choice(["add", "multiply"]), one(), one())] * 2,
            ("sum", new, one()),
            ("reverse", new, one()),
            ("where", new, one(), one(), one()),
            ("branch", new, one(), one(), one()),
            ("scale", new, one(), one()),
            *[("opaque", new, rng.choice(list(OPAQUE)), one())] * 2,
        ]
    )


def drawn_function(seed):
    """A function whose every step exact arithmetic has, and float64 where it is of floats."""
    rng = random.Random(seed)
    inputs = {f"x{i}": values(rng, rng.choice(INTS + FLOATS)) for i in range(3)}
    function = Function(inputs)
    exact = {name: [number(v) for v in array] for name, array in inputs.items()}
    real = dict(inputs)
    for i in range(rng.randrange(2, 9)):
        step = drawn_step(rng, list(real), f"y{i}")
        try:
            if step[0] == "cast" and real[step[3]].dtype == step[2]:
                continue  # which is none
            if step[0] == "cast":
                step = (*step, real[step[3]].dtype.kind == "f")
            with np.errstate(all="ignore"):
                step_in_numpy(real, *step)
            step_exactly(exact, *step)
            if any(isinstance(v, bool) for v in exact[f"y{i}"]):
                raise InexactError
            # What an op of floats is given, float64 must have too.
            named = [name for name in (*step[2:], f"y{i}") if name in exact]
            floats = np.result_type(*(real[name] for name in named)).kind == "f"
            if floats and not all(is_float64(v) for name in named for v in exact[name]):
                raise InexactError
        except (InexactError, TypeError, ValueError, OverflowError, np.linalg.LinAlgError):
            real.pop(f"y{i}", None)
            exact.pop(f"y{i}", None)
            continue
        function.steps.append(step)
    function.results = list(real)[-2:]
    return function
