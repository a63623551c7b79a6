"""A program recorded line by line, for libraries that take text or nodes in place of calls."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from graphir import DType
from tests.benchmarks.engine import Unable
from tests.benchmarks.workloads import FUNCTIONS, Workload, names

BOOL = np.dtype(np.bool_)


class Line(NamedTuple):
    """`name = op(*args)`; an arg is the name of an input or line, or a number."""

    name: str
    op: str
    args: tuple[str | float, ...]
    dtype: np.dtype[Any]


class Value:
    """An input, or the result of a line."""

    def __init__(self, record: Record, name: str, dtype: np.dtype[Any]) -> None:
        self.record, self.name, self.dtype = record, name, dtype

    def __add__(self, other: Any) -> Value:
        return self.record.line("add", self, other)

    def __sub__(self, other: Any) -> Value:
        return self.record.line("subtract", self, other)

    def __mul__(self, other: Any) -> Value:
        return self.record.line("multiply", self, other)

    def __matmul__(self, other: Any) -> Value:
        return self.record.line("matmul", self, other)

    def __gt__(self, other: Any) -> Value:
        return self.record.line("greater", self, other)

    def __neg__(self) -> Value:
        return self.record.line("negative", self)


class Record:
    """The lines of a workload. `inputs` are its arguments by name, with their dtypes."""

    def __init__(self, workload: Workload, wide: tuple[str, ...] = ()) -> None:
        """Inputs of the dtypes `wide` come as float32. Raises Unable if one is computed in."""
        self.lines: list[Line] = []
        dtypes = [DType("float32" if one.dtype in wide else one.dtype) for one in workload.inputs]
        self.inputs = {f"x{i}": dtype.storage for i, dtype in enumerate(dtypes)}
        if workload.dtype in wide:
            raise Unable(f"no {workload.dtype}")
        own = {name: self._function(name) for name in FUNCTIONS}
        body = workload.make(names(SimpleNamespace(), **own, tf32=self._function("tf32")))
        self.result: str = body(*(Value(self, *one) for one in self.inputs.items())).name

    def line(self, op: str, *args: Any) -> Value:
        values = [arg for arg in args if isinstance(arg, Value)]
        numeric = [one.dtype for one in values if one.dtype != BOOL]
        dtype = BOOL if op == "greater" else np.result_type(*numeric)
        name = f"v{len(self.lines)}"
        texts = tuple(arg.name if isinstance(arg, Value) else arg for arg in args)
        self.lines.append(Line(name, op, texts, dtype))
        return Value(self, name, dtype)

    def _function(self, op: str) -> Any:
        return lambda *args: self.line(op, *args)

    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """Of inputs and lines, by name."""
        return self.inputs | {line.name: line.dtype for line in self.lines}

    def operand_dtype(self, line: Line) -> np.dtype[Any]:
        """That to which the operands of a line are converted, conditions aside."""
        known = self.dtypes()
        given = [known[arg] for arg in line.args if isinstance(arg, str)]
        return np.result_type(*(one for one in given if one != BOOL))
