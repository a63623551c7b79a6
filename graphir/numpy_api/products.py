"""NumPy's products of vectors and matrices on symbols, and norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphError, ShapeError
from graphir.hints import ArrayOrNumber, Ints, Pairs, Real
from graphir.ir.literals import is_literal
from graphir.ir.symbol import Symbol
from graphir.numpy_api.einsum import einsum
from graphir.numpy_api.movement import as_symbols, axes_of, flat, moveaxis
from graphir.numpy_api.traced_numbers import TracedNumber


def strong(x: ArrayOrNumber) -> Any:
    """Return a number as the array that NumPy makes of it outside of ufuncs; other values stay."""
    if type(x) is TracedNumber:
        return x.symbol()
    return np.asarray(x) if is_literal(x) else x


def _dot(a: Any, b: Any) -> Symbol:
    a, b = strong(a), strong(b)
    ranks = np.ndim(a), np.ndim(b)
    product = _scaled(a, b)
    if product is not None:
        return product
    if max(ranks) < 3:
        return ops.matmul(a, b)
    return ops.tensordot(a, b, axes=((ranks[0] - 1,), (max(ranks[1] - 2, 0),)))


def _scaled(a: Any, b: Any) -> Symbol | None:
    """Return np.dot of an array and a number, or of two arrays of one element; None for others.

    NumPy adds the products of a number to zeros by BLAS, which makes 0.0 of -0.0. A single product
    of floats it does not add to zero, as np.matmul does.
    """
    shapes = np.shape(a), np.shape(b)
    ranks = [len(shape) for shape in shapes]
    if 0 not in ranks:
        if max(ranks) > _MATRIX or any(size != 1 for shape in shapes for size in shape):
            return None
        product = ops.multiply(ops.reshape(a, ()), ops.reshape(b, ()))
        shape = (1,) * (sum(ranks) - 2)
        return ops.reshape(product, shape) if product.dtype in _OF_BLAS[:2] else None
    product = ops.multiply(a, b)
    is_single = all(size == 1 for size in product.shape)
    if is_single or max(ranks) > _MATRIX or product.dtype not in _OF_BLAS:
        return product
    return ops.add(product, np.zeros((), product.dtype.to_numpy()))


_MATRIX = 2
_OF_BLAS = (DType.float32, DType.float64, DType.complex64, DType.complex128)


def _inner(a: Any, b: Any) -> Symbol:
    a, b = strong(a), strong(b)
    ranks = np.ndim(a), np.ndim(b)
    product = _scaled(a, b)
    if product is not None:
        return product
    if max(ranks) < 3:
        return ops.matmul(a, np.transpose(b) if ranks[1] == 2 else b)
    return ops.tensordot(a, b, axes=((ranks[0] - 1,), (ranks[1] - 1,)))


def _vdot(a: Any, b: Any) -> Symbol:
    return ops.matmul(np.conjugate(flat(a)) if np.iscomplexobj(a) else flat(a), flat(b))


def _linalg_vecdot(x1: ArrayOrNumber, x2: ArrayOrNumber, /, *, axis: int = -1) -> Symbol:
    x, y = as_symbols(x1, x2)
    if axis not in (-1, min(x.rank, y.rank) - 1):
        raise GraphError("it runs along the last axis alone", fix="use np.moveaxis(x, axis, -1)")
    return np.vecdot(x, y)  # pyright: ignore


def _outer(a: ArrayOrNumber, b: ArrayOrNumber) -> Symbol:
    return ops.outer(flat(a), flat(b))


def _tensordot(a: ArrayOrNumber, b: ArrayOrNumber, axes: Pairs = 2) -> Symbol:
    return ops.tensordot(a, b, axes=axes)


def _cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Symbol:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = as_symbols(a, b)
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ShapeError("cross takes vectors of 3 elements", got=f"{a.type} and {b.type}")
    left, right = ([ops.roll(x, shift=-by, axis=-1) for by in (1, 2)] for x in (a, b))
    return moveaxis(left[0] * right[1] - left[1] * right[0], -1, axisc)


def wide(x: Symbol) -> Symbol:
    """Return integers as float64, as NumPy's functions other than ufuncs do; floats stay."""
    return x if x.dtype.is_inexact else x.cast(DType.float64)


def _norm(x: Symbol, ord: Any = None, axis: Ints | None = None, keepdims: bool = False) -> Symbol:  # noqa: A002
    """Return vector norms, and Frobenius norms of matrices."""
    x = wide(x)
    usual = ord is None or (ord in ("f", "fro") and x.rank == 2) or (ord == 2 and x.rank == 1)
    if axis is None and usual:
        whole = ops.sqrt(_square(flat(x)))
        return ops.reshape(whole, (1,) * x.rank) if keepdims else whole
    axes = tuple(range(x.rank)) if axis is None else tuple(axes_of(x, axis))
    if len(axes) == 1:
        return _vector_norm(x, 2 if ord is None else ord, axes[0], keepdims)
    if len(axes) != _MATRIX:
        raise ShapeError("a norm is taken over one axis or two", got=f"axes {axes} of {x.type}")
    if ord not in (None, "fro", "f"):
        raise GraphError(f"the norm {ord!r} of a matrix has no op", fix="use ord='fro'")
    return _vector_norm(x, 2, axes, keepdims)


def _square(x: Symbol) -> Symbol:
    """Return the product of a vector with itself, through matmul, since NumPy uses BLAS."""
    if not x.dtype.is_complex:
        return ops.matmul(x, x)
    real, imaginary = ops.real(x), ops.imag(x)
    return ops.matmul(real, real) + ops.matmul(imaginary, imaginary)


def _vector_norm(x: Symbol, order: Real | str, axis: Ints | None, keepdims: bool = False) -> Symbol:
    if order in (2, "2"):
        squares = ops.real(ops.conj(x) * x) if x.dtype.is_complex else x * x
        return ops.sqrt(ops.sum(squares, axis=axis, keepdims=keepdims))
    if order == 0:
        return ops.sum((x != 0).cast(ops.abs(x).dtype), axis=axis, keepdims=keepdims)
    if isinstance(order, str):
        raise GraphError(f"vectors have no norm {order!r}", fix="use ord=2, a number or inf")
    size = ops.abs(x)
    if order in (np.inf, -np.inf):
        return (ops.max if order > 0 else ops.min)(size, axis=axis, keepdims=keepdims)
    if order == 1:
        return ops.sum(size, axis=axis, keepdims=keepdims)
    return ops.sum(size**order, axis=axis, keepdims=keepdims) ** (1.0 / order)


def _array_api_norm(
    x: Symbol,
    *,
    axis: Ints | None = None,
    keepdims: bool = False,
    ord: Real = 2,  # noqa: A002
) -> Symbol:
    x = wide(x)
    return _vector_norm(x, ord, axis, keepdims)


PRODUCTS: dict[str, Callable[..., Any]] = {
    "dot": _dot,
    "inner": _inner,
    "vdot": _vdot,
    **dict.fromkeys(("outer", "linalg.outer"), _outer),
    **dict.fromkeys(("tensordot", "linalg.tensordot"), _tensordot),
    "linalg.matmul": ops.matmul,
    "linalg.vecdot": _linalg_vecdot,
    "einsum": einsum,
    **dict.fromkeys(("cross", "linalg.cross"), _cross),
    "linalg.norm": _norm,
    "linalg.vector_norm": _array_api_norm,
}
"""The implementations by the function's path in numpy."""
