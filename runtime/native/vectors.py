"""LLVM assembly being written: straight code over vectors that have a lane for each element."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from runtime.program.tracing import Storage

_F32 = np.dtype(np.float32)
_FLOATS = {("f", 4): "float", ("f", 8): "double"}


def lane(dtype: Storage) -> str:
    """The type of one lane: a float or double; else an integer of the same bits; i1 for bool."""
    if dtype == np.bool_:
        return "i1"
    return _FLOATS.get((dtype.kind, dtype.itemsize), f"i{8 * dtype.itemsize}")


class Table(NamedTuple):
    """A function of places: the elements of an array, by its address."""

    address: int
    dtype: Storage

    @staticmethod
    def of(values: NDArray[Any]) -> Table:
        """That of an array, which lives as long as the process from now on, as code may."""
        _KEPT[values.ctypes.data] = values
        return Table(values.ctypes.data, values.dtype)


_KEPT: dict[int, NDArray[Any]] = {}


class Vectors:
    """Instructions in order, each the definition of one value."""

    def __init__(self, width: int, features: Collection[str] = ()) -> None:
        self.width, self.features = width, frozenset(features)
        self.context: dict[Hashable, int] = {}
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

    # -- instructions

    def both(self, name: str, dtype: Storage, x: str, y: str) -> str:
        """An instruction of two operands of one dtype."""
        return self.op(f"{name} {self.type(dtype)} {x}, {y}")

    def bits(self, name: str, x: str, amount: int) -> str:
        """An instruction of 32-bit lanes and a constant."""
        return self.op(f"{name} {self.of('i32')} {x}, splat (i32 {amount})")

    def floats(self, name: str, x: str, value: float) -> str:
        """An instruction of float32 lanes and a constant."""
        return self.both(name, _F32, x, self.splat(value, _F32))

    def compare(self, name: str, dtype: Storage, x: str, y: str) -> str:
        """A comparison: bool lanes."""
        return self.both(name, dtype, x, y)

    def choose(self, dtype: Storage, condition: str, x: str, y: str) -> str:
        """Lanes of x where the condition holds, of y elsewhere."""
        full = self.type(dtype)
        return self.op(f"select {self.of('i1')} {condition}, {full} {x}, {full} {y}")

    def convert(self, name: str, x: str, source: Storage, target: Storage) -> str:
        """A conversion of each lane."""
        return self.op(f"{name} {self.type(source)} {x} to {self.type(target)}")

    def part(self, dtype: Storage, x: str, index: int) -> str:
        """The real (0) or imaginary (1) part of complex lanes."""
        half = 4 * dtype.itemsize
        whole, part = self.of(f"i{2 * half}"), np.dtype(f"f{dtype.itemsize // 2}")
        if index:
            x = self.op(f"lshr {whole} {x}, splat (i{2 * half} {half})")
        bits = self.op(f"trunc {whole} {x} to {self.of(f'i{half}')}")
        return self.op(f"bitcast {self.of(f'i{half}')} {bits} to {self.type(part)}")

    def joined(self, dtype: Storage, real: str, imag: str | None) -> str:
        """Complex lanes of parts; the imaginary one 0 where it is not given."""
        half = 4 * dtype.itemsize
        whole, part = self.of(f"i{2 * half}"), np.dtype(f"f{dtype.itemsize // 2}")

        def widened(x: str) -> str:
            bits = self.op(f"bitcast {self.type(part)} {x} to {self.of(f'i{half}')}")
            return self.op(f"zext {self.of(f'i{half}')} {bits} to {whole}")

        low = widened(real)
        if imag is None:
            return low
        up = self.op(f"shl {whole} {widened(imag)}, splat (i{2 * half} {half})")
        return self.op(f"or {whole} {low}, {up}")

    def looked_up(self, table: Table, places: str, dtype: Storage) -> str:
        """Elements of a table at places that are integers of a dtype."""
        one, base = lane(table.dtype), self.pointer(table)
        return self.gathered(one, one, base, lane(dtype), places, table.dtype.itemsize)

    def gathered(self, of: str, unit: str, base: str, index: str, places: str, align: int) -> str:
        """Lanes of some type from so many units of memory after an address."""
        full, pointers, mask = self.of(of), self.of("ptr"), self.of("i1")
        at = self.op(f"getelementptr {unit}, ptr {base}, {self.of(index)} {places}")
        kind = {"float": "f32", "double": "f64"}.get(of, of)
        function = f"@llvm.masked.gather.v{self.width}{kind}.v{self.width}p0"
        self.declared.add(f"declare {full} {function}({pointers}, i32, {mask}, {full})")
        given = f"{pointers} {at}, i32 {align}, {mask} splat (i1 true), {full} poison"
        return self.op(f"call {full} {function}({given})")

    def pointer(self, what: Hashable) -> str:
        """An address that is known when the code is loaded: of a table or of a function."""
        place = self.context.setdefault(what, len(self.context))
        return f"%c{place}"

    def has(self, *extensions: str) -> bool:
        """Whether the processor has any of some extensions."""
        return not self.features.isdisjoint(extensions)

    def intrinsic(self, name: str, dtype: Storage, args: Sequence[str], suffix: str = "") -> str:
        """The value of an LLVM intrinsic of one type, `llvm.name`."""
        function = f"@llvm.{name}.v{self.width}{_suffix(dtype)}"
        full, of = self.type(dtype), [f"{self.type(dtype)} {arg}" for arg in args]
        types = ", ".join([full] * len(args)) + (", i1" if suffix else "")
        self.declared.add(f"declare {full} {function}({types})")
        return self.op(f"call {full} {function}({', '.join(of)}{suffix})")


def _suffix(dtype: Storage) -> str:
    """How intrinsics call a type."""
    return {"float": "f32", "double": "f64"}.get(lane(dtype), lane(dtype))
