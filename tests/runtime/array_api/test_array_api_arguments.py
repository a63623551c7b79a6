"""Arguments at the edge of what the standard says, and just past it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphir import ShapeError
from graphir.runtime import array_api as xp
from graphir.runtime.array_api import Array
from tests.support.tables import every

X = xp.reshape(xp.arange(6, dtype="float64"), (2, 3))


@every(
    ("value", "dtype"),
    [(2.5, "int8"), (1j, "float32"), (1j, "int8"), (xp.nan, "uint8"), (xp.inf, "int64")],
)
def test_full_takes_no_value_that_the_dtype_has_not(value: Any, dtype: str) -> None:
    with pytest.raises(TypeError, match=f"not representable in {dtype}"):
        xp.full((2,), value, dtype=dtype)
    with pytest.raises(TypeError, match=f"not representable in {dtype}"):
        xp.full_like(xp.ones(2, dtype=dtype), value)


@every(("value", "dtype"), [(2.0, "int8"), (2 + 0j, "float32"), (True, "float32"), (1, "bool")])
def test_full_takes_a_value_of_another_kind_that_the_dtype_has(value: Any, dtype: str) -> None:
    found = np.asarray(xp.full((2,), value, dtype=dtype))
    assert found.dtype.name == dtype
    assert found.tolist() == [value, value]


@every(("value", "dtype"), [(256, "uint8"), (-1, "uint64"), (2**63, "int64")])
def test_full_takes_no_int_that_is_out_of_range(value: int, dtype: str) -> None:
    with pytest.raises(OverflowError):
        xp.full((2,), value, dtype=dtype)


def test_full_rounds_to_the_floats_of_the_dtype() -> None:
    found = xp.full((1,), 1 / 3, dtype="float32")
    assert np.asarray(found)[0] == np.float32(1 / 3)
    assert float(xp.full((), 1e300, dtype="float32")) == xp.inf


@every(
    ("shift", "axis", "expected"),
    [
        (1, (0, 1), [[5, 3, 4], [2, 0, 1]]),
        ((1, -1), (0, 1), [[4, 5, 3], [1, 2, 0]]),
        (1, (), [[0, 1, 2], [3, 4, 5]]),
        ((), (), [[0, 1, 2], [3, 4, 5]]),
        ((1, 1), (1, -1), [[1, 2, 0], [4, 5, 3]]),
        (-1, None, [[1, 2, 3], [4, 5, 0]]),
    ],
)
def test_roll_over_axes(shift: Any, axis: Any, expected: Any) -> None:
    assert np.asarray(xp.roll(X, shift, axis=axis)).tolist() == expected


@every(
    ("call", "kind", "text"),
    [
        (lambda: xp.roll(X, (1, 2, 3), axis=(0, 1)), ValueError, "3 shifts and 2 axes"),
        (lambda: xp.roll(X, (1,), axis=(0, 1)), ValueError, "1 shifts and 2 axes"),
        (lambda: xp.diff(X, axis=-3), ValueError, "axis -3"),
        (lambda: xp.diff(X, axis=2), ValueError, "axis 2"),
        (lambda: xp.diff(X[0, 0]), ValueError, "axis -1"),
        (lambda: xp.diff(X > 0), TypeError, "diff of bool"),
        (lambda: xp.diff(X > 0, n=0), TypeError, "diff of bool"),
        (lambda: xp.diff(X, n=-1), ValueError, "a count"),
        (lambda: xp.clip(X + 1j), TypeError, "clip of complex128"),
        (lambda: xp.clip(X > 0), TypeError, "clip of bool"),
    ],
)
def test_refusals_say_what_was_asked(
    call: Callable[[], Array], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_sequences_of_arrays_are_stacked() -> None:
    x = xp.asarray([1, 2], dtype="int8")
    assert np.asarray(xp.asarray([[x[0], x[1]], [x[1], x[0]]])).tolist() == [[1, 2], [2, 1]]
    assert xp.asarray([x, x]).dtype is xp.int8
    assert xp.asarray((x, [x[0], xp.asarray(3, dtype="int16")])).dtype is xp.int16
    assert np.asarray(xp.asarray([x[0], 5], dtype="float32")).tolist() == [1, 5]
    assert xp.asarray([x[0] * 2, x[1]]).symbol.value is None  # recorded
    with pytest.raises(TypeError, match="int8 and float64"):
        xp.asarray([x[0], xp.asarray(1.0)])
    with pytest.raises(ValueError, match="operands differ in shape"):
        xp.asarray([x, x[0]])
    with pytest.raises(ValueError, match="copy=False"):
        xp.asarray([x, x], copy=False)


def test_arange_rounds_ints_where_it_gives_floats() -> None:
    found = xp.arange(-(2**24) - 1, 0, 2**23, dtype="float32")
    assert found.dtype is xp.float32
    assert np.asarray(found).tolist() == [-(2.0**24), -(2.0**23) - 1, -1]


@every("axis", [-4, 3])
def test_an_axis_that_is_not_there_is_an_index_error_as_well(axis: int) -> None:
    for call in (
        lambda: xp.expand_dims(X, axis=axis),
        lambda: xp.squeeze(X, axis),
        lambda: xp.sum(X, axis=axis),
        lambda: xp.flip(X, axis=(0, axis)),
        lambda: xp.moveaxis(X, 0, axis),
    ):
        for kind in (IndexError, ValueError):
            with pytest.raises(kind, match=f"axis {axis}"):
                call()


def test_broadcast_shapes() -> None:
    assert xp.broadcast_shapes() == xp.broadcast_shapes(()) == ()
    assert xp.broadcast_shapes((2, 1), (), (3,), (1, 1, 1)) == (1, 2, 3)
    assert xp.broadcast_shapes((0, 1), (1, 4)) == (0, 4)
    many = [(1,) * i for i in range(70)]
    assert xp.broadcast_shapes(*many, (2,)) == (*(1,) * 68, 2)
    for wrong in ([(2, 3), (4,)], [(0,), (2,)], [(-1,)], [(None,)], ["n"], [(1.0,)]):
        with pytest.raises(ValueError):
            xp.broadcast_shapes(*wrong)


def test_axes_of_expand_dims_are_distinct_ints_and_the_error_says_where() -> None:
    for axis in ((0, 0), (0, -4), (1.0,), "a"):
        with pytest.raises(ValueError, match=r"\.py:\d+:\d+: expand_dims\(x: float64\[2, 3\]"):
            xp.expand_dims(xp.ones((2, 3)), axis=axis)


def test_an_axis_that_an_expansion_refuses_is_said_with_the_function_and_the_line() -> None:
    x = xp.ones((2, 3))
    for name, call in {
        "moveaxis": lambda: xp.moveaxis(x, 0, 2),
        "diff": lambda: xp.diff(x, axis=2),
        "take_along_axis": lambda: xp.take_along_axis(x, xp.asarray([[0]]), axis=2),
    }.items():
        with pytest.raises(IndexError, match=rf"\.py:\d+:\d+: {name}\(x: float64\[2, 3\]"):
            call()


@every("function", [xp.tril, xp.triu])
@every("shape", [(), (3,)])
def test_triangles_are_of_matrices(function: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="takes matrices; got shape"):
        function(xp.ones(shape))
