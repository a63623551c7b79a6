"""What two rule sets answer differently: every cell, grouped for people, and the rest."""

from __future__ import annotations

import json
import re
from itertools import product

import pytest

from graphir import DType, GraphError, Lattice, PromotionError, PromotionRules, rule_sets, rules
from graphir.passes import RulesDiff, diff
from graphir.promotion.library import COMPLEX
from graphir.promotion.numpy_ import LOGICAL
from graphir.rule_reports.facts import facts
from tests.support.tables import every

NAMES = [each.name for each in rule_sets()]
SHORT = {dtype.short: dtype for dtype in DType}
PAIRS = [
    *(("max", name) for name in NAMES if name != "max"),
    *(("jax", "max_strict"), ("jax_strict", "jax_x32"), ("python", "jax")),
]


def changes(before: str, after: str) -> dict[tuple[DType, DType], tuple[DType | None, ...]]:
    """The cells that differ, from the two tables."""
    one, other = rules(before).table(), rules(after).table()
    shared = [dtype for dtype in DType if dtype in one and dtype in other]
    both = {(a, b): (one[a][b], other[a][b]) for a, b in product(shared, shared)}
    return {pair: ends for pair, ends in both.items() if ends[0] is not ends[1]}


def rows(found: RulesDiff) -> list[tuple[list[DType], list[DType], str, str]]:
    """The rows of the table in the text, read by its columns."""
    lines = str(found).splitlines()
    if not found.cells:
        return []
    at = next(i for i, line in enumerate(lines) if line.startswith("lhs "))
    head = lines[at]
    names = found.before.name, found.after.name
    starts = [0, head.index("rhs"), head.index(f" {names[0]} ") + 1, head.rindex(names[1])]
    table = lines[at + 1 :]
    if "" in table:
        table = table[: table.index("")]
    read: list[tuple[list[DType], list[DType], str, str]] = []
    for line in table:
        cells = [
            line[i:j].strip() for i, j in zip(starts, [*starts[1:], len(line) + 1], strict=True)
        ]
        lhs, rhs = ([SHORT[name] for name in cell.split()] for cell in cells[:2])
        read.append((lhs, rhs, cells[2], cells[3]))
    return read


@pytest.mark.exhaustive
@pytest.mark.parametrize("before, after", PAIRS)
def test_every_cell_that_differs_and_no_other(before: str, after: str):
    found = diff(before, after)
    expected = changes(before, after)
    assert {cell[:2]: cell[2:] for cell in found} == expected
    assert len(found) == len(expected) == len([*found])
    shared = [dtype for dtype in rules(before).dtypes if dtype in rules(after).dtypes]
    assert found.pairs == len(shared) ** 2
    asked = [(rules(before).answer(*p), rules(after).answer(*p)) for p in product(shared, shared)]
    assert found.both_refuse == asked.count((None, None))


@pytest.mark.exhaustive
@pytest.mark.parametrize("before, after", PAIRS)
def test_the_groups_are_the_cells(before: str, after: str):
    found = diff(before, after)
    expected = changes(before, after)
    told: dict[tuple[DType, DType], tuple[str, str]] = {}
    for lhs, rhs, *ends in rows(found):
        for a, b in product(lhs, rhs):
            assert (a, b) not in told
            told[a, b] = (ends[0], ends[1])
            if expected.get((b, a)) == expected[a, b]:
                told[b, a] = (ends[0], ends[1])
    names = {p: tuple("-" if d is None else str(d) for d in ends) for p, ends in expected.items()}
    assert told == names


def test_the_text_is_short():
    found = diff("max", "jax_strict")
    assert len(found) > 150 and len(str(found).splitlines()) < 100
    lines = str(diff("max", "jax")).splitlines()
    assert [line.split() for line in lines[4:7]] == [
        ["lhs", "rhs", "max", "jax"],
        ["i8", "i16", "i32", "i64", "u64", "float16", "weak_float"],
        ["f16", "bf16", "bfloat16", "float32"],
    ]


def test_the_head_counts_what_kind_of_change_each_is():
    head = str(diff("max", "max_strict")).splitlines()[0]
    found = diff("max", "max_strict")
    refused = sum(cell.after is None for cell in found)
    assert refused > 20 and all(cell.before is not None for cell in found)
    assert head == (
        f"max and max_strict differ in {len(found)} of {found.pairs} pairs of the dtypes that both "
        f"have: {len(found) - refused} have another dtype, {refused} are refused by max_strict "
        f"alone, 0 by max alone; both refuse {found.both_refuse}"
    )
    other = diff("max_strict", "max")
    assert f"0 are refused by max alone, {refused} by max_strict alone" in str(other)


