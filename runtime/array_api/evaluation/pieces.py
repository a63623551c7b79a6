"""Pieces of programs that are computed together, and the Programs of those met again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from graphir import Graph, Symbol
from runtime.array_api.evaluation.lazy import TAPE, Lazy
from runtime.program import Program

_MOST_PROGRAMS = 256
"""The structures that are remembered; beyond that the oldest are forgotten."""

_AGAIN = 3
"""From this meeting on, a structure is run as a Program."""

_LARGE = 1 << 16
"""The elements of an op for which a Program, though made for one run, pays."""


class PendingPiece:
    """Symbols to compute, as a structure in which inputs are known by their types alone.

    `todo` has each symbol after its operands, with these; `kept` are the results.
    """

    def __init__(self, todo: Mapping[Lazy, tuple[Lazy, ...]], targets: Sequence[Lazy]) -> None:
        self.todo, self.targets = todo, targets
        self.inputs: list[Lazy] = []
        places: dict[Lazy, int] = {}
        key: list[Any] = []
        for symbol, args in todo.items():
            key += symbol.op, symbol.attrs, symbol.type
            for arg in args:
                place = places.get(arg)
                if place is None:
                    self.inputs.append(arg)
                    place = places[arg] = -len(self.inputs)
                    key.append(arg.type)
                key.append(place)
            places[symbol] = len(places)
        key += [places[target] for target in targets]
        self.key = tuple(key)

    @property
    def is_large(self) -> bool:
        """Whether computing it takes long beside making a Program of it."""
        sizes: Any = [symbol.type.size for symbol in self.todo]
        return sum(sizes) > _LARGE * len(sizes)

    def program(self, beside: Program | None = None) -> Program:
        """The Program that computes it from its inputs, with the memory of another."""
        graph = Graph("array_api", rules=TAPE.rules)
        symbols: dict[Lazy, Symbol] = {symbol: graph.input(symbol.type) for symbol in self.inputs}
        for symbol, args in self.todo.items():
            operands = tuple([symbols[arg] for arg in args])
            symbols[symbol] = graph.append(
                symbol.op, operands, symbol.attrs, symbol.type, symbol.source
            )
        graph.output(*[symbols[symbol] for symbol in self.targets])
        return Program(graph, beside=beside)


class Programs:
    """The structures that were met lately, and the Programs of those that are worth it.

    All Programs have the same memory to work with.
    """

    def __init__(self) -> None:
        self._first: Program | None = None
        self._seen_keys: dict[Any, tuple[int, Program | None]] = {}
        self._lock = Lock()

    def of(self, piece: PendingPiece) -> Program | None:
        """The Program of a piece; None of one that is small and new."""
        with self._lock:
            times, program = self._seen_keys.pop(piece.key, (0, None))
            if program is None and (times + 1 >= _AGAIN or piece.is_large):
                program = piece.program(self._first)
                self._first = self._first or program
            self._seen_keys[piece.key] = times + 1, program
            while len(self._seen_keys) > _MOST_PROGRAMS:
                del self._seen_keys[next(iter(self._seen_keys))]
        return program
