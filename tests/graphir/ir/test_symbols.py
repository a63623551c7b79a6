"""Symbols: every operator and its reflected form, literals and arrays on either side."""

from __future__ import annotations

import operator
from collections.abc import Callable
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
    Symbol,
    TensorType,
    ops,
)
from tests.support.tables import every

Binary = Callable[[Any, Any], Any]
BINARY: list[tuple[str, Binary]] = [
    ("add", operator.add),
    ("subtract", operator.sub),
    ("multiply", operator.mul),
    ("divide", operator.truediv),
    ("floor_divide", operator.floordiv),
    ("remainder", operator.mod),
    ("pow", operator.pow),
]
BITS: list[tuple[str, Binary]] = [
    ("bitwise_and", operator.and_),
    ("bitwise_or", operator.or_),
    ("bitwise_xor", operator.xor),
    ("left_shift", operator.lshift),
    ("right_shift", operator.rshift),
]
# Python itself turns `1 < x` into `x > 1`.
COMPARE: list[tuple[str, Binary, str]] = [
    ("equal", operator.eq, "equal"),
    ("not_equal", operator.ne, "not_equal"),
    ("less", operator.lt, "greater"),
    ("less_equal", operator.le, "greater_equal"),
    ("greater", operator.gt, "less"),
    ("greater_equal", operator.ge, "less_equal"),
]


def one(dtype: str = "float32", shape: Any = (3,)) -> Symbol:
    return Graph().input(dtype, shape, name="x")


def two(a: str, b: str, shape: Any = (3,)) -> tuple[Symbol, Symbol]:
    g = Graph()
    return g.input(a, shape, name="x"), g.input(b, shape, name="y")


def value(symbol: Symbol) -> Any:
    assert symbol.op is ops.constant
    return symbol.attrs["value"]


# -- operators


@every(("name", "apply"), BINARY)
def test_operators_of_two_symbols(name: str, apply: Binary):
    x, y = two("float32", "float64")
    for a, b in ((x, y), (y, x), (x, x)):
        made = apply(a, b)
        assert made.op is getattr(ops, name) and made.args == (a, b)
        assert made.dtype is (DType.float32 if a is b else DType.float64)
        assert made.graph is x.graph and x.graph.symbols[-1] is made


@every(("name", "apply"), BITS)
def test_bit_operators_of_two_symbols(name: str, apply: Binary):
    x, y = two("uint8", "int16")
    made = apply(x, y)
    assert made.op is getattr(ops, name) and made.args == (x, y) and made.dtype is DType.int16
    assert apply(y, x).args == (y, x)


@every(("name", "apply", "mirrored"), COMPARE)
def test_comparisons(name: str, apply: Binary, mirrored: str):
    x, y = two("int8", "float32")
    made = apply(x, y)
    assert (made.op.name, made.args, made.dtype) == (name, (x, y), DType.bool)
    made = apply(7, x)
    assert (made.op.name, made.args[0], made.dtype) == (mirrored, x, DType.bool)
    assert value(made.args[1]) == 7 and made.args[1].dtype is DType.int8


@every(
    ("name", "apply"),
    [
        *(("negative", operator.neg), ("positive", operator.pos), ("abs", abs)),
        *(("bitwise_invert", operator.invert), ("round", round)),
    ],
)
def test_unary_operators(name: str, apply: Callable[[Any], Any]):
    x = one("int32")
    made = apply(x)
    assert (made.op.name, made.args, made.type) == (name, (x,), x.type)


def test_matmul_operator():
    g = Graph()
    x, y = g.input("float32", (2, 3)), g.input("float64", (3, 4))
    assert (x @ y).op is ops.matmul and (x @ y).type is TensorType("float64", (2, 4))
    made = np.ones((5, 2), np.float32) @ x
    assert made.op is ops.matmul and made.args[1] is x and made.shape == (5, 3)
    assert (x @ np.ones((3, 1), np.float32)).args[0] is x


def test_divmod():
    x = one("int32")
    quotient, rest = divmod(x, 3)
    assert (quotient.op.name, rest.op.name) == ("floor_divide", "remainder")
    quotient, rest = divmod(20, x)
    assert quotient.args[1] is x and rest.args[1] is x and value(rest.args[0]) == 20


