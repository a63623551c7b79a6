"""NumPy's rules, CuPy's and Dask's, without asking them: a measured table, and what surprises."""

from __future__ import annotations

import json
import math
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from graphir import DType, Graph, GraphError, GraphirError, PromotionError, ops
from graphir.passes import implicit_cast, lower
from graphir.promotion.numpy_ import CUPY, DASK, NUMPY
from graphir.runtime import interpret
from tests import GOLDEN
from tests.peers import CALLS, ours
from tests.support.tables import every

TABLES: dict[str, Any] = json.loads((GOLDEN / "numpy.json").read_text())
PYTHON = {"weak_int": int, "weak_float": float, "weak_complex": complex}
SHORT = {"i*": 1, "f*": 1.5, "c*": 1j}
DTYPES = NUMPY.dtypes


def short(name: str) -> Any:
    """A dtype by its short name, or a literal by that of its weak dtype."""
    return SHORT.get(name) or next(dtype for dtype in DType if dtype.short == name)


def answer(op: str, names: str, rules: Any = NUMPY) -> str:
    """The short name of the dtype of an op's result on vectors and literals; "-" where refused."""
    given = [(one, (2,)) if isinstance(one, DType) else one for one in map(short, names.split())]
    found = ours(rules, op, *given)
    return found.short if found else "-"


# -- joins


def test_every_cell_of_the_measured_table():
    """Python scalars by their types; bfloat16, for which NumPy has several answers, is refused."""
    table = TABLES["promotion"]
    for a, b in product(table, repeat=2):
        found = NUMPY.answer(PYTHON.get(a, a), PYTHON.get(b, b))
        assert (found and str(found)) == table[a][b], (a, b)
    assert len(table) == 18


@every(
    ("three", "result", "fold"),
    [
        ("int8 uint8 float16", "float16", "float32"),
        ("int8 uint16 float16", "float32", "float64"),
        ("int8 uint16 float32", "float32", "float64"),
        ("int16 uint16 float16", "float32", "float64"),
        ("int16 uint16 float32", "float32", "float64"),
        ("int8 uint16 complex64", "complex64", "complex128"),
        ("int16 uint16 complex64", "complex64", "complex128"),
    ],
)
def test_three_dtypes_do_not_join_as_pairs(three: str, result: str, fold: str):
    """The only seven: beside an inexact dtype each integer asks for a float by itself."""
    a, b, c = three.split()
    assert {NUMPY.promote(*order) for order in permutations((a, b, c))} == {DType(result)}
    assert NUMPY.promote(NUMPY.promote(a, b), c) is DType(fold)
    g = Graph(rules=NUMPY)
    assert ops.concat([g.input(one, (2,)) for one in (a, b, c)]).dtype is DType(result)


def test_a_join_is_a_join_of_its_literals_last():
    assert NUMPY.promote(True, 1, "int8") is DType.int8
    assert NUMPY.promote("bool", 1) is DType.int64
    assert NUMPY.promote("float32", 1, 2.5, 1j) is DType.complex64


@every("dtype", [DType.bfloat16, DType.int4, DType.float8_e5m2])
def test_types_of_ml_dtypes_are_refused_with_the_reason(dtype: DType):
    for ask in (lambda: NUMPY.promote(dtype, "int8"), lambda: Graph(rules=NUMPY).input(dtype)):
        with pytest.raises(PromotionError, match=f"no {dtype} under 'numpy'.* three different"):
            ask()
    with pytest.raises(PromotionError, match=r"NumPy has no index; write DType\.uint64"):
        NUMPY.promote("index", "int8")


def test_a_dtype_that_numpy_lacks_is_refused_wherever_it_is_asked_for():
    g = Graph(rules=NUMPY)
    x = g.input("int8", "n")
    asks = (
        *(lambda: g.input("int4"), lambda: g.scalar(1, "int4"), lambda: x.cast("int4")),
        *(lambda: x.sum(dtype="int4"), lambda: ops.argmax(x, dtype="int4")),
    )
    for ask in asks:
        with pytest.raises(PromotionError, match=r"no int4 under 'numpy'.*write DType\.int8, "):
            ask()


def test_a_path_has_no_lattice_and_says_what_is_lost():
    told = NUMPY.explain("int8", "uint64")
    assert told.result is DType.float64 and told.witnesses == (None, 2**53 + 1)


# -- ops


