"""graphir.explain: the result, each operand's way and loss, and what every other rule set says."""

from __future__ import annotations

import re
from itertools import product

import pytest

import graphir
from graphir import (
    DType,
    Explanation,
    GraphirError,
    Lattice,
    PromotionError,
    PromotionRules,
    explain,
    register,
    rule_sets,
    rules,
)
from graphir.rule_reports.explanation import reason
from tests.support.commands import cli

OTHERS = [each for each in rule_sets() if each.name not in ("max", "explicit")]


def row(told: Explanation, name: str) -> str:
    """The line of another rule set, its columns apart by one space."""
    [line] = [x for x in str(told).splitlines() if re.match(rf"  {name} ", x)]
    return re.sub(" +", " ", line.strip())


def test_every_other_rule_set_is_asked():
    told = explain("int16", "float32")
    assert (told.rules, told.result) == ("max", DType.float32)
    assert list(told.others) == [each.name for each in OTHERS]
    for each in OTHERS:
        found = told.others[each.name]
        if isinstance(found, Explanation):
            assert found.result is each.promote("int16", "float32")
            assert found.rules == each.name and not found.others
        else:
            with pytest.raises(type(found), match=re.escape(str(found))):
                each.promote("int16", "float32")
    assert {type(found) for found in told.others.values()} >= {Explanation, PromotionError}


def test_the_rule_set_asked_is_not_among_the_others_and_explicit_never():
    told = explain("int8", "int16", rules="jax")
    assert "max" in told.others and "jax" not in told.others and "explicit" not in told.others


def test_a_rule_set_of_ones_own_is_among_them():
    register(PromotionRules.from_lattice(Lattice("own", {"int8": ["int64"], "int16": ["int64"]})))
    assert row(explain("int8", "int16"), "own") == "own int64 exact"


def test_a_line_says_what_is_lost_and_of_what():
    told = explain("int16", "float16", rules="jax_x32")
    assert row(told, "max") == "max float16 loses 2049 of int16"
    assert row(told, "max_strict") == (
        "max_strict refuses they would meet in float16, which does not hold 2049 of int16"
    )
    both = explain("int64", "uint64", rules="jax")
    assert row(both, "max") == "max float16 loses 2049 of int64 and 2049 of uint64"
    assert row(explain("bool", "int8", rules="jax"), "max") == "max int8 exact"


def test_a_loss_is_there_exactly_where_an_operand_is_not_exact():
    for a, b in product((DType.int16, DType.uint64, DType.bfloat16), (DType.float16, DType.int8)):
        for found in explain(a, b).others.values():
            if isinstance(found, Explanation):
                lossy = [d for d in (a, b) if not d.exact_in(found.result)]
                assert [text.split(" of ")[1] for text in found.losses] == list(map(str, lossy))
                assert found.exact is (lossy == [])


def test_a_literal_is_told_as_itself():
    told = explain("int8", 300, rules="jax")
    assert told.operands == (DType.int8, 300) and told.witnesses == (None, 300)
    assert str(told).splitlines()[:2] == [
        "int8 and the literal 300 promote to int8 under 'jax'",
        "  weak_int -> int8: loses the literal 300",
    ]
    assert row(told, "max") == "max refuses it is out of range, [-128, 127]"
    assert row(told, "jax_x32") == "jax_x32 int8 loses the literal 300"
    assert row(explain("int8", 100), "jax") == "jax int8 exact"


def test_what_the_rules_asked_refuse_is_refused():
    with pytest.raises(PromotionError, match="'max'"):
        explain("int8", "complex64")
    with pytest.raises(GraphirError, match="no dtype is named"):
        explain("int8", "integer")


def test_why_an_error_was_raised_in_its_shortest_words():
    error = PromotionError("int8 and f do not promote", reason="why, and more", fix="cast")
    assert reason(error) == "why, and more"
    literal = PromotionError("the literal 1 has no dtype", fix="write it")
    assert reason(literal) == "the literal 1 has no dtype"


def test_nothing_is_wider_than_a_terminal_of_100_columns():
    asked = (*rules("max").dtypes, 1, 2.5)
    told = [str(explain(a, b, "float64")) for a, b in product(rules("max").dtypes, asked)]
    lines = [line for text in told for line in text.splitlines()]
    assert 90 < max(map(len, lines)) <= 100
    assert any(line.startswith("    ") for line in lines)  # a long path, folded


def test_the_columns_are_aligned():
    lines = str(explain("int16", "float16")).split("Other rule sets:\n")[1].splitlines()
    starts = {tuple(m.start() for m in re.finditer(r"(?<=  )\S", line))[:3] for line in lines}
    assert len(starts) == 1 and len(lines) == len(OTHERS)


# -- the command


def test_promote_prints_the_explanation():
    assert cli("promote", "int16", "float16") == (0, f"{explain('int16', 'float16')}\n", "")
    expected = explain("int8", 1, rules="jax")
    assert cli("promote", "int8", "1", "--rules", "jax") == (0, f"{expected}\n", "")


def test_the_package_has_it():
    assert graphir.explain is explain and "explain" in graphir.__all__
