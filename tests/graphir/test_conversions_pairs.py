"""Conversions of complex numbers, and of all pairs in every layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphir.conversions import convert
from graphir.dtypes import DType
from graphir.errors import PromotionError
from tests.support.rounding import (
    ALL,
    COMPLEX,
    FORMATS,
    INF,
    INTEGERS,
    NAMES,
    NAN,
    SPECIAL,
    assert_same,
    decoded,
    expected,
    float_edges,
    integer_traps,
    spelled,
    to,
)
from tests.support.tables import every

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


@every("source", COMPLEX)
def test_complex_to_real_is_refused(source: str) -> None:
    for name in (*INTEGERS, *FORMATS):
        with pytest.raises(PromotionError, match=rf"{source} to {name}; take \.real"):
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


@every("source", ALL)
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


@every(
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
