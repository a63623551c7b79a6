"""LLVM assembly being written: straight code over vectors that have a lane for each element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.program.tracing import Storage

_FLOATS = {("f", 4): "float", ("f", 8): "double"}


def lane(dtype: Storage) -> str:
    """The type of one lane: a float or double; else an integer of the same bits; i1 for bool."""
    if dtype == np.bool_:
        return "i1"
    return _FLOATS.get((dtype.kind, dtype.itemsize), f"i{8 * dtype.itemsize}")


class Vectors:
    """Instructions in order, each the definition of one value."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.lines: list[str] = []
        self.declared: set[str] = set()
        self._names = 0
        self._constants: dict[tuple[str, int], str] = {}

    def name(self) -> str:
        """A new name."""
        self._names += 1
        return f"%v{self._names}"

    def op(self, text: str) -> str:
        """The value of an instruction."""
        name = self.name()
        self.lines.append(f"{name} = {text}")
        return name

    def of(self, lane: str) -> str:
        """The type of a vector of lanes."""
        return f"<{self.width} x {lane}>"

    def type(self, dtype: Storage) -> str:
        """The type of a vector of elements."""
        return self.of(lane(dtype))

    def splat(self, value: Any, dtype: Storage) -> str:
        """A constant in every lane."""
        given = np.asarray(value, dtype)
        bits = int.from_bytes(given.tobytes(), "little")
        if lane(dtype) == "i1":
            return f"splat (i1 {str(bool(bits)).lower()})"
        whole = f"i{8 * dtype.itemsize}"
        if lane(dtype) == whole:
            return f"splat ({whole} {bits})"
        return self.op(f"bitcast {self.of(whole)} splat ({whole} {bits}) to {self.type(dtype)}")

    def read_as(self, value: str, dtype: Storage, wanted: Storage) -> str:
        """The same bits as lanes of another dtype of the same width."""
        one, other = lane(dtype), lane(wanted)
        if one == other:
            return value
        if one == "i1":
            return self.op(f"zext {self.of(one)} {value} to {self.of(other)}")
        if other == "i1":
            return self.op(f"icmp ne {self.of(one)} {value}, zeroinitializer")
        return self.op(f"bitcast {self.of(one)} {value} to {self.of(other)}")

    def intrinsic(self, name: str, dtype: Storage, args: Sequence[str], suffix: str = "") -> str:
        """The value of an LLVM intrinsic of one type, `llvm.name`."""
        kind = {"float": "f32", "double": "f64"}.get(lane(dtype), lane(dtype))
        function = f"@llvm.{name}.v{self.width}{kind}"
        full, of = self.type(dtype), [f"{self.type(dtype)} {arg}" for arg in args]
        types = ", ".join([full] * len(args)) + (", i1" if suffix else "")
        self.declared.add(f"declare {full} {function}({types})")
        return self.op(f"call {full} {function}({', '.join(of)}{suffix})")