@every(
    ("op", "cases"),
    [
        ("add", {"bool bool": "bool", "i8 u8": "i16", "u64 i8": "f64", "f16 i16": "f32"}),
        ("subtract", {"bool bool": "-", "bool u8": "u8"}),
        ("negative", {"bool": "-", "u8": "u8"}),
        ("sign", {"bool": "-", "c64": "c64"}),
        ("pow", {"bool bool": "i8", "i8 i*": "i8", "i8 f*": "f64"}),
        ("floor_divide", {"bool bool": "i8", "c64 c64": "-"}),
        ("square", {"bool": "i8"}),
        ("conj", {"bool": "i8", "c64": "c64"}),
        ("reciprocal", {"bool": "i8", "i32": "i32", "u8": "u8"}),
        ("round", {"bool": "f16", "i8": "i8", "c64": "c64"}),
        ("floor", {"bool": "bool", "i32": "i32", "c64": "-"}),
        ("abs", {"bool": "bool", "c64": "f32"}),
        ("divide", {"bool bool": "f64", "i8 i8": "f64", "f16 i8": "f16", "f16 i*": "f16"}),
        ("sqrt", {"bool": "f16", "u8": "f16", "i16": "f32", "u32": "f64"}),
        (
            "atan2",
            {"i8 u8": "f16", "i8 u16": "f32", "i8 i*": "f16", "i8 f*": "f64", "c64 f32": "-"},
        ),
        ("left_shift", {"bool bool": "i8", "bool u8": "u8", "i8 u64": "-", "u64 i*": "u64"}),
        ("bitwise_and", {"bool bool": "bool", "i8 u64": "-", "f32 f32": "-"}),
        ("maximum", {"bool bool": "bool", "c64 f64": "c128"}),
        ("max", {"bool": "bool", "c64": "c64"}),
        ("argmax", {"c64": "i64"}),
        ("sum", {"bool": "i64", "i8": "i64", "u8": "u64", "f16": "f16"}),
        ("mean", {"bool": "f64", "i8": "f64", "f16": "f16"}),
        ("std", {"i8": "f64", "c64": "f32"}),
        ("any", {"c64": "bool"}),
        ("logical_and", {"c64 i8": "bool"}),
    ],
)
def test_what_ops_make_of_dtypes(op: str, cases: dict[str, str]):
    """As measured on NumPy 2.4.6; test_peer_numpy.py asks the installed one for all of it."""
    assert {names: answer(op, names) for names in cases} == cases


def test_a_condition_is_any_truth_value():
    g = Graph(rules=NUMPY)
    x = g.input("int8", (3,))
    g.output(ops.where(g.input("float32", (3,)), x, 0))
    found = interpret(g, np.array([1, 2, 3], np.int8), np.array([0.5, 0, np.nan], np.float32))
    assert found.tolist() == [1, 0, 3] and found.dtype == np.int8


