"""Lattice: a promotion order, defined by edges from nodes to the nodes directly above them.

The up-set of each node is a bit mask. The common upper bounds of some nodes are the intersection of
their masks. Bits follow a topological order in which every node comes after the nodes below it, so
the lowest bit of a mask is a minimal element. Removing that element's up-set from the mask exposes
the next minimal element. The join exists if there is one minimal upper bound.

The check of associativity compares `(a v b) v c` with `a v (b v c)` for all triples, one slice of
the join table for each `a`, in NumPy.
"""

from __future__ import annotations

import importlib
import os
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, product
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from graphir.display import printable
from graphir.errors import GraphError, PromotionError

Node = TypeVar("Node", bound=Hashable)


class _JoinError(PromotionError):
    """Nodes without a join; `bounds` is the phrase that describes their upper bounds."""

    bounds = ""


class NoUpperBound(_JoinError):  # noqa: N818 -- the field's term
    """No node of the lattice lies above all of the operands."""


class SeveralUpperBounds(_JoinError):  # noqa: N818 -- the field's term
    """Several minimal nodes lie above all of the operands, so that no upper bound is the least."""


class Cyclic(GraphError):  # noqa: N818 -- the field's term
    """The edges contain a cycle, so that they define no order; `cycle` holds its nodes."""

    cycle: tuple[Any, ...] = ()


class Violation(NamedTuple):
    """A violated law, with the elements of the counterexample and the finding as text."""

    law: str
    elements: tuple[Any, ...]
    finding: str

    def __str__(self) -> str:
        return f"{self.law}: {', '.join(map(str, self.elements))} -- {self.finding}"