def test_augmented_assignment_makes_a_new_symbol():
    x = y = one()
    y += 1
    assert y.op is ops.add and y.args[0] is x


@every(("name", "apply"), [*BINARY, *BITS])
def test_literals_on_either_side_take_the_dtype_of_the_symbol(name: str, apply: Binary):
    x = one("int16")
    left, right = apply(5, x), apply(x, 5)
    for made, at in ((left, 0), (right, 1)):
        constant = made.args[at]
        assert made.op.name == name and made.args[1 - at] is x
        assert constant.type is TensorType("int16") and value(constant) == 5
        assert value(constant).dtype == np.int16


# -- arrays and NumPy scalars on either side: strong, and never an object array

ARRAYS = [
    np.array([1, 2, 3], np.int8),
    np.array([0.5], np.float64),
    np.array(2, np.uint16),
    np.float32(2),
    np.float64(2),
    np.int64(2),
    np.array([1, 2, 3], ml_dtypes.bfloat16),
    ml_dtypes.bfloat16(2),
    np.float16(2),
]


@every("array", ARRAYS)
@every(("name", "apply"), BINARY)
def test_arrays_on_either_side(name: str, apply: Binary, array: Any):
    x = one("float32")
    wanted = x.graph.rules.promote("float32", DType(array.dtype))
    for made, at in ((apply(array, x), 0), (apply(x, array), 1)):
        assert type(made) is Symbol and made.op.name == name
        assert made.args[1 - at] is x and made.dtype is wanted
        assert made.args[at].dtype is DType(array.dtype)
        assert value(made.args[at]).tobytes() == np.asarray(array).tobytes()


@every(("name", "apply"), [one[:2] for one in COMPARE])
def test_arrays_on_the_left_of_comparisons(name: str, apply: Binary):
    x = one("float32")
    for array in (np.zeros(3, np.float32), np.float32(1), np.float64(1), np.int8(1)):
        made = apply(array, x)
        assert type(made) is Symbol and made.op.name == name and made.args[1] is x


@every("x", [True, np.bool_(True), np.array([True, False, True])])
def test_bools_of_numpy_and_python(x: Any):
    y = one("bool")
    for made in (x & y, y & x, x | y, x ^ y):
        assert type(made) is Symbol and made.dtype is DType.bool


def test_numpy_cannot_take_a_symbol_apart():
    x = one()
    for build in (
        lambda: np.asarray(x),
        lambda: np.array([x, x]),
        lambda: np.array([1.0, x]),
    ):
        with pytest.raises(TypeError):
            build()


def test_a_constant_does_not_follow_the_array_it_was_made_from():
    array = np.array([1, 2, 3], np.int8)
    made = one("int8") + array
    array[0] = 100
    assert value(made.args[1]).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        value(made.args[1])[0] = 5


# -- what is no operand


class Foreign:
    def __radd__(self, other: object) -> str:
        return "radd"

    def __rmatmul__(self, other: object) -> str:
        return "rmatmul"

    def __gt__(self, other: object) -> str:
        return "gt"


def test_a_foreign_operand_gets_its_turn():
    x = one()
    assert x + Foreign() == "radd"
    assert x @ Foreign() == "rmatmul"
    assert (x < Foreign()) == "gt"


@every("other", [[1, 2], (1,), []])
def test_a_list_is_no_operand_not_even_of_equality(other: object):
    x = one()
    for _, apply in [*BINARY, ("equal", operator.eq), ("not_equal", operator.ne)]:
        with pytest.raises(GraphError, match="does not take"):
            apply(x, other)


@every("other", ["s", None, {}, object(), DType.int8])
def test_an_unknown_operand_is_python_s_own_type_error(other: object):
    x = one()
    for name, apply in [*BINARY, ("matmul", operator.matmul)]:
        # x * "s" and "s" % x are matters of sequences and format strings, which ask x for an int.
        sequence = name == "multiply" and isinstance(other, str)
        with pytest.raises(TypeError, match="int" if sequence else "unsupported operand"):
            apply(x, other)
        if not (name == "remainder" and isinstance(other, str)):
            with pytest.raises(TypeError):
                apply(other, x)
    with pytest.raises(TypeError, match="not supported"):
        _ = x < other  # type: ignore[operator]
    assert len(x.graph) == 1


