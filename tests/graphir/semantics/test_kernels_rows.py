"""Reductions, sorting and contractions against loops in Python."""

import itertools
import math
import operator

import numpy as np
import pytest

from graphir.errors import ExecutionError
from tests.graphir.semantics.kernel_cases import (
    BOOL,
    BY_LETTER,
    COMPLEX,
    FLOATS,
    REAL,
    run,
    sample,
    wrap,
)


@pytest.fixture(autouse=True)
def quiet():
    """What evaluation enters around all kernels."""
    with np.errstate(all="ignore"):
        yield


# -- reductions


def rows_of(x, axes):
    """The slices that a reduction over axes reduces, as Python lists, in order of the result."""
    rest = [i for i in range(x.ndim) if i not in axes]
    moved = x.transpose([*rest, *axes])
    return moved.reshape(math.prod(x.shape[i] for i in rest), -1).tolist()


def reduced_shape(x, axes, keepdims):
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    return tuple(n for i, n in enumerate(x.shape) if i not in axes)


EXACT_REDUCTIONS = {
    "sum": ("iu", sum),
    "prod": ("iu", math.prod),
    "max": ("biuf", max),
    "min": ("biuf", min),
    "any": ("b", any),
    "all": ("b", all),
}
AXES = [(0,), (1,), (2,), (0, 2), (0, 1, 2), ()]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", EXACT_REDUCTIONS)
def test_exact_reductions(name, axis, keepdims):
    kinds, function = EXACT_REDUCTIONS[name]
    for dtype in itertools.chain.from_iterable(BY_LETTER[k] for k in kinds):
        x = sample(dtype, 60, seed=3)
        x = np.where(x == x, x, x.dtype.type(0)).reshape(3, 4, 5)
        result = run(name, x, axis=axis, keepdims=keepdims)
        assert result.dtype == dtype and result.shape == reduced_shape(x, axis, keepdims)
        expected = [function(row) for row in rows_of(x, axis)]
        if dtype.kind in "iu":
            expected = [wrap(v, dtype) for v in expected]
        assert result.ravel().tolist() == expected


def test_sums_of_bools_are_or_and_products_and():
    x = np.array([[False, True], [False, False], [True, True]])
    assert run("sum", x, axis=(1,), keepdims=False).tolist() == [True, False, True]
    assert run("prod", x, axis=(1,), keepdims=False).tolist() == [False, False, True]
    assert run("cumulative_sum", x, axis=1).tolist() == [[False, True], [False, False], [True] * 2]
    assert run("cumulative_prod", x, axis=0).tolist() == [[False, True], [False] * 2, [False] * 2]
    assert run("sum", x, axis=(0, 1), keepdims=False).dtype == bool


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX, ids=str)
@pytest.mark.parametrize("axis", AXES, ids=str)
def test_sums_and_products_of_floats(dtype, axis):
    x = sample(dtype, 1000)[40:100].reshape(3, 4, 5)
    x = x / np.abs(x).max()
    for name, function in (("sum", sum), ("prod", math.prod)):
        result = run(name, x, axis=axis, keepdims=False)
        assert result.dtype == dtype
        bound = 100 * np.finfo(dtype).eps
        for got, row in zip(result.ravel(), rows_of(x, axis), strict=True):
            assert abs(got - function(row)) <= bound * max(sum(map(abs, row)), 1e-30)
    assert np.isnan(run("max", np.array([1, np.nan, 3]), axis=(0,), keepdims=False))
    assert np.isnan(run("min", np.array([1, np.nan, 3]), axis=(0,), keepdims=False))


@pytest.mark.parametrize("dtype", BOOL + REAL + COMPLEX, ids=str)
def test_sums_of_nothing(dtype):
    x = np.zeros((0, 3), dtype)
    for name, value in (("sum", 0), ("prod", 1)):
        result = run(name, x, axis=(0,), keepdims=True)
        assert result.dtype == dtype and result.tolist() == [[value] * 3]
        assert run(name, np.array(1, dtype), axis=(), keepdims=False).item() == 1


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_nothing_has_no_extreme(name):
    x = np.zeros((3, 0, 2), np.float32)
    axis = 1 if name.startswith("arg") else (0, 1)
    with pytest.raises(
        ExecutionError,
        match=rf"{name[-3:]}imum is undefined over an empty axis; got shape \[3, 0, 2\], axis=1",
    ):
        run(name, x, axis=axis, keepdims=False)
    if name.startswith("arg"):
        with pytest.raises(ExecutionError, match="axis=1"):
            run(name, x, axis=None, keepdims=False)
    axis = 0 if name.startswith("arg") else (0,)
    assert run(name, x, axis=axis, keepdims=False).shape == (0, 2)


