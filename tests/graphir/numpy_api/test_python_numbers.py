"""Python numbers that are not known yet: operators make numbers of them, as Python's do."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphir import DType, Graph, GraphirError, ops, trace
from graphir.ir.verifier import verify
from graphir.passes import lower
from graphir.promotion import rule_sets
from graphir.promotion.python import OPERATORS
from graphir.runtime import interpret, jit
from graphir.runtime.jit.signatures import _takes_weak
from tests.support.tables import every, sampled

NUMBERS = (3, 2.5, 1 + 2j)
DTYPES = [np.dtype(code) for code in "?bhilBHILefdFD"]
WEAK = [rules.name for rules in rule_sets() if _takes_weak(rules)]
OF_NUMBERS = [rules.name for rules in rule_sets() if rules.of_numbers and _takes_weak(rules)]
EXPRESSIONS: dict[str, Callable[[Any, Any], Any]] = {
    "k * x": lambda k, x: k * x,
    "(k + 1) * x": lambda k, x: (k + 1) * x,
    "(1 - k) + x": lambda k, x: (k - 1) + x,
    "k * 1.5 + x": lambda k, x: k * 1.5 + x,
    "k / 2 * x": lambda k, x: k / 2 * x,
    "2 / k * x": lambda k, x: 2 / k * x,
    "k // 2 * x": lambda k, x: k // 2 * x,
    "7 % k + x": lambda k, x: 7 % k + x,
    "k ** 2 * x": lambda k, x: k**2 * x,
    "2 ** k * x": lambda k, x: 2**k * x,
    "k ** -1 * x": lambda k, x: k**-1 * x,
    "k * k + x": lambda k, x: k * k + x,
    "abs(-k) * x": lambda k, x: abs(-k) * x,
    "+k * x": lambda k, x: +k * x,
    "(k + True) * x": lambda k, x: (k + True) * x,
    "(k + 1j) * x": lambda k, x: (k + 1j) * x,
    "(k | 4) ^ (k & 1)": lambda k, x: ((k | 4) ^ (k & 1)) + x,
    "~k + x": lambda k, x: (~k + 9) + x,
    "k << 1 >> 1": lambda k, x: (k << 1 >> 1) * x,
    "k < 3": lambda k, x: (k < 3) | (k == 3) | (x != k),
    "x + (k - 1) / (k + 1)": lambda k, x: x + (k - 1) / (k + 1),
}
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "np.add(k, 1) * x": lambda k, x: np.add(k, 1) * x,
    "np.multiply(k, k) + x": lambda k, x: np.multiply(k, k) + x,
    "np.negative(k) - x": lambda k, x: np.negative(k) * np.negative(x),
    "np.abs(k) + x": lambda k, x: np.abs(k) + x,
    "np.add(k, x)": lambda k, x: np.add(k, x),
    "np.sin(k) * x": lambda k, x: np.sin(k) * x,
    "np.maximum(k, 1) + x": lambda k, x: np.maximum(k, 1) + x,
    "np.where(x, k, 1)": lambda k, x: np.where(x, k, 1),
    "np.int8(2) * k + x": lambda k, x: np.int8(2) * k + x,
}


def python_allows(call: Callable[[Any, Any], Any], k: Any, x: Any) -> Any:
    """What NumPy and Python make of it, None where they refuse."""
    try:
        return np.asarray(call(k, x))
    except (TypeError, OverflowError, ValueError):
        return None


@pytest.mark.exhaustive
@pytest.mark.parametrize("k", NUMBERS, ids=str)
@pytest.mark.parametrize("name", [*EXPRESSIONS, *FUNCTIONS])
def test_under_numpys_rules_dtypes_and_values_are_those_of_plain_numpy(name: str, k: Any) -> None:
    call = (EXPRESSIONS | FUNCTIONS)[name]
    jitted = jit(call, rules="numpy")
    asked = 0
    for dtype in DTYPES:
        x = np.array([0, 1, 2]).astype(dtype)
        expected = python_allows(call, k, x)
        if expected is None:
            continue
        found, asked = jitted(k, x), asked + 1
        assert found.dtype == expected.dtype, dtype
        np.testing.assert_allclose(found, expected, rtol=2e-3)
    assert asked or isinstance(k, (float, complex))


def answer(make: Callable[[], Any]) -> Any:
    try:
        return make().dtype
    except (GraphirError, TypeError):
        return None


@sampled(3)
@every("rules", WEAK)
def test_what_is_not_known_has_the_dtype_of_what_is_known(rules: str) -> None:
    """Of each expression: the number is an input, or Python computes with it."""
    for name, call in EXPRESSIONS.items():
        for k in NUMBERS:
            for dtype in ("int8", "int32", "float32", "float64", "complex64"):
                g = Graph(rules=rules)
                x, weak = g.input(dtype, (3,)), g.input(trace(lambda x: x, type(k)).graph[0].type)
                known = answer(lambda c=call, k=k, x=x: c(k, x))
                if known is None or ("**" in name and rules not in OF_NUMBERS):
                    continue  # powers under JAX: tests/graphir/promotion/test_jax_rules.py
                if "True" in name and rules.startswith(("jep", "jax_strict")):
                    continue  # bool promotes with nothing there
                assert answer(lambda c=call, k=weak, x=x: c(k, x)) is known, (name, k, dtype)


@every("rules", OF_NUMBERS)
def test_all_of_pythons_operators_keep_numbers(rules: str) -> None:
    binary = [
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "and_",
        "or_",
        "xor",
        "lshift",
        "rshift",
        "pow",
    ]
    compared = ["eq", "ne", "lt", "le", "gt", "ge"]
    seen: set[str] = set()
    for a, b in ((int, int), (int, float), (float, int), (float, float), (complex, float)):
        g = Graph(rules=rules)
        x, y = (g.input(trace(lambda x: x, one).graph[0].type) for one in (a, b))
        values = a(3), b(2)
        for name in (*binary, *compared):
            function = getattr(operator, name)
            try:
                expected = type(function(*values))
            except TypeError:
                with pytest.raises(GraphirError):
                    function(x, y)
                continue
            found = function(x, y)
            seen.add(found.op.name)
            assert found.weak == (name in binary) and found.dtype.is_float == (expected is float)
        for function in (operator.neg, operator.pos, abs, *([operator.invert, round] * (a is int))):
            found = function(x)
            seen.add(found.op.name)
            kind = type(function(values[0]))
            assert found.weak and found.dtype.is_complex == (kind is complex)
        verify(g)
    assert seen == OPERATORS


@every("rules", OF_NUMBERS)
def test_an_array_without_axes_is_no_number(rules: str) -> None:
    g = Graph(rules=rules)
    zero, k = g.input("int32"), g.input(DType.weak_int)
    assert not (zero + k).weak and not (zero * 2).weak and not (k + zero + 1).weak


def test_functions_make_arrays_of_numbers() -> None:
    for name in OF_NUMBERS:
        k = Graph(rules=name).input(DType.weak_int)
        assert np.add(k, 1).dtype is DType.int64 and (k + 1).weak
        assert np.negative(k).dtype is DType.int64 and ops.add(k, 1).weak


@given(st.integers(-(2**40), 2**40), st.integers(1, 2**20), st.floats(-1e9, 1e9))
def test_values_are_pythons(k: int, m: int, f: float) -> None:
    def several(k: Any, m: Any, f: Any) -> Any:
        return k + m, k - 2 * m, k // m, k % m, k * f, f - m, k / m, (k > m), -k & m, m**2 | 1

    traced = trace(several, int, int, float, rules="numpy")
    given = [np.asarray(one) for one in (k, m, f)]
    expected = several(k, m, f)
    for graph in (traced.graph, lower(traced.graph)):
        for one, want in zip(interpret(graph, *given), expected, strict=True):
            assert one == want and one.dtype == np.asarray(want).dtype
