"""NumPy's rounding, samples and convolutions on symbols, in NumPy's order of operations.

Sources: numpy/_core/function_base.py (linspace), numpy/_core/src/multiarray/compiled_base.c
(arr_interp), calculation.c (PyArray_Round) and multiarraymodule.c (_pyarray_correlate).
"""

from __future__ import annotations

import operator
from typing import Any, SupportsIndex

import numpy as np

from graphir import ops
from graphir.dtypes import DType, DTypeLike, numpy_code
from graphir.errors import GraphError, ShapeError
from graphir.hints import ArrayOrNumber, NumPyCode
from graphir.ir.symbol import Symbol
from graphir.numpy_api.movement import as_symbols, moveaxis
from graphir.numpy_api.traced_numbers import concrete
from graphir.semantics.library_calls import Function

SMALL_KERNEL = 11
"""The longest kernel that NumPy's small_correlate adds term by term; longer ones go through dot."""
LONGEST_KERNEL = 500
"""The longest kernel to follow: each output at the edges is a dot product of its own length."""
_MOST_PRODUCTS = 2**24
"""The most products to hold at once in a convolution."""


# -- rounding


def round_decimals(a: Symbol, decimals: SupportsIndex = 0) -> Symbol:
    """Round to decimals: scale by a power of ten, round to even, scale back."""
    decimals = operator.index(decimals)
    if a.dtype.is_complex:
        return ops.as_complex(
            round_decimals(ops.real(a), decimals), round_decimals(ops.imag(a), decimals)
        )
    if not decimals:
        return round(a)
    if a.dtype is DType.bool:
        raise GraphError("bools have no decimals", fix="leave decimals out")
    if not a.dtype.is_float:
        return a if decimals >= 0 else _rounded_float(a.cast("float64"), decimals).cast(a.dtype)
    return _rounded_float(a, decimals)


def _rounded_float(a: Symbol, decimals: int) -> Symbol:
    power = a.graph.full(float(10 ** abs(decimals)), (), a.dtype)
    return ops.round(a * power) / power if decimals > 0 else ops.round(a / power) * power


# -- samples


def samples(
    start: ArrayOrNumber,
    stop: ArrayOrNumber,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | NumPyCode | None = None,
    axis: int = 0,
) -> Any:
    """Return evenly spaced samples between two numbers or arrays, along a new axis."""
    wide = _inexact(start, stop)
    num = operator.index(num)
    div = num - 1 if endpoint else num
    start, stop = (x.cast(wide) for x in as_symbols(start, stop))
    delta = stop - start
    y = ops.reshape(start.graph.range(num, dtype=wide), (num, *(1,) * delta.rank))
    if div > 0:
        count = start.graph.full(div, (), wide)
        step = delta / count
        steps_vanish = ops.any(step == 0)  # of denormal numbers: divide first
        y = ops.where(steps_vanish, y / count * delta, y * step)
    else:
        step = ops.where(delta == delta, start.graph.full(np.nan, (), wide), delta)
        y = y * delta
    y = y + start
    if endpoint and num > 1:
        last = ops.broadcast_to(stop, (1, *y.shape[1:]))
        y = ops.concat([y[:-1], last], axis=0)
    y = moveaxis(y, 0, axis)
    if dtype is not None:
        to = DType(numpy_code(dtype))
        y = (ops.floor(y) if to.is_integer else y).cast(to)
    return (y, step) if retstep else y


def _inexact(*values: ArrayOrNumber) -> DType:
    """Return the common dtype of arrays and weak Python numbers, float64 for integers."""
    operands = [x.dtype.to_numpy() if isinstance(x, Symbol) else concrete(x) for x in values]
    common = np.result_type(*operands)
    return DType.from_numpy(common if common.kind in "fc" else np.dtype(np.float64))


# -- interpolation


def interpolated(
    x: Any, xp: Any, fp: Any, left: ArrayOrNumber | None = None, right: ArrayOrNumber | None = None
) -> Symbol:
    """Return the piecewise linear interpolant of fp over ascending xp, at x."""
    x, xp, fp = as_symbols(x, xp, fp)
    if xp.rank != 1 or fp.rank != 1 or xp.shape != fp.shape or xp.shape[0] == 0:
        raise ShapeError(
            "interp takes data points in two vectors of one size", got=f"{xp.type} and {fp.type}"
        )
    value = DType.complex128 if fp.dtype.is_complex else DType.float64
    x, xp, fp = x.cast(DType.float64), xp.cast(DType.float64), fp.cast(value)
    count = xp.shape[0]
    below = fp[0] if left is None else as_symbols(x, left)[1].cast(value)
    above = fp[-1] if right is None else as_symbols(x, right)[1].cast(value)
    at = ops.searchsorted(xp, x, side="right") - 1
    inside = fp[-1]
    if count != 1:
        low = ops.minimum(ops.maximum(at, 0), count - 2)
        inside = ops.where(at >= count - 1, fp[-1], _on_segment(x, xp, fp, low))
    result = ops.where(x < xp[0], below, ops.where(x > xp[-1], above, inside))
    return ops.where(ops.is_nan(x), x.cast(value), result)


