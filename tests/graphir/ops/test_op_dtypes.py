"""The dtype rule of every op, under "max" where nothing else is said."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from graphir import DType, Graph, GraphirError, PromotionError, Symbol, ops, rules
from graphir.passes import implicit_cast
from tests.support.refusals import refuses
from tests.support.tables import every

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
INTEGERS += ["index", "address"]
FLOATS = ["float16", "bfloat16", "float32", "tensor_float32", "float64", "float8_e5m2"]
COMPLEX = ["complex64", "complex128"]
# Functions of floats, of complex numbers too, and those that are of real numbers only.
ANALYTIC = "sqrt rsqrt exp expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh"
ANALYTIC_OPS = [*ANALYTIC.split(), "asinh", "acosh", "atanh", "reciprocal", "mean"]
REAL_ONLY = ["erf", "sigmoid", "silu", "gelu", "softmax", "logsoftmax"]
REAL_BINARY = ["atan2", "hypot", "logaddexp", "copysign", "nextafter"]
ARITHMETIC = ["add", "subtract", "multiply", "pow", "floor_divide", "remainder"]


def made(*dtypes: str, shape: Any = (3,), under: str = "max") -> list[Symbol]:
    g = Graph(rules=under)
    return [g.input(dtype, shape) for dtype in dtypes]


def op(name: str) -> Any:
    return getattr(ops, name)


# -- arithmetic


@every("name", ARITHMETIC)
@every("dtype", [*INTEGERS, *FLOATS])
def test_arithmetic_keeps_a_dtype_that_both_have(name: str, dtype: str):
    assert op(name)(*made(dtype, dtype)).dtype is DType(dtype)


@every(
    ("lhs", "rhs", "result"),
    [
        ("int16", "float32", "float32"),
        ("uint8", "int8", "int16"),
        ("int64", "float16", "float16"),
        ("index", "int8", "float16"),
        ("bool", "uint8", "uint8"),
        ("float16", "bfloat16", "bfloat16"),
        ("tensor_float32", "float32", "tensor_float32"),
    ],
)
@every("name", ["add", "multiply", "maximum", "pow", "outer", "matmul", "clip"])
def test_binary_ops_join(name: str, lhs: str, rhs: str, result: str):
    for pair in ((lhs, rhs), (rhs, lhs)):
        operands = made(*pair, *(pair[1:] if name == "clip" else ()))
        assert op(name)(*operands).dtype is DType(result)


@every("name", ["add", "multiply", "outer", "matmul"])
def test_bool_adds_by_or_and_multiplies_by_and(name: str):
    assert op(name)(*made("bool", "bool")).dtype is DType.bool


@every("name", ["subtract", "pow", "floor_divide", "remainder"])
def test_other_arithmetic_of_bools_is_refused(name: str):
    with refuses(PromotionError, "bool", "bool", op=name, fix=".cast(DType."):
        op(name)(*made("bool", "bool"))


@every("name", ["negative", "abs", "sign", "square", "relu", "floor", "ceil", "trunc", "round"])
def test_unary_arithmetic_of_bool_is_refused_and_of_ints_kept(name: str):
    with refuses(PromotionError, "bool", op=name, fix=".cast(DType."):
        op(name)(*made("bool"))
    for dtype in ("int8", "uint64", "index", "bfloat16", "float64"):
        assert op(name)(*made(dtype)).dtype is DType(dtype)


@every("name", ["sum", "prod", "cumulative_sum", "cumulative_prod", "positive"])
def test_sums_and_products_of_bool_are_bool(name: str):
    assert op(name)(*made("bool")).dtype is DType.bool


@every("dtype", ["bool", *INTEGERS])
def test_division_of_what_is_no_float_is_float64(dtype: str):
    x, y = made(dtype, dtype)
    assert (x / y).dtype is (x / 1).dtype is (1 / y).dtype is DType.float64


@every("dtype", [*FLOATS, *COMPLEX])
def test_division_of_floats_keeps_them(dtype: str):
    x, y = made(dtype, dtype)
    assert (x / y).dtype is DType(dtype)


def test_division_joins_first():
    x, y = made("int8", "uint8")
    assert (x / y).dtype is DType.float64
    x, y = made("int64", "float16")
    assert (x / y).dtype is DType.float16


@every(
    "name",
    ["floor_divide", "remainder", "maximum", "minimum", "less", "greater_equal", *REAL_BINARY],
)
@every("dtype", COMPLEX)
def test_what_needs_an_order_is_refused_for_complex(name: str, dtype: str):
    with refuses(PromotionError, dtype, dtype, op=name, fix=".real"):
        op(name)(*made(dtype, dtype))


@every("name", ["sort", "argsort", "argmax", "max", "min", "floor", "signbit"])
def test_order_of_one_complex_is_refused(name: str):
    with refuses(PromotionError, "complex64", op=name, fix=".real"):
        op(name)(*made("complex64"))


# -- functions of floats


@every("name", [*ANALYTIC_OPS, *REAL_ONLY, "var", "std"])
@every("dtype", ["bool", "int32", "uint8", "index"])
def test_functions_of_what_is_no_float_are_refused_with_the_cast(name: str, dtype: str):
    (x,) = made(dtype)
    with refuses(PromotionError, dtype, op=name, got=dtype, fix=".cast(DType.float32)"):
        op(name)(x)
    assert len(x.graph) == 1
    assert op(name)(x.cast("float32")).dtype is DType.float32


@every("name", [*ANALYTIC_OPS, *REAL_ONLY, "var", "std"])
@every("dtype", FLOATS)
def test_functions_of_floats_keep_them(name: str, dtype: str):
    assert op(name)(*made(dtype)).dtype is DType(dtype)


@every("dtype", COMPLEX)
def test_functions_of_complex(dtype: str):
    (x,) = made(dtype)
    for name in ANALYTIC_OPS:
        assert op(name)(x).dtype is DType(dtype)
    part = DType("float32" if dtype == "complex64" else "float64")
    for spread in (x.var(), x.std(), abs(x), x.real, x.imag):
        assert spread.dtype is part
    for name in REAL_ONLY:
        with refuses(PromotionError, dtype, op=name):
            op(name)(x)


@every("name", REAL_BINARY)
def test_binary_functions_join_and_need_floats(name: str):
    assert op(name)(*made("float32", "int8")).dtype is DType.float32
    assert op(name)(*made("float32", "float64")).dtype is DType.float64
    with refuses(PromotionError, "int8", "uint8", op=name, got="int16", fix=".cast("):
        op(name)(*made("int8", "uint8"))


def test_steps_between_floats_are_those_of_dtypes_that_a_machine_computes_in():
    for dtype in ("float16", "bfloat16", "tensor_float32"):
        with refuses(PromotionError, dtype, dtype, op="nextafter", got=dtype, fix=".cast("):
            ops.nextafter(*made(dtype, dtype))


def test_layer_norm_joins_and_needs_floats():
    assert ops.layer_norm(*made("bfloat16", "float32", "float32")).dtype is DType.float32
    half = np.ones(3, np.float16)
    assert ops.layer_norm(*made("float16"), half, half).dtype is DType.float16
    with refuses(PromotionError, "int8", "int8", "int8", op="layer_norm", got="int8"):
        ops.layer_norm(*made("int8", "int8", "int8"))


# -- comparison, logic, bits


@every("name", ["equal", "not_equal", "less", "less_equal", "greater"])
def test_comparison_happens_at_the_join_and_is_bool(name: str):
    x, y = made("int16", "uint16")
    assert op(name)(x, y).dtype is DType.bool
    assert x.graph.infer(op(name), (x, y), {}).operands == (DType.int32, DType.int32)
    with pytest.raises(PromotionError, match=rf"{name}.*not in its lattice"):
        op(name)(*made("int16", "complex64"))


def test_equality_of_complex_is_defined():
    x, y = made("complex64", "complex64")
    assert (x == y).dtype is (x != y).dtype is DType.bool


@every("name", ["is_nan", "is_inf", "is_finite", "signbit"])
@every("dtype", ["bool", "int8", "float8_e5m2", "float64"])
def test_predicates_take_anything(name: str, dtype: str):
    assert op(name)(*made(dtype)).dtype is DType.bool


@every("name", ["logical_and", "logical_or", "logical_xor"])
def test_logical_ops_take_bool_only(name: str):
    assert op(name)(*made("bool", "bool")).dtype is DType.bool
    for dtypes in (("int8", "bool"), ("bool", "float32")):
        with refuses(PromotionError, *dtypes, op=name, fix="!= 0"):
            op(name)(*made(*dtypes))


@every("name", ["logical_not", "any", "all"])
def test_truth_of_one_takes_bool_only(name: str):
    assert op(name)(*made("bool")).dtype is DType.bool
    with refuses(PromotionError, "int8", op=name, got="int8", fix=".cast(DType.bool)"):
        op(name)(*made("int8"))


@every("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bitwise_ops_take_integers_and_bool_at_the_join(name: str):
    assert op(name)(*made("uint8", "int8")).dtype is DType.int16
    assert op(name)(*made("bool", "bool")).dtype is DType.bool
    assert op(name)(*made("bool", "uint8")).dtype is DType.uint8
    # The join of int64 and uint64 is a float.
    for dtypes in (("float32", "float32"), ("int64", "uint64"), ("int8", "float16")):
        with refuses(PromotionError, *dtypes, op=name, fix=".cast(DType.int64)"):
            op(name)(*made(*dtypes))


@every("name", ["left_shift", "right_shift"])
def test_shifts_take_integers_only(name: str):
    assert op(name)(*made("uint8", "int16")).dtype is DType.int16
    for dtypes in (("bool", "bool"), ("float32", "float32")):
        with refuses(PromotionError, *dtypes, op=name, got=dtypes[0], fix=".cast(DType.int64)"):
            op(name)(*made(*dtypes))


def test_invert():
    assert (~made("bool")[0]).dtype is DType.bool
    assert (~made("uint8")[0]).dtype is DType.uint8
    with refuses(PromotionError, "float32", op="bitwise_invert", got="float32"):
        _ = ~made("float32")[0]


# -- reductions and positions


@every("name", ["sum", "prod", "cumulative_sum", "cumulative_prod", "max", "sort"])
@every("dtype", ["int8", "uint16", "index", "float16", "bfloat16", "float64"])
def test_reductions_keep_the_dtype(name: str, dtype: str):
    assert op(name)(*made(dtype)).dtype is DType(dtype)


@every("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_an_accumulator_can_be_asked_for(name: str):
    (x,) = made("int8")
    result = op(name)(x, dtype="int64")
    assert result.dtype is DType.int64
    assert x.graph.infer(op(name), (x,), {"dtype": DType.int64}).operands == (DType.int64,)
    assert op(name)(*made("bool"), dtype="int32").dtype is DType.int32
    with pytest.raises(PromotionError, match=r"complex64 to float32.*imaginary.*\.real"):
        op(name)(*made("complex64"), dtype="float32")


@every("name", ["argmax", "argmin", "argsort", "searchsorted", "shape_of"])
def test_positions_are_int64_or_what_is_asked_for(name: str):
    operands = made(*["float32"] * (2 if name == "searchsorted" else 1))
    assert op(name)(*operands).dtype is DType.int64
    assert op(name)(*operands, dtype="int32").dtype is DType.int32
    with refuses(PromotionError, op=name, got="float32"):
        op(name)(*operands, dtype="float32")


# -- selection and movement


def test_where_joins_its_values_and_not_its_condition():
    c, x, y = made("bool", "int16", "float32")
    assert ops.where(c, x, y).dtype is DType.float32
    assert x.graph.infer(ops.where, (c, x, y), {}).operands[0] is DType.bool
    with refuses(PromotionError, "int16", "int16", "float32", op="where", got="int16"):
        ops.where(x, x, y)


@every("name", ["concat", "stack"])
def test_all_operands_join_at_once(name: str):
    operands = made("uint8", "int8", "int16")
    assert op(name)(operands).dtype is DType.int16
    strict = made("int16", "int8", "int16", under="max_strict")
    with pytest.raises(PromotionError, match=rf"the operands of {name} must share one dtype"):
        op(name)(strict)
    assert op(name)(strict[::2]).dtype is DType.int16


MOVES = {
    "reshape": lambda x: x.reshape(-1),
    "slice": lambda x: x[1:],
    "flip": ops.flip,
    "roll": lambda x: ops.roll(x, 1, axis=0),
    "pad": lambda x: ops.pad(x, 1),
    "tile": lambda x: ops.tile(x, 2),
    "repeat": lambda x: ops.repeat(x, 2, axis=0),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "broadcast": lambda x: x.broadcast_to(2, 3),
    "rebind": lambda x: x.rebind(3),
    "conj": ops.conj,
    "gather": lambda x: ops.gather(x, np.array([0])),
}


@every("name", MOVES)
@every("dtype", ["bool", "int4", "index", "float4_e2m1fn", "complex128"])
def test_movement_keeps_any_dtype(name: str, dtype: str):
    assert MOVES[name](*made(dtype)).dtype is DType(dtype)


def test_indices_are_integers_that_do_not_join_the_data():
    x, i = made("float16", "uint64")
    assert ops.gather(x, i).dtype is ops.take_along(x, i).dtype is DType.float16
    assert x.graph.infer(ops.gather, (x, i), {}).operands == (DType.float16, DType.uint64)
    assert ops.scatter(x, x, i).dtype is DType.float16
    x, u, i = made("int16", "float32", "uint8")
    assert ops.scatter(x, u, i).dtype is DType.float32
    for wrong in ("float32", "bool"):
        with refuses(PromotionError, "float32", wrong, op="gather", got=wrong):
            ops.gather(*made("float32", wrong))


def test_a_literal_among_where_s_values_takes_the_dtype_of_the_other():
    c, x = made("bool", "int16")
    assert [a.dtype for a in ops.where(c, 5, x).args] == [DType.bool, DType.int16, DType.int16]
    assert [a.dtype for a in ops.where(c, x, 5).args] == [DType.bool, DType.int16, DType.int16]


@every("under", ["max", "max_strict", "python"])
def test_padding_that_is_taken_stays_so_when_the_rules_are_explicit(under: str):
    dtypes = ("weak_int", "weak_float") if under == "python" else ("int8", "float32", "float8_e5m2")
    for dtype, value in product(dtypes, (0, 7, -1, 70000, 0.0, 0.1, 7.5, 1e40, 1j)):
        (x,) = made(dtype, under=under)
        try:
            x.graph.output(ops.pad(x, 1, value=value))
        except GraphirError as error:
            committed = rules(under).concrete_dtype(DType(dtype))
            assert f"does not fit {committed}" in str(error)
            assert type(value) is not int or value not in (0, 7), "which each of these has"
        else:
            assert implicit_cast(x.graph).verify().rules.name == "explicit"
            assert isinstance(value, int) or dtype not in ("int8", "weak_int")
            assert not isinstance(value, complex)


def test_padding_is_a_literal_that_fits():
    (x,) = made("int8")
    assert ops.pad(x, 1, value=-128).dtype is DType.int8
    for value in (200, 0.5, 1j):
        with pytest.raises(PromotionError, match="does not fit int8"):
            ops.pad(x, 1, value=value)


def test_cast_takes_any_pair_but_complex_to_real():
    for source in DType:
        for target in DType:
            x = Graph().input(source)
            if source.is_complex and not target.is_complex and target is not DType.bool:
                with pytest.raises(PromotionError, match=r"imaginary part; take \.real"):
                    x.cast(target)
            else:
                assert x.cast(target).dtype is target


def test_complex_from_parts():
    assert ops.as_complex(*made("float32", "float32")).dtype is DType.complex64
    assert ops.as_complex(*made("float16", "bfloat16")).dtype is DType.complex64
    assert ops.as_complex(*made("float32", "float64")).dtype is DType.complex128
    assert ops.as_complex(*made("float32"), 0.0).dtype is DType.complex64
    for dtypes in (("int8", "int8"), ("complex64", "complex64")):
        with pytest.raises(PromotionError, match="as_complex"):
            ops.as_complex(*made(*dtypes))


def test_every_op_of_the_catalogue_says_what_it_does():
    for name, each in ops.CATALOGUE.items():
        assert each.name == name and each.doc.endswith(".") and ops.find(name) is each
        assert getattr(ops, name) is each
    commutative = {name for name, each in ops.CATALOGUE.items() if each.commutative}
    assert not commutative & {"maximum", "minimum", "subtract", "where", "matmul", "atan2"}
    assert {"add", "multiply", "equal", "bitwise_and", "logical_or"} <= commutative
