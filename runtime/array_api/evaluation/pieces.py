"""Pending pieces, the symbols that one forcing computes, and a cache of their Programs.

The cache key of a piece is its structure: ops, attributes, types and operand positions. A piece
runs as a Program from its third occurrence on, or if it is large.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from graphir.public import Graph, Symbol
from graphir.runtime.array_api.evaluation.lazy import TAPE, Lazy
from graphir.runtime.program import Program

_MOST_PROGRAMS = 256
"""The most structures in the cache; the least recently used structure is evicted first."""

_AGAIN = 3
"""The occurrence of a structure from which on it runs as a Program."""

_LARGE = 1 << 16
"""The mean elements per op beyond which compiling a Program pays even for one run."""


class PendingPiece:
    """Symbols to compute, with a structural key that identifies inputs by their types alone.

    `todo` maps each symbol to its operands, in topological order; `targets` are the results.
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
        """Whether the computation takes long compared with the compilation of a Program."""
        sizes: Any = [symbol.type.size for symbol in self.todo]
        return sum(sizes) > _LARGE * len(sizes)

    def program(self, beside: Program | None = None) -> Program:
        """Compile the Program of the piece; it shares scratch memory with `beside`."""
        graph = Graph("array_api", rules=TAPE.rules)
        symbols: dict[Lazy, Symbol] = {symbol: graph.input(symbol.type) for symbol in self.inputs}
        for symbol, args in self.todo.items():
            operands = tuple([symbols[arg] for arg in args])
            symbols[symbol] = graph.append(
                symbol.op, operands, symbol.attrs, symbol.type, symbol.source
            )
        graph.output(*[symbols[symbol] for symbol in self.targets])
        return Program(graph, memory=beside.memory if beside else None)


class Programs:
    """A cache of recent structures with their numbers of occurrences and their Programs.

    All Programs share their scratch memory.
    """

    def __init__(self) -> None:
        self._first: Program | None = None
        self._seen_keys: dict[Any, tuple[int, Program | None]] = {}
        self._lock = Lock()

    def of(self, piece: PendingPiece) -> Program | None:
        """Return the Program of a piece, or None for a small new piece."""
        with self._lock:
            times, program = self._seen_keys.pop(piece.key, (0, None))
            if program is None and (times + 1 >= _AGAIN or piece.is_large):
                program = piece.program(self._first)
                self._first = self._first or program
            self._seen_keys[piece.key] = times + 1, program
            while len(self._seen_keys) > _MOST_PROGRAMS:
                del self._seen_keys[next(iter(self._seen_keys))]
        return program
