"""Views: what NumPy has in the memory of another array, so that a change of either is of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from sys import getrefcount
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from graphir import TensorType, ops
from graphir.ops.attribute_record import AttributeRecord
from graphir.ops.op import Op
from graphir.semantics.kernels import KERNELS
from runtime.array_api.array import Array, record
from runtime.array_api.evaluation.forcing import value_of
from runtime.array_api.evaluation.lazy import TAPE, Lazy
from runtime.references import counts_references

Steps: TypeAlias = Sequence[tuple[Op, AttributeRecord, TensorType]]
Moves: TypeAlias = tuple[Callable[[NDArray[Any]], NDArray[Any]], ...]

_IN_ORDER = frozenset({ops.reshape, ops.squeeze, ops.unsqueeze})
"""What leaves elements one after another, so that they can be given another shape in place."""

_MOST = 32
"""The moves of one view; more are put together as one."""


class ArrayView:
    """How an array lies in the memory of another, `base`, as of `changes_seen` changes."""

    __slots__ = ("base", "changes_seen", "in_order", "moves")

    def __init__(self, base: Array, moves: Moves, in_order: bool) -> None:
        self.base, self.moves, self.in_order = base, moves, in_order
        self.changes_seen = base.changes

    def of(self, whole: NDArray[Any]) -> NDArray[Any]:
        """The part of the values of the base."""
        for move in self.moves:
            whole = move(whole)
        return whole


def write(x: Array, keys: Any, value: Any) -> None:
    """x[keys] = put, in the memory of x or of what it is a view of; what NumPy raises."""
    base = x if x.part is None else x.part.base
    whole = _writable(base)
    part = whole if x.part is None else x.part.of(whole)
    part[keys] = value
    base.symbol = TAPE.known(whole)


def _writable(base: Array) -> NDArray[Any]:
    """The values of an array: its own memory where nothing else can see it, else a copy."""
    value = value_of(base.symbol)
    own = value.base is None and value.flags.writeable and counts_references()
    del value
    alone = own and _references(base) == _ALONE
    return value_of(base.symbol) if alone else value_of(base.symbol).copy()


def _references(base: Array) -> tuple[int, int]:
    symbol = base.symbol
    value = symbol.value
    return getrefcount(symbol), getrefcount(value)


_ALONE = _references(Array(TAPE.known(np.empty(1))))
"""The references to the symbol and the values of an array that nothing else holds."""


def view(op: Op, x: Array, **attrs: Any) -> Array:
    """What a movement op gives, as a view of x."""
    result = record(op, x, **attrs).symbol
    return viewed(x, result, [(op, result.attrs, result.type)])


def viewed(x: Array, symbol: Lazy, steps: Steps) -> Array:
    """What movement ops made of x, as a view of it; a copy where NumPy would have to make one."""
    base, moves, in_order = x, (), True
    if x.part is not None:
        base, moves, in_order = x.part.base, x.part.moves, x.part.in_order
    for op, attrs, _ in steps:
        if op is ops.reshape and not in_order:
            return Array(symbol)
        in_order = in_order and op in _IN_ORDER
        moves = (*moves, partial(KERNELS[op.name], **attrs))
    if len(moves) > _MOST:
        moves = (_together(base, moves),)
    return Array(symbol, ArrayView(base, moves, in_order))


def _together(base: Array, moves: Moves) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """One move for several: where the first element lies, and how far it is to the next ones."""
    whole = part = np.empty(base.shape, np.int8)
    for move in moves:
        part = move(part)
    first = part.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return partial(_strided_view, first if part.size else 0, part.shape, part.strides)


def _strided_view(
    first: int, shape: tuple[int, ...], steps: tuple[int, ...], whole: NDArray[Any]
) -> NDArray[Any]:
    strides = [step * whole.itemsize for step in steps]
    return as_strided(whole.reshape(-1)[first:], shape, strides)
