"""The registry of rule sets, the default inside a block, and the functions of the package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from threading import Event
from typing import Any

import numpy as np
import pytest

from graphir import (
    DType,
    Graph,
    GraphError,
    PromotionError,
    PromotionRules,
    implicit_cast,
    implicit_cast_type,
    ops,
    register,
    rule_sets,
    rules,
    set_default_rules,
)
from graphir.runtime import execute
from tests.support.tables import every

MAX, STRICT = rules("max"), rules("max_strict")


@every(
    ("op", "values", "expected", "unlike"),
    [
        ("sign", [3 + 4j, -1j], [0.6 + 0.8j, -1j], "numpy_legacy"),
        *(("any", [1j], True, "jax"), ("all", [1j], True, "jax")),
        *(("var", [1.0, 2.0], 0.25, "torch"), ("std", [1.0, 2.0], 0.5, "torch")),
    ],
)
def test_rules_decide_dtypes_and_ops_keep_their_values(
    op: str, values: list[complex], expected: Any, unlike: str
):
    asked = [each.name for each in rule_sets() if each.has(DType.complex128)]
    answered: list[str] = []
    for name in asked:
        g = Graph(rules=name)
        array = np.array(values)
        try:
            g.output(ops.CATALOGUE[op](g.input(array.dtype.name, "n", name="x")))
        except PromotionError:
            continue
        assert np.allclose(execute(g, array), expected)
        answered.append(name)
    assert unlike in answered  # whose library has other values


def test_jax_x32_keeps_64_bits_until_it_computes():
    g = Graph(rules="jax_x32")
    x, y = g.input("int64", "n"), g.input("float32", "n")
    known = g.scalar[DType.int64](2**40)
    assert x.dtype is known.dtype is y.cast("int64").dtype is DType.int64
    assert (x + known).dtype is DType.int32


USUAL = [d for d in DType if not (d.weak or d.narrow) and str(d) not in ("index", "address")]


@every("name", ["max", "max_strict", "explicit"])
def test_a_refusal_names_a_cast_that_loses_nothing_where_there_is_one(name: str):
    refused = 0
    for a, b in product([d for d in DType if not d.weak and rules(name).has(d)], repeat=2):
        try:
            rules(name).promote(a, b)
        except PromotionError as error:
            refused += 1
            named = [DType(n) for n in re.findall(r"\.cast\(DType\.(\w+)\)", str(error))]
            if any(a.exact_in(d) and b.exact_in(d) for d in USUAL):
                assert len(named) == 1 and a.exact_in(named[0]) and b.exact_in(named[0]), str(error)
            else:
                assert not named and "no dtype has every value of both" in str(error)
    assert refused


def test_a_path_that_the_lattice_has_not_is_its_two_ends():
    assert [str(d) for d in MAX.path(DType.int8, DType.int32)] == ["int8", "int16", "int32"]
    assert MAX.path(DType.int8, DType.int8) == (DType.int8,)
    for low, high in ((DType.float32, DType.int8), (DType.int8, DType.complex64)):
        assert MAX.path(low, high) == (low, high)
    assert rules("explicit").path(DType.int8, DType.int64) == (DType.int8, DType.int64)


def test_an_explanation_shows_only_the_operands_that_change():
    assert str(MAX.explain("int8", "int16")).splitlines() == [
        "int8 and int16 promote to int16 under 'max'",
        "  int8 -> int16: exact",
    ]
    assert len(str(MAX.explain("uint8", "int8")).splitlines()) == 3


# -- the functions of the package


def test_implicit_cast_type_takes_rules_by_name_object_or_default():
    assert implicit_cast_type("int16", "float32") is DType.float32
    assert implicit_cast_type("uint8", "int8") is DType.int16
    with pytest.raises(PromotionError):
        implicit_cast_type("uint8", "int8", rules="max_strict")
    assert implicit_cast_type("int8", "int16", rules=STRICT) is DType.int16
    with STRICT, pytest.raises(PromotionError):
        implicit_cast_type("uint8", "int8")


def test_implicit_cast_casts_both_sides_to_the_join():
    g = Graph()
    x, y = g.input("int16", ("n",)), g.input("float32", ("n",))
    a, b = implicit_cast(x, y)
    assert b is y and (a.dtype, a.op.name, a.args) == (DType.float32, "cast", (x,))
    c, d = implicit_cast(g.input("uint8"), g.input("int8"))
    assert c.dtype is d.dtype is DType.int16
    assert implicit_cast(x, x) == (x, x)


# -- the registry


def test_the_registry_has_the_rule_sets():
    names = [each.name for each in rule_sets()]
    assert {"max", "max_strict", "explicit", "python"} <= set(names)
    assert len(set(names)) == len(names)
    for each in rule_sets():
        assert rules(each.name) is each and rules(each) is each and each.doc


def test_an_unknown_rule_set_is_named_with_near_ones():
    with pytest.raises(GraphError, match=r"'max_strikt'.*max_strict"):
        rules("max_strikt")
    with pytest.raises(GraphError, match="max_strict"):
        Graph(rules="something else entirely")


def test_explicit_mixes_nothing():
    explicit = rules("explicit")
    assert explicit.promote("int8", "int8") is DType.int8
    for a, b in (("int8", "int16"), ("float32", "float64"), ("bool", "int8")):
        with pytest.raises(PromotionError, match=r"'explicit'.*already"):
            explicit.promote(a, b)


def test_a_with_block_sets_the_default_and_nests():
    assert rules() is MAX and Graph().rules is MAX
    with rules("max_strict") as inside:
        assert inside is STRICT and Graph().rules is STRICT
        assert Graph(rules="max").rules is MAX
        with rules("python"), rules("max_strict"), rules("python"):
            assert rules() is rules("python")
        assert rules() is STRICT
    assert rules() is MAX


def test_a_with_block_is_left_when_it_raises():
    with pytest.raises(ZeroDivisionError), rules("max_strict"):
        _ = 1 // 0
    assert rules() is MAX


def test_threads_have_a_default_of_their_own():
    with ThreadPoolExecutor(1) as pool, rules("max_strict"):
        assert pool.submit(lambda: rules().name).result() == "max"


@pytest.fixture
def process() -> Iterator[None]:
    """The process has no default of its own, before and after."""
    set_default_rules(None)
    yield
    set_default_rules(None)


def test_the_process_has_a_default(process: None):
    set_default_rules("max_strict")
    assert rules() is STRICT and Graph().rules is STRICT
    with pytest.raises(PromotionError, match="'max_strict'"):
        implicit_cast_type("uint8", "int8")
    assert Graph(rules="max").rules is MAX
    set_default_rules(rules("python"))
    assert Graph().rules is rules("python")


def test_none_resets_the_default_of_the_process(process: None):
    set_default_rules("max_strict")
    set_default_rules(None)
    assert rules() is MAX
    set_default_rules(None)
    assert Graph().rules is MAX


def test_a_with_block_wins_over_the_process_and_gives_back_to_it(process: None):
    set_default_rules("max_strict")
    with rules("max"):
        assert rules() is MAX
        set_default_rules("python")  # seen where the block is over
        assert rules() is MAX
        with rules("max_strict"):
            assert Graph().rules is STRICT
    assert rules() is rules("python")


def test_threads_share_the_default_of_the_process(process: None):
    with ThreadPoolExecutor(2) as pool:
        assert pool.submit(lambda: rules().name).result() == "max"
        set_default_rules("max_strict")
        with rules("python"):
            seen = [pool.submit(lambda: Graph().rules.name) for _ in range(4)]
            assert {one.result() for one in seen} == {"max_strict"}
        pool.submit(set_default_rules, "python").result()
        assert rules() is rules("python")


def test_a_block_in_a_thread_is_seen_by_no_other(process: None):
    inside, looked = Event(), Event()

    def hold() -> str:
        with rules("python"):
            inside.set()
            looked.wait(10)
            return rules().name

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(hold)
        assert inside.wait(10)
        here = rules()
        looked.set()
        assert (here, held.result()) == (MAX, "python")


def test_an_unknown_default_is_refused_and_changes_nothing(process: None):
    set_default_rules("max_strict")
    with pytest.raises(GraphError, match="'max_strikt'"):
        set_default_rules("max_strikt")
    assert rules() is STRICT


def test_a_graph_keeps_the_rules_that_it_was_made_under(process: None):
    set_default_rules("max_strict")
    g = Graph()
    set_default_rules(None)
    assert g.rules is STRICT and Graph.parse(str(g)).rules is STRICT


def test_a_name_is_registered_once():
    with pytest.raises(GraphError, match="'max' is registered already"):
        register(PromotionRules("max", "An impostor."))
    assert register(MAX) is MAX


@every("dtype", ["int8", "bool", "float32"])
@every("op", [ops.sum, ops.prod])
def test_explicit_accumulates_in_the_dtype_of_the_operand(op, dtype):
    with Graph("sums", rules="explicit") as g:
        x = g.input(dtype, (3,))
        assert op(x, dtype=dtype).dtype.name == dtype
        with pytest.raises(PromotionError, match="every operand must already have"):
            op(x, dtype="float64")
