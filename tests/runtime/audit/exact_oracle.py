"""Random NumPy programs, and an oracle in exact arithmetic of the line that loses most.

Each line of a program is one op on arrays of mixed dtypes. The oracle measures the loss of a line
by itself: the line's result in NumPy less the exact result of the line's operands in NumPy. Then it
computes the whole program exactly, with the loss of that line alone added, in numbers of 60 digits.
The worst line is the one that so changes the output most, in the Euclidean norm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import mpmath
import numpy as np

from tests.support.reports import program

mpmath.mp.dps = 60

SIZE = 24
"""The elements of the inputs."""

_exact = np.frompyfunc(lambda x: mpmath.mpf(x.item() if hasattr(x, "item") else x), 1, 1)
_less = np.frompyfunc(lambda x, y: bool(x < y), 2, 1)


def _function(name: str) -> Callable[..., Any]:
    return np.frompyfunc(getattr(mpmath, name), 1, 1)


EXACT: dict[str, Callable[..., Any]] = {
    "{0} + {1}": lambda x, y: x + y,
    "{0} - {1}": lambda x, y: x - y,
    "{0} * {1}": lambda x, y: x * y,
    "{0} / {1}": lambda x, y: x / y,
    "np.where({0} < {1}, {1}, {2})": lambda x, y, z: np.where(_less(x, y).astype(bool), y, z),
    "{0} * np.float32(NUMBER)": lambda x, number: x * _exact(np.float32(number)),
    "{0} * NUMBER": lambda x, number: x * number,
    "{0} + np.float64(NUMBER)": lambda x, number: x + _exact(np.float64(number)),
    "{0}.astype(np.float16)": lambda x: x,
    "{0}.astype(np.float32)": lambda x: x,
    "{0}.astype(np.float64)": lambda x: x,
    "np.exp({0})": _function("exp"),
    "np.log({0})": _function("log"),
    "np.sqrt({0})": _function("sqrt"),
    "np.abs({0})": lambda x: abs(x),
    "{0} - {0}.mean()": lambda x: x - x.sum() / x.size,
    "{0} * {0}.sum()": lambda x: x * x.sum(),
    "np.concatenate([{0}[12:], {0}[:12]])": lambda x: np.concatenate([x[12:], x[:12]]),
    "{0}[::-1]": lambda x: x[::-1],
}
"""The exact meaning of each kind of line, by its NumPy text."""


class Line(NamedTuple):
    """A line of a program: its kind, the numbers of its operands, and the constant in it."""

    kind: str
    operands: tuple[int, ...]
    number: str

    @property
    def text(self) -> str:
        """The NumPy expression."""
        text = self.kind.replace("NUMBER", self.number)
        return text.format(*(f"v{i}" for i in self.operands))

    def exact(self, values: Sequence[Any]) -> Any:
        """Return the exact result on the values of all variables."""
        numbers = [mpmath.mpf(self.number)] * ("NUMBER" in self.kind)
        result = EXACT[self.kind](*(values[i] for i in self.operands), *numbers)
        if any(isinstance(x, mpmath.mpc) for x in result.flat):
            raise ValueError(f"{self.text} has no real result")
        return result


class Drawn(NamedTuple):
    """A program: inputs v0, v1, ..., then a variable for each line; it returns the last."""

    inputs: tuple[Any, ...]
    lines: tuple[Line, ...]

    def function(self, file: str) -> Callable[..., Any]:
        """Return the program as a function; line i of it stands at `line_of(i)` of the file."""
        names = ", ".join(f"v{i}" for i in range(len(self.inputs)))
        first = len(self.inputs)
        body = [f"    v{first + i} = {line.text}" for i, line in enumerate(self.lines)]
        last = f"    return v{first + len(self.lines) - 1}"
        text = "\n".join([f"def program({names}):", *body, last]) + "\n"
        return program(text, file, np=np)["program"]

    def values(self) -> list[Any]:
        """Return the values of all variables in NumPy."""
        values = list(self.inputs)
        for line in self.lines:
            values.append(_numpy(line, values))
        return values

    def error(self) -> float:
        """Return the relative error of the output, in the Euclidean norm."""
        exact = self._run({}, 0, [])[-1]
        error = _exact(self.values()[-1]) - exact
        return float(_norm(error) / _norm(exact))

    def changes(self) -> list[float]:
        """Return, for each line, how much its loss alone changes the output."""
        actual = [_exact(x) for x in self.values()]
        first, exact = len(self.inputs), self._run({}, 0, [])
        changes: list[float] = []
        for i, line in enumerate(self.lines):
            loss = actual[first + i] - line.exact(actual)
            change = self._run({i: loss}, i, exact)[-1] - exact[-1]
            changes.append(float(_norm(change)))
        return changes

    def _run(self, losses: dict[int, Any], start: int, exact: Sequence[Any]) -> list[Any]:
        """Compute all variables exactly, with losses added from line `start` on."""
        values = list(exact[: len(self.inputs) + start]) or [_exact(x) for x in self.inputs]
        for i, line in enumerate(self.lines[start:], start):
            value = line.exact(values)
            values.append(value + losses[i] if i in losses else value)
        return values


def _norm(x: Any) -> Any:
    return mpmath.sqrt((x * x).sum())


def line_of(index: int) -> int:
    """Return the line number of a program's line in its file."""
    return index + 2


def _numpy(line: Line, values: Sequence[Any]) -> Any:
    return eval(line.text, {"np": np, **{f"v{i}": x for i, x in enumerate(values)}})


LEAST_ERROR = 2.0**-16
"""The relative error of a program's output from which the oracle is asked: more than float32's."""


_CURVED = ("exp", "log", "sqrt", "abs", "sum", "* NUMBER")
# A rounded number times a rounded value is the product of two errors.
LINEAR = [x for x in EXACT if "{1}" not in x or " + " in x or " - " in x]
LINEAR = [x for x in LINEAR if not any(name in x for name in _CURVED)]
"""The kinds of lines that are linear in the inputs."""


def drawn(seed: int, kinds: Sequence[str] = tuple(EXACT)) -> Drawn:
    """Draw a program whose output has an error that is visible in float16."""
    generator = np.random.default_rng(seed)
    while True:
        program = _drawn(generator, kinds)
        try:
            if program.error() >= LEAST_ERROR:
                return program
        except (ValueError, ZeroDivisionError):  # the exact value has no logarithm, or is 0
            continue


def _drawn(generator: np.random.Generator, kinds: Sequence[str], length: int = 10) -> Drawn:
    """Draw a program whose values are finite and of medium size."""
    inputs = tuple(_array(generator, str(generator.choice(DTYPES))) for _ in range(3))
    values, lines = list(inputs), list[Line]()
    while len(lines) < length:
        kind = str(generator.choice(list(kinds)))
        count = max(int(kind[i + 1]) for i in range(len(kind)) if kind[i] == "{") + 1
        recent = [len(values) - 1, *generator.integers(0, len(values), count - 1)]
        line = Line(kind, tuple(map(int, recent)), f"0.{generator.integers(1, 1000):03}7")
        with np.errstate(all="ignore"):
            value = _numpy(line, values)
        if value.dtype.kind == "f" and np.isfinite(value).all() and 1e-2 < abs(value).max() < 1e3:
            values.append(value)
            lines.append(line)
    return Drawn(inputs, tuple(lines))


DTYPES = ("int8", "int32", "float16", "float32", "float64")


def _array(generator: np.random.Generator, dtype: str) -> Any:
    return (generator.uniform(0.5, 9, SIZE) * (1 if "f" in dtype else 5)).astype(dtype)
