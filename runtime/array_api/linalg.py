"""The extension `linalg`: products are recorded, the rest NumPy computes at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphir import GraphError, ShapeError, ops
from runtime.array_api.array import Array, array_of, eager, record
from runtime.array_api.dtypes import require, result_type
from runtime.array_api.manipulation import matrix_transpose
from runtime.array_api.matrices import matmul, tensordot, vecdot
from runtime.array_api.reductions import sum as sum_of

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


class EighResult(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """A matrix of orthonormal columns, and an upper triangular one."""

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


def _floating(name: str, *arrays: Array) -> None:
    for x in arrays:
        require(name, x, "real floating", "complex floating")


def _function(name: str, function: Callable[..., Any], doc: str) -> Callable[[Array], Any]:
    def call(x: Array, /) -> Any:
        _floating(name, x)
        return eager(function, x)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{doc}; LinAlgError where there is none."
    return call


det: Callable[[Array], Array] = _function("det", np.linalg.det, "The determinant")
inv: Callable[[Array], Array] = _function("inv", np.linalg.inv, "The inverse")
eigvalsh: Callable[[Array], Array] = _function(
    "eigvalsh", np.linalg.eigvalsh, "The eigenvalues of a Hermitian matrix, ascending"
)
svdvals: Callable[[Array], Array] = _function(
    "svdvals", np.linalg.svdvals, "The singular values, descending"
)


def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """The triangular factor of a positive definite matrix; LinAlgError where it is not."""
    _floating("cholesky", x)
    return eager(np.linalg.cholesky, x, upper=upper)


def eigh(x: Array, /) -> EighResult:
    """Eigenvalues and eigenvectors of a Hermitian matrix."""
    _floating("eigh", x)
    return EighResult(*eager(_tuple(np.linalg.eigh), x))


def qr(x: Array, /, *, mode: str = "reduced") -> QRResult:
    """The factors Q and R, "reduced" or "complete"."""
    _floating("qr", x)
    if mode not in ("reduced", "complete"):
        raise GraphError(f'the mode of qr is "reduced" or "complete", not {mode!r}')
    return QRResult(*eager(_tuple(np.linalg.qr), x, mode=mode))


def slogdet(x: Array, /) -> SlogdetResult:
    """The sign of the determinant, and the logarithm of its magnitude."""
    _floating("slogdet", x)
    return SlogdetResult(*eager(_tuple(np.linalg.slogdet), x))


def svd(x: Array, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular values and vectors."""
    _floating("svd", x)
    return SVDResult(*eager(_tuple(np.linalg.svd), x, full_matrices=full_matrices))


def _tuple(function: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
    return lambda *args, **settings: tuple(function(*args, **settings))


def solve(x1: Array, x2: Array, /) -> Array:
    """The solution of x1 @ x = x2, x2 being one vector or matrices; LinAlgError for none."""
    _floating("solve", x1, x2)
    result_type(x1, x2)
    return eager(_solved, x1, x2)


def _solved(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    if b.ndim == 1:  # NumPy solves for a vector where a is one matrix, and b may be a stack
        return np.linalg.solve(a, b[:, None])[..., 0]
    return np.linalg.solve(a, b)


def matrix_power(x: Array, n: int, /) -> Array:
    """A square matrix multiplied with itself n times; the inverse for negative n."""
    _floating("matrix_power", x)
    return eager(np.linalg.matrix_power, x, n)


def matrix_rank(x: Array, /, *, rtol: Any = None) -> Array:
    """How many singular values exceed `rtol` times the greatest."""
    _floating("matrix_rank", x)
    if x.ndim < 2:
        raise ShapeError(f"matrix_rank is of matrices, and this has shape {x.shape}")
    return eager(_rank, x, rtol)


def _rank(x: NDArray[Any], rtol: Any) -> Any:
    singular = np.linalg.svdvals(x)
    least = np.asarray(max(x.shape[-2:]) * np.finfo(singular.dtype).eps if rtol is None else rtol)
    greatest = singular.max(axis=-1, keepdims=True, initial=0)
    return np.count_nonzero(singular > greatest * least[..., None], axis=-1)


def pinv(x: Array, /, *, rtol: Any = None) -> Array:
    """The pseudo-inverse, singular values up to `rtol` times the greatest being 0."""
    _floating("pinv", x)
    least = max(x.shape[-2:]) * np.finfo(x.dtype.storage).eps if rtol is None else rtol
    return eager(np.linalg.pinv, x, least)


def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """A norm of matrices: "fro", "nuc", 1, 2, inf, or their negatives."""
    _floating("matrix_norm", x)
    return eager(np.linalg.matrix_norm, x, keepdims=keepdims, ord=ord)


def vector_norm(
    x: Array,
    /,
    *,
    axis: Any = None,
    keepdims: bool = False,
    ord: Any = 2,
) -> Array:
    """A norm of vectors along axes: a number, or inf or -inf."""
    _floating("vector_norm", x)
    return eager(np.linalg.vector_norm, x, axis=axis, keepdims=keepdims, ord=ord)


def outer(x1: Array, x2: Array, /) -> Array:
    """All products of two vectors' elements."""
    return record(ops.outer, array_of(x1), array_of(x2))


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of three along an axis counted from the end."""
    require("cross", x1, "numeric")
    require("cross", x2, "numeric")
    if not -min(x1.ndim, x2.ndim) <= axis < 0 or not x1.shape[axis] == x2.shape[axis] == 3:
        raise ShapeError(
            f"cross: {x1.shape} and {x2.shape} have no axis {axis} of 3 counted from the end"
        )
    result_type(x1, x2)
    return eager(np.cross, x1, x2, axis=axis)


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices."""
    if array_of(x).ndim < 2:
        raise ShapeError(f"a diagonal is of matrices, and this has shape {x.shape}")
    return eager(np.linalg.diagonal, x, offset=offset)


def trace(x: Array, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """The sums of diagonals, of small integers in 64 bits."""
    return sum_of(diagonal(x, offset=offset), axis=-1, dtype=dtype)
