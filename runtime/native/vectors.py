"""LLVM assembly being written: straight code over vectors that have a lane for each element."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from runtime.program.tracing import Storage

where: Callable[..., Any] = np.where
"""np.where, of what is not known to be arrays."""

_FLOATS = {("f", 4): "float", ("f", 8): "double"}


def lane(dtype: Storage) -> str:
    """The type of one lane: a float or double; else an integer of the same bits; i1 for bool."""
    if dtype == np.bool_:
        return "i1"
    return _FLOATS.get((dtype.kind, dtype.itemsize), f"i{8 * dtype.itemsize}")


def words_of(text: str) -> str:
    """Assembly where `%x = get T, %p[i]` loads from the i-th 64-bit word after %p, and
    `put T %x, %p[i]` stores there.
    """
    places = count()

    def store(found: re.Match[str]) -> str:
        value, base, index = found.groups()
        at = f"%put{next(places)}"
        return (
            f"{at} = getelementptr i64, ptr {base}, i64 {index}\nstore {value}, ptr {at}, align 8"
        )

    return _PUT.sub(store, _GET.sub(_LOADED, text))


_GET = re.compile(r"(%\w+) = get (.+), (%\w+)\[(\S+)\]")
_LOADED = r"\1_at = getelementptr i64, ptr \3, i64 \4\n\1 = load \2, ptr \1_at, align 8"
_PUT = re.compile(r"put (.+), (%\w+)\[(\S+)\]")


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
        self.context: dict[int, int] = {}
        self.lines: list[str] = []
        self.declared: set[str] = set()
        self._names = 0

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

    def pointer(self, address: int) -> str:
        """An address of this process, which is not part of the text."""
        place = self.context.setdefault(address, len(self.context))
        return f"%c{place}"

    def has(self, *extensions: str) -> bool:
        """Whether the processor has any of some extensions."""
        return not self.features.isdisjoint(extensions)

    def splat(self, value: Any, dtype: Storage) -> str:
        """A constant in every lane."""
        dtype = np.dtype(dtype)
        bits = int.from_bytes(np.asarray(value, dtype).tobytes(), "little")
        whole = "i1" if dtype == np.bool_ else f"i{8 * dtype.itemsize}"
        constant = f"splat ({whole} {bits})"
        if lane(dtype) == whole:
            return constant
        return self.op(f"bitcast {self.of(whole)} {constant} to {self.type(dtype)}")

    def read_as(self, value: str, dtype: Storage, wanted: Storage) -> str:
        """The same bits as lanes of another dtype of the same width."""
        one, other = lane(dtype), lane(wanted)
        if one == other:
            return value
        if other == "i1":
            return self.op(f"icmp ne {self.of(one)} {value}, zeroinitializer")
        convert = "zext" if one == "i1" else "bitcast"
        return self.op(f"{convert} {self.of(one)} {value} to {self.of(other)}")

    def intrinsic(self, name: str, result: str, *args: tuple[str, str]) -> str:
        """A call of an LLVM intrinsic on (type, value)s, its types being part of its name."""
        types, given = ", ".join(kind for kind, _ in args), ", ".join(map(" ".join, args))
        self.declared.add(f"declare {result} @llvm.{name}({types})")
        return self.op(f"call {result} @llvm.{name}({given})")

    def gathered(self, of: str, unit: str, base: str, index: str, places: str, align: int) -> str:
        """Lanes of some type from so many units of memory after an address."""
        full, pointers = self.of(of), self.of("ptr")
        at = self.op(f"getelementptr {unit}, ptr {base}, {self.of(index)} {places}")
        name = f"masked.gather.v{self.width}{suffix(of)}.v{self.width}p0"
        mask = self.of("i1"), "splat (i1 true)"
        return self.intrinsic(
            name, full, (pointers, at), ("i32", f"{align}"), mask, (full, "poison")
        )


def suffix(lane: str) -> str:
    """What intrinsics call a lane."""
    return {"float": "f32", "double": "f64"}.get(lane, lane)
