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
from runtime.results import REFUSAL_ERRORS, refused

Array: TypeAlias = NDArray[Any]
Pending: TypeAlias = dict[Lazy, tuple[Lazy, ...]]

LIMIT = 1 << 29
"""The bytes that may be kept for what is pending: beyond them it is computed unasked."""

MANY = 128
"""The pending ops that are counted anew: counting more, again and again, takes longer than they."""

PROGRAMS = Programs()


def value_of(symbol: Lazy) -> Array:
    """The value of a symbol, which is computed if it has none; nobody may write to it."""
    return symbol.value if symbol.value is not None else _force(symbol)


def bounded(symbol: Lazy) -> Lazy:
    """The symbol, computed if too much would be kept for it."""
    if symbol.held_bytes > LIMIT:
        todo = pending(symbol)
        symbol.held_bytes = _held_bytes(todo)  # counted anew, since operands may be shared
        many = len(todo) > MANY
        del todo  # since what is held elsewhere is kept
        if symbol.held_bytes > LIMIT or many:
            value_of(symbol)
    return symbol


def _held_bytes(todo: Pending) -> int:
    inputs = {arg for args in todo.values() for arg in args if arg not in todo}
    return PENDING * len(todo) + sum(value_of(symbol).nbytes for symbol in inputs)


def pending(target: Lazy) -> Pending:
    """The symbols to compute for one, each after its operands, with these."""
    todo: Pending = {target: target.args}
    waiting = [target]
    while waiting:
        for arg in todo[waiting.pop()]:
            if arg.value is None and arg not in todo:
                args = arg.args
                if arg.value is None:  # still, so these are its operands
                    todo[arg] = args
                    waiting.append(arg)
    return {arg: todo[arg] for arg in sorted(todo, key=_place)}


def _place(symbol: Lazy) -> int:
    return symbol.index


def _force(target: Lazy) -> Array:
    todo = pending(target)
    if target.value is not None:  # by another thread, meanwhile
        return target.value
    targets = [*_held_elsewhere(todo, target), target]
    with np.errstate(all="ignore"):
        values = _compute(todo, targets)
    for symbol, value in zip(targets, values, strict=True):
        symbol.settle(value)
    return values[-1]


def _held_elsewhere(todo: Pending, target: Lazy) -> list[Lazy]:
    """Those whose values are needed later: by an Array, or by other pending symbols."""
    if len(todo) == 1:
        return []
    if not counts_references():
        return [symbol for symbol in todo if symbol is not target]
    uses = Counter([id(arg) for args in todo.values() for arg in args])
    return [
        symbol
        for symbol in todo
        if symbol is not target and getrefcount(symbol) - uses[id(symbol)] > _UNHELD
    ]


def _references() -> int:
    """The references that `_held_elsewhere` sees of what nothing else holds."""
    todo: dict[object, None] = {object(): None}
    (count,) = [getrefcount(item) for item in todo]
    return count


_UNHELD = _references()


def _compute(todo: Pending, targets: Sequence[Lazy]) -> list[Array]:
    if len(todo) > 1:
        piece = PendingPiece(todo, targets)
        program = PROGRAMS.of(piece)
        if program is not None:
            try:
                results = program(*[value_of(each) for each in piece.inputs])
                return list(results) if len(targets) > 1 else [results]
            except GraphirError:
                pass  # which op by op is refused with its own line
    return _one_by_one(todo, targets)


def _one_by_one(todo: Pending, targets: Sequence[Lazy]) -> list[Array]:
    """The values of those to keep; others go when they are not needed any more."""
    last = {arg: symbol for symbol, args in todo.items() for arg in args if arg in todo}
    keep = set(targets)
    values: dict[Lazy, Array] = {}
    for symbol, args in todo.items():
        operands = [values[operand] if operand in values else value_of(operand) for operand in args]
        try:
            values[symbol] = call_of(symbol, args)(*operands)
        except REFUSAL_ERRORS as error:
            raise refused(error, symbol).having(vocabulary=ARRAYS) from None
        for operand in args:
            if last.get(operand) is symbol and operand not in keep:
                values.pop(operand, None)
    return [values[symbol] for symbol in targets]
