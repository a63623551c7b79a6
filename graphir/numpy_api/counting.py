"""NumPy's counts on symbols: bincount, histograms, and sums at places with repetitions.

The order of additions is NumPy's: one after another, in the order of the elements. Source:
numpy/lib/_histograms_impl.py. An error of NumPy that depends on values is an error of the run.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphError, ShapeError
from graphir.ir.symbol import Symbol
from graphir.numpy_api.interpolation import MOST_PRODUCTS, samples
from graphir.numpy_api.movement import as_symbols, flat
from graphir.numpy_api.order_statistics import checked, demanded
from graphir.numpy_api.traced_numbers import concrete
from graphir.ops.op import Op

Function = Callable[..., Any]
BLOCK = 65536
"""The number of elements that np.histogram counts at a time."""


# -- sums at places


def counts(places: Symbol, size: int) -> Symbol:
    """Return how often each of the numbers 0 .. size - 1 occurs in a vector of 0 .. size."""
    none = places.graph.full(0, (size + 1,), "int64")
    return ops.index_add(none, 1, places)[:size]


def _reduction_at(x: Symbol, places: Symbol, values: Symbol, op: Op) -> Symbol:
    """Return x with values joined, one after another, to the slices that a vector of places names.

    `op` is the reduction that joins them: prod, max or min.
    """
    rows = x.shape[0]
    if not isinstance(rows, int) or not isinstance(values.size, int):
        raise ShapeError("joins at places need known sizes", got=f"{x.type} and {values.type}")
    if values.size * max(rows, 2) > MOST_PRODUCTS:
        raise GraphError(
            "the table of values and places that the results are made of would be too large",
            got=f"{values.size} values and {rows} places",
            fix="call the function from plain Python, without jit",
        )
    width = max(rows, 2)  # a lone column would be reduced pairwise
    line = x.graph.range(width, dtype="int64")
    hit = ops.unsqueeze(places, 1) == line
    hit = ops.reshape(hit, (*hit.shape, *(1,) * (x.rank - 1)))
    start = x if width == rows else ops.concat([x, x], axis=0)
    rest = x.graph.full(1, (), x.dtype) if op is ops.prod else start
    terms = ops.where(hit, ops.unsqueeze(values, 1), rest)
    return op(ops.concat([ops.unsqueeze(start, 0), terms], axis=0), axis=0)[:rows]


JOINS: dict[np.ufunc, Op] = {
    np.add: ops.index_add,
    np.subtract: ops.index_add,
    np.multiply: ops.prod,
    np.maximum: ops.max,
    np.minimum: ops.min,
}
"""The ufuncs whose method `at` takes places that are known only at run time."""


def joined_at(ufunc: np.ufunc, x: Symbol, places: Symbol, values: Symbol) -> Symbol:
    """Return x after ufunc.at(x, places, values): places name slices, and may be negative."""
    op = JOINS.get(ufunc)
    if op is None or (x.dtype is DType.bool and ufunc is not np.add):
        raise GraphError(f"np.{ufunc.__name__}.at of {x.dtype} at computed places has no op")
    if op in (ops.max, ops.min) and not x.dtype.is_integer:
        raise GraphError(
            "0.0 and -0.0 are equal, so the order of the places counts",
            fix="write np.where(places == np.arange(n)[:, None], values, x[:, None]).max(axis=1)",
        )
    if x.graph.rules.promote(x.type, values.type) is not x.dtype:
        raise GraphError(f"values {values.dtype} do not join {x.dtype}", fix="cast them first")
    values = values.cast(x.dtype)
    if op is ops.index_add:
        values = ops.negative(values) if ufunc is np.subtract else values
        return ops.index_add(x, values, places, axis=0)
    values = ops.broadcast_to(values, (*places.shape, *x.shape[1:]))
    values = ops.reshape(values, (places.size, *x.shape[1:]))
    line = ops.gather(x.graph.range(x.shape[0], dtype="int64"), flat(places), axis=0)
    return _reduction_at(x, line, values, op)


def _bincount(x: Any, weights: Any = None, minlength: Any = 0) -> Symbol:
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
        return counts(places, size)
    zeros = places.graph.full(0.0, (size,), "float64")
    return ops.index_add(zeros, rest[0].cast("float64"), places)


# -- histograms


def _range(a: Symbol, limits: Any) -> tuple[Any, Any]:
    """Return the least and greatest edge: numbers, or symbols that depend on values."""
    if limits is None and a.size == 0:
        return 0.0, 1.0
    first, last = (ops.min(a), ops.max(a)) if limits is None else limits
    if not isinstance(first, Symbol) and not isinstance(last, Symbol):
        first, last = concrete(first), concrete(last)
        if not (np.isfinite(first) and np.isfinite(last) and first <= last):
            raise GraphError("a range is finite, its first edge first", got=f"({first}, {last})")
        return (first - 0.5, last + 0.5) if first == last else (first, last)
    _, first, last = as_symbols(a, first, last)
    valid = ops.is_finite(first.cast("float64")) & ops.is_finite(last.cast("float64"))
    first = demanded(first, valid & (first <= last))
    alike = first == last
    if first.dtype.is_integer:
        raise GraphError("the dtype of the edges depends on values", fix="pass range=, or floats")
    return ops.where(alike, first - 0.5, first), ops.where(alike, last + 0.5, last)


def _even_bins(a: Symbol, bins: int, limits: Any) -> tuple[Symbol, Symbol]:
    """Return the bin of each element, `bins` for elements out of range, and the edges."""
    if bins < 1:
        raise GraphError("bins must be positive", got=str(bins))
    first, last = _range(a, limits)
    types = [x.dtype.to_numpy() if isinstance(x, Symbol) else x for x in (first, last, a)]
    dtype: Any = np.result_type(*types)
    edge_type = DType.from_numpy(np.result_type(dtype, float) if dtype.kind in "iub" else dtype)
    if isinstance(first, Symbol):
        edges: Any = samples(first, last, bins + 1, dtype=edge_type)
        edges = demanded(edges, ops.all(edges[:-1] < edges[1:]))
        extent: Any = last - first
    else:
        edges = np.linspace(first, last, bins + 1, dtype=edge_type.to_numpy())
        if (edges[:-1] >= edges[1:]).any():
            raise GraphError(f"too many bins for the range: {bins}")
        edges = a.graph.constant(edges)
        extent = np.subtract(last, first)
    extent = as_symbols(a, extent)[1]
    in_range = (a >= first) & (a <= last)
    x = a.cast(edge_type)
    at = (x - first) / extent * as_symbols(a, np.asarray(bins))[1]
    places = ops.where(in_range, at, as_symbols(a, np.zeros((), at.dtype.to_numpy()))[1]).cast(
        "int64"
    )
    places = ops.where(places == bins, bins - 1, places)
    places = ops.where(x < ops.gather(edges, places, axis=0), places - 1, places)
    places = ops.maximum(places, 0)  # of elements out of range
    above = (x >= ops.gather(edges, places + 1, axis=0)) & (places != bins - 1)
    places = ops.where(above, places + 1, places)
    return ops.where(in_range, places, bins), edges


def _ends(a: Symbol, edges: Any) -> tuple[Symbol, Symbol]:
    """Return the counts between given edges, and the edges."""
    edges = as_symbols(a, edges)[1]
    if edges.rank != 1:
        raise ShapeError("bins are a number or a vector of edges", got=str(edges.type))
    edges = demanded(edges, ops.all(edges[:-1] <= edges[1:]))
    line = ops.sort(a)
    ends = ops.searchsorted(line, edges[:-1]), ops.searchsorted(line, edges[-1:], side="right")
    total = ops.concat(ends, axis=0)
    return total[1:] - total[:-1], edges


def _edges_of(bins: Any) -> bool:
    """Whether bins are edges rather than their number."""
    if isinstance(bins, str):
        raise GraphError("the number of bins depends on values", fix="pass bins=k, a number")
    if isinstance(bins, Symbol) and not bins.rank:
        raise GraphError("the size of the result depends on values", fix="pass a static bins=")
    return bool(bins.rank if isinstance(bins, Symbol) else np.ndim(bins))


def _histogram(
    a: Any,
    bins: Any = 10,
    range: Any = None,  # noqa: A002
    density: Any = None,
    weights: Any = None,
) -> tuple[Symbol, Symbol]:
    operands = [x for x in (a, bins, weights, *(range or ())) if isinstance(x, Symbol)]
    a, *_ = as_symbols(flat(a), *operands)
    if a.dtype is DType.bool or a.dtype.is_complex:
        raise GraphError(f"histograms of {a.dtype} have no op", fix="use .astype(...) first")
    if _edges_of(bins):
        if weights is not None:
            raise GraphError(
                "NumPy adds the weights of a bin in an order that depends on the values",
                fix="pass bins=k and range=(a, b)",
            )
        number, edges = _ends(a, bins)
    else:
        bins = operator.index(bins)
        places, edges = _even_bins(a, bins, range)
        number = _weighed(places, [] if weights is None else as_symbols(a, weights)[1:], bins)
    if density:
        widths = (edges[1:] - edges[:-1]).cast("float64")
        return number / widths / ops.sum(number), edges
    return number, edges


def _weighed(places: Symbol, weights: list[Any], bins: int) -> Symbol:
    """Return the counts of bins, or the sums of weights, added block by block as NumPy does."""
    if not weights:
        return counts(places, bins)
    weight = flat(weights[0])
    if weight.shape != places.shape or weight.dtype.is_complex or weight.dtype is DType.bool:
        raise GraphError("weights are as many real numbers as elements", got=str(weight.type))
    total = places.graph.full(0, (bins,), weight.dtype)
    for start in range(0, int(str(places.shape[0])), BLOCK):
        block = slice(start, start + BLOCK)
        zeros = places.graph.full(0.0, (bins + 1,), "float64")
        sums = ops.index_add(zeros, weight[block].cast("float64"), places[block])[:bins]
        total = total + sums.cast(weight.dtype)
    return total


def _histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:  # noqa: A002
    a = as_symbols(flat(a), *(x for x in (bins, weights) if isinstance(x, Symbol)))[0]
    if _edges_of(bins):
        edges = as_symbols(a, bins)[1]
        return demanded(edges, ops.all(edges[:-1] <= edges[1:]))
    return _even_bins(a, operator.index(bins), range)[1]


def _digitize(x: Any, bins: Any, right: bool = False) -> Symbol:
    side = "left" if right else "right"
    if not isinstance(bins, Symbol):
        edges = np.asarray(bins)
        if (np.diff(edges) >= 0).all():
            return ops.searchsorted(edges, x, side=side)
        return len(edges) - ops.searchsorted(edges[::-1], x, side=side)
    x, bins = as_symbols(x, bins)
    rises, falls = (ops.all(op(bins[1:], bins[:-1])) for op in (ops.greater_equal, ops.less_equal))
    up = ops.searchsorted(bins, x, side=side)
    down = bins.shape[0] - ops.searchsorted(ops.flip(bins, axis=0), x, side=side)
    return demanded(ops.where(rises, up, down), rises | falls)


COUNTING: dict[str, Function] = {
    "bincount": _bincount,
    "histogram": _histogram,
    "histogram_bin_edges": _histogram_bin_edges,
    "digitize": _digitize,
}
"""The implementations by the function's path in numpy."""
