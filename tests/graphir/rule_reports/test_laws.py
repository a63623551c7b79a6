"""graphir.laws: what rule sets, lattices and printed tables break, the smallest example first."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import numpy as np
import pytest

from graphir import DType, GraphError, Lattice, PromotionRules, lattice, lattices, laws, rules
from graphir.dtype_lattices.order import LAWS as JOIN_LAWS
from graphir.rule_reports.laws import LAWS
from tests import GOLDEN
from tests.support.tables import every

PRINTED: dict[str, dict[str, str]] = json.loads((GOLDEN / "max.json").read_text())["table"]
NUMPY = [d for d in DType if d.storage.name == str(d) and d.storage.isbuiltin == 1]


class Table(PromotionRules):
    """The rules of a printed table: each row (lhs) to its columns (rhs), by names of dtypes."""

    def __init__(self, table: dict[str, dict[str, Any]]) -> None:
        super().__init__("table", "As printed.")
        self.cells = {(DType(a), DType(b)): c for a, row in table.items() for b, c in row.items()}
        self.dtypes = tuple({dtype: None for pair in self.cells for dtype in pair})

    def join(self, dtypes: tuple[DType, ...]) -> DType:
        if (cell := self.cells.get(dtypes)) is None:
            raise self.refusal(dtypes, "the table lacks them")
        return DType(cell)


def broken(subject: Any) -> dict[str, list[tuple[Any, ...]]]:
    """The elements of each violation, by law."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for one in laws(subject):
        found.setdefault(one.law, []).append(one.elements)
    return found


def names(elements: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(map(str, elements))


# -- printed tables


def test_maxs_printed_table_breaks_associativity_in_68_triples():
    found = broken(Table(PRINTED))
    expected = {
        (a, b, c)
        for a, b, c in product(PRINTED, repeat=3)
        if PRINTED[PRINTED[a][b]][c] != PRINTED[a][PRINTED[b][c]]
    }
    assert len(expected) == 68
    assert set(map(names, found["associativity"])) == expected
    assert len(found["associativity"]) == 68
    unlike = {(a, b) for a, b in product(PRINTED, repeat=2) if PRINTED[a][b] != PRINTED[b][a]}
    assert {*map(names, found["commutativity"])} < unlike and len(unlike) == 8
    assert len(found["commutativity"]) == 4


def test_maxs_lattice_breaks_no_law_of_a_join():
    for subject in (lattice("max"), rules("max")):
        assert not broken(subject).keys() & {*JOIN_LAWS}
    assert lattice("max").laws() == []


def numpy_table() -> dict[str, dict[str, str]]:
    return {
        str(a): {str(b): np.promote_types(a.storage, b.storage).name for b in NUMPY} for a in NUMPY
    }


def test_numpys_table_is_not_associative():
    found = broken(Table(numpy_table()))
    assert names(found["associativity"][0]) == ("int8", "uint8", "float16")
    assert ("int8", "uint8", "float16") in map(names, found["associativity"])
    assert not found.keys() & {"existence", "uniqueness", "commutativity", "idempotence"}
    told = next(one for one in laws(Table(numpy_table())) if one.law == "associativity")
    assert told.finding == (
        "(int8 v uint8) v float16 = float32, int8 v (uint8 v float16) = float16"
    )


def test_a_pair_that_raises_or_is_missing_does_not_exist():
    table = {
        "int8": {"int8": "int8", "int16": None},
        "int16": {"int16": "int16", "int8": DType.int16},
    }
    found = broken(Table(table))
    assert found["existence"] == found["commutativity"] == [(DType.int8, DType.int16)]
    # (int8 v int16) v int8 is undefined, and int8 v (int16 v int8) = int8 v int16 too.
    assert (DType.int8, DType.int16, DType.int8) not in found["associativity"]
    assert (DType.int16, DType.int8, DType.int16) in found["associativity"]
    del table["int8"]["int16"]
    assert broken(Table(table))["existence"] == [(DType.int8, DType.int16)]


@every("subject", ["mx", [1], {"int8": "int16"}])
def test_what_has_no_laws_is_refused(subject: Any):
    with pytest.raises(GraphError, match="no rule set is named"):
        laws(subject)


# -- width and exactness


def test_width_and_exactness_name_the_operand():
    told = {one.law: one for one in reversed(laws(rules("max")))}
    assert names(told["width"].elements) == ("int8", "uint64")
    assert told["width"].finding == "int8 v uint64 = float16, which is narrower than uint64"
    assert told["exactness"].finding == "int16 v float16 = float16, which lacks 2049 of int16"


@every("name", ["max", "max_strict", "jax"])
def test_every_violation_of_them_is_one(name: str):
    found = broken(rules(name))
    strong = [d for d in rules(name).dtypes if not d.weak]
    answers = {(a, b): rules(name).answer(a, b) for a, b in product(strong, repeat=2)}
    wider = [p for p, to in answers.items() if to and to.bits < max(d.bits for d in p)]
    lossy = [p for p, to in answers.items() if to and not all(d.exact_in(to) for d in p)]
    assert {*found.get("width", ())} == {*wider}
    assert {*found.get("exactness", ())} == {*lossy}


def test_weak_dtypes_give_way_by_design():
    assert not DType.weak_int.exact_in(DType.weak_float)
    assert laws(rules("python")) == []


# -- lattices and rule sets


@every("name", lattices())
def test_a_lattice_is_asked_for_the_laws_of_a_join(name: str):
    found = [one for one in laws(lattice(name)) if one.law in JOIN_LAWS]
    assert found == lattice(name).laws()


def test_a_lattice_of_other_things_is_asked_for_nothing_else():
    assert broken(Lattice("letters", {"a": ["b", "c"]})).keys() <= {*JOIN_LAWS}
    assert "width" in broken(lattice("jep_jax_final"))


def test_rules_are_asked_and_not_their_lattice():
    strict = rules("max_strict")
    assert strict.lattice is not None and not strict.lattice.laws()
    assert names(broken(strict)["existence"][0]) == ("int8", "uint8")
    told = next(one.finding for one in laws(strict) if one.law == "existence")
    assert told.endswith("they would meet in int8, which does not hold 128 of uint8")


def test_the_method_is_the_function():
    for name in ("max", "max_strict"):
        assert rules(name).laws() == laws(rules(name)) != []


@every("subject", [rules("max"), rules("max_strict"), Table(PRINTED)])
def test_the_smallest_counterexample_comes_first(subject: Any):
    dtypes = {*subject.dtypes}
    place = {d: i for i, d in enumerate(sorted(DType, key=lambda d: d.bits)) if d in dtypes}
    ranks = {d: i for i, d in enumerate(place)}
    found = laws(subject)
    assert [LAWS.index(one.law) for one in found] == sorted(LAWS.index(one.law) for one in found)
    for law in LAWS:
        sums = [sum(ranks[d] for d in one.elements) for one in found if one.law == law]
        assert sums == sorted(sums)


def test_the_order_of_a_table_does_not_matter():
    backwards = {a: dict(reversed(row.items())) for a, row in reversed(PRINTED.items())}
    assert laws(Table(backwards)) == laws(Table(PRINTED))