@pytest.mark.parametrize("dtype", BOOL + REAL, ids=str)
@pytest.mark.parametrize(("name", "choose"), [("argmax", max), ("argmin", min)])
def test_places_of_extremes(dtype, name, choose):
    x = sample(dtype, 60, seed=7)
    x = np.where(x == x, x, x.dtype.type(0)).reshape(3, 4, 5)
    for axis, keepdims in itertools.product([None, 0, 1, 2], [False, True]):
        axes = (0, 1, 2) if axis is None else (axis,)
        result = run(name, x, axis=axis, keepdims=keepdims)
        assert result.dtype == np.int64 and result.shape == reduced_shape(x, axes, keepdims)
        assert result.ravel().tolist() == [row.index(choose(row)) for row in rows_of(x, axes)]
    assert run(name, np.array(1, dtype), axis=None, keepdims=False).item() == 0


def test_nan_is_the_extreme_that_is_found():
    x = np.array([[1.0, np.nan, np.inf, np.nan], [3.0, 3.0, -1.0, -1.0]])
    assert run("argmax", x, axis=1, keepdims=False).tolist() == [1, 0]
    assert run("argmin", x, axis=1, keepdims=False).tolist() == [1, 2]
    assert run("argmax", x, axis=None, keepdims=True).tolist() == [[1]]


