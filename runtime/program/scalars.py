"""Regions of 0-d values: Python expressions on NumPy scalars, a fifth of the cost of ufunc calls.

Python's + - * and comparisons of NumPy scalars give what the ufuncs give; other ops are called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphir import Symbol
from runtime.program.assembly import Writer
from runtime.program.code import Code, Instruction
from runtime.program.tracing import assign, select

_OPERATORS: dict[Any, str] = {
    np.add: "+",
    np.subtract: "-",
    np.multiply: "*",
    np.less: "<",
    np.less_equal: "<=",
    np.greater: ">",
    np.greater_equal: ">=",
    np.equal: "==",
    np.not_equal: "!=",
}


class Scalars:
    """A region of 0-d values as a function of 0-d arrays or scalars that gives its results."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.inputs: tuple[Symbol, ...] = tuple(code.inputs.values())
        self.outs: tuple[Symbol, ...] = tuple(code.outs)
        writer = self.writer = Writer()
        parameters = [f"r{k}" for k in code.inputs]
        writer.lines = [f"{name} = {name}[()]" for name in parameters]
        for register, value in code.constants.items():
            writer.scope[f"r{register}"] = value[()]
        writer.lines += [self._line(one) for one in _live(code)]
        results = [f"{writer.name(np.asarray)}({self._read(one)})" for one in code.outs.values()]
        writer.lines.append(f"return {', '.join(results)},")
        self.function = writer.function(parameters)

    def _line(self, one: Instruction) -> str:
        function, args, out, _ = one
        read = [self._read(arg) for arg in args]
        dtypes = self.code.dtypes
        sign = _OPERATORS.get(function)
        if sign and all(dtypes[arg].kind in "iuf" for arg in args):
            return f"r{out} = {read[0]} {sign} {read[1]}"
        if function is assign:
            return f"r{out} = {read[0]}.astype({self.writer.name(dtypes[out])})"
        if function is select:
            return f"r{out} = {read[1]} if {read[0]} else {read[2]}"
        if not isinstance(function, np.ufunc):
            function = _returning(function, dtypes[out])
        return f"r{out} = {self.writer.name(function)}({', '.join(read)})"

    def _read(self, register: int) -> str:
        base, dtype = self.code.bases[register], self.code.dtypes[register]
        return f"r{base}" if base == register else f"r{base}.view({self.writer.name(dtype)})"


def _live(code: Code) -> list[Instruction]:
    """The instructions whose results are read."""
    read = {code.bases[register] for register in code.outs.values()}
    live: list[Instruction] = []
    for one in reversed(code.instructions):
        if one[2] in read:
            read.update([code.bases[arg] for arg in one[1]])
            live.append(one)
    return live[::-1]


def _returning(function: Callable[..., Any], dtype: Any) -> Callable[..., Any]:
    """A step that writes into an array, as a function that returns a scalar."""

    def call(*scalars: Any) -> Any:
        out = np.empty((), dtype)
        function(*map(np.asarray, scalars), out)
        return out[()]

    return call
