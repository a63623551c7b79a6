"""MAX: the dtypes that its graph builder infers, without compiling or running anything.

`python -m tests.peers.max_` measures anew and writes tests/golden/max_ops.json.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.metadata import version
from itertools import product
from typing import Any, TypeAlias

from max.dtype import DType as MaxDType
from max.graph import DeviceRef, Graph, TensorType, TensorValue
from max.graph import ops as max_ops

from graphir import DType
from tests.peers import OPERATORS, call_op
from tests.peers.max_questions import GOLDEN, measurement

Tensor: TypeAlias = Any

VERSION = f"max {version('max')}"
DTYPES: dict[DType, MaxDType] = {DType(dtype.name): dtype for dtype in MaxDType}
_OURS = {theirs: ours for ours, theirs in DTYPES.items()}
_SHAPES = ((), (1,), (2,), (1, 2), (2, 2), (3,), (2, 3))

_NO_OPERATORS = ("positive", "abs", "left_shift", "right_shift")
"""The operators that MAX's tensors do not have, and |x|, which is a function there."""
OPS: dict[str, Callable[..., Tensor]] = {
    **{name: call for name, call in OPERATORS.items() if name not in _NO_OPERATORS},
    "round": round,
    "maximum": max_ops.max,
    "minimum": max_ops.min,
    **{
        name: getattr(max_ops, name)
        for name in (
            *("abs", "relu", "floor", "ceil", "trunc", "sqrt", "rsqrt", "exp", "log", "log1p"),
            *("sin", "cos", "acos", "tanh", "atanh", "erf", "sigmoid", "silu", "gelu"),
            *("is_nan", "is_inf", "logical_and", "logical_or", "logical_xor", "logical_not"),
            *("where", "sum", "prod", "max", "min", "mean", "argmax", "argmin", "argsort"),
            *("softmax", "logsoftmax", "matmul", "outer", "concat", "stack", "scatter"),
            *("reshape", "broadcast_to", "rebind", "permute", "squeeze", "unsqueeze", "tile"),
        )
    },
    "var": TensorValue.var,
    "std": TensorValue.stdev,
    "cumulative_sum": max_ops.cumsum,
    "layer_norm": lambda x, scale, shift: max_ops.layer_norm(x, scale, shift, 1e-5),
    "transpose": lambda x: max_ops.transpose(x, -2, -1),
    "slice": lambda x, start, stop, step: x[tuple(map(slice, start, stop, step))],
    "pad": lambda x, padding: max_ops.pad(x, [n for pair in padding for n in pair]),
    "repeat": max_ops.repeat_interleave,
    "gather": lambda x, indices: max_ops.gather(x, indices, axis=0),
    "shape_of": lambda x: max_ops.shape_to_tensor(x.shape),
}
"""MAX's operators and functions by our names of ops."""

REFUSALS = (TypeError, ValueError, LookupError, OverflowError, AttributeError, BufferError)


def result(op: str, *operands: Any) -> DType | None:
    """The dtype that MAX's builder infers for the result; None where it raises."""
    made = [_made(one) for one in operands]
    return call_op(partial(answer, OPS[op]), op, made)


def answer(function: Callable[..., Any], *operands: Any, **attrs: Any) -> DType | None:
    """The dtype of what a function of tensors gives; None where it raises."""
    try:
        return _OURS[function(*operands, **attrs).dtype]
    except REFUSALS:
        return None


def tensor(dtype: DType, shape: tuple[int, ...]) -> Tensor:
    """A tensor of a dtype and shape, an input of the one graph that questions are put to."""
    return _inputs()[dtype, shape]


def _made(operand: Any) -> Any:
    return tensor(*operand) if isinstance(operand, tuple) else operand


@cache
def _inputs() -> dict[tuple[DType, tuple[int, ...]], Tensor]:
    keys = list(product(DTYPES, _SHAPES))
    types = [TensorType(DTYPES[dtype], shape, DeviceRef.CPU()) for dtype, shape in keys]
    graph = Graph("questions", input_types=types)
    graph.__enter__()  # for good: its tensors mean something inside it alone
    return {key: value.tensor for key, value in zip(keys, graph.inputs, strict=True)}


# -- for random programs, of which MAX infers the dtypes


def functions() -> dict[str, Callable[..., Tensor]]:
    """The functions by names of ops, over the axes that ops have by default.

    Without argsort, which sorts vectors alone.
    """

    def whole(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda x: function(x.reshape((-1,)), axis=0).reshape(())

    names = ("sum", "prod", "max", "min", "mean", "argmax", "argmin")
    return {name: function for name, function in OPS.items() if name != "argsort"} | {
        **{name: whole(OPS[name]) for name in names},
        "cast": lambda x, to: x.cast(DTYPES[to]),
    }


def operators(in_place: Mapping[str, str]) -> dict[str, Callable[..., Tensor]]:
    """Python's operators, also those in place, which MAX has not and Python replaces."""
    plain = {name: call for name, call in OPERATORS.items() if name != "abs"}
    return plain | {name: getattr(operator, name) for name in in_place}


def dtype_of(x: Any) -> DType | None:
    """The dtype of a tensor, by our name."""
    return _OURS[x.dtype]


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(measurement(VERSION, result), indent=1) + "\n")
