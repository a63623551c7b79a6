"""Programs drawn at random for jit: functions as source, the module they read, changes of both.

A program looks at dtypes and shapes and branches on them, gives names twice, writes in place, takes
arrays of other libraries, reads globals, cells, attributes and containers, and draws random
numbers. Between two calls something that it reads changes.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from random import Random
from types import FunctionType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from tests.runtime.jit.jitted import Converts, Interface, Lends

DTYPES = ["f4", "f8", "i1", "i4", "i8", "u1", "f2", "?", "c8"]
SHAPES: list[tuple[int, ...]] = [(3,), (3,), (3, 3), (2, 3), (1,), ()]
SCALARS: list[Any] = [2, 3, -1, 0.5, 2.0, True, 1.5, 0, np.float32(2), np.int8(3), np.float64(0.5)]
HELPERS = ["v + 1", "v * S0", "v * W0", "np.abs(v) if v.ndim else v", "v - C.scale"]
MODES = ["relu", "abs", "none"]


class Program(NamedTuple):
    """A function's source, its arguments, and the changes before each call but the first."""

    source: str
    arguments: list[tuple[str, str, tuple[int, ...]]]
    changes: list[list[str]]
    writes: bool


def array(pick: Random, dtype: str, shape: tuple[int, ...]) -> Any:
    """Small values, exact in every dtype."""
    low = 0 if np.dtype(dtype).kind in "ub" else -3
    values = [pick.randint(low, 4) for _ in range(int(np.prod(shape)))]
    return np.array(values).astype(dtype).reshape(shape)


def module(pick: Random) -> dict[str, Any]:
    """What a program reads besides its arguments."""

    def some() -> Any:
        return array(pick, pick.choice(DTYPES), (3,))

    names: dict[str, Any] = {"__name__": "user", "np": np}
    names["array"], names["pick"] = array, pick
    names.update(S0=pick.choice(SCALARS), S1=pick.choice(SCALARS), MODE=pick.choice(MODES))
    names.update(W0=some(), W1=some(), D={"k": pick.choice(SCALARS), "w": some()})
    names.update(L=[some(), pick.choice(SCALARS)], SHARED=some(), FLAGS={"on"})
    inner = SimpleNamespace(w=some(), bias=pick.choice(SCALARS))
    names["C"] = SimpleNamespace(scale=pick.choice(SCALARS), inner=inner, count=0)
    names["FOREIGN"] = pick.choice([Interface, Converts])(names["SHARED"])
    names["RNG"] = np.random.default_rng(0)
    exec(_CLASS, names)
    names["M"] = names["Model"]()
    exec(f"def H(v): return {pick.choice(HELPERS)}", names)
    return names


_CLASS = """
class Model:
    rate = 2
    def __init__(self): self.w, self.k, self.options = array(pick, "f4", (3,)), 2, {"gain": 1}
    @property
    def twice(self): return self.k * 2
    def __call__(self, v): return v * self.rate + self.w
    def scaled(self, v): return v * self.twice * self.options["gain"]
"""

# -- statements

