"""Rule sets made of a lattice, an object or a file: in graphs, text and pickles; unlawful too."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphir import (
    DType,
    Graph,
    GraphError,
    Lattice,
    PromotionError,
    PromotionRules,
    TensorType,
    lattice,
    ops,
    register,
    rules,
)
from graphir.dtype_lattices.order import Cyclic, NoUpperBound, SeveralUpperBounds
from graphir.passes import cast_report, lower
from graphir.runtime import execute

OWN = Lattice("own", {"int8": ["float16"], "int16": ["float32"], "float16": ["float32"]}, "a dream")
# uint8 and int8 lie below int16 and float16, neither of which is the least; float32 and float64
# lie below nothing together.
SPLIT = Lattice(
    "split", {"int8": ["int16", "float16"], "uint8": ["int16", "float16"], "float32": []}
)


def written(folder: Path, content: Any, name: str = "mine.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


# -- how they are made


def test_rules_have_the_name_the_source_and_the_joins_of_the_lattice():
    own = PromotionRules.from_lattice(OWN)
    assert (own.name, own.source, own.doc) == ("own", "a dream", "The joins of lattice 'own'.")
    assert own.dtypes == (DType.int8, DType.float16, DType.int16, DType.float32)
    assert own.promote("int8", "int16") is DType.float32
    assert own.promote("int8", "float16") is DType.float16
    assert [str(d) for d in own.path("int8", "float32")] == ["int8", "float16", "float32"]


def test_name_doc_and_source_may_be_given():
    named = PromotionRules.from_lattice(OWN, name="other", doc="What it is.", source="me")
    assert (named.name, named.doc, named.source) == ("other", "What it is.", "me")
    assert named.lattice is not None and named.lattice.name == "own"


@pytest.mark.parametrize("as_text", [False, True])
def test_rules_from_a_file(tmp_path: Path, as_text: bool):
    path = written(tmp_path, {"int8": ["int16"], "u8": ["int16"]})
    found = PromotionRules.from_lattice(str(path) if as_text else path)
    assert found.name == "mine" and found.promote("uint8", "int8") is DType.int16
    whole = {"name": "whole", "source": "hearsay", "edges": {"int8": ["int16"]}}
    found = PromotionRules.from_lattice(written(tmp_path, whole))
    assert (found.name, found.source) == ("whole", "hearsay")
    assert PromotionRules.from_lattice(written(tmp_path, whole), name="here").name == "here"


def test_a_published_lattice_makes_rules():
    jep = PromotionRules.from_lattice(lattice("jep_jax_final"))
    assert jep.promote("int8", "uint64") is DType.weak_float
    assert jep.promote("bfloat16", "float16") is DType.float32


def test_what_orders_no_dtypes_makes_no_rules(tmp_path: Path):
    with pytest.raises(GraphError, match="no dtype is named 'int'"):
        PromotionRules.from_lattice(lattice("jep_python"))
    with pytest.raises(GraphError, match="no dtype is named 'f8'"):
        PromotionRules.from_lattice(written(tmp_path, {"int8": ["f8"]}))
    with pytest.raises(GraphError, match="no dtype corresponds to 1"):
        PromotionRules.from_lattice(Lattice("numbers", {1: [2]}))
    with pytest.raises(GraphError, match="lattice 'empty' has none"):
        PromotionRules.from_lattice(Lattice[Any]("empty", {}))


def test_a_file_that_is_wrong_is_named(tmp_path: Path):
    with pytest.raises(Cyclic, match=r"mine\.json: lattice 'mine' has a cycle"):
        PromotionRules.from_lattice(written(tmp_path, {"int8": ["int16"], "int16": ["int8"]}))
    with pytest.raises(GraphError, match=r"nope\.json: No such file"):
        PromotionRules.from_lattice(tmp_path / "nope.json")


# -- in graphs


def program(own: str | PromotionRules) -> Graph:
    g = Graph("p", rules=own)
    x, y = g.input("int8", ("n",), name="x"), g.input("int16", ("n",), name="y")
    g.output((x + y) * 2)
    return g


def test_a_graph_is_built_lowered_and_run_under_them():
    g = program(PromotionRules.from_lattice(OWN))
    assert g.outputs[0].dtype is DType.float32
    [first, second] = cast_report(g)
    assert first.path == (DType.int8, DType.float16, DType.float32) and second.rule == "own"
    found = execute(g, x=np.array([100], np.int8), y=np.array([1000], np.int16))
    assert found.dtype == np.float32 and found.tolist() == [2200.0]


def test_a_graph_registers_them_so_that_text_and_pickles_find_them():
    own = PromotionRules.from_lattice(OWN)
    g = program(own)
    assert rules("own") is own
    for graph in (g, lower(g)):
        again = Graph.parse(str(graph))
        assert str(again) == str(graph) and again.rules is graph.rules
        thawed = pickle.loads(pickle.dumps(graph))
        assert str(thawed) == str(graph) and thawed.rules is graph.rules
    assert program("own").rules is own


def test_a_name_that_is_taken_says_how_to_reach_what_has_it():
    register(PromotionRules.from_lattice(OWN))
    with pytest.raises(GraphError, match=r"'own' is registered already, as rules\('own'\); give"):
        program(PromotionRules.from_lattice(SPLIT, name="own"))
    assert program(PromotionRules.from_lattice(OWN, name="twin")).rules.name == "twin"


def test_what_the_lattice_is_silent_about_is_as_under_max():
    own = PromotionRules.from_lattice(OWN)
    g = program(own)
    assert (g[1] / 2).dtype is DType.float64
    with pytest.raises(PromotionError, match="floats under 'own'") as caught:
        ops.sin(g[0])
    assert (caught.value.op, caught.value.got) == ("sin", "int8")


# -- unlawful ones


def test_the_joins_that_there_are_work():
    split = PromotionRules.from_lattice(SPLIT)
    assert split.promote("int8", "int16") is DType.int16
    assert split.promote("uint8", "float16") is DType.float16


def test_several_bounds_are_named_with_the_operands():
    g = Graph(rules=PromotionRules.from_lattice(SPLIT))
    x, y = g.input("int8"), g.input("uint8")
    with pytest.raises(SeveralUpperBounds) as caught:
        _ = x + y
    assert isinstance(caught.value, PromotionError)
    for named in ("int8 and uint8", "several minimal upper bounds", "int16, float16", "'split'"):
        assert named in str(caught.value)
    assert "add(lhs: int8[]" in str(caught.value)


def test_no_bound_is_named_with_the_operands():
    g = Graph(rules=PromotionRules.from_lattice(SPLIT))
    x, y = g.input("int8"), g.input("float32")
    with pytest.raises(NoUpperBound, match=r"int8 and float32.*no upper bound.*'split'.*\.cast"):
        _ = x * y
    assert issubclass(NoUpperBound, PromotionError)
    assert g.symbols == [x, y]


def test_their_laws_are_those_of_the_lattice():
    split = PromotionRules.from_lattice(SPLIT)
    pairs = {one.elements for one in split.laws() if one.law == "uniqueness"}
    assert pairs == {(DType.int8, DType.uint8)}
    assert PromotionRules.from_lattice(OWN).laws() == []


def test_an_equal_lattice_given_again_is_the_same_rule_set():
    def made(*above: str) -> PromotionRules:
        return PromotionRules.from_lattice(Lattice("twice", {"int8": [*above]}))

    first = Graph(rules=made("int16")).rules
    assert Graph(rules=made("int16")).rules is first
    with pytest.raises(GraphError, match="named 'twice' is registered already"):
        Graph(rules=made("int32"))


def test_copies_of_a_registered_rule_set_are_itself():
    jax = rules("jax")
    assert pickle.loads(pickle.dumps(jax)) is jax is copy.deepcopy(jax)
    alone = PromotionRules.from_lattice(Lattice("alone", {"int8": ["int16"]}))
    assert copy.deepcopy(alone).promote("int8", "int16") is DType.int16


def test_an_int_beyond_64_bits_is_refused_by_name():
    with pytest.raises(GraphError, match=r"does not fit the 64 bits of an int"):
        Graph(rules="numpy").scalar(2**70, "float64")
    with pytest.raises(GraphError, match=r"does not fit float8_e8m0fnu"):
        Graph(rules="max_strict").scalar(2**128, "float8_e8m0fnu")


def test_many_operands_of_unknown_value_are_answered_at_once():
    unknown = [TensorType("int64", ())] * 12
    numpy_legacy = rules("numpy_legacy")
    assert numpy_legacy.answer(*unknown, TensorType("int8", (2,))) is None
    assert numpy_legacy.answer(*unknown, TensorType("float64", (2,))) is DType.float64
