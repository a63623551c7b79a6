"""Forcing: compute pending symbols once, op by op or as a compiled Program.

`value_of` collects the pending symbols that its argument depends on. Repeated or large structures
run as a Program; small new ones run op by op. Reference counts tell which intermediate values an
Array or another pending symbol still needs; only these values are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from sys import getrefcount
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.public import GraphirError
from graphir.runtime.array_api.evaluation.calls import call_of
from graphir.runtime.array_api.evaluation.lazy import PENDING, Lazy
from graphir.runtime.array_api.evaluation.pieces import PendingPiece, Programs
from graphir.runtime.array_api.wording import ARRAYS
from graphir.runtime.results import REFUSAL_ERRORS, counts_references, refused

Array: TypeAlias = NDArray[Any]
Pending: TypeAlias = dict[Lazy, tuple[Lazy, ...]]

LIMIT = 1 << 29
"""The most bytes that pending symbols may hold; beyond the limit they are computed at once."""

MANY = 128
"""The most pending ops to recount; repeated recounts of more would cost more than computing."""

PROGRAMS = Programs()


def value_of(symbol: Lazy) -> Array:
    """Return the value of a symbol, computed at first use; the caller must not modify it."""
    return symbol.value if symbol.value is not None else _force(symbol)


def bounded(symbol: Lazy) -> Lazy:
    """Return the symbol; compute it if its pending operands hold more than LIMIT bytes."""
    if symbol.held_bytes > LIMIT:
        todo = pending(symbol)
        symbol.held_bytes = _held_bytes(todo)  # an exact recount: operands may be shared
        many = len(todo) > MANY
        del todo  # its references would count as holders
        if symbol.held_bytes > LIMIT or many:
            value_of(symbol)
    return symbol


def _held_bytes(todo: Pending) -> int:
    inputs = {arg for args in todo.values() for arg in args if arg not in todo}
    return PENDING * len(todo) + sum(value_of(symbol).nbytes for symbol in inputs)


def pending(target: Lazy) -> Pending:
    """Return the pending symbols that `target` depends on, in topological order, with operands."""
    todo: Pending = {target: target.args}
    waiting = [target]
    while waiting:
        for arg in todo[waiting.pop()]:
            if arg.value is None and arg not in todo:
                args = arg.args
                if arg.value is None:  # still pending: no other thread cleared args
                    todo[arg] = args
                    waiting.append(arg)
    return {arg: todo[arg] for arg in sorted(todo, key=_place)}


def _place(symbol: Lazy) -> int:
    return symbol.index


def _force(target: Lazy) -> Array:
    todo = pending(target)
    if target.value is not None:  # another thread has computed it
        return target.value
    targets = [*_held_elsewhere(todo, target), target]
    with np.errstate(all="ignore"):
        values = _compute(todo, targets)
    for symbol, value in zip(targets, values, strict=True):
        symbol.settle(value)
    return values[-1]


def _held_elsewhere(todo: Pending, target: Lazy) -> list[Lazy]:
    """Return the symbols whose values an Array or another pending symbol needs later."""
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
    """Return the reference count that `_held_elsewhere` sees for an otherwise unreferenced key."""
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
                pass  # the op-by-op run raises the error with the op's own line
    return _one_by_one(todo, targets)


def _one_by_one(todo: Pending, targets: Sequence[Lazy]) -> list[Array]:
    """Compute op by op and return the values of `targets`; free other values after last use."""
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
