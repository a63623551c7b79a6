"""Searching, sorting and sets; NumPy computes functions with value-dependent shapes eagerly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from graphir.public import ShapeError, ops
from graphir.runtime.array_api.array import (
    SCALARS,
    Array,
    array_of,
    array_of_values,
    eager,
    record,
    values,
)
from graphir.runtime.array_api.dtypes import result_type
from graphir.runtime.array_api.functions.creation import asarray

__all__ = [
    "argmax", "argmin", "argsort", "isin", "nonzero", "searchsorted", "sort", "unique_all",
    "unique_counts", "unique_inverse", "unique_values",
]  # fmt: skip


def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Sort along an axis, NaN last (first if descending); always stable."""
    return record(ops.sort, array_of(x), axis=axis, descending=descending)


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return the indices that sort along an axis; always stable."""
    return record(ops.argsort, array_of(x), axis=axis, descending=descending)


def searchsorted(
    x1: Array, x2: Array | float, /, *, side: str = "left", sorter: Array | None = None
) -> Array:
    """Return the insertion indices of x2, an array or a number, in the sorted vector x1[sorter].

    Without `sorter`, x1 itself is sorted.
    """
    if sorter is not None:
        x1 = record(ops.gather, array_of(x1), array_of(sorter), axis=0)
    return record(ops.searchsorted, array_of(x1), x2, side=side)


def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return the index of the first maximum along an axis; axis=None flattens x."""
    return record(ops.argmax, array_of(x), axis=axis, keepdims=keepdims)


def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return the index of the first minimum along an axis; axis=None flattens x."""
    return record(ops.argmin, array_of(x), axis=axis, keepdims=keepdims)


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Return the indices of the nonzero elements, one vector for each axis."""
    if not array_of(x).ndim:
        raise ShapeError("a 0-d array has no indices", op="nonzero", fix="use reshape(x, (1,))")
    return eager(np.nonzero, x)


def isin(x1: Array | complex, x2: Array | complex, /, *, invert: bool = False) -> Array:
    """Return whether each element of x1 equals an element of x2, or with `invert` none of them.

    One of the two may be a Python scalar. NaN equals nothing. TypeError without a common dtype.
    """
    if not [array_of(x) for x in (x1, x2) if not isinstance(x, SCALARS)]:
        raise TypeError("isin of Python scalars alone; asarray(...) makes one an array")
    dtype = result_type(x1, x2)
    return eager(np.isin, asarray(x1, dtype=dtype), asarray(x2, dtype=dtype), invert=invert)


class unique_all_result(NamedTuple):  # noqa: N801 -- the standard's name
    """Distinct values, their first indices, the inverse indices of x, and the counts."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class unique_counts_result(NamedTuple):  # noqa: N801 -- the standard's name
    """The distinct values, and the count of each."""

    values: Array
    counts: Array


class unique_inverse_result(NamedTuple):  # noqa: N801 -- the standard's name
    """The distinct values, and the inverse indices of x."""

    values: Array
    inverse_indices: Array


def unique_all(x: Array, /) -> unique_all_result:
    """Return the distinct values, their first indices, the inverse indices, and the counts."""
    return unique_all_result(*map(array_of_values, np.unique_all(values(x))))


def unique_counts(x: Array, /) -> unique_counts_result:
    """Return the distinct values and the count of each; each NaN is distinct."""
    return unique_counts_result(*map(array_of_values, np.unique_counts(values(x))))


def unique_inverse(x: Array, /) -> unique_inverse_result:
    """Return the distinct values and the inverse indices; NaNs keep their order in `x`."""
    every = unique_all(x)
    return unique_inverse_result(every.values, every.inverse_indices)


def unique_values(x: Array, /) -> Array:
    """Return the distinct values, sorted; each NaN is distinct."""
    return array_of_values(np.sort(np.unique_values(values(x))))