UNARY = [
    *("np.abs({v})", "-{v}", "np.sum({v})", "np.sum({v}, axis=0)", "{v}.mean()", "np.max({v})"),
    *("np.tanh({v})", "np.sqrt(np.abs({v}))", "{v}.astype('f8')", "{v}.astype(np.float32)"),
    *("{v}.T", "np.reshape({v}, -1)", "np.ravel({v})[:2]", "{v}[0]", "{v}[::-1]", "{v}[..., None]"),
    *("np.cumsum({v})", "np.sort({v})", "np.expand_dims({v}, 0)", "np.square({v})", "{v}.sum()"),
    *("np.where({v} > 0, {v}, 0)", "np.clip({v}, -1, 2)", "np.zeros(3, {v}.dtype) + {v}"),
    *("np.ones_like({v})", "np.full({v}.shape, 2) * {v}", "{v} ** 2", "np.argmax({v})", "+{v}"),
    *("np.stack([{v}, {v}])", "np.concatenate([np.ravel({v}), np.ravel({v})])", "{v}.copy()"),
    *("np.asarray({v})", "np.arange(3) * {v}", "np.round({v})", "np.any({v})", "np.isnan({v})"),
]
BINARY = ["+", "-", "*", "/", "//", "%", "<", ">=", "==", "!=", "@", "&"]
CONDITIONS = [
    *("{v}.dtype == np.float32", "{v}.dtype.kind in 'iu'", "{v}.dtype in (np.int8, np.float64)"),
    *("{v}.dtype.name == 'float16'", "np.issubdtype({v}.dtype, np.floating)", "{v}.ndim > 1"),
    *("{v}.shape == (3,)", "{v}.size > 3", "len({v}.shape) == 0", "{v}.dtype.itemsize > 2"),
    *("{v}.dtype == 'int32'", "np.ndim({v}) == 2", "np.shape({v})[-1:] == (3,)", "'on' in FLAGS"),
    *("{v}.dtype == bool", "{v}.nbytes > 8", "MODE == 'relu'", "MODE != 'abs' and S0", "W0[0] > 0"),
    *("W0.dtype == {v}.dtype", "C.scale > 1", "D['k'] == 2", "len(L) > 2", "hasattr(C, 'extra')"),
    *("np.result_type({v}, np.int8) == np.int8", "{v}.dtype.char == 'f'", "SHARED.sum() > 2"),
    *("{v}.dtype != W1.dtype", "np.can_cast({v}.dtype, 'f4')"),
]
READS = [
    *("S0", "S1", "W0", "W1", "C.scale", "C.inner.w", "C.inner.bias", "D['k']", "D['w']", "L[0]"),
    *("L[-1]", "FOREIGN", "SHARED", "getattr(C, 'scale')", "CELL", "CELLS", "W0[1]", "W1 * 2"),
    *("M.k", "M.w", "M.rate", "M.twice", "M.options['gain']", "np.sum(W0)", "float(W1[0].real)"),
    *("getattr(C, 'extra', 1)", "sum(map(np.sum, L))", "len(D)", "max(2, 1)", "Model.rate"),
    *("np.arange(3)", "np.ones(3, W0.dtype)", "np.full(3, S0)", "np.asarray(FOREIGN)", "2", "0.5"),
]
CALLS = ["H({v})", "M({v})", "M.scaled({v})", "inner({v})", "(lambda u: u * S1)({v})"]
IN_PLACE = [
    *("{v} += 1", "{w} = {v}\n{w} += {r}", "{w} = {v}[0]\n{w} *= 2", "{v}[0] = 1", "{v} *= {r}"),
    *("{w} = {v}.copy()\n{w}[0] = 2", "np.add({v}, 1, out={v})", "{w} = np.ravel({v})\n{w} -= 1"),
    *("{w} = np.zeros(3)\n{w} += {v}", "{w} = np.ones(3)\n{w}[0] = 5\n{v} = {v} * {w}"),
    *("{w} = W0\n{w}[0] = 1", "W0[0] += 1", "{v}[{v} > 0] = 0", "{v} -= S0", "{v}.fill(1)"),
]
WRITES = [
    *("C.count += 1\n{v} = {v} * C.count", "C.count = C.count + 1\n{v} = {v} + C.count"),
    *("global S0\nS0 = S0 + 1\n{v} = {v} * S0", "L.append(2)\n{v} = {v} * 1", "M.k += 1"),
    *("D['k'] = 3\n{v} = {v} + 1", "C.scale = 3\n{v} = {v} * C.scale", "C.seen = {v}.shape"),
]
DRAWS = [
    *("np.random.rand()", "RNG.normal()", "np.random.default_rng().normal()", "RNG.integers(9)"),
    *("np.random.default_rng(0).normal()", "__import__('random').random()"),
]


def program(pick: Random) -> Program:
    """A program of some statements, arguments and changes."""
    count = pick.randint(1, 3)
    kinds = ["array"] * 5 + ["interface", "converts", "lends", "memory", "int", "float", *LIBRARIES]
    arguments: list[tuple[str, str, tuple[int, ...]]] = [
        (pick.choice(kinds[: 5 if at == 0 else None]), pick.choice(DTYPES), pick.choice(SHAPES))
        for at in range(count)
    ]
    # A 0-d array counts as a NumPy scalar: np.bool_(True) ** 2 is int64, np.array(True) ** 2 int8.
    arguments = [(a, b, shape if b != "?" else shape or (1,)) for a, b, shape in arguments]
    if pick.random() < 0.15:
        arguments[0] = (pick.choice(kinds[5:9] + LIBRARIES), *arguments[0][1:])
    names = [f"a{at}" for at in range(count)]
    writer = _Writer(pick, names)
    body = "\n".join(writer.statements(pick.randint(2, 6)))
    body = "\n        ".join((*writer.globals, *body.split("\n")))
    result = pick.choice(writer.names)
    text = pick.choice([f"return {result}", f"return {result}, {names[0]} * 1"])
    inner = pick.choice(["u + CELL", "u * CELLS", "u * S0"])
    source = (
        "def make():\n    CELL, CELLS = 2, array(pick, 'f4', (3,))\n"
        f"    def inner(u): return {inner}\n"
        f"    def f({', '.join(names)}):\n        {body}\n        {text}\n"
        "    def change(value):\n        nonlocal CELL\n        CELL = value\n"
        "    return f, change, CELLS\n"
    )
    changes = [[pick.choice(CHANGES) for _ in range(pick.randint(0, 2))] for _ in range(4)]
    return Program(source, arguments, changes, writer.writes)


