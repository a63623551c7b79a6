"""The rule sets: MAX's tables as printed and as measured, literals, questions, and the registry."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from graphir import (
    DType,
    Graph,
    GraphError,
    GraphirError,
    PromotionError,
    TensorType,
    rules,
)
from graphir.promotion.rules import fits
from tests import GOLDEN
from tests.support.tables import every

PRINTED: dict[str, Any] = json.loads((GOLDEN / "max.json").read_text())
TODAY: dict[str, str] = json.loads((GOLDEN / "max_today.json").read_text())["add"]
NAMES: list[str] = PRINTED["dtypes"]
MAX, STRICT = rules("max"), rules("max_strict")
# The cells that contradict the lattice they are printed with, and what its join is.
WRONG_CELLS = {
    ("bool", "index"): ("int64", "uint64"),
    ("bool", "address"): ("int64", "uint64"),
    ("int8", "index"): ("index", "float16"),
    ("int8", "address"): ("address", "float16"),
}
STANDARD = [n for n in NAMES if n not in ("index", "address", "tensor_float32")]
NARROW = [key.split("|")[1] for key in TODAY if key.startswith("bool|float") and "_e" in key]
LITERALS = {
    "py_bool_True": True,
    "py_int_1": 1,
    "py_int_-1": -1,
    "py_int_200": 200,
    "py_int_70000": 70000,
    "py_int_2**24+1": 2**24 + 1,
    "py_int_2**63": 2**63,
    "py_float_1.0": 1.0,
    "py_float_0.1": 0.1,
    "py_float_1e40": 1e40,
    "py_float_nan": float("nan"),
    "py_complex": 1j,
}


# -- MAX as printed


def test_max_has_the_16_printed_dtypes():
    assert len(NAMES) == 16
    assert sorted(map(str, MAX.dtypes)) == sorted(NAMES)


def test_max_is_its_printed_table_but_for_four_cells():
    different = {
        (a, b): (PRINTED["table"][a][b], str(MAX.promote(a, b)))
        for a, b in product(NAMES, NAMES)
        if str(MAX.promote(a, b)) != PRINTED["table"][a][b]
    }
    assert different == WRONG_CELLS


@every("cell", WRONG_CELLS)
def test_the_mirrored_cells_are_printed_right(cell: tuple[str, str]):
    low, high = cell
    assert PRINTED["table"][high][low] == WRONG_CELLS[cell][1]


def test_max_is_a_total_join_over_all_4096_triples():
    join = {(a, b): MAX.promote(a, b) for a, b in product(MAX.dtypes, MAX.dtypes)}
    for a, b, c in product(MAX.dtypes, repeat=3):
        assert join[join[a, b], c] is join[a, join[b, c]] is MAX.promote(a, b, c), (a, b, c)
    for a, b in join:
        assert join[a, b] is join[b, a]
    assert all(join[a, a] is a for a in MAX.dtypes)
    assert MAX.lattice is not None and MAX.lattice.laws() == []


def test_table_holds_all_pairs():
    table = MAX.table()
    cells = [str(table[DType(a)][DType(b)]) for a, b in product(NAMES, NAMES)]
    assert cells == [str(MAX.promote(a, b)) for a, b in product(NAMES, NAMES)]
    strict = STRICT.table()
    for a, b in product(STANDARD, STANDARD):
        printed = TODAY[f"{a}|{b}"]
        assert str(strict[DType(a)][DType(b)]) == ("None" if "ERROR" in printed else printed)


@every("dtype", [d for d in DType if str(d) not in NAMES])
def test_a_dtype_outside_the_lattice_raises_when_mixed_but_not_with_itself(dtype: DType):
    assert MAX.promote(dtype, dtype) is dtype
    for other in MAX.dtypes:
        with pytest.raises(PromotionError, match=rf"'max'.*{dtype} is not in its lattice.*cast"):
            MAX.promote(dtype, other)


# -- MAX as measured


def measured(lhs: str, rhs: str) -> None:
    wanted, values = TODAY[f"{lhs}|{rhs}"], [LITERALS.get(n, n) for n in (lhs, rhs)]
    if wanted.startswith("ERROR"):
        with pytest.raises(PromotionError):
            STRICT.promote(*values)
    else:
        assert str(STRICT.promote(*values)) == wanted


def test_what_was_measured_is_all_here():
    assert len(STANDARD) == 13 and len(NARROW) == 8
    assert len(TODAY) == 21 * 21 + 2 * 21 * len(LITERALS)


@every("rhs", STANDARD)
@every("lhs", STANDARD)
def test_strict_is_max_of_today_on_standard_pairs(lhs: str, rhs: str):
    measured(lhs, rhs)


@every("narrow", NARROW)
def test_strict_is_max_of_today_on_narrow_floats(narrow: str):
    for other in STANDARD + NARROW:
        measured(narrow, other)
        measured(other, narrow)


@every("literal", LITERALS)
@every("dtype", STANDARD + NARROW)
def test_strict_is_max_of_today_on_python_scalars_in_both_orders(dtype: str, literal: str):
    measured(dtype, literal)
    measured(literal, dtype)


@every("name", ["index", "address", "tensor_float32"])
def test_strict_knows_none_of_the_dtypes_that_max_dropped(name: str):
    with pytest.raises(PromotionError, match=name):
        STRICT.promote(name, "float32")
    with pytest.raises(PromotionError, match=f"MAX has no {name}"):
        STRICT.promote(name, name)


def test_strict_filters_after_all_have_joined():
    # uint8 with int8 is refused; int16 holds both, so the three together are not.
    with pytest.raises(PromotionError, match="int8, which does not hold 128 of uint8"):
        STRICT.promote("uint8", "int8")
    assert STRICT.promote("uint8", "int8", "int16") is DType.int16
    assert STRICT.promote("int16", "uint8", "int8") is DType.int16
    with pytest.raises(PromotionError, match=r"float32.*16777217 of int32"):
        STRICT.promote("int32", "float32")
    assert STRICT.promote("int32", "float32", "float64") is DType.float64


@every("lhs", ["int8", "uint16", "float16"])
@every("rhs", ["int8", "uint16", "float16"])
def test_a_graph_under_strict_rules_agrees_with_the_measurement(lhs: str, rhs: str):
    g = Graph(rules="max_strict")
    x, y = g.input(lhs), g.input(rhs)
    wanted = TODAY[f"{lhs}|{rhs}"]
    if wanted.startswith("ERROR"):
        with pytest.raises(PromotionError, match=rf"add.*{lhs}.*{rhs}"):
            _ = x + y
    else:
        assert str((x + y).dtype) == wanted


@every("name", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_strict_takes_ints_up_to_the_greatest_value_of_a_narrow_float(name: str):
    top = int(ml_dtypes.finfo(DType(name).storage).max)
    for value in (top, -top):
        assert STRICT.promote(name, value) is DType(name)
        with pytest.raises(PromotionError, match="does not fit"):
            STRICT.promote(name, value + (1 if value > 0 else -1))


def test_strict_takes_the_ints_that_a_scale_format_has():
    assert STRICT.promote("float8_e8m0fnu", 2**127) is DType.float8_e8m0fnu
    for value in (-1, 0, 2**127 + 1):
        with pytest.raises(PromotionError):
            STRICT.promote("float8_e8m0fnu", value)


# -- literals under max


@every("dtype", [d for d in MAX.dtypes if d.is_float])
def test_ints_fit_a_float_up_to_its_exact_range(dtype: DType):
    # tensor_float32 has the significand of float16.
    same = DType.float16 if dtype is DType.tensor_float32 else dtype
    edge = 2 ** (int(ml_dtypes.finfo(same.storage).nmant) + 1)
    for value in (0, edge, -edge):
        assert MAX.promote(dtype, value) is MAX.promote(value, dtype) is dtype
    for value in (edge + 1, -edge - 1, 2**200):
        with pytest.raises(PromotionError, match=f"{value} does not fit {dtype} under 'max'"):
            MAX.promote(dtype, value)


@every("dtype", [d for d in MAX.dtypes if d.is_integer])
def test_ints_fit_an_integer_dtype_within_its_limits(dtype: DType):
    info = np.iinfo(dtype.storage)
    for value in (int(info.min), int(info.max), True, False):
        assert MAX.promote(dtype, value) is dtype
    for value in (int(info.min) - 1, int(info.max) + 1, 1.0, 0.0, 1j):
        with pytest.raises(PromotionError, match=rf"does not fit {dtype}.*cast.*g\.scalar"):
            MAX.promote(dtype, value)


@every(
    ("dtype", "value", "other"),
    [
        *(("int8", 1.5, "float16"), ("int64", 1.5, "float64"), ("bool", 2, "int8")),
        *(("int8", 300, "int16"), ("uint8", -1, "int16"), ("float16", 1e6, "float32")),
    ],
)
def test_the_way_out_for_a_literal_can_be_typed(dtype: str, value: Any, other: str):
    g = Graph(rules=MAX)
    x = g.input(dtype, "n")
    with pytest.raises(PromotionError) as caught:
        x * value
    said = str(caught.value)
    assert f".cast(DType.{other})" in said and f"g.scalar({value!r}, DType.{other})" in said
    assert (x.cast(other) * value).dtype is (x * g.scalar(value, other)).dtype is DType(other)


@every("name", ["float16", "bfloat16", "float32"])
def test_floats_fit_where_they_stay_finite(name: str):
    dtype = DType(name)
    info = ml_dtypes.finfo(dtype.storage)
    top = float(info.max)
    half_a_step = (top - float(np.nextafter(info.max, info.max.dtype.type(0)))) / 2
    for value in (0.1, top, -top, np.nextafter(top + half_a_step, 0).item(), float("inf"), 1e-300):
        assert fits(value, dtype) and MAX.promote(dtype, value) is dtype
    for value in (top + half_a_step, -top - half_a_step, 1e300):
        with pytest.raises(PromotionError, match=f"does not fit {dtype}"):
            MAX.promote(dtype, value)
    assert MAX.promote(dtype, float("nan")) is dtype


def test_floats_that_a_scale_format_has_not_do_not_fit():
    e8m0 = DType.float8_e8m0fnu
    assert fits(1.0, e8m0) and fits(0.5, e8m0) and fits(float("nan"), e8m0)
    assert not fits(-1.0, e8m0) and not fits(0.0, e8m0)
    assert not fits(0, e8m0) and not fits(False, e8m0)


def test_complex_literals_fit_complex_dtypes_only():
    assert MAX.promote("complex64", 1j) is DType.complex64
    assert MAX.promote("complex64", 2) is DType.complex64
    complex_ = "it is complex; choose a complex dtype"
    for value, dtype, why in (
        *((1j, dtype, complex_) for dtype in ("float32", "int8", "bool")),
        (1e300j, "complex64", "it is out of range"),
    ):
        with pytest.raises(PromotionError, match=rf"does not fit {dtype} under 'max': {why}"):
            MAX.promote(dtype, value)


@every("values", [(1,), (1, 2), (1, 2.5), (True, 1j)])
def test_literals_alone_have_no_dtype(values: tuple[Any, ...]):
    with pytest.raises(PromotionError, match=r"no dtype of its own under 'max'.*g\.scalar"):
        MAX.promote(*values)


def test_bool_takes_bools_and_the_ints_0_and_1():
    assert MAX.promote("bool", True) is MAX.promote("bool", 1) is DType.bool
    for value in (2, -1, 1.0):
        with pytest.raises(PromotionError):
            MAX.promote("bool", value)


# -- the operands of promote, and its explanation


@every(
    "operand",
    [
        *("int16", "i16", DType.int16, np.dtype("int16"), np.int16, np.int16(7)),
        *(np.array([7], np.int16), TensorType("int16", ("n",)), Graph().input("int16")),
    ],
)
def test_operands_may_be_dtypes_types_arrays_and_symbols(operand: Any):
    assert MAX.promote(operand, DType.float32) is DType.float32
    assert MAX.promote("uint8", operand) is DType.int16


def test_numpy_scalars_are_strong_and_python_scalars_weak():
    assert MAX.promote("float32", np.float64(0.1)) is DType.float64
    assert MAX.promote("float32", 0.1) is DType.float32
    assert MAX.promote("int8", np.bool_(True)) is DType.int8
    assert MAX.promote("bool", np.int64(1)) is DType.int64


def test_the_python_types_stand_for_weak_dtypes():
    assert rules("python").promote(int, float) is DType.weak_float
    assert rules("python").promote(bool, bool) is DType.bool
    assert rules("python").promote(1, 2.5) is DType.weak_float
    assert rules("python").promote(True, 1) is DType.weak_int
    assert rules("python").promote(1, 2j) is DType.weak_complex


@every("wrong", ["int17", object(), "M8[s]"])
def test_an_operand_without_a_dtype_is_an_error(wrong: object):
    with pytest.raises(GraphError, match="no dtype"):
        MAX.promote("int8", wrong)


def test_promotion_needs_an_operand():
    with pytest.raises(PromotionError, match="at least one operand"):
        MAX.promote()


def test_explain_shows_both_paths_and_what_is_lost():
    told = MAX.explain("int16", "float32")
    assert told.result is DType.float32
    up = "int16 int32 int64 float16 bfloat16 float32"
    assert [" ".join(map(str, path)) for path in told.paths] == [up, "float32"]
    assert told.witnesses == (None, None)
    text = str(told)
    assert "int16 and float32 promote to float32 under 'max'" in text
    assert "int16 -> int32 -> int64 -> float16 -> bfloat16 -> float32: exact" in text
    assert "loses values, the simplest is 257" in str(MAX.explain("int32", "bfloat16"))


def test_explain_of_what_does_not_mix_raises_as_promote_does():
    with pytest.raises(PromotionError, match="16777217"):
        STRICT.explain("int32", "float32")
    assert MAX.explain("int8", 3).result is DType.int8


@every("rule_set", ["numpy", "cupy", "dask"])
def test_promote_and_explain_refuse_the_literals_that_addition_refuses(rule_set: str):
    chosen = rules(rule_set)
    for dtype in chosen.dtypes:
        for literal in (True, 3, 300, -1, 2**40, 2**63, 2**64, -(2**63) - 1, 1.5, 1e300, 1j):
            x = Graph(rules=chosen).input(dtype, (2,))
            for ask in (chosen.promote, chosen.explain):
                try:
                    added: Any = (x + literal).dtype
                except GraphirError:
                    with pytest.raises(GraphirError):
                        ask(dtype, literal)
                else:
                    told = ask(dtype, literal)
                    assert getattr(told, "result", told) is added, (dtype, literal)


@every(
    ("literal", "dtype", "advice"),
    [
        (1.5, "int32", "it is a float; choose a float dtype"),
        (2.0, "int32", "it is a float; write 2, or choose a float dtype"),
        (1j, "float32", "it is complex; choose a complex dtype"),
    ],
)
def test_the_advice_for_a_literal_that_does_not_fit_keeps_its_value(
    literal: Any, dtype: str, advice: str
):
    with pytest.raises(PromotionError, match=f"does not fit {dtype} under 'max': {advice}"):
        rules("max").promote(dtype, literal)
