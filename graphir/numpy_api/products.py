"""NumPy's products of vectors and matrices on symbols, norms, and np.einsum.

The factors of np.einsum multiply two at a time, from the left. A repeated label within a factor
becomes a diagonal. Before each product, each factor is summed over the labels that neither the
output nor another factor needs. The product itself is a batched matmul: shared labels that stay are
batch axes, the other shared labels form the inner axis. A final permute orders the output's axes.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphError, ShapeError
from graphir.hints import ArrayOrNumber, Ints, Pairs, Real
from graphir.ir.literals import is_literal
from graphir.ir.symbol import Symbol
from graphir.numpy_api.movement import as_symbols, axes_of, diagonal, flat, moveaxis
from graphir.numpy_api.traced_numbers import TracedNumber
from graphir.ops.dims import Size, product


class Term(NamedTuple):
    """A factor whose axes have distinct letters as labels."""

    x: Symbol
    axes: str

    def size(self, axis: str) -> Size:
        """Return the size of a labelled axis, or 1 if the factor lacks the label."""
        return self.x.shape[self.axes.index(axis)] if axis in self.axes else 1

    def sizes(self, axes: str) -> tuple[Size, ...]:
        """Return the sizes of several labelled axes."""
        return tuple(map(self.size, axes))


def einsum(
    subscripts: str | ArrayOrNumber, *operands: ArrayOrNumber, optimize: Any = False
) -> Symbol:
    """Return the sum of products for subscripts such as `ij,jk->ik` or `...i,i`.

    The products run two factors at a time, from the left. The function raises GraphError if the
    subscripts are no text, and ShapeError if they do not fit the operands.
    """
    if not isinstance(subscripts, str):
        raise GraphError(
            "the first argument of einsum must be text", fix="use 'ij,jk->ik' or the like"
        )
    symbols = _alike(as_symbols(*operands))
    terms, output = _parse(subscripts, [x.rank for x in symbols])
    factors = [_factor(axes, x) for axes, x in zip(terms, symbols, strict=True)]
    factors = [_without_ones(factor_, factors) for factor_ in factors]
    product_ = factors[0]
    for i, factor in enumerate(factors[1:], 1):
        product_ = _product(
            product_, factor, output + "".join(factor_.axes for factor_ in factors[i + 1 :])
        )
    return _order_axes(_sum_out(product_, output), output)


def summed_labels(subscripts: str) -> set[str]:
    """Return the labels that an output, named or implied by the inputs, lacks."""
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    labels = {label for label in inputs if label.isalpha()}
    own = {*output} if arrow else {label for label in labels if inputs.count(label) == 1}
    return labels - own


def _alike(symbols: list[Symbol]) -> list[Symbol]:
    """Return the factors, cast to their common dtype before any sum."""
    graph = symbols[0].graph
    if len({x.dtype for x in symbols}) == 1:
        return symbols
    dtype = graph.rules.common(graph.builder.types_of(symbols))
    positions = [0, *[1] * (len(symbols) - 1)]
    return [
        graph.implied_cast(x, dtype, ops.multiply, position)
        for x, position in zip(symbols, positions, strict=True)
    ]


def _parse(subscripts: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return the labels of each factor and of the output.

    Without `->`, the output has the labels that occur once, in alphabetical order.
    """
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(ranks):
        raise ShapeError(f"{subscripts!r} has {len(terms)} inputs", got=f"{len(ranks)} operands")
    counts = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    if any(count and (count < 0 or "..." not in term) for count, term in zip(counts, terms)):  # noqa: B905
        raise ShapeError(
            f"the labels of {subscripts!r} do not match the ranks of its operands",
            got=f"ranks {list(ranks)}",
        )
    free = [term for term in string.ascii_letters if term not in subscripts][: max(counts)]
    terms_expanded = [
        term.replace("...", "".join(free[len(free) - count :]))
        for term, count in zip(terms, counts, strict=True)
    ]
    letters = "".join(terms).replace(".", "")
    once = "".join(c for c in sorted(set(letters)) if letters.count(c) == 1)
    output = output.replace("...", "".join(free)) if arrow else "".join(free) + once
    if not set(output) <= set("".join(terms_expanded)) or len(set(output)) < len(output):
        raise ShapeError(
            "a label of the output is repeated, or labels no axis of an input", got=repr(subscripts)
        )
    return terms_expanded, output


def _factor(axes: str, x: Symbol) -> Term:
    """Return a factor with distinct labels; axes with the same label become their diagonal."""
    for axis in dict.fromkeys(axes):
        while axes.count(axis) > 1:
            first = axes.index(axis)
            second = axes.index(axis, first + 1)
            if x.shape[first] != x.shape[second]:
                raise ShapeError(f"axes {axis!r} differ in size", got=str(x.type))
            x = diagonal(x, 0, first, second)
            axes = axes[:first] + axes[first + 1 : second] + axes[second + 1 :] + axis
    return Term(x, axes)


def _without_ones(term: Term, all_terms: Sequence[Term]) -> Term:
    """Drop axes of size 1 that are longer in another factor, since the product repeats them."""
    for axis in term.axes:
        if term.size(axis) == 1 and any(other.size(axis) != 1 for other in all_terms):
            x = ops.squeeze(term.x, term.axes.index(axis))
            term = Term(x, term.axes.replace(axis, ""))
    return term


def _sum_out(term: Term, labels: Iterable[str]) -> Term:
    """Return the factor summed over the axes whose labels are not in `labels`."""
    over = tuple(i for i, axis in enumerate(term.axes) if axis not in labels)
    if not over:
        return term
    x = ops.sum(term.x, axis=over, dtype=term.x.dtype)
    return Term(x, "".join(axis for axis in term.axes if axis in labels))


def _order_axes(term: Term, axes: str) -> Symbol:
    """Return the factor's symbol with its axes in the order of `axes`."""
    return term.x if term.axes == axes else ops.permute(term.x, tuple(map(term.axes.index, axes)))


def _product(a: Term, b: Term, output_labels: str) -> Term:
    """Return the product of two factors as a batched matmul over the axes that they share."""
    a, b = _sum_out(a, output_labels + b.axes), _sum_out(b, output_labels + a.axes)
    batch = "".join(axis for axis in a.axes if axis in b.axes and axis in output_labels)
    inner = "".join(axis for axis in a.axes if axis in b.axes and axis not in output_labels)
    rows = "".join(axis for axis in a.axes if axis not in b.axes)
    columns = "".join(axis for axis in b.axes if axis not in a.axes)
    left, right = _matrix(a, batch, rows, inner), _matrix(b, batch, inner, columns)
    shape = (*a.sizes(batch), *a.sizes(rows), *b.sizes(columns))
    return Term(_reshape(ops.matmul(left, right), shape), batch + rows + columns)


def _matrix(term: Term, batch: str, rows: str, columns: str) -> Symbol:
    sides = product(term.sizes(rows)), product(term.sizes(columns))
    return _reshape(_order_axes(term, batch + rows + columns), (*term.sizes(batch), *sides))


def _reshape(x: Symbol, shape: tuple[Size, ...]) -> Symbol:
    return x if x.shape == shape else ops.reshape(x, shape)


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
