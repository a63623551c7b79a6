"""The extension linalg: what it records, and what it refuses."""

from __future__ import annotations

import inspect
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graphir import DType, GraphirError
from graphir.runtime import array_api as xp
from graphir.runtime.array_api import Array
from graphir.runtime.array_api.functions import linalg
from tests.support.tables import every


def plain(x: Array) -> NDArray[Any]:
    return np.asarray(x)


# -- what is recorded


@every("offset", range(-4, 5))
@every(("rows", "columns"), [*product(range(4), repeat=2)])
def test_diagonal_and_trace(offset: int, rows: int, columns: int) -> None:
    x = np.arange(2 * rows * columns, dtype=np.int16).reshape(2, rows, columns)
    places = [(i, i + offset) for i in range(rows) if 0 <= i + offset < columns]
    expected = np.array([[one[place] for place in places] for one in x], np.int16)
    found = linalg.diagonal(xp.asarray(x), offset=offset)
    assert found.dtype is xp.int16
    assert np.array_equal(plain(found), expected.reshape(2, len(places)))
    total = linalg.trace(xp.asarray(x), offset=offset)
    assert total.dtype is xp.int64
    assert np.array_equal(plain(total), expected.reshape(2, len(places)).sum(-1))


@every(
    ("dtype", "result"),
    [("int8", "int64"), ("uint16", "uint64"), ("float32", "float32"), ("complex64", "complex64")],
)
def test_trace_sums_as_sum_does(dtype: str, result: str) -> None:
    x = xp.full((3, 3), 1, dtype=dtype)
    assert linalg.trace(x).dtype is DType(result)
    assert linalg.trace(x, dtype="complex128").dtype is xp.complex128
    assert complex(linalg.trace(xp.full((2, 2), 100, dtype="int8"))) == 200


@every("dtype", ["int8", "uint8", "int64", "float32", "complex128"])
@every(("left", "right", "axis"), [((3,), (3,), -1), ((2, 3), (3,), -1), ((3, 2), (4, 3, 1), -2)])
def test_cross(dtype: str, left: Any, right: Any, axis: int) -> None:
    rng = np.random.default_rng(3)
    x, y = (rng.integers(0, 12, shape).astype(dtype) for shape in (left, right))
    found = linalg.cross(xp.asarray(x), xp.asarray(y), axis=axis)
    a, b = (np.moveaxis(one, axis, 0) for one in np.broadcast_arrays(x, y))
    terms = [a[[i - 2]] * b[[i - 1]] - a[[i - 1]] * b[[i - 2]] for i in range(3)]
    expected = np.moveaxis(np.concatenate(terms), 0, axis)
    assert found.dtype is DType(dtype)
    assert np.array_equal(plain(found), expected)


@every("dtype", ["uint8", "int32", "float32", "complex64"])
def test_products_in_both_namespaces(dtype: str) -> None:
    x, y = (xp.asarray(np.arange(1, n), dtype=dtype) for n in (4, 6))
    assert np.array_equal(plain(linalg.outer(x, y)), plain(x)[:, None] * plain(y))
    for name in ("matmul", "matrix_transpose", "tensordot", "vecdot"):
        assert getattr(linalg, name) is getattr(xp, name)


def test_vecdot_conjugates_the_first() -> None:
    found = linalg.vecdot(xp.asarray([1j, 2j, 3j]), xp.asarray([1, 2j, 3], dtype="complex128"))
    assert complex(found) == 4 - 10j


def test_what_ops_can_say_is_recorded() -> None:
    x, y = xp.ones((3, 3)), xp.ones((3,))
    for one in (
        *(linalg.diagonal(x), linalg.trace(x), linalg.cross(x, y), linalg.outer(y, y)),
        *(linalg.matmul(x, y), linalg.vecdot(x, y), linalg.tensordot(x, x)),
    ):
        assert one.symbol.value is None


# -- what is refused

