"""NumPy's functions that split, join, shift or compare arrays, on symbols."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from graphir import ops
from graphir.errors import GraphError, ShapeError
from graphir.hints import ArrayOrNumber, Ints
from graphir.ir.symbol import Symbol
from graphir.numpy_api.movement import as_symbols, axes_of, flat, of_rank, squeeze, take
from graphir.ops.attributes import axis as axis_of
from graphir.ops.attributes import natural
from graphir.ops.shape_rules import broadcast_shapes
from graphir.semantics.library_calls import Function

# -- splitting

_PLACES = (Sequence, np.ndarray)
"""The types of split positions, which are slice bounds: negative and oversized ones are allowed."""


def _split(ary: Symbol, indices_or_sections: Any, axis: int = 0) -> list[Symbol]:
    axis = axis_of(axis, (ary.type,))
    size: Any = ary.shape[axis]
    if isinstance(indices_or_sections, _PLACES):
        ends: list[Any] = [0, *indices_or_sections, size]
        if not isinstance(size, int):
            return list(ary.split([b - a for a, b in pairwise(ends)], axis))
        return [ary[(*(slice(None),) * axis, slice(*each))] for each in pairwise(ends)]
    if indices_or_sections < 1 or size % indices_or_sections:
        raise ShapeError(
            f"an axis of {size} does not split into {indices_or_sections} equal pieces",
            fix="pass the indices of the cuts",
        )
    return list(ary.split(size // indices_or_sections, axis))


def unstack(x: Symbol, /, *, axis: int = 0) -> tuple[Symbol, ...]:
    """Return the slices along an axis of known size, each without that axis."""
    size = x.shape[axis_of(axis, (x.type,))]
    if not isinstance(size, int):
        raise ShapeError("unstack needs an axis of known size", got=str(size))
    return tuple(squeeze(part, axis) for part in x.split(1, axis))


def _compress(condition: Any, a: Symbol, axis: int | None = None) -> Symbol:
    if isinstance(condition, Symbol):
        raise GraphError(
            "the number of true elements depends on values",
            fix="choose with np.where(condition, x, 0)",
        )
    return take(a, np.flatnonzero(condition), axis)


# -- differences


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Symbol:
    """Return the differences of neighbouring elements, n times.

    For bools, the difference is whether the neighbours differ.
    """
    parts = as_symbols(*(part for part in (prepend, a, append) if part is not None))
    axis = axis_of(axis, (parts[prepend is not None].type,))
    a = parts[0] if len(parts) == 1 else _beside(parts, parts[prepend is not None], axis)
    for _ in range(natural(n)):
        before = (slice(None),) * axis
        left, right = a[(*before, slice(1, None))], a[(*before, slice(None, -1))]
        a = left != right if a.dtype.family == "bool" else left - right
    return a


def _beside(parts: list[Symbol], a: Symbol, axis: int) -> Symbol:
    """Return the parts joined along an axis; a number becomes one slice."""
    shape = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
    return ops.concat([x if x.rank else ops.broadcast_to(x, shape) for x in parts], axis=axis)


# -- joining


def _append(arr: ArrayOrNumber, values: ArrayOrNumber, axis: int | None = None) -> Symbol:
    x, y = as_symbols(arr, values)
    return ops.concat([flat(x), flat(y)] if axis is None else [x, y], axis=axis or 0)


def _broadcast_arrays(*args: ArrayOrNumber) -> tuple[Symbol, ...]:
    symbols = as_symbols(*args)
    shape = broadcast_shapes([symbol.shape for symbol in symbols])
    return tuple(ops.broadcast_to(symbol, shape) for symbol in symbols)


def _at_least(rank: int) -> Function:
    """Return the function that adds axes up to `rank`: in front, but a third axis at the end."""

    def widen(*arys: ArrayOrNumber) -> Any:
        results = tuple(of_rank(array, rank, rank == 3) for array in as_symbols(*arys))
        return results[0] if len(results) == 1 else results

    return widen


def _meshgrid(*xi: Any, sparse: bool = False, indexing: str = "xy", copy: bool = True) -> Any:
    symbols = [flat(vector) for vector in as_symbols(*xi)]
    places = list(range(len(symbols)))
    if indexing == "xy" and len(symbols) > 1:
        places[:2] = 1, 0
    lines = [
        ops.reshape(x, tuple(x.size if i == at else 1 for i in range(len(symbols))))
        for x, at in zip(symbols, places, strict=True)
    ]
    if sparse:
        return tuple(lines)
    shape = tuple(symbols[places.index(i)].size for i in range(len(symbols)))
    return tuple(ops.broadcast_to(vector, shape) for vector in lines)


# -- shifts


def _fft_shift(sign: int) -> Function:
    """Return the function that rolls by half of each axis, rounded down.

    `sign` is the direction.
    """

    def shift(x: Symbol, axes: Ints | None = None) -> Symbol:
        over = list(range(x.rank)) if axes is None else axes_of(x, axes)
        for each in over:
            size = x.shape[each]
            if not isinstance(size, int):
                raise ShapeError("fftshift needs an axis of known size", got=str(size))
            x = ops.roll(x, shift=sign * (size // 2), axis=each)
        return x

    return shift


# -- comparison, NaN and infinities


def _isclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Symbol:
    a, b = as_symbols(a, b)
    if not b.dtype.is_inexact:
        b = b.cast("float64")
    near = (ops.abs(a - b) <= ops.abs(b) * rtol + atol) & ops.is_finite(b)
    close = near | (a == b)
    return close | (ops.is_nan(a) & ops.is_nan(b)) if equal_nan else close


def _allclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Symbol:
    return ops.all(_isclose(a, b, rtol, atol, equal_nan))


def _array_equal(a1: ArrayOrNumber, a2: ArrayOrNumber, equal_nan: bool = False) -> Any:
    x, y = as_symbols(a1, a2)
    if x.shape != y.shape:
        return x.graph.scalar(False, "bool")
    same = x == y
    return ops.all(same | (ops.is_nan(x) & ops.is_nan(y)) if equal_nan else same)


def _nan_to_num(x: Symbol, *, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Symbol:
    if x.dtype.is_complex:
        settings = {"nan": nan, "posinf": posinf, "neginf": neginf}
        return ops.as_complex(
            *[_nan_to_num(part, **settings) for part in (ops.real(x), ops.imag(x))]
        )
    if not x.dtype.is_float:
        return x
    most = float(x.dtype.max)
    for there, value in (
        (ops.is_nan(x), nan),
        (ops.is_inf(x) & (x > 0), most if posinf is None else posinf),
        (ops.is_inf(x) & (x < 0), -most if neginf is None else neginf),
    ):
        x = ops.where(there, x.graph.full(value, (), x.dtype), x)
    return x


PIECES: dict[str, Function] = {
    "unstack": unstack,
    "split": _split,
    "diff": diff,
    "compress": _compress,
    "append": _append,
    "broadcast_arrays": _broadcast_arrays,
    "atleast_1d": _at_least(1),
    "atleast_2d": _at_least(2),
    "atleast_3d": _at_least(3),
    "meshgrid": _meshgrid,
    "fft.fftshift": _fft_shift(1),
    "fft.ifftshift": _fft_shift(-1),
    "isclose": _isclose,
    "allclose": _allclose,
    "array_equal": _array_equal,
    "nan_to_num": _nan_to_num,
    "fix": ops.trunc,
}
"""The implementations by the function's path in numpy."""
