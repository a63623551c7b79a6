"""MAX: the dtypes that its graph builder infers, without compiling or running anything."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from max.dtype import DType as MaxDType
from max.graph import DeviceRef, Graph, TensorType, TensorValue
from max.graph import ops as mops

from graphir import DType, ops
from tests.peers import CALLS, COMPARISONS, Operand

Tensor: TypeAlias = Any

DTYPES: dict[DType, MaxDType] = {DType(dtype.name): dtype for dtype in MaxDType}
_OURS = {theirs: ours for ours, theirs in DTYPES.items()}

SHAPES = ((), (2,), (1, 2), (2, 2), (2, 2, 2))
"""The shapes of the tensors that questions are about: all that CALLS has, and 0-d."""


def _layer_norm(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return mops.layer_norm(x, scale, shift, 1e-5)


OPS: dict[str, Callable[..., Tensor]] = {
    **COMPARISONS,
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "pow": operator.pow,
    "maximum": mops.max,
    "minimum": mops.min,
    "negative": operator.neg,
    "round": round,
    **{
        name: getattr(mops, name)
        for name in (
            *("abs", "relu", "floor", "ceil", "trunc", "sqrt", "rsqrt", "exp", "log", "log1p"),
            *("sin", "cos", "acos", "tanh", "atanh", "erf", "sigmoid", "silu", "gelu"),
            *("is_nan", "is_inf", "logical_and", "logical_or", "logical_xor", "logical_not"),
            *("where", "sum", "prod", "max", "min", "mean", "argmax", "argmin", "argsort"),
            *("softmax", "logsoftmax", "matmul", "outer", "concat", "stack", "scatter"),
            *("reshape", "broadcast_to", "rebind", "permute", "squeeze", "unsqueeze"),
        )
    },
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_invert": operator.invert,
    "var": TensorValue.var,
    "std": TensorValue.stdev,
    "cumulative_sum": mops.cumsum,
    "layer_norm": _layer_norm,
    "transpose": lambda x: mops.transpose(x, -2, -1),
    "slice": lambda x, start, stop, step: x[tuple(map(slice, start, stop, step))],
    "pad": lambda x, padding: mops.pad(x, [n for pair in padding for n in pair]),
    "tile": mops.tile,
    "repeat": mops.repeat_interleave,
    "gather": lambda x, indices: mops.gather(x, indices, axis=0),
    "shape_of": lambda x: mops.shape_to_tensor(x.shape),
}
"""MAX's functions and operators by our names of ops."""

_RANK_1 = {"argsort": ((2,),)}
_REFUSALS = (TypeError, ValueError, KeyError, OverflowError, NotImplementedError, AttributeError)


def result(op: str, *operands: Operand) -> DType | None:
    """The dtype that MAX's builder infers for the result; None where it raises."""
    made = [_made(one) for one in operands]
    try:
        answer = OPS[op](*([made] if ops.CATALOGUE[op].variadic else made), **CALLS[op].attrs)
    except _REFUSALS:
        return None
    return None if answer is NotImplemented else _OURS[answer.dtype]


def refusal(op: str, *operands: Operand) -> str:
    """The error MAX raises, as text; "" where it raises none."""
    made = [_made(one) for one in operands]
    try:
        OPS[op](*([made] if ops.CATALOGUE[op].variadic else made), **CALLS[op].attrs)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def cast(source: DType, target: DType) -> DType | None:
    """The dtype of a cast, which MAX's builder may refuse."""
    try:
        return _OURS[_tensors()[source, (2, 2)].cast(DTYPES[target]).dtype]
    except _REFUSALS:
        return None


def _made(operand: Any) -> Any:
    return _tensors()[operand] if isinstance(operand, tuple) else operand


@cache
def _tensors() -> dict[tuple[DType, tuple[int, ...]], Tensor]:
    """Inputs of every dtype and shape, of one graph that stays entered."""
    keys = list(product(DTYPES, SHAPES))
    types = [TensorType(DTYPES[dtype], shape, DeviceRef.CPU()) for dtype, shape in keys]
    graph = Graph("questions", input_types=types)
    graph.__enter__()
    return {key: value.tensor for key, value in zip(keys, graph.inputs, strict=True)}
