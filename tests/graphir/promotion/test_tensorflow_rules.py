"""The rules of TensorFlow and its three modes: tables as printed and measured, and surprises."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from graphir import DType, Graph, PromotionError, PromotionRules, ops
from graphir.passes import lower
from graphir.promotion.tensorflow import TENSORFLOW
from graphir.promotion.tensorflow_modes import TF_ALL, TF_SAFE
from graphir.runtime import execute, interpret
from tests import GOLDEN
from tests.peers import CALLS, ours
from tests.support import tables
from tests.support.tables import every, sampled

PRINTED: dict[str, Any] = json.loads((GOLDEN / "tensorflow.json").read_text())
SHORT = {dtype.short: dtype for dtype in DType}
TABLES: dict[str, PromotionRules] = {"add": TENSORFLOW, "all": TF_ALL, "safe": TF_SAFE}
SCALARS: dict[str, Any] = {"i*": 1, "f*": 1.5, "c*": 1j}
STRONG = tuple(dtype for dtype in TENSORFLOW.dtypes if not dtype.weak)
INTS = tuple(dtype for dtype in STRONG if dtype.is_integer)


def cells(table: str) -> dict[tuple[str, str], DType | None]:
    """A golden table: by row and column, the dtype, or None where there is `-`."""
    return {pair: SHORT.get(cell) for pair, cell in tables.cells(PRINTED[table]).items()}


# -- the tables


@every("table", TABLES)
def test_the_table_cell_by_cell(table: str):
    asked = cells(table)
    assert len(asked) == 18 * 18 == len(TABLES[table].dtypes) ** 2
    for (row, column), expected in asked.items():
        assert TABLES[table].answer(SHORT[row], SHORT[column]) is expected, (row, column)


@every("table", TABLES)
def test_add_is_what_the_table_says_with_literals_on_either_side(table: str):
    for (row, column), expected in cells(table).items():
        pair = [SCALARS.get(name) or (SHORT[name], (2,)) for name in (row, column)]
        if any(isinstance(one, tuple) for one in pair) and (row, column) != ("bool", "bool"):
            if table == "add" and row in SCALARS:  # 1 + x is what x + 1 is
                expected = cells(table)[column, row]
            if {row, column} == {"bool", "f*"} and expected:
                expected = DType.float32  # a weak one in TensorFlow, as that of an integer is not
            assert ours(TABLES[table], "add", *pair) is expected, (row, column)


def test_the_first_operand_decides_in_the_table_alone():
    assert TENSORFLOW.promote(DType.int8, DType.weak_int) is DType.int8
    with pytest.raises(PromotionError, match="comes first is int32; write it second"):
        TENSORFLOW.promote(DType.weak_int, DType.int8)
    x = Graph(rules=TENSORFLOW).input(DType.int8, (2,))
    for pair in ((DType.int8, int), (int, DType.int8), (1, DType.int8), (1, x), (np.int64(1), x)):
        assert TENSORFLOW.promote(*pair) is DType.int8
    for made in (x + 1, 1 + x, 1 - x, 2 * x, ops.maximum(1, x), ops.add(1, x)):
        assert made.dtype is DType.int8


def test_the_order_of_three_counts_in_safe():
    i8, u8, i16 = DType.int8, DType.uint8, DType.int16
    assert TF_SAFE.promote(i8, i16, u8) is TF_ALL.promote(i8, u8, i16) is i16
    assert TF_SAFE.answer(i8, u8, i16) is None


# -- ops


def symbols(rules: PromotionRules, *dtypes: DType) -> Any:
    """Inputs of one graph, by their short names."""
    g = Graph(rules=rules)
    return SimpleNamespace(g=g, **{dtype.short: g.input(dtype, (2,)) for dtype in dtypes})


REFUSED: list[Callable[[Any], Any]] = [
    lambda a: a.i8 + a.i16,
    lambda a: a.bool + a.bool,
    lambda a: a.bool + 1,
    lambda a: a.i8 + 1.5,
    lambda a: a.i8 + True,
    lambda a: -a.u8,
    lambda a: abs(a.u8),
    lambda a: a.u8**a.u8,
    lambda a: ops.floor(a.i8),
    lambda a: ops.sin(a.i32),
    lambda a: ops.is_nan(a.i32),
    lambda a: ops.var(a.i32),
    lambda a: ops.mean(a.i32),
    lambda a: ops.matmul(a.i8, a.i8),
    lambda a: ops.tile(a.u16, (2,)),
    lambda a: ops.where(a.i8, a.i8, a.i8),
    lambda a: ops.any(a.i8),
    lambda a: a.bool < a.bool,
    lambda a: ops.as_complex(a.bf16, a.bf16),
    lambda a: ops.nextafter(a.f16, a.f16),
]


@every("call", REFUSED)
def test_what_is_refused_names_a_cast(call: Callable[[Any], Any]):
    operands = symbols(TENSORFLOW, *STRONG)
    with pytest.raises(PromotionError, match="'tensorflow'") as error:
        call(operands)
    assert "cast" in str(error.value)


def test_ops_keep_the_dtype_but_division():
    a = symbols(TENSORFLOW, *STRONG)
    for op in (ops.sum, ops.cumulative_prod, ops.max, ops.sign, ops.round, ops.conj):
        assert op(a.i8).dtype is DType.int8
    assert (a.u16 / 2).dtype is DType.float32 and (a.i32 / a.i32).dtype is DType.float64
    assert ops.imag(a.bool).dtype is DType.bool and ops.real(a.c64).dtype is DType.float32
    assert ops.argmax(a.f32).dtype is DType.int64
    assert ops.argsort(a.f32).dtype is ops.searchsorted(a.f32, a.f32).dtype is DType.int32
    assert ops.shape_of(a.f32).dtype is DType.int32
    assert ops.matmul(a.bf16, a.f32).dtype is ops.matmul(a.f32, a.bf16).dtype is DType.float32


@every("rules", [TF_ALL, TF_SAFE])
def test_twelve_ops_promote_and_the_others_do_not(rules: PromotionRules):
    a = symbols(rules, *STRONG)
    assert (a.i8 + a.i16).dtype is DType.int16 and (a.u8 == a.f32).dtype is DType.bool
    assert ops.maximum(a.bool, a.i8).dtype is DType.int8
    refused = {
        "not_equal": lambda: a.i8 != a.i16,
        "less": lambda: a.i8 < a.i16,
        "bitwise_and": lambda: a.i8 & a.i16,
        "where": lambda: ops.where(a.bool, a.i8, a.i16),
        "concat": lambda: ops.concat([a.i8, a.i16]),
        "atan2": lambda: ops.atan2(a.f16, a.f32),
    }
    for name, call in refused.items():
        lhs, rhs = ("float16", "float32") if name == "atan2" else ("int8", "int16")
        cause = rf"{name}\(.*: {lhs} and {rhs} do not promote under '{rules.name}'"
        with pytest.raises(PromotionError, match=cause):
            call()


def test_weak_results_and_those_that_commit():
    a = symbols(TF_ALL, *STRONG)
    weak = a.i8 + 1.5
    assert weak.dtype is (-weak).dtype is ops.sum(weak).dtype is DType.weak_float
    assert (weak + a.f16).dtype is DType.float16 and (a.i8 / a.i8).dtype is DType.float32
    assert ops.maximum(a.i8, 1.5).dtype is ops.clip(a.i8, 0.5, 1.5).dtype is DType.float64
    assert ops.maximum(a.i8, 1).dtype is DType.int8 and ops.clip(a.bool, 0, 1).dtype is DType.int32
    assert ops.relu(weak).dtype is ops.softmax(weak).dtype is DType.float64
    assert ops.maximum(weak, 1.5).dtype is DType.float64
    assert (a.bool + 1.5).dtype is ops.maximum(a.bool, 1.5).dtype is DType.float32
    assert (a.bool + weak).dtype is (a.bool / 2).dtype is abs(a.bool + 1j).dtype is DType.weak_float
    with pytest.raises(PromotionError, match=r"weak_float.*not safe for both"):
        symbols(TF_SAFE, DType.int8).i8 + 1.5


# -- literals


@every(
    ("dtype", "value", "literal", "expected"),
    [
        (DType.int8, 1, 300, 45),
        (DType.uint8, 1, -2, 255),
        (DType.int32, 1, 2**31 - 1, -(2**31)),
        (DType.uint64, 1, 2**63, 2**63 + 1),
        (DType.int32, 1, True, 2),
        (DType.float16, 1, 65520.0, float("inf")),
        (DType.float32, 0, 2**24 + 1, 2.0**24),
        (DType.complex64, 1, 2j, 1 + 2j),
    ],
)
def test_literals_wrap_and_round(dtype: DType, value: Any, literal: Any, expected: Any):
    for rules in (TENSORFLOW, TF_ALL):
        if rules is TENSORFLOW or not isinstance(literal, int) or literal < 2**31:
            g = Graph(rules=rules)
            g.output(g.input(dtype, (1,)) + literal)
            found = interpret(g, np.full(1, value, dtype.storage))
            assert found.dtype == dtype.storage and found[0] == expected


@every(
    ("call", "expected"),
    [
        (lambda a: a.i32 + 0.1, np.float64([3.1, -0.9])),
        (lambda a: a.i32 / 2, np.float64([1.5, -0.5])),
        (lambda a: a.bool / 2, np.float64([0.5, 0])),
        (lambda a: a.bool + 0.1, np.float32([1.1, 0.1])),
        (lambda a: ops.sum(a.i32 * 0.1), np.float64(3 * 0.1 - 0.1)),
        (lambda a: a.i32 * 0.1 + a.f32, np.float32([1.8, 1.9])),
        (lambda a: ops.where(a.bool, 0.1, 0.2), np.float32([0.1, 0.2])),
        (lambda a: a.bool * a.i32, np.array([True, False])),
    ],
)
def test_values_where_weak_floats_meet(call: Callable[[Any], Any], expected: Any):
    """As TensorFlow 2.21 in its mode "all" has them."""
    a = symbols(TF_ALL, DType.bool, DType.int32, DType.float32)
    a.g.output(call(a))
    given = {"x0": np.array([True, False]), "x1": np.int32([3, -1]), "x2": np.float32([1.5, 2])}
    found = [interpret(g, **given) for g in (a.g, lower(a.g))]
    for one in found:
        assert one.dtype == expected.dtype
        np.testing.assert_array_equal(one, expected)


@every("rules", TABLES.values())
def test_a_mask_times_what_int32_keeps_is_a_mask(rules: PromotionRules):
    a = symbols(rules, DType.bool, DType.uint32, DType.int64, DType.float32)
    for made in (a.bool * a.bool, a.bool * True, a.bool * 2, a.u32 * a.bool):
        assert made.dtype is DType.bool
    for call, other in (
        (lambda: a.bool * a.i64, "int64"),
        (lambda: a.f32 * a.bool, "float32"),
        (lambda: a.bool * 0.5, "float32"),
    ):
        near = rf"0\.5 and 2\*\*32.*cast the bool.*\.cast\(DType\.{other}\)"
        with pytest.raises(PromotionError, match=near):
            call()


def test_the_mean_of_integers_is_refused_and_how_to_have_it_works():
    a = symbols(TENSORFLOW, DType.int8)
    with pytest.raises(PromotionError, match=r"the mean of int8 is int8 .* fraction cut off"):
        ops.mean(a.i8)
    mean = ops.mean(a.i8.cast(DType.float64))
    a.g.output(mean, ops.trunc(mean).cast(DType.int8))
    assert [float(x) for x in interpret(a.g, np.int8([3, -8]))] == [-2.5, -2]  # tf.reduce_mean: -2


def test_an_int_literal_has_32_bits_where_ops_promote():
    a = symbols(TF_ALL, DType.int64)
    with pytest.raises(PromotionError, match="does not fit int32"):
        a.i64 + 2**31
    assert (a.i64 < 2**31).dtype is DType.bool
    assert (symbols(TENSORFLOW, DType.int64).i64 + 2**31).dtype is DType.int64


def test_numpy_arrays_are_cast_to_the_dtype_of_the_tensor():
    """As TensorFlow 2.21 has it, and where it promotes only of ops that do not."""
    a = symbols(TENSORFLOW, DType.int8, DType.float32)
    wide, half = np.array([1, 300]), np.array([1.5, 0.5])
    assert ops.where(np.array([True, False]), half, a.f32).dtype is (a.f32 + wide).dtype
    assert (half + a.f32).dtype is (a.f32 + np.float64(1)).dtype is DType.float32
    a.g.output(a.i8 + wide, a.i8 + np.float64(1.5), wide < a.i8)
    found = interpret(a.g, np.int8([3, 7]), np.float32([0, 0]))
    assert [x.tolist() for x in found] == [[4, 51], [4, 8], [True, False]]
    with pytest.raises(PromotionError, match=r"imaginary part; take \.real"):
        a.f32 + np.array([1j, 2])
    with pytest.raises(PromotionError, match="float32 and float64 do not promote"):
        ops.tensordot(a.f32, half, 1)
    assert TENSORFLOW.promote(DType.int8, half) is TENSORFLOW.promote(half, a.i8) is DType.int8
    b = symbols(TF_ALL, DType.int8, DType.float32)
    assert (b.i8 + wide).dtype is DType.int64 and (b.f32 + half).dtype is DType.float64
    assert ops.stack([half, b.f32]).dtype is DType.float32 and (b.i8 < wide).dtype is DType.bool


def test_a_literal_alone():
    g = Graph(rules=TENSORFLOW)
    assert g.scalar(2**40).dtype is DType.int64
    with g:
        assert ops.add(1, 1).dtype is DType.int32 and ops.add(1.5, 1).dtype is DType.float32
        assert ops.negative(1j).dtype is DType.complex128


# -- afterwards


@sampled(3)
@every("rules", TABLES.values())
def test_all_that_is_accepted_is_accepted_once_it_is_explicit(rules: PromotionRules):
    count = 0
    for (name, call), dtype in product(CALLS.items(), rules.dtypes):
        g, dtypes = Graph(rules=rules), [dtype] * len(call.free)
        if (result := ours(rules, name, *call.operands(*dtypes))) is None:
            continue
        made = [g.input(*operand) for operand in call.operands(*dtypes)]
        op = ops.CATALOGUE[name]
        g.output(op(*([made] if op.variadic else made), **call.attrs))
        assert lower(g).outputs[0].dtype is rules.concrete_dtype(result)
        count += 1
    assert count > 900


# -- literals and NumPy's operands, as tensorflow-cpu 2.21 was measured to take them


@every("name", ["tensorflow", "tf_all", "tf_safe", "tf_legacy"])
@every(
    ("dtype", "build", "expected"),
    [
        ("int8", lambda x: x / 300, [3 / 44, -7 / 44]),
        ("int8", lambda x: 300 / x, [44 / 3, 44 / -7]),
        ("uint8", lambda x: x / -1, [3 / 255, 249 / 255]),
    ],
)
def test_an_int_literal_wraps_before_it_divides(name: str, dtype: str, build: Any, expected: Any):
    g = Graph(rules=name)
    g.output(build(g.input(dtype, 2)))
    result = execute(g, np.array([3, -7]).astype(dtype))
    assert result.dtype == np.float32
    assert np.array_equal(result, np.array(expected, np.float32))


def test_a_number_before_a_mask():
    for name, expected in (("tf_all", "bool"), ("tf_safe", "bool"), ("tf_legacy", "int64")):
        assert (5 * Graph(rules=name).input("bool", 2)).dtype is DType(expected)
    with pytest.raises(PromotionError, match="a number comes after its mask"):
        _ = 5 * Graph(rules="tensorflow").input("bool", 2)
    assert (Graph(rules="tensorflow").input("bool", 2) * 5).dtype is DType.bool


@every("name", ["tensorflow", "tf_all", "tf_safe", "tf_legacy"])
def test_a_numpy_bool_is_no_mask(name: str):
    for dtype in ("uint32", "int8", "float16"):
        x = Graph(rules=name).input(dtype, 2)
        assert (x * np.bool_(True)).dtype is (x * np.array([True, False])).dtype is x.dtype


def test_a_mask_takes_no_numpy_fraction():
    x = Graph(rules="tensorflow").input("bool", 2)
    with pytest.raises(PromotionError, match=r"0\.5 and 2\*\*32 would count as False"):
        _ = x * np.array([0.5, 1.5])


def test_tf_safe_casts_arrays_but_no_unsafe_scalar():
    x = Graph(rules="tf_safe").input("int8", 2)
    for build in (
        lambda y: x < y,
        lambda y: ops.where(x > 0, x, y),
        lambda y: ops.left_shift(x, y),
    ):
        assert build(np.array([1, 2], np.uint8)).graph is x.graph
        assert build(np.int64(1)).graph is x.graph
        with pytest.raises(PromotionError, match=r"int8 and uint8 do not promote.*not safe"):
            build(np.uint8(1))


# -- the mode "legacy", in which operators promote as NumPy does and functions do not


def test_tf_legacy_operators_promote_as_numpy():
    g = Graph(rules="tf_legacy")
    x, y, mask = g.input("int8", 2), g.input("float32", 2), g.input("bool", 2)
    half, brain = g.input("float16", 2), g.input("bfloat16", 2)
    assert [(x + y).dtype, (x / g.input("int32", 2)).dtype, (x * mask).dtype] == [
        *(DType.float32, DType.float64, DType.int8),
    ]
    assert [(mask + 1).dtype, (x + 1.5).dtype, (half + 1.5).dtype, (brain + 1.5).dtype] == [
        *(DType.int64, DType.float64, DType.float16, DType.float64),
    ]
    assert (x == g.input("int32", 2)).dtype is DType.bool
    with pytest.raises(PromotionError):
        ops.maximum(x, y)
    with pytest.raises(PromotionError, match="NumPy has no common dtype"):
        _ = half + brain
    with pytest.raises(PromotionError, match="TensorFlow casts no int2"):
        _ = x + g.input("int2", 2)
    assert (x + np.ones(2, np.int16)).dtype is DType.int16
    assert ops.maximum(x, np.ones(2, np.int16)).dtype is DType.int8


@every("dtype", [DType.int4, DType.uint4, DType.int8, DType.bfloat16])
def test_a_bool_literal_beside_what_tensorflow_does_not_convert_it_to_is_refused(dtype: DType):
    x = symbols(TENSORFLOW, dtype).g.inputs[0]
    for refused in (
        lambda: x * True,
        lambda: True * x,
        lambda: x + True,
        lambda: ops.maximum(x, True),
    ):
        with pytest.raises(PromotionError, match="True is not converted to"):
            refused()
