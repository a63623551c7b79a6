"""Sorting, searching and set functions, against Python's own sorted, bisect and dict."""

from __future__ import annotations

import cmath
from bisect import bisect_left, bisect_right
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
from graphir.runtime.array_api.dtypes import ALL, KINDS
from tests.support.tables import every

REALS = (*KINDS["integral"], *KINDS["real floating"])
NAN, INF = float("nan"), float("inf")
_VALUES: dict[str, tuple[Any, ...]] = {
    "bool": (False, True),
    "int": (-3, -1, 0, 1, 2, 127),
    "uint": (0, 1, 2, 128, 255),
    "float": (-INF, -1.5, -0.0, 0.0, 0.25, 3.0, INF),
    "complex": (0j, complex(-0.0, 0), 1j, 1 + 0j, 1 - 2j, complex(INF, 1)),
}
_NANS = {"float": (NAN,), "complex": (complex(NAN, 0), complex(1, NAN))}

shapes = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple)


@st.composite
def arrays(draw: st.DrawFn, dtypes: Any = ALL, shape: Any = shapes, nans: bool = True) -> Any:
    """Few distinct values, so that many are equal; as NumPy and as the namespace has them."""
    dtype, sizes = draw(st.sampled_from(dtypes)), draw(shape)
    pool = _VALUES[dtype.family] + (_NANS.get(dtype.family, ()) if nans else ())
    count = int(np.prod(sizes))
    drawn = draw(st.lists(st.sampled_from(pool), min_size=count, max_size=count))
    value = np.array(drawn, dtype.storage).reshape(sizes)
    return value, xp.asarray(value)


def rows(x: NDArray[Any], axis: int) -> list[list[Any]]:
    """What lies along an axis, as lists."""
    moved = np.moveaxis(x, axis, -1)
    return [moved[place].tolist() for place in np.ndindex(*moved.shape[:-1])]


def last(value: float) -> tuple[bool, float]:
    """A key that puts NaN after all numbers."""
    return value != value, 0 if value != value else value


def plain(x: Array) -> NDArray[Any]:
    return np.asarray(x)


def bits(x: NDArray[Any]) -> bytes:
    """Where -0.0 is not 0.0, and NaN is itself."""
    return x.tobytes()


# -- sorting


@given(arrays(REALS), st.data(), st.booleans(), st.booleans())
def test_sorting_is_stable_and_puts_nan_at_one_end(
    both: Any, data: st.DataObject, descending: bool, stable: bool
) -> None:
    value, x = both
    axis = data.draw(st.integers(-value.ndim, value.ndim - 1))
    asked = {"axis": axis, "descending": descending, "stable": stable}
    order, ordered = xp.argsort(x, **asked), xp.sort(x, **asked)
    assert order.symbol.value is None and ordered.symbol.value is None  # recorded
    assert (order.dtype, ordered.dtype) == (xp.int64, x.dtype)
    assert order.shape == ordered.shape == value.shape
    expected = [
        sorted(range(len(row)), key=lambda i, row=row: last(row[i]), reverse=descending)
        for row in rows(value, axis)
    ]
    assert rows(plain(order), axis) == expected
    along = np.take_along_axis(value, plain(order), axis)
    assert np.array_equal(plain(ordered), along, equal_nan=value.dtype.kind == "f")


@given(arrays(REALS, nans=False), st.data(), st.sampled_from(["argmax", "argmin"]), st.booleans())
def test_the_first_extreme(both: Any, data: st.DataObject, name: str, keepdims: bool) -> None:
    value, x = both
    axis = data.draw(st.none() | st.integers(-value.ndim, value.ndim - 1))
    along = value.reshape(-1) if axis is None else np.moveaxis(value, axis, -1)
    if not along.shape[-1]:
        with pytest.raises(ValueError, match=name):
            plain(getattr(xp, name)(x, axis=axis))
        return
    best = max if name == "argmax" else min
    expected = [row.index(best(row)) for row in rows(along, -1)]
    found = getattr(xp, name)(x, axis=axis, keepdims=keepdims)
    assert found.dtype is xp.int64
    assert plain(found).ravel().tolist() == np.array(expected).ravel().tolist()
    reduced = np.zeros(value.shape).sum(axis, keepdims=keepdims)
    assert found.shape == reduced.shape


# -- searching


@given(
    arrays(REALS, st.tuples(st.integers(0, 6)), nans=False),
    st.data(),
    st.sampled_from(["left", "right"]),
    st.booleans(),
)
def test_searchsorted(both: Any, data: st.DataObject, side: str, sorter: bool) -> None:
    value, x = both
    wanted, y = data.draw(arrays([x.dtype], nans=False))
    order = xp.argsort(x)
    inside = x if sorter else xp.sort(x)
    found = xp.searchsorted(inside, y, side=side, sorter=order if sorter else None)
    bisect = bisect_left if side == "left" else bisect_right
    ordered = sorted(value.tolist())
    assert (found.dtype, found.shape) == (xp.int64, wanted.shape)
    assert plain(found).ravel().tolist() == [
        bisect(ordered, one) for one in wanted.ravel().tolist()
    ]


