"""The rules of Python's own numbers: weak dtypes that mix as its operators mix them."""

from __future__ import annotations

import operator
from typing import Any

import pytest

from graphir import DType, Graph, PromotionError, ops, rules
from graphir.runtime import execute, interpret
from tests.support.tables import every

PY = [True, 2, 2.5, 2j]
PYTHON: dict[str, Any] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
}


@every("a", PY)
@every("b", PY)
@every("name", ["add", "subtract", "multiply", "divide"])
def test_python_s_scalars_mix_as_python_mixes_them(name: str, a: Any, b: Any):
    g = Graph(rules="python")
    x, y = g.scalar(a), g.scalar(b)
    weak = {bool: "bool", int: "weak_int", float: "weak_float", complex: "weak_complex"}
    by_python = PYTHON[name](a, b)
    for made_ in (getattr(ops, name)(x, y), getattr(ops, name)(x, b), getattr(ops, name)(a, y)):
        assert str(made_.dtype) == weak[type(by_python)]


def test_python_s_functions():
    g = Graph(rules="python")
    b, i, f = g.scalar(True), g.scalar(2), g.scalar(2.5)
    assert ops.sin(b).dtype is ops.sin(i).dtype is DType.weak_float
    assert (-b).dtype is abs(b).dtype is (b**b).dtype is DType.weak_int
    assert (i // i).dtype is (i % i).dtype is DType.weak_int
    assert (i // f).dtype is DType.weak_float
    assert ops.logical_not(f).dtype is (i < f).dtype is DType.bool
    assert g.input("bool", (3,)).sum().dtype is DType.weak_int
    assert i.weak and not b.weak
    with pytest.raises(PromotionError, match="64 bits"):
        g.scalar(2**64)


def test_weak_dtypes_commit_to_the_widest():
    committed = rules("python").concrete_dtype
    assert committed(DType.weak_int) is DType.int64
    assert committed(DType.weak_float) is DType.float64
    assert committed(DType.weak_complex) is DType.complex128
    assert committed(DType.int8) is DType.int8


@every("a", [7, -7, 2.5, True])
@every("b", [3, -3, 0.5, True])
@every("name", PYTHON)
def test_values_are_python_s(name: str, a: Any, b: Any):
    """Every value here is exact in 64 bits, so Python's own arithmetic is the oracle."""
    by_python = PYTHON[name](a, b)
    g = Graph(rules="python")
    g.output(getattr(ops, name)(g.scalar(a), g.scalar(b)))
    for run in (execute, interpret):
        found = run(g).item()
        assert found == by_python and type(found) is type(by_python)
