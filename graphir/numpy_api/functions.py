"""NumPy's functions on symbols, other than ufuncs, each in terms of ops.

The functions take NumPy's arguments. Arguments without an op are absent here, and the caller
refuses them. Any argument may be an array or a number if at least one argument is a symbol.

In a trace, NumPy's own code runs for a function without an entry (arrays/function_calls.py). An
entry is for what users call on the symbols of a graph, and for what a trace computes better by ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from graphir import ops
from graphir.dtypes import DType, DTypeLike, numpy_code
from graphir.errors import GraphError, ShapeError
from graphir.hints import ArrayOrNumber, Int, Ints, Number, NumPyCode
from graphir.ir.operators.composition import clip
from graphir.ir.symbol import Symbol
from graphir.numpy_api import reductions
from graphir.numpy_api.interpolation import INTERPOLATION, interpolated
from graphir.numpy_api.movement import MOVEMENT, as_symbols, axes_of, flat
from graphir.numpy_api.pieces import PIECES, unstack
from graphir.numpy_api.products import PRODUCTS
from graphir.numpy_api.reductions import UNSET, ReductionArguments, reduced
from graphir.numpy_api.statistics import STATISTICS, quantiles, spread_dtype
from graphir.numpy_api.traced_numbers import TracedNumber
from graphir.numpy_api.ufuncs import DirectAdder
from graphir.ops.dims import ShapeLike, product
from graphir.ops.op import Op
from graphir.semantics.library_calls import Function

# -- reductions


def _reduced(
    op: Op,
    a: ArrayOrNumber,
    axis: Ints | None,
    keepdims: bool,
    dtype: DTypeLike | None,
    initial: ArrayOrNumber | None,
    where: ArrayOrNumber,
) -> Symbol:
    """Return a reduction that starts from a value, or leaves out elements."""
    a = _operand(a, initial, where)
    arguments = ReductionArguments(axis, keepdims, dtype, initial, where)
    return reduced(DirectAdder(a.graph), op, a, arguments)


def _operand(a: ArrayOrNumber, *others: Any) -> Symbol:
    """Return an operand as a symbol, of the graph of the others if it is an array."""
    return as_symbols(a, *[value for value in others if isinstance(value, Symbol)])[0]


def _adding(op: Op) -> Function:
    def reduce(
        a: Symbol,
        axis: Ints | None = None,
        dtype: DTypeLike | None = None,
        *,
        keepdims: bool = False,
        initial: ArrayOrNumber | None = UNSET,
        where: ArrayOrNumber = True,
    ) -> Symbol:
        if initial is UNSET and where is True and dtype is None:
            return op(a, axis=axis, keepdims=keepdims)
        return _reduced(op, a, axis, keepdims, dtype, initial, where)

    return reduce


def _choosing(op: Op) -> Function:
    def reduce(
        a: Symbol,
        axis: Ints | None = None,
        *,
        keepdims: bool = False,
        initial: ArrayOrNumber | None = UNSET,
        where: ArrayOrNumber = True,
    ) -> Symbol:
        if where is not True or (initial is not UNSET and initial is not None):
            return _reduced(op, a, axis, keepdims, None, initial, where)
        axes = axes_of(a, axis) if axis is not None else range(a.rank)
        others = [a.shape[i] for i in range(a.rank) if i not in axes]
        if 0 in [a.shape[i] for i in axes] and 0 not in others:
            raise ShapeError(f"{op.name} is undefined over an empty axis", got=str(a.type))
        return op(a, axis=axis, keepdims=keepdims)

    return reduce


def _locating(op: Op) -> Function:
    choose = _choosing(op)

    def locate(a: Symbol, axis: Int | None = None, *, keepdims: bool = False) -> Symbol:
        return choose(a, axis, keepdims=keepdims)

    return locate


def _testing(op: Op) -> Function:
    def reduce(
        a: Symbol, axis: Ints | None = None, *, keepdims: bool = False, where: ArrayOrNumber = True
    ) -> Symbol:
        if where is True:
            return op(a, axis=axis, keepdims=keepdims)
        return _reduced(op, a, axis, keepdims, None, UNSET, where)

    return reduce


def _mean(
    a: Symbol,
    axis: Ints | None = None,
    dtype: DTypeLike | NumPyCode | None = None,
    *,
    keepdims: bool = False,
    where: ArrayOrNumber = True,
) -> Symbol:
    to = None if dtype is None else DType(numpy_code(dtype))
    # NumPy leaves open to which integers NaN and floats beyond their range become.
    is_open = 0 in a.shape or a.dtype.is_inexact
    if to is not None and not to.is_inexact and (to.family == "bool" or is_open):
        raise GraphError(
            f"a mean of {a.type} computed in {to} has no op",
            fix="leave dtype out, and .astype(...) the mean",
        )
    a = _operand(a, where)
    arguments = ReductionArguments(axis, keepdims, to, where=where)
    return reductions.mean(DirectAdder(a.graph), a, arguments)


def _spread(op: Op) -> Function:
    def reduce(
        a: Symbol,
        axis: Ints | None = None,
        dtype: DTypeLike | None = None,
        *,
        ddof: int = 0,
        keepdims: bool = False,
        correction: int | None = None,
        where: ArrayOrNumber = True,
    ) -> Symbol:
        over = ddof if correction is None else correction
        a = _operand(a, where)
        to = spread_dtype(a, dtype)
        arguments = ReductionArguments(axis, keepdims, to, where=where)
        return reductions.spread(DirectAdder(a.graph), op, a, arguments, over)

    return reduce


def _cumulative(op: Op) -> Function:
    def accumulate(a: Symbol, axis: int | None = None, dtype: DTypeLike | None = None) -> Symbol:
        return op(flat(a), axis=0, dtype=dtype) if axis is None else op(a, axis=axis, dtype=dtype)

    return accumulate


def _count_nonzero(a: Symbol, axis: Ints | None = None, *, keepdims: bool = False) -> Symbol:
    there = a if a.dtype.family == "bool" else a != 0
    return ops.sum(there, axis=axis, keepdims=keepdims, dtype="int64")


def _ptp(a: Symbol, axis: Ints | None = None, *, keepdims: bool = False) -> Symbol:
    return a.max(axis, keepdims) - a.min(axis, keepdims)


# -- selection and sorting


def _where(condition: ArrayOrNumber, x: Any = UNSET, y: Any = UNSET) -> Symbol:
    if x is UNSET or y is UNSET:
        raise GraphError(
            "where of a condition alone has a shape that depends on values", fix="give x, y"
        )
    if not isinstance(condition, Symbol):
        condition = np.asarray(condition).astype(np.bool)
    x, y = [np.asarray(value) if type(value) in (list, tuple) else value for value in (x, y)]
    return ops.where(condition, x, y)


def _keeps_zeros(a: Symbol, low: Any, high: Any) -> bool:
    """Whether np.clip keeps zeros of the other sign than that of a bound, which is a number."""
    if a.graph.rules.name != "numpy" or not a.dtype.is_float:
        return False
    are_weak = all(type(bound) in (int, float, TracedNumber) for bound in (low, high))
    return are_weak and low <= 0 <= high and (low == 0 or high == 0)


def _clip(
    a: ArrayOrNumber,
    a_min: Any = None,
    a_max: Any = None,
    *,
    min: Any = None,  # noqa: A002
    max: Any = None,  # noqa: A002
) -> Symbol:
    low, high = a_min if min is None else min, a_max if max is None else max
    if isinstance(a, Symbol):
        if not _keeps_zeros(a, low, high):
            return clip(a, low, high)
        return ops.minimum(high, ops.maximum(low, a))  # of equal operands the second one
    if low is None:
        return ops.minimum(a, high)
    return ops.maximum(a, low) if high is None else ops.clip(a, low, high)


def _sorted(
    a: Symbol,
    axis: int | None = -1,
    kind: str | bytes | None = None,
    *,
    stable: bool | None = None,
    descending: bool | None = None,
) -> Symbol:
    """Return the elements in order; zeros of both signs in that of NumPy's kind of sort."""
    line, at = (flat(a), 0) if axis is None else (a, axis)
    if not descending:
        return ops.sort(line, axis=at, **(_stability(kind, stable) if a.dtype.is_inexact else {}))
    if a.dtype.is_inexact:  # NaN stays last
        return ops.negative(ops.sort(_negated(line), axis=at))
    return ops.sort(line, axis=at, descending=True)