@pytest.mark.parametrize("dtype", BOOL + REAL + COMPLEX, ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_cumulative_sums(dtype, axis):
    x = np.random.default_rng(2).integers(0, 4, (4, 5)).astype(dtype)
    for name, step in (("cumulative_sum", operator.add), ("cumulative_prod", operator.mul)):
        result = run(name, x, axis=axis)
        assert result.dtype == dtype
        for row, got in zip(np.moveaxis(x, axis, 1), np.moveaxis(result, axis, 1), strict=True):
            expected = list(itertools.accumulate(row.tolist(), step))
            expected = [bool(v) if dtype.kind == "b" else v for v in expected]
            expected = [wrap(v, dtype) if dtype.kind in "iu" else v for v in expected]
            assert got.tolist() == expected
    assert run("cumulative_sum", x[:0], axis=0).shape == (0, 5)


# -- sorting


@pytest.mark.parametrize("dtype", BOOL + REAL, ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_sorting(dtype, axis):
    x = sample(dtype, 60, seed=4)
    x = np.where(x == x, x, x.dtype.type(0)).reshape(6, 10)
    for name, descending in itertools.product(["sort", "argsort"], [False, True]):
        result = run(name, x, axis=axis, descending=descending)
        assert result.dtype == (dtype if name == "sort" else np.int64)
        for row, got in zip(np.moveaxis(x, axis, 1), np.moveaxis(result, axis, 1), strict=True):
            order = sorted(range(len(row)), key=row.tolist().__getitem__, reverse=descending)
            if name == "argsort":  # sorted() keeps equal values in their order, reversed too
                assert got.tolist() == order
            else:
                assert got.tolist() == [row.tolist()[i] for i in order]
        assert run(name, x[:0], axis=0, descending=descending).shape == (0, 10)


def test_nan_sorts_last_and_first_in_descending_order():
    x = np.array([np.nan, 1.0, np.inf, np.nan, -1.0])
    assert run("argsort", x, axis=0, descending=False).tolist() == [4, 1, 2, 0, 3]
    assert run("argsort", x, axis=0, descending=True).tolist() == [0, 3, 2, 1, 4]
    ascending = run("sort", x, axis=0, descending=False).tobytes()
    assert ascending == x[[4, 1, 2, 0, 3]].tobytes()
    descending = run("sort", x, axis=0, descending=True)
    assert descending.tobytes() == x[[3, 0, 2, 1, 4]].tobytes()


@pytest.mark.parametrize("dtype", BOOL + REAL, ids=str)
def test_sorting_is_stable(dtype):
    x = np.random.default_rng(0).integers(0, 2, 1000).astype(dtype)
    values, places = x.tolist(), range(1000)
    for descending in (False, True):
        order = run("argsort", x, axis=0, descending=descending)
        assert order.tolist() == sorted(places, key=values.__getitem__, reverse=descending)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sorting_keeps_zeros_in_their_order(dtype):
    zeros = np.random.default_rng(0).choice(np.array([0.0, -0.0], dtype), 500)
    assert run("sort", zeros, axis=0, descending=False).tobytes() == zeros.tobytes()
    assert run("sort", zeros, axis=0, descending=True).tobytes() == zeros[::-1].tobytes()


@pytest.mark.parametrize("dtype", BOOL + REAL, ids=str)
def test_searchsorted(dtype):
    x = np.array([0, 1, 1, 1], dtype) if dtype.kind == "b" else np.array([0, 1, 3, 3, 5], dtype)
    values = np.arange(2 if dtype.kind == "b" else 7).astype(dtype).reshape(1, -1)
    for side, before in (("left", operator.lt), ("right", operator.le)):
        result = run("searchsorted", x, values, side=side)
        assert result.dtype == np.int64 and result.shape == values.shape
        assert result[0].tolist() == [sum(before(u, v) for u in x) for v in values[0]]
        assert run("searchsorted", x, values[0, 0].reshape(()), side=side).shape == ()
        assert run("searchsorted", x[:0], values, side=side).tolist() == [[0] * values.size]


# -- contractions


def dot(a, b, dtype):
    if dtype.kind == "b":
        return any(x and y for x, y in zip(a, b, strict=True))
    total = sum(x * y for x, y in zip(a, b, strict=True))
    return wrap(total, dtype) if dtype.kind in "iu" else total


def small(dtype, *shape):
    """Values whose products and sums floats have exactly, and bytes do not."""
    x = np.random.default_rng(1).integers(0, 60, shape)
    return (x % 2 if dtype.kind == "b" else x).astype(dtype)


@pytest.mark.parametrize("dtype", BOOL + REAL + COMPLEX, ids=str)
def test_matmul(dtype):
    a, b = small(dtype, 2, 1, 3, 4), small(dtype, 5, 4, 6)
    result = run("matmul", a, b)
    assert result.dtype == dtype and result.shape == (2, 5, 3, 6)
    for (i, j, m, n), got in np.ndenumerate(result):
        assert got == dot(a[i, 0, m].tolist(), b[j, :, n].tolist(), dtype)
    vector = small(dtype, 4)
    assert run("matmul", vector, vector).item() == dot(vector.tolist(), vector.tolist(), dtype)
    assert run("matmul", vector, b).shape == (5, 6)
    assert run("matmul", a, vector).shape == (2, 1, 3)
    empty = run("matmul", np.zeros((3, 0), dtype), np.zeros((0, 2), dtype))
    assert empty.dtype == dtype and empty.tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("dtype", BOOL + REAL + COMPLEX, ids=str)
def test_tensordot(dtype):
    a, b = small(dtype, 2, 3, 4), small(dtype, 4, 5, 2)
    result = run("tensordot", a, b, axes=((2, 0), (0, 2)))
    assert result.dtype == dtype and result.shape == (3, 5)
    for (m, n), got in np.ndenumerate(result):
        assert got == dot(a[:, m, :].T.ravel().tolist(), b[:, n, :].ravel().tolist(), dtype)
    assert run("tensordot", a, b, axes=((), ())).shape == (2, 3, 4, 4, 5, 2)
    everything = run("tensordot", a, a, axes=((0, 1, 2), (0, 1, 2)))
    assert everything.shape == ()
    assert everything.item() == dot(a.ravel().tolist(), a.ravel().tolist(), dtype)
    empty = run("tensordot", a[:, :, :0], b[:0], axes=((2,), (0,)))
    assert empty.shape == (2, 3, 5, 2) and not empty.any()


@pytest.mark.parametrize("dtype", BOOL + REAL + COMPLEX, ids=str)
def test_outer(dtype):
    a, b = small(dtype, 3), small(dtype, 4)
    result = run("outer", a, b)
    assert result.dtype == dtype and result.shape == (3, 4)
    for (m, n), got in np.ndenumerate(result):
        assert got == dot([a[m].item()], [b[n].item()], dtype)
    assert run("outer", a, b[:0]).shape == (3, 0)