ONE = linalg.__all__
"""The functions; those of one matrix are the ones whose first parameter is x."""
OF_MATRICES = [
    name for name in ONE if next(iter(inspect.signature(getattr(linalg, name)).parameters)) == "x"
]
ON_FLOATS = sorted({*OF_MATRICES} - {"diagonal", "trace", "matrix_transpose"})
ON_SQUARES = ["cholesky", "det", "eigh", "eigvalsh", "inv", "matrix_power", "slogdet"]
REST: dict[str, tuple[Any, ...]] = {"matrix_power": (2,)}


def called(name: str, x: Array) -> Any:
    return getattr(linalg, name)(x, *REST.get(name, ()))


@every("name", ON_FLOATS)
@every("dtype", ["bool", "int64", "uint8"])
def test_only_floating_dtypes(name: str, dtype: str) -> None:
    with pytest.raises(TypeError, match=f"{name} of {dtype}"):
        called(name, xp.ones((2, 2), dtype=dtype))


@every("name", sorted({*OF_MATRICES} - {"vector_norm"}))
def test_only_matrices(name: str) -> None:
    with pytest.raises(ValueError, match=r"matri.*\(2,\)"):
        called(name, xp.ones(2))


@every("name", ON_SQUARES)
def test_only_square_matrices(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} takes square matrices.*\(2, 3\)"):
        called(name, xp.ones((2, 3)))


@every("name", OF_MATRICES)
def test_only_arrays_of_the_namespace(name: str) -> None:
    with pytest.raises(TypeError, match="asarray"):
        called(name, np.ones((2, 2)))  # pyright: ignore[reportArgumentType]


@every(
    ("name", "x"),
    [("inv", xp.zeros((2, 2))), ("cholesky", -xp.eye(2)), ("svd", xp.full((2, 2), xp.nan))],
)
def test_a_matrix_without_a_result_is_named(name: str, x: Array) -> None:
    with pytest.raises(np.linalg.LinAlgError, match=rf"{name} of float64\[2, 2\]") as caught:
        called(name, x)
    assert isinstance(caught.value, (GraphirError, linalg.LinAlgError))


@every(
    ("call", "kind", "text"),
    [
        (lambda: linalg.cross(xp.ones(3), xp.ones(2)), ValueError, "axis -1, counted"),
        (lambda: linalg.cross(xp.ones(3), xp.ones(3), axis=0), ValueError, "from the end"),
        (lambda: linalg.cross(xp.ones(3), xp.ones(3, dtype="int8")), TypeError, "float64"),
        (lambda: linalg.vecdot(xp.ones(3), xp.ones(1)), ValueError, "vecdot"),
        (lambda: linalg.vecdot(xp.ones((2, 3)), xp.ones(3), axis=-2), ValueError, "vecdot"),
        (lambda: linalg.outer(xp.ones((1, 1)), xp.ones(1)), ValueError, "outer"),
        (lambda: linalg.matmul(xp.ones(()), xp.ones(1)), ValueError, "matmul"),
        (lambda: linalg.matmul(xp.ones((2, 3)), xp.ones((2, 3))), ValueError, "inner dims"),
        (lambda: linalg.solve(xp.ones((2, 2)), xp.ones(3)), ValueError, "solve of float64"),
        (lambda: linalg.solve(xp.eye(2), xp.ones(2, dtype="int8")), TypeError, "solve of int8"),
        (lambda: linalg.solve(xp.ones((2, 2)), xp.ones(2)), linalg.LinAlgError, "solve of"),
        (lambda: linalg.qr(xp.eye(2), mode="raw"), ValueError, "reduced"),
        (lambda: linalg.matrix_norm(xp.eye(2), ord="max"), ValueError, "matrix_norm of"),
        (lambda: linalg.vector_norm(xp.eye(2), axis=2), ValueError, "vector_norm of"),
        (lambda: linalg.matrix_power(xp.eye(2), 0.5), TypeError, "integer"),  # pyright: ignore
    ],
)
def test_refusals_say_what_was_asked(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()
