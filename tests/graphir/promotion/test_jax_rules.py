"""The rule sets of JAX without JAX: the tables as printed and measured, and what surprises."""

from __future__ import annotations

import json
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import pytest

from graphir import DType, Graph, GraphirError, PromotionError, PromotionRules, ops, passes, runtime
from graphir.promotion.jax import JAX, JAX_2020, JAX_LAX, JAX_STRICT, JAX_X32
from tests import GOLDEN
from tests.peers import CALLS, ours
from tests.support import tables
from tests.support.tables import every

TABLES: dict[str, Any] = json.loads((GOLDEN / "jax.json").read_text())
RULES = {each.name: each for each in (JAX, JAX_X32, JAX_STRICT, JAX_LAX, JAX_2020)}
SHORT = {dtype.short: dtype for dtype in DType}
NAMED = {None: "-"} | {dtype: dtype.short for dtype in DType}
NUMBERS = {"True": True, "1": 1, "1.5": 1.5, "1j": 1j}
PYTHON = {"i*": int, "f*": float, "c*": complex}
SHAPE = (2, 2)
Cells = dict[tuple[str, str], str]


def cells(table: str) -> Cells:
    """A golden table, by row and column; `-` is an error."""
    return tables.cells(TABLES[table])


def promoted(rules: PromotionRules, *names: str) -> str:
    return NAMED[rules.answer(*(NUMBERS.get(name, SHORT.get(name)) for name in names))]


def computed(rules: PromotionRules, op: str, *names: str) -> str:
    """The dtype of an op's result on operands of dtypes, or numbers."""
    call = CALLS[op]
    operands = call.operands(*(SHORT.get(name, DType.bool) for name in names))
    for i, name in zip(call.free, names, strict=True):
        if name in NUMBERS:
            operands[i] = NUMBERS[name]
    return NAMED[ours(rules, op, *operands)]


# -- the tables, cell by cell


def test_jax_as_printed_twice_and_measured():
    table = cells("jax")
    assert len(table) == 324
    assert {pair: promoted(JAX, *pair) for pair in table} == table
    assert {pair: computed(JAX, "add", *pair) for pair in table} == table


@every(("table", "rules"), [("jax", JAX), ("strict", JAX_STRICT)])
def test_a_weak_dtype_is_the_type_of_a_python_number(table: str, rules: PromotionRules):
    for (a, b), found in cells(table).items():
        if a not in PYTHON and b in PYTHON:
            assert NAMED[rules.answer(SHORT[a], PYTHON[b])] == found


def test_strict_as_measured():
    table = cells("strict")
    assert {pair: promoted(JAX_STRICT, *pair) for pair in table} == table
    assert {pair: computed(JAX_STRICT, "add", *pair) for pair in table} == table


def test_lax_as_printed_and_measured():
    table = cells("lax")
    assert {pair: computed(JAX_LAX, "add", *pair) for pair in table} == table


def test_true_divide_as_measured():
    table = cells("divide")
    assert {pair: computed(JAX, "divide", *pair) for pair in table} == table


def test_the_table_of_2020_and_the_8_cells_in_which_it_differs():
    table, today = cells("2020"), cells("jax")
    assert len(table) == 225
    assert {pair: promoted(JAX_2020, *pair) for pair in table} == table
    assert {pair: computed(JAX_2020, "add", *pair) for pair in table} == table
    different = {pair for pair in table if table[pair] != today[pair]}
    signed = ("i8", "i16", "i32", "i64")
    assert different == {*product(["u64"], signed), *product(signed, ["u64"])}
    assert {table[pair] for pair in different} == {"f64"}


DEMOTED = {"i64": "i32", "u64": "u32", "f64": "f32", "c128": "c64"}


def demoted(name: str) -> str:
    return DEMOTED.get(name, name)


def test_without_64_bits_operands_and_join_are_demoted():
    table = cells("jax")
    expected = {(a, b): demoted(table[demoted(a), demoted(b)]) for a, b in table}
    assert {pair: promoted(JAX_X32, *pair) for pair in table} == expected
    assert {pair: computed(JAX_X32, "add", *pair) for pair in table} == expected


@every(("name", "table"), [("jax", "jax"), ("jax_2020", "2020")])
def test_any_three_by_folding_the_table(name: str, table: str):
    join = cells(table)
    for triple in product({a for a, _ in join}, repeat=3):
        assert promoted(RULES[name], *triple) == reduce(lambda a, b: join[a, b], triple), triple


