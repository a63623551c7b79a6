"""What each op computes, on NumPy arrays: KERNELS, a function for each op of the catalogue.

A kernel is called `kernel(*arrays, **attributes)`. The arrays are C-contiguous and of the dtypes
that the op's signature names, all computed in by NumPy itself: bool, integers of 8 to 64 bits,
float32, float64, complex64, complex128. Movement ops, which only move values, take arrays of any
storage dtype. Attributes have their normal form, symbolic dims being ints by now; `dtype` is given
to creation ops alone; the `value` of `full` and `pad` is a 0-d array of the result's dtype.

A result is a new array, 0-d too, of the operands' dtype where nothing else is said (predicates and
comparisons: bool; positions: int64). Movement and constants may give a view, perhaps read-only.

Nothing is ever promoted: ufuncs run with casting="no" and the rest checks (TypeError: a cast is
missing before the kernel). Integers wrap; ExecutionError is for values that an op has no result
for. Floating point errors are the caller's to silence, with one np.errstate(all="ignore").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import index
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir import functions
from graphir.conversions import convert
from graphir.dtypes import DType
from graphir.errors import ExecutionError

Array: TypeAlias = NDArray[Any]
Kernel: TypeAlias = Callable[..., Array]


def _call(function: np.ufunc, *arrays: Array) -> Array:
    return np.asarray(function(*arrays, casting="no"))


def ufunc(function: np.ufunc) -> Kernel:
    """The kernel that is a ufunc, without its conversions."""
    return partial(_call, function)


def _call_whole(function: np.ufunc, *arrays: Array) -> Array:
    # np.power takes a short cut with other results where an operand has stride 0, as broadcast
    # ones and 0-d ones do: x ** 2 is then x * x.
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    whole = (np.array(np.broadcast_to(array, shape or 1), order="C") for array in arrays)
    return _call(function, *whole).reshape(shape)


def whole(function: np.ufunc) -> Kernel:
    """The kernel that is a ufunc whose results depend on strides: operands are broadcast first."""
    return partial(_call_whole, function)


def _alike(name: str, *arrays: Array) -> None:
    """The casting="no" of what is not a ufunc."""
    if any(array.dtype != arrays[0].dtype for array in arrays):
        given = ", ".join(str(array.dtype) for array in arrays)
        raise TypeError(f"{name} of {given}: a cast to one dtype is missing")


# -- elementwise


def _pow(x: Array, y: Array) -> Array:
    if x.size and y.size and y.dtype.kind == "i" and (least := y.min()) < 0:
        raise ExecutionError(
            f"pow: {x.dtype} ** {least} is a fraction, which no integer is; cast to a float "
            "first, for example .cast(DType.float64)"
        )
    return _call_whole(np.power, x, y)


def _relu(x: Array) -> Array:
    return _call(np.maximum, x, x.dtype.type(0))


def _rounded(function: np.ufunc, x: Array) -> Array:
    return x.copy() if x.dtype.kind in "biu" else _call(function, x)


def _rsqrt(x: Array) -> Array:
    return _call(np.reciprocal, _call(np.sqrt, x))


def _signbit(x: Array) -> Array:
    return _call(np.signbit, x) if x.dtype.kind == "f" else _call(np.less, x, x.dtype.type(0))


def _where(condition: Array, x: Array, y: Array) -> Array:
    _alike("where", x, y)
    return np.where(condition, x, y)


def _clip(x: Array, low: Array, high: Array) -> Array:
    return _call(np.minimum, _call(np.maximum, x, low), high)


def _copy(x: Array) -> Array:
    return x.copy()


def _real(x: Array) -> Array:
    return x.real.copy()


def _imag(x: Array) -> Array:
    return x.imag.copy()


def _conj(x: Array) -> Array:
    return _call(np.conjugate, x) if x.dtype.kind == "c" else x.copy()


def _as_complex(x: Array, y: Array) -> Array:
    _alike("as_complex", x, y)
    dtype = np.complex64 if x.dtype == np.float32 else np.complex128
    result = np.empty(np.broadcast_shapes(x.shape, y.shape), dtype)
    result.real, result.imag = x, y
    return result


# -- reductions and rows


def _reduce(function: np.ufunc, x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    return np.asarray(function.reduce(x, axis=axis, dtype=x.dtype, keepdims=keepdims))


def _accumulate(function: np.ufunc, x: Array, axis: int) -> Array:
    return function.accumulate(x, axis=axis, dtype=x.dtype)


def _extreme(
    name: str, function: np.ufunc, x: Array, axis: tuple[int, ...], keepdims: bool
) -> Array:
    _not_empty(name, x, axis)
    return _reduce(function, x, axis, keepdims)


def _locate(
    name: str, function: Callable[..., Any], x: Array, axis: int | None, keepdims: bool
) -> Array:
    _not_empty(name, x, tuple(range(x.ndim)) if axis is None else (axis,))
    return np.asarray(function(x, axis=axis, keepdims=keepdims), dtype=np.int64)


def _not_empty(name: str, x: Array, axes: tuple[int, ...]) -> None:
    empty = [axis for axis in axes if not x.shape[axis]]
    if empty:
        raise ExecutionError(
            f"{name} over axis {empty[0]} of shape {list(x.shape)}, which has no elements and so "
            f"no {name[-3:]}imum"
        )


def _sort(x: Array, axis: int, descending: bool) -> Array:
    """Sorted, NaN last; descending is that backwards, so NaN first."""
    # A sort that is not stable would give 0.0 and -0.0 in an order of its own.
    ordered = np.sort(x, axis=axis, kind="stable" if x.dtype.kind == "f" else None)
    return np.flip(ordered, axis).copy() if descending else ordered


def _argsort(x: Array, axis: int, descending: bool) -> Array:
    """The order that sorts, equal values in theirs; descending puts NaN first."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable").astype(np.int64, copy=False)
    backwards = _argsort(np.flip(x, axis), axis, False)
    return x.shape[axis] - 1 - np.flip(backwards, axis)