class _Writer:
    """Writes statements over the names of local variables."""

    def __init__(self, pick: Random, names: list[str]) -> None:
        self.pick, self.names = pick, list(names)
        self.globals: list[str] = []
        self.writes = False

    def statements(self, count: int) -> list[str]:
        """As many statements, of which branches have one or two each."""
        return [self._statement() for _ in range(count)]

    def _new(self) -> str:
        self.names.append(f"v{len(self.names)}")
        return self.names[-1]

    def _statement(self) -> str:
        pick, v = self.pick, self.pick.choice(self.names)
        chance = pick.random()
        read = pick.choice(READS)
        if chance < 0.3:
            return f"{self._new()} = {pick.choice(UNARY).format(v=v)}"
        if chance < 0.55:
            other = pick.choice([*self.names, read, read, read])
            left, right = pick.choice([(v, other), (other, v)])
            return f"{self._new()} = {left} {pick.choice(BINARY)} {right}"
        if chance < 0.65:
            return f"{self._new()} = {pick.choice(CALLS).format(v=v)}"
        if chance < 0.85:
            test = pick.choice(CONDITIONS).format(v=v)
            one, other = (pick.choice(READS) for _ in range(2))
            new = self._new()
            return f"if {test}: {new} = {v} * {one}\nelse: {new} = {v} + {other}"
        if chance < 0.9:
            new = self._new()
            return f"{new} = {v}\nfor item in L: {new} = {new} * item"
        if chance < 0.95:
            return pick.choice(IN_PLACE).format(v=v, w=self._new() if v else v, r=read)
        if chance < 0.98:
            text = pick.choice(WRITES).format(v=v)
            self.writes = True
            if text.startswith("global"):
                first, _, text = text.partition("\n")
                self.globals = [first]
            return text
        return f"{self._new()} = {v} * {pick.choice(DRAWS)}"


CHANGES = [
    *("S0 = pick.choice(SCALARS)", "S1 = pick.choice(SCALARS)", "MODE = pick.choice(MODES)"),
    *("W0[0] = pick.randint(0, 3)", "W0 *= W0.dtype.type(2)", "W0 = array(pick, 'f4', (3,))"),
    *("W0 = array(pick, pick.choice(DTYPES), pick.choice(SHAPES[:3]))", "W0 = W0.copy()"),
    *("W1 = array(pick, 'i8', (3,))", "W1[1] = 1", "C.scale = pick.choice(SCALARS)"),
    *("C.inner.w[0] = pick.randint(0, 3)", "C.inner.w = array(pick, 'f8', (3,))"),
    *("C.inner.bias = pick.choice(SCALARS)", "C.extra = pick.choice(SCALARS)", "C.count = 0"),
    "C.inner = type(C)(w=array(pick, 'f4', (3,)), bias=pick.choice(SCALARS))",
    *("D['k'] = pick.choice(SCALARS)", "D['w'][0] = 2", "D['w'] = array(pick, 'f4', (3,))"),
    *("D['new'] = 1", "L.append(pick.choice(SCALARS))", "L[0] = array(pick, 'f4', (3,))"),
    *("L[0][...] = 1", "SHARED[1] = pick.randint(0, 3)", "FLAGS.clear()", "FLAGS.add('on')"),
    *("M.k = pick.choice(SCALARS)", "M.w[2] = 7", "M.w = array(pick, 'i4', (3,))"),
    *("Model.rate = pick.choice(SCALARS)", "M.rate = 5", "M.options['gain'] = 3"),
    *("change(pick.choice(SCALARS))", "CELLS[0] += 1", "M.scaled = lambda v: v - 1"),
    *("Model.__call__ = lambda self, v: v - self.k", "max = lambda a, b: pick and 9"),
    *("exec('def H(v): return ' + pick.choice(HELPERS))", "del max", "M = Model()"),
]


# -- arguments

LIBRARIES = [name for name in ("torch", "jax", "pandas") if find_spec(name)]


def argument(kind: str, value: Any) -> Any:
    """An array as an argument of a kind: of another library, or a Python number."""
    if kind == "int":
        return int(value.real.flat[0])
    if kind == "float":
        return float(value.real.flat[0]) + 0.5
    makers: dict[str, Callable[[Any], Any]] = {
        "array": lambda x: x,
        "interface": Interface,
        "converts": Converts,
        "lends": Lends,
        "memory": lambda x: memoryview(np.ascontiguousarray(x)),
        "torch": lambda x: __import__("torch").from_numpy(np.ascontiguousarray(x)),
        "jax": lambda x: __import__("jax").numpy.asarray(x),
        "pandas": lambda x: __import__("pandas").Series(np.ravel(x)),
    }
    return makers[kind](value)


def run_change(text: str, names: dict[str, Any]) -> None:
    """Change what a program reads; a change that its state does not allow is none."""
    scope = {"SCALARS": SCALARS, "SHAPES": SHAPES, "DTYPES": DTYPES, "MODES": MODES}
    names.update(scope, HELPERS=HELPERS)
    try:
        exec(text, names)
    except (NameError, ValueError, TypeError, KeyError):
        pass  # the same in both modules
    finally:
        for name in (*scope, "HELPERS"):
            names.pop(name, None)


def function_of(program: Program, names: dict[str, Any]) -> FunctionType:
    """The function of a program that reads a module; the module's `change` rebinds its cell."""
    exec(program.source, names)
    function, names["change"], names["CELLS"] = names.pop("make")()
    return function