def test_the_dtypes_of_one_alone_are_named():
    lines = str(diff("max", "max_strict")).splitlines()
    assert lines[1] == "only max has index address tensor_float32"
    assert lines[2].startswith("only max_strict has float8_")
    found = diff("max", "jax")
    assert DType.weak_int in found.only(rules("jax"))
    assert found.only(rules("max")) == [DType.index, DType.address, DType.tensor_float32]


def test_what_they_say_besides_the_join():
    found = diff("max", "jax")
    shared = [dtype for dtype in rules("max").dtypes if dtype in rules("jax").dtypes]
    before, after = (dict(facts(rules(name), shared)) for name in ("max", "jax"))
    assert {one[0]: one[1:] for one in found.facts} == {
        subject: (before[subject], after[subject])
        for subject in before
        if before[subject] != after[subject]
    }
    text = str(found)
    assert "besides the join:\n  comparison\n    max  int64 < uint64 at float16; " in text
    assert "int / int" not in text and "float64  float32     divide\n" in text
    assert "int8 + 100" not in text


def test_ops_that_differ_are_named():
    found = diff("numpy", "cupy")
    assert {(one.op, one.dtype) for one in found.ops} == {
        ("sign", DType.bool),
        *((op, d) for op in (*LOGICAL, "logical_not", "clip") for d in COMPLEX),
    }
    lines = [line.split(maxsplit=3) for line in str(found).splitlines()]
    assert ["bool", "-", "int8", "sign"] in lines
    told = json.loads(found.to_json())["ops"]
    assert {"op": "sign", "dtype": "bool", "before": None, "after": "int8"} in told


def test_the_results_of_ops_are_grouped_by_what_changes():
    rows = [re.split(" {2,}", line) for line in str(diff("max", "jax")).splitlines()]
    told = {ops: cells for *cells, ops in rows}
    assert told["divide"] == ["bool i8 i16 i32 u8 u16 u32", "float64", "float32"]
    assert told["where"][1:] == ["-", "its own"]
    assert told["searchsorted"][1:] == ["int64", "int32"]  # not "its own" of int64


def test_that_values_of_0_d_operands_count_is_told():
    told = {subject: answers for subject, *answers in diff("numpy", "numpy_legacy").facts}
    before, after = told["0-d operands"]
    assert before == "int8 beside a 0-d int64 is int64"
    assert "int8 where that is 1, int16 where that is 300, refused where" in after
    assert dict(facts(rules("torch")))["0-d operands"].endswith(" is int8")


def test_an_asymmetric_rule_set_is_told_by_order():
    class First(PromotionRules):
        def join(self, dtypes: tuple[DType, ...]) -> DType:
            if dtypes == (DType.int16, DType.int8):
                raise PromotionError("not in this order")
            return dtypes[0]

    order = Lattice("order", {"int8": ["int16"], "int16": ["int32"]})
    found = diff(PromotionRules.from_lattice(order), First("first", "By order.", order))
    assert [tuple(map(str, cell)) for cell in found] == [
        ("int8", "int16", "int16", "int8"),
        ("int8", "int32", "int32", "int8"),
        ("int16", "int8", "int16", "None"),
        ("int16", "int32", "int32", "int16"),
    ]
    assert [(lhs, rhs) for lhs, rhs, *_ in rows(found)] == [
        *(([DType.int8], [DType.int16]), ([DType.int8], [DType.int32])),
        *(([DType.int16], [DType.int8]), ([DType.int16], [DType.int32])),
    ]


@every("before, after", [("max", "jax"), ("jax", "max_strict")])
def test_as_json(before: str, after: str):
    found = diff(before, after)
    read = json.loads(found.to_json())
    assert (read["before"], read["after"]) == (before, after)
    assert (read["pairs"], read["both_refuse"]) == (found.pairs, found.both_refuse)
    assert len(read["cells"]) == len(found)
    for cell, told in zip(found, read["cells"], strict=True):
        assert told == {
            name: None if value is None else str(value) for name, value in cell._asdict().items()
        }
    assert [tuple(fact.values()) for fact in read["facts"]] == [*found.facts]
    assert read["only_before"] == [str(dtype) for dtype in found.only(rules(before))]


@pytest.mark.exhaustive
def test_a_rule_set_does_not_differ_from_itself():
    for name in NAMES:
        found = diff(name, rules(name))
        assert len(found) == 0 and found.facts == () == found.ops and not found.only(rules(name))
        assert len(str(found).splitlines()) == 1


def test_it_is_a_sequence():
    found = diff("max", "jax")
    assert found[0] is found.cells[0] and [*found[1:3]] == [*found.cells[1:3]]
    assert found.cells[2] in found


def test_what_is_no_rule_set():
    with pytest.raises(GraphError, match="no rule set is named 'jacks'"):
        diff("max", "jacks")
    with pytest.raises(GraphError, match="got three"):
        diff("max", "jax", "python")  # type: ignore[call-overload]  # which is refused
