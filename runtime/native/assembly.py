"""A writer of LLVM assembly: straight-line code over vectors that have a lane for each element."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from itertools import count
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphir.runtime.program.codegen.tracing import Storage

where: Callable[..., Any] = np.where
"""np.where with the type of a function of any operands, because the operands are LlvmValues."""

Vector: TypeAlias = Any
"""An `LlvmValue`. NumPy's functions and operators take it as an array; their types know no such
object."""

_FLOATS = {("f", 2): "half", ("f", 4): "float", ("f", 8): "double"}


def lane(dtype: Storage) -> str:
    """Return the LLVM type of one lane: i1 for bool, a float type of NumPy's width, or an integer.

    A dtype without such a float type is an integer of the same width.
    """
    if dtype == np.bool_:
        return "i1"
    return _FLOATS.get((dtype.kind, dtype.itemsize), f"i{8 * dtype.itemsize}")


def stored_type(dtype: Storage) -> Storage:
    """Return the dtype of an element in memory: a bool is a uint8, others as they are."""
    return np.dtype(np.uint8) if dtype.kind == "b" else dtype


def package_text(file: str) -> str:
    """Return the text of a file of this package, such as a driver, by its path in it."""
    loader: Any = __spec__.loader if __spec__ else None
    return loader.get_data(os.path.join(os.path.dirname(__file__), file)).decode()


def words_of(text: str) -> str:
    """Return LLVM assembly from text with three abbreviations.

    `get T, %p[i]` loads from the i-th 64-bit word after %p, `put T %x, %p[i]` stores there, and
    `$(...)` is the value of the instruction inside the parentheses.
    """
    names = count()

    def inner_first(match: re.Match[str]) -> str:
        *lines, line = [match[0]]
        while inner := _INNER.search(line):
            name = f"%inner{next(names)}"
            lines.append(f"{name} = {inner[1]}")
            line = line[: inner.start()] + name + line[inner.end() :]
        return "\n".join([*lines, line])

    def store_text(match: re.Match[str]) -> str:
        at, (value, base, index) = f"%put{next(names)}", match.groups()
        return (
            f"{at} = getelementptr i64, ptr {base}, i64 {index}\nstore {value}, ptr {at}, align 8"
        )

    return _STORE_PATTERN.sub(
        store_text, _GET.sub(_LOAD_TEMPLATE, _NESTED_PATTERN.sub(inner_first, text))
    )


_NESTED_PATTERN = re.compile(r"^.*\$\(.*$", re.MULTILINE)
_INNER = re.compile(r"\$\(((?:[^$()]|\([^$()]*\))*)\)")
_GET = re.compile(r"(%\w+) = get (.+), (%\w+)\[(\S+)\]")
_LOAD_TEMPLATE = r"\1_at = getelementptr i64, ptr \3, i64 \4\n\1 = load \2, ptr \1_at, align 8"
_STORE_PATTERN = re.compile(r"put (.+), (%\w+)\[(\S+)\]")


class ConstantTable(NamedTuple):
    """A constant array as a function from indices to elements; it refers to memory by address."""

    address: int
    dtype: Storage

    @staticmethod
    def of(values: NDArray[Any]) -> ConstantTable:
        """Return the table of an array, which then lives until the process ends, as code may."""
        _BUFFERS[values.ctypes.data] = values
        return ConstantTable(values.ctypes.data, values.dtype)


_BUFFERS: dict[int, NDArray[Any]] = {}


class VectorWriter:
    """A list of instructions on vectors of `width` lanes.

    `context` has the addresses of this process that the instructions need, with their numbers.
    `features` are the extensions of the processor.
    """

    def __init__(self, width: int, features: Collection[str] = ()) -> None:
        self.width, self.features = width, frozenset(features)
        self.context: dict[int, int] = {}
        self.lines: list[str] = []
        self._names = count()

    def op(self, text: str) -> str:
        """Append an instruction, and return the name of its value."""
        name = f"%v{next(self._names)}"
        self.lines.append(f"{name} = {text}")
        return name

    def of(self, lane: str) -> str:
        """Return the type of a vector whose lanes have the type `lane`."""
        return f"<{self.width} x {lane}>"

    def pointer(self, address: int) -> str:
        """Return an address of this process as a value that the code loads from its context.

        The text then does not depend on the address, so the disk cache can serve all processes.
        """
        return self.op(f"get ptr, %context[{self.context.setdefault(address, len(self.context))}]")

    def has(self, *extensions: str) -> bool:
        """Whether the processor has at least one of some extensions."""
        return not self.features.isdisjoint(extensions)

    def narrowed(self, width: int) -> VectorWriter:
        """Return a writer of vectors of another width into the same list."""
        narrow = copy(self)
        narrow.width = width
        return narrow

    def rarely(self, condition: Vector, usual: Vector, emit: Callable[[], Vector]) -> Vector:
        """Emit a branch: if a condition holds in any lane, the result is that of `emit`.

        Otherwise the result is `usual`, of the same type. A value that `emit` emits has no use
        outside of the branch.
        """
        n = next(self._names)
        self.lines.append(f"br label %usual{n}\nusual{n}:")
        some = self.op(f"call i1 @llvm.vector.reduce.or({condition})")
        self.lines.append(f"br i1 {some}, label %rare{n}, label %join{n}\nrare{n}:")
        result = emit()
        self.lines.append(f"br label %end{n}\nend{n}:\nbr label %join{n}\njoin{n}:")
        incoming = f"[ {usual.name}, %usual{n} ], [ {result.name}, %end{n} ]"
        return usual.emit_value(f"phi {usual.type} {incoming}", usual.dtype)

    def shuffled(self, kind: str, x: str, y: str, lanes: Iterable[int]) -> str:
        """Return the vector of chosen lanes of x and y, whose type is `kind`.

        The numbers of lanes count those of x first and then those of y.
        """
        indices = [f"i32 {number}" for number in lanes]
        both, mask = f"{kind} {x}, {kind} {y}", ", ".join(indices)
        return self.op(f"shufflevector {both}, <{len(indices)} x i32> <{mask}>")

    def concatenate(self, kind: str, values: Sequence[str]) -> str:
        """Return the lanes of several vectors of type `kind`, a power of 2 of them, as one."""
        names = [*values]
        while len(names) > 1:
            width = int(kind[1:].split()[0])
            names = [
                self.shuffled(kind, x, y, range(2 * width))
                for x, y in zip(names[::2], names[1::2], strict=True)
            ]
            kind = kind.replace(str(width), str(2 * width), 1)
        return names[0]


def splat(value: ArrayLike, dtype: Storage) -> str:
    """Return the vector constant that has `value` in every lane."""
    element, bits = lane(dtype), int.from_bytes(np.asarray(value, dtype).tobytes(), "little")
    integer = f"i{8 * dtype.itemsize}"
    constant = bits if element[0] == "i" else f"bitcast ({integer} {bits} to {element})"
    return f"splat ({element} {constant})"


# -- arithmetic of vectors


def fma(x: Vector, y: Vector, z: Vector) -> Vector:
    """Emit x*y + z, rounded once; y and z may be numbers of NumPy."""
    return x.intrinsic(
        "fma", *[term if hasattr(term, "code") else x.constant(term, x.dtype) for term in (y, z)]
    )


def polynomial(x: Vector, coefficients: Sequence[float]) -> Vector:
    """Emit a polynomial with one rounding for each degree; the highest degree comes first."""
    first, *rest = [x.constant(coefficient, x.dtype) for coefficient in coefficients]
    for coefficient in rest:
        first = fma(first, x, coefficient)
    return first


_SAME_ROUNDING = "i32 4"
"""An operand of an instruction of AVX-512: the current rounding mode."""


def avx512(name: str, x: Vector, *operands: Vector) -> Vector:
    """Emit an instruction of AVX-512 on 64 bytes of floats, with a result of x's type."""
    code, arguments = "ps" if x.dtype.itemsize == 4 else "pd", ", ".join(map(str, (x, *operands)))
    return x.emit_value(f"call {x.type} @llvm.x86.avx512.{name}.{code}.512({arguments})", x.dtype)


def avx512_masked(name: str, x: Vector, *operands: Vector) -> Vector:
    """Emit an instruction of AVX-512 that takes a mask, on all lanes."""
    return avx512(f"mask.{name}", x, *operands, *all_lanes(x), _SAME_ROUNDING)


def all_lanes(x: Vector) -> tuple[str, str]:
    """Return the last operands of an instruction with a mask: other lanes, of which none is."""
    return f"{x.type} zeroinitializer", f"i{x.code.width} -1"
