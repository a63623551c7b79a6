"""NumPy, under NEP 50."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from graphir import DType
from tests.peers import Operand, call_op

Array: TypeAlias = Any

VERSION = f"numpy {np.__version__}"

DTYPES: dict[DType, np.dtype[Any]] = {
    DType(name): np.dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
}
"""Not those of ml_dtypes, for which NumPy's functions give several answers."""
_OURS = {theirs: ours for ours, theirs in DTYPES.items()}


def _slice(x: Array, start: Any, stop: Any, step: Any) -> Array:
    return x[tuple(slice(*axis) for axis in zip(start, stop, step, strict=True))]


def _scatter(x: Array, updates: Array, indices: Array, axis: int = -1) -> Array:
    """A copy of x assigned to: what is put becomes x's dtype, whatever is lost."""
    made = np.array(x)
    np.put_along_axis(made, indices, updates, axis)
    return made


_SAME_NAME = (
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow"),
    *("fmod", "cbrt", "deg2rad", "heaviside"),
    *("maximum", "minimum", "negative", "positive", "abs", "sign", "square", "reciprocal"),
    *("floor", "ceil", "trunc", "round", "sqrt", "exp", "expm1", "log", "log1p", "log2", "log10"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
    *("asinh", "acosh", "atanh", "atan2", "hypot", "logaddexp", "copysign", "nextafter"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "signbit"),
    *("logical_and", "logical_or", "logical_xor", "logical_not"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert", "left_shift", "right_shift"),
    *("where", "clip", "real", "imag", "conj", "sum", "prod", "max", "min", "mean", "var", "std"),
    *("any", "all", "argmax", "argmin", "sort", "searchsorted", "matmul", "tensordot", "outer"),
    *("broadcast_to", "squeeze", "flip", "roll", "repeat", "concat", "stack"),
)
OPS: dict[str, Callable[..., Array]] = {name: getattr(np, name) for name in _SAME_NAME} | {
    "is_nan": np.isnan,
    "is_inf": np.isinf,
    "is_finite": np.isfinite,
    "argsort": lambda x, axis=-1: np.argsort(x, axis=axis, stable=True),
    "numpy_sum": lambda x, mask: np.sum(x, where=mask),
    "cumulative_sum": lambda x, axis=-1, dtype=None: np.cumsum(x, axis, dtype),
    "cumulative_prod": lambda x, axis=-1, dtype=None: np.cumprod(x, axis, dtype),
    "reshape": lambda x, shape: np.reshape(x, shape),
    "transpose": lambda x, axis1=-2, axis2=-1: np.swapaxes(x, axis1, axis2),
    "permute": lambda x, dims: np.transpose(x, dims),
    "unsqueeze": lambda x, axis: np.expand_dims(x, axis),
    "slice": _slice,
    "pad": lambda x, padding, value=0: np.pad(x, padding, constant_values=value),
    "tile": lambda x, repeats: np.tile(x, repeats),
    "gather": lambda x, indices, axis=0: np.take(x, indices, axis=axis),
    "take_along": lambda x, indices, axis=-1: np.take_along_axis(x, indices, axis),
    "scatter": _scatter,
}
"""NumPy has no activations, row norms, erf, rsqrt, or way to make complex of two arrays."""


def result(op: str, *operands: Operand) -> DType | None:
    """The dtype of the result on arrays of ones; None where it refuses or answers `object`."""
    made = [_made(one) for one in operands]
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
            answer = call_op(OPS[op], op, made)
    except (TypeError, ValueError, OverflowError, IndexError, AttributeError):
        # ValueError of integers to negative powers, AttributeError of take_along_axis on scalars
        return None
    return _OURS.get(np.asarray(answer).dtype)


def result_type(*operands: Operand) -> DType | None:
    """What np.result_type says."""
    try:
        return _OURS.get(np.result_type(*map(_made, operands)))
    except (TypeError, ValueError, OverflowError):
        return None


def _made(operand: Operand) -> Any:
    if not isinstance(operand, tuple):
        return operand
    dtype, shape = operand
    return np.ones(shape, dtype=DTYPES[dtype])
