"""The extension `linalg`: the last two axes are matrices, stacked along all other axes.

Products, traces and diagonals are recorded ops. NumPy computes decompositions and norms eagerly.
These functions raise TypeError unless the dtype is floating-point, ShapeError (a ValueError) for a
wrong shape, and LinAlgError for a matrix without a result.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import index
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphir.dtypes import DTypeLike
from graphir.hints import Pairs
from graphir.public import GraphError, ShapeError, ops
from graphir.runtime.array_api.array import Array, array_of, call_numpy, record
from graphir.runtime.array_api.array import LinAlgError as LinAlgError
from graphir.runtime.array_api.dtypes import astype, require, result_type
from graphir.runtime.array_api.expansions import expanded
from graphir.runtime.array_api.functions.manipulation import broadcast_arrays, matrix_transpose
from graphir.runtime.array_api.functions.statistics import sum as sum_of
from graphir.runtime.array_api.views import viewed

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr",
    "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


# -- products of matrices and vectors, which the namespace has too


def matmul(x1: Array, x2: Array, /) -> Array:
    """Return the matrix product over the last two axes, batched over the others."""
    return record(ops.matmul, array_of(x1), array_of(x2))


def tensordot(x1: Array, x2: Array, /, *, axes: Pairs = 2) -> Array:
    """Return the tensor contraction over `axes`.

    An int n contracts the last n axes of x1 with the first n of x2; a pair of sequences names the
    contracted axes of x1 and of x2.
    """
    return record(ops.tensordot, array_of(x1), array_of(x2), axes=axes)


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Return the vector dot product along `axis`, a negative axis; conjugates x1."""
    least = -min(array_of(x1).ndim, array_of(x2).ndim)
    if not least <= axis < 0:
        raise ShapeError(
            f"axis is negative, and at least {least}, for both arrays",
            op="vecdot",
            got=f"axis={axis} of {x1.shape} and {x2.shape}",
        )
    if x1.shape[axis] != x2.shape[axis]:
        raise ShapeError(
            f"the arrays differ in size on axis {axis}",
            op="vecdot",
            got=f"{x1.shape} and {x2.shape}",
        )
    left, right = broadcast_arrays(record(ops.conj, x1), x2)
    products = record(ops.multiply, left, right)
    return record(ops.sum, products, axis=axis, dtype=result_type(x1, x2))


class EigResult(NamedTuple):
    """The eigenvalues, and the eigenvectors as columns, both complex."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """The eigenvalues in ascending order, and the eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """A matrix of orthonormal columns, and an upper triangle."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its magnitude."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """Left singular vectors, singular values in descending order, right singular vectors."""

    U: Array
    S: Array
    Vh: Array


# -- recorded functions


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Return the cross products of 3-vectors along `axis`, a negative axis."""
    least = -min(array_of(x1).ndim, array_of(x2).ndim)
    if not least <= axis < 0 or not x1.shape[axis] == x2.shape[axis] == 3:
        raise ShapeError(
            f"axis {axis}, counted from the end, has size 3 in both arrays",
            op="cross",
            got=f"{x1.shape} and {x2.shape}",
        )
    return expanded(np.cross, x1, x2, axis=axis)


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """Return the diagonals of matrices, a read-only view: the main, or one above or below it.

    `offset` is positive above and negative below the main diagonal.
    """
    *stack, rows, columns = _matrices("diagonal", x).shape
    down, right = max(-offset, 0), max(offset, 0)
    count = max(min(rows - down, columns - right), 0)
    step, first = columns + 1, down * columns + right
    lines = record(ops.reshape, x, shape=(*stack, rows * columns))
    diagonals = lines[..., first : first + count * step : step]
    move = partial(np.linalg.diagonal, offset=offset)
    return viewed(x, diagonals.symbol, [(ops.slice, move)])


def outer(x1: Array, x2: Array, /) -> Array:
    """Return the outer product of two vectors."""
    return record(ops.outer, array_of(x1), array_of(x2))