@given(st.sampled_from(ALL), st.data(), st.booleans())
def test_isin(dtype: DType, data: st.DataObject, invert: bool) -> None:
    (value, x), (among, y) = (data.draw(arrays([dtype])) for _ in range(2))
    found = xp.isin(x, y, invert=invert)
    others = among.ravel().tolist()
    expected = [any(one == other for other in others) != invert for one in value.ravel().tolist()]
    assert (found.dtype, found.shape) == (xp.bool, value.shape)
    assert plain(found).ravel().tolist() == expected


def test_isin_beside_numbers_promotes_as_other_functions_do() -> None:
    x = xp.asarray([1, 2], dtype="int8")
    assert plain(xp.isin(x, xp.asarray([1, 300], dtype="int16"))).tolist() == [True, False]
    assert bool(xp.isin(2, x)) and not bool(xp.isin(2, x, invert=True))
    for wrong in (True, 1.5, 300, xp.asarray([1.0]), [1], np.ones(1), xp.asarray([True])):
        with pytest.raises(TypeError):
            xp.isin(x, wrong)
        with pytest.raises(TypeError):
            xp.isin(wrong, x)
    with pytest.raises(TypeError, match="scalars alone"):
        xp.isin(1, 2)


def test_a_number_is_searched_in_the_dtype_of_the_array() -> None:
    for dtype in ("int8", "float32"):
        x = xp.asarray([1, 3, 5], dtype=dtype)
        for side in ("left", "right"):
            found = xp.searchsorted(x, 3, side=side)
            assert (found.shape, found.dtype, int(found)) == ((), xp.int64, 1 + (side == "right"))
    for wrong in (True, 300, 2.5, 1j, "a", None):
        with pytest.raises(TypeError):
            xp.searchsorted(xp.asarray([1], dtype="int8"), wrong)


@given(arrays())
def test_nonzero_and_count_nonzero(both: Any) -> None:
    value, x = both
    places = [place for place in np.ndindex(*value.shape) if value[place] != 0]
    found = xp.nonzero(x)
    assert [one.dtype for one in found] == [xp.int64] * value.ndim
    assert [*zip(*(plain(one).tolist() for one in found), strict=True)] == places
    for axis in (None, *range(-value.ndim, value.ndim), tuple(range(value.ndim))):
        for keepdims in (False, True):
            counted = xp.count_nonzero(x, axis=axis, keepdims=keepdims)
            assert counted.dtype is xp.int64
            assert counted.symbol.value is None
            expected = np.asarray((value != 0).sum(axis, keepdims=keepdims))
            assert counted.shape == expected.shape
            assert plain(counted).tolist() == expected.tolist()


@given(arrays([xp.bool], st.just((2, 1, 3))), arrays(ALL, st.just((4, 1))), st.data())
def test_where_takes_each_element_as_it_is(cond: Any, one: Any, data: st.DataObject) -> None:
    other = data.draw(arrays([one[1].dtype], st.just((3,))))
    found = xp.where(cond[1], one[1], other[1])
    assert found.dtype is one[1].dtype
    picked = [
        (a if c else b) for c, a, b in np.nditer(np.broadcast_arrays(cond[0], one[0], other[0]))
    ]
    assert bits(plain(found)) == bits(np.array(picked, found.dtype.storage))


@every(
    ("left", "right", "result"),
    [
        (xp.int8, xp.int16, xp.int16),
        (xp.float32, xp.complex64, xp.complex64),
        (xp.uint8, xp.int8, xp.int16),
        (xp.float32, 2, xp.float32),
        (xp.float32, 2.5, xp.float32),
        (xp.float32, 1j, xp.complex64),
        (xp.uint8, 255, xp.uint8),
        (xp.bool, True, xp.bool),
    ],
)
def test_where_promotes(left: DType, right: Any, result: DType) -> None:
    x = xp.ones(2, dtype=left)
    y = xp.ones(2, dtype=right) if isinstance(right, DType) else right
    condition = xp.asarray([True, False])
    assert xp.where(condition, x, y).dtype is result
    assert xp.where(condition, y, x).dtype is result
    assert plain(xp.where(condition, x, y)).tolist() == [
        1,
        1 if isinstance(right, DType) else right,
    ]


# -- sets


def distinct(value: NDArray[Any]) -> dict[Any, list[int]]:
    """Where each value is, by ==: each NaN is by itself, 0.0 and -0.0 are one."""
    found: dict[Any, list[int]] = {}
    for place, one in enumerate(value.ravel().tolist()):
        key = ("nan", place) if cmath.isnan(one) else one
        found.setdefault(key, []).append(place)
    return found


