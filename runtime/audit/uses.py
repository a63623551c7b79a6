"""Which symbols of a graph depend on which, and what their values weigh."""

from __future__ import annotations

import math
from collections.abc import Mapping

from graphir import Graph, ShapeError, Symbol, ops
from graphir.dims import Size, evaluate
from runtime.interpreter import last_uses


class Uses:
    """The symbols that an output depends on, `live`, and who uses them."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.last = graph, last_uses(graph)
        self.live = [symbol for symbol in graph.symbols if self.last[symbol.index] >= 0]
        self._users: list[list[int]] = [[] for _ in graph.symbols]
        for symbol in self.live:
            for arg in symbol.args:
                self._users[arg.index].append(symbol.index)

    def path(self, start: Symbol) -> list[Symbol]:
        """A symbol and all that depends on it, in the order of the graph."""
        found, left = {start.index}, [start.index]
        while left:
            new = [user for user in self._users[left.pop()] if user not in found]
            found.update(new)
            left += new
        return [self.graph.symbols[at] for at in sorted(found)]

    def bytes(self, sizes: Mapping[str, int]) -> int:
        """What all values take at most in wide arithmetic, and those of casts in their own."""
        total = 0
        for symbol in self.live:
            one = 16 if symbol.dtype.is_complex else 8
            if symbol.op is ops.cast:
                one += sum(x.dtype.storage.itemsize for x in (symbol, *symbol.args))
            total += one * math.prod(_size(dim, sizes) for dim in symbol.shape)
        return total


def _size(dim: Size, sizes: Mapping[str, int]) -> int:
    try:
        return evaluate(dim, sizes)
    except ShapeError:  # which the run will raise where it gets there
        return 0
