"""Random NumPy programs as source text, each with its meaning on exact values (the oracle).

A program is a list of statements. Each has its lines of text and a function that does the same on
the values of a `Machine` (see exact_values). `drawn_statements.draw` draws those that the machine
of the program can execute. `Program.text` is the source of a function; `Program.run` gives the
values that leave it: those returned, printed, formatted, logged, and written to files.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.runtime.audit.exact_values import (
    Machine,
    RejectedError,
    UndefinedError,
    Value,
    from_numpy,
    objects,
)

SIZE = 6
INTS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "i8", "u8")
FLOATS = ("f2", "f4", "f8")
UNITS = ("D", "h", "m", "s", "ms", "us", "ns")
Environment = dict[str, Any]


@dataclass
class Statement:
    """Lines of text, and what they do to the variables of a machine."""

    lines: list[str]
    run: Callable[[Machine, Environment], None]
    uses: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    """The variables that the statement assigns."""
    writes: tuple[str, ...] = ()
    """The arrays that the statement writes to."""
    leaves: tuple[Any, ...] = ()
    """The keys of the values that leave here."""
    feature: str = ""


UNDEFINED = Value("f8", objects([], (0,)), [True])


def execute(machine: Machine, values: Environment, statement: Statement) -> None:
    """Execute a statement; what depends on undefined values is undefined."""
    machine.statement = statement
    try:
        used = [values[name] for name in statement.uses]
        if any(isinstance(x, Value) and x.undefined for x in used):
            raise UndefinedError("an operand")
        statement.run(machine, values)
    except (UndefinedError, RejectedError, OverflowError, TypeError) as error:
        if not machine.exact or (isinstance(error, TypeError) and "Complex" not in str(error)):
            raise
        for name in statement.makes:
            values[name] = UNDEFINED
        for name in statement.writes:
            values[name].flags[0] = True
        for key in statement.leaves:
            machine.leave(key, UNDEFINED)


@dataclass
class Program:
    """Inputs by name, statements, and the names of the results."""

    inputs: dict[str, Any]
    statements: list[Statement] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    numbers: set[Any] = field(default_factory=set)
    """The keys of values that leave as Python floats."""

    def text(self) -> str:
        """The source; comments `# @n` mark the lines at which values leave."""
        body = [line for statement in self.statements for line in statement.lines]
        returned = ", ".join(self.results)
        lines = [f"def program({', '.join(self.inputs)}):", *body, f"return ({returned},)"]
        return PREFACE + "\n    ".join(lines) + "\n"

    def run(self, machine: Machine) -> dict[Any, list[Value]]:
        """Run on a machine: the values that leave, by the key of the place."""
        values: Environment = {name: from_numpy(array) for name, array in self.inputs.items()}
        for statement in self.statements:
            execute(machine, values, statement)
        for name in self.results:
            machine.leave(("result", name), values[name])
        return machine.left


PREFACE = '''"""Drawn."""
import io
import json
import logging
import pickle

import numpy as np

LOG = logging.Logger("drawn", logging.INFO)
LOG.addHandler(logging.StreamHandler(io.StringIO()))
FOLDER = "."


def lane(row):
    return row.cumsum() + row[::-1]


def twice(row):
    return row.sum() * 2


def tripled(value):
    return value * 3 + 1


def halved(value):
    return value / 2


'''


class Draw:
    """The state of a drawing: the program so far, and its values in NumPy."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        kinds = self.random.choice(["i", "i", "if", "ifc", "im", "imf", "ifm", "ub", "u", "f", "c"])
        inputs = {f"x{i}": self.array(self.random.choice(kinds)) for i in range(3)}
        self.program = Program(inputs)
        self.count = 0
        self.replay()

    # Values

    def array(self, kind: str) -> Any:
        """Draw an input."""
        one, some = self.random.choice, self.random
        if kind in "iu":
            dtype = np.dtype(one([x for x in INTS if kind == "i" or x[0] == "u"]))
            info = np.iinfo(dtype)
            near = [info.max - some.randrange(9), info.min + some.randrange(9)]
            wide = [some.randrange(int(info.min), int(info.max) + 1) for _ in range(2)]
            ids = [some.choice([-1, 1]) * (2**53 + some.randrange(2**20)) for _ in range(4)]
            ids = [x for x in ids if info.min <= x <= info.max]
            small = [some.randrange(0, 100) for _ in range(some.choice([1, 4, 9]))]
            if some.random() < 0.3:
                near = wide = []
            return np.array([one([*near, *wide, *ids, *ids, *small]) for _ in range(SIZE)], dtype)
        if kind == "f":
            dtype = one(FLOATS)
            scale = one([1, 1, 1, 1000, 60000 if dtype == "f2" else 10**6])
            drawn = [some.randrange(-64, 64) / 8 * scale for _ in range(SIZE)]
            if some.random() < 0.5:
                drawn = [x * some.random() for x in drawn]
            if some.random() < 0.15:
                drawn[some.randrange(SIZE)] = one([np.nan, np.inf, -0.0])
            with np.errstate(all="ignore"):
                return np.array(drawn, dtype)
        if kind == "c":
            parts = [[some.randrange(-64, 64) / 8 for _ in range(SIZE)] for _ in range(2)]
            return (np.array(parts[0]) + 1j * np.array(parts[1])).astype(one(["c8", "c16"]))
        if kind == "b":
            return np.array([some.random() < 0.5 for _ in range(SIZE)])
        unit = one(UNITS)
        per_day = {"D": 1, "h": 24, "m": 1440, "s": 86400}.get(unit, 86400000)
        per_day *= {"us": 10**3, "ns": 10**6}.get(unit, 1)
        if some.random() < 0.5:
            counts = [19000 * per_day + some.randrange(900 * per_day) for _ in range(SIZE)]
            array = np.array(counts, "i8").view(f"M8[{unit}]")
        else:
            counts = [some.randrange(-9, 40 * per_day) for _ in range(SIZE)]
            array = np.array(counts, "i8").view(f"m8[{unit}]")
        if some.random() < 0.08:
            array[some.randrange(SIZE)] = "NaT"
        return array

    def number(self, kind: str) -> Any:
        """Draw a Python number for text."""
        one = self.random.choice
        if kind in "iu":
            return one([1, 2, 3, 7, 10, 100, 1000])
        if kind == "c":
            return one([1j, 1 + 2j, 0.5])
        return one([0.1, 0.5, 1.5, 2, 3, 0.25, 1e3])

    def replay(self) -> None:
        """Compute the values of the program so far."""
        self.machine = Machine(False)
        self.values = {name: from_numpy(array) for name, array in self.program.inputs.items()}
        for statement in self.program.statements:
            execute(self.machine, self.values, statement)

    def add(self, statement: Statement) -> None:
        """Append a statement; RejectedError if the program cannot execute it."""
        try:
            execute(self.machine, self.values, statement)
            made = [self.values[name] for name in statement.makes]
            if any(isinstance(x, Value) and (x.undefined or not x.data.size) for x in made):
                raise RejectedError("of no elements")
        except RejectedError:
            self.replay()
            raise
        self.program.statements.append(statement)

    def new(self) -> str:
        """A new name."""
        self.count += 1
        return f"v{self.count}"

    def pick(self, kinds: str = "iufbcmM", ndim: int | None = 1, recent: bool = True) -> str:
        """Draw a variable; the recent ones more often."""
        names = [
            name
            for name, value in self.values.items()
            if isinstance(value, Value)
            and value.kind in kinds
            and (ndim is None or value.data.ndim == ndim)
        ]
        if not names:
            raise RejectedError("no such variable")
        later = [name for name in names if name in list(self.values)[-3:]]
        if recent and later and self.random.random() < 0.6:
            return self.random.choice(later)
        return self.random.choice(names)

    def require_shapes(self, *names: str, size: int = 0) -> None:
        """RejectedError unless variables have one shape, of `size` elements at least."""
        shapes = {self.values[name].data.shape for name in names}
        if len(shapes) > 1 or self.values[names[0]].data.size < size:
            raise RejectedError("shapes")

    def assign(
        self, text: str, run: Callable[..., Value], *uses: str, feature: str = "", lines: Any = ()
    ) -> Statement:
        """A statement `new = text`, whose value is `run` on the machine and the variables."""
        new = self.new()

        def execute_it(machine: Machine, values: Environment) -> None:
            values[new] = run(machine, *(values[name] for name in uses))

        return Statement([*lines, f"{new} = {text}"], execute_it, uses, (new,), feature=feature)

    def marked(self) -> tuple[int, str]:
        """A key for a line at which values leave, and its comment."""
        self.count += 1
        return self.count, f"  # @{self.count}"
