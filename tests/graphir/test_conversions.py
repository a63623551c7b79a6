"""Conversions to floats from floats: every binade against exact arithmetic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from graphir.dtypes import DType
from graphir.errors import GraphError
from tests.support.rounding import (
    BELOW_32,
    FORMATS,
    INF,
    NAN,
    SPECIAL,
    assert_same,
    decoded,
    edges,
    expected,
    patterns,
    spelled,
    to,
)
from tests.support.tables import every

# --- floats to floats ----------------------------------------------------------------------------


@spelled(BELOW_32)
def test_float32_is_rounded_to_nearest_even_in_every_binade(name: str) -> None:
    x = edges(FORMATS[name].mantissa)
    assert_same(decoded(name, to(name, x, "float32")), expected(name, x, "float32"), x)


def double_edges(mantissa: int) -> Any:
    """Float64 where rounding to float32 first goes wrong, and random ones of all magnitudes."""
    rng = np.random.default_rng(mantissa)
    boundary = edges(mantissa)[:-200_000]
    boundary = rng.choice(boundary[np.isfinite(boundary)], 40_000).astype(np.float64)
    steps = np.array([-(2**29), -(2**28), -1, 0, 1, 2**28, 2**29])
    near = (boundary.view(np.int64)[:, None] + steps).ravel()
    random = rng.integers(0, 2**64, 50_000, dtype=np.uint64).view(np.int64)
    # Within the exponents of float32, where a random float64 seldom is.
    within = random & ~(0x7FF << 52) | rng.integers(1023 - 155, 1023 + 135, 50_000) << 52
    few = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e-300, 1e300, -1.7e308])
    return np.concatenate([near, random, within, few.view(np.int64)]).view(np.float64)


@spelled([*BELOW_32, "float32"])
def test_float64_is_rounded_once(name: str) -> None:
    x = double_edges(min(FORMATS[name].mantissa, 20))
    assert_same(decoded(name, to(name, x, "float64")), expected(name, x, "float64"), x)


def test_float64_is_not_rounded_by_way_of_float32() -> None:
    """By way of float32 each of these is a tie, and goes down."""
    trap = np.array([1 + 2**-8 + 2**-40, 1 + 2**-11 + 2**-40, 1 + 2**-4 + 2**-40])
    assert to("bfloat16", trap, "float64")[0] == 1 + 2**-7
    assert to("float16", trap, "float64")[1] == 1 + 2**-10
    assert to("tensor_float32", trap, "float64")[1] == 1 + 2**-10
    assert to("float8_e4m3fn", trap, "float64")[2].astype(float) == 1 + 2**-3


@spelled(BELOW_32)
def test_narrow_floats_widen_exactly_and_round_into_each_other(name: str) -> None:
    x = to(name, edges(10), "float32") if name == "tensor_float32" else patterns(name)
    exact = decoded(name, x)
    for wide in ("float32", "float64", "weak_float"):
        assert_same(decoded(wide, to(wide, x, name)), exact, exact)
    for other in FORMATS:
        want = exact if other == name else expected(other, exact, "float64")
        assert_same(decoded(other, to(other, x, name)), want, exact)


@every(
    ("name", "want"),
    [
        *((n, [INF, -INF, NAN, INF, -INF, 0.0, -0.0, -1.0]) for n in ("float16", "float8_e3m4")),
        *(
            (n, [INF, -INF, NAN, INF, -INF, 0.0, -0.0, -1.0])
            for n in ("float8_e4m3", "float8_e5m2")
        ),
        ("float8_e4m3fn", [NAN, NAN, NAN, NAN, NAN, 0.0, -0.0, -1.0]),
        ("float8_e4m3fnuz", [NAN, NAN, NAN, NAN, NAN, 0.0, 0.0, -1.0]),
        ("float8_e4m3b11fnuz", [NAN, NAN, NAN, NAN, NAN, 0.0, 0.0, -1.0]),
        ("float8_e5m2fnuz", [NAN, NAN, NAN, NAN, NAN, 0.0, 0.0, -1.0]),
        ("float8_e8m0fnu", [NAN, NAN, NAN, 2.0**100, NAN, NAN, NAN, NAN]),
        ("float6_e2m3fn", [7.5, -7.5, -0.0, 7.5, -7.5, 0.0, -0.0, -1.0]),
        ("float6_e3m2fn", [28.0, -28.0, -0.0, 28.0, -28.0, 0.0, -0.0, -1.0]),
        ("float4_e2m1fn", [6.0, -6.0, -0.0, 6.0, -6.0, 0.0, -0.0, -1.0]),
    ],
)
def test_overflow_and_specials_by_format(name: str, want: list[float]) -> None:
    for source in ("float64", "float32", "bfloat16"):
        x = SPECIAL.astype(DType(source).storage)
        assert_same(decoded(name, to(name, x, source)), np.array(want), SPECIAL)


@spelled([name for name, f in FORMATS.items() if f.mantissa < 7])
@pytest.mark.parametrize("source", ["float64", "float32", "bfloat16", "float16"])
def test_every_nan_gives_the_same_bits_in_a_narrow_float(name: str, source: str) -> None:
    f, bits = FORMATS[source], 8 * DType(source).storage.itemsize
    inf, sign, quiet = (2**f.exponent - 1) << f.mantissa, 2 ** (bits - 1), 2 ** (f.mantissa - 1)
    nans = [inf + 1, inf + quiet, sign - 1, sign + inf + 1, sign + inf + quiet, 2 * sign - 1]
    x = np.array(nans, f"u{bits // 8}").view(DType(source).storage)
    assert len(set(to(name, x, source).tobytes())) == 1


@every(
    ("x", "want"),
    [
        (3.0, 4.0),  # ties go up: both neighbours have the one significand there is
        (6.0, 8.0),
        (2.9, 2.0),
        (1e-45, 2.0**-127),
        (1.25 * 2.0**-127, 2.0**-127),  # ml_dtypes: 2**-126
        (1.5 * 2.0**-127, 2.0**-126),
        (1.5 * 2.0**127 * (1 - 2.0**-23), 2.0**127),
        (1.5 * 2.0**127, math.nan),
    ],
)
def test_e8m0_rounds_to_the_nearest_power_of_two(x: float, want: float) -> None:
    for source in ("float32", "float64"):
        array = np.array([x], DType(source).storage)
        assert_same(
            decoded("float8_e8m0fnu", to("float8_e8m0fnu", array, source)), np.array([want])
        )


# --- tensor_float32 ------------------------------------------------------------------------------


def test_tf32_ties_away_from_zero() -> None:
    x = edges(10)
    want = expected("tensor_float32", x, "float32", away=True)
    assert_same(decoded("tensor_float32", to("tensor_float32", x, "float32", "away")), want, x)
    x = double_edges(10)
    want = expected("tensor_float32", x, "float64", away=True)
    assert_same(decoded("tensor_float32", to("tensor_float32", x, "float64", "away")), want, x)


def test_round_to_tf32() -> None:
    tie, big = 1 + 2.0**-11, 2.0**128 - 2.0**104
    x = np.array([tie, -tie, 1 + 3 * 2.0**-11, big, -np.inf, np.nan, -0.0], np.float32)
    even = np.array([1, -1, 1 + 2.0**-9, np.inf, -np.inf, np.nan, -0.0])
    away = np.array([1 + 2.0**-10, -1 - 2.0**-10, 1 + 2.0**-9, np.inf, -np.inf, np.nan, -0.0])
    assert_same(to("tensor_float32", x, "float32"), even)
    assert_same(to("tensor_float32", x, "float32", "away"), away)
    nans = np.array([0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0xFF801FFF], np.uint32).view(np.float32)
    for mode in ("even", "away"):
        got = to("tensor_float32", nans, "float32", mode).view(np.uint32)
        assert ((got & 0x7FC00000) == 0x7FC00000).all()
        single = to("tensor_float32", np.array(-np.nan, np.float32), "float32", mode)
        assert isinstance(single, np.ndarray) and single.shape == ()
    with pytest.raises(GraphError, match='ties to "even" or "away"'):
        to("tensor_float32", x, "float32", "up")
