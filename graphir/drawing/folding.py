"""Folding of large graphs: which symbols are drawn one by one, and which share a box.

Symbols that share a box form a run. The graph of runs must have no cycle: no run may both need and
feed another run. So a variant of Kahn's algorithm orders the symbols topologically, and stays with
a layer as long as it can. Consecutive symbols of one layer in that order are a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from graphir.ir.graph import Graph
from graphir.ir.inlining import Junction
from graphir.ir.symbol import Symbol

LIMIT = 300
"""The most boxes of a picture; a graph of more symbols is folded."""

DEEPEST = 6
"""The greatest depth of nested layers that a picture distinguishes."""

_FEW = 8  # runs of at most this many symbols outside of layers are drawn one by one in any graph
_PIECES, _PIECE = 24, 32  # the approximate number of pieces of the other runs, and the least size


class Fold(NamedTuple):
    """Symbols drawn as one box: a layer, or symbols outside of layers if `path` is empty."""

    path: str
    symbols: Sequence[Symbol]


class Group(NamedTuple):
    """The frame of a layer, and its parts."""

    path: str
    parts: list[Part]


Part: TypeAlias = Symbol | Fold | Group


_Key: TypeAlias = tuple[str, ...]  # the name of a layer, or () for symbols outside of layers


class _Run(NamedTuple):
    """Symbols of a layer that can share a box, and their runs by inner layer.

    The path is empty for symbols outside of layers.
    """

    path: str
    symbols: Sequence[Symbol]
    inner: list[_Run]


def parts_of(graph: Graph, limit: int | None = None) -> list[Part]:
    """Return the parts of a graph's picture, in topological order.

    A graph of up to `limit` symbols, by default LIMIT, is drawn completely, in the frames of its
    layers. In a larger graph layers are folded: the innermost layers first, then outer layers,
    until at most `limit` boxes remain. Symbols outside of layers are cut into pieces where few
    values are live. No part both needs and feeds another part; so a layer that the program leaves
    and enters again may be several parts.
    """
    limit = LIMIT if limit is None else limit
    symbols = [symbol for symbol in graph.symbols if is_drawn(symbol)]
    runs = _runs(symbols, (), _paths(symbols))
    if len(symbols) <= limit:
        return _visible_parts(runs, DEEPEST, whole=True)
    for depth in range(DEEPEST, -1, -1):
        parts = _visible_parts(runs, depth, whole=False)
        if _count(parts) <= limit:
            return parts
    return [*_pieces(symbols)]


def is_drawn(symbol: Symbol) -> bool:
    """Whether a symbol has a box: all do but those that gather the values of a loop."""
    return not (type(symbol.op) is Junction and symbol.op.gathers)


def _count(parts: Sequence[Part]) -> int:
    return sum(_count(part.parts) if isinstance(part, Group) else 1 for part in parts)


def _visible_parts(runs: Sequence[_Run], depth: int, whole: bool) -> list[Part]:
    """Convert runs to parts, with layers folded below a depth.

    Innermost layers are folded at every depth, unless `whole`.
    """
    parts: list[Part] = []
    for run in runs:
        if not run.path:
            few = whole or len(run.symbols) <= _FEW
            parts += run.symbols if few else _pieces(run.symbols)
        elif whole or (depth and any(inner.path for inner in run.inner)):
            parts.append(Group(run.path, _visible_parts(run.inner, depth - 1, whole)))
        else:
            parts.append(Fold(run.path, run.symbols))
    return parts


# -- layers


def _paths(symbols: Sequence[Symbol]) -> dict[str, tuple[str, ...]]:
    """Return the names of the nested layers in each layer path, at most DEEPEST."""
    paths = {symbol.location.layer for symbol in symbols}
    return {path: tuple(filter(None, path.split("/")))[:DEEPEST] for path in paths}


def _runs(
    symbols: Sequence[Symbol], outer: tuple[str, ...], paths: dict[str, tuple[str, ...]]
) -> list[_Run]:
    """Group the symbols of a layer into runs by inner layer. `outer` names the layers around."""
    depth = len(outer)
    keys = [paths[s.location.layer][depth : depth + 1] for s in symbols]
    runs: list[_Run] = []
    for key, members in _together(symbols, keys):
        inner = (*outer, *key)
        path = "/".join(inner) if key else ""
        runs.append(_Run(path, members, _runs(members, inner, paths) if key else []))
    return runs


def _together(
    symbols: Sequence[Symbol], keys: Sequence[_Key]
) -> list[tuple[_Key, Sequence[Symbol]]]:
    """Group symbols by key, along a topological order that stays with a key as long as it can.

    When no symbol of the current key is ready, the order continues with symbols without a key, then
    with a key that does not wait for other keys.
    """
    if len(set(keys)) <= 1:
        return [(keys[0], symbols)] if symbols else []
    place = {symbol.index: i for i, symbol in enumerate(symbols)}
    needs = [[place[a.index] for a in s.args if a.index in place] for s in symbols]
    queue = _Queue(needs, keys)
    groups: list[tuple[_Key, list[Symbol]]] = []
    for at in queue:
        if not groups or groups[-1][0] != keys[at]:
            groups.append((keys[at], []))
        groups[-1][1].append(symbols[at])
    return [*groups]


class _Queue:
    """The state of Kahn's algorithm, for a topological order that stays with a key.

    Among several candidates it takes the first in the graph.
    """

    def __init__(self, needs: list[list[int]], keys: Sequence[_Key]) -> None:
        self._keys = keys
        self._waiting = list(map(len, needs))
        self._users: list[list[int]] = [[] for _ in needs]
        self._foreign = dict.fromkeys(keys, 0)  # how many operands of other keys each key awaits
        self._ready: dict[_Key, list[int]] = {key: [] for key in (*keys, ())}
        self._candidates: list[tuple[bool, int, _Key]] = []  # keys that wait for no other key first
        for at, operands in enumerate(needs):
            for need in operands:
                self._users[need].append(at)
                self._foreign[keys[at]] += keys[need] != keys[at]
        for at, operands in enumerate(needs):
            if not operands:
                self._make_ready(at)

    def __iter__(self) -> Iterator[int]:
        key: _Key = ()
        for _ in self._keys:
            if not self._ready[key]:
                key = ()
            while not self._ready[key]:
                _, _, key = heappop(self._candidates)
            at = heappop(self._ready[key])
            yield at
            self._release(at)

    def _make_ready(self, at: int) -> None:
        key = self._keys[at]
        heappush(self._candidates, (self._foreign[key] > 0, at, key))
        heappush(self._ready[key], at)

    def _release(self, at: int) -> None:
        for user in self._users[at]:
            key = self._keys[user]
            self._waiting[user] -= 1
            self._foreign[key] -= key != self._keys[at]
            if not self._waiting[user]:
                self._make_ready(user)
            elif not self._foreign[key] and key != self._keys[at]:
                heappush(self._candidates, (False, user, key))


# -- pieces


def _pieces(symbols: Sequence[Symbol]) -> list[Fold]:
    """Cut symbols into pieces of about equal size, at the places that the fewest values cross."""
    size = max(_PIECE, -(-len(symbols) // _PIECES))
    alive = _alive(symbols)
    folds: list[Fold] = []
    start = 0
    while len(symbols) - start > size * 3 // 2:
        end = min(
            range(start + size // 2, start + size * 3 // 2),
            key=lambda at: (alive[at], abs(at - start - size)),
        )
        folds.append(Fold("", symbols[start:end]))
        start = end
    return [*folds, Fold("", symbols[start:])]


def _alive(symbols: Sequence[Symbol]) -> list[int]:
    """Return, for each place, the number of live values: defined before it, used at it or after."""
    place = {symbol.index: i for i, symbol in enumerate(symbols)}
    last = list(range(len(symbols)))
    for i, symbol in enumerate(symbols):
        for arg in symbol.args:
            if arg.index in place:
                last[place[arg.index]] = i
    change = [0] * (len(symbols) + 2)
    for i, end in enumerate(last):
        change[i + 1] += 1
        change[end + 1] -= 1
    return list(accumulate(change))
