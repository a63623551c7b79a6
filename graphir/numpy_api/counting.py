"""NumPy's counts on symbols: bincount, isin, and sums at places with repetitions.

The order of additions is NumPy's: one after another, in the order of the elements. An error of
NumPy that depends on values is an error of the run.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphError, ShapeError
from graphir.hints import ArrayOrNumber
from graphir.ir.symbol import Symbol
from graphir.numpy_api.movement import as_symbols, flat
from graphir.semantics.library_calls import Function

# -- what a run demands of values


def checked(places: Symbol, valid: Symbol, size: Any) -> Symbol:
    """Return places in an axis of a size; the run raises an error where `valid` is false."""
    line = places.graph.range(size, dtype="int64")
    return ops.gather(line, ops.where(valid, places, size), axis=0)


def demanded(x: Symbol, valid: Symbol) -> Symbol:
    """Return x; the run raises an error unless `valid`, a bool, is true."""
    return ops.gather(ops.unsqueeze(x, 0), ops.where(valid, 0, 1), axis=0)


# -- sums at places


def joined_at(ufunc: np.ufunc, x: Symbol, places: Symbol, values: Symbol) -> Symbol:
    """Return x after ufunc.at(x, places, values): places name slices, and may be negative."""
    if ufunc not in (np.add, np.subtract) or (x.dtype is DType.bool and ufunc is not np.add):
        raise GraphError(f"np.{ufunc.__name__}.at of {x.dtype} at computed places has no op")
    if x.graph.rules.promote(x.type, values.type) is not x.dtype:
        raise GraphError(f"values {values.dtype} do not join {x.dtype}", fix="cast them first")
    values = values.cast(x.dtype)
    values = ops.negative(values) if ufunc is np.subtract else values
    return ops.index_add(x, values, places, axis=0)


def _bincount(x: ArrayOrNumber, weights: ArrayOrNumber | None = None, minlength: Any = 0) -> Symbol:
    size = operator.index(minlength)
    places, *rest = as_symbols(x, *([] if weights is None else [weights]))
    if places.rank != 1 or any(w.shape != places.shape or w.dtype.is_complex for w in rest):
        raise ShapeError("bincount takes a vector, and as many real weights")
    if places.dtype is DType.uint64 or not (places.dtype.is_integer or places.dtype is DType.bool):
        raise GraphError(f"bincount does not count {places.dtype}", fix="use .astype(int)")
    if size < 1:
        raise GraphError(
            "the size of the result depends on values",
            fix="pass minlength=, above every element, as in np.bincount(x, minlength=256)",
        )
    if places.dtype is not DType.bool or size < 2:
        places = places.cast("int64")
        places = checked(places, (places >= 0) & (places < size), size)
    places = places.cast("int64")
    if not rest:
        return ops.index_add(places.graph.full(0, (size,), "int64"), 1, places)
    zeros = places.graph.full(0.0, (size,), "float64")
    return ops.index_add(zeros, rest[0].cast("float64"), places)


# -- elements among others


def _isin(
    element: ArrayOrNumber,
    test_elements: ArrayOrNumber,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | bytes | None = None,
) -> Symbol:
    """Return whether each element equals one of others."""
    x, y = as_symbols(element, test_elements)
    y = flat(y)
    if isinstance(x.size, int) and isinstance(y.size, int) and x.size * y.size <= 2**22:
        hits = ops.any(ops.unsqueeze(x, x.rank) == y, axis=-1)
    else:
        raise GraphError("every pair of elements is compared: too many", got=f"{x.type}, {y.type}")
    return ops.logical_not(hits) if invert else hits


COUNTING: dict[str, Function] = {
    "bincount": _bincount,
    "isin": _isin,
}
"""The implementations by the function's path in numpy."""
