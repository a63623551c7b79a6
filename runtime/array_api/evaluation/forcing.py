"""Computing what is pending: each piece once, op by op or, where it is worth it, as a Program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from sys import getrefcount
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir import GraphirError
from runtime.array_api.evaluation.calls import call_of
from runtime.array_api.evaluation.lazy import PENDING, Lazy
from runtime.array_api.evaluation.pieces import PendingPiece, Programs
from runtime.array_api.wording import ARRAYS
from runtime.references import counts_references
from runtime.results import REFUSED, refused

Array: TypeAlias = NDArray[Any]
Pending: TypeAlias = dict[Lazy, tuple[Lazy, ...]]

LIMIT = 1 << 29
"""The bytes that may be kept for what is pending: beyond them it is computed unasked."""

MANY = 128
"""The pending ops that are counted anew: counting more, again and again, takes longer than they."""

PROGRAMS = Programs()


def value_of(symbol: Lazy) -> Array:
    """The value of a symbol, which is computed if it has none; nobody may write to it."""
    return symbol.value if symbol.value is not None else _forced(symbol)


def bounded(symbol: Lazy) -> Lazy:
    """The symbol, computed if too much would be kept for it."""
    if symbol.held > LIMIT:
        todo = pending(symbol)
        symbol.held = _held(todo)  # counted anew, since operands may be shared
        many = len(todo) > MANY
        del todo  # since what is held elsewhere is kept
        if symbol.held > LIMIT or many:
            value_of(symbol)
    return symbol


def _held(todo: Pending) -> int:
    inputs = {arg for args in todo.values() for arg in args if arg not in todo}
    return PENDING * len(todo) + sum(value_of(one).nbytes for one in inputs)


def pending(target: Lazy) -> Pending:
    """The symbols to compute for one, each after its operands, with these."""
    found: Pending = {target: target.args}
    waiting = [target]
    while waiting:
        for one in found[waiting.pop()]:
            if one.value is None and one not in found:
                args = one.args
                if one.value is None:  # still, so these are its operands
                    found[one] = args
                    waiting.append(one)
    return {one: found[one] for one in sorted(found, key=_place)}


def _place(symbol: Lazy) -> int:
    return symbol.index


def _forced(target: Lazy) -> Array:
    todo = pending(target)
    if target.value is not None:  # by another thread, meanwhile
        return target.value
    kept = [*_held_elsewhere(todo, target), target]
    with np.errstate(all="ignore"):
        values = _computed(todo, kept)
    for symbol, value in zip(kept, values, strict=True):
        symbol.settle(value)
    return values[-1]


def _held_elsewhere(todo: Pending, target: Lazy) -> list[Lazy]:
    """Those whose values are needed later: by an Array, or by other pending symbols."""
    if len(todo) == 1:
        return []
    if not counts_references():
        return [one for one in todo if one is not target]
    uses = Counter([id(arg) for args in todo.values() for arg in args])
    return [one for one in todo if one is not target and getrefcount(one) - uses[id(one)] > _UNHELD]


def _references() -> int:
    """The references that `_held_elsewhere` sees of what nothing else holds."""
    todo: dict[object, None] = {object(): None}
    (seen,) = [getrefcount(one) for one in todo]
    return seen


_UNHELD = _references()


def _computed(todo: Pending, kept: Sequence[Lazy]) -> list[Array]:
    if len(todo) > 1:
        piece = PendingPiece(todo, kept)
        program = PROGRAMS.of(piece)
        if program is not None:
            try:
                made = program(*[value_of(one) for one in piece.inputs])
                return list(made) if len(kept) > 1 else [made]
            except GraphirError:
                pass  # which op by op is refused with its own line
    return _one_by_one(todo, kept)


def _one_by_one(todo: Pending, kept: Sequence[Lazy]) -> list[Array]:
    """The values of those to keep; others go when they are not needed any more."""
    last = {arg: symbol for symbol, args in todo.items() for arg in args if arg in todo}
    keep = set(kept)
    values: dict[Lazy, Array] = {}
    for symbol, args in todo.items():
        operands = [values[one] if one in values else value_of(one) for one in args]
        try:
            values[symbol] = call_of(symbol, args)(*operands)
        except REFUSED as error:
            raise refused(error, symbol).having(vocabulary=ARRAYS) from None
        for one in args:
            if last.get(one) is symbol and one not in keep:
                values.pop(one, None)
    return [values[symbol] for symbol in kept]
