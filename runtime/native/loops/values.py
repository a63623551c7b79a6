"""The values of loops in machine code: single elements, arrays, and rows with another element."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from graphir import Graph, Symbol, TensorType
from graphir.runtime.native.emitters import LlvmValue
from graphir.runtime.program.codegen.tracing import Storage

Lowered: TypeAlias = Callable[[Graph], tuple[Graph, Any]]
"""A function that maps a graph of control flow to its lowered form, and to such a function for the
graphs inside."""


class LastStore(NamedTuple):
    """The address and the value of the last element that was written to a memory."""

    address: str
    value: LlvmValue


@dataclass(eq=False, slots=True)
class LoopMemory:
    """The memory of an array. Each write makes a new version; only the last one may be read."""

    version: int = 0
    last: LastStore | None = None


class LoopArray(NamedTuple):
    """An array: a version of a memory, or a view of one.

    `address`, `sizes` and `strides` (in bytes) are LLVM values. A view that a `gather` of one row
    made has the `row` that it is: the indices of the symbols of array and place, and the axis.
    """

    memory: LoopMemory
    version: int
    dtype: Storage
    address: str
    sizes: tuple[str, ...]
    strides: tuple[str, ...]
    row: tuple[int, int, int] | None = None
    is_whole: bool = False


class Patch(NamedTuple):
    """A row of an array with one other element: its address and its value."""

    row: tuple[int, int, int]
    array: LoopArray
    address: str
    value: LlvmValue


Value: TypeAlias = "LlvmValue | LoopArray | Patch | list[Value]"


def storage_of(symbol: Symbol) -> Storage:
    """Return the dtype of a symbol's elements in memory."""
    return symbol.graph.concrete_dtype(symbol.dtype).storage


def is_single(symbol: Symbol) -> bool:
    """Whether a symbol has one element."""
    return type(symbol.type) is TensorType and all(size == 1 for size in symbol.shape)
