"""TensorFlow on CPU, eagerly: as it comes, or in one of its modes that promote, after `enable`."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import Any, Literal, TypeAlias

import numpy as np

# Read while it is imported: they silence what it says about itself.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import tensorflow as tf
from tensorflow.python.framework import flexible_dtypes, weak_tensor
from tensorflow.python.ops.numpy_ops import np_utils

from graphir import DType
from tests.peers import COMPARISONS, Operand, call_op

Tensor: TypeAlias = Any

VERSION = f"tensorflow {tf.__version__}"

DTYPES: dict[DType, Any] = {
    DType(name): getattr(tf, name, None) or getattr(tf.dtypes.experimental, name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
        *("int2", "int4", "uint2", "uint4", "float8_e4m3b11fnuz", "float8_e4m3fn"),
        *("float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn"),
    )
}
_OURS = {theirs: ours for ours, theirs in DTYPES.items()}
_WEAK = {
    DType.weak_int: tf.int32,
    DType.weak_float: tf.float64,
    DType.weak_complex: tf.complex128,
}
WEAK_FLOAT32 = "weak float32"
"""The other weak float, which graphir has not: a Python float where no integer has joined it."""
Answer: TypeAlias = DType | Literal["weak float32"] | None
_WEAK_OF_KIND = {dtype.family: dtype for dtype in _WEAK}
_promotes = ""


def enable(mode: Literal["all", "safe", "legacy"]) -> None:
    """Make this process promote, for good, before anything is asked.

    Weak tensors exist then, but in "legacy", in which operators promote and functions do not.
    """
    global _promotes
    tf.experimental.numpy.experimental_enable_numpy_behavior(dtype_conversion_mode=mode)
    _promotes = mode
    if mode == "legacy":
        OPS.update(OPERATORS)
    else:
        DTYPES.update(_WEAK)


def _transpose(x: Tensor, axis1: int = -2, axis2: int = -1) -> Tensor:
    axes = list(range(len(x.shape)))
    axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
    return tf.transpose(x, axes)


def _take_along(x: Tensor, indices: Tensor) -> Tensor:
    return tf.gather(x, indices, axis=-1, batch_dims=len(indices.shape) - 1)


def _scatter(x: Tensor, updates: Tensor, indices: Tensor) -> Tensor:
    rows = tf.cast(tf.zeros_like(indices), indices.dtype)
    return tf.tensor_scatter_nd_update(x, tf.stack([rows, indices], axis=-1), updates)


OPS: dict[str, Callable[..., Tensor]] = {
    name: getattr(tf.math, name)
    for name in (
        *("subtract", "divide", "pow", "maximum", "minimum"),
        *("negative", "abs", "sign", "square", "reciprocal", "floor", "ceil", "round"),
        *("sqrt", "rsqrt", "exp", "expm1", "log", "log1p", "sin", "cos", "tan"),
        *("asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
        *("erf", "sigmoid", "atan2", "nextafter", "is_nan", "is_inf", "is_finite"),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("logical_and", "logical_or", "logical_xor", "logical_not"),
        *("real", "imag", "conj", "argmax", "argmin"),
    )
} | {
    "add": operator.add,
    "multiply": operator.mul,
    "floor_divide": tf.math.floordiv,
    "remainder": tf.math.floormod,
    "fmod": tf.truncatemod,
    "relu": tf.nn.relu,
    "silu": tf.nn.silu,
    "gelu": tf.nn.gelu,
    "softplus": tf.nn.softplus,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_invert": operator.invert,
    "left_shift": tf.bitwise.left_shift,
    "right_shift": tf.bitwise.right_shift,
    "where": tf.where,
    "clip": tf.clip_by_value,
    "as_complex": tf.complex,
    "sum": tf.reduce_sum,
    "prod": tf.reduce_prod,
    "max": tf.reduce_max,
    "min": tf.reduce_min,
    "mean": tf.reduce_mean,
    "var": tf.math.reduce_variance,
    "std": tf.math.reduce_std,
    "any": tf.reduce_any,
    "all": tf.reduce_all,
    "cumulative_sum": lambda x: tf.cumsum(x, axis=-1),
    "cumulative_prod": lambda x: tf.math.cumprod(x, axis=-1),
    "softmax": tf.nn.softmax,
    "logsoftmax": tf.nn.log_softmax,
    "sort": tf.sort,
    "argsort": tf.argsort,
    "searchsorted": tf.searchsorted,
    "matmul": tf.matmul,
    "tensordot": tf.tensordot,
    "reshape": tf.reshape,
    "broadcast_to": tf.broadcast_to,
    "rebind": tf.ensure_shape,
    "transpose": _transpose,
    "permute": lambda x, dims: tf.transpose(x, dims),
    "squeeze": tf.squeeze,
    "unsqueeze": tf.expand_dims,
    "slice": lambda x, start, stop, step: tf.strided_slice(x, start, stop, step),
    "flip": lambda x: tf.reverse(x, list(range(len(x.shape)))),
    "roll": tf.roll,
    "pad": lambda x, padding: tf.pad(x, padding),
    "tile": lambda x, repeats: tf.tile(x, repeats),
    "repeat": tf.repeat,
    "concat": lambda xs: tf.concat(xs, axis=0),
    "stack": tf.stack,
    "gather": lambda x, indices: tf.gather(x, indices, axis=0),
    "take_along": _take_along,
    "scatter": _scatter,
    "shape_of": tf.shape,
}
"""Without positive, trunc, cbrt, log2, log10, deg2rad, hypot, heaviside, logaddexp, copysign,
signbit, outer, layer_norm: only tf.experimental.numpy has some of them, and promotes by rules of
its own."""


OPERATORS: dict[str, Callable[..., Tensor]] = {
    **COMPARISONS,
    "subtract": operator.sub,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "pow": operator.pow,
    "matmul": operator.matmul,
}
"""The operators, where they are not the functions; they promote in the mode "legacy"."""

# AttributeError is what functions of tensors alone say of a Python scalar, and SystemError what
# comes of -1 beside uint64.
_REFUSALS = (TypeError, ValueError, OverflowError, NotImplementedError, AttributeError)
_REFUSALS += (SystemError, tf.errors.OpError)


def result(op: str, *operands: Operand) -> Answer:
    """The dtype of the result on tensors of ones; None where there is no kernel or it refuses."""
    made = [_made(one) for one in operands]
    try:
        answer = call_op(OPS[op], op, made)
    except _REFUSALS:
        return None
    if not tf.is_tensor(answer):
        return None  # TensorFlow has refused, and NumPy's reflected operator answered
    named = _named(answer.dtype, isinstance(answer, weak_tensor.WeakTensor))
    return WEAK_FLOAT32 if named is DType.weak_float and answer.dtype != tf.float64 else named


def result_type(*operands: Operand) -> DType | None:
    """What flexible_dtypes says; in a process that does not promote, what tf.add makes of two.

    Of both weak floats weak_float.
    """
    try:
        if not _promotes:
            return _named(tf.add(*map(_made, operands)).dtype, False)
        if _promotes == "legacy":
            return _named(np_utils.result_type(*map(_made, operands)), False)
        made = [_made((one[0], ()) if isinstance(one, tuple) else one) for one in operands]
        return _named(*flexible_dtypes.result_type(*made))
    except _REFUSALS:
        return None


Mode: TypeAlias = Literal["plain", "all", "safe", "legacy"]
Question: TypeAlias = tuple[str, tuple[Operand, ...]]
"""An op, or "result_type", and its operands."""


def answers(questions: Sequence[Question], mode: Mode) -> list[Answer]:
    """What TensorFlow answers: here if plain, else in a process that is in that mode for good."""
    if mode == "plain":
        return _answers(questions)
    return _process(mode).submit(_answers, questions).result()


@cache
def _process(mode: Mode) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, get_context("spawn"), enable, (mode,))


def _answers(questions: Sequence[Question]) -> list[Answer]:
    return [
        result_type(*operands) if op == "result_type" else result(op, *operands)
        for op, operands in questions
    ]


def _named(dtype: Any, weak: bool) -> DType:
    named = _OURS[dtype]
    return _WEAK_OF_KIND[named.family] if weak else named


def _made(operand: Operand) -> Any:
    return _ones(*operand) if isinstance(operand, tuple) else operand


@cache
def _ones(dtype: DType, shape: tuple[int, ...]) -> Tensor:
    ones = tf.constant(np.ones(shape, dtype.to_numpy()), DTYPES[dtype])
    return weak_tensor.WeakTensor(ones) if dtype.weak else ones


# -- values, for random programs


class ByNumpyError(Exception):
    """NumPy computed: a NumPy scalar stood on the left, and its operator took the tensor."""


class WeakError(Exception):
    """The result is a weak tensor, as literals make them in the modes that promote.

    graphir's are weak symbols, or of float32; the tests of the rule sets tell them apart.
    """


def asks(case: Any) -> bool:
    """Whether a step of a random program is put to TensorFlow: none of a negative int and uint64.

    Its converter makes 2**64 - 1 of the int and leaves an error unhandled (pywrap_tensor.cc), which
    the first op that looks raises; many of them abort the process.
    """
    negative = any(type(one) is int and one < 0 for one in case.given)
    return not (negative and DType.uint64 in case.given)


REFUSALS = (*_REFUSALS, ZeroDivisionError, IndexError, ByNumpyError, WeakError)
LACKS = (ByNumpyError, WeakError, tf.errors.UnimplementedError)


def made(x: Any, dtype: DType) -> Tensor:
    """A tensor of an array, weak where its dtype is."""
    tensor = tf.constant(x, DTYPES[dtype])
    return weak_tensor.WeakTensor(tensor) if dtype.weak else tensor


def operators(table: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Operators that raise ByNumpyError where TensorFlow was not asked."""

    def asking(operator: Callable[..., Any]) -> Callable[..., Any]:
        def applied(*operands: Any, **attrs: Any) -> Any:
            result = operator(*operands, **attrs)
            if isinstance(result, (np.ndarray, np.generic)):
                raise ByNumpyError
            if isinstance(result, weak_tensor.WeakTensor):
                raise WeakError
            return result

        return applied

    absent = ("positive", "ilshift", "irshift")
    shifts = {name: OPS[name] for name in ("left_shift", "right_shift")}
    taken = {name: operator for name, operator in table.items() if name not in absent}
    return {name: asking(operator) for name, operator in {**taken, **shifts}.items()}


def dtype_of(tensor: Tensor) -> Answer:
    """The dtype of a tensor, by our name."""
    named = _named(tensor.dtype, isinstance(tensor, weak_tensor.WeakTensor))
    return WEAK_FLOAT32 if named is DType.weak_float and tensor.dtype != tf.float64 else named


def functions() -> dict[str, Callable[..., Tensor]]:
    """The functions by names of ops, over the axes that ops have by default."""

    def flat(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda x: function(tf.reshape(x, [-1]), axis=0)

    return operators(OPS) | {
        "argmax": flat(tf.math.argmax),
        "argmin": flat(tf.math.argmin),
        "cast": lambda x, to: tf.cast(x, DTYPES[to]),
    }
