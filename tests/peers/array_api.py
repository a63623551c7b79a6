"""array-api-strict, in the version of the standard that is its default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import array_api_strict as xp

from graphir import DType
from tests.peers import Operand, call_op

Array: TypeAlias = Any

VERSION = f"array-api-strict {xp.__version__}, standard {xp.__array_api_version__}"

DTYPES: dict[DType, Any] = {
    DType(name): getattr(xp, name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float32", "float64", "complex64", "complex128"),
    )
}
_OURS = {theirs: ours for ours, theirs in DTYPES.items()}


def _transpose(x: Array, axis1: int = -2, axis2: int = -1) -> Array:
    axes = list(range(x.ndim))
    axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
    return xp.permute_dims(x, tuple(axes))


def _slice(x: Array, start: Any, stop: Any, step: Any) -> Array:
    return x[tuple(slice(*axis) for axis in zip(start, stop, step, strict=True))]


_SAME_NAME = (
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow"),
    *("maximum", "minimum", "negative", "positive", "abs", "sign", "square", "reciprocal"),
    *("floor", "ceil", "trunc", "round", "sqrt", "exp", "expm1", "log", "log1p", "log2", "log10"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
    *("asinh", "acosh", "atanh", "atan2", "hypot", "logaddexp", "copysign", "nextafter"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "signbit"),
    *("logical_and", "logical_or", "logical_xor", "logical_not"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert", "where", "clip"),
    *("real", "imag", "conj", "sum", "prod", "max", "min", "mean", "var", "std", "any", "all"),
    *("argmax", "argmin", "sort", "argsort", "searchsorted", "matmul", "tensordot"),
    *("reshape", "broadcast_to", "squeeze", "flip", "roll", "concat", "stack"),
)
OPS: dict[str, Callable[..., Array]] = {name: getattr(xp, name) for name in _SAME_NAME} | {
    "is_nan": xp.isnan,
    "is_inf": xp.isinf,
    "is_finite": xp.isfinite,
    "left_shift": xp.bitwise_left_shift,
    "right_shift": xp.bitwise_right_shift,
    "cumulative_sum": lambda x, axis=-1, dtype=None: xp.cumulative_sum(x, axis=axis, dtype=dtype),
    "cumulative_prod": lambda x, axis=-1, dtype=None: xp.cumulative_prod(x, axis=axis, dtype=dtype),
    "outer": xp.linalg.outer,
    "transpose": _transpose,
    "permute": lambda x, dims: xp.permute_dims(x, dims),
    "unsqueeze": lambda x, axis: xp.expand_dims(x, axis=axis),
    "slice": _slice,
    "tile": lambda x, repeats: xp.tile(x, repeats),
    "repeat": lambda x, repeats, axis: xp.repeat(x, repeats, axis=axis),
    "gather": lambda x, indices, axis=0: xp.take(x, indices, axis=axis),
    "take_along": xp.take_along_axis,
}
"""The standard has no activations, row norms, pad, scatter, rsqrt or way to make complex."""


def result(op: str, *operands: Operand) -> DType | None:
    """The dtype of the result on arrays of ones; None where the library refuses."""
    made = [_made(one) for one in operands]
    try:
        answer = call_op(OPS[op], op, made)
    except (TypeError, ValueError, OverflowError, IndexError, AttributeError):
        # AttributeError is what functions of arrays alone say of a Python scalar
        return None
    return _OURS[answer.dtype]


def result_type(*operands: Operand) -> DType | None:
    """What array_api_strict.result_type says."""
    try:
        return _OURS[xp.result_type(*map(_made, operands))]
    except (TypeError, ValueError, OverflowError):
        return None


def _made(operand: Operand) -> Any:
    if not isinstance(operand, tuple):
        return operand
    dtype, shape = operand
    return xp.ones(shape, dtype=DTYPES[dtype])
