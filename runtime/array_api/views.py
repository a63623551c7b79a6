"""Views: arrays that share the values of a base array, so that a write to either changes both.

A view stores its base and the movement kernels (moves) that select its part of the base's values. A
write through a view writes to the base; the view recomputes its symbol when the base has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from sys import getrefcount
from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.ops.op import Op
from graphir.public import GraphError, Symbol, ops
from graphir.runtime.array_api.array import Array, record
from graphir.runtime.array_api.forcing import value_of
from graphir.runtime.array_api.lazy import TAPE, Lazy
from graphir.runtime.results import counts_references
from graphir.semantics.kernels import KERNELS

Move: TypeAlias = Callable[[NDArray[Any]], NDArray[Any]]
Moves: TypeAlias = tuple[Move, ...]
Steps: TypeAlias = Sequence[tuple[Op, Move]]

MOVES = frozenset({
    ops.slice, ops.flip, ops.permute, ops.transpose, ops.reshape, ops.squeeze, ops.unsqueeze,
    ops.broadcast_to,
})  # fmt: skip
"""The movement ops whose results are views where NumPy's are."""

_IN_ORDER = frozenset({ops.reshape, ops.squeeze, ops.unsqueeze})
"""The movement ops that keep the element order, so that a later reshape can stay a view."""


class ArrayView:
    """The relation of a view to its `base`; the view is current as of `changes_seen` changes."""

    __slots__ = ("base", "changes_seen", "in_order", "moves")

    def __init__(self, base: Array, moves: Moves, in_order: bool) -> None:
        self.base, self.moves, self.in_order = base, moves, in_order
        self.changes_seen = base.changes

    def of(self, whole: NDArray[Any]) -> NDArray[Any]:
        """Return the view's part of `whole`, the values of the base."""
        return _part(whole, self.moves)


def write(x: Array, keys: tuple[Any, ...] | EllipsisType, value: NDArray[Any] | complex) -> None:
    """Execute x[keys] = value in the memory of x or of its base; raises NumPy's exceptions."""
    base = x if x.part is None else x.part.base
    whole = _writable(base)
    part = whole if x.part is None else x.part.of(whole)
    if not part.flags.writeable:
        raise GraphError(
            "the array is a read-only view",
            op="x[...] = y",
            got=str(x.type),
            fix="write to asarray(x, copy=True)",
        )
    part[keys] = value
    base.symbol = TAPE.constant(whole)


def _writable(base: Array) -> NDArray[Any]:
    """Return writable values: the array's own memory if nothing else refers to it, else a copy."""
    value = value_of(base.symbol)
    own = value.base is None and value.flags.writeable and counts_references()
    del value
    alone = own and _references(base) == _ALONE
    return value_of(base.symbol) if alone else value_of(base.symbol).copy()


def _references(base: Array) -> tuple[int, int]:
    symbol = base.symbol
    value = symbol.value
    return getrefcount(symbol), getrefcount(value)


_ALONE = _references(Array(TAPE.constant(np.empty(1))))
"""The reference counts of the symbol and the value of an otherwise unreferenced array."""


def view(op: Op, x: Array, **attrs: Any) -> Array:
    """Apply a movement op and return the result as a view of x."""
    result = record(op, x, **attrs).symbol
    return viewed(x, result, [step_of(result)])


def step_of(symbol: Symbol) -> tuple[Op, Move]:
    """Return the movement op of a symbol, and the function that moves values in the same way."""
    return symbol.op, partial(KERNELS[symbol.op.name], **symbol.attrs)


def viewed(x: Array, symbol: Lazy, steps: Steps) -> Array:
    """Return the result of movement ops as a view of x; as a copy where NumPy must copy."""
    base, moves, in_order = x, (), True
    if x.part is not None:
        base, moves, in_order = x.part.base, x.part.moves, x.part.in_order
    for op, move in steps:
        if op is ops.reshape and not in_order and _copies(base, moves, move):
            return Array(symbol)
        in_order = in_order and op in _IN_ORDER
        moves = (*moves, move)
    return Array(symbol, ArrayView(base, moves, in_order))


def _copies(base: Array, moves: Moves, move: Move) -> bool:
    """Whether NumPy must copy the elements of a view for a further move, a reshape."""
    part = _part(np.empty(base.shape, np.int8), moves)
    return part.size > 0 and not np.may_share_memory(part, move(part))


def _part(whole: NDArray[Any], moves: Moves) -> NDArray[Any]:
    for move in moves:
        whole = move(whole)
    return whole
