"""What each program of this folder is: a function, its inputs, and the result that is meant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.support.guilty_lines import marked_lines

Inputs = Callable[[np.random.Generator], tuple[Any, ...]]


@dataclass
class Program:
    """A function of arrays; called like the function itself."""

    function: Callable[..., Any]
    inputs: Inputs
    exact: Callable[..., Any]
    operand: str | None
    """The operand at fault, as the guilty line spells it; None in a clean program."""

    @property
    def kind(self) -> str:
        """The class of loss: the name of the module."""
        return self.function.__module__.rpartition(".")[2]

    @property
    def name(self) -> str:
        return f"{self.kind}.{self.function.__name__}"

    @property
    def guilty_line(self) -> int | None:
        """The line number in the module of the line at fault; None in a clean program."""
        code = self.function.__code__
        with open(code.co_filename, encoding="utf-8") as file:
            marks = marked_lines(file.read())
        ends = [line for *_, line in code.co_lines() if line]
        found = [mark for mark in marks if code.co_firstlineno <= mark <= max(ends)]
        return found[0] if found else None

    def __call__(self, *arrays: Any) -> Any:
        return self.function(*arrays)

    def error(self) -> float:
        """The largest error of the result, relative to the largest value that is meant."""
        result = np.asarray(self(*self.inputs(np.random.default_rng(0))))
        meant = np.asarray(self.exact(*self.inputs(np.random.default_rng(0))))
        wide = np.asarray(result, np.float64), np.asarray(meant, np.float64)
        assert wide[0].shape == wide[1].shape, self.name
        error = np.abs(wide[0] - wide[1]).max() / np.abs(wide[1]).max()
        return float(error) if np.isfinite(error) else np.inf


def faulty(
    operand: str, inputs: Inputs, exact: Callable[..., Any]
) -> Callable[[Callable[..., Any]], Program]:
    """Decorator: a program whose line marked guilty loses."""
    return lambda function: Program(function, inputs, exact, operand)


def clean(inputs: Inputs, exact: Callable[..., Any]) -> Callable[[Callable[..., Any]], Program]:
    """Decorator: a program in which nothing is lost that its result shows."""
    return lambda function: Program(function, inputs, exact, None)


def wide(*arrays: Any) -> list[Any]:
    """The arrays in float64 or, of integers, int64."""
    return [
        np.asarray(a, np.int64 if np.asarray(a).dtype.kind in "iub" else np.float64) for a in arrays
    ]
