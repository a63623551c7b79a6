"""Computing what is pending: each piece once, and what is met again as a Program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from sys import getrefcount
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir import Graph, GraphirError, Symbol
from graphir.evaluation import apply
from runtime.array_api.lazy import TAPE, Lazy
from runtime.program import Program
from runtime.results import refused

Array: TypeAlias = NDArray[Any]
Pending: TypeAlias = dict[Lazy, tuple[Lazy, ...]]

LIMIT = 1 << 29
"""The bytes that may be kept for what is pending: beyond them it is computed unasked."""

_KEPT = 256
"""The structures of pieces that are remembered; beyond that the oldest are forgotten."""

_AGAIN = 3
"""From this meeting on, a structure is run as a Program."""


def value_of(symbol: Lazy) -> Array:
    """The value of a symbol, which is computed if it has none; nobody may write to it."""
    return symbol.value if symbol.value is not None else _forced(symbol)


def bounded(symbol: Lazy) -> Lazy:
    """The symbol, computed if too much would be kept for it."""
    if symbol.held > LIMIT:
        symbol.held = _held(pending(symbol))
        if symbol.held > LIMIT:
            value_of(symbol)
    return symbol


def pending(target: Lazy) -> Pending:
    """The symbols to compute for one, each after its operands, with these."""
    found: Pending = {target: target.args}
    waiting = [target]
    while waiting:
        for one in found[waiting.pop()]:
            if one.value is None and one not in found:
                args = one.args
                if one.value is None:  # still, so these were its operands
                    found[one] = args
                    waiting.append(one)
    return {one: found[one] for one in sorted(found, key=_place)}


def _place(symbol: Symbol) -> int:
    return symbol.index


def _held(todo: Pending) -> int:
    """The bytes that are kept for pending symbols, each input counted once."""
    own = next(iter(todo)).held if len(todo) == 1 else 0
    inputs = {arg for args in todo.values() for arg in args if arg not in todo}
    return own or sum(_OP for _ in todo) + sum(value_of(one).nbytes for one in inputs)


_OP = 1 << 19


def _forced(target: Lazy) -> Array:
    todo = pending(target)
    if target.value is not None:  # by another thread, meanwhile
        return target.value
    kept = [target] if len(todo) == 1 else [*_held_outside(todo, target), target]
    with np.errstate(all="ignore"):
        values = _run(todo, kept)
    for symbol, value in zip(kept, values, strict=True):
        symbol.settle(value)
    return values[-1]


def _held_outside(todo: Pending, target: Lazy) -> list[Lazy]:
    """Those whose values are needed later: by an Array, or by other pending symbols."""
    uses = Counter(map(id, (arg for args in todo.values() for arg in args)))
    return [one for one in todo if one is not target and getrefcount(one) - uses[id(one)] > _UNHELD]


def _run(todo: Pending, kept: Sequence[Lazy]) -> list[Array]:
    if len(todo) == 1:
        return [_one(*item) for item in todo.items()]
    piece = Piece(todo, kept)
    program = _PIECES.program(piece)
    if program is None:
        return _stepwise(todo, kept)
    made = program(*[value_of(one) for one in piece.inputs])
    return list(made) if len(kept) > 1 else [made]


def _stepwise(todo: Pending, kept: Sequence[Lazy]) -> list[Array]:
    values: dict[Lazy, Array] = {}
    for symbol, args in todo.items():
        values[symbol] = _one(symbol, args, values)
    return [values[symbol] for symbol in kept]


def _one(symbol: Lazy, args: tuple[Lazy, ...], values: dict[Lazy, Array] | None = None) -> Array:
    """The value of one symbol whose operands have theirs."""
    operands = [values[one] if values and one in values else value_of(one) for one in args]
    inferred = TAPE.infer(symbol.op, args, symbol.attrs)
    try:
        return apply(symbol.op, inferred, [one.dtype for one in args], operands, {})
    except GraphirError as error:
        raise refused(error, symbol) from None


class Piece:
    """What is to be computed, as a structure in which inputs are known by their types alone."""

    def __init__(self, todo: Pending, kept: Sequence[Lazy]) -> None:
        self.todo, self.kept = todo, kept
        self.inputs: list[Lazy] = []
        places: dict[Lazy, int] = {}
        key: list[Any] = []
        for symbol, args in todo.items():
            key += symbol.op, id(symbol.attrs), symbol.type
            for arg in args:
                if arg not in places:
                    self.inputs.append(arg)
                    places[arg] = -len(self.inputs)
                    key.append(arg.type)
                key.append(places[arg])
            places[symbol] = len(places)
        self.key = (*key, *[places[one] for one in kept])

    def program(self) -> Program:
        """The Program that computes it from its inputs."""
        graph = Graph("array_api", rules=TAPE.rules)
        made: dict[Lazy, Symbol] = {one: graph.input(one.type) for one in self.inputs}
        for symbol, args in self.todo.items():
            operands = tuple(made[arg] for arg in args)
            made[symbol] = graph.append(
                symbol.op, operands, symbol.attrs, symbol.type, symbol.source
            )
        graph.output(*[made[one] for one in self.kept])
        return Program(graph)


class Pieces:
    """The structures that were met lately, and the Programs of those that were met again."""

    def __init__(self) -> None:
        self._met: dict[Any, tuple[int, Program | None, list[Any]]] = {}
        self._lock = Lock()

    def program(self, piece: Piece) -> Program | None:
        """The Program of a structure; None of one that is rarely met."""
        with self._lock:
            times, program, attrs = self._met.pop(piece.key, (0, None, None))
            if attrs is None:  # which keeps their ids their own
                attrs = [symbol.attrs for symbol in piece.todo]
            if program is None and times + 1 >= _AGAIN:
                program = piece.program()
            self._met[piece.key] = times + 1, program, attrs
            while len(self._met) > _KEPT:
                del self._met[next(iter(self._met))]
        return program


_PIECES = Pieces()


def _unheld() -> int:
    """The references that `_held_outside` sees of a symbol that nothing else holds."""
    seen: list[int] = []
    todo = {object(): ()}
    seen += [getrefcount(one) for one in todo]
    return seen[0]


_UNHELD = _unheld()
