"""Regions of 0-d values: Python expressions on NumPy scalars, a fifth of the cost of ufunc calls.

Python's + - * and comparisons of NumPy scalars give what the ufuncs give; other ops are called.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from graphir import Symbol
from runtime.program.code import Code, Instruction, Place
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
        self.inputs: tuple[Symbol, ...] = tuple(code.inputs.values())
        self.outs: tuple[Symbol, ...] = tuple(code.outs)
        self.scope: dict[str, Any] = {"asarray": np.asarray}
        self.names: dict[int, str] = {}
        self.dtypes = {k: one.dtype.storage for k, one in code.inputs.items()}
        self.dtypes |= {k: one.dtype for k, one in code.constants.items()}
        self.dtypes |= {one.out.register: one.out.dtype for one in code.instructions}
        lines = [f"r{k} = r{k}[()]" for k in code.inputs]
        for register, value in code.constants.items():
            self.scope[f"r{register}"] = value[()]
        lines += [self._line(one) for one in _live(code)]
        results = ", ".join([f"asarray({self._read(place)})" for place in code.outs.values()])
        parameters = ", ".join([f"r{k}" for k in code.inputs])
        text = "\n    ".join([*lines, f"return {results},"])
        exec(_compiled(parameters, text), self.scope)
        self.function: Callable[..., tuple[Any, ...]] = self.scope["body"]

    def _line(self, one: Instruction) -> str:
        out = f"r{one.out.register}"
        args = [self._read(place) for place in one.args]
        sign = _OPERATORS.get(one.function)
        if sign and all(place.dtype.kind in "iuf" for place in one.args):
            return f"{out} = {args[0]} {sign} {args[1]}"
        if one.function is assign:
            return f"{out} = {args[0]}.astype({self._name(one.out.dtype)})"
        if one.function is select:
            return f"{out} = {args[1]} if {args[0]} else {args[2]}"
        if isinstance(one.function, np.ufunc):
            return f"{out} = {self._name(one.function)}({', '.join(args)})"
        name = self._name(_returning(one.function, one.out.dtype))
        return f"{out} = {name}({', '.join(args)})"

    def _read(self, place: Place) -> str:
        name = f"r{place.register}"
        same = self.dtypes[place.register] == place.dtype
        return name if same else f"{name}.view({self._name(place.dtype)})"

    def _name(self, function: Any) -> str:
        name = self.names.setdefault(id(function), f"f{len(self.names)}")
        self.scope[name] = function
        return name


def _live(code: Code) -> list[Instruction]:
    """The instructions whose results are read."""
    read = {place.register for place in code.outs.values()}
    live: list[Instruction] = []
    for one in reversed(code.instructions):
        if one.out.register in read:
            read.update([place.register for place in one.args])
            live.append(one)
    return live[::-1]


@cache
def _compiled(parameters: str, text: str) -> Any:
    return compile(f"def body({parameters}):\n    {text}\n", "<scalars>", "exec")


def _returning(function: Callable[..., Any], dtype: Any) -> Callable[..., Any]:
    """A step that writes into an array, as a function that returns a scalar."""

    def call(*scalars: Any) -> Any:
        out = np.empty((), dtype)
        function(*map(np.asarray, scalars), out)
        return out[()]

    return call