def trace(x: Array, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Return the sums of diagonals; small integers accumulate in 64 bits."""
    return sum_of(diagonal(x, offset=offset), axis=-1, dtype=dtype)


# -- functions that NumPy computes


def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """Return the lower Cholesky factor L of x = L @ conj(L.mT), or conj(L.mT) if `upper`."""
    return _of(np.linalg.cholesky, _squares, x, upper=upper)


def det(x: Array, /) -> Array:
    """Return the determinants of square matrices."""
    return _of(np.linalg.det, _squares, x)


def eig(x: Array, /) -> EigResult:
    """Return the complex eigenvalues and eigenvectors of square matrices, in LAPACK's order."""
    return EigResult(*_of(_eig, _squares, x))


def _eig(x: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    # NumPy gives real arrays where all eigenvalues of the stack are real.
    return tuple([_complex(part) for part in np.linalg.eig(x)])


def eigvals(x: Array, /) -> Array:
    """Return the complex eigenvalues of square matrices, in LAPACK's order."""
    return _of(_eigvals, _squares, x)


def _eigvals(x: NDArray[Any]) -> NDArray[Any]:
    return _complex(np.linalg.eigvals(x))


def _complex(x: NDArray[Any]) -> NDArray[Any]:
    return x.astype(np.result_type(x.dtype, np.complex64), copy=False)


def eigh(x: Array, /) -> EighResult:
    """Return the eigenvalues and eigenvectors of Hermitian matrices."""
    return EighResult(*_of(np.linalg.eigh, _squares, x))


def eigvalsh(x: Array, /) -> Array:
    """Return the eigenvalues of Hermitian matrices, in ascending order."""
    return _of(np.linalg.eigvalsh, _squares, x)


def inv(x: Array, /) -> Array:
    """Return the inverses of square matrices."""
    return _of(np.linalg.inv, _squares, x)


def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: float | str = "fro") -> Array:
    """Return a norm of matrices; `ord` is "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
    return _of(np.linalg.matrix_norm, _matrices, x, keepdims=keepdims, ord=ord)


def matrix_power(x: Array, n: int, /) -> Array:
    """Return square matrices to the power n; for negative n, the inverse to the power -n."""
    return _of(np.linalg.matrix_power, _squares, x, n=index(n))


def matrix_rank(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """Return the number of singular values above `rtol` times the greatest.

    The default of `rtol` is max(M, N) times the epsilon of the dtype, for M x N matrices.
    """
    return _of(_matrix_rank, _matrices, x, rtol=rtol)


def _matrix_rank(x: NDArray[Any], rtol: NDArray[Any] | float | None) -> Any:
    singular = np.linalg.svdvals(x)
    greatest = singular.max(axis=-1, keepdims=True, initial=0)
    return np.count_nonzero(singular > greatest * _tolerance(x, rtol)[..., None], axis=-1)


def pinv(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """Return the pseudo-inverses; singular values up to `rtol` times the greatest count as 0.

    The default of `rtol` is max(M, N) times the epsilon of the dtype, for M x N matrices.
    """
    return _of(_pinv, _matrices, x, rtol=rtol)


def _pinv(x: NDArray[Any], rtol: NDArray[Any] | float | None) -> Any:
    return np.linalg.pinv(x, _tolerance(x, rtol))


def _tolerance(x: NDArray[Any], rtol: NDArray[Any] | float | None) -> NDArray[Any]:
    return np.asarray(max(x.shape[-2:]) * np.finfo(x.dtype).eps if rtol is None else rtol)


def qr(x: Array, /, *, mode: str = "reduced") -> QRResult:
    """Return the QR factors of matrices, "reduced" or "complete"."""
    if mode not in ("reduced", "complete"):
        raise GraphError('the mode of qr is "reduced" or "complete"', got=f"{mode!r}")
    return QRResult(*_of(np.linalg.qr, _matrices, x, mode=mode))


def slogdet(x: Array, /) -> SlogdetResult:
    """Return the sign of the determinant and the logarithm of its magnitude."""
    return SlogdetResult(*_of(np.linalg.slogdet, _squares, x))


def solve(x1: Array, x2: Array, /) -> Array:
    """Solve x1 @ x = x2; x2 is one vector or a stack of matrices that broadcasts with x1."""
    require("solve", _squares("solve", x1), *_FLOATING)
    require("solve", x2, *_FLOATING)
    dtype = result_type(x1, x2)
    alike = [astype(x, dtype, copy=False) for x in (x1, x2)]
    return call_numpy("solve", np.linalg.solve, *alike)


def svd(x: Array, /, *, full_matrices: bool = True) -> SVDResult:
    """Return singular values and vectors; full_matrices=False gives one vector for each value."""
    return SVDResult(*_of(np.linalg.svd, _matrices, x, full_matrices=full_matrices))


def svdvals(x: Array, /) -> Array:
    """Return the singular values, in descending order."""
    return _of(np.linalg.svdvals, _matrices, x)


def vector_norm(
    x: Array,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: float = 2,
) -> Array:
    """Return a norm of vectors along axes; `ord` is any number, inf or -inf."""
    return _of(np.linalg.vector_norm, _any, x, axis=axis, keepdims=keepdims, ord=ord)


# -- checks of operands

_FLOATING = ("real floating", "complex floating")


def _of(
    function: Callable[..., Any],
    check_shape: Callable[[str, Array], Array],
    x: Array,
    **settings: Any,
) -> Any:
    name = function.__name__.removeprefix("_")
    require(name, check_shape(name, x), *_FLOATING)
    return call_numpy(name, function, x, **settings)


def _any(name: str, x: Array) -> Array:
    return array_of(x)


def _matrices(name: str, x: Array) -> Array:
    if array_of(x).ndim < 2:
        raise ShapeError(f"{name} takes matrices", got=f"shape {x.shape}")
    return x


def _squares(name: str, x: Array) -> Array:
    if _matrices(name, x).shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name} takes square matrices", got=f"shape {x.shape}")
    return x