def _on_segment(x: Symbol, xp: Symbol, fp: Symbol, low: Symbol, part: bool = False) -> Symbol:
    """Return the values on segments; the slope of a complex part is a product, as in NumPy."""
    if fp.dtype.is_complex:
        parts = [_on_segment(x, xp, part, low, True) for part in (ops.real(fp), ops.imag(fp))]
        return ops.where(_at(xp, low) == x, _at(fp, low), ops.as_complex(*parts))
    x0, x1, y0, y1 = _at(xp, low), _at(xp, low + 1), _at(fp, low), _at(fp, low + 1)
    slope = (y1 - y0) * (1.0 / (x1 - x0)) if part else (y1 - y0) / (x1 - x0)
    value = slope * (x - x0) + y0
    value = ops.where(ops.is_nan(value), slope * (x - x1) + y1, value)
    value = ops.where(ops.is_nan(value) & (y0 == y1), y0, value)
    return ops.where(x0 == x, y0, value)


def _at(x: Symbol, places: Symbol) -> Symbol:
    return ops.gather(x, places, axis=0)


# -- convolution


def _convolve(a: ArrayOrNumber, v: ArrayOrNumber, mode: str = "full") -> Symbol:
    a, v = (ops.reshape(x, (1,)) if not x.rank else x for x in as_symbols(a, v))
    if _length(v) > _length(a):
        a, v = v, a
    return _slid(a, ops.flip(v, axis=0), mode)


def _correlate(a: ArrayOrNumber, v: ArrayOrNumber, mode: str = "valid") -> Symbol:
    a, v = (ops.reshape(x, (1,)) if not x.rank else x for x in as_symbols(a, v))
    v = ops.conj(v) if v.dtype.is_complex else v
    if _length(a) < _length(v):
        return ops.flip(_slid(v, a, mode), axis=0)
    return _slid(a, v, mode)


def _length(x: Symbol) -> int:
    if x.rank != 1 or not isinstance(x.shape[0], int) or not x.shape[0]:
        raise ShapeError("it takes two vectors of known sizes above 0", got=str(x.type))
    return x.shape[0]


def _slid(x: Symbol, kernel: Symbol, mode: str) -> Symbol:
    """Return the products of a kernel with the windows of a vector that is as long or longer.

    Windows that reach over an edge are dot products of their own lengths.
    """
    size, width = _length(x), _length(kernel)
    dtype = x.graph.rules.promote(x.type, kernel.type)
    x, kernel = x.cast(dtype), kernel.cast(dtype)
    before, after = _edges(width, mode)
    if width > LONGEST_KERNEL or (width > SMALL_KERNEL and size * width > _MOST_PRODUCTS):
        raise GraphError(
            f"a kernel of {width} elements over {size} would be unrolled",
            fix="multiply in the frequency domain outside of the traced function",
        )
    parts = [_dot(x[:n], kernel[width - n :]) for n in range(width - before, width)]
    middle = _windows(x, kernel, size - width + 1, width)
    ends = [_dot(x[size - n :], kernel[:n]) for n in range(width - 1, width - 1 - after, -1)]
    return ops.concat([*parts, middle, *ends], axis=0)


def _edges(width: int, mode: str | int) -> tuple[int, int]:
    """Return the number of outputs before and after those of whole windows."""
    modes = {"v": (0, 0), "s": (width // 2, width - width // 2 - 1), "f": (width - 1, width - 1)}
    key = "vsf"[mode] if mode in (0, 1, 2) else str(mode)[:1].lower()
    if key not in modes:
        raise GraphError("mode is 'full', 'same' or 'valid'", got=repr(mode))
    return modes[key]


def _dot(x: Symbol, y: Symbol) -> Symbol:
    if x.dtype is DType.bool:
        return ops.any(x & y, axis=0, keepdims=True)
    return ops.unsqueeze(ops.matmul(x, y), 0)


def _windows(x: Symbol, kernel: Symbol, count: int, width: int) -> Symbol:
    if width <= SMALL_KERNEL and not x.dtype.is_complex and x.dtype is not DType.bool:
        total = x[:count] * kernel[0]
        for i in range(1, width):
            total = total + x[i : i + count] * kernel[i]
        return total + 0.0 if x.dtype.is_float else total  # NumPy adds to 0.0, so never has -0.0
    graph = x.graph
    places = ops.unsqueeze(graph.range(count, dtype="int64"), 1) + graph.range(width, dtype="int64")
    lines = ops.reshape(ops.gather(x, places, axis=0), (count, 1, width))
    column = ops.reshape(kernel, (width, 1))
    if x.dtype is DType.bool:
        return ops.any(ops.reshape(lines, (count, width)) & kernel, axis=1)
    return ops.reshape(ops.matmul(lines, column), (count,))


INTERPOLATION: dict[str, Function] = {
    **dict.fromkeys(("round", "around"), round_decimals),
    "linspace": samples,
    "interp": interpolated,
    "convolve": _convolve,
    "correlate": _correlate,
}
"""The implementations by the function's path in numpy."""