def _argsorted(
    a: Symbol,
    axis: int | None = -1,
    kind: str | bytes | None = None,
    *,
    stable: bool | None = None,
    descending: bool | None = None,
) -> Symbol:
    line, at = (flat(a), 0) if axis is None else (a, axis)
    stability = _stability(kind, stable)
    if not descending:
        return ops.argsort(line, axis=at, **stability)
    if stability:
        raise GraphError(
            "descending=True has an order of equal values of its own", fix="pass stable=True"
        )
    if a.dtype.is_inexact:
        return ops.argsort(_negated(line), axis=at)
    return ops.argsort(line, axis=at, descending=True)


def _lexsort(keys: Symbol | Sequence[ArrayOrNumber], axis: int = -1) -> Symbol:
    """Return the order by the last key, then by the key before it: stable sorts in turn."""
    first, *others = as_symbols(*(unstack(keys) if isinstance(keys, Symbol) else keys))
    order = ops.argsort(first, axis=axis)
    for key in others:
        by = ops.argsort(ops.take_along(key, order, axis=axis), axis=axis)
        order = ops.take_along(order, by, axis=axis)
    return order


def _negated(a: Symbol) -> Symbol:
    if a.dtype.is_complex:
        raise GraphError("descending=True of complex numbers has no op", fix="leave it out")
    return ops.negative(a)


