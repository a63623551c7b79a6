"""Lattices from strangers: laws, pictures and tables of large orders in bounded work."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path

import pytest

from graphir import GraphError, Lattice, PromotionError, laws
from graphir.drawing import layout
from graphir.drawing.formats import LATTICE_FORMATS
from graphir.dtype_lattices.files import MOST_EDGES
from graphir.dtype_lattices.order import MAX_LISTED, MOST_NODES, Violation
from tests.support.commands import cli, refused
from tests.support.tables import every
from tests.support.work import count_work


def chain(n: int) -> dict[str, list[str]]:
    return {f"a{i}": [f"a{i + 1}"] for i in range(n - 1)}


def antichain(n: int) -> dict[str, list[str]]:
    return {f"a{i}": [] for i in range(n)}


def dense(n: int) -> dict[str, list[str]]:
    return {f"a{i}": [f"a{j}" for j in range(i + 1, n)] for i in range(n)}


def bipartite(n: int) -> dict[str, list[str]]:
    return {f"a{i}": [f"b{j}" for j in range(n)] for i in range(n)}


def sparse(n: int) -> dict[str, list[str]]:
    draw = random.Random(n)
    return {f"a{i}": [f"a{j}" for j in range(i + 1, n) if draw.random() < 3 / n] for i in range(n)}


LARGE: dict[str, Callable[[], dict[str, list[str]]]] = {
    "chain": lambda: chain(200),
    "antichain": lambda: antichain(200),
    "dense": lambda: dense(40),
    "bipartite": lambda: bipartite(40),
    "sparse": lambda: sparse(150),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("form", ["laws", *LATTICE_FORMATS])
def test_large_orders_take_bounded_work(name: str, form: str) -> None:
    lattice = Lattice(name, LARGE[name]())
    work = count_work(lambda: laws(lattice) if form == "laws" else LATTICE_FORMATS[form](lattice))
    size = len(lattice) ** 2 if form == "laws" else len(lattice) + len(lattice.pairs())
    assert work.calls < 100 * size + 5_000_000 * (form == "svg")


@pytest.mark.parametrize("largest", [100, pytest.param(200, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("form", ["text", "dot", "mermaid"])
@pytest.mark.parametrize("build", [chain, antichain, dense, sparse])
def test_listings_grow_as_their_lattices_do(
    build: Callable[[int], dict[str, list[str]]], form: str, largest: int
) -> None:
    def work(n: int) -> tuple[int, int, int]:
        lattice = Lattice("growing", build(n))
        return (*count_work(lambda: LATTICE_FORMATS[form](lattice)), len(lattice.pairs()) + n)

    calls, handled, size = work(50)
    more_calls, more_handled, larger = work(largest)
    assert more_calls <= calls * larger / size * 1.1
    assert more_handled <= handled * larger / size * 1.2


def test_a_picture_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "LARGEST", 100)
    with pytest.raises(GraphError, match=r"svg: .*got 40 nodes and 780 edges.*use format \"dot\""):
        LATTICE_FORMATS["svg"](Lattice("dense", dense(40)))
    assert LATTICE_FORMATS["dot"](Lattice("dense", dense(40)))


def test_laws_of_too_many_nodes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.json"
    path.write_text(json.dumps(chain(MOST_NODES + 1)), encoding="utf-8")
    message = refused(3, "laws", path)
    assert f"got {MOST_NODES + 1}; use a lattice of at most {MOST_NODES} nodes" in message
    status, out, _ = cli("lattice", path)
    assert status == 0 and f"{MOST_NODES + 1} levels" in out


@pytest.mark.parametrize(
    ("edges", "told"),
    [
        (antichain(5000), "too many nodes; got 5,000; use at most"),
        (dense(460), f"too many edges; got 105,570; use at most {MOST_EDGES:,}"),
    ],
)
def test_files_have_limits(edges: dict[str, list[str]], told: str, tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    path.write_text(json.dumps(edges), encoding="utf-8")
    for command in (["laws"], ["lattice", "--format", "svg"], ["lattice"]):
        assert told in refused(3, *command, path)


def by_definition(lattice: Lattice[str]) -> list[Violation]:
    """The triples that break associativity, by trying each."""

    def join(a: str | None, b: str | None) -> str | None:
        try:
            return None if a is None or b is None else lattice.join(a, b)
        except PromotionError:
            return None

    nodes = [node for level in lattice.levels() for node in level]
    found: list[Violation] = []
    for a, b, c in product(nodes, repeat=3):
        left, right = join(join(a, b), c), join(a, join(b, c))
        if left != right:
            text = f"({a} v {b}) v {c} = {left or 'undefined'}"
            found.append(Violation("associativity", (a, b, c), text))
    place = {node: i for i, node in enumerate(nodes)}
    return sorted(
        found,
        key=lambda one: (
            sum(map(place.__getitem__, one.elements)),
            [place[x] for x in one.elements],
        ),
    )


@every("seed", range(8))
def test_associativity_is_that_of_each_triple(seed: int) -> None:
    draw = random.Random(seed)
    pairs = [pair for pair in combinations(range(12), 2) if draw.random() < 0.25]
    edges = {f"a{i}": [f"a{b}" for a, b in pairs if a == i] for i in range(12)}
    lattice = Lattice("drawn", edges)
    found, expected = lattice.laws().of(["associativity"]), by_definition(lattice)
    assert [one.elements for one in found] == [one.elements for one in expected][:MAX_LISTED]
    for one, other in zip(found, expected, strict=False):
        assert one.finding.startswith(other.finding)
    assert found.counts["associativity"] == len(expected)


def test_counterexamples_that_are_not_listed_are_counted() -> None:
    edges = {**bipartite(15), **{f"b{i}": ["top"] for i in range(15)}, "c": ["b0"], "d": ["b1"]}
    lattice = Lattice("many", {**edges, **{f"e{i}": ["b0", "b1"] for i in range(20)}})
    found = lattice.laws()
    listed = [one for one in found if one.law == "associativity"]
    assert len(listed) == min(MAX_LISTED, found.counts["associativity"])
    assert found.counts["associativity"] == len(by_definition(lattice))


def test_minimal_upper_bounds_are_those_with_none_below() -> None:
    for seed in range(10):
        lattice = Lattice("drawn", sparse(30 + seed))
        for a, b in combinations(list(lattice)[:12], 2):
            above = [n for n in lattice if lattice.below(a, n) and lattice.below(b, n)]
            least = [n for n in above if not any(lattice.below(m, n) for m in above if m != n)]
            assert lattice.upper_bounds(a, b) == tuple(least)
