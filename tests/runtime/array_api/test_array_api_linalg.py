"""The extension linalg: decompositions and norms by what defines them, with their dtypes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir import DType
from graphir.runtime import array_api as xp
from graphir.runtime.array_api import Array
from graphir.runtime.array_api.functions import linalg
from tests.support.tables import every

FLOATS = (xp.float32, xp.float64, xp.complex64, xp.complex128)
STACKS = ((), (2,), (2, 0), (3, 2))
floats = every("dtype", FLOATS)
stacks = every("stack", STACKS)


def drawn(shape: tuple[int, ...], dtype: DType) -> NDArray[Any]:
    """Normal numbers, the same for the same shape and dtype."""
    rng = np.random.default_rng([*shape, dtype.bits])
    made = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype.is_complex else 0)
    return np.asarray(made, dtype.storage)


def array(shape: tuple[int, ...], dtype: DType) -> Array:
    return xp.asarray(drawn(shape, dtype))


def plain(x: Array) -> NDArray[Any]:
    return np.asarray(x)


def near(found: Any, expected: Any, dtype: DType) -> None:
    expected = np.asarray(expected)
    assert np.asarray(found).shape == expected.shape
    close = 1e-4 if dtype.part is DType.float32 else 1e-11
    np.testing.assert_allclose(np.asarray(found), expected, rtol=close, atol=close)


def adjoint(x: NDArray[Any]) -> NDArray[Any]:
    return np.conj(np.swapaxes(x, -1, -2))


def identities(stack: tuple[int, ...], size: int) -> NDArray[Any]:
    return np.broadcast_to(np.eye(size), (*stack, size, size))


def hermitian(stack: tuple[int, ...], size: int, dtype: DType) -> NDArray[Any]:
    half = drawn((*stack, size, size), dtype)
    return half + adjoint(half)


def determinant(x: NDArray[Any]) -> NDArray[Any]:
    """By Leibniz: a signed product of elements for each permutation of columns."""
    total = np.zeros(x.shape[:-2], x.dtype)
    for order in permutations(range(x.shape[-1])):
        swaps = sum(a > b for i, a in enumerate(order) for b in order[i:])
        term = np.prod([x[..., i, j] for i, j in enumerate(order)], axis=0)
        total = total + (-1) ** swaps * term
    return total


@floats
@stacks
@every("upper", [False, True])
def test_cholesky(dtype: DType, stack: tuple[int, ...], upper: bool) -> None:
    half = drawn((*stack, 3, 3), dtype)
    x = half @ adjoint(half) + identities(stack, 3).astype(half.dtype)
    found = linalg.cholesky(xp.asarray(x), upper=upper)
    factor = plain(found)
    assert found.dtype is dtype
    assert np.array_equal(factor, np.triu(factor) if upper else np.tril(factor))
    near(adjoint(factor) @ factor if upper else factor @ adjoint(factor), x, dtype)


@floats
@stacks
@every("size", range(4))
def test_det_and_slogdet(dtype: DType, stack: tuple[int, ...], size: int) -> None:
    x = array((*stack, size, size), dtype)
    expected = determinant(plain(x))
    det, (sign, logarithm) = linalg.det(x), linalg.slogdet(x)
    assert (det.dtype, sign.dtype, logarithm.dtype) == (dtype, dtype, dtype.part)
    near(det, expected, dtype)
    near(plain(sign) * np.exp(plain(logarithm)), expected, dtype)


def test_slogdet_of_a_singular_matrix_is_zero_and_minus_infinity() -> None:
    sign, logarithm = linalg.slogdet(xp.zeros((2, 2)))
    assert float(sign) == 0
    assert float(logarithm) == -xp.inf


@floats
@stacks
@every("size", range(4))
def test_eig(dtype: DType, stack: tuple[int, ...], size: int) -> None:
    x = array((*stack, size, size), dtype)
    found = linalg.eig(x)
    values, vectors = map(plain, found)
    complex_dtype = xp.result_type(dtype, xp.complex64)
    assert found.eigenvalues.dtype is found.eigenvectors.dtype is complex_dtype
    near(plain(x) @ vectors, vectors * values[..., None, :], dtype)
    near(linalg.eigvals(x), values, dtype)
    assert linalg.eigvals(x).dtype is complex_dtype
    near(values.prod(-1), determinant(plain(x)), dtype)


def test_real_eigenvalues_are_complex_numbers() -> None:
    for found in (linalg.eigvals(xp.eye(2)), *linalg.eig(xp.eye(2, dtype=xp.float32))):
        assert found.dtype.is_complex and not np.asarray(found).imag.any()


@floats
@stacks
def test_eigh(dtype: DType, stack: tuple[int, ...]) -> None:
    x = hermitian(stack, 3, dtype)
    found = linalg.eigh(xp.asarray(x))
    values, vectors = map(plain, found)
    assert (found.eigenvalues.dtype, found.eigenvectors.dtype) == (dtype.part, dtype)
    assert (np.diff(values) >= 0).all()
    near(x @ vectors, vectors * values[..., None, :], dtype)
    near(adjoint(vectors) @ vectors, identities(stack, 3), dtype)
    near(linalg.eigvalsh(xp.asarray(x)), values, dtype)
    assert linalg.eigvalsh(xp.asarray(x)).dtype is dtype.part


@floats
@stacks
def test_inv(dtype: DType, stack: tuple[int, ...]) -> None:
    x = array((*stack, 3, 3), dtype)
    assert linalg.inv(x).dtype is dtype
    near(plain(linalg.inv(x)) @ plain(x), identities(stack, 3), dtype)


@floats
@every("power", range(-3, 5))
def test_matrix_power(dtype: DType, power: int) -> None:
    x = hermitian((2,), 2, dtype)
    found = linalg.matrix_power(xp.asarray(x), power)
    factor = x if power > 0 else plain(linalg.inv(xp.asarray(x)))
    expected = identities((2,), 2)
    for _ in range(abs(power)):
        expected = expected @ factor
    assert found.dtype is dtype
    near(found, expected, dtype)


@floats
@stacks
@every("rank", range(4))
def test_matrix_rank_and_pinv(dtype: DType, stack: tuple[int, ...], rank: int) -> None:
    x = drawn((*stack, 4, rank), dtype) @ drawn((*stack, rank, 3), dtype)
    found = linalg.matrix_rank(xp.asarray(x), rtol=1e-5)
    assert found.dtype is xp.int64
    assert np.array_equal(plain(found), np.full(stack, rank))
    inverse = linalg.pinv(xp.asarray(x), rtol=1e-5)
    y = plain(inverse)
    assert inverse.dtype is dtype
    near(x @ y @ x, x, dtype)  # Moore and Penrose
    near(y @ x @ y, y, dtype)
    near(adjoint(x @ y), x @ y, dtype)
    near(adjoint(y @ x), y @ x, dtype)


@every("function", [linalg.matrix_rank, linalg.pinv])
def test_a_tolerance_is_relative_and_may_differ_in_a_stack(function: Callable[..., Array]) -> None:
    x = xp.asarray([np.diag([100.0, 1.0])] * 2)
    found = function(x, rtol=xp.asarray([0.001, 0.1]))
    expected = (
        [2, 1] if function is linalg.matrix_rank else [np.diag([0.01, 1]), np.diag([0.01, 0])]
    )
    near(found, expected, xp.float64)
    near(
        function(x), [2, 2] if function is linalg.matrix_rank else [np.diag([0.01, 1])] * 2, x.dtype
    )


@every("shape", [(0, 3), (3, 0), (2, 0, 0)])
def test_empty_matrices(shape: tuple[int, ...]) -> None:
    x = xp.zeros(shape)
    assert plain(linalg.matrix_rank(x)).tolist() == np.zeros(shape[:-2]).tolist()
    assert linalg.pinv(x).shape == plain(x).swapaxes(-1, -2).shape
    assert linalg.svdvals(x).shape == (*shape[:-2], 0)


@floats
@stacks
@every(("rows", "columns"), [*product((1, 2, 3), repeat=2)])
def test_qr(dtype: DType, stack: tuple[int, ...], rows: int, columns: int) -> None:
    x = array((*stack, rows, columns), dtype)
    for mode, size in ("reduced", min(rows, columns)), ("complete", rows):
        found = linalg.qr(x, mode=mode)
        q, r = map(plain, found)
        assert (found.Q.dtype, found.R.dtype) == (dtype, dtype)
        assert (q.shape, r.shape) == ((*stack, rows, size), (*stack, size, columns))
        assert np.array_equal(r, np.triu(r))
        assert np.isreal(np.diagonal(r, axis1=-2, axis2=-1)).all()
        near(q @ r, plain(x), dtype)
        near(adjoint(q) @ q, identities(stack, size), dtype)


@floats
@every(
    ("left", "right", "result"),
    [
        ((3, 3), (3,), (3,)),
        ((2, 3, 3), (3,), (2, 3)),
        ((3, 3), (3, 2), (3, 2)),
        ((2, 3, 3), (3, 2), (2, 3, 2)),
        ((3, 3), (2, 3, 4), (2, 3, 4)),
        ((2, 1, 3, 3), (4, 3, 1), (2, 4, 3, 1)),
        ((2, 2, 2), (2, 2), (2, 2, 2)),
    ],
)
def test_solve(dtype: DType, left: Any, right: Any, result: Any) -> None:
    x, y = array(left, dtype), array(right, dtype)
    found = linalg.solve(x, y)
    assert (found.dtype, found.shape) == (dtype, result)
    product = plain(x) @ plain(found)[..., None] if len(right) == 1 else plain(x) @ plain(found)
    near(product[..., 0] if len(right) == 1 else product, np.broadcast_to(plain(y), result), dtype)


@every(("one", "other"), [*product(FLOATS, FLOATS)])
def test_solve_promotes(one: DType, other: DType) -> None:
    found = linalg.solve(array((2, 2), one), array((2,), other))
    assert found.dtype is xp.result_type(one, other)


@floats
@stacks
@every(("rows", "columns"), [*product((1, 2, 3), repeat=2)])
def test_svd(dtype: DType, stack: tuple[int, ...], rows: int, columns: int) -> None:
    x, size = array((*stack, rows, columns), dtype), min(rows, columns)
    for full in True, False:
        found = linalg.svd(x, full_matrices=full)
        u, s, v = map(plain, found)
        assert (found.U.dtype, found.S.dtype, found.Vh.dtype) == (dtype, dtype.part, dtype)
        assert u.shape[-2:] == (rows, rows if full else size)
        assert v.shape[-2:] == (columns if full else size, columns)
        assert (np.diff(s) <= 0).all()
        near((u[..., :size] * s[..., None, :]) @ v[..., :size, :], plain(x), dtype)
        near(adjoint(u) @ u, identities(stack, u.shape[-1]), dtype)
        near(v @ adjoint(v), identities(stack, v.shape[-2]), dtype)
    near(linalg.svdvals(x), plain(linalg.svd(x).S), dtype)
    assert linalg.svdvals(x).dtype is dtype.part


def matrix_norms(x: NDArray[Any]) -> dict[Any, NDArray[Any]]:
    size = np.abs(x)
    singular = np.sqrt(np.maximum(np.linalg.eigvalsh(adjoint(x) @ x), 0))
    columns, rows = size.sum(-2), size.sum(-1)
    return {
        "fro": np.sqrt((size**2).sum((-2, -1))),
        "nuc": singular.sum(-1),
        1: columns.max(-1),
        -1: columns.min(-1),
        xp.inf: rows.max(-1),
        -xp.inf: rows.min(-1),
        2: singular.max(-1),
        -2: singular.min(-1),
    }


@floats
@every("order", ["fro", "nuc", 1, -1, xp.inf, -xp.inf, 2, -2])
def test_matrix_norm(dtype: DType, order: Any) -> None:
    x = array((2, 4, 3), dtype)
    found = linalg.matrix_norm(x, ord=order)
    assert found.dtype is dtype.part
    near(found, matrix_norms(plain(x))[order], dtype)
    kept = linalg.matrix_norm(x, ord=order, keepdims=True)
    assert np.array_equal(plain(kept), plain(found)[:, None, None])


def vector_norm(x: NDArray[Any], axis: Any, order: float) -> NDArray[Any]:
    size = np.abs(x)
    if np.isinf(order):
        return size.max(axis) if order > 0 else size.min(axis)
    if order == 0:
        return (size != 0).sum(axis).astype(size.dtype)
    return (size**order).sum(axis) ** (1 / order)


@floats
@every("order", [0, 1, 2, 3, 0.5, -1, -2, xp.inf, -xp.inf])
def test_vector_norm(dtype: DType, order: float) -> None:
    x = array((2, 3, 4), dtype)
    for axis in (None, 0, -1, (0,), (0, 2), (2, 0), (-1, 1), (0, 1, 2)):
        found = linalg.vector_norm(x, axis=axis, ord=order)
        assert found.dtype is dtype.part
        expected = vector_norm(plain(x), axis, order)
        near(found, expected, dtype)
        kept = linalg.vector_norm(x, axis=axis, ord=order, keepdims=True)
        assert kept.shape == plain(x).sum(axis, keepdims=True).shape
        near(xp.reshape(kept, found.shape), expected, dtype)


def test_vector_norm_of_a_number_is_its_size() -> None:
    assert float(linalg.vector_norm(xp.asarray(-3.0))) == 3
