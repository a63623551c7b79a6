"""Selections, `x[mask]`: symbols of which the elements at a mask count, in an unknown number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphError
from graphir.ir.symbol import Symbol
from graphir.numpy_api.arrays.memory import ArrayValue, LayoutUse, TracedValue, TraceMemory
from graphir.numpy_api.traced_numbers import TracedNumber
from graphir.ops.op import GraphValue
from graphir.semantics.library_calls import Function


class SelectionValue(GraphValue):
    """The elements of a symbol where a mask is true; their number is known only at run time.

    An elementwise function of a selection computes on all elements of the symbol. `y[mask] =
    selection` keeps the elements where the mask is true. A reduction of all elements is that of the
    symbol with where=mask. No other operation accepts a selection.
    """

    __slots__ = ("in_order", "mask", "memory", "symbol")

    def __init__(
        self, memory: TraceMemory, symbol: Symbol, mask: Symbol, in_order: bool = True
    ) -> None:
        self.graph, self.memory, self.symbol, self.mask = memory.graph, memory, symbol, mask
        self.in_order = in_order  # whether the rows that the mask selects lie in C order

    def whole_mask(self) -> Symbol:
        """Return the mask with the rank of the symbol."""
        beyond = self.symbol.rank - self.mask.rank
        return self.memory.reshaped(self.mask, (*self.mask.shape, *(1,) * beyond))

    def bound(self, greatest: bool) -> Any:
        """Return the greatest or the least value of the dtype, infinities included."""
        dtype = self.symbol.dtype
        if dtype.is_integer:
            return dtype.max if greatest else dtype.min
        if dtype is DType.bool:
            return greatest
        if not dtype.is_float:
            self.refuse("an extreme of complex x[mask]")
        return math.inf if greatest else -math.inf

    def not_empty(self, result: Symbol) -> Symbol:
        """Return a result whose computation raises IndexError if the mask is false everywhere."""
        there = ops.any(self.mask).cast(DType.int64)
        place = ops.reshape(np.int64(1) - there, (1,))  # 1 is beyond a vector of one element
        line = ops.gather(ops.reshape(result, (1, *result.shape)), place, axis=0)
        return ops.reshape(line, result.shape)

    def refuse(self, what: str) -> NoReturn:
        """Raise GraphError: the size of the selection depends on values."""
        raise GraphError(
            "the size of x[mask] depends on values",
            op=what,
            got=str(self.symbol.type),
            fix="use np.where(mask, x, 0); np.count_nonzero(mask) is its size",
        )


def rows_in_order(x: ArrayValue, count: int) -> bool:
    """Whether the elements x[i] of `count` indices lie in C order, as do those of x[mask]."""
    view = x.layout
    if view is None or view.ndim <= count + 1:
        return True
    x.memory.reads_layouts(LayoutUse.STRIDES)
    strides = [abs(step) for step in view.strides[count:]]
    return strides == sorted(strides, reverse=True)


def are_equal_expressions(a: Symbol, b: Symbol, depth: int = 8) -> bool:
    """Whether two symbols are equal expressions: equal ops on equal operands, up to a depth."""
    if a is b:
        return True
    if not depth or a.op is not b.op or len(a.args) != len(b.args) or a.type != b.type:
        return False
    if a.attrs is not b.attrs and a.attrs.content != b.attrs.content:
        return False
    return bool(a.args or (a.op.kind == "creation" and a.op.name != "input")) and all(
        are_equal_expressions(x, y, depth - 1) for x, y in zip(a.args, b.args, strict=True)
    )


def apply_to_selections(memory: TraceMemory, function: Function, operands: Sequence[Any]) -> Any:
    """Return an elementwise function of selections that share a mask."""
    selections = [value for value in operands if isinstance(value, SelectionValue)]
    first = selections[0]
    result = function(*[_operand_beside(first, value) for value in operands])
    if not isinstance(result, Symbol) or result.shape != first.symbol.shape:
        first.refuse("a function of x[mask]")
    in_order = all(selection.in_order for selection in selections)
    return memory.selection(memory, result, first.mask, in_order)


def _operand_beside(selection: SelectionValue, value: Any) -> Any:
    """Return the symbol or number that stands for an operand beside a selection.

    The function raises GraphError for an array, and for a selection by another mask.
    """
    if isinstance(value, SelectionValue):
        if (
            not are_equal_expressions(value.mask, selection.mask)
            or value.symbol.shape != selection.symbol.shape
        ):
            value.refuse("x[mask] with y[other]")
        return value.symbol
    if isinstance(value, TracedValue):
        value = value.read()
    if type(value) is not TracedNumber and np.ndim(value):
        selection.refuse("x[mask] with an array")
    return value
