"""Lattice: a promotion order, given by what lies directly above what; joins, reasons, laws."""

from __future__ import annotations

import importlib
import os
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, product
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np

from graphir.errors import GraphError, PromotionError
from graphir.escape import printable

Node = TypeVar("Node", bound=Hashable)


class _JoinError(PromotionError):
    """Elements without a join; `bounds` says which upper bounds they have instead."""

    bounds = ""


class NoUpperBound(_JoinError):  # noqa: N818 -- the field's term
    """Nothing in the lattice lies above all of the operands."""


class SeveralUpperBounds(_JoinError):  # noqa: N818 -- the field's term
    """Several minimal elements lie above all of the operands, and none of them is the least."""


class Cyclic(GraphError):  # noqa: N818 -- the field's term
    """Edges that lead from a node back to itself, so that they order nothing: `cycle` has them."""

    cycle: tuple[Any, ...] = ()


class Violation(NamedTuple):
    """A law that does not hold, with the elements that break it and what was found instead."""

    law: str
    elements: tuple[Any, ...]
    finding: str

    def __str__(self) -> str:
        return f"{self.law}: {', '.join(map(str, self.elements))} -- {self.finding}"


class Lattice(Generic[Node]):
    """A promotion order over hashable nodes, made from `{node: [nodes directly above it]}`.

    Any acyclic order may be given: `laws()` says where it fails to be a join-semilattice, and
    `join` raises just there. Nodes are kept in the order of their first mention, an edge given
    twice once; `source` says where the order comes from. Raises Cyclic for what is no order, and
    GraphError for what gives none.
    """

    def __init__(self, name: str, edges: Mapping[Node, Iterable[Node]], source: str = "") -> None:
        self.name, self.source = name, source
        self.edges = _edges(name, edges)
        all_nodes = [n for low, above in self.edges.items() for n in (low, *above)]
        self.nodes: tuple[Node, ...] = tuple(dict.fromkeys(all_nodes))
        # Sets are bit masks; an element's bit is its place in a topological order from above, so
        # that the least bit of a mask is an element with nothing of the mask below it.
        self._order = self._downwards()
        self._upwards = self._order[::-1]
        self._bit = {node: 1 << i for i, node in enumerate(self._upwards)}
        self._place = {node: i for i, node in enumerate(self.nodes)}
        self._up: dict[Node, int] = {}
        for node in self._order:
            mask = self._bit[node]
            for above in self.edges.get(node, ()):
                mask |= self._up[above]
            self._up[node] = mask
        self._joins: dict[tuple[Node, ...], Node] = {}
        self._paths: dict[tuple[Node, Node], tuple[Node, ...]] = {}

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Lattice[Any]:
        """The lattice that a JSON file gives; GraphError names the file and what is wrong with it.

        It holds `{"name": ..., "edges": {"int8": ["int16"], ...}}` or the edges alone; names of
        dtypes become dtypes, anything else stays text.
        """
        from graphir.lattice.files import read_lattice

        return read_lattice(path)

    def __contains__(self, node: object) -> bool:
        return node in self._bit

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"<Lattice {printable(self.name)}, {len(self.nodes)} nodes>"

    def _downwards(self) -> list[Node]:
        """The nodes, each after everything above it; Cyclic on a cycle."""
        try:
            return list(TopologicalSorter(self.edges).static_order())
        except CycleError as error:
            cycle: list[Node] = error.args[1][::-1]
            text = " < ".join(map(str, cycle))
            error = Cyclic(f"lattice {self.name!r} has a cycle", reason=text)
            raise error.having(cycle=tuple(cycle)) from None

    def below(self, a: Node, b: Node) -> bool:
        """Whether a <= b."""
        return bool(self._up[self._node(a)] & self._bit[self._node(b)])

    def upper_bounds(self, *nodes: Node) -> tuple[Node, ...]:
        """The minimal elements above all of `nodes`, themselves included; none, one or several."""
        mask = -1
        for node in nodes:
            mask &= self._up[self._node(node)]
        least: list[int] = []
        while mask:  # its least bit is minimal; what lies above that is not
            at = (mask & -mask).bit_length() - 1
            least.append(at)
            mask &= ~self._up[self._upwards[at]]
        return tuple(sorted((self._upwards[at] for at in least), key=self._place.__getitem__))

    def join(self, *nodes: Node) -> Node:
        """The least upper bound of any number of nodes.

        Looked up: each distinct argument list is searched once. Raises NoUpperBound,
        SeveralUpperBounds, or PromotionError for a node that the lattice does not have.
        """
        try:
            return self._joins[nodes]
        except KeyError:
            pass
        least = self.upper_bounds(*nodes)
        if len(least) != 1:
            names = " and ".join(map(str, dict.fromkeys(nodes)))
            kind, bounds = (
                (SeveralUpperBounds, "several minimal upper bounds")
                if least
                else (NoUpperBound, "no upper bound")
            )
            bounds = f"{bounds} in lattice {self.name!r}"
            error = kind(f"{names} have {bounds}", reason=_nodes_text(least))
            raise error.having(bounds=bounds)
        self._joins[nodes] = least[0]
        return least[0]

    def _node(self, node: Any) -> Node:
        """A node, which may be given by its text."""
        if node in self._bit:
            return node
        matches = [each for each in self.nodes if str(each) == node]
        if not matches:
            raise PromotionError(
                f"{node} is not in lattice {self.name!r}, which has {_nodes_text(self.nodes, 50)}"
            )
        return matches[0]

    def path(self, low: Node, high: Node) -> tuple[Node, ...]:
        """A shortest chain of edges from `low` up to `high`, both included."""
        ends = self._node(low), self._node(high)
        if not self.below(*ends):
            raise PromotionError(f"{low} does not lie below {high} in {self.name!r}")
        if ends not in self._paths:
            self._paths[ends] = tuple(_networkx().shortest_path(self.graph(), *ends))
        return self._paths[ends]

    def reason(self, a: Node, b: Node) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
        """The two paths that lead from `a` and from `b` up to their join."""
        top = self.join(a, b)
        return self.path(a, top), self.path(b, top)

    def pairs(self) -> list[tuple[Node, Node]]:
        """All edges, each from low to high."""
        return [(low, high) for low, above in self.edges.items() for high in above]

    def levels(self) -> list[list[Node]]:
        """The nodes by the length of the longest chain below each, the least first."""
        height = dict.fromkeys(self.nodes, 0)
        for low in reversed(self._order):
            for high in self.edges.get(low, ()):
                height[high] = max(height[high], height[low] + 1)
        levels: list[list[Node]] = [[] for _ in range(max(height.values(), default=-1) + 1)]
        for node in self.nodes:
            levels[height[node]].append(node)
        return levels

    def graph(self) -> Any:
        """The order as a networkx.DiGraph whose edges point upwards."""
        graph = _networkx().DiGraph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(self.pairs())
        return graph

    def laws(self) -> Violations:
        """Every violation of the laws of a join-semilattice, each with its counterexample.

        Law by law, and those of the lowest elements first.
        """
        return violations([node for level in self.levels() for node in level], self.join)

    def redundant(self) -> list[tuple[Node, Node]]:
        """The edges a < c that the others imply, since some b has a < b < c."""
        edges: list[tuple[Node, Node]] = []
        for low, above in self.edges.items():
            beyond = 0
            for node in above:
                beyond |= self._up[node] & ~self._bit[node]
            edges += [(low, high) for high in above if self._bit[high] & beyond]
        return edges