def test_scatter_keeps_the_dtype_that_it_puts_into():
    at = (DType.int64, (2,))
    assert ours(NUMPY, "scatter", (DType.int8, (2,)), (DType.float64, (2,)), at) is DType.int8
    g = Graph(rules=NUMPY)
    with pytest.raises(PromotionError, match="would drop the imaginary part"):
        ops.scatter(g.input("float32", (2,)), g.input("complex64", (2,)), g.input("int64", (2,)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("rules", [NUMPY, CUPY, DASK], ids=lambda rules: rules.name)
def test_what_it_answers_lowers_to_the_same_dtype(rules: Any):
    for name, dtype in product(CALLS, DTYPES):
        g = Graph(rules=rules)
        call = CALLS[name]
        try:
            made: Any = [g.input(*one) for one in call.operands(*[dtype] * len(call.free))]
            op = ops.CATALOGUE[name]
            result = op(*([made] if op.variadic else made), **call.attrs)
        except GraphirError:
            continue
        g.output(result)
        lowered = lower(g, verify_each=True)
        assert lowered.outputs[0].type is result.type, (name, dtype)


# -- literals


def made(build: Any, dtype: str = "int8") -> Any:
    """What a graph builds from a vector of a dtype."""
    return build(Graph(rules=NUMPY).input(dtype, (2,)))


@every("value", [128, -129, 300, 2**63, 2**64 - 1])
def test_an_int_that_does_not_fit_is_refused_in_arithmetic(value: int):
    for build in (
        lambda x: x + value,
        lambda x: value - x,
        lambda x: x // value,
        lambda x: x**value,
        lambda x: x & value,
        lambda x: ops.maximum(x, value),
    ):
        with pytest.raises(PromotionError, match=rf"{value} does not fit int8 under 'numpy'"):
            made(build)
    assert made(lambda x: x == value).dtype is DType.bool
    assert made(lambda x: x / value).dtype is DType.float64
    assert made(lambda x: ops.atan2(x, value)).dtype is DType.float16


@every("value", [2**64, -(2**63) - 1, 10**30])
def test_an_int_of_more_than_64_bits_is_a_float_where_numpy_makes_one(value: int):
    """Beside integers only comparisons and functions of floats take it."""
    with pytest.raises(PromotionError, match="does not fit 64 bits"):
        made(lambda x: x + value, "int8")
    for dtype in ("float16", "float32", "complex64"):
        assert str(made(lambda x: x + value, dtype).dtype) == dtype
    assert made(lambda x: x < value, "int8").args[1].attrs["value"] == math.copysign(
        math.inf, value
    )
    assert made(lambda x: x / value, "int8").dtype is DType.float64
    assert made(lambda x: ops.atan2(x, value), "int8").dtype is DType.float16


def test_an_int_that_no_float_holds_is_refused_but_in_comparisons_with_integers():
    for value in (10**400, -(10**5000)):
        assert made(lambda x, v=value: x == v, "uint64").dtype is DType.bool
        for dtype in ("int8", "bool", "float64"):
            with pytest.raises(PromotionError, match=r"0x.* bits\) does not fit 64 bits"):
                made(lambda x, v=value: x + v, dtype)


def test_the_greatest_ints_enter_as_uint64_or_as_the_float_beside():
    for dtype, result in {
        "uint64": "uint64",
        "float16": "float16",
        "complex64": "complex64",
    }.items():
        total = made(lambda x: x + 2**63, dtype)
        assert total.dtype is total.args[1].dtype is DType(result)
    assert made(lambda x: x + 1).args[1].dtype is DType.weak_int


def test_integers_compare_in_64_bits_where_they_have_no_join():
    def compared(build: Any, dtype: str) -> list[str]:
        g = Graph(rules=NUMPY)
        g.output(build(g.input(dtype, (2,))))
        return [arg.dtype.short for arg in implicit_cast(g).outputs[0].args]

    assert compared(lambda x: x == 5, "int8") == ["i8", "i8"]
    assert compared(lambda x: x == 300, "int8") == ["i64", "i64"]
    assert compared(lambda x: x == -1, "uint64") == ["u64", "i64"]
    assert compared(lambda x: x < 2**63, "int8") == ["i64", "u64"]
    assert compared(lambda x: x == 2**53 + 1, "float32") == ["f32", "f32"]
    assert compared(lambda x: x == x.graph.input("int8", (2,)), "uint64") == ["u64", "i64"]


def test_where_refuses_a_literal_as_numpy_does_since_2_5():
    x = Graph(rules=NUMPY).input("uint8", (2,))
    for literal in (-1, 300):
        with pytest.raises(PromotionError, match=f"{literal} does not fit uint8"):
            ops.where(x != 0, literal, x)
    assert ops.where(x != 0, 255, x).dtype is DType.uint8


def test_a_literal_by_itself_has_the_dtype_of_its_array():
    g = Graph(rules=NUMPY)
    values = {True: "bool", 2: "int64", 2.5: "float64", 2j: "complex128", 2**63: "uint64"}
    assert {value: str(g.scalar(value).dtype) for value in values} == values
    assert (g.scalar(2) + g.input("int8", (2,))).dtype is DType.int64
    assert NUMPY.promote(int) is DType.int64
    with pytest.raises(GraphError, match="300 does not fit int8"):
        g.scalar[DType.int8](300)
    assert g.scalar[DType.float32](2**24 + 1).attrs["value"] == 2**24


# -- CuPy and Dask


@every("rules", [CUPY, DASK])
def test_cupy_and_dask_join_as_numpy(rules: Any):
    assert rules.table() == NUMPY.table()
    for a, literal in product(DTYPES, (True, 1, 1.5, 1j)):
        assert rules.promote(a, literal) is NUMPY.promote(a, literal)
    with pytest.raises(PromotionError, match=f"{rules.library} has no index"):
        rules.promote("index", "int8")


def test_where_cupy_and_dask_differ_from_numpy():
    """In ops on complex numbers and bool alone; Dask in tensordot, which sums in 64 bits.

    Dask's `+x` is x itself, of bool too, which NumPy refuses.
    """
    differing: dict[str, set[str]] = {}
    for name in ops.CATALOGUE:
        if name not in CALLS:
            continue
        for dtype in DTYPES:
            operands = CALLS[name].operands(*[dtype] * len(CALLS[name].free))
            usual = ours(NUMPY, name, *operands)
            if name == "tensordot":
                assert ours(DASK, name, *operands) is NUMPY.accumulation(dtype, name)
            elif (name, dtype) == ("positive", DType.bool):
                assert (ours(DASK, name, *operands), usual) == (DType.bool, None)
            else:
                assert ours(DASK, name, *operands) is usual
            if ours(CUPY, name, *operands) is not usual:
                differing.setdefault(name, set()).add(dtype.short)
    logical = ("logical_and", "logical_or", "logical_xor", "logical_not")
    assert differing == {op: {"c64", "c128"} for op in (*logical, "clip")} | {"sign": {"bool"}}
    assert answer("sign", "bool", CUPY) == "i8"
    assert answer("clip", "c64 c64 c64", CUPY) == answer("logical_and", "c64 i8", CUPY) == "-"
