"""What rule sets say besides the join: asked of them, a line a matter."""

from __future__ import annotations

import numpy as np

from graphir import DType, Graph, GraphirError, Lattice, PromotionRules, rule_sets, rules
from graphir.rule_reports.facts import facts
from tests.support.tables import every

INTS = [d for d in DType if d.is_integer and d.storage.name == str(d) and not d.narrow]


def told(which: str | PromotionRules) -> dict[str, str]:
    return dict(facts(rules(which) if isinstance(which, str) else which))


def test_max_is_as_it_is_documented():
    found = told("max")
    assert found["int / int"] == "float64"
    assert found["sin(int)"] == found["mean(int)"] == "refused"
    assert found["sum accumulates"] == found["cumulative_sum"] == "its own"
    assert found["bool arithmetic"] == (
        "+ bool, - refused, * bool, / float64, // refused, ** refused, -x refused, ~x bool"
    )
    assert found["is a truth value"] == "yes of bool; else refused"
    assert found["places"] == "argmax int64, argsort int64, searchsorted int64, shape_of int64"
    assert found["comparison"].split("; ")[0] == "int64 < uint64 at float16"
    assert found["int8 + 100"] == "int8" and found["int8 + 300"] == "refused"
    assert found["float16 + 2049"] == found["float32 + 1j"] == found["1 alone"] == "refused"
    assert found["float32 + 0.1"] == f"float32, where it is {float(np.float32(0.1))}"


def test_jax_is_as_it_is_documented():
    found = told("jax")
    assert found["int / int"] == "float64 of int64 uint64; else float32"
    assert found["sum accumulates"] == (
        "int64 of bool int8 int16 int32; uint64 of uint8 uint16 uint32; else its own"
    )
    assert found["is a truth value"] == "yes"
    assert found["int8 + 300"] == f"int8, where it is {np.asarray(300).astype(np.int8)}"
    assert found["uint8 + -1"] == "uint8, where it is 255"
    assert found["int32 + 1.5"] == "weak_float"
    assert found["1 alone"] == "weak_int, int64 in the end"
    assert told("jax_x32")["1 alone"] == "weak_int, int32 in the end"
    assert told("jax_x32")["places"].startswith("argmax int32")


def test_what_in_place_operators_leave():
    pairs = "float32 += float64 is float32; int8 += int16 is int8; "
    numpy = f"{pairs}uint8 += int8 refused; int8 += float32 refused"
    torch = f"{pairs}uint8 += int8 is uint8; int8 += float32 refused; x @= y is x = x @ y"
    assert (told("numpy")["in place"], told("torch")["in place"]) == (numpy, torch)
    assert told("array_api")["in place"].count("refused") == 4
    assert told("jax")["in place"] == told("max")["in place"] == "x += y is x = x + y"


@every("name", [each.name for each in rule_sets()])
def test_every_int_is_in_the_line_of_division_as_a_graph_divides_it(name: str):
    dtypes = [d for d in (DType.bool, *INTS) if d in rules(name).dtypes]
    if not dtypes:
        assert "int / int" not in told(name) or name == "python"
        return
    *groups, last = told(name)["int / int"].split("; ")
    answers = {
        d: group.split(" of ")[0] for group in groups for d in group.split(" of ")[1].split()
    }
    rest = last.removeprefix("else ")
    for dtype in dtypes:
        g = Graph(rules=name)
        try:
            found = str((g.input(dtype, ("n",)) / g.input(dtype, ("n",))).dtype)
        except GraphirError:
            found = "refused"
        assert answers.get(str(dtype), rest).replace("its own", str(dtype)) == found


class Other(PromotionRules):
    """Differs from "max" in a few answers."""

    def division(self, dtype: DType, op: str) -> DType:
        return DType.float32 if dtype is DType.int8 else super().division(dtype, op)

    def position(self, op: str) -> DType:
        return DType.uint8 if op == "argsort" else DType.int16

    def boolean(self, op: str) -> DType:
        return DType.int8

    def truth(self, dtype: DType, op: str) -> DType:
        return DType.bool


def test_the_answers_are_those_of_the_rule_set():
    before, after = told("max"), told(Other("other", "Not max.", rules("max").lattice))
    changed = {subject: after[subject] for subject in before if after[subject] != before[subject]}
    assert changed == {
        "int / int": "float32 of int8; else float64",
        "sum accumulates": "int8 of bool; else its own",
        "cumulative_sum": "int8 of bool; else its own",
        "bool arithmetic": "+ int8, - int8, * int8, / float64, // int8, ** int8, -x int8, ~x bool",
        "is a truth value": "yes",
        "places": "argmax int16, argsort uint8, searchsorted int16, shape_of int16",
        "bool + 1": "int8",
    }


def test_questions_about_dtypes_that_there_are_not_are_left_out():
    few = PromotionRules("few", "Two.", Lattice("few", {"float32": ["float64"]}))
    found = told(few)
    assert found.keys() == {
        *("sum accumulates", "cumulative_sum", "is a truth value", "places", "in place"),
        *("float32 + 0.1", "float32 + 1j", "True alone", "1 alone", "1.5 alone", "1j alone"),
    }


def test_only_the_dtypes_asked_about_count():
    found = dict(facts(rules("jax"), (DType.int64, DType.float32)))
    assert found["int / int"] == "float64" and found["comparison"].startswith("int64 < float32")
    assert "bool arithmetic" not in found and "int8 + 100" not in found


@every("name", [each.name for each in rule_sets()])
def test_a_literal_that_is_something_else_there_is_said_to_be(name: str):
    for subject, answer in facts(rules(name)):
        _, plus, literal = subject.partition(" + ")
        if plus and " where it is " in answer:
            value, kept = float(literal), float(answer.split(" where it is ")[1])
            assert value != kept
        elif plus and answer != "refused" and "j" not in literal:
            result = rules(name).concrete_dtype(DType(answer))
            stored = np.asarray(float(literal)).astype(result.storage)
            assert float(stored) == float(literal)


def test_asking_registers_nothing():
    names = [each.name for each in rule_sets()]
    impostor = Other("jax", "Not JAX.", rules("max").lattice)
    assert told(impostor)["int / int"] == "float32 of int8; else float64"
    assert [each.name for each in rule_sets()] == names and rules("jax") is not impostor