def same(one: Any, other: Any) -> bool:
    return one == other or (cmath.isnan(one) and cmath.isnan(other))


@given(arrays())
def test_unique(both: Any) -> None:
    value, x = both
    whole = xp.unique_all(x)
    assert whole._fields == ("values", "indices", "inverse_indices", "counts")
    values, indices, inverse, counts = (plain(one).tolist() for one in whole)
    assert [one.dtype for one in whole] == [x.dtype, *[xp.int64] * 3]
    assert whole.inverse_indices.shape == value.shape
    flat, places = value.ravel().tolist(), distinct(value)
    assert len(values) == len(places)
    assert sorted(indices) == sorted(found[0] for found in places.values())
    by_first = {found[0]: len(found) for found in places.values()}
    for one, index, count in zip(values, indices, counts, strict=True):
        assert same(one, flat[index])
        assert count == by_first[index]
    for one, place in zip(flat, np.ravel(inverse).tolist(), strict=True):
        assert same(one, values[place])


@given(arrays())
def test_the_other_three_agree_with_unique_all(both: Any) -> None:
    _, x = both
    whole = xp.unique_all(x)
    counted, reversed_ = xp.unique_counts(x), xp.unique_inverse(x)
    assert counted._fields == ("values", "counts")
    assert reversed_._fields == ("values", "inverse_indices")
    for one in (xp.unique_values(x), counted.values, reversed_.values):
        assert one.dtype is x.dtype
        assert np.array_equal(plain(one), plain(whole.values), equal_nan=x.dtype.family in _NANS)
    assert np.array_equal(plain(counted.counts), plain(whole.counts))
    assert np.array_equal(plain(reversed_.inverse_indices), plain(whole.inverse_indices))
    assert (counted.counts.dtype, reversed_.inverse_indices.dtype) == (xp.int64, xp.int64)


def test_unique_of_a_number() -> None:
    whole = xp.unique_all(xp.asarray(7))
    assert [plain(one).tolist() for one in whole] == [[7], [0], 0, [1]]


# -- what is refused


@every("name", ["sort", "argsort", "argmax", "argmin"])
@every("dtype", ["bool", "complex64", "complex128"])
def test_order_is_of_real_numbers(name: str, dtype: str) -> None:
    with pytest.raises(TypeError, match=rf"{name}\(.*takes no {dtype}"):
        getattr(xp, name)(xp.ones(3, dtype=dtype))


@every(("one", "other"), [*product(["bool", "complex64"], ["float64"])])
def test_searchsorted_is_of_real_numbers(one: str, other: str) -> None:
    for x, y in ((one, other), (other, one), (one, one)):
        with pytest.raises(TypeError, match="searchsorted"):
            xp.searchsorted(xp.ones(3, dtype=x), xp.ones(2, dtype=y))


@every(
    ("call", "kind", "text"),
    [
        (lambda x: xp.nonzero(x[0]), ValueError, "nonzero"),
        (lambda x: xp.sort(x[0]), ValueError, "sort"),
        (lambda x: xp.argsort(x[0]), ValueError, "argsort"),
        (lambda x: xp.sort(x, axis=1), ValueError, "axis"),
        (lambda x: xp.argmax(x, axis=-2), ValueError, "axis"),
        (lambda x: xp.searchsorted(xp.ones((2, 2)), x), ValueError, "searchsorted"),
        (lambda x: xp.searchsorted(x, x, side="middle"), ValueError, "'left', 'right'"),
        (lambda x: xp.searchsorted(x, x, sorter=x), TypeError, "float64"),
        (lambda x: xp.where(x, x, x), TypeError, "where"),
        (lambda x: xp.where(x > 0, 1.0, 2.0), TypeError, "where"),
        (lambda x: xp.where(True, x, x), TypeError, "asarray"),
        (lambda x: xp.where(x > 0, x, "1"), TypeError, "str"),
        (lambda x: xp.where(x > 0, x, xp.ones(3, dtype="int64")), TypeError, "int64"),
    ],
)
def test_refusals_say_what_was_asked(
    call: Callable[[Array], Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        call(xp.ones(3))


@every(
    "name",
    [
        *("sort", "argsort", "argmax", "argmin", "nonzero", "count_nonzero"),
        *("unique_all", "unique_counts", "unique_inverse", "unique_values"),
    ],
)
def test_only_arrays_of_the_namespace(name: str) -> None:
    for other in (np.ones(3), [1.0], 1.0):
        with pytest.raises(TypeError, match="asarray"):
            getattr(xp, name)(other)


def test_the_inverse_of_several_nans_is_that_of_unique_all() -> None:
    spread = np.full(24, -INF, np.float32)
    spread[[12, 23]] = NAN
    x = xp.asarray(spread)
    assert np.array_equal(plain(xp.unique_inverse(x).inverse_indices)[[12, 23]], [1, 2])