def test_an_array_without_a_dtype_here_is_refused():
    x = one()
    for array in (np.array(["a"]), np.array([None]), np.array(["2020"], "M8[Y]")):
        with pytest.raises(GraphError, match="no dtype corresponds"):
            _ = x + array


@every("other", ["s", None, object(), {}])
def test_functions_refuse_unknown_operands(other: object):
    x = one()
    with pytest.raises(GraphirError, match="does not take"):
        ops.add(x, other)


# -- literals under max


@every(
    ("dtype", "literal"),
    [
        *(("int8", 200), ("int8", -129), ("uint8", -1), ("int64", 2**63), ("bool", 2)),
        *(("int8", 1.5), ("int8", 1.0), ("bool", 0.5), ("index", -1)),
        *(("float16", 2049), ("float32", 2**24 + 1), ("float64", 2**53 + 1), ("bfloat16", 257)),
        *(("float32", 1e40), ("float16", 65520.0), ("float32", 1j), ("int8", 1j)),
        *(("complex64", 1e300j), ("tensor_float32", 2049)),
    ],
)
def test_a_literal_that_does_not_fit_is_refused_and_nothing_is_added(dtype: str, literal: Any):
    for build in (lambda x: x + literal, lambda x: literal * x, lambda x: x == literal):
        x = one(dtype)
        with pytest.raises(PromotionError, match=rf"{dtype}.*cast") as caught:
            build(x)
        assert repr(literal) in str(caught.value) and isinstance(caught.value, TypeError)
        assert len(x.graph) == 1


@every(
    ("dtype", "literal"),
    [
        *(
            ("int8", -128),
            ("uint64", 2**64 - 1),
            ("uint64", 2**63),
            ("address", 2**64 - 1),
            ("bool", True),
        ),
        *(("float16", 2048), ("float32", -(2**24)), ("float64", 0.1), ("float32", 0.1)),
        *(("float32", float("inf")), ("bfloat16", float("nan")), ("float32", True)),
        *(("complex64", 2j), ("complex64", 3), ("int8", True), ("float16", 65519.0)),
    ],
)
def test_a_literal_that_fits_becomes_the_dtype(dtype: str, literal: Any):
    x = one(dtype)
    made = literal + x
    assert made.dtype is x.dtype and made.args[0].dtype is x.dtype
    held = value(made.args[0])
    assert held.dtype == x.dtype.storage
    nearest = np.asarray(literal).astype(held.dtype)
    assert held.tobytes() == nearest.tobytes()


def test_a_literal_keeps_its_sign_of_zero_and_its_kind():
    x = one("float32")
    signs = [bool(np.signbit(value((x * z).args[1]))) for z in (0.0, -0.0, 0.0)]
    assert signs == [False, True, False]
    y = one("int8")
    assert [value((y + z).args[1]).dtype for z in (1, True, 1)] == [np.int8] * 3
    pads = [ops.pad(x, 1, value=z).attrs["value"] for z in (0.0, -0.0, 0)]
    assert [str(p) for p in pads] == ["0.0", "-0.0", "0"]


def test_two_literals_have_no_graph_and_no_dtype():
    with pytest.raises(GraphError, match="its graph is not known"):
        ops.add(1, 2)
    with Graph(), pytest.raises(PromotionError, match=r"nothing beside it has one.*g\.scalar"):
        ops.add(1, 2)
    with Graph() as g:
        made = ops.add(np.int8(1), np.float32(2))
    assert made.graph is g and made.dtype is DType.float32


def test_a_literal_beside_two_symbols_takes_their_join():
    g = Graph()
    x, y, c = g.input("int16"), g.input("float32"), g.input("bool")
    assert ops.clip(x, 0, 100).args[1].dtype is DType.int16
    assert ops.clip(x, y, 1).args[2].dtype is DType.float32
    made = ops.where(c, x, 5)
    assert made.args[2].dtype is DType.int16 and made.dtype is DType.int16
    assert ops.where(True, x, y).args[0].dtype is DType.bool
    assert ops.concat([g.input("int8", (2,)), g.constant["int16"]([1])]).dtype is DType.int16
    with pytest.raises(PromotionError):
        ops.where(c, x, 1.5)