class Lattice(Generic[Node]):
    """A promotion order over hashable nodes, made from `{node: [nodes directly above it]}`.

    The edges may define any acyclic order. `laws()` lists the violations where the order is not a
    join-semilattice, and `join` raises for exactly the operands without a join. Nodes keep the
    order of their first mention, and duplicate edges count once. `source` is the publication or
    file of the order. Raises Cyclic for edges with a cycle, and GraphError for `edges` that are not
    a mapping to lists of nodes.
    """

    def __init__(self, name: str, edges: Mapping[Node, Iterable[Node]], source: str = "") -> None:
        self.name, self.source = name, source
        self.edges = _edges(name, edges)
        all_nodes = [n for low, above in self.edges.items() for n in (low, *above)]
        self.nodes: tuple[Node, ...] = tuple(dict.fromkeys(all_nodes))
        # Sets are bit masks. A node's bit is its place in a topological order from the least nodes
        # up, so that the lowest bit of a mask is a node without other nodes of the mask below it.
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
        """Read a lattice from a JSON file.

        The file holds `{"name": ..., "edges": {"int8": ["int16"], ...}}` or the edges alone. Names
        of dtypes become dtypes; every other name stays a string. Raises GraphError, which names the
        file and the problem.
        """
        from graphir.dtype_lattices.files import read_lattice

        return read_lattice(path)

    def __contains__(self, node: object) -> bool:
        return node in self._bit

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"<Lattice {printable(self.name)}, {len(self.nodes)} nodes>"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: a drawing of the lattice."""
        from graphir.drawing.formats import lattice_html

        return lattice_html(self)

    def _downwards(self) -> list[Node]:
        """Return the nodes, each after all nodes above it. Raises Cyclic for a cycle."""
        try:
            return list(TopologicalSorter(self.edges).static_order())
        except CycleError as error:
            cycle: list[Node] = error.args[1][::-1]
            text = " < ".join(map(str, cycle))
            error = Cyclic(f"lattice {self.name!r} has a cycle", reason=text)
            raise error.having(cycle=tuple(cycle)) from None

    def below(self, a: Node, b: Node) -> bool:
        """Answer whether a <= b."""
        return bool(self._up[self._node(a)] & self._bit[self._node(b)])

    def upper_bounds(self, *nodes: Node) -> tuple[Node, ...]:
        """Return the minimal upper bounds of `nodes`: none, one or several.

        A node counts as an upper bound of itself.
        """
        mask = -1
        for node in nodes:
            mask &= self._up[self._node(node)]
        least: list[int] = []
        while mask:  # the lowest bit is a minimal node, and every node above that is not minimal
            at = (mask & -mask).bit_length() - 1
            least.append(at)
            mask &= ~self._up[self._upwards[at]]
        return tuple(sorted((self._upwards[at] for at in least), key=self._place.__getitem__))

    def join(self, *nodes: Node) -> Node:
        """Return the least upper bound of any number of nodes.

        A table remembers the answer for each distinct argument list, so that each is searched once.
        Raises NoUpperBound, SeveralUpperBounds, or PromotionError for a node that the lattice does
        not have.
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
        """Return the node that equals the argument, or the node with that text.

        Raises PromotionError where no node matches.
        """
        if node in self._bit:
            return node
        matches = [member for member in self.nodes if str(member) == node]
        if not matches:
            raise PromotionError(
                f"lattice {self.name!r} has no {node}",
                fix=f"use one of {_nodes_text(self.nodes, 50)}",
            )
        return matches[0]

    def path(self, low: Node, high: Node) -> tuple[Node, ...]:
        """Return a shortest chain of edges from `low` up to `high`, both included.

        Raises PromotionError unless `low` lies below `high`.
        """
        ends = self._node(low), self._node(high)
        if not self.below(*ends):
            raise PromotionError(f"{low} is not below {high} in lattice {self.name!r}")
        if ends not in self._paths:
            self._paths[ends] = self._shortest_chain(*ends)
        return self._paths[ends]

    def _shortest_chain(self, low: Node, high: Node) -> tuple[Node, ...]:
        """Return a shortest chain by breadth-first search from both ends, the smaller side first.

        Of several it is that of networkx.shortest_path, which would take as long to import as all
        of the project.
        """
        below: dict[Node, list[Node]] = {}
        for node, above in self.pairs():
            below.setdefault(above, []).append(node)
        steps: tuple[Mapping[Node, Iterable[Node]], ...] = self.edges, below
        seen: tuple[dict[Node, Node], ...] = {low: low}, {high: high}
        fringes = [[low], [high]]
        middle: Node | None = low if low == high else None
        while middle is None:
            side = len(fringes[0]) > len(fringes[1])
            level, fringes[side] = fringes[side], []
            for node, following in ((x, y) for x in level for y in steps[side].get(x, ())):
                if following not in seen[side]:
                    seen[side][following] = node
                    fringes[side].append(following)
                if following in seen[not side]:
                    middle = following
                    break
        chain: list[Node] = [middle]
        while chain[0] != low:
            chain.insert(0, seen[0][chain[0]])
        while chain[-1] != high:
            chain.append(seen[1][chain[-1]])
        return tuple(chain)

    def reason(self, a: Node, b: Node) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
        """Return the path from `a` up to the join of both nodes, and the path from `b`."""
        top = self.join(a, b)
        return self.path(a, top), self.path(b, top)

    def pairs(self) -> list[tuple[Node, Node]]:
        """Return all edges, each as (low, high)."""
        return [(low, high) for low, above in self.edges.items() for high in above]

    def levels(self) -> list[list[Node]]:
        """Return the nodes grouped by the length of the longest chain below each, least first."""
        height = dict.fromkeys(self.nodes, 0)
        for low in reversed(self._order):
            for high in self.edges.get(low, ()):
                height[high] = max(height[high], height[low] + 1)
        levels: list[list[Node]] = [[] for _ in range(max(height.values(), default=-1) + 1)]
        for node in self.nodes:
            levels[height[node]].append(node)
        return levels

    def graph(self) -> Any:
        """Return the order as a networkx.DiGraph whose edges point upwards."""
        graph = _networkx().DiGraph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(self.pairs())
        return graph

    def laws(self) -> Violations:
        """Return every violation of the laws of a join-semilattice, each with its counterexample.

        The violations are sorted by law, then from the lowest elements up. Raises GraphError for a
        lattice of more than MOST_NODES nodes. At most MAX_LISTED violations of associativity are
        listed; `counts` of the result has their number.
        """
        return violations([node for level in self.levels() for node in level], self.join)


