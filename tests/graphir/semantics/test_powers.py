"""`x ** 0.5` and `x ** -1`: NumPy's bits, from the operator on symbols, arrays and traced calls."""

from __future__ import annotations

import operator
from itertools import product
from typing import Any

import numpy as np
import pytest

import graphir.runtime.array_api as xp
from graphir import DType, Graph, rules, trace
from graphir.passes import cast_report
from graphir.runtime import Program, interpret, jit, record
from tests.support.tables import every, sampled

EXPONENTS: list[Any] = [
    *(-1, -1.0, 0, 0.0, 0.5, 1, 1.0, 2, 2.0, 3, -0.5, True, 0.5 + 0j),
    *(np.float16(0.5), np.float16(-1), np.int8(-1)),
]
_RANDOM = np.random.default_rng(0)
BASES = {
    "float16": np.arange(1, 0x7C00, 7, np.uint16).view(np.float16),
    "float32": (_RANDOM.random(3000) * 10 + 0.01).astype(np.float32),
    "float64": _RANDOM.random(3000) * 10 + 0.01,
    "complex64": (_RANDOM.random(3000) + 1j * _RANDOM.random(3000)).astype(np.complex64),
    "complex128": _RANDOM.random(3000) - 1j * _RANDOM.random(3000),
}


def same(found: Any, expected: Any) -> bool:
    found = np.asarray(found)
    return found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


@sampled(2)
@every("exponent", EXPONENTS)
@every("dtype", BASES)
def test_a_traced_power_has_the_bits_of_numpy(dtype: str, exponent: Any) -> None:
    base = BASES[dtype]
    for x in (base, base[:1], base[:1].reshape(())):
        with np.errstate(all="ignore"):
            expected = np.asarray(x**exponent)
        assert same(jit(lambda x: x**exponent, rules="numpy")(x), expected)
        graph = trace(lambda x: x**exponent, x, rules="numpy").graph
        assert same(interpret(graph, x), expected)


@every("exponent", [-1, 0.5, 2])
@every("dtype", BASES)
def test_a_recorded_power_replays_with_the_bits_of_numpy(dtype: str, exponent: Any) -> None:
    x = BASES[dtype]
    with np.errstate(all="ignore"):
        recording = record(lambda x: x**exponent, x)
        expected = x**exponent
    assert same(interpret(recording.graph, x), expected)


@every("exponent", [-1, -1.0, 0.5, 2, 2.0, 3])
@every("dtype", [name for name in BASES if name != "float16"])
def test_a_power_of_the_array_api_has_the_bits_of_numpy(dtype: str, exponent: Any) -> None:
    base = BASES[dtype]
    x = xp.asarray(base)
    assert same(x**exponent, base**exponent)
    x **= exponent
    assert same(x, base**exponent)


def test_other_libraries_and_other_dtypes_keep_the_power() -> None:
    for name in ("max", "torch", "jax", "tensorflow"):
        x = Graph(rules=name).input("float32", (3,))
        assert (x**0.5).op.name == "pow"
    x = Graph(rules="numpy").input("float32", (3,))
    assert (x**0.5).op.name == "sqrt"
    assert (x ** np.float64(0.5)).dtype is rules("numpy").promote("float32", np.float64(0.5))
    assert (x ** np.float64(0.5)).dtype is DType.float64


INTEGERS = {name: np.arange(1, 100).astype(name) for name in ("int8", "uint8", "int32", "int64")}
SCALARS: list[Any] = [-1.0, 0.5, 2.0, 3, np.float64(0.5), np.float64(-1), np.float32(0.5)]


@sampled(3)
@every("exponent", SCALARS)
@every("dtype", [*BASES, *INTEGERS])
def test_every_way_to_write_a_power(dtype: str, exponent: Any) -> None:
    """A literal, np.power, an argument, an array without axes; of operands to be converted too."""
    x = (BASES | INTEGERS)[dtype]
    strong = np.asarray(exponent, np.float64)
    with np.errstate(all="ignore"):
        assert same(jit(lambda x: x**exponent)(x), x**exponent)
        assert same(jit(lambda x: np.power(x, exponent))(x), np.power(x, exponent))
        assert same(jit(lambda x, k: x**k)(x, exponent), x**exponent)
        assert same(jit(lambda x, k: np.power(x, k))(x, exponent), np.power(x, exponent))
        if not dtype.startswith("complex"):
            assert same(jit(lambda x, k: x**k)(x, strong), x**strong)
            assert same(jit(lambda x: x**strong)(x), x**strong)


def test_an_argument_that_is_another_number_later() -> None:
    x = BASES["float64"]
    jitted = jit(lambda x, k: x**k)
    for exponent in (0.5, 3.0, -1, 2.5, -1.0, 0.5, 2):
        assert same(jitted(x, exponent), x**exponent)


@every("dtype", ["float32", "float64", "complex128"])
@every("exponent", [-1, 0.5, 2])
def test_a_power_in_place(dtype: str, exponent: Any) -> None:
    x = BASES[dtype].copy()
    g = Graph(rules="numpy")
    symbol = g.input(dtype, ("n",))
    symbol **= exponent
    g.output(symbol)
    before = x.copy()
    x **= exponent
    assert same(interpret(g, before), x)


def test_the_cast_of_a_root_is_implicit() -> None:
    x = Graph(rules="numpy").input("int32", ("n",), name="x")
    x.graph.output(x**0.5)
    (row,) = cast_report(x.graph)
    assert (row.kind, row.op, row.operand, row.rule) == ("implicit", "pow", "lhs", "numpy")
    assert (row.source, row.target) == (DType.int32, DType.float64)
    assert Graph.parse(str(x.graph)).verify()


_EXPONENTS = (
    *(-1.0, 2.0, 0.5, 1.0, 0.0, 3.0, -1, 2, 0.3, np.float64(-1), np.float64(0.5), np.float32(2)),
    *(np.float32(0.5), np.float16(0.5), np.int64(2), np.int8(3), np.array(0.5), np.array(2)),
    *(np.array(-1.0, "f4"), np.complex64(2), np.bool_(True)),
)


@pytest.mark.exhaustive
@pytest.mark.parametrize("char", "?bhilBHILefdFD")
@pytest.mark.parametrize("shape", [(101,), ()])
def test_replays_of_recorded_powers_have_numpys_bits(char: str, shape: tuple[int, ...]):
    drawn = np.random.default_rng(0).normal(size=shape) * 3
    x = np.asarray(np.abs(drawn) if char in "?BHIL" else drawn).astype(char)
    for exponent, apply in product(_EXPONENTS, (operator.pow, np.power)):
        with np.errstate(all="ignore"):
            try:
                expected = apply(x, exponent)
            except (ValueError, OverflowError):  # integers to negative powers, -1 of unsigned
                continue
            recording = record(lambda x, y=exponent, apply=apply: apply(x, y), x)
        if len(recording.graph.inputs) == 1:  # no exponent that NumPy made an array of
            found = Program(recording.graph)(x)
            assert same(np.asarray(found), np.asarray(expected)), (exponent, apply)
