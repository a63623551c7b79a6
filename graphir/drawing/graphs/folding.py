"""What of a graph is drawn by itself, in clusters by layer, and what is folded into one box."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from graphir.ir.graph import Graph
from graphir.ir.symbol import Symbol

LIMIT = 300
"""The most boxes of a picture; a graph of more symbols is folded."""

DEEPEST = 6
"""The most layers within layers that are told apart."""

_FEW = 8  # as many symbols outside of layers are drawn one by one, however large the graph
_PIECES, _PIECE = 24, 32  # about how many pieces the rest is cut into, and the least size of one


class Fold(NamedTuple):
    """Symbols drawn as one box: those of a layer, or without a path some outside of layers."""

    path: str
    symbols: Sequence[Symbol]


class Group(NamedTuple):
    """The frame of a layer, and what is in it."""

    path: str
    parts: list[Part]


Part: TypeAlias = Symbol | Fold | Group


_Key: TypeAlias = tuple[str, ...]  # a layer inside another; of what is in none, nothing


class _Run(NamedTuple):
    """A layer's symbols that can stand together, and the runs in it; without a path those loose."""

    path: str
    symbols: Sequence[Symbol]
    inner: list[_Run]


def parts_of(graph: Graph) -> list[Part]:
    """What a picture of a graph consists of, from its inputs on.

    Up to LIMIT symbols all are there, in the frames of their layers. Of more, layers are folded:
    the innermost ones, or those around them, until there are at most LIMIT boxes. Symbols outside
    of layers are cut into pieces where few values are alive. Nothing in one part both needs and
    feeds another, so a layer that is left and come back to may be several parts.
    """
    symbols = graph.symbols
    runs = _runs(symbols, (), _paths(symbols))
    if len(symbols) <= LIMIT:
        return _visible_parts(runs, DEEPEST, whole=True)
    for depth in range(DEEPEST, -1, -1):
        parts = _visible_parts(runs, depth, whole=False)
        if _count(parts) <= LIMIT:
            return parts
    return [*_pieces(symbols)]


def _count(parts: Sequence[Part]) -> int:
    return sum(_count(part.parts) if isinstance(part, Group) else 1 for part in parts)


def _visible_parts(runs: Sequence[_Run], depth: int, whole: bool) -> list[Part]:
    """Runs as parts: layers below some depth folded, and all innermost ones unless `whole`."""
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
    """The layers around one another that each path of layers names."""
    paths = {symbol.location.layer for symbol in symbols}
    return {path: tuple(filter(None, path.split("/")))[:DEEPEST] for path in paths}


def _runs(
    symbols: Sequence[Symbol], outer: tuple[str, ...], paths: dict[str, tuple[str, ...]]
) -> list[_Run]:
    """The symbols of a layer, given by the names around it, in runs by the layers in it."""
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
    """Symbols in a topological order that stays with a key as long as it can, cut by key.

    It turns to symbols without a key first, then to a key that waits for no other.
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
    """Places in a topological order that stays with a key: the state of Kahn's algorithm.

    Of what it may turn to it takes what comes first in the graph.
    """

    def __init__(self, needs: list[list[int]], keys: Sequence[_Key]) -> None:
        self._keys = keys
        self._waiting = [len(each) for each in needs]
        self._users: list[list[int]] = [[] for _ in needs]
        self._foreign = dict.fromkeys(keys, 0)  # what each key waits for of other keys
        self._ready: dict[_Key, list[int]] = {key: [] for key in keys}
        self._open: list[tuple[int, _Key]] = []  # keys that wait for no other
        self._some: list[tuple[int, _Key]] = []  # keys of which something is ready
        self._key: _Key = ()
        for at, each in enumerate(needs):
            for need in each:
                self._users[need].append(at)
                self._foreign[keys[at]] += keys[need] != keys[at]
            if not each:
                self._make_ready(at)
        for at, key in self._some:
            if key and not self._foreign[key]:
                heappush(self._open, (at, key))

    def __iter__(self) -> Iterator[int]:
        for _ in self._keys:
            at = self._next()
            yield at
            self._release(at)

    def _make_ready(self, at: int) -> None:
        key = self._keys[at]
        if not self._ready[key]:
            heappush(self._some, (at, key))
        heappush(self._ready[key], at)

    def _next(self) -> int:
        ready = self._ready
        if not ready.get(self._key):
            self._key = () if ready.get(()) else self._another()
        return heappop(ready[self._key])

    def _another(self) -> _Key:
        """A key of which something is ready, one that waits for no other if there is any."""
        while True:
            _, key = heappop(self._open or self._some)
            if self._ready[key]:
                return key

    def _release(self, at: int) -> None:
        key = self._keys[at]
        for user in self._users[at]:
            other = self._keys[user]
            self._waiting[user] -= 1
            if not self._waiting[user]:
                self._make_ready(user)
            if other != key:
                self._foreign[other] -= 1
                if other and not self._foreign[other]:
                    heappush(self._open, (user, other))


# -- pieces


def _pieces(symbols: Sequence[Symbol]) -> list[Fold]:
    """Symbols cut into pieces of about equal size, where the fewest values go across."""
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
    """How many values from before each place are used at it or after."""
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