LAWS = ("existence", "uniqueness", "idempotence", "commutativity", "associativity")
"""The laws of a join: a least upper bound exists and is unique, and three laws of the operation."""


MOST_NODES = 512
"""The most nodes of a lattice whose laws are checked. The check visits all triples of nodes."""

MAX_LISTED = 10_000
"""The most violations of associativity that are listed one by one."""


class Violations(list[Violation]):
    """A list of violations, sorted by law.

    `counts` has the number of violations of each law, which may exceed the number listed. `laws`
    are the laws of the check.
    """

    def __init__(
        self,
        violations: Iterable[Violation] = (),
        more: Mapping[str, int] | None = None,
        laws: Sequence[str] = LAWS,
    ) -> None:
        super().__init__(violations)
        self.laws = tuple(laws)
        self.counts = Counter(violation.law for violation in self)
        self.counts.update(more or {})

    def of(self, laws: Collection[str]) -> Violations:
        """Return the violations of the given laws, with their counts."""
        violations = [violation for violation in self if violation.law in laws]
        counts = Counter({law: n for law, n in self.counts.items() if law in laws})
        more = counts - Counter(violation.law for violation in violations)
        return Violations(violations, more, [law for law in self.laws if law in laws])

    def __repr__(self) -> str:
        """Return a line for each law: it holds, or its number of violations and the first one."""
        from graphir.rule_reports.laws import report

        return report(self, self.laws)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the lines of `repr`, and counterexamples, folded."""
        from graphir.rule_reports.laws import laws_fragment

        return laws_fragment(self)


def violations(nodes: Sequence[Node], join: Callable[[Node, Node], Node]) -> Violations:
    """Check the laws of a join for a binary operation on nodes, and return the counterexamples.

    `join` raises PromotionError where the operation is undefined. The check covers existence,
    uniqueness, commutativity and idempotence for all pairs. It covers associativity for all triples
    in which at least one of the two bracketings is defined. The violations are sorted by law, and
    within a law by the places of their nodes in `nodes`. For associativity the result lists the
    first MAX_LISTED violations. Raises GraphError for more than MOST_NODES nodes.
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
    """Return the first MAX_LISTED violations of associativity, and the number of the others."""
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
        # The key sorts by the sum of the places, then by the places: the least nodes come first.
        keys = np.concatenate([keys, (((a + b + c) * n + a) * n + b) * n + c])
        if len(keys) > 4 * MAX_LISTED:
            keys = np.partition(keys, MAX_LISTED)[:MAX_LISTED]
    violations = [
        _associativity_violation(elements, table, key, n)
        for key in np.sort(keys)[:MAX_LISTED].tolist()
    ]
    return violations, count - len(violations)


def _associativity_violation(
    nodes: Sequence[Any], table: NDArray[Any], key: int, n: int
) -> Violation:
    """Decode a key of `_of_triples` into its triple, and return the triple's violation."""
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
    """Format nodes for a message: the first `most` nodes, and how many more there are."""
    more = f" and {len(nodes) - most:,} more" if len(nodes) > most else ""
    return ", ".join(map(str, nodes[:most])) + more


def _node_text(node: Any) -> str:
    return "undefined" if node is None else str(node)


def _edges(name: str, edges: Any) -> dict[Any, tuple[Any, ...]]:
    """Normalize edges to a tuple of distinct nodes for each node.

    Raises GraphError where `edges` is not a mapping to lists of nodes.
    """
    if not isinstance(edges, Mapping):
        raise GraphError(
            f"lattice {name!r} is made of {{node: [nodes directly above it]}}", got=f"{edges!r}"
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
    # A deferred import: joins do not need networkx, and it doubles the time of `import graphir`.
    return importlib.import_module("networkx")
