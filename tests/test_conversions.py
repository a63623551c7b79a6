"""Every conversion against exact integer arithmetic, on formats restated here as literals."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphir.conversions import convert, round_to_tf32
from graphir.dtypes import DType
from graphir.errors import GraphError, PromotionError


class Format(NamedTuple):
    exponent: int
    mantissa: int
    bias: int
    specials: str


# OCP 8-bit and microscaling specifications; IEEE 754; the fnuz formats of arXiv:2206.02915.
FORMATS = {
    "float8_e3m4": Format(3, 4, 3, "ieee"),
    "float8_e4m3": Format(4, 3, 7, "ieee"),
    "float8_e4m3b11fnuz": Format(4, 3, 11, "fnuz"),
    "float8_e4m3fn": Format(4, 3, 7, "fn"),
    "float8_e4m3fnuz": Format(4, 3, 8, "fnuz"),
    "float8_e5m2": Format(5, 2, 15, "ieee"),
    "float8_e5m2fnuz": Format(5, 2, 16, "fnuz"),
    "float8_e8m0fnu": Format(8, 0, 127, "scale"),
    "float6_e2m3fn": Format(2, 3, 1, "finite"),
    "float6_e3m2fn": Format(3, 2, 3, "finite"),
    "float4_e2m1fn": Format(2, 1, 1, "finite"),
    "float16": Format(5, 10, 15, "ieee"),
    "bfloat16": Format(8, 7, 127, "ieee"),
    "tensor_float32": Format(8, 10, 127, "ieee"),
    "float32": Format(8, 23, 127, "ieee"),
    "float64": Format(11, 52, 1023, "ieee"),
    "weak_float": Format(11, 52, 1023, "ieee"),
}
GREATEST = {
    "float8_e3m4": 15.5,
    "float8_e4m3": 240.0,
    "float8_e4m3b11fnuz": 30.0,
    "float8_e4m3fn": 448.0,
    "float8_e4m3fnuz": 240.0,
    "float8_e5m2": 57344.0,
    "float8_e5m2fnuz": 57344.0,
    "float8_e8m0fnu": 2.0**127,
    "float6_e2m3fn": 7.5,
    "float6_e3m2fn": 28.0,
    "float4_e2m1fn": 6.0,
    "float16": 65504.0,
    "bfloat16": float.fromhex("0x1.fep127"),
    "tensor_float32": float.fromhex("0x1.ffcp127"),
    "float32": float.fromhex("0x1.fffffep127"),
    "float64": float.fromhex("0x1.fffffffffffffp1023"),
    "weak_float": float.fromhex("0x1.fffffffffffffp1023"),
}
INTEGERS = {  # bits, signed
    "int2": (2, True),
    "int4": (4, True),
    "int8": (8, True),
    "int16": (16, True),
    "int32": (32, True),
    "int64": (64, True),
    "weak_int": (64, True),
    "uint2": (2, False),
    "uint4": (4, False),
    "uint8": (8, False),
    "uint16": (16, False),
    "uint32": (32, False),
    "uint64": (64, False),
    "index": (64, False),
    "address": (64, False),
}
COMPLEX = ("complex64", "complex128", "weak_complex")
NAMES = ("bool", *INTEGERS, *FORMATS, *COMPLEX)
ALL = [DType(name) for name in NAMES]
INT64S = ("int64", "weak_int", "uint64", "index", "address")
BELOW_32 = [name for name, f in FORMATS.items() if f.mantissa < 23]


def spelled(names: Any) -> Any:
    return pytest.mark.parametrize("name", names)


def to(name: str, array: Any, source: str, tf32: str = "even") -> np.ndarray[Any, Any]:
    return convert(array, DType(source), DType(name), tf32)


# --- the oracle: integers and literals only ------------------------------------------------------


def significands(x: Any, f: Format, bits: Any) -> tuple[Any, Any, Any]:
    """Sign, significand and exponent of finite floats, read from their bit patterns."""
    patterns = np.ascontiguousarray(x).view(bits).astype(np.uint64)
    fraction = patterns & np.uint64(2**f.mantissa - 1)
    exponent = ((patterns >> f.mantissa) & np.uint64(2**f.exponent - 1)).astype(np.int64)
    negative = (patterns >> (f.mantissa + f.exponent)) & np.uint64(1)
    whole = np.where(exponent > 0, fraction | np.uint64(2**f.mantissa), fraction)
    return negative == 1, whole, np.maximum(exponent, 1) - f.bias - f.mantissa


def rounded(name: str, negative: Any, m: Any, e: Any, away: bool = False) -> Any:
    """(-1)**negative * m * 2**e, m being uint64, rounded once; float64 holds what comes out."""
    f = FORMATS[name]
    least = -f.bias if f.specials == "scale" else 1 - f.bias - f.mantissa
    unit = np.maximum(e + lengths(m) - f.mantissa - 1, least)
    shift = unit - e
    right = shift.clip(1, 63).astype(np.uint64)
    kept, rest = m >> right, m & ((np.uint64(1) << right) - np.uint64(1))
    half = np.uint64(1) << (right - np.uint64(1))
    ties_up = away | (f.specials == "scale") | (kept & np.uint64(1) == 1)
    kept += (rest > half) | ((rest == half) & ties_up)
    assert (m[shift > 63] < 2**63).all()  # less than half a unit
    kept = np.maximum(np.where(shift > 63, 0, kept), f.specials == "scale")
    with np.errstate(over="ignore"):
        value = np.where(shift > 0, np.ldexp(kept * 1.0, unit), np.ldexp(m * 1.0, e))
    return specialised(name, value, negative, m == 0)


def lengths(m: Any) -> Any:
    """The number of bits of uint64 numbers."""
    length = np.minimum(np.frexp(m * 1.0)[1].astype(np.int64), 64)
    shorter = m >> np.maximum(length - 1, 0).astype(np.uint64) == 0  # m was rounded up
    return length - (shorter & (m > 0))


def specialised(name: str, value: Any, negative: Any, zero: Any) -> Any:
    """What a format makes of overflow, zero and sign."""
    kind, over = FORMATS[name].specials, value > GREATEST[name]
    beyond = {"ieee": math.inf, "finite": GREATEST[name]}.get(kind, math.nan)
    value = np.where(over, beyond, value)
    if kind == "scale":
        return np.where(zero | negative, math.nan, value)
    return np.where(negative & ~((kind == "fnuz") & (value == 0)), -value, value)


def expected(name: str, x: Any, source: str, away: bool = False) -> Any:
    """The values that floats `x` have in format `name`."""
    finite = np.isfinite(x)
    negative, m, e = significands(
        np.where(finite, x, 0).astype(x.dtype), FORMATS[source], f"u{x.itemsize}"
    )
    sign = np.signbit(x)
    kind = FORMATS[name].specials
    infinite = specialised(name, np.full(x.shape, math.inf), sign, np.zeros(x.shape, bool))
    nan = -0.0 if kind == "finite" else math.nan
    special = np.where(np.isnan(x), nan, infinite)
    return np.where(finite, rounded(name, negative, m, e, away), special)


def decoded(name: str, x: Any) -> Any:
    """The values that arrays of dtype `name` hold, from the bits alone."""
    f = FORMATS[name]
    if name == "tensor_float32":
        assert not (x.view(np.uint32) & 0x1FFF).any()
    if f.mantissa >= 23 or name == "tensor_float32":
        with np.errstate(invalid="ignore"):  # signalling NaN
            return x.astype(np.float64)
    patterns = x.view(f"u{x.itemsize}").astype(np.int64)
    if f.specials == "scale":
        return np.where(patterns == 255, math.nan, np.ldexp(1.0, patterns - 127))
    below = patterns & (2 ** (f.exponent + f.mantissa) - 1)
    exponent, fraction = below >> f.mantissa, below & (2**f.mantissa - 1)
    whole = np.where(exponent > 0, fraction + 2**f.mantissa, fraction).astype(np.float64)
    value = np.ldexp(whole, np.maximum(exponent, 1) - f.bias - f.mantissa)
    negative = patterns >> (f.exponent + f.mantissa) & 1 == 1
    top = exponent == 2**f.exponent - 1
    assert f.specials != "finite" or (patterns < 2 ** (1 + f.exponent + f.mantissa)).all()
    if f.specials == "ieee":
        value = np.where(top, np.where(fraction > 0, math.nan, math.inf), value)
    if f.specials == "fn":
        value = np.where(below == 2 ** (f.exponent + f.mantissa) - 1, math.nan, value)
    if f.specials == "fnuz":
        value = np.where((below == 0) & negative, math.nan, value)
    return np.where(negative, -value, value)


def assert_same(got: Any, want: Any, of: Any = None) -> None:
    """Equal, any NaN equal to any NaN, -0.0 different from 0.0."""
    with np.errstate(invalid="ignore"):  # signalling NaN
        equal = (got == want) & (np.signbit(got) == np.signbit(want))
    same = np.where(np.isnan(want), np.isnan(got), equal)
    if not same.all():
        i = np.flatnonzero(~same.ravel())[:5]
        shown = None if of is None else of.ravel()[i]
        raise AssertionError(f"{shown}: got {got.ravel()[i]}, want {want.ravel()[i]}")


def edges(mantissa: int) -> Any:
    """Float32 on and beside the rounding boundaries of a format, in all binades; random ones."""
    rng = np.random.default_rng(mantissa)
    k = np.arange(2 ** (mantissa + 1))
    if mantissa > 7:  # all of those would be millions
        k = np.concatenate([k[:40], k[-40:], rng.choice(k, 80)])
    fractions = (k << (22 - mantissa))[:, None] + np.array([-1, 0, 1])
    patterns = (np.arange(256)[:, None] << 23) + fractions.ravel()
    both = np.concatenate([patterns.ravel(), patterns.ravel() + 2**31]) & 0xFFFFFFFF
    random = rng.integers(0, 2**32, 200_000)
    return np.concatenate([both, random]).astype(np.uint32).view(np.float32)


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


def patterns(name: str) -> Any:
    """All values of a float of at most 16 bits."""
    f = FORMATS[name]
    bits = f.exponent + f.mantissa + (f.specials != "scale")
    return np.arange(2**bits).astype("u2" if bits > 8 else "u1").view(DType(name).storage)


@spelled(BELOW_32)
def test_narrow_floats_widen_exactly_and_round_into_each_other(name: str) -> None:
    x = to(name, edges(10), "float32") if name == "tensor_float32" else patterns(name)
    exact = decoded(name, x)
    for wide in ("float32", "float64", "weak_float"):
        assert_same(decoded(wide, to(wide, x, name)), exact, exact)
    for other in FORMATS:
        want = exact if other == name else expected(other, exact, "float64")
        assert_same(decoded(other, to(other, x, name)), want, exact)


SPECIAL = np.array([np.inf, -np.inf, np.nan, 1e30, -1e30, 0.0, -0.0, -1.0])
INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
    assert_same(round_to_tf32(x), even)
    assert_same(round_to_tf32(x, "away"), away)
    nans = np.array([0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0xFF801FFF], np.uint32).view(np.float32)
    for mode in ("even", "away"):
        got = round_to_tf32(nans, mode).view(np.uint32)
        assert ((got & 0x7FC00000) == 0x7FC00000).all()
        single = round_to_tf32(np.array(-np.nan, np.float32), mode)
        assert isinstance(single, np.ndarray) and single.shape == ()
    with pytest.raises(GraphError, match='"even" or "away", not \'up\''):
        round_to_tf32(x, "up")


# --- integers to floats --------------------------------------------------------------------------


def integer_traps(name: str) -> list[int]:
    """Integers on and beside the rounding boundaries of every format, and the ends of the range."""
    bits, signed = INTEGERS[name]
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    values = {low, low + 1, high, high - 1, 0, 1, 2, 3}
    rng = np.random.default_rng(bits)
    for e in range(bits):
        for p in {f.mantissa + 1 for f in FORMATS.values()} & set(range(e + 1)):
            step = 2 ** (e - p)  # half a unit
            for k in (0, 1, 3, 2**p - 1, *rng.integers(0, 2**p, 3).tolist()):
                middle = 2**e + k * step
                near = (1, step // 2, 2 ** max(e - 30, 0), 2 ** max(e - 54, 0))
                values.update(middle + s * d for d in (0, *near) for s in (1, -1))
    values.update(v >> i % 9 for i, v in enumerate(rng.integers(0, 2**63, 999).tolist()))
    values.update([-v for v in values])
    return sorted(v for v in values if low <= v <= high)


@spelled(FORMATS)
@pytest.mark.parametrize("source", INTEGERS)
def test_integers_are_rounded_once(name: str, source: str) -> None:
    values = integer_traps(source)
    x = np.array(values, np.int64 if INTEGERS[source][1] else np.uint64)
    magnitude = np.array([abs(v) for v in values], np.uint64)
    want = rounded(name, np.array([v < 0 for v in values]), magnitude, np.zeros(len(values), int))
    got = to(name, x.astype(DType(source).storage), source)
    assert_same(decoded(name, got), want, x)


@pytest.mark.parametrize(
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


def float_edges(source: str) -> Any:
    """All values of a small float; of a large one those about the limits of every integer."""
    storage = DType(source).storage
    if storage.itemsize == 1:
        return patterns(source)
    values = [0.0, -0.0, 0.5, -0.5, 0.999, -0.999, 1.5, -1.5, 1e30, -1e30, 1e-40, INF, -INF, NAN]
    for bits in (1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64):
        for limit in (2.0**bits, -(2.0**bits)):
            values += [limit + d for d in (0, 1, -1, 0.5, -0.5)]
            for dtype in (np.float32, np.float64):
                one = dtype(limit)
                values += [float(np.nextafter(one, dtype(to))) for to in (-INF, INF)]
    with np.errstate(over="ignore"):
        x = np.array(values).astype(storage)
    if storage.itemsize == 2:  # the neighbours in the format itself
        around = x.view(np.int16)
        x = np.concatenate([around, around + np.int16(1), around - np.int16(1)]).view(storage)
    if source == "tensor_float32":
        x = (x.view(np.uint32) & 0xFFFFE000).view(np.float32)
    return x


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


# --- complex -------------------------------------------------------------------------------------


@spelled(COMPLEX)
@pytest.mark.parametrize("source", [*FORMATS, *INTEGERS])
def test_real_to_complex_has_the_real_part_rounded_and_imaginary_part_plus_zero(
    name: str, source: str
) -> None:
    part = "float32" if name == "complex64" else "float64"
    if source in FORMATS:
        x = float_edges(source)
        real = expected(part, decoded(source, x), "float64")
    else:
        x = np.array(integer_traps(source), np.int64 if INTEGERS[source][1] else np.uint64)
        x = x.astype(DType(source).storage)
        real = to(part, x, source)
    got = to(name, x, source)
    assert_same(got.real, real)
    assert_same(got.imag, np.zeros(x.shape))


def test_complex_to_complex_rounds_each_part() -> None:
    tie = 1 + 2.0**-24
    x = np.array([complex(tie, -tie - 2.0**-40), complex(1e300, -0.0), complex(NAN, -1e-300)])
    got = to("complex64", x, "complex128")
    assert_same(got.real, np.array([1.0, INF, NAN]))
    assert_same(got.imag, np.array([-1 - 2.0**-23, -0.0, -0.0]))
    back = to("complex128", got, "complex64")
    assert_same(back.real, got.real.astype(np.float64))
    assert_same(back.imag, got.imag.astype(np.float64))


@pytest.mark.parametrize("source", COMPLEX)
def test_complex_to_real_is_refused(source: str) -> None:
    for name in (*INTEGERS, *FORMATS):
        with pytest.raises(PromotionError, match=rf"{source} to {name}: .* take \.real"):
            to(name, np.zeros(2, DType(source).storage), source)


# --- all pairs -----------------------------------------------------------------------------------


def sample(dtype: DType, shape: tuple[int, ...]) -> Any:
    """Values of many magnitudes, NaN and infinities too, such as the storage dtype can hold."""
    rng = np.random.default_rng(len(shape))
    if str(dtype) in INTEGERS or dtype is DType.bool:
        wide = np.uint64 if dtype.storage.kind == "u" else np.int64
        return rng.integers(0, 2**63, shape).astype(wide).astype(dtype.storage)
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-140, 140, shape)
    x = np.where(rng.random(shape) < 0.3, rng.choice([*SPECIAL, 0.5, 300.0], shape), x)
    with np.errstate(all="ignore"):
        x = x.astype(dtype.storage)
    if dtype is DType.tensor_float32:
        x = np.asarray(np.atleast_1d(x).view(np.uint32) & 0xFFFFE000).view(np.float32)
        x = x.reshape(shape)
    return x * dtype.storage.type(1 - 2j) if str(dtype) in COMPLEX else x


def targets(source: DType) -> list[DType]:
    return [DType(name) for name in (("bool", *COMPLEX) if str(source) in COMPLEX else NAMES)]


@pytest.mark.parametrize("source", ALL, ids=str)
def test_all_pairs_in_every_layout(source: DType) -> None:
    with np.errstate(all="ignore"):
        base = sample(source, (6, 10))
    layouts = {
        "contiguous": base,
        "0-d": base[2:3, 4].reshape(()),
        "empty": base[:0],
        "reversed": base[::-1, ::-2],
        "transposed": base.T,
        "strided": base[1::2, ::3],
        "broadcast": np.broadcast_to(base[0], (3, 10)),
        "one": base[1:2, 3],
    }
    for target in targets(source):
        for layout, x in layouts.items():
            with np.errstate(all="raise"):  # what raises here would have warned
                got = convert(x, source, target)
            where = f"{source} to {target}, {layout}"
            assert isinstance(got, np.ndarray), where
            assert got.dtype == target.storage and got.shape == x.shape, where
            want = convert(np.array(x.ravel(), ndmin=1), source, target).reshape(x.shape)
            assert got.tobytes() == want.tobytes(), where


def test_the_argument_is_never_written_to() -> None:
    for source in ALL:
        with np.errstate(all="ignore"):
            x = sample(source, (40,))
        before = x.tobytes()
        x.flags.writeable = False
        for target in targets(source):
            convert(x, source, target)
        assert x.tobytes() == before


@pytest.mark.parametrize(
    ("weak", "strong"),
    [("weak_int", "int64"), ("weak_float", "float64"), ("weak_complex", "complex128")],
)
def test_weak_dtypes_convert_as_their_storage(weak: str, strong: str) -> None:
    x = sample(DType(strong), (50,))
    for target in targets(DType(strong)):
        as_weak, as_strong = (convert(x, DType(s), target) for s in (weak, strong))
        assert as_weak.tobytes() == as_strong.tobytes()
    assert to(weak, x, strong) is x and to(strong, x, weak) is x


def test_nothing_is_copied_where_nothing_changes() -> None:
    x = np.arange(3, dtype=np.uint64)
    assert to("uint64", x, "index") is x and to("address", x, "index") is x
    y = np.arange(3, dtype=np.float32)
    assert to("float32", y, "tensor_float32") is y and to("float32", y, "float32") is y


EXACT = [(a, b) for a in ALL for b in targets(a) if a in targets(b) and a.exact_in(b)]


@given(st.sampled_from(EXACT), st.binary(min_size=64, max_size=64))
def test_exact_conversions_are_undone_by_the_way_back(
    pair: tuple[DType, DType], data: bytes
) -> None:
    source, target = pair
    x = valid(source, np.frombuffer(data, np.uint8))
    there = convert(x, source, target)
    back = convert(there, target, source)
    assert key(back, source) == key(x, source)


def valid(dtype: DType, raw: Any) -> Any:
    """Bytes as values of a dtype, patterns that mean nothing there masked away."""
    masks = {"bool": 1, "int2": 3, "uint2": 3, "int4": 15, "uint4": 15, "float4_e2m1fn": 15}
    name = str(dtype)
    raw = raw & masks.get(name, 63 if name.startswith("float6") else 255)
    x = raw.astype(np.uint8).view(dtype.storage)
    if dtype is DType.tensor_float32:
        return (x.view(np.uint32) & 0xFFFFE000).view(np.float32)
    return x


def key(x: Any, dtype: DType) -> list[str]:
    """What tells values apart: NaN has one key, and -0.0 another than 0.0."""
    if str(dtype) in FORMATS:
        return [v.hex() for v in decoded(str(dtype), x).tolist()]
    if str(dtype) in COMPLEX:
        return [f"{v.real.hex()} {v.imag.hex()}" for v in x.tolist()]
    return [str(v) for v in x.astype(object).tolist()]
