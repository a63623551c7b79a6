"""A program while it is drawn: each statement runs with NumPy as it is added.

Types and shapes of all variables are known so, and a statement that raises is not added.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from tests.runtime.function_programs.arguments import (
    DTYPES,
    LAYOUTS,
    Argument,
    array,
    weighted,
)
from tests.runtime.function_programs.comparison import is_comparable
from tests.runtime.function_programs.programs import IMPORTS, Statement

Option = TypeVar("Option")
MAX_SIZE = 300_000  # elements of one array
SIZES = {"small": 62, "tiny": 6, "medium": 16, "large": 16}

UNARY = {
    "-{}": 4,
    "abs({})": 4,
    "np.sqrt(np.abs({}))": 4,
    "np.exp({})": 3,
    "np.exp(-{} ** 2)": 2,
    "np.log1p(np.abs({}))": 2,
    "np.log(np.abs({}) + 1)": 2,
    "np.sin({})": 3,
    "np.cos({})": 2,
    "np.tanh({})": 2,
    "np.floor({})": 1,
    "np.rint({})": 1,
    "np.square({})": 2,
    "np.sign({})": 1,
    "np.cbrt({})": 1,
    "np.isnan({})": 1,
    "np.reciprocal({})": 1,
    "{} ** 2": 4,
    "{} ** 3": 1,
    "{} ** 0.5": 1,
    "1 / {}": 2,
    "2 ** {}": 1,
    "1 - {}": 3,
    "np.negative({})": 1,
    "np.nan_to_num({})": 1,
    "{}.astype(np.float32)": 2,
    "{}.astype(np.float64)": 2,
    "{}.astype(np.int64)": 1,
    "{}.copy()": 1,
    "{}.round(2)": 1,
    "np.clip({}, 0, 1)": 2,
    "np.clip({}, -1.5, 1.5)": 1,
    "np.maximum({}, 0)": 3,
    "{} > 0": 2,
    "~({} > 0)": 1,
    "np.real({})": 1,
    "np.hypot({}, 1.5)": 1,
    "np.deg2rad({})": 1,
    "np.expm1({})": 1,
    "np.arctan({})": 1,
    "np.sinh({})": 1,
    "np.exp2({})": 1,
    "np.log2(np.abs({}) + 0.5)": 1,
    "np.trunc({})": 1,
    "np.positive({})": 0.5,
    "np.conj({})": 0.5,
    "{} // 2": 1,
    "{} % 3": 1,
}
BINARY = {
    "{} + {}": 14,
    "{} - {}": 12,
    "{} * {}": 14,
    "{} / {}": 7,
    "{} // {}": 1,
    "{} % {}": 1,
    "{} ** {}": 2,
    "np.maximum({}, {})": 2,
    "np.minimum({}, {})": 2,
    "np.add({}, {})": 1,
    "np.multiply({}, {})": 1,
    "np.arctan2({}, {})": 1,
    "np.hypot({}, {})": 1,
    "np.copysign({}, {})": 0.5,
    "np.logaddexp({}, {})": 0.5,
    "np.fmod({}, {})": 0.5,
    "{} > {}": 2,
    "{} <= {}": 1,
    "{} == {}": 1,
    "{} != {}": 0.5,
    "{} & {}": 1,
    "{} | {}": 1,
    "{} ^ {}": 0.5,
    "np.logical_and({}, {})": 0.5,
    "np.where({0} > {1}, {0}, {1})": 2,
    "np.where({0} > 0, {0}, {1})": 2,
    "np.where({0} < {1}, {0} * 2, 1.0)": 1,
    "(0 < {0}) & ({0} < {1})": 1,
}
LITERALS = {
    "2": 8,
    "3": 4,
    "1": 3,
    "0.5": 6,
    "1.5": 4,
    "-1": 2,
    "10": 1,
    "0": 1,
    "1e-3": 2,
    "2.0": 3,
    "np.pi": 1,
    "-0.25": 1,
    "np.float32(0.5)": 1,
    "np.float64(1.25)": 1,
    "np.int64(2)": 0.5,
    "np.uint8(3)": 0.3,
    "1j": 0.2,
    "True": 0.2,
    "100": 0.5,
}
# Views and copies of one array in another layout
RELAYOUTS = {
    "{}.T": 5,
    "{}[::-1]": 4,
    "{}[:, ::-1]": 3,
    "{}[::-1, ::-1]": 2,
    "{}[..., ::-2]": 1,
    "{}[..., ::-3]": 1,
    "{}[::2]": 2,
    "{}[..., ::2]": 2,
    "np.asfortranarray({})": 6,
    "np.ascontiguousarray({})": 1,
    "{}.copy(order='F')": 3,
    "np.array({}, order='F')": 2,
    "np.flip({})": 2,
    "np.fliplr({})": 1,
    "np.rot90({})": 1,
    "{}.swapaxes(0, -1)": 1,
    "np.moveaxis({}, 0, -1)": 1,
    "{}.transpose(1, 2, 0)": 1,
    "{}.transpose(2, 0, 1).copy(order='K')": 1,
    "np.broadcast_to({0}[:1], {0}.shape)": 1,
    "{}.reshape(-1, order='F')": 1,
    "{}.ravel(order='K')": 1,
    "np.frombuffer(b'\\0' + {0}.tobytes(), {0}.dtype, offset=1).reshape({0}.shape)": 0.2,
    "np.roll({}, 1, axis=0)": 1,
    "{}[1:]": 2,
    "{}[:-1]": 2,
    "{}[None]": 1,
    "np.lib.stride_tricks.as_strided({0}, {0}.shape, {0}.strides)": 0.3,
}


def _parenthesized(text: str) -> str:
    return text if re.fullmatch(r"[\w.]+(\([^()]*\))?", text) else f"({text})"


class Draft:
    """The variables and statements of a program so far; `random` decides all that is drawn."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.live: dict[str, Any] = {}
        exec(IMPORTS, self.live)
        self.preamble: list[Statement] = []
        self.body: list[Statement] = []
        self.arguments: dict[str, Argument] = {}
        self.defaults: dict[str, str] = {}  # parameters with a default value, that calls omit
        self.changes: list[str] = []  # lines that run in the module before a later call
        self.variables: list[str] = []  # of the program, the last one assigned last
        self.size = weighted(self.random, SIZES)
        self.dimensions = self._draw_dimensions()
        self.ends = False  # the last statement raises
        self._count = 0

    # Decisions

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def choice(self, options: Iterable[Option]) -> Option:
        return self.random.choice(list(options))

    def weighted(self, weights: dict[str, float]) -> str:
        return weighted(self.random, weights)

    def name(self, prefix: str = "t") -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    @property
    def is_small(self) -> bool:
        return self.size in ("small", "tiny")

    def _draw_dimensions(self) -> dict[str, int]:
        pick = self.random.randint
        match self.size:
            case "small":
                n, m, k, length = pick(2, 7), pick(2, 7), pick(1, 4), pick(3, 40)
            case "tiny":
                n, m, k, length = pick(0, 1), pick(0, 2), pick(0, 2), pick(0, 1)
            case "medium":
                n, m = self.choice([(64, 64), (64, 66), (41, 101), (70, 60), (8, 600), (600, 8)])
                k, length = pick(1, 3), pick(4080, 5000)
            case _:
                pairs = [(182, 182), (180, 180), (181, 182), (200, 170), (513, 100), (257, 128)]
                n, m = self.choice(pairs)
                k, length = pick(1, 2), self.choice([32767, 32768, 33000, 50000, 65536])
        return {"n": n, "m": n if self.chance(0.25) else m, "k": k, "length": length}

    # Running

    def evaluate(self, text: str) -> Any:
        return eval(text, self.live)

    def is_valid(self, text: str) -> bool:
        """Answer whether NumPy has a value for the expression, of a type that is compared."""
        try:
            value = self.evaluate(text)
        except Exception:
            return False
        return is_comparable(value) and self._is_kept(value)

    def run(self, *lines: str) -> bool:
        """Run lines; if they raise, or assign what cannot be compared, nothing is assigned."""
        before = dict(self.live)
        assigned: dict[str, Any] = {}
        try:
            exec(compile("\n".join(lines), "<draft>", "exec"), self.live)
            assigned = {k: v for k, v in self.live.items() if before.get(k, before) is not v}
            assigned.pop("__builtins__", None)
            valid = all(self._is_kept(value) for value in assigned.values())
        except Exception:
            valid = False
        if not valid:
            self.live.clear()
            self.live.update(before)
            return False
        for name in assigned:
            if name in self.variables:
                self.variables.remove(name)
        return True

    @staticmethod
    def _is_kept(value: Any) -> bool:
        if isinstance(value, np.ndarray):
            return value.size <= MAX_SIZE and is_comparable(value)
        return True

    def attempt(self, tag: str, *lines: str, value_dependent: bool = False) -> bool:
        """Add a statement to the program if NumPy runs it."""
        before = dict(self.live)
        if not self.run(*lines):
            return False
        self.body.append(Statement(tuple(lines), tag, value_dependent))
        for name, value in self.live.items():
            if before.get(name, before) is not value and name[0] == "t" and is_comparable(value):
                self.variables.append(name)
        return True

    def declare(self, tag: str, *lines: str, value_dependent: bool = False) -> bool:
        """Add lines to the module before the program."""
        if not self.run(*lines):
            return False
        self.preamble.append(Statement(tuple(lines), tag, value_dependent))
        return True

    def assign(self, tag: str, text: str, value_dependent: bool = False) -> str | None:
        """Assign an expression to a new variable, whose name is returned if NumPy has a value."""
        name = self.name()
        added = self.attempt(tag, f"{name} = {text}", value_dependent=value_dependent)
        if added and not is_comparable(self.live[name]):
            self.body.pop()
            return None
        return name if added else None

    def add_argument(self, name: str, argument: Argument) -> None:
        self.arguments[name] = argument
        self.live[name] = eval(argument.source, {**self.live, "array": array})
        self.variables.append(name)

    # Operands

    def pick(self, accepts: Callable[[Any], bool], recent: bool = True) -> str | None:
        """A variable whose value is accepted, rather one assigned lately."""
        names = [name for name in self.variables if accepts(self.live[name])]
        if not names:
            return None
        if recent and self.chance(0.5):
            return names[-1]
        return self.choice(names)

    def pick_array(
        self, kinds: str = "biufc", min_ndim: int = 0, max_ndim: int = 9, max_size: int = MAX_SIZE
    ) -> str | None:
        def accepts(value: Any) -> bool:
            return (
                isinstance(value, np.ndarray)
                and value.dtype.kind in kinds
                and min_ndim <= value.ndim <= max_ndim
                and value.size <= max_size
            )

        return self.pick(accepts)

    def pick_like(self, name: str, kinds: str = "biufc") -> str:
        """An array of the same shape as another, or that one."""
        shape = self.live[name].shape

        def accepts(value: Any) -> bool:
            is_like = isinstance(value, np.ndarray) and value.shape == shape
            return is_like and value.dtype.kind in kinds

        return self.pick(accepts, recent=False) or name

    def new_array(self, shape: tuple[int, ...], dtype: str | None = None, kind: str = "") -> str:
        """A new argument of the program, of this shape."""
        name = self.name("a")
        argument = Argument(
            shape=shape,
            dtype=dtype or weighted(self.random, DTYPES),
            layout=weighted(self.random, LAYOUTS),
            kind=kind or self.choice(["normal"] * 4 + ["integral"] * 3 + ["positive"] * 3),
            seed=self.random.randrange(10**6),
        )
        self.add_argument(name, argument)
        return name

    def array(self, kinds: str = "biufc", min_ndim: int = 0, max_ndim: int = 9) -> str:
        """A variable that holds such an array: one of the program's, or a new argument."""
        found = self.pick_array(kinds, min_ndim, max_ndim)
        if found:
            return found
        d = self.dimensions
        shapes = {1: (d["m"],), 2: (d["n"], d["m"]), 3: (d["k"], d["n"], d["m"])}
        ndim = min(max(min_ndim, 1), 3)
        return self.new_array(shapes[ndim], "float64" if "f" in kinds else "int64")

    def literal(self) -> str:
        scalars = [n for n in self.variables if isinstance(self.live[n], int | float | np.generic)]
        if scalars and self.chance(0.3):
            return self.choice(scalars)
        return self.weighted(LITERALS)

    def operand(self, near: str | None = None) -> str:
        """A variable, often in another layout; `near` has the shape that is wanted."""
        is_any = near is None or self.chance(0.2)
        name = self.array() if is_any or near is None else self.pick_like(near)
        return self.relayout(name) if self.chance(0.12) else name

    def relayout(self, text: str) -> str:
        """A view or copy of an operand in another layout."""
        for _ in range(4):
            view = self.weighted(RELAYOUTS).format(_parenthesized(text))
            if self.is_valid(view):
                return view
        return text

    def expression(self, depth: int = 2, near: str | None = None) -> str:
        """An arithmetic expression of arrays, for which NumPy has a value."""
        if depth <= 0:
            return self.operand(near)
        near = near or self.array()
        for _ in range(5):
            if self.chance(0.3):
                pattern = self.weighted(UNARY)
                parts = [self.expression(depth - 1, near)]
            else:
                pattern = self.weighted(BINARY)
                parts = [self.expression(depth - self.random.randint(1, 2), near)]
                parts.append(
                    self.literal()
                    if self.chance(0.35)
                    else self.expression(depth - self.random.randint(1, 2), near)
                )
                if self.chance(0.3) and "0}" not in pattern:
                    parts.reverse()
            text = pattern.format(*(_parenthesized(part) for part in parts))
            if self.is_valid(text):
                return text
        return near

    def mask(self, name: str) -> str:
        """An expression of bools in the shape of a variable."""
        for pattern in ("{} > 0", "{} != 0", "np.abs({}) < 1", "({0} > -1) & ({0} < 2)"):
            text = pattern.format(name)
            if self.chance(0.5) and self.is_valid(text):
                return text
        return f"{name} == {name}"
