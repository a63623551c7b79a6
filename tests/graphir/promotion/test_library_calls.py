"""Functions and operators whose dtype depends on more than the join, against NumPy and Python."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from graphir import DType, Graph, GraphirError, PromotionError, TensorType, ops, rules
from graphir.promotion.numpy_ import DTYPES
from graphir.runtime import array_api as xp
from graphir.runtime import interpret, jit
from tests.support.evaluator import same
from tests.support.tables import every

CHARS = "?bhilBHILefdFD"
NUMPY_1 = {
    "power": "lbhilBHILefdFD",
    "power of scalars": "llllllllddddDD",
    "** of scalars": "llllllllddddDD",
    "**": "bbhilBHILefdFD",
}
"""Dtypes of x ** 2 and np.power(x, 2) in NumPy 1.26.4, for the x of `CHARS`."""


def arrays(char: str) -> Any:
    return np.array([100, 1, 0, 100]).astype(char)


# -- NumPy


@pytest.mark.filterwarnings("ignore")
@every("exponent", [True, 0, 1, 2, 3, 0.5, 2.0, 2j])
@every("power", [operator.pow, np.power])
@every("shape", [(4,), ()])
def test_powers_of_arrays_and_of_scalars(power: Any, exponent: Any, shape: tuple[int, ...]):
    for char in CHARS:
        x = arrays(char) if shape else arrays(char)[1]
        made = power(Graph(rules="numpy").input(str(x.dtype), shape), exponent)
        assert made.dtype.storage == power(x, exponent).dtype, char


def test_powers_in_numpy_1():
    for name, row in NUMPY_1.items():
        power = np.power if name.startswith("power") else operator.pow
        for char, expected in zip(CHARS, row, strict=True):
            g = Graph(rules="numpy_legacy")
            x = g.input(str(np.dtype(char)), (4,))
            x = x.max() if name.endswith("scalars") else x
            assert power(x, 2).dtype.storage == np.dtype(expected), (name, char)


@pytest.mark.filterwarnings("ignore")
def test_vecdot_adds_in_the_dtype_of_the_products():
    for a, b in product(CHARS, repeat=2):
        x, y = arrays(a), arrays(b)
        assert same(np.asarray(jit(np.vecdot, rules="numpy")(x, y)), np.asarray(np.vecdot(x, y)))


DEFAULTS: list[Any] = [0, 1.5, 1j, True, 100, np.int64(1), np.float32(1), None]


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("default", DEFAULTS)
def test_select_promotes_all_choices_at_once(default: Any):
    """Where NumPy refuses an int among unsigned choices, graphir may take it."""
    for a, choice in product(CHARS, [2, -1, 1.5, True, np.array([2.5], "f2"), *map(arrays, CHARS)]):
        x = arrays(a)
        more = () if default is None else (default,)

        def select(x: Any, y: Any = choice, more: Any = more) -> Any:
            return np.select([x > 1, x == 1], [x, y], *more)

        try:
            expected = select(x)
        except TypeError:
            continue
        assert same(np.asarray(jit(select, rules="numpy")(x)), expected), (a, choice)


def test_einsum_converts_all_factors_before_any_is_summed():
    x, y, z = np.full(3, 100, "i1"), np.ones(3, "i4"), np.ones(3, "f2")

    def two(x: Any, y: Any) -> Any:
        return np.einsum("i,j->", x, y)

    def three(x: Any, y: Any, z: Any) -> Any:
        return np.einsum("i,i,i->i", x, y, z)

    assert same(np.asarray(jit(two, rules="numpy")(x, y)), np.asarray(two(x, y)))
    u = np.ones(3, "u1")
    assert same(jit(three, rules="numpy")(x, u, z), three(x, u, z))


def test_promote_knows_the_value_of_a_constant_as_operators_do():
    g = Graph(rules="numpy_legacy")
    legacy = rules("numpy_legacy")
    for dtype, value in product(["int8", "float32", "bool"], [1, 300, 2.5, 1e39]):
        x, c = g.input(dtype, (3,)), g.scalar(value)
        assert legacy.promote(x, c) is legacy.promote(c, x) is (x + c).dtype
        assert legacy.explain(x, c).result is (x + c).dtype
    with pytest.raises(PromotionError, match="depends on the value"):
        legacy.promote(g.input("int8", (3,)), g.input("int64"))


def test_dask_sums_the_products_of_chunks_in_64_bits():
    for a, b in product(DTYPES, repeat=2):
        met = rules("numpy").promote(a, b)
        wide = {"bool": "int64", "int": "int64", "uint": "uint64"}.get(met.family, str(met))
        g = Graph(rules="dask")
        x, y = g.input(a, (2, 2)), g.input(b, (2, 2))
        assert str(ops.tensordot(x, y, axes=1).dtype) == wide
        assert ops.matmul(x, y).dtype is met  # as of one chunk


@every("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_the_standard_adds_no_bools_whatever_dtype_is_named(name: str):
    for dtype in (None, xp.int64, xp.float32):
        with pytest.raises(TypeError, match="takes no bool"):
            getattr(xp, name)(xp.asarray([True, False]), dtype=dtype)
    assert getattr(xp, name)(xp.asarray([1, 2], dtype=xp.int8), dtype=xp.int16).dtype == xp.int16


# -- Python's numbers

NUMBERS = (True, 2, 2.5, 2j)
WEAK = {bool: "bool", int: "weak_int", float: "weak_float", complex: "weak_complex"}
BINARY = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod),
    *(operator.pow, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift),
    *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
)
UNARY = (operator.neg, operator.pos, operator.invert, abs, round)


def answer(function: Callable[..., Any], *operands: Any) -> str | None:
    """The dtype of a result, of Python or of graphir; None where it is refused."""
    try:
        result = function(*operands)
    except (TypeError, GraphirError):
        return None
    return WEAK[type(result)] if type(result) in WEAK else str(result.dtype)


def known(g: Graph, value: Any) -> Any:
    return g.input(WEAK[type(value)], ())


@every("function", BINARY)
def test_operators_of_two_numbers_answer_as_python(function: Callable[..., Any]):
    for a, b in product(NUMBERS, repeat=2):
        expected, g = answer(function, a, b), Graph(rules="python")
        assert answer(function, known(g, a), known(g, b)) == expected, (a, b)
        assert answer(function, known(g, a), b) == expected, (a, b)
        assert answer(function, a, known(g, b)) == expected, (a, b)


@pytest.mark.filterwarnings("ignore:Bitwise inversion:DeprecationWarning")  # ~True, from 3.12 on
@every("function", UNARY)
def test_operators_of_a_number_answer_as_python(function: Callable[..., Any]):
    for value in NUMBERS:
        g = Graph(rules="python")
        assert answer(function, known(g, value)) == answer(function, value), value


def test_round_gives_an_int_that_other_rules_take_as_one():
    def scaled(x: Any, k: Any) -> Any:
        return x * round(k)

    x = np.array([1, 2], np.int8)
    assert same(jit(scaled, rules="numpy")(x, 2.5), scaled(x, 2.5))
    g = Graph(rules="python")
    g.output(round(g.input("weak_float")), ~g.input("bool"), g.input("bool") << True)
    assert [one.item() for one in interpret(g, -3.5, True, True)] == [-4, -2, 2]


# -- PyTorch's 0-d tensors


@every("name", ["softmax", "logsoftmax", "sort", "cumulative_sum", "flip", "sum"])
def test_pytorch_sees_a_row_in_a_tensor_of_rank_0(name: str):
    op = ops.CATALOGUE[name]
    for axis in (0, -1):
        g = Graph(rules="torch")
        x = g.input("float32")
        g.output(op(x, axis=axis))
        assert g.outputs[0].type == x.type
        value = {"softmax": 1, "logsoftmax": 0}.get(name, 7)
        assert interpret(g, np.float32(7)) == value
    with pytest.raises(GraphirError, match="axis 1 is out of range"):
        op(x, axis=1)
    with pytest.raises(GraphirError, match="out of range for rank 0"):
        op(Graph(rules="jax").input("float32"), axis=-1)


def test_pytorch_sees_a_row_in_every_reduction():
    reductions = {op.name for op in ops.CATALOGUE.values() if op.kind == "reduction"}
    reductions.remove("numpy_sum")
    assert reductions <= rules("torch").composes <= set(ops.CATALOGUE)


def test_places_in_a_tensor_of_rank_0():
    g = Graph(rules="torch")
    x = g.input("float32")
    g.output(ops.argsort(x), ops.argmax(x, axis=0, keepdims=True))
    assert [one.type for one in g.outputs] == [TensorType(DType.int64, ())] * 2
    assert [one.item() for one in interpret(g, np.float32(7))] == [0, 0]
