"""Sorts have the bits of NumPy's stable sorts: zeros of both signs, NaN, ties, axes and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from graphir.semantics import sorting
from tests.graphir.semantics.kernel_cases import BOOL, FLOATS, INTEGERS, run
from tests.support.tables import every

AXES_OF = [((), 0), ((3,), 1), ((2, 3), 2), ((4,), 0), ((2, 3), 1)]
"""The other axes, and the place among them of the one that is sorted."""


def pool(dtype: np.dtype[Any]) -> list[Any]:
    """Values that an unstable sort could confuse, and extremes."""
    if dtype.kind == "b":
        return [False, True]
    if dtype.kind == "f":
        info = np.finfo(dtype)
        numbers = [1.0, info.max, info.smallest_subnormal, np.inf, np.nan, 0.0]
        return [*numbers, *(-number for number in numbers)]
    limits = np.iinfo(dtype)
    return [limits.min, limits.min + 1, 0, 1, limits.max - 1, limits.max]


def check(x: NDArray[Any], axis: int) -> None:
    """Compare both kernels, in both directions, with NumPy's stable sorts."""
    backwards = np.flip(x, axis)
    order = np.argsort(x, axis=axis, kind="stable")
    fall = x.shape[axis] - 1 - np.flip(np.argsort(backwards, axis=axis, kind="stable"), axis)
    whole = np.sort(x, axis=axis, kind="stable")
    for descending, places, values in ((False, order, whole), (True, fall, np.flip(whole, axis))):
        with np.errstate(all="ignore"):  # as callers of kernels do
            result = run("argsort", x, axis=axis, descending=descending)
        assert result.dtype == np.int64 and np.array_equal(result, places)
        result = run("sort", x, axis=axis, descending=descending)
        assert result.dtype == x.dtype
        np.testing.assert_array_equal(result, values)
        signs = ~np.isnan(values)
        assert np.array_equal(np.signbit(result[signs]), np.signbit(values[signs]))


@pytest.mark.parametrize("dtype", BOOL + INTEGERS + FLOATS, ids=str)
@given(data=st.data())
def test_sorts_are_numpys_stable_ones(dtype: np.dtype[Any], data: st.DataObject) -> None:
    others, axis = data.draw(st.sampled_from(AXES_OF))
    length = data.draw(st.one_of(st.integers(0, 20), st.integers(0, 300)))
    random = np.random.default_rng(data.draw(st.integers(0, 1000)))
    values = np.array(pool(dtype), dtype)[: data.draw(st.integers(1, 12))]
    shape = (*others[:axis], length, *others[axis:])
    check(random.permutation(random.choice(values, shape)), axis)


@every("dtype", BOOL + INTEGERS + FLOATS)
@every("length", [300, 1000, 70_000])
def test_sorts_of_any_bits_are_numpys_stable_ones(dtype: np.dtype[Any], length: int) -> None:
    bits = np.random.default_rng(length).bytes(2 * length * dtype.itemsize)
    x = np.frombuffer(bits, dtype if dtype.kind != "b" else np.uint8).reshape(2, length)
    check(x % 2 == 0 if dtype.kind == "b" else x, 1)


@every("dtype", ["i8", "u8"])
def test_orders_of_64_bit_integers_near_each_other_and_apart(dtype: str) -> None:
    random, limits = np.random.default_rng(0), np.iinfo(dtype)
    near = random.integers(0, 50, (3, 400)).astype(dtype)
    for x in (near + limits.min, limits.max - near, near * (limits.max // 50), near[:0]):
        check(x.astype(dtype), 1)


@pytest.mark.parametrize("widens", [False, True])
@pytest.mark.parametrize("dtype", ["int16", "uint16"])
def test_sorts_of_16_bits_by_either_way(
    dtype: str, widens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorting, "_widens_16_bits", lambda: widens)
    bits = np.random.default_rng(0).bytes(2 * 3 * 500)
    x = np.frombuffer(bits, dtype).reshape(3, 500)
    for axis in (0, 1):
        check(x, axis)
        check(x[:, ::-2], axis)
