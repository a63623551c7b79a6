"""Lattice: joins, reasons and laws, against transitive closures made by networkx."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphir import GraphError, GraphirError, Lattice, PromotionError
from graphir.dtype_lattices.order import NoUpperBound, SeveralUpperBounds, Violation, violations
from tests import GOLDEN
from tests.support.partial_orders import minimal_bounds, orders
from tests.support.tables import every

PRINTED: dict[str, Any] = json.loads((GOLDEN / "lattices.json").read_text())
LAWFUL = ["jep_python", "jep_scalar_types_signed_int", "jep_jax_final", "jax_doc"]


def printed(name: str) -> Lattice[str]:
    return Lattice(name, PRINTED[name]["edges"])


def laws_by_definition(edges: Mapping[Any, Any], nodes: tuple[Any, ...]) -> set[tuple[Any, ...]]:
    """(law, elements) of each violation of existence, uniqueness and associativity."""
    bounds = {(a, b): minimal_bounds(edges, a, b) for a, b in product(nodes, nodes)}
    broken: set[tuple[Any, ...]] = set()
    for pair, least in bounds.items():
        if len(least) != 1:
            broken.add(("uniqueness" if least else "existence", frozenset(pair)))
    joins = {pair: next(iter(least)) for pair, least in bounds.items() if len(least) == 1}
    for a, b, c in product(nodes, repeat=3):
        left = joins.get((joins[a, b], c)) if (a, b) in joins else None
        right = joins.get((a, joins[b, c])) if (b, c) in joins else None
        if left != right:  # one way may be undefined where the other is not
            broken.add(("associativity", (a, b, c)))
    return broken


def shown(violations: list[Violation]) -> set[tuple[Any, ...]]:
    return {
        (v.law, v.elements if v.law == "associativity" else frozenset(v.elements))
        for v in violations
    }


@every("name", PRINTED)
def test_laws_of_every_printed_lattice_are_those_of_the_definition(name: str):
    lattice = printed(name)
    found = lattice.laws()
    assert len(found) == len(shown(found)), "a violation is reported once"
    assert shown(found) == laws_by_definition(lattice.edges, lattice.nodes)


@every("name", LAWFUL)
def test_the_lattices_that_jep_9407_calls_lattices_are(name: str):
    assert printed(name).laws() == []


@every("name", PRINTED)
def test_nodes_are_those_printed(name: str):
    lattice = printed(name)
    assert set(lattice.nodes) == set(PRINTED[name]["nodes"])
    assert len(lattice) == len(PRINTED[name]["nodes"]) and list(lattice) == list(lattice.nodes)
    assert all(node in lattice for node in PRINTED[name]["nodes"])
    assert "no such node" not in lattice


def test_left_of_the_jep_lacks_a_join():
    lattice = printed("jep_not_lattice_left")
    (violation,) = lattice.laws()
    assert violation.law == "existence"
    assert set(violation.elements) == {"B", "C"}
    assert "no upper bound" in str(violation)
    with pytest.raises(NoUpperBound, match=r"B and C have no upper bound.*jep_not_lattice_left"):
        lattice.join("B", "C")
    assert lattice.join("A", "C") == "C"


def test_right_of_the_jep_has_several_joins():
    lattice = printed("jep_not_lattice_right")
    assert ("uniqueness", frozenset("AB")) in shown(lattice.laws())
    assert ("existence", frozenset("CD")) in shown(lattice.laws())
    with pytest.raises(SeveralUpperBounds, match=r"A and B .*jep_not_lattice_right.*: [CD], [CD]"):
        lattice.join("A", "B")
    with pytest.raises(NoUpperBound):
        lattice.join("C", "D")
    assert lattice.upper_bounds("C", "D") == ()
    assert set(lattice.upper_bounds("A", "B")) == {"C", "D"}
    assert not isinstance(NoUpperBound(), SeveralUpperBounds)


def test_a_triple_that_has_two_answers_is_reported_with_both():
    gap = Lattice("gap", {"a": ["p", "q"], "b": ["p", "q", "r"], "c": ["r"], "r": ["p"]})
    (found,) = [v.finding for v in gap.laws() if v[:2] == ("associativity", ("a", "b", "c"))]
    assert found == "(a v b) v c = undefined, a v (b v c) = p"


def test_laws_of_an_operation_that_is_no_join():
    after = {"a": "b", "b": "c", "c": "a"}
    found = violations("abc", lambda x, y: after[x])
    assert {v.elements for v in found if v.law == "idempotence"} == {("a",), ("b",), ("c",)}
    pairs = {("a", "b"), ("a", "c"), ("b", "c")}
    assert {v.elements for v in found if v.law == "commutativity"} == pairs
    # (x y) z is the second after x, x (y z) the first.
    assert len([v for v in found if v.law == "associativity"]) == 27


def test_a_join_that_is_undefined_both_ways_is_reported_once():
    def only_equal(a: int, b: int) -> int:
        if a != b or a == 2:
            raise NoUpperBound
        return a

    found = violations((0, 1, 2), only_equal)
    assert [v.elements for v in found] == [(0, 1), (0, 2), (1, 2), (2, 2)]
    assert {v.law for v in found} == {"existence"}


def test_what_is_undefined_one_way_round_breaks_commutativity():
    def left_first(a: int, b: int) -> int:
        if a > b:
            raise NoUpperBound
        return b

    found = violations((0, 1), left_first)
    assert Violation("commutativity", (0, 1), "1, swapped undefined") in found
    # The node 0 is a node, however false it is.
    swapped = violations((0, 1), lambda a, b: a)
    assert Violation("commutativity", (0, 1), "0, swapped 1") in swapped


@given(orders())
@settings(max_examples=60, deadline=None)
def test_joins_and_laws_of_random_orders(edges: dict[int, list[int]]):
    lattice = Lattice("random", edges)
    for a, b in product(edges, repeat=2):
        bounds = minimal_bounds(edges, a, b)
        assert set(lattice.upper_bounds(a, b)) == bounds
        assert lattice.below(a, b) is (bounds == {b})
        if len(bounds) == 1:
            assert {lattice.join(a, b)} == {lattice.join(b, a)} == bounds
        else:
            with pytest.raises(SeveralUpperBounds if bounds else NoUpperBound):
                lattice.join(a, b)
    assert shown(lattice.laws()) == laws_by_definition(edges, lattice.nodes)


@given(orders(), st.data())
@settings(max_examples=40, deadline=None)
def test_joins_of_many_nodes_at_once(edges: dict[int, list[int]], data: st.DataObject):
    nodes = data.draw(st.lists(st.sampled_from(list(edges)), min_size=1, max_size=5))
    bounds = minimal_bounds(edges, *nodes)
    assert set(Lattice("random", edges).upper_bounds(*nodes)) == bounds
    if len(bounds) == 1:
        assert {Lattice("random", edges).join(*nodes)} == bounds


@every("name", LAWFUL)
def test_reasons_are_chains_of_edges_that_meet_in_the_join(name: str):
    lattice = printed(name)
    for a, b in product(lattice.nodes, repeat=2):
        left, right = lattice.reason(a, b)
        assert (left[0], right[0]) == (a, b)
        assert left[-1] == right[-1] == lattice.join(a, b)
        for path in (left, right):
            assert all(high in lattice.edges[low] for low, high in pairwise(path))


def test_a_path_is_a_shortest_one():
    lattice = Lattice("detour", {"a": ["b", "d"], "b": ["c"], "c": ["d"]})
    assert lattice.path("a", "d") == ("a", "d")
    assert lattice.path("b", "d") == ("b", "c", "d")
    assert lattice.path("b", "b") == ("b",)


def test_a_path_downwards_is_refused():
    with pytest.raises(PromotionError, match="float is not below int"):
        printed("jep_python").path("float", "int")


@every(
    ("edges", "cycle"),
    [
        ({"a": ["b"], "b": ["c"], "c": ["a"]}, "a < b < c < a"),
        ({"a": ["a"]}, "a < a"),
        ({"x": ["a"], "a": ["b"], "b": ["a"]}, "a < b < a"),
    ],
)
def test_a_cycle_is_refused_and_shown(edges: dict[str, list[str]], cycle: str):
    with pytest.raises(GraphError, match="'loop' has a cycle: ") as caught:
        Lattice("loop", edges)
    shown_cycle = str(caught.value).split(": ")[1].split(" < ")
    assert all(high in edges[low] for low, high in pairwise(shown_cycle))
    assert len(shown_cycle) == len(cycle.split(" < ")) and shown_cycle[0] == shown_cycle[-1]


def test_a_diamond_is_no_cycle():
    lattice = Lattice("diamond", {"a": ["b", "c"], "b": ["d"], "c": ["d"]})
    assert lattice.join("b", "c") == "d"
    assert lattice.laws() == []


def test_an_unknown_node_is_named_with_what_there_is():
    lattice = printed("jep_python")
    with pytest.raises(PromotionError, match=r"lattice 'jep_python' has no long.*int, float"):
        lattice.join("int", "long")


@every("question", ["below", "path", "reason"])
def test_no_question_of_an_unknown_node_leaks_a_key_error(question: str):
    with pytest.raises(GraphirError, match="long"):
        getattr(printed("jep_python"), question)("long", "int")


def test_a_long_chain_is_no_deeper_than_it_must_be():
    lattice = Lattice("chain", {i: [i + 1] for i in range(3000)})
    assert lattice.join(0, 2999) == 2999


def test_joins_do_not_depend_on_the_order_of_questions():
    first, second = printed("jep_jax_final"), printed("jep_jax_final")
    pairs = list(product(first.nodes, repeat=2))
    forwards = {pair: first.join(*pair) for pair in pairs}
    assert {pair: second.join(*pair) for pair in reversed(pairs)} == forwards
