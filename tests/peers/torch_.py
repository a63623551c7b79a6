"""PyTorch on the CPU, its default dtype float32."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch.nn import functional

from graphir import DType
from tests.peers import COMPARISONS, Operand, call_op

Array: TypeAlias = torch.Tensor | bool | int | float | complex

VERSION = f"PyTorch {torch.__version__}"

DTYPES: dict[DType, torch.dtype] = {
    DType(name): getattr(torch, name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
        *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
    )
}
_OURS = {theirs: ours for ours, theirs in DTYPES.items()}


def _slice(x: Any, start: Any, stop: Any, step: Any) -> Any:
    return x[tuple(slice(*axis) for axis in zip(start, stop, step, strict=True))]


def _of_axes(function: Any) -> Callable[..., Any]:
    """A reduction under our names of its attributes."""
    return lambda x, axis=None, keepdims=False, **more: function(
        x, dim=axis, keepdim=keepdims, **more
    )


_SAME_NAME = (
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow"),
    *("fmod", "deg2rad", "heaviside"),
    *("maximum", "minimum", "negative", "positive", "abs", "sign", "square", "reciprocal", "relu"),
    *("floor", "ceil", "trunc", "round", "sqrt", "rsqrt", "exp", "expm1"),
    *("log", "log1p", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "sigmoid"),
    *("atan2", "hypot", "logaddexp", "copysign", "nextafter", "signbit"),
    *("logical_and", "logical_or", "logical_xor", "logical_not"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "where", "real", "imag", "conj"),
    *("prod", "matmul", "outer", "reshape", "permute", "squeeze", "unsqueeze"),
)
_OF_AXES = ("sum", "mean", "var", "std", "any", "all", "argmax", "argmin")
OPS: dict[str, Callable[..., Any]] = {name: getattr(torch, name) for name in _SAME_NAME} | {
    "silu": functional.silu,
    "softplus": torch.nn.functional.softplus,
    "gelu": functional.gelu,
    "is_nan": torch.isnan,
    "is_inf": torch.isinf,
    "is_finite": torch.isfinite,
    # the operators, since the functions take a number on the right alone
    **COMPARISONS,
    "bitwise_invert": torch.bitwise_not,
    "left_shift": torch.bitwise_left_shift,
    "right_shift": torch.bitwise_right_shift,
    "clip": torch.clamp,
    "as_complex": torch.complex,
    **{name: _of_axes(getattr(torch, name)) for name in _OF_AXES},
    "max": lambda x, axis=(), keepdims=False: torch.amax(x, axis, keepdims),
    "min": lambda x, axis=(), keepdims=False: torch.amin(x, axis, keepdims),
    "cumulative_sum": lambda x, axis=-1, dtype=None: torch.cumsum(x, axis, dtype=dtype),
    "cumulative_prod": lambda x, axis=-1, dtype=None: torch.cumprod(x, axis, dtype=dtype),
    "softmax": lambda x, axis=-1: torch.softmax(x, axis),
    "logsoftmax": lambda x, axis=-1: torch.log_softmax(x, axis),
    "layer_norm": lambda x, scale, shift: functional.layer_norm(x, scale.shape, scale, shift),
    "sort": lambda x, axis=-1, descending=False: torch.sort(x, axis, descending).values,
    "argsort": lambda x, axis=-1, descending=False: torch.argsort(x, axis, descending),
    "searchsorted": lambda x, values, side="left": torch.searchsorted(x, values, side=side),
    "tensordot": lambda x, y, axes=2: torch.tensordot(x, y, dims=axes),
    "transpose": lambda x, axis1=-2, axis2=-1: torch.transpose(x, axis1, axis2),
    "slice": _slice,
    "broadcast_to": lambda x, shape: torch.broadcast_to(x, shape),
    "flip": lambda x, axis=None: torch.flip(x, axis or tuple(range(x.ndim))),
    "roll": lambda x, shift, axis: torch.roll(x, shift, axis),
    "pad": lambda x, padding, value=0: functional.pad(
        x, [size for axis in reversed(padding) for size in axis], value=value
    ),
    "tile": lambda x, repeats: torch.tile(x, repeats),
    "repeat": lambda x, repeats, axis: torch.repeat_interleave(x, repeats, axis),
    "concat": lambda xs, axis=0: torch.cat(xs, axis),
    "stack": lambda xs, axis=0: torch.stack(xs, axis),
    "gather": lambda x, indices, axis=0: torch.index_select(x, axis, indices),
    "take_along": lambda x, indices, axis=-1: torch.take_along_dim(x, indices, axis),
    "scatter": lambda x, updates, indices, axis=-1: torch.scatter(x, axis, indices, updates),
}


# Dtypes for which most CPU kernels are missing, and their likes, which have them all. A missing
# kernel is no rule: if the op takes each of the likes, the meta device answers.
_LIKES = dict.fromkeys((torch.uint16, torch.uint32, torch.uint64), (torch.uint8, torch.int64))
_LIKES |= {DTYPES[dtype]: (torch.float16, torch.float64) for dtype in DTYPES if dtype.narrow}
_NO_KERNEL = re.compile(r"not implemented for '(UInt|Float8)|Unsupported dtype Float8")
LACKS = re.compile(f"{_NO_KERNEL.pattern}|refers to a single memory location")
REFUSALS = (TypeError, RuntimeError, IndexError, ValueError, OverflowError, AttributeError)


def lacks_kernel(refusal: BaseException) -> bool:
    """Whether PyTorch refuses for want of a kernel alone, which is no rule."""
    return bool(_NO_KERNEL.search(str(refusal)))


def dtype_of(tensor: torch.Tensor) -> DType | None:
    """Its dtype as graphir has it; None of one that graphir has not."""
    return _OURS.get(tensor.dtype)


def result(op: str, *operands: Operand) -> DType | None:
    """The dtype of the result on tensors of ones; None where PyTorch refuses.

    The CPU answers. The meta device gives another dtype for bool ** True alone (int64, not bool),
    but takes what the CPU refuses: uint16, uint32, uint64 and float8 mixed with anything; mixed
    dtypes in matmul, layer_norm and complex; bool in subtract; ints in gelu and var; complex
    numbers in maximum and sort. It is stricter with a complex n-d beside a float8 0-d tensor.
    """
    try:
        return _answer(op, operands)
    except REFUSALS as refusal:
        if not lacks_kernel(refusal):
            return None
    try:
        for which in (0, 1):
            _answer(op, operands, like=which)
        return _answer(op, operands, device="meta")
    except REFUSALS:
        return None


def result_type(*operands: Operand) -> DType | None:
    """What torch.result_type says; of more tensors, the dtype that torch.block_diag gives them.

    Nothing in PyTorch takes numbers beside several tensors. They meet the 0-d tensors first here,
    as in its source (ATen/native/TypeProperties.cpp, result_type).
    """
    made = [_made(one) for one in operands]
    numbers = [one for one in made if not isinstance(one, torch.Tensor)]
    n_d = [one.flatten()[:1] for one in made if isinstance(one, torch.Tensor) and one.ndim]
    zero_d = [one for one in made if isinstance(one, torch.Tensor) and not one.ndim]
    try:
        if len(made) == 2:
            return _OURS.get(torch.result_type(*made))
        if numbers and (lower := zero_d or n_d):
            dtype = torch.block_diag(*lower).dtype
            for number in numbers:
                dtype = torch.result_type(lower[0].to(dtype), number)
            lower[:] = [lower[0].to(dtype)]
        return _OURS.get(torch.block_diag(*n_d, *zero_d).dtype) if n_d or zero_d else None
    except REFUSALS:
        return None


def _answer(
    op: str, operands: Sequence[Operand], device: str = "cpu", like: int | None = None
) -> DType | None:
    """The dtype of the result, None if we have no such; raises what PyTorch raises."""
    made = [_made(one, device, like) for one in operands]
    answer = call_op(OPS[op], op, made)
    return _OURS.get(getattr(answer, "dtype", None))


def _made(operand: Operand, device: str = "cpu", like: int | None = None) -> Array:
    if not isinstance(operand, tuple):
        return operand
    dtype, shape = operand
    theirs = DTYPES[dtype]
    if like is not None and theirs in _LIKES:
        theirs = _LIKES[theirs][like]
    return torch.ones(shape, device=device).to(theirs)