def _stability(kind: str | bytes | None, stable: bool | None) -> dict[str, Any]:
    """Return the attributes of a sort that say whether equal values keep their order."""
    name = (kind.decode() if isinstance(kind, bytes) else str(kind)).lower()
    if name.startswith("h"):
        raise GraphError("heapsort has an order of equal values of its own", fix="leave it out")
    return {} if stable or name[:1] in "sm" else {"stable": False}


def _searchsorted(
    a: ArrayOrNumber, v: ArrayOrNumber, side: str = "left", sorter: ArrayOrNumber | None = None
) -> Symbol:
    a = a if sorter is None else ops.gather(a, sorter, axis=0)
    return ops.searchsorted(a, v, side="right" if side[:1] in "rR" else "left")


def _angle(z: Symbol) -> Symbol:
    return ops.atan2(ops.imag(z), ops.real(z)) if z.dtype.is_complex else ops.atan2(0, z)


# -- arrays and facts with a symbol's shape or dtype


def _filled(value: Number) -> Function:
    def like(
        a: Symbol, dtype: DTypeLike | None = None, *, shape: ShapeLike | None = None
    ) -> Symbol:
        return _full_like(a, value, dtype, shape=shape)

    return like


def _full_like(
    a: Symbol,
    fill_value: Symbol | Number,
    dtype: DTypeLike | None = None,
    *,
    shape: ShapeLike | None = None,
) -> Symbol:
    shape = a.shape if shape is None else shape
    if isinstance(fill_value, Symbol):
        return ops.broadcast_to(fill_value.cast(dtype or a.dtype), shape)
    return a.graph.full(fill_value, shape, dtype or a.dtype)


def _shape(a: Symbol) -> Any:
    return a.shape


def _rank(a: Symbol) -> int:
    return a.rank


def _iscomplexobj(x: Symbol) -> bool:
    return x.dtype.is_complex


def _isrealobj(x: Symbol) -> bool:
    return not x.dtype.is_complex


def _size(a: Symbol, axis: Ints | None = None) -> Any:
    return a.size if axis is None else product(a.shape[i] for i in axes_of(a, axis))


_FUNCTIONS_BY_PATH: dict[str, Function] = {
    "sum": _adding(ops.sum),
    "prod": _adding(ops.prod),
    **dict.fromkeys(("max", "amax"), _choosing(ops.max)),
    **dict.fromkeys(("min", "amin"), _choosing(ops.min)),
    "any": _testing(ops.any),
    "all": _testing(ops.all),
    "argmax": _locating(ops.argmax),
    "argmin": _locating(ops.argmin),
    "mean": _mean,
    "var": _spread(ops.var),
    "std": _spread(ops.std),
    "cumsum": _cumulative(ops.cumulative_sum),
    "cumprod": _cumulative(ops.cumulative_prod),
    "cumulative_sum": _cumulative(ops.cumulative_sum),
    "cumulative_prod": _cumulative(ops.cumulative_prod),
    "count_nonzero": _count_nonzero,
    "ptp": _ptp,
    "where": _where,
    "clip": _clip,
    "sort": _sorted,
    "argsort": _argsorted,
    "lexsort": _lexsort,
    "searchsorted": _searchsorted,
    "real": ops.real,
    "imag": ops.imag,
    "angle": _angle,
    "zeros_like": _filled(0),
    "empty_like": _filled(0),
    "ones_like": _filled(1),
    "full_like": _full_like,
    "astype": Symbol.astype,
    "shape": _shape,
    "ndim": _rank,
    "size": _size,
    "iscomplexobj": _iscomplexobj,
    "isrealobj": _isrealobj,
    **MOVEMENT,
    **INTERPOLATION,
    **PIECES,
    **PRODUCTS,
    **STATISTICS,
}


def _resolve() -> dict[Any, Function]:
    """Return the implementations by NumPy's function; an older NumPy lacks some functions."""
    functions: dict[Any, Function] = {}
    for path, function in _FUNCTIONS_BY_PATH.items():
        try:
            functions[attrgetter(path)(np)] = function
        except AttributeError:
            continue
    return functions


FUNCTIONS = _resolve()
"""The implementation on symbols of each NumPy function."""

BODY_FUNCTIONS: dict[str, Function] = {
    "_quantile": quantiles,
    "compiled_interp": interpolated,
    "compiled_interp_complex": interpolated,
}
"""The implementation of NumPy's private functions that its own Python bodies call, by name."""