def _searchsorted(x: Array, values: Array, side: Any) -> Array:
    _alike("searchsorted", x, values)
    return np.asarray(np.searchsorted(x, values, side=side), dtype=np.int64)


def _layer_norm(x: Array, scale: Array, shift: Array, epsilon: float) -> Array:
    return functions.layer_norm(x, scale, shift, epsilon)


# -- contractions


def _tensordot(
    x: Array, y: Array, axes: tuple[tuple[int, ...], tuple[int, ...]]
) -> Array:
    left, right = axes
    rows = tuple(i for i in range(x.ndim) if i not in left)
    columns = tuple(i for i in range(y.ndim) if i not in right)
    shape = tuple(x.shape[i] for i in rows) + tuple(y.shape[i] for i in columns)
    product = _call(np.matmul, _matrix(x, rows, left), _matrix(y, right, columns))
    return product.reshape(shape)


def _matrix(x: Array, rows: tuple[int, ...], columns: tuple[int, ...]) -> Array:
    sizes = [math.prod(x.shape[i] for i in axes) for axes in (rows, columns)]
    return np.ascontiguousarray(x.transpose(rows + columns)).reshape(sizes)


def _outer(x: Array, y: Array) -> Array:
    return _call(np.multiply, x[:, None], y)


# -- movement


def _reshape(x: Array, shape: tuple[int, ...]) -> Array:
    return x.reshape(shape)