def test_the_order_of_operands_matters_in_2020_alone():
    assert promoted(JAX_2020, "u64", "i8", "f16") == "f64"
    assert promoted(JAX_2020, "i8", "f16", "u64") == "f16"
    assert promoted(JAX, "u64", "i8", "f16") == promoted(JAX, "i8", "f16", "u64") == "f16"


def test_small_dtypes_join_what_is_weak_alone():
    for a, b, found in (
        ("i4", "i*", "i4"),
        ("i4", "bool", "i4"),
        ("i4", "i8", "-"),
        ("i4", "f*", "-"),
        ("f8e5m2", "i64", "f8e5m2"),
        ("f8e5m2", "f*", "f8e5m2"),
        ("f8e5m2", "f16", "-"),
        ("f8e5m2", "f8e4m3fn", "-"),
    ):
        assert promoted(JAX, a, b) == promoted(JAX, b, a) == found


# -- ops


@every(
    "line",
    [
        "jax: divide i8 i8 = f32; divide i64 i8 = f64; sqrt u64 = f64; sin bool = f32; sin i* = f*",
        "jax: floor_divide bool bool = i32; square bool = i32; add bool bool = bool",
        "jax: subtract bool bool = -; negative bool = -; sign bool = -; abs bool = bool",
        "jax: sum bool = i64; sum i8 = i64; sum u8 = u64; prod f16 = f16; sum i4 = -",
        "jax: cumulative_sum i8 = i64; cumulative_prod i8 = i8; cumulative_prod bool = i64",
        "jax: sum f* = f64; max i* = i64; mean i* = f64; log2 f* = f*; hypot f* f* = f*",
        "jax: log f* = f*; sort i* = i*; where i* f* = f*; where i8 1.5 = f*; atan2 f* f* = f*",
        "jax: less c64 c64 = bool; maximum c64 f64 = c128; clip c64 c64 c64 = -; argmax c64 = -",
        "jax: pow i* i* = i64; pow i* i8 = i8; pow f* i8 = f64; pow f* i* = f*; pow bool 1 = i32",
        "jax: rsqrt i32 = -; sigmoid i32 = -; softmax i32 = f32; softmax bool = -; relu bool = i*",
        "jax: left_shift bool bool = i32; bitwise_and bool 1 = i*; bitwise_and i8 1.5 = -",
        "jax: logical_and i8 f32 = bool; logical_and f8e5m2 f16 = -; any c64 = bool; var c64 = f32",
        "jax: scatter i8 f32 = i8; scatter i* i64 = i*; scatter f32 c64 = -; scatter i4 i8 = -",
        "jax: argmax i8 = i64; argsort i8 = i64; searchsorted i8 i8 = i32; divide i2 i2 = -",
        "jax: real c* = f*; abs c128 = f64; imag i8 = i8; equal u64 i64 = bool; round i8 = i8",
        "jax_x32: divide i64 i64 = f32; sum i8 = i32; sum u8 = u32; argmax i8 = i32; max i* = i32",
        "jax_x32: add u32 i8 = i32; add u32 u64 = u32; add f32 f64 = f32; mean f64 = f32",
        "jax_strict: add i8 True = -; add f32 1 = f32; add i8 1.5 = -; add c64 1.5 = c64",
        "jax_strict: relu bool = -; logsoftmax i8 = -; softmax i8 = f32; where i8 1 = i8",
        "jax_strict: scatter i8 f32 = -; scatter i8 i* = i8; scatter i* i64 = i*; add f32 1j = -",
        "jax_lax: add bool bool = -; bitwise_or bool bool = bool; sum bool = -; sum i8 = i8",
        "jax_lax: divide i8 i8 = -; divide f8e5m2 f8e5m2 = f8e5m2; sin i8 = -; sin c64 = c64",
        "jax_lax: pow f32 i8 = f32; pow f* i8 = f64; pow i8 i8 = -; pow f32 1 = f32; max i* = i*",
        "jax_lax: abs u8 = -; abs i8 = i8; floor i8 = -; is_finite i8 = -; less c64 c64 = -",
        "jax_lax: real f32 = -; conj f32 = c64; conj f* = c*; conj f16 = -; as_complex f16 f16 = -",
        "jax_lax: add i64 1 = i64; add i8 1 = -; add f64 1.5 = f64; add f32 1.5 = -; any i8 = -",
        "jax_2020: divide i8 i8 = f64; sin bool = f64; add i8 1.5 = f64; add i8 1 = i8",
        "jax_2020: add f16 1.5 = f16; add f16 1j = c128; add bool 1 = i64; relu bool = i64",
    ],
)
def test_ops(line: str):
    name, calls = line.split(": ")
    for call in calls.split("; "):
        asked, result = call.split(" = ")
        assert computed(RULES[name], *asked.split()) == result, call


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", RULES)
def test_every_op_means_the_same_when_lowered_and_reads_back(name: str):
    count = 0
    for op, dtype in product(ops.CATALOGUE.values(), RULES[name].dtypes):
        if op.name in CALLS and (not dtype.narrow or dtype.bits == 4):
            count += lowers(RULES[name], op.name, dtype)
    assert count > 750


