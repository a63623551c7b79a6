"""The rule set "torch" without PyTorch: the tables as printed and measured, and what surprises."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from graphir import DType, Graph, GraphirError, PromotionError, TensorType, ops, passes, runtime
from graphir.promotion.torch import TORCH
from tests import GOLDEN
from tests.peers import CALLS, ours
from tests.support.tables import every, sampled

PRINTED: dict[str, Any] = json.loads((GOLDEN / "pytorch_jep.json").read_text())["table"]
MEASURED: dict[str, Any] = json.loads((GOLDEN / "torch.json").read_text())["promotion"]
UNSIGNED = ("uint16", "uint32", "uint64")
OF_2_13 = TORCH.of_release("2.13")  # of the tables
FLOATS = ("bfloat16", "float16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", *UNSIGNED)


def cells(table: dict[str, Any]) -> dict[tuple[str, str], str | None]:
    return {(a, b): found for a, row in table.items() for b, found in row.items()}


def both_ways(*pairs: tuple[str, str]) -> set[tuple[str, str]]:
    return {*pairs, *((b, a) for a, b in pairs)}


def promoted(a: str, b: str) -> str | None:
    found = OF_2_13.answer(DType(a), DType(b))
    return found and str(found)


def differing(table: dict[str, Any]) -> set[tuple[str, str]]:
    return {pair for pair, found in cells(table).items() if promoted(*pair) != found}


# Measured with `add`, which has no kernel for these; torch.result_type, `where` and `mul` do them.
WITHOUT_KERNEL = {(u, u) for u in UNSIGNED} | both_ways(*((u, "weak_int") for u in UNSIGNED))
# torch's result is complex32, which is none of graphir's dtypes.
COMPLEX32 = both_ways(("float16", "weak_complex"))
# The three had no promotion in 2021 and have it with floats, and with numbers of any kind, today.
NEW_SINCE_2021 = both_ways(
    *((u, other) for u in UNSIGNED for other in (*FLOATS, "weak_float", "weak_complex"))
)
# Two numbers alone had Python's dtypes in that table; torch.result_type gives them the default one.
TWO_NUMBERS = {("weak_float", "weak_float"), ("weak_complex", "weak_complex")}


def test_the_measured_table_cell_by_cell():
    assert len(cells(MEASURED)) == 324
    assert differing(MEASURED) == WITHOUT_KERNEL | COMPLEX32
    assert {cells(MEASURED)[pair] for pair in WITHOUT_KERNEL} == {None}
    assert {cells(MEASURED)[pair] for pair in COMPLEX32} == {"complex32"}
    assert {promoted(*pair) for pair in COMPLEX32} == {None}
    assert all(promoted(*pair) in pair for pair in WITHOUT_KERNEL)


def test_the_table_of_2021_cell_by_cell():
    since = NEW_SINCE_2021 | COMPLEX32 | TWO_NUMBERS
    assert len(since) == 40
    assert differing(PRINTED) == since | WITHOUT_KERNEL
    printed, measured = cells(PRINTED), cells(MEASURED)
    assert {pair for pair in printed if printed[pair] != measured[pair]} == since


def test_the_table_has_the_weak_dtypes_and_the_floats_of_8_bits():
    table = TORCH.table()
    assert {*map(DType, MEASURED)} < {*table}
    assert {str(d) for d in {*table} - {*map(DType, MEASURED)}} == {
        *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
    }


# -- the ladder


def operand(text: str) -> Any:
    """An operand: `i64` is n-d, `i64()` 0-d, and anything else a Python number."""
    if text.endswith("()"):
        return TensorType(SHORT[text[:-2]], ())
    return TensorType(SHORT[text], (2,)) if text in SHORT else NUMBERS[text]


SHORT = {dtype.short: dtype for dtype in DType}
NUMBERS = {"True": True, "1": 1, "1.5": 1.5, "1j": 1j, "2**63": 2**63}


@every(
    ("operands", "result"),
    [
        ("f64() f32", "f32"),
        ("f64() i8", "f64"),
        ("i64() i8", "i8"),
        ("i64() bool", "i64"),
        ("c128() f32", "c64"),
        ("c64() f64", "c128"),
        ("c128() i8", "c128"),
        ("i8 1", "i8"),
        ("i8 1.5", "f32"),
        ("i8 True", "i8"),
        ("bool 1", "i64"),
        ("f16 1.5", "f16"),
        ("f64() 1j", "c128"),
        ("bf16 1j", None),
        ("u16 1", "u16"),
        ("u16 1.5", "f32"),
        ("u16 i64()", "u16"),
        ("i8 u16()", "i8"),
        ("i8 2**63", "i8"),
        ("f8e5m2 f64()", "f8e5m2"),
        ("i64 f16", "f16"),
        ("f16 bf16", "f32"),
        ("f32 f16() 1j", "c64"),  # complex32 on the way
        ("i8 f32 u16", "f32"),
        ("f32 f8e5m2() 1j", None),
        ("i8 u16 f32", None),
        ("i8 u16", None),
        ("u16 u32", None),
        ("u16 c64", None),
        ("bool u16()", None),
        ("bool 2**63", None),
        ("f8e5m2 f32", None),
        ("i8 f8e5m2()", None),
        ("f8e5m2 1j", None),
        ("f16 1j", None),
        ("f16 c128()", None),
        ("i8() f16() 1j", None),
    ],
)
def test_ladder(operands: str, result: str | None):
    found = TORCH.answer(*map(operand, operands.split()))
    assert (found and found.short) == result


def test_refusals_say_why():
    for operands, why in (
        ("f16 1j", "complex32 or bcomplex32, which graphir does not have"),
        ("i8 u16", "uint16, uint32 and uint64 promote with floats alone"),
        ("f8e5m2 f32", "floats of 8 bits promote with none"),
        ("f8e5m2 1j", "8 bits have no complex form"),
        ("index i8", "PyTorch has no index"),
    ):
        with pytest.raises(PromotionError, match=why):
            TORCH.promote(*map(operand, operands.split()))


def test_a_path_is_the_lattices():
    path = TORCH.explain(DType.uint8, DType.int32).paths[0]
    assert [dtype.short for dtype in path] == ["u8", "i16", "i32"]


# -- ops


@every(
    ("call", "result"),
    [
        ("divide int8 int8", "float32"),
        ("sqrt int64", "float32"),
        ("mean int32", None),
        ("silu int32", None),
        ("square bool", "int64"),
        ("subtract bool bool", None),
        ("subtract float32 bool", None),
        ("sum uint64", "int64"),
        ("sum bool", "int64"),
        ("any uint8", "uint8"),
        ("all uint8", "uint8"),
        ("any uint16", "bool"),
        ("logical_and uint8 uint8", "bool"),
        ("logical_and int8 uint16", None),
        ("argmax bool", None),
        ("argsort bool", "int64"),
        ("sort complex64", None),
        ("less complex64 complex64", None),
        ("maximum bool bool", "bool"),
        ("matmul float32 float64", None),
        ("outer bool int8", "int8"),
        ("matmul bool bool", None),
        ("scatter float32 float64", None),
        ("imag float32", None),
        ("imag complex128", "float64"),
        ("as_complex float32 float32", "complex64"),
        ("as_complex float16 float16", None),
        ("left_shift uint8 int64", "int64"),
        ("layer_norm float16 float16 float16", "float16"),
    ],
)
def test_ops(call: str, result: str | None):
    name, *dtypes = call.split()
    found = ours(TORCH, name, *CALLS[name].operands(*map(DType, dtypes)))
    assert (found and str(found)) == result


@sampled(3)
@every("dtype", TORCH.dtypes)
def test_every_op_means_the_same_when_lowered(dtype: DType):
    count = 0
    for name, call in CALLS.items():
        g = Graph(rules=TORCH)
        made = [g.input(*one) for one in call.operands(*(dtype,) * len(call.free))]
        op = ops.CATALOGUE[name]
        try:
            g.output(op(*([made] if op.variadic else made), **call.attrs))
        except GraphirError:
            continue
        one = np.ones((), dtype.storage)
        inputs = [
            np.full(x.shape, 0 if i in call.fixed else one, g.concrete_dtype(x.dtype).storage)
            for i, x in enumerate(made)
        ]
        expected = runtime.interpret(g, *inputs)
        found = runtime.interpret(passes.lower(g), *inputs)
        assert found.dtype == expected.dtype, name
        assert found.tobytes() == expected.tobytes(), name
        count += 1
    assert count > 70


def test_any_of_uint8_is_bool_made_uint8():
    g = Graph(rules=TORCH)
    g.output(ops.any(g.input("uint8", (3,))))
    casts = [str(s.attrs["to"]) for s in passes.implicit_cast(g).symbols if s.op is ops.cast]
    assert casts == ["bool", "uint8"]
    assert runtime.interpret(g, np.array([0, 5, 0], np.uint8)) == 1


# -- literals


def computed(name: str, dtype: str, value: int, *literals: Any) -> Any:
    g = Graph(rules=TORCH)
    x = g.input(dtype, (1,))
    condition = [np.zeros(1, bool)] if name == "where" else []
    g.output(ops.CATALOGUE[name](*condition, x, *literals))
    return runtime.interpret(g, np.array([value], DType(dtype).storage))[0]


@every(
    ("name", "dtype", "value", "literal", "result"),
    [
        ("add", "int8", 1, 128, -127),
        ("multiply", "int8", 1, 300, 44),
        ("less", "int8", 1, 128, False),  # 128 is -128 there
        ("equal", "int8", 44, 300, True),
        ("add", "uint8", 1, -1, 0),
        ("add", "int64", 0, 2**63, -(2**63)),
        ("divide", "int8", 3, 300, np.float32(0.01)),  # float32, where 300 is 300
        ("add", "float64", 1, 0.1, 1.1),  # the literal was never a float32
        ("where", "uint8", 7, -1, 255),
        ("where", "float16", 7, 1e39, np.inf),
    ],
)
def test_literals_wrap(name: str, dtype: str, value: int, literal: Any, result: Any):
    assert computed(name, dtype, value, literal) == result


@every(
    ("name", "dtype", "literal"),
    [
        ("where", "int8", 128),
        ("where", "uint8", -256),
        ("where", "float32", 1e39),
        ("where", "complex64", 1e39j),
        ("clip", "int8", 300),
        ("clip", "float16", 65505),
        ("pow", "int8", 128),
        ("pow", "bfloat16", 1e39),
        ("add", "float32", 2**64),
        ("add", "int64", -(2**63) - 1),
    ],
)
def test_literals_refused(name: str, dtype: str, literal: Any):
    with pytest.raises(GraphirError, match="does not"):
        computed(name, dtype, 1, *(literal,) * (1 + (name == "clip")))


def test_a_bool_is_not_subtracted():
    with pytest.raises(GraphirError, match="not defined for bool"):
        computed("subtract", "int8", 1, True)


def test_literals_in_text():
    g = Graph(rules=TORCH)
    x = g.input("int8", (3,))
    g.output(x + 300, x / 2**63, ops.any(x), x < True)
    again = Graph.parse(str(g)).verify()
    assert str(again) == str(g)
    x = np.array([-1, 0, 1], np.int8)
    for found, expected in zip(runtime.interpret(again, x), runtime.interpret(g, x), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_dtype_asked_for_is_checked():
    with pytest.raises(GraphirError, match="does not fit int8"):
        Graph(rules=TORCH).scalar[DType.int8](300)


def test_a_numpy_scalar_is_a_python_number():
    g = Graph(rules="torch")
    assert (g.input("int8", (2,)) + np.float64(1)).dtype is DType.float32
    assert (g.input("float32") / np.sqrt(64)).dtype is DType.float32
    assert TORCH.promote("int8", np.float64(1)) is DType.float32


def test_a_number_is_below_0d_tensors_that_promote_with_no_bool():
    g = Graph(rules=TORCH)
    for name in ("uint16", "uint32", "uint64", "float8_e5m2"):
        x = g.input(name, ())
        assert (x * True).dtype is ops.where(g.input("bool", ()), True, x).dtype is x.dtype
    x, y = g.input("uint64", ()), g.input("bool", ())
    assert ops.clip(x, 1.5, y).dtype is ops.clip(x, 1.5, True).dtype is DType.float32
    with pytest.raises(PromotionError):
        x - True


def test_a_bool_to_the_power_of_true_or_false_is_bool():
    g = Graph(rules=TORCH)
    x = g.input("bool", (2,))
    g.output(x**True, x**False)
    assert {one.dtype for one in g.outputs} == {DType.bool}
    found = runtime.interpret(g, np.array([True, False]))
    assert [one.tolist() for one in found] == [[True, False], [True, True]]
    with pytest.raises(PromotionError):
        x**x
