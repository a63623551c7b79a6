"""Searching, sorting and sets; where values decide a shape, NumPy computes it at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphir import ShapeError, ops
from runtime.array_api.array import Array, array_of, eager, known, record, values


def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Sorted along an axis, NaN last, or first where it descends; always stable."""
    return record(ops.sort, array_of(x), axis=axis, descending=descending)


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The order that sorts along an axis; always stable."""
    return record(ops.argsort, array_of(x), axis=axis, descending=descending)


def searchsorted(
    x1: Array, x2: Array, /, *, side: str = "left", sorter: Array | None = None
) -> Array:
    """Where values go into a sorted vector, or into one that `sorter` sorts."""
    if sorter is not None:
        x1 = record(ops.gather, array_of(x1), array_of(sorter), axis=0)
    return record(ops.searchsorted, array_of(x1), array_of(x2), side=side)


def where(condition: Array, x1: Any, x2: Any, /) -> Array:
    """x1 where the condition is true, else x2."""
    return record(ops.where, array_of(condition), x1, x2)


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """The places of what is not 0, a vector for each axis."""
    if not array_of(x).ndim:
        raise ShapeError("nonzero: a 0-d array has no places")
    return eager(np.nonzero, x)


class unique_all_result(NamedTuple):  # noqa: N801 -- the standard's name
    """The distinct values, where each is first, which is where, and how many there are."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class unique_counts_result(NamedTuple):  # noqa: N801 -- the standard's name
    """The distinct values, and how many there are of each."""

    values: Array
    counts: Array


class unique_inverse_result(NamedTuple):  # noqa: N801 -- the standard's name
    """The distinct values, and which is where."""

    values: Array
    inverse_indices: Array


def unique_all(x: Array, /) -> unique_all_result:
    """The distinct values, where each is first, which is where, and how many there are."""
    return unique_all_result(*map(known, np.unique_all(values(x))))


def unique_counts(x: Array, /) -> unique_counts_result:
    """The distinct values, and how many there are of each; each NaN is distinct."""
    return unique_counts_result(*map(known, np.unique_counts(values(x))))


def unique_inverse(x: Array, /) -> unique_inverse_result:
    """The distinct values, and which is where; NaNs in the order in which they stand in `x`."""
    every = unique_all(x)
    return unique_inverse_result(every.values, every.inverse_indices)


def unique_values(x: Array, /) -> Array:
    """The distinct values, sorted; each NaN is distinct."""
    return known(np.sort(np.unique_values(values(x))))
