"""Memory layouts of a traced function's arguments and results, and results that are arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from graphir import ops
from graphir.numpy_api.arrays.memory import ArrayValue, LayoutUse
from graphir.semantics.matrix_products import address


class ResultAlias(NamedTuple):
    """A result that is an argument, or a view of one: its output and the argument's input.

    `shape`, `strides` and `offset`, in bytes, are those of the view; the shape is None for the
    argument itself. A view is read-only if the argument is, or if the view alone is.
    """

    output: int
    input: int
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] = ()
    offset: int = 0
    is_readonly: bool = False

    def of(self, array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return the view of the caller's array."""
        if self.shape is None:
            return array
        owner: Any = array
        while isinstance(owner.base, np.ndarray):
            owner = cast("Any", owner.base)
        owner = owner if owner.flags.c_contiguous else owner.T
        if not owner.flags.c_contiguous:  # memory of elsewhere, with gaps
            low, high = np.lib.array_utils.byte_bounds(owner)
            owner = np.asarray(_Bytes(owner, low, high - low))
        offset = self.offset + address(array) - address(owner)
        view: Any = np.ndarray(self.shape, dtype, owner, offset, self.strides)
        view.setflags(write=array.flags.writeable and not self.is_readonly)
        return view


class ResultLayout(NamedTuple):
    """The memory layout of a result that is not in row-major order.

    The output at position `output` lies in a memory of `size` bytes, at `offset`, with these
    strides in bytes. A broadcast result is read-only.
    """

    output: int
    strides: tuple[int, ...]
    offset: int
    size: int
    is_readonly: bool

    def axes(self, size: int) -> tuple[int, ...] | None:
        """Return the place in memory of each axis of an array of `size` bytes without gaps.

        The result is None for any other layout.
        """
        is_whole = self.size == size and not self.offset and not self.is_readonly
        return axes_in_memory(self.strides) if is_whole and min(self.strides) > 0 else None

    def laid_out(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return an array in this layout: a copy, unless the array has these strides already."""
        if values.strides == self.strides and not self.is_readonly:
            return values
        memory: Any = np.empty(self.size, np.uint8)
        copy = np.ndarray(values.shape, values.dtype, memory, self.offset, self.strides)
        copy[...] = values
        if self.is_readonly:
            copy.setflags(write=False)
        return copy


def axes_in_memory(strides: Sequence[int]) -> tuple[int, ...]:
    """Return the place of each axis among the axes in the order of memory."""
    order = sorted(range(len(strides)), key=lambda axis: -strides[axis])
    return tuple([order.index(axis) for axis in range(len(strides))])


class _Bytes:
    """A range of memory, as the bytes of an array that has an owner."""

    def __init__(self, owner: NDArray[Any], start: int, size: int) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "data": (start, not owner.flags.writeable),
            "shape": (size,),
            "typestr": "|u1",
            "version": 3,
        }


class ArgumentLayout(NamedTuple):
    """The layout of an argument array: a `plain` ndarray, and the ndarray of the whole memory.

    Arrays with the same whole are views of it. The whole is the graph's input.
    """

    plain: NDArray[Any] | None
    whole: NDArray[Any] | None = None


def alias_of(value: ArrayValue, output: int, place: int) -> ResultAlias:
    """Return the alias of a result that is an argument, or a view of one."""
    view, whole = value.layout, value.cell.layout
    if view is None or whole is None or view is whole:
        return ResultAlias(output, place)
    value.memory.reads_layouts(LayoutUse.ALL)
    offset = address(view) - address(whole)
    is_readonly = whole.flags.writeable and not view.flags.writeable
    return ResultAlias(output, place, view.shape, view.strides, offset, is_readonly)


def may_differ(value: ArrayValue) -> bool:
    """Whether a result has another layout than the Program's: row-major, or a view of a result."""
    symbol = value.read()
    while symbol.op is ops.reshape:
        (symbol,) = symbol.args
    return not value.lies_usually or symbol.op in _VIEWS


_VIEWS = frozenset(
    (ops.transpose, ops.permute, ops.flip, ops.slice, ops.broadcast_to, ops.affine_view)
)
"""The ops whose results a Program may return as views of another result."""


def layout_of_result(view: NDArray[Any], output: int) -> ResultLayout:
    """Return the layout of a result that NumPy would return as `view`."""
    owner: Any = view
    while isinstance(owner.base, np.ndarray):
        owner = cast("Any", owner.base)
    low, high = np.lib.array_utils.byte_bounds(owner)
    offset = address(view) - low if view.size else 0
    return ResultLayout(output, view.strides, offset, high - low, not view.flags.writeable)


IN_ORDER = ArgumentLayout(None)