def _broadcast_to(x: Array, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(x, shape)


def _rebind(x: Array, shape: tuple[int, ...]) -> Array:
    if x.shape != shape:
        raise ExecutionError(
            f"rebind: the array has shape {list(x.shape)}, not {list(shape)} as was asserted"
        )
    return x


def _transpose(x: Array, axis1: int, axis2: int) -> Array:
    return np.swapaxes(x, axis1, axis2)


def _permute(x: Array, dims: tuple[int, ...]) -> Array:
    return x.transpose(dims)


def _squeeze(x: Array, axis: int) -> Array:
    return np.squeeze(x, axis)


def _unsqueeze(x: Array, axis: int) -> Array:
    return np.expand_dims(x, axis)


def _slice(
    x: Array, start: tuple[int, ...], stop: tuple[int, ...], step: tuple[int, ...]
) -> Array:
    for axis, (low, high, size) in enumerate(zip(start, stop, x.shape, strict=True)):
        if not low <= high <= size:
            raise ExecutionError(
                f"slice: {low}:{high} is no part of axis {axis}, whose size is {size}"
            )
    return x[(*map(slice, start, stop, step), ...)]


def _flip(x: Array, axis: tuple[int, ...]) -> Array:
    return np.flip(x, axis)


def _roll(x: Array, shift: int, axis: int) -> Array:
    return np.roll(x, shift % (x.shape[axis] or 1), axis)


def _pad(x: Array, padding: tuple[tuple[int, int], ...], value: Array) -> Array:
    _alike("pad", x, value)
    sizes = zip(padding, x.shape, strict=True)
    result = np.full([before + n + after for (before, after), n in sizes], value, x.dtype)
    inner = (slice(before, before + n) for (before, _), n in zip(padding, x.shape, strict=True))
    result[tuple(inner)] = x
    return result


def _tile(x: Array, repeats: tuple[int, ...]) -> Array:
    return np.tile(x, repeats)


def _repeat(x: Array, repeats: int, axis: int) -> Array:
    return np.repeat(x, repeats, axis)


def _concat(*arrays: Array, axis: int) -> Array:
    return np.concatenate(arrays, axis, dtype=arrays[0].dtype, casting="no")


def _stack(*arrays: Array, axis: int) -> Array:
    return np.stack(arrays, axis, dtype=arrays[0].dtype, casting="no")


def _gather(x: Array, indices: Array, axis: int) -> Array:
    return np.asarray(x.take(_places("gather", indices, x, axis), axis))


def _take_along(x: Array, indices: Array, axis: int) -> Array:
    return np.take_along_axis(x, _places("take_along", indices, x, axis), axis)


def _scatter(x: Array, updates: Array, indices: Array, axis: int) -> Array:
    _alike("scatter", x, updates)
    result = x.copy()
    np.put_along_axis(result, _places("scatter", indices, x, axis), updates, axis)
    return result


def _places(name: str, indices: Array, x: Array, axis: int) -> NDArray[np.intp]:
    """Indices of any integer dtype as NumPy wants them; negative ones count from the end."""
    # The small integers of ml_dtypes have no minimum and maximum of their own.
    wide = indices if indices.dtype == np.uint64 else indices.astype(np.int64)
    size = x.shape[axis]
    if wide.size:
        low, high = int(wide.min()), int(wide.max())
        if low < -size or high >= size:
            raise ExecutionError(
                f"{name}: index {high if high >= size else low} is out of range for axis {axis}, "
                f"whose size is {size}"
            )
    return wide.astype(np.intp, copy=False)


def _shape_of(x: Array) -> Array:
    return np.array(x.shape, dtype=np.int64)


# -- creation


def _constant(dtype: DType, value: Array) -> Array:
    return value


def _full(dtype: DType, value: Array, shape: tuple[int, ...]) -> Array:
    return np.full(shape, value, value.dtype)


def _eye(dtype: DType, rows: int, columns: int, offset: int) -> Array:
    diagonal = max(-rows, min(offset, columns))
    return convert(np.eye(rows, columns, diagonal, dtype=np.bool), DType.bool, dtype)


def _range(dtype: DType, start: Any, step: Any, size: int) -> Array:
    """start + i * step: exact for integers, else in float64 or complex128 and then rounded."""
    try:
        if dtype.is_complex:
            return _complex_range(dtype, complex(start), complex(step), size)
        if dtype.is_float:
            return convert(_line(float(start), float(step), size), DType.float64, dtype)
        return _integer_range(dtype, index(start), index(step), size)
    except (TypeError, OverflowError):
        raise ExecutionError(
            f"range: {start!r} and {step!r} are not both values of {dtype}; give it a dtype that "
            "has them"
        ) from None


def _line(start: float, step: float, size: int) -> Array:
    return start + np.arange(size, dtype=np.float64) * step


def _complex_range(dtype: DType, start: complex, step: complex, size: int) -> Array:
    result = np.empty(size, np.complex128)
    result.real = _line(start.real, step.real, size)
    result.imag = _line(start.imag, step.imag, size)
    return convert(result, DType.complex128, dtype)


def _integer_range(dtype: DType, start: int, step: int, size: int) -> Array:
    for value in (start, start + step * (size - 1)) if size else ():
        if not dtype.min <= value <= dtype.max:
            raise ExecutionError(f"range: {value} does not fit {dtype}; give it a wider dtype")
    # Both ends fit, so what is in between does: modulo 2**64 it comes out exact.
    values = np.arange(size, dtype=np.uint64) * np.uint64(step % 2**64)
    values += np.uint64(start % 2**64)
    if dtype.kind == "int":
        return convert(values.view(np.int64), DType.int64, dtype)
    return convert(values, DType.uint64, dtype)


KERNELS: dict[str, Kernel] = {
    # -- arithmetic
    "add": ufunc(np.add),
    "subtract": ufunc(np.subtract),
    "multiply": ufunc(np.multiply),
    "divide": ufunc(np.divide),
    "floor_divide": ufunc(np.floor_divide),
    "remainder": ufunc(np.remainder),
    "pow": _pow,
    "maximum": ufunc(np.maximum),
    "minimum": ufunc(np.minimum),
    "negative": ufunc(np.negative),
    "positive": _copy,
    "abs": ufunc(np.absolute),
    "sign": ufunc(np.sign),
    "square": ufunc(np.square),
    "reciprocal": ufunc(np.reciprocal),
    "relu": _relu,
    # -- rounding
    "floor": partial(_rounded, np.floor),
    "ceil": partial(_rounded, np.ceil),
    "trunc": partial(_rounded, np.trunc),
    "round": partial(_rounded, np.rint),
    # -- functions of floats
    "sqrt": ufunc(np.sqrt),
    "rsqrt": _rsqrt,
    "exp": ufunc(np.exp),
    "expm1": ufunc(np.expm1),
    "log": ufunc(np.log),
    "log1p": ufunc(np.log1p),
    "log2": ufunc(np.log2),
    "log10": ufunc(np.log10),
    "sin": ufunc(np.sin),
    "cos": ufunc(np.cos),
    "tan": ufunc(np.tan),
    "asin": ufunc(np.arcsin),
    "acos": ufunc(np.arccos),
    "atan": ufunc(np.arctan),
    "sinh": ufunc(np.sinh),
    "cosh": ufunc(np.cosh),
    "tanh": ufunc(np.tanh),
    "asinh": ufunc(np.arcsinh),
    "acosh": ufunc(np.arccosh),
    "atanh": ufunc(np.arctanh),
    "erf": functions.erf,
    "sigmoid": functions.sigmoid,
    "silu": functions.silu,
    "gelu": functions.gelu,
    "atan2": whole(np.arctan2),
    "hypot": whole(np.hypot),
    "logaddexp": whole(np.logaddexp),
    "copysign": ufunc(np.copysign),
    "nextafter": ufunc(np.nextafter),
    # -- predicates, comparison, logic
    "is_nan": ufunc(np.isnan),
    "is_inf": ufunc(np.isinf),
    "is_finite": ufunc(np.isfinite),
    "signbit": _signbit,
    "equal": ufunc(np.equal),
    "not_equal": ufunc(np.not_equal),
    "less": ufunc(np.less),
    "less_equal": ufunc(np.less_equal),
    "greater": ufunc(np.greater),
    "greater_equal": ufunc(np.greater_equal),
    "logical_and": ufunc(np.logical_and),
    "logical_or": ufunc(np.logical_or),
    "logical_xor": ufunc(np.logical_xor),
    "logical_not": ufunc(np.logical_not),
    # -- bits
    "bitwise_and": ufunc(np.bitwise_and),
    "bitwise_or": ufunc(np.bitwise_or),
    "bitwise_xor": ufunc(np.bitwise_xor),
    "bitwise_invert": ufunc(np.invert),
    "left_shift": ufunc(np.left_shift),
    "right_shift": ufunc(np.right_shift),
    # -- selection
    "where": _where,
    "clip": _clip,
    # -- complex numbers
    "real": _real,
    "imag": _imag,
    "conj": _conj,
    "as_complex": _as_complex,
    # -- reductions
    "sum": partial(_reduce, np.add),
    "prod": partial(_reduce, np.multiply),
    "max": partial(_extreme, "max", np.maximum),
    "min": partial(_extreme, "min", np.minimum),
    "mean": functions.mean,
    "var": functions.var,
    "std": functions.std,
    "any": partial(_reduce, np.logical_or),
    "all": partial(_reduce, np.logical_and),
    "argmax": partial(_locate, "argmax", np.argmax),
    "argmin": partial(_locate, "argmin", np.argmin),
    "cumulative_sum": partial(_accumulate, np.add),
    "cumulative_prod": partial(_accumulate, np.multiply),
    # -- rows: softmax, norms, sorting
    "softmax": functions.softmax,
    "logsoftmax": functions.logsoftmax,
    "layer_norm": functions.layer_norm,
    "sort": _sort,
    "argsort": _argsort,
    "searchsorted": _searchsorted,
    # -- contractions
    "matmul": ufunc(np.matmul),
    "tensordot": _tensordot,
    "outer": _outer,
    # -- movement
    "reshape": _reshape,
    "broadcast_to": _broadcast_to,
    "rebind": _rebind,
    "transpose": _transpose,
    "permute": _permute,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "slice": _slice,
    "flip": _flip,
    "roll": _roll,
    "pad": _pad,
    "tile": _tile,
    "repeat": _repeat,
    "concat": _concat,
    "stack": _stack,
    "gather": _gather,
    "take_along": _take_along,
    "scatter": _scatter,
    # -- creation
    "constant": _constant,
    "full": _full,
    "range": _range,
    "eye": _eye,
    "shape_of": _shape_of,
}