LAWS = ("existence", "uniqueness", "idempotence", "commutativity", "associativity")
"""What a join obeys: a least upper bound exists, is one, and is an operation as these say."""


MOST_NODES = 512
"""The most nodes of a lattice that is asked for its laws, which are those of all triples."""

MAX_LISTED = 10_000
"""The most triples that break associativity of which each is listed."""


class Violations(list[Violation]):
    """Violations law by law; `counts` has how many each law has, which may be more than listed."""

    def __init__(self, violations: Iterable[Violation] = (), more: Mapping[str, int] | None = None):
        super().__init__(violations)
        self.counts = Counter(violation.law for violation in self)
        self.counts.update(more or {})

    def of(self, laws: Collection[str]) -> Violations:
        """The violations of some laws."""
        violations = [violation for violation in self if violation.law in laws]
        counts = Counter({law: n for law, n in self.counts.items() if law in laws})
        return Violations(violations, counts - Counter(violation.law for violation in violations))


def violations(nodes: Sequence[Node], join: Callable[[Node, Node], Node]) -> Violations:
    """Where a binary operation on nodes is no join, with a counterexample for each failure.

    It exists and is unique, is commutative and idempotent for all pairs, and associative for all
    triples in which not every way is undefined. `join` raises PromotionError where undefined.
    Violations come law by law, those of the nodes given first before others; of associativity, the
    first MAX_LISTED. GraphError for more than MOST_NODES nodes.
    """
    if len(nodes) > MOST_NODES:
        raise GraphError(
            "laws: too many nodes, since associativity is a law of triples",
            got=f"{len(nodes):,}",
            fix=f"use a lattice of at most {MOST_NODES} nodes",
        )
    joins: dict[tuple[Node, Node], Node] = {}
    failures: list[Violation] = []
    place = {node: i for i, node in enumerate(nodes)}
    for a, b in product(nodes, repeat=2):
        try:
            joins[a, b] = join(a, b)
        except PromotionError as error:
            law = "uniqueness" if isinstance(error, SeveralUpperBounds) else "existence"
            if (b, a) in joins or place[a] <= place[b]:
                failures.append(Violation(law, (a, b), error.summary))

    def first(violation: Violation) -> tuple[int, int, list[int]]:
        places = [place[node] for node in violation.elements]
        return LAWS.index(violation.law), sum(places), places

    triples, more = _of_triples(nodes, joins)
    pairs = sorted([*failures, *_of_pairs(nodes, joins)], key=first)
    return Violations([*pairs, *triples], {"associativity": more})


