"""The extension fft: each transform by its definition, its dtypes, shapes, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from graphir import DType
from graphir.runtime import array_api as xp
from graphir.runtime.array_api import Array
from graphir.runtime.array_api.functions import fft
from tests.support.tables import every

REALS = (xp.float32, xp.float64)
COMPLEX = {xp.float32: xp.complex64, xp.float64: xp.complex128}
NORMS = {"backward": 0.0, "ortho": 0.5, "forward": 1.0}
"""How much of 1/n is on the way forth; the rest is on the way back."""
FORTH, BACK, HALF = (
    ["fft", "fftn", "rfft", "rfftn", "hfft"],
    ["ifft", "ifftn", "irfft", "irfftn", "ihfft"],
    ["irfft", "irfftn", "hfft"],
)
FROM_REALS = ["rfft", "rfftn", "ihfft"]
SEVERAL = ["fftn", "ifftn", "rfftn", "irfftn"]
ALL = [*FORTH, *BACK]

norms = every("norm", NORMS)
names = every("name", ALL)
parts = every("part", REALS)


def taken(name: str, part: DType) -> DType:
    return part if name in FROM_REALS else COMPLEX[part]


def given_back(name: str, part: DType) -> DType:
    return part if name in HALF else COMPLEX[part]


def drawn(shape: tuple[int, ...], dtype: DType) -> NDArray[Any]:
    rng = np.random.default_rng([*shape, dtype.bits])
    made = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype.is_complex else 0)
    return np.asarray(made, dtype.storage)


def summed(x: NDArray[Any], axis: int, n: int, sign: int) -> NDArray[Any]:
    """The sum of x[j] * exp(sign * 2 pi i j k / n) along an axis, trimmed or padded to n."""
    x = np.moveaxis(x, axis, -1)[..., :n]
    padded = np.zeros((*x.shape[:-1], n), np.complex128)
    padded[..., : x.shape[-1]] = x
    turns = np.exp(sign * 2j * np.pi * np.outer(range(n), range(n)) / n)
    return np.moveaxis(padded @ turns, -1, axis)


def scale(name: str, norm: str, n: int) -> float:
    return n ** -(NORMS[norm] if name in FORTH else 1 - NORMS[norm])


def completed(x: NDArray[Any], axis: int, n: int) -> NDArray[Any]:
    """All n values of what has Hermitian symmetry, of which x has the first half."""
    half = np.moveaxis(x, axis, -1)[..., : n // 2 + 1].astype(np.complex128)
    room = n // 2 + 1 - half.shape[-1]
    half = np.concatenate([half, np.zeros((*half.shape[:-1], room))], -1)
    half[..., 0] = half[..., 0].real
    if n % 2 == 0:
        half[..., -1] = half[..., -1].real
    rest = np.conj(half[..., 1 : (n + 1) // 2][..., ::-1])
    return np.moveaxis(np.concatenate([half, rest], -1), -1, axis)


def transformed(name: str, x: NDArray[Any], axis: int, n: int, norm: str) -> NDArray[Any]:
    """What a transform along one axis is by definition."""
    sign = -1 if name in FORTH else 1
    if name in HALF:
        x = completed(np.conj(x) if name == "hfft" else x, axis, n)
        return summed(x, axis, n, 1).real * scale(name, norm, n)
    whole = summed(x, axis, n, sign) * scale(name, norm, n)
    return whole.take(range(n // 2 + 1), axis) if name in FROM_REALS else whole


def near(found: Array, expected: NDArray[Any]) -> None:
    close = 1e-4 if found.dtype.part is DType.float32 else 1e-11
    assert found.shape == expected.shape
    np.testing.assert_allclose(np.asarray(found), expected, rtol=close, atol=close)


# -- what they give


@every("name", [name for name in ALL if name not in SEVERAL])
@parts
@norms
@every("axis", [0, 1, -1])
@every("n", [None, 1, 2, 3, 6, 7])
def test_along_an_axis(name: str, part: DType, norm: str, axis: int, n: int | None) -> None:
    x = drawn((4, 5), taken(name, part))
    found = getattr(fft, name)(xp.asarray(x), n=n, axis=axis, norm=norm)
    size = x.shape[axis]
    known = n or (2 * (size - 1) if name in HALF else size)
    assert found.dtype is given_back(name, part)
    near(found, transformed(name, x, axis, known, norm))


@every("name", SEVERAL)
@parts
@norms
@every(
    ("s", "axes"),
    [
        (None, None),
        (None, (0, 2)),
        ((2, 3), (2, 0)),
        ((5, 4), None),
        ((3,), (-2,)),
        ((2, 7), (0, 1)),
    ],
)
def test_along_axes(name: str, part: DType, norm: str, s: Any, axes: Any) -> None:
    x = drawn((3, 4, 5), taken(name, part))
    found = getattr(fft, name)(xp.asarray(x), s=s, axes=axes, norm=norm)
    over = axes or range(-len(s), 0) if s else axes or (0, 1, 2)
    sizes = list(s or [x.shape[axis] for axis in over])
    if name in HALF and not s:
        sizes[-1] = 2 * (sizes[-1] - 1)
    steps = [*zip(over, sizes, strict=True)]
    order = steps if name in HALF else steps[::-1]  # the real side is always at the last axis
    expected = x
    for axis, n in order:
        last = (axis, n) == steps[-1]
        one = name.removesuffix("n") if last else "fft" if name in FORTH else "ifft"
        expected = transformed(one, expected, axis, n, norm)
    assert found.dtype is given_back(name, part)
    near(found, expected)


@every(("forth", "back"), [*zip(FORTH[:4], BACK[:4], strict=True)])
@norms
@parts
def test_there_and_back(forth: str, back: str, norm: str, part: DType) -> None:
    x = drawn((3, 5), taken(forth, part))
    size = {"s": (3, 5), "axes": (0, 1)} if forth in SEVERAL else {"n": 5}
    there = getattr(fft, forth)(xp.asarray(x), norm=norm, **size)
    near(getattr(fft, back)(there, norm=norm, **size), x)


@given(st.integers(1, 40), st.sampled_from([0.25, 1.0, 3.0]), st.sampled_from([None, *REALS]))
def test_frequencies(n: int, d: float, dtype: DType | None) -> None:
    found = fft.fftfreq(n, d=d, dtype=dtype)
    half = fft.rfftfreq(n, d=d, dtype=dtype)
    counts = [*range((n + 1) // 2), *range(-(n // 2), 0)]
    assert found.dtype is half.dtype is (dtype or xp.float64)
    near(found, np.array(counts) / (d * n))
    near(half, np.arange(n // 2 + 1) / (d * n))


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple),
    st.data(),
    st.sampled_from(REALS),
)
def test_shifts(shape: tuple[int, ...], data: st.DataObject, dtype: DType) -> None:
    x = xp.asarray(drawn(shape, dtype))
    axis = st.integers(-len(shape), len(shape) - 1)
    axes = data.draw(st.none() | axis | st.lists(axis, unique_by=lambda one: one % len(shape)))
    there = fft.fftshift(x, axes=axes)
    assert there.symbol is x.symbol or there.symbol.value is None  # recorded
    over = range(len(shape)) if axes is None else [axes] if isinstance(axes, int) else axes
    expected = np.asarray(x)
    for one in over:
        n = shape[one]
        expected = expected.take([*range((n + 1) // 2, n), *range((n + 1) // 2)], one)
    assert np.array_equal(np.asarray(there), expected)
    assert np.array_equal(np.asarray(fft.ifftshift(there, axes=axes)), np.asarray(x))


def test_the_middle_is_frequency_zero() -> None:
    for n in range(1, 9):
        assert float(fft.fftshift(fft.fftfreq(n))[n // 2]) == 0


# -- what they refuse


@names
@parts
def test_the_dtypes_of_the_standard(name: str, part: DType) -> None:
    good = taken(name, part)
    others = {*(xp.bool, xp.int64, xp.uint8), part, COMPLEX[part]} - {good}
    for dtype in others:
        with pytest.raises(TypeError, match=f"{name} of {dtype}"):
            getattr(fft, name)(xp.ones((3, 3), dtype=dtype))


@every(("name", "dtype"), [*product(["fftshift", "ifftshift"], ["int8", "bool"])])
def test_shifts_are_of_floats(name: str, dtype: str) -> None:
    with pytest.raises(TypeError, match=f"{name} of {dtype}"):
        getattr(fft, name)(xp.ones(3, dtype=dtype))


@every(
    ("call", "kind", "text"),
    [
        (lambda x: fft.fft(x, n=0), ValueError, r"fft of complex128\[3\]"),
        (lambda x: fft.fft(x, axis=1), ValueError, "fft of complex128"),
        (lambda x: fft.fft(x, norm="none"), ValueError, "norm"),
        (lambda x: fft.fftn(x, s=(2, 2), axes=(0,)), ValueError, "fftn of complex128"),
        (lambda x: fft.fft(np.ones(3, complex)), TypeError, "asarray"),
        (lambda x: fft.fftshift(x, axes=1), ValueError, "axis"),
        (lambda x: fft.fftfreq(3, dtype="int64"), TypeError, "real floating"),
        (lambda x: fft.rfftfreq(3, device="gpu"), ValueError, "device"),
    ],
)
def test_refusals_say_what_was_asked(
    call: Callable[[Array], Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        call(xp.ones(3, dtype="complex128"))
