"""x[key] and x[key] = value against NumPy's, and which keys are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphir.runtime import array_api as xp
from graphir.runtime.array_api import expansions
from tests.support.tables import every

SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)
OUT = st.integers(-6, 6)
BOUND = st.none() | OUT
SLICES = st.builds(slice, BOUND, BOUND, st.sampled_from((None, 1, 2, 3, -1, -2)))


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...], new: bool = True) -> tuple[Any, ...]:
    """Ints, slices, ... and None for some of the axes, mostly in bounds."""
    used = draw(st.integers(0, len(shape)))
    key: list[Any] = [
        draw(SLICES | st.integers(-size, size - 1) if size else SLICES) for size in shape[:used]
    ]
    if new:
        for _ in range(draw(st.integers(0, 2))):
            key.insert(draw(st.integers(0, len(key))), None)
    if used == len(shape) or draw(st.booleans()):
        key.append(...)
    elif key and draw(st.booleans()):
        return (..., *[one for one in key if not isinstance(one, int)])
    return tuple(key)


def filled(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape, dtype=int)).reshape(shape)


def translated(key: Any) -> Any:
    """A key of NumPy as one of the namespace."""
    if isinstance(key, tuple):
        return tuple(map(translated, key))
    return xp.asarray(key) if isinstance(key, np.ndarray) else key


@given(st.data())
def test_ints_and_slices(data: st.DataObject):
    x = filled(data.draw(SHAPES))
    key = data.draw(keys(x.shape))
    found = xp.asarray(x)[key]
    assert found.shape == x[key].shape
    np.testing.assert_array_equal(np.asarray(found), x[key], strict=True)


@given(st.data())
def test_masks(data: st.DataObject):
    x = filled(data.draw(SHAPES))
    axes = data.draw(st.integers(0, x.ndim))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=64, max_size=64)))
    mask = mask[: np.prod(x.shape[:axes], dtype=int)].reshape(x.shape[:axes])
    found = xp.asarray(x)[xp.asarray(mask)]
    np.testing.assert_array_equal(np.asarray(found), x[mask], strict=True)


@given(st.data())
def test_arrays_of_integers_among_ints_and_slices(data: st.DataObject):
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple))
    x = filled(shape)
    full = [*data.draw(keys(shape, new=True))]
    places = [i for i, one in enumerate(full) if one is not None and one is not ...]
    for place in data.draw(st.lists(st.sampled_from(places), max_size=2)) if places else ():
        axis = sum(one is not None for one in full[:place])
        if any(one is ... for one in full[:place]):
            continue
        ints = st.integers(-shape[axis], shape[axis] - 1)
        dtype = data.draw(st.sampled_from((np.int64, np.int8)))
        full[place] = np.array(data.draw(st.lists(ints, min_size=2, max_size=2)), dtype)
        if data.draw(st.integers(0, 3)) == 0:
            full[place] = full[place][0, ...]
    key = tuple(full)
    found = xp.asarray(x)[translated(key)]
    assert found.shape == x[key].shape
    np.testing.assert_array_equal(np.asarray(found), x[key], strict=True)


@given(st.data())
def test_assignment(data: st.DataObject):
    x = filled(data.draw(SHAPES))
    key = data.draw(keys(x.shape, new=False))
    if data.draw(st.booleans()):
        key = np.asarray(x % 3 == 0)
    value: Any = data.draw(st.sampled_from((7, -1)))
    ours = xp.asarray(x)
    before, wanted = ours + 0, x.copy()
    if data.draw(st.booleans()) and not isinstance(key, np.ndarray):
        value = np.full(x[key].shape, value)
    wanted[key] = value
    ours[translated(key)] = translated(value)
    np.testing.assert_array_equal(np.asarray(ours), wanted, strict=True)
    np.testing.assert_array_equal(np.asarray(before), x, strict=True)


# -- what is refused

X = np.arange(6).reshape(2, 3)
WRONG = [
    *(2, -3, (0, 3), (0, 0, 0), (..., ...), 1.0, True, "a", [0, 1], (0, [1]), (slice(None), True)),
    *(np.array([0]), np.array([True, False]), {}, 0j),
]


@every("key", WRONG)
def test_keys_that_are_refused(key: Any):
    x = xp.asarray(X)
    with pytest.raises(IndexError):
        x[key]
    with pytest.raises(IndexError):
        x[key] = 1
    np.testing.assert_array_equal(np.asarray(x), X)


ARRAYS = [
    *([5], [-4], [0.0], [1j], [True, False], [[True]]),  # the masks are of other shapes
]


@every("key", ARRAYS)
def test_arrays_that_are_no_keys(key: Any):
    x = xp.asarray([1, 2, 3])
    with pytest.raises((IndexError, ValueError)):
        np.asarray(x[xp.asarray(key)])
    with pytest.raises(IndexError):
        x[xp.asarray(key)] = 1


def test_a_zero_step_is_refused():
    with pytest.raises((IndexError, ValueError), match="step"):
        xp.asarray(X)[::0, ...]


DTYPES = ("bool", "int8", "uint8", "int64", "uint64", "float32", "float64", "complex64")


@every("dtype", DTYPES)
def test_what_is_assigned_must_not_change_the_dtype(dtype: str):
    for value in (True, 1, 1.5, 2j, *(xp.ones((), dtype=getattr(xp, one)) for one in DTYPES)):
        x = xp.zeros(3, dtype=getattr(xp, dtype))
        try:
            kept = xp.result_type(x, value) == x.dtype
        except TypeError:
            kept = False
        if kept:
            x[1] = value
            assert complex(x[1]) == complex(value)
        else:
            with pytest.raises(TypeError):
                x[1] = value
        assert x.dtype == getattr(xp, dtype) and complex(x[0]) == 0


def test_numbers_that_are_assigned_fit_or_are_refused():
    x = xp.zeros(2, dtype=xp.uint8)
    for wrong in (256, -1, 2**100):
        with pytest.raises(OverflowError):
            x[0] = wrong
    y = xp.zeros(2, dtype=xp.float32)
    y[0] = 1e300
    assert float(y[0]) == np.inf and np.asarray(x).tolist() == [0, 0]


def test_assignment_of_a_shape_that_does_not_fit():
    x = xp.zeros((2, 3))
    for key, value in ((0, xp.ones(2)), (slice(None), xp.ones((3, 3))), (..., xp.ones((2, 2, 3)))):
        with pytest.raises(ValueError, match="shape"):
            x[key] = value
    for value in ("a", None, [1.0], np.ones(3), np.float32(1)):
        with pytest.raises(TypeError):
            x[0] = value


def test_ints_are_what_has_an_index():
    x = xp.asarray([1, 2, 3])
    assert int(x[np.int8(1)]) == int(x[xp.asarray(1)]) == 2
    assert np.asarray(x[xp.asarray(1) :]).tolist() == [2, 3]
    x[np.uint8(0)] = 9
    assert int(x[0]) == 9


def test_parts_of_every_step_are_found_again_for_other_dtypes_and_shapes():
    for dtype in ("int8", "float64"):
        for size in (4, 5):
            x = np.arange(size, dtype=dtype)
            for step in (1, -1, 2, None, 1):
                found = np.asarray(xp.asarray(x)[::step])
                np.testing.assert_array_equal(found, x[::step], strict=True)


def test_iteration_len_and_membership():
    x = xp.asarray([[1, 2], [3, 4]])
    assert [np.asarray(one).tolist() for one in x] == [[1, 2], [3, 4]]
    assert len(x) == 2 and len(xp.zeros((0, 3))) == 0
    a, b = x
    assert int(a[1]) == 2 and int(b[0]) == 3
    assert 2 in xp.asarray([1, 2]) and 3 not in xp.asarray([1, 2])
    for wrong in (len, iter):
        with pytest.raises(TypeError, match="0-d"):
            wrong(xp.asarray(1))


def test_elements_of_a_computed_array_are_taken_without_an_op_for_each_index():
    x = xp.real(xp.asarray([[1j, 5 - 1j, 3]]))
    assert float(xp.max(x)) == 5.0
    known = len(expansions._EXPANSIONS)
    assert [float(x[0, i]) for i in (0, 1, -1)] == [0.0, 5.0, 3.0]
    row = xp.asarray([2.0, 7.0, 4.0])
    assert float(max(row)) == 7.0 and len(expansions._EXPANSIONS) == known
    taken = row[1]
    row[1] = 0.0
    assert (float(taken), taken.shape, taken.dtype) == (7.0, (), xp.float64)
    for key in (3, -4):
        with pytest.raises(IndexError, match=rf"index {key} is out of range"):
            row[key]
