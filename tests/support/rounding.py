"""The oracle of conversions: rounding by integers and literal facts of formats alone."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from graphir.conversions import convert
from graphir.dtypes import DType


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


def patterns(name: str) -> Any:
    """All values of a float of at most 16 bits."""
    f = FORMATS[name]
    bits = f.exponent + f.mantissa + (f.specials != "scale")
    return np.arange(2**bits).astype("u2" if bits > 8 else "u1").view(DType(name).storage)


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


INF, NAN = math.inf, math.nan
SPECIAL = np.array([np.inf, -np.inf, np.nan, 1e30, -1e30, 0.0, -0.0, -1.0])
