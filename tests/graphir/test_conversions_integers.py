"""Conversions from and to integers and bool, at every edge."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from graphir.dtypes import DType
from tests.support.rounding import (
    COMPLEX,
    FORMATS,
    INTEGERS,
    NAMES,
    NAN,
    assert_same,
    decoded,
    float_edges,
    integer_traps,
    rounded,
    spelled,
    to,
)
from tests.support.tables import every

# --- integers to floats --------------------------------------------------------------------------


@pytest.mark.exhaustive
@spelled(FORMATS)
@pytest.mark.parametrize("source", INTEGERS)
def test_integers_are_rounded_once(name: str, source: str) -> None:
    values = integer_traps(source)
    x = np.array(values, np.int64 if INTEGERS[source][1] else np.uint64)
    magnitude = np.array([abs(v) for v in values], np.uint64)
    want = rounded(name, np.array([v < 0 for v in values]), magnitude, np.zeros(len(values), int))
    got = to(name, x.astype(DType(source).storage), source)
    assert_same(decoded(name, got), want, x)


@every(
    ("name", "n", "want"),
    [
        ("bfloat16", 2**62 + 2**54 + 1, 2**62 + 2**55),
        ("tensor_float32", 2**62 + 2**51 + 1, 2**62 + 2**52),
        ("float32", 2**62 + 2**38 + 1, 2**62 + 2**39),
        ("float8_e8m0fnu", 2**62 + 2**61 - 1, 2**62),
    ],
)
def test_int64_is_not_rounded_by_way_of_float64(name: str, n: int, want: int) -> None:
    """By way of float64 each of these is a tie, and goes to the other side."""
    for sign in (1, -1) if name != "float8_e8m0fnu" else (1,):
        assert decoded(name, to(name, np.array([sign * n]), "int64")).tolist() == [sign * want]


# --- to integers and bool ------------------------------------------------------------------------


def truncated(value: float, bits: int, signed: bool) -> int:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return high if value > 0 else low
    return min(max(int(value), low), high)


def as_ints(x: Any, name: str) -> list[int]:
    if INTEGERS[name][0] < 8:
        x = x.astype(np.int8 if INTEGERS[name][1] else np.uint8)
    return x.tolist()


@pytest.mark.exhaustive
@spelled(INTEGERS)
@pytest.mark.parametrize("source", FORMATS)
def test_floats_truncate_and_saturate(name: str, source: str) -> None:
    x = float_edges(source)
    values = decoded(source, x).tolist()
    want = [truncated(v, *INTEGERS[name]) for v in values]
    assert as_ints(to(name, x, source), name) == want
    alone = [as_ints(to(name, x[i : i + 1], source), name)[0] for i in range(len(x))]
    assert alone == want  # where no neighbour saturates, another branch computes


def wrapped(value: int, bits: int, signed: bool) -> int:
    value %= 2**bits
    return value - 2**bits if signed and value >= 2 ** (bits - 1) else value


@spelled(INTEGERS)
@pytest.mark.parametrize("source", [*INTEGERS, "bool"])
def test_integers_wrap(name: str, source: str) -> None:
    bits, signed = INTEGERS.get(source, (1, False))
    edges = [
        2**k + d for k in (0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64) for d in (-2, -1, 0, 1)
    ]
    values = sorted({wrapped(s * v, bits, signed) for v in [*edges, *range(20)] for s in (1, -1)})
    x = np.array(values, np.int64 if signed else np.uint64).astype(DType(source).storage)
    assert as_ints(to(name, x, source), name) == [wrapped(v, *INTEGERS[name]) for v in values]


@spelled(NAMES)
def test_to_bool_is_unequal_to_zero(name: str) -> None:
    if name in FORMATS:
        x = float_edges(name)
        want = [v != 0 for v in decoded(name, x).tolist()]
    elif name in INTEGERS:
        values = integer_traps(name)
        x = np.array(values, np.int64 if INTEGERS[name][1] else np.uint64)
        x, want = x.astype(DType(name).storage), [v != 0 for v in values]
    elif name in COMPLEX:
        x = np.array(
            [0, -0.0, 1, 1j, complex(0, NAN), complex(NAN, 0), 1e-40j, complex(-0.0, -0.0)]
        )
        x, want = x.astype(DType(name).storage), [False, False, *[True] * 5, False]
    else:
        x, want = np.array([False, True]), [False, True]
    assert to("bool", x, name).tolist() == want


@spelled(NAMES)
def test_bool_becomes_0_or_1(name: str) -> None:
    got = to(name, np.array([False, True]), "bool")
    if name == "float8_e8m0fnu":
        assert got.view(np.uint8).tolist() == [255, 127]  # it has no zero
    elif name == "bool":
        assert got.tolist() == [False, True]
    elif name in INTEGERS:
        assert as_ints(got, name) == [0, 1]
    else:
        assert got.astype(np.complex128).tolist() == [0, 1]