def lowers(rules: PromotionRules, name: str, dtype: DType) -> bool:
    """Whether the rules take the op; then it lowers, verifies, reads back and keeps its value."""
    g, call, op = Graph(rules=rules), CALLS[name], ops.CATALOGUE[name]
    made = [g.input(*one) for one in call.operands(*(dtype for _ in call.free))]
    try:
        g.output(op(*([made] if op.variadic else made), **call.attrs))
    except GraphirError:
        return False
    lowered = passes.lower(g).verify()
    assert lowered.outputs[0].dtype is rules.concrete_dtype(g.outputs[0].dtype), name
    for each in (g, lowered):
        assert str(Graph.parse(str(each)).verify()) == str(each)
    inputs = [
        np.full(x.shape, 0 if i in call.fixed else 1, g.concrete_dtype(x.dtype).storage)
        for i, x in enumerate(made)
    ]
    expected, found = runtime.interpret(g, *inputs), runtime.interpret(lowered, *inputs)
    assert (found.dtype, found.tobytes()) == (expected.dtype, expected.tobytes()), name
    return True


def test_without_64_bits_weak_ints_wrap_at_2_to_the_31():
    results = []
    for rules in (JAX, JAX_X32):
        g = Graph(rules=rules)
        most = g.scalar(2**31 - 1)
        g.output(most + 1, most * 2.0**90, ops.argmax(g.input("int8", (3,))), most)
        assert [NAMED[x.dtype] for x in g.outputs[:2]] == ["i*", "f*"]
        x = np.array([1, 3, 2], np.int8)
        results.append(runtime.interpret(passes.lower(g), x))
        for a, b in zip(runtime.interpret(g, x), results[-1], strict=True):
            assert (a.dtype, a.tobytes()) == (b.dtype, b.tobytes())
        assert ("dtype=int32}" in str(passes.implicit_cast(g))) is (rules is JAX_X32)
    wide, narrow = results
    assert [str(x.dtype) for x in wide] == ["int64", "float64", "int64", "int64"]
    assert [str(x.dtype) for x in narrow] == ["int32", "float32", "int32", "int32"]
    assert (wide[0], narrow[0]) == (2**31, -(2**31))
    assert narrow[1] == 2.0**121


def test_without_64_bits_an_input_of_64_is_demoted_where_it_is_used():
    g = Graph(rules=JAX_X32)
    x = g.input("int64", (1,))
    g.output(x + 1, x / 2, x)
    found = runtime.interpret(g, np.array([2**31], np.int64))
    assert [str(one.dtype) for one in found] == ["int32", "float32", "int64"]
    assert found[0] == -(2**31) + 1


# -- literals


def valued(rules: PromotionRules, op: str, dtype: str, value: Any, *literals: Any) -> Any:
    g = Graph(rules=rules)
    x = g.input(dtype, (1,))
    condition = [np.zeros(1, bool)] if op == "where" else []
    g.output(ops.CATALOGUE[op](*condition, x, *literals))
    return runtime.interpret(g, np.array([value], DType(dtype).storage))[0]


@every(
    ("op", "dtype", "value", "literals", "result"),
    [
        ("add", "int8", 1, [128], -127),
        ("add", "int8", 1, [2**40], 1),
        ("multiply", "int8", 1, [300], 44),
        ("add", "uint8", 1, [-1], 0),
        ("add", "float16", 0, [2049], 2048),
        ("add", "float16", 0, [65520.0], np.inf),
        ("add", "float32", 0, [1e300], np.inf),
        ("add", "float32", 0, [2**24 + 1], 2**24),
        ("add", "int4", 1, [100], 5),
        ("add", "bool", True, [300], 301),
        ("less", "int8", 43, [300], True),  # 300 is 44 there
        ("equal", "int8", 44, [300], True),
        ("less", "uint8", 254, [-1], True),
        ("equal", "int64", 2**53 + 1, [2.0**53], True),  # at float64
        ("bitwise_and", "uint8", 7, [-1], 7),
        ("left_shift", "int8", 1, [300], 0),
        ("where", "int8", 1, [300], 44),
        ("clip", "int8", 100, [0, 300], 44),
        ("clip", "int8", 100, [-1000, 1000], -24),
        ("maximum", "uint8", 1, [-1], 255),
        ("clip", "uint8", 5, [-1, 1.5], 1.5),  # the lower bound is 255
        ("pow", "int8", 3, [5], -13),
        ("pow", "int8", 3, [200], -95),
        ("pow", "uint64", 3, [2**70], 1),
        ("pow", "bool", True, [300], 1),
    ],
)
def test_literals_wrap_and_round(op: str, dtype: str, value: Any, literals: Any, result: Any):
    assert valued(JAX, op, dtype, value, *literals) == result