def _of_pairs(
    nodes: Sequence[Node], joins: Mapping[tuple[Node, Node], Node]
) -> Iterator[Violation]:
    for node in nodes:
        if (same := joins.get((node, node), node)) != node:
            yield Violation("idempotence", (node,), f"{node} v {node} = {same}")
    for a, b in combinations(nodes, 2):
        left, right = joins.get((a, b)), joins.get((b, a))
        if left != right:
            yield Violation(
                "commutativity", (a, b), f"{_node_text(left)}, swapped {_node_text(right)}"
            )


def _of_triples(
    nodes: Sequence[Node], joins: Mapping[tuple[Node, Node], Node]
) -> tuple[list[Violation], int]:
    """The first MAX_LISTED triples that break associativity, and the number of the others."""
    n, elements = len(nodes), [*dict.fromkeys((*nodes, *joins.values()))]
    number = {node: i for i, node in enumerate(elements)}
    bottom = len(elements)
    table = np.full((bottom + 1, bottom + 1), bottom, np.int32)
    for (a, b), result in joins.items():
        table[number[a], number[b]] = number[result]
    of_pairs = table[:n, :n]
    keys, count = np.empty(0, np.int64), 0
    for a in range(n):
        left, right = table[table[a, :n]][:, :n], table[a][of_pairs]
        b, c = np.nonzero(left != right)
        count += len(b)
        # By the sum of the places, then the places: the least nodes come first.
        keys = np.concatenate([keys, (((a + b + c) * n + a) * n + b) * n + c])
        if len(keys) > 4 * MAX_LISTED:
            keys = np.partition(keys, MAX_LISTED)[:MAX_LISTED]
    violations = [
        _associativity_violation(elements, table, key, n)
        for key in np.sort(keys)[:MAX_LISTED].tolist()
    ]
    return violations, count - len(violations)


def _associativity_violation(nodes: Sequence[Any], table: Any, key: int, n: int) -> Violation:
    """The violation of associativity whose triple a key numbers."""
    places = key // n // n % n, key // n % n, key % n
    i, j, k = places
    a, b, c = (nodes[place] for place in places)
    left, right = (
        _node_text(nodes[at]) if at < len(nodes) else _node_text(None)
        for at in (table[table[i, j], k], table[i, table[j, k]])
    )
    text = f"({a} v {b}) v {c} = {left}, {a} v ({b} v {c}) = {right}"
    return Violation("associativity", (a, b, c), text)


def _nodes_text(nodes: Sequence[Any], most: int = 10) -> str:
    """Nodes in a message: the first, and how many more there are."""
    more = f" and {len(nodes) - most:,} more" if len(nodes) > most else ""
    return ", ".join(map(str, nodes[:most])) + more


def _node_text(node: Any) -> str:
    return "undefined" if node is None else str(node)


def _edges(name: str, edges: Any) -> dict[Any, tuple[Any, ...]]:
    """What lies directly above each node, once; GraphError where it is no mapping to nodes."""
    if not isinstance(edges, Mapping):
        raise GraphError(
            f"lattice {name!r} is made of {{node: [nodes directly above it]}}, not {edges!r}"
        )
    edges_above: dict[Any, tuple[Any, ...]] = {}
    for low, above in cast("Mapping[Any, Any]", edges).items():
        try:
            if isinstance(above, str):
                raise TypeError("its letters would be nodes")
            edges_above[low] = tuple(dict.fromkeys(above))
        except TypeError as error:
            raise GraphError(
                f"lattice {name!r}: what lies directly above {low} is a list of nodes, not "
                f"{above!r}: {error}"
            ) from None
    return edges_above


def _networkx() -> Any:
    # Imported at first use: joins do not need it, and it doubles the time of `import graphir`.
    return importlib.import_module("networkx")
