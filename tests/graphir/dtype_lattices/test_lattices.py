"""The published lattices by name, lattices from files, and their findings."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import graphir
from graphir import DType, GraphError, Lattice, lattice, lattices, rule_sets
from graphir.dtype_lattices.order import LAWS, Cyclic, Violation, violations
from graphir.rule_reports.laws import report
from tests import GOLDEN
from tests.support.partial_orders import minimal_bounds, orders
from tests.support.tables import every

TABLES: dict[str, Any] = json.loads((GOLDEN / "lattices.json").read_text())
KINDS = {"u": "uint", "i": "int", "f": "float", "c": "complex", "bf": "bfloat"}


def meant(name: str, unit: int) -> str:
    """The full name of what a printed name counts in units of so many bits; else the name."""
    if name in ("b1", "bf"):
        return {"b1": "bool", "bf": "bfloat16"}[name]
    found = re.fullmatch(r"(u|i|f|c|bf)(\d+)", name)
    if found:
        return f"{KINDS[found[1]]}{int(found[2]) * unit}"
    return {"i*": "weak_int", "f*": "weak_float", "c*": "weak_complex"}.get(name, name)


# -- by name


def test_the_published_lattices_are_those_of_the_golden_file():
    assert set(lattices()) == set(TABLES)
    assert len(lattices()) == len(TABLES) == 17


@every("name", TABLES)
def test_every_node_and_edge_is_the_one_printed(name: str):
    found, unit = lattice(name), 8 if name == "jax_doc" else 1
    assert (found.name, found.source) == (name, TABLES[name]["source"])
    nodes = [meant(node, unit) for node in TABLES[name]["nodes"]]
    assert sorted(map(str, found.nodes)) == sorted(nodes)
    edges = {
        (meant(low, unit), meant(high, unit))
        for low, above in TABLES[name]["edges"].items()
        for high in above
    }
    assert {(str(low), str(high)) for low, high in found.pairs()} == edges
    assert len(found.pairs()) == len(edges)


@every("name", TABLES)
def test_nodes_that_are_dtypes_are_dtypes_and_others_text(name: str):
    dtypes = {str(dtype) for dtype in DType}
    for node in lattice(name):
        assert type(node) is (DType if str(node) in dtypes else str)


def test_what_is_no_dtype_stays_text():
    assert set(lattice("jep_python")) == {"int", "float", "complex"}
    assert {n for n in lattice("jep_scalar_types_signed_int") if isinstance(n, str)} == {
        *("i8*", "i16*", "i32*", "i64*"),
    }
    assert {n for n in lattice("jep_in_category_with_scalars") if isinstance(n, str)} == {"u*"}


def test_an_unlawful_lattice_loads_and_says_what_it_breaks():
    found = lattice("jep_not_lattice_right").laws()
    assert {one.law for one in found} == {"existence", "uniqueness", "associativity"}
    assert [one.elements for one in found if one.law == "uniqueness"] == [("A", "B")]


def test_the_lattice_of_every_rule_set_is_found_by_the_name_of_that():
    for one in rule_sets():
        if one.name in TABLES:
            continue
        if one.lattice is None:
            with pytest.raises(GraphError, match=f"rule set '{one.name}' has no lattice"):
                lattice(one.name)
        else:
            assert lattice(one.name) is one.lattice


def test_an_unknown_name_is_refused_with_those_near_it():
    with pytest.raises(GraphError, match=r"no lattice is named 'jep_option'; .*jep_option1"):
        lattice("jep_option")
    with pytest.raises(GraphError, match=r"'max_stric'; use max_strict"):
        lattice("max_stric")
    with pytest.raises(GraphError, match=r"'zzz'; use jep_python, .*jax_doc, max"):
        lattice("zzz")


@every("which", [None, 3, [], DType.int8])
def test_what_is_no_name_is_refused_as_one(which: Any):
    with pytest.raises(GraphError, match="no lattice is named"):
        lattice(which)


def test_the_function_and_the_module_share_their_name():
    code = (
        "import graphir; from graphir.dtype_lattices.order import Lattice;"
        "from graphir.promotion.registry import lattice; assert graphir.lattice is lattice;"
        "assert graphir.lattice('jax_doc').laws() == [] and graphir.Lattice is Lattice"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(graphir.__file__).parents[1])
    copy = pickle.loads(pickle.dumps(lattice("jax_doc")))
    assert copy.pairs() == lattice("jax_doc").pairs() and copy.source == lattice("jax_doc").source


# -- from files


def written(folder: Path, content: Any) -> Path:
    path = folder / "mine.json"
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_gives_a_lattice_with_its_name_and_source(tmp_path: Path):
    edges = {"int8": ["i16"], "i16": ["float32", "u*"], "float32": []}
    found = Lattice.load(written(tmp_path, {"name": "two", "source": "me", "edges": edges}))
    assert (found.name, found.source) == ("two", "me")
    assert found.edges == {
        DType.int8: (DType.int16,),
        DType.int16: (DType.float32, "u*"),
        DType.float32: (),
    }
    assert found.join("int8", "float32") is DType.float32


def test_bare_edges_are_named_after_the_file(tmp_path: Path):
    found = Lattice.load(written(tmp_path, {"A": ["B", "half"], "edges": ["A"]}))
    assert (found.name, found.source) == ("mine", "")
    assert found.edges == {"A": ("B", DType.float16), "edges": ("A",)}
    assert Lattice.load(str(written(tmp_path, "\ufeff" + '{"A": ["B"]}'))).nodes == ("A", "B")


@pytest.mark.parametrize("name", TABLES)
def test_a_published_lattice_written_in_full_names_is_read_back(name: str, tmp_path: Path):
    known = lattice(name)
    edges = {str(low): [str(high) for high in above] for low, above in known.edges.items()}
    found = Lattice.load(written(tmp_path, {"name": name, "source": known.source, "edges": edges}))
    assert (found.name, found.source, found.edges) == (name, known.source, known.edges)


@pytest.mark.parametrize(
    "content, said",
    [
        ("{", "not JSON: .*line 1 column 2"),
        ('{"a": ["b"],\n "c": [b]}', "not JSON: .*line 2 column 8"),
        ("[]", r"must be an object; got \[\]"),
        ('"max"', 'must be an object; got "max"'),
        ("{}", "no edges"),
        ('{"edges": {}}', "no edges"),
        ('{"a": "b"}', 'a: must be a list of what lies directly above; got "b"'),
        ('{"name": "x"}', "name: must be a list"),
        ('{"a": ["b", 3]}', r"a\[1\]: must be a name; got 3"),
        ('{"a": [["b"]]}', r'a\[0\]: must be a name; got \["b"\]'),
        ('{"a": {"b": []}}', r'a: must be a list .* got {"b": \[\]}'),
        ('{"a": ["b"], "c": [],\n "a": ["c"]}', "key 'a' stands twice"),
        ('{"edges": {"a": ["b"]}, "edges": {}}', "key 'edges' stands twice"),
        ('{"edges": {"a": ["b"]}, "nodes": []}', "unknown field 'nodes'; use name, source"),
        ('{"edges": {"a": ["b"]}, "name": 3}', "name and source are text"),
        ('{"edges": {"a": ["b"]}, "source": null}', "name and source are text"),
        ('{"a": [""]}', r'a\[0\]: must be a name; got ""'),
        ('{"a\\n": ["b"]}', r'a key: must be a name; got "a\\n"'),
        ('{"a": ["\\ud800"]}', r'a\[0\]: must be a name; got "\\ud800"'),
        ('{"int8": ["int16"], "i16": []}', "int16 has two names, 'int16' and 'i16'"),
        ('{"u1": ["u2", "i2"], "u8": ["f4"]}', "'f4' counts bytes, .* such as 'i2' count bits"),
        ('{"a": [' + "9" * 5000 + "]}", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"a": NaN}', "a: must be a list .* got NaN"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_place(content: str, said: str, tmp_path: Path):
    path = written(tmp_path, content)
    with pytest.raises(GraphError, match=f"^{re.escape(str(path))}: .*{said}") as caught:
        Lattice.load(path)
    assert len(str(caught.value)) < 400


def test_text_that_is_not_utf_8_is_refused(tmp_path: Path):
    path = tmp_path / "latin.json"
    path.write_bytes('{"é": []}'.encode("latin-1"))
    with pytest.raises(GraphError, match=r"latin\.json: not JSON"):
        Lattice.load(path)


def test_what_cannot_be_read_is_refused(tmp_path: Path):
    with pytest.raises(GraphError, match=r"none\.json: No such file") as caught:
        Lattice.load(tmp_path / "none.json")
    assert caught.value.__suppress_context__
    with pytest.raises(GraphError, match="Is a directory"):
        Lattice.load(tmp_path)
    edges: Any = {"int8": ["int16"]}
    with pytest.raises(GraphError, match=r"the path of a JSON file; got .*Lattice\('mine'"):
        Lattice.load(edges)


@every("edges", [None, ["a"], {"a": 3}, {"a": "bc"}, {"a": [["b"]]}])
def test_a_lattice_is_made_of_lists_of_nodes(edges: Any):
    with pytest.raises(GraphError, match=r"^lattice 'x'.*(not|got) "):
        Lattice("x", edges)


def test_a_cycle_in_a_file_is_named(tmp_path: Path):
    path = written(tmp_path, {"a": ["int8"], "int8": ["b"], "b": ["a"]})
    with pytest.raises(Cyclic, match=r"mine.json: lattice 'mine' has a cycle: ") as caught:
        Lattice.load(path)
    cycle = caught.value.cycle
    assert set(cycle) == {"a", DType.int8, "b"} and cycle[0] == cycle[-1] and len(cycle) == 4
    above = {"a": DType.int8, DType.int8: "b", "b": "a"}
    assert all(above[low] == high for low, high in pairwise(cycle))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.cycle) == (str(caught.value), cycle)


# -- findings


@given(orders())
@settings(max_examples=60, deadline=None)
def test_levels_are_the_lengths_of_the_longest_chains_below(edges: dict[int, list[int]]):
    found = Lattice("random", edges)

    def height(node: int) -> int:
        return max((1 + height(low) for low, above in edges.items() if node in above), default=0)

    assert found.levels() == [
        layer
        for n in range(len(edges))
        if (layer := [node for node in found.nodes if height(node) == n])
    ]


def test_several_least_upper_bounds_are_all_named():
    found = Lattice("m", {"a": ["x", "y", "z"], "b": ["x", "y", "z"]})
    [one] = [v for v in found.laws() if v.law == "uniqueness"]
    assert one.elements == ("a", "b") and one.finding.endswith("lattice 'm': x, y, z")


@every("name", TABLES)
def test_violations_come_law_by_law_and_the_lowest_first(name: str):
    order = lattice(name)
    found = order.laws()
    place = {node: i for i, node in enumerate(n for level in order.levels() for n in level)}
    keys = [
        (LAWS.index(one.law), sum(place[n] for n in one.elements), [place[n] for n in one.elements])
        for one in found
    ]
    assert keys == sorted(keys)


def test_violations_come_in_the_order_of_the_nodes_given():
    found = violations("ba", lambda x, y: x)
    assert [one.elements for one in found] == [("b", "a")]
    assert [one.elements for one in violations("ab", lambda x, y: x)] == [("a", "b")]


def test_a_report_has_a_line_for_each_law():
    lines = report(lattice("jep_not_lattice_right").laws()).splitlines()
    assert [line.split(":")[0] for line in lines] == list(LAWS)
    assert lines[0].startswith("existence: 1 pair: C and D have no upper bound")
    assert lines[1].startswith("uniqueness: 1 pair: A and B have several") and "C, D" in lines[1]
    assert lines[2:4] == ["idempotence: holds", "commutativity: holds"]
    assert lines[4].startswith("associativity: 8 triples; the first: (A v B) v C = undefined, A v")
    assert report([]).splitlines() == [f"{law}: holds" for law in LAWS]


def test_a_report_of_everything_has_a_line_for_each_violation():
    found = lattice("jep_option1").laws()
    lines = report(found, everything=True).splitlines()
    assert lines[0] == "existence: 25 pairs"
    assert lines[1:26] == [f"  {one.finding}" for one in found]
    assert lines[26:] == [f"{law}: holds" for law in LAWS[1:]]


def test_a_report_tells_of_laws_of_ones_own():
    found = [Violation("monotonicity", ("a",), "a goes down")]
    assert report(found, ()) == "monotonicity: 1 element: a goes down"
    assert report(found, ("charm",)).splitlines()[0] == "charm: holds"


def test_the_golden_lattices_have_the_joins_that_reachability_gives():
    for name in TABLES:
        order = lattice(name)
        for low in order:
            for other in order:
                assert set(order.upper_bounds(low, other)) == minimal_bounds(
                    order.edges, low, other
                )
