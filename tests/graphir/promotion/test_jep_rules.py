"""The designs of JEP 9407 as rule sets: partial joins, and what a float is where there is none."""

from __future__ import annotations

import json
from itertools import product

import networkx as nx
import pytest

from graphir import DType, Graph, PromotionError, lattice, ops, rules
from graphir.dtype_lattices.order import NoUpperBound, SeveralUpperBounds
from graphir.passes import lower
from graphir.promotion import PromotionRules
from tests import GOLDEN
from tests.support.tables import every

TABLES = json.loads((GOLDEN / "lattices.json").read_text())
OPTIONS = [f"jep_option_{i}" for i in range(4)]


def order(name: str) -> nx.DiGraph:
    """The published order, whose short names count bits, closed upwards."""
    edges = TABLES[name.replace("option_", "option")]["edges"]
    short = {dtype.short: dtype for dtype in DType}
    graph = nx.DiGraph([(short[a], short[b]) for a, above in edges.items() for b in above])
    return nx.transitive_closure(graph, reflexive=True)


@every("name", OPTIONS)
def test_every_cell_is_the_least_of_the_upper_bounds(name: str):
    above, each = order(name), rules(name)
    defined = 0
    for a, b in product(above, repeat=2):
        bounds = set(above.successors(a)) & set(above.successors(b))
        least = [x for x in bounds if all(above.has_edge(x, y) for y in bounds)]
        assert each.answer(a, b) is (least[0] if least else None), (a, b)
        defined += bool(least)
    assert 0 < defined < len(above) ** 2


@every("name", OPTIONS)
def test_what_it_does_not_define_says_so_and_names_both_ways_out(name: str):
    with pytest.raises(NoUpperBound, match=rf"int8 and uint64 do not.*'{name}'.*cast.*other rules"):
        rules(name).promote("int8", "uint64")


def test_several_bounds_are_another_error_than_none():
    order = lattice("jep_not_lattice_right")
    with pytest.raises(SeveralUpperBounds, match=r"A and B have several.*C, D"):
        order.join("A", "B")
    edges = {DType.int8: [DType.float16, DType.bfloat16], DType.uint8: edges_of_both()}
    split = PromotionRules.from_lattice(type(order)("split", edges))
    with pytest.raises(SeveralUpperBounds, match=r"int8 and uint8.*'split'.*they have several"):
        split.promote("int8", "uint8")
    with pytest.raises(NoUpperBound, match=r"float16 and bfloat16.*they have no upper bound"):
        split.promote("float16", "bfloat16")


def edges_of_both() -> list[DType]:
    return [DType.float16, DType.bfloat16]


# The JEP's examples, read from its text: what an int8 meets, under options 0 to 3.
@every(
    ("operands", "found"),
    [
        (("int8", "float16"), (None, "float16", "float16", "float16")),
        (("int16", "float16"), (None, "float32", "float16", "float16")),
        (("int64", "float32"), (None, None, "float64", "float32")),
        (("int8", 1), ("int8",) * 4),
        (("float16", 1), ("float16",) * 4),
        (("int8", 1.5), (None, "float16", "float16", "weak_float")),
        (("int64", 1.5), (None, None, "float64", "weak_float")),
        (("float64", "complex64"), ("complex128",) * 4),
    ],
)
def test_what_the_options_answer(operands: tuple[object, ...], found: tuple[str | None, ...]):
    answers = [rules(name).answer(*operands) for name in OPTIONS]
    assert [answer and str(answer) for answer in answers] == list(found)


def test_a_float_of_an_integer_is_its_join_with_a_python_float():
    g = Graph(rules="jep_option_3")
    x = g.input("int16", ("n",))
    assert ops.sin(x).weak and (x / x).dtype is DType.weak_float
    g.output(x / 2)
    assert lower(g).outputs[0].dtype is DType.float64
    with pytest.raises(PromotionError, match=r"sin.*int16 and weak_float do not promote"):
        ops.sin(Graph(rules="jep_option_0").input("int16"))


def test_there_is_no_bool_arithmetic_and_no_bfloat16():
    with pytest.raises(PromotionError, match="JEP 9407 has no bfloat16"):
        Graph(rules="jep_option_3").input("bfloat16")
    g = Graph(rules="jep_option_1")
    with pytest.raises(PromotionError, match="bool"):
        g.input("bool") + g.input("int8")
