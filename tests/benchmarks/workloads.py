"""W1 to W10: each program written once, over the names that a library gives its functions.

`make(xp)` is the program as a user of that library writes it: `xp` is a `Names`, made of numpy, of
torch, of graphir's ops and so on. A size of 0 stands for 0-d arrays.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from graphir import DType, Graph, ops

Body = Callable[..., Any]
FUNCTIONS = (
    *("abs", "exp", "log", "maximum", "mean", "minimum", "relu", "sqrt", "square", "tanh"),
    "where",
)


def same(x: Any) -> Any:
    return x


def names(library: Any, **own: Any) -> SimpleNamespace:
    """FUNCTIONS as the library has them, or as given.

    `widen` is a cast of bfloat16 to float32 where none is implied, `literal` a number beside
    values of a dtype, `tf32` the rounding of a float32 to tensor_float32, where dtypes do not.
    """
    usual = {name: getattr(library, name) for name in FUNCTIONS if name not in own}
    plain: dict[str, Any] = {"widen": same, "tf32": same, "literal": lambda value, dtype: value}
    return SimpleNamespace(**(plain | usual | own))


GRAPHIR = names(ops)


def tf32(x: Any) -> Any:
    """The nearest tensor_float32, ties to even."""
    u = x.view(np.uint32)
    return ((u + (((u >> 13) & 1) + 0xFFF)) & 0xFFFFE000).view(np.float32)


class Input(NamedTuple):
    """An array of n to the power `rank`."""

    dtype: str
    rank: int = 1
    low: float | None = None
    high: float = 0.0

    def array(self, n: int, draw: np.random.Generator) -> np.ndarray:
        """Normally distributed, or uniform between `low` and `high`."""
        dtype = DType(self.dtype)
        shape = (n,) * self.rank if n else ()
        if self.low is None:
            found = draw.standard_normal(shape, np.float32)
        elif dtype.is_integer:
            return np.asarray(draw.integers(int(self.low), int(self.high), shape, dtype.storage))
        else:
            found = np.float32(self.low) + draw.random(shape, np.float32) * (self.high - self.low)
        found = np.asarray(found, np.float32)
        return tf32(found) if dtype is DType.tensor_float32 else found.astype(dtype.storage)


class Workload(NamedTuple):
    """One program: `sizes` are those it has of its own, `dtype` is that of its result."""

    name: str
    about: str
    make: Callable[[Any], Body]
    inputs: tuple[Input, ...]
    sizes: tuple[int, ...] = ()
    dtype: str = "float32"

    def arrays(self, n: int) -> list[np.ndarray]:
        """Its inputs, the same each time."""
        draw = np.random.default_rng(0)
        return [one.array(n, draw) for one in self.inputs]

    def graph(self, n: int) -> Graph:
        """The program as a graph: of arrays of any size, or of 0-d ones."""
        g = Graph(self.name.lower())
        args = [g.input(one.dtype, ("n",) * one.rank if n else ()) for one in self.inputs]
        g.output(self.make(GRAPHIR)(*args))
        return g


def cheap(xp: Any) -> Body:
    def body(x: Any) -> Any:
        x = x * 1.1 + 0.2
        x = x * 0.9 - 0.3
        x = x * 1.2 + 0.4
        x = x * 0.8 - 0.1
        return x * 1.05 + 0.3

    return body


def scalars(xp: Any) -> Body:
    """Every operand is a 0-d array: beside numbers NumPy takes its scalars, 4 times faster."""

    def body(x: Any, a: Any, b: Any) -> Any:
        x = x * a + b
        x = x * a - b
        x = x * a + b
        x = x * a - b
        return x * a + b

    return body


def costly(xp: Any) -> Body:
    """The geometric mean of gelu, by tanh, and softplus."""

    def body(x: Any) -> Any:
        gelu = x * 0.5 * (xp.tanh((x + x * x * x * 0.044715) * 0.7978846) + 1.0)
        softplus = xp.log(xp.exp(-xp.abs(x)) + 1.0) + xp.relu(x)
        return xp.sqrt(xp.abs(gelu * softplus))

    return body


def mixed(xp: Any) -> Body:
    def body(x: Any, y: Any, z: Any, w: Any) -> Any:
        s = x + y
        t = z * s + xp.widen(w)
        return xp.where(t > s, t, y)

    return body


def narrow(dtype: str) -> Callable[[Any], Body]:
    """Eight ops, each of which rounds."""

    def make(xp: Any) -> Body:
        a, b, c, d = (xp.literal(value, dtype) for value in (1.5, 0.25, 0.75, -0.5))

        def body(x: Any, y: Any) -> Any:
            r = x * y + a
            r = r * b - y
            r = r * x + c
            return r * d + y

        return body

    return make


def rounded(xp: Any) -> Body:
    """The same ops in tensor_float32, to which only graphir rounds unasked."""
    tf32 = xp.tf32

    def body(x: Any, y: Any) -> Any:
        r = tf32(tf32(x * y) + 1.5)
        r = tf32(tf32(r * 0.25) - y)
        r = tf32(tf32(r * x) + 0.75)
        return tf32(tf32(r * -0.5) + y)

    return body


def variance(xp: Any) -> Body:
    return lambda x, m: xp.mean(xp.square(x - m))


def layer(xp: Any) -> Body:
    return lambda x, w, b: xp.relu(x @ w + b)


NODES = 10_000
_LIVE = 20


def _dag() -> str:
    """The source of NODES ops over _LIVE variables; all values stay within 0.5 of 0.

    Each statement takes the result of the last, so that none is dead.
    """
    draw = random.Random(0)
    lines = ["def body(x):", *(f"    r{i} = x" for i in range(_LIVE))]
    last = count = 0
    while count < NODES:
        a, b, r = last, draw.randrange(_LIVE), draw.randrange(_LIVE)
        # Of x in 0.1 to 0.25: x - a * b, (a + b) * x and the greater are again below 0.5.
        texts = f"x - r{a} * r{b}", f"(r{a} + r{b}) * x", f"most(r{a}, r{b})", f"least(r{a}, r{b})"
        kind = draw.choice((0, 0, 1, 2, 3))
        lines.append(f"    r{r} = {texts[kind]}")
        last, count = r, count + (2 if kind < 2 else 1)
    return "\n".join([*lines, f"    return r{last}"])


def dag(xp: Any) -> Body:
    scope: dict[str, Any] = {"most": xp.maximum, "least": xp.minimum}
    exec(_dag(), scope)  # straight lines, which Python runs faster than a walk over a list
    return scope["body"]


_MIXED = (Input("int16", low=-1000, high=1000), Input("float32"), Input("uint8", low=0, high=255))
WORKLOADS: Sequence[Workload] = (
    Workload("W1", "ten cheap ops, float32", cheap, (Input("float32"),)),
    Workload("W2", "gelu and softplus, float32", costly, (Input("float32"),)),
    Workload("W3", "int16, float32, uint8 and bfloat16", mixed, (*_MIXED, Input("bfloat16"))),
    Workload(
        "W4", "eight ops, bfloat16", narrow("bfloat16"), (Input("bfloat16"),) * 2, (), "bfloat16"
    ),
    Workload("W5", "eight ops, float16", narrow("float16"), (Input("float16"),) * 2, (), "float16"),
    Workload("W6", "eight ops, tensor_float32", rounded, (Input("tensor_float32"),) * 2),
    Workload("W7", "mean((x - m)**2), float32", variance, (Input("float32"), Input("float32", 0))),
    Workload("W8", "ten cheap ops, 0-d float32", scalars, (Input("float32"),) * 3, (0,)),
    Workload(
        "W9",
        "relu(x @ w + b), float32",
        layer,
        (Input("float32", 2), Input("float32", 2), Input("float32")),
        (1024,),
    ),
    Workload("W10", "10,000 nodes", dag, (Input("float32", low=0.1, high=0.25),), (0, 1000)),
)
BY_NAME = {one.name: one for one in WORKLOADS}