@every(
    ("rules", "op", "dtype", "literal", "why"),
    [
        (JAX, "add", "uint64", 2**63, "64 bits"),
        (JAX, "add", "float64", 2**70, "64 bits"),
        (JAX_STRICT, "add", "int8", -(2**63) - 1, "64 bits"),
        (JAX_X32, "add", "int8", 2**31, "32 bits of an int under 'jax_x32'"),
        (JAX_X32, "add", "float32", 2**40, "32 bits"),
        (JAX_X32, "less", "int64", -(2**31) - 1, "32 bits"),
        (JAX, "pow", "int8", -1, "negative power -1; write -1.0, or cast the int8"),
        (JAX, "pow", "float32", 2**63 + 1, "64 bits"),
    ],
)
def test_literals_refused(rules: PromotionRules, op: str, dtype: str, literal: int, why: str):
    with pytest.raises(GraphirError, match=why):
        valued(rules, op, dtype, 1, literal)


def test_the_least_ints_fit():
    assert valued(JAX, "add", "int64", 0, -(2**63)) == -(2**63)
    assert valued(JAX_X32, "add", "int32", 0, -(2**31)) == -(2**31)


def test_numpy_scalars_are_strong():
    assert JAX.promote("float32", np.float64(1)) is DType.float64
    assert JAX_X32.promote("float32", np.float64(1)) is DType.float32
    assert JAX_STRICT.answer("float32", np.float64(1)) is None
    assert JAX.promote("float32", np.True_) is DType.float32


# -- refusals


@every("rules", [JAX_STRICT, JAX_LAX])
def test_a_refused_pair_names_the_dtypes_the_rules_and_both_ways_out(rules: PromotionRules):
    with pytest.raises(PromotionError) as refused:
        rules.promote("int32", "int8")
    for part in ("int32 and int8", repr(rules.name), ".cast(DType.int32)", "rules='jax'"):
        assert part in str(refused.value)


def test_refused_pairs_are_in_the_table():
    table = JAX_STRICT.table()
    assert table[DType.int32][DType.int8] is table[DType.bool][DType.weak_int] is None
    assert {NAMED[found] for row in JAX_STRICT.table().values() for found in row.values()} > {"-"}
    assert all(found for row in JAX_2020.table().values() for found in row.values())


def test_refusals_say_what_to_do():
    for rules, op, dtypes, why in (
        (JAX, "clip", "c64 c64 c64", "no order; take .real"),
        (JAX, "sqrt", "i2", r"takes no int2 .* \.cast\(DType.int8\)"),
        (JAX, "scatter", "f32 c64", "would drop the imaginary part"),
        (JAX_STRICT, "scatter", "i8 f32", "int8 and float32 do not promote"),
        (JAX_LAX, "add", "bool bool", "use | or &"),
        (JAX_LAX, "real", "f32", "takes complex numbers"),
        (JAX_LAX, "is_finite", "i8", r"cast first, for example \.cast\(DType.float32\)"),
        (JAX_2020, "add", "i4 i4", "JAX has no int4"),
    ):
        g = Graph(rules=rules)
        indices = [np.zeros(SHAPE, np.int64)] if op == "scatter" else []
        with pytest.raises(PromotionError, match=why):
            made = [g.input(SHORT[dtype], SHAPE) for dtype in dtypes.split()]
            ops.CATALOGUE[op](*made, *indices)


@every("name", ["jax", "jax_x32"])
def test_exponents_beyond_ints_of_floats(name: str):
    """JAX multiplies by any int; a float to a large even power is 0, 1 or infinity."""
    g = Graph(rules=name)
    x = g.input("float32", (4,))
    g.output(x ** (2**64))
    assert g.outputs[0].dtype is DType.float32
    assert runtime.interpret(g, np.float32([0.5, -1, 2, 0])).tolist() == [0, 1, np.inf, 0]
    with pytest.raises(PromotionError):
        x ** (2**64 + 1)
