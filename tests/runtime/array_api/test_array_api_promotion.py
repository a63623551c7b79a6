"""Promotion as the standard's tables have it: arrays, Python scalars, both orders, every function.

The joins are those measured with array-api-strict (tests/golden/array_api.json), which data types
a function takes is restated from the standard's text.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from graphir import DType
from graphir.runtime import array_api as xp
from tests import GOLDEN
from tests.peers import IN_PLACE as PYTHON_IN_PLACE
from tests.peers import OPERATORS as PYTHON_OPERATORS
from tests.support import tables
from tests.support.tables import every, sampled

TABLES = json.loads((GOLDEN / "array_api.json").read_text())
SHORT = {dtype.short: dtype for dtype in DType}
SCALARS: dict[str, Any] = {"b*": True, "i*": 1, "f*": 1.5, "c*": 2j}
CELLS = tables.cells(TABLES["result_type"])
PAIRS = [pair for pair in CELLS if not {*pair} <= {*SCALARS}]
NAMES = [row for row, column in CELLS if row == column and row not in SCALARS]

INTS = {f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64)}
REAL_FLOATS = {"f32", "f64"}
FLOATS = REAL_FLOATS | {"c64", "c128"}
BOOL = {"bool"}
BITS = INTS | BOOL
REAL, NUMERIC, EVERY = INTS | REAL_FLOATS, INTS | FLOATS, INTS | FLOATS | {"bool"}

BINARY: dict[str, set[str]] = {
    **dict.fromkeys(("add", "subtract", "multiply", "pow"), NUMERIC),
    **dict.fromkeys(("floor_divide", "remainder", "maximum", "minimum"), REAL),
    **dict.fromkeys(("less", "less_equal", "greater", "greater_equal"), REAL),
    **dict.fromkeys(("atan2", "copysign", "hypot", "logaddexp", "nextafter"), REAL_FLOATS),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), BITS),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), INTS),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), BOOL),
    **dict.fromkeys(("equal", "not_equal"), EVERY),
    "divide": FLOATS,
}
TRUTHS = {
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    *("logical_and", "logical_or", "logical_xor"),
}
_SHIFTS = {"left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift"}
OPERATORS, IN_PLACE = (
    {_SHIFTS.get(name, name): call for name, call in table.items() if name != "matmul"}
    for table in (PYTHON_OPERATORS, PYTHON_IN_PLACE)
)
UNARY: dict[str, set[str]] = {
    **dict.fromkeys(("abs", "negative", "positive", "sign", "square", "round"), NUMERIC),
    **dict.fromkeys(("isfinite", "isinf", "isnan", "conj", "real"), NUMERIC),
    **dict.fromkeys(("ceil", "floor", "trunc"), REAL),
    **dict.fromkeys(("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt"), FLOATS),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan", "reciprocal"), FLOATS),
    **dict.fromkeys(("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"), FLOATS),
    "signbit": REAL_FLOATS,
    "imag": {"c64", "c128"},
    "bitwise_invert": BITS,
    "logical_not": {"bool"},
}
PARTS = {"c64": "f32", "c128": "f64"}


def operand(name: str) -> Any:
    """An array of ones, or a Python scalar."""
    return SCALARS[name] if name in SCALARS else xp.ones((2,), dtype=SHORT[name])


def joined(taken: set[str], *names: str) -> DType | None:
    """What the standard says that a function makes of operands; None where it is silent."""
    cell = CELLS[names] if len(names) == 2 else names[0]
    arrays = [name for name in names if name not in SCALARS]
    return SHORT[cell] if cell in taken and {*arrays} <= taken else None


def answer(function: Callable[..., Any], *operands: Any) -> DType | None:
    try:
        return function(*operands).dtype
    except TypeError:
        return None


@sampled(4)
@every("name", BINARY)
def test_functions_and_operators_of_two(name: str):
    for pair in PAIRS:
        expected = joined(BINARY[name], *pair)
        if expected and name in TRUTHS:
            expected = DType.bool
        operands = [operand(one) for one in pair]
        assert answer(getattr(xp, name), *operands) is expected, pair
        if name in OPERATORS:
            assert answer(OPERATORS[name], *operands) is expected, pair


@sampled(2)
@every("name", IN_PLACE)
def test_operators_in_place_keep_the_dtype(name: str):
    for left, right in PAIRS:
        if left in SCALARS:
            continue
        expected = joined(BINARY[name], left, right)
        x = operand(left)
        found = answer(IN_PLACE[name], x, operand(right))
        assert found is (expected if expected is SHORT[left] else None), (left, right)
        assert x.dtype is SHORT[left]


@every("name", UNARY)
def test_functions_of_one(name: str):
    for one in NAMES:
        expected = joined(UNARY[name], one)
        if expected and name in ("abs", "real", "imag"):
            expected = SHORT[PARTS.get(one, one)]
        if expected and name in ("isfinite", "isinf", "isnan", "signbit"):
            expected = DType.bool
        assert answer(getattr(xp, name), operand(one)) is expected, one


def test_result_type_and_can_cast():
    for pair in PAIRS:
        expected = joined(EVERY, *pair)
        arrays = [SHORT.get(one) if one not in SCALARS else SCALARS[one] for one in pair]
        for given in ([operand(one) for one in pair], arrays):
            try:
                found = xp.result_type(*given)
            except TypeError:
                found = None
            assert found is expected, pair
        if not {*pair} & {*SCALARS}:
            assert xp.can_cast(*arrays) is (expected is arrays[1]), pair
            assert xp.can_cast(operand(pair[0]), arrays[1]) is (expected is arrays[1]), pair


def test_result_type_of_several_is_that_of_any_order():
    kinds = (xp.int8, xp.uint8, 3), (xp.float32, xp.complex64, xp.float64, 1.0), (xp.bool, True)
    for several, expected in zip(kinds, (xp.int16, xp.complex128, xp.bool), strict=True):
        assert {xp.result_type(*order) for order in permutations(several)} == {expected}


@every("function", [xp.concat, xp.stack])
def test_arrays_joined_promote_together(function: Callable[[Any], Any]):
    for pair in product(NAMES, repeat=2):
        found = answer(function, [operand(one) for one in pair])
        assert found is joined(EVERY, *pair), pair


@every("name", ["matmul", "tensordot", "vecdot", "linalg.outer"])
def test_products_promote(name: str):
    function = operator.attrgetter(name)(xp)
    settings: dict[str, Any] = {"axes": 1} if name == "tensordot" else {}
    for pair in product(NAMES, repeat=2):
        found = answer(lambda a, b: function(a, b, **settings), *map(operand, pair))
        assert found is joined(NUMERIC, *pair), pair
        if name == "matmul":
            assert answer(operator.matmul, *map(operand, pair)) is found


def test_where_joins_its_values_and_takes_truths_alone():
    condition = xp.asarray([True, False])
    for pair in PAIRS:
        found = answer(lambda a, b: xp.where(condition, a, b), *map(operand, pair))
        assert found is joined(EVERY, *pair), pair
    for name in set(NAMES) - {"bool"}:
        with pytest.raises(TypeError):
            xp.where(operand(name), condition, condition)


def test_clip_keeps_the_dtype_of_what_it_clips():
    for x, bound in product(NAMES, repeat=2):
        same = joined(INTS, x, bound) or joined(REAL_FLOATS, x, bound)
        for bounds in ((0, 1), (1, 0), (1, 1)):
            low, high = (operand(bound) if one else None for one in bounds)
            found = answer(lambda a, low=low, high=high: xp.clip(a, low, high), operand(x))
            assert found is (SHORT[x] if same else None), (x, bound)


REDUCTIONS: dict[str, tuple[set[str], Callable[[str], str]]] = {
    **dict.fromkeys(("max", "min", "sort"), (REAL, lambda x: x)),
    **dict.fromkeys(("argmax", "argmin", "argsort"), (REAL, lambda x: "i64")),
    **dict.fromkeys(("any", "all"), (EVERY, lambda x: "bool")),
    **dict.fromkeys(("var", "std"), (REAL_FLOATS, lambda x: x)),
    **dict.fromkeys(
        ("sum", "prod", "cumulative_sum", "cumulative_prod"),
        (NUMERIC, lambda x: f"{x[0]}64" if x in INTS else x),
    ),
    "mean": (FLOATS, lambda x: x),
    "count_nonzero": (EVERY, lambda x: "i64"),
    "diff": (NUMERIC, lambda x: x),
}


@every("name", REDUCTIONS)
def test_reductions_and_the_like(name: str):
    taken, result = REDUCTIONS[name]
    for one in NAMES:
        found = answer(getattr(xp, name), operand(one))
        assert found is (SHORT[result(one)] if one in taken else None), one


@every("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_sums_and_products_in_a_dtype_that_is_asked_for(name: str):
    for one, to in product(sorted(REAL), repeat=2):
        x = xp.asarray([100, 2], dtype=SHORT[one])
        found = getattr(xp, name)(x, dtype=SHORT[to])
        assert found.dtype is SHORT[to]
        numpy: Any = {"cumulative_sum": np.cumsum, "cumulative_prod": np.cumprod}.get(name)
        numpy = numpy or getattr(np, name)
        wanted = numpy(np.asarray(x).astype(str(SHORT[to])), dtype=str(SHORT[to]))
        np.testing.assert_array_equal(np.asarray(found), wanted)


# -- values beside Python scalars

NUMBERS = (0, 1, -1, 100, 2**24 + 1, 0.5, -0.0, 1e39, float("inf"), float("nan"), 1j, -0.0 - 1j)


def test_a_scalar_is_what_it_is_in_the_dtype_of_the_result():
    checked = 0
    for name, number in product(sorted(NUMERIC), NUMBERS):
        x = operand(name)
        try:
            found = xp.add(x, number)
        except TypeError:
            continue
        with np.errstate(all="ignore"):
            scalar = np.asarray(number, str(found.dtype))
            wanted = np.asarray(x).astype(scalar.dtype) + scalar
        np.testing.assert_array_equal(np.asarray(found), wanted, strict=True)
        np.testing.assert_array_equal(np.asarray(number + x), wanted, strict=True)
        checked += 1
    assert checked > 60


@every("name", sorted(INTS))
def test_ints_out_of_the_range_of_the_integers_beside_them_are_refused(name: str):
    info = np.iinfo(str(SHORT[name]))
    x = operand(name)
    for number in (int(info.min), int(info.max)):
        assert int(xp.minimum(x, number)[0]) == min(1, number)
    for number in (int(info.min) - 1, int(info.max) + 1, 2**100):
        with pytest.raises(TypeError, match="literal"):
            x + number


def test_signs_of_zeros_beside_arrays():
    x = xp.asarray([1.0])
    for zero in (0.0, -0.0):
        assert bool(xp.signbit(x * zero)[0]) is bool(np.signbit(zero))
        chosen = xp.where(x < 0, x, complex(0, zero))
        assert bool(xp.signbit(xp.imag(chosen))[0]) is bool(np.signbit(zero))


def test_no_array_at_all_is_refused():
    for name in BINARY:
        with pytest.raises(TypeError):
            getattr(xp, name)(1, 2)


@every("other", ["a", None, [1.0], np.ones(2), np.float32(1), object(), {}])
def test_what_is_neither_array_nor_scalar_is_refused(other: Any):
    x = xp.asarray([1.0, 2.0])
    for name in ("add", "equal", "less"):
        for operands in ((x, other), (other, x)):
            with pytest.raises(TypeError):
                getattr(xp, name)(*operands)
            with pytest.raises(TypeError):
                OPERATORS[name](*operands)


def test_an_array_of_the_namespace_is_needed_where_there_is_one():
    for function in (xp.sin, xp.sum, xp.sort, xp.flip, xp.nonzero, xp.linalg.inv, xp.fft.fft):
        for wrong in (1.0, [1.0], np.ones((2, 2))):
            with pytest.raises(TypeError, match="asarray"):
                function(wrong)
