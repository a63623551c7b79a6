"""What JAX answers: jax.numpy with or without 64 bits, in either promotion mode, and jax.lax."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from graphir import DType
from tests.peers import CALLS, Operand

VERSION = f"jax {jax.__version__}"

DTYPES: dict[DType, np.dtype[Any]] = {
    d: d.storage for d in DType if str(d) not in ("index", "address", "tensor_float32")
}
"""All but those three; a weak dtype's is what it is stored in where 64 bits are on.

The float6 dtypes promote and trace, but jaxlib makes no array of them.
"""

WEAK: dict[str, DType] = {
    "bool": DType.bool,
    "int": DType.weak_int,
    "uint": DType.weak_int,
    "float": DType.weak_float,
    "complex": DType.weak_complex,
}
"""What a weak result of each kind is to graphir."""


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which is lowered too where it is traced: tracing lets complex argmax pass."""

    def called(x: Any, **attrs: Any) -> Any:
        jax.jit(partial(function, **attrs)).lower(jax.ShapeDtypeStruct(x.shape, x.dtype))
        return function(x, **attrs)

    return called


OPS: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(jnp, name)
        for name in (
            *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow"),
            *("fmod", "cbrt", "deg2rad", "heaviside"),
            *("maximum", "minimum", "negative", "positive", "abs", "sign", "square"),
            *("reciprocal", "floor", "ceil", "trunc", "round", "sqrt", "exp", "expm1", "log"),
            *("log1p", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh"),
            *("cosh", "tanh", "asinh", "acosh", "atanh", "atan2", "hypot", "logaddexp"),
            *("copysign", "nextafter", "signbit", "equal", "not_equal", "less", "less_equal"),
            *("greater", "greater_equal", "logical_and", "logical_or", "logical_xor"),
            *("logical_not", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert"),
            *("left_shift", "right_shift", "where", "clip", "real", "imag", "conj", "sum"),
            *("prod", "max", "min", "mean", "var", "std", "any", "all"),
            *("sort", "argsort", "searchsorted", "matmul", "tensordot", "outer", "reshape"),
            *("broadcast_to", "squeeze", "flip", "roll", "concat", "stack"),
        )
    },
    "relu": jax.nn.relu,
    "rsqrt": lax.rsqrt,  # jax.numpy has none
    "erf": jax.scipy.special.erf,
    "sigmoid": jax.nn.sigmoid,
    "silu": jax.nn.silu,
    "softplus": jax.nn.softplus,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "is_nan": jnp.isnan,
    "is_inf": jnp.isinf,
    "is_finite": jnp.isfinite,
    "argmax": _compiled(jnp.argmax),
    "argmin": _compiled(jnp.argmin),
    "numpy_sum": lambda x, mask: jnp.sum(x, where=mask),
    "cumulative_sum": lambda x: jnp.cumulative_sum(x, axis=-1),
    "cumulative_prod": lambda x: jnp.cumulative_prod(x, axis=-1),
    "softmax": jax.nn.softmax,
    "logsoftmax": jax.nn.log_softmax,
    "transpose": jnp.matrix_transpose,
    "permute": lambda x, dims: jnp.permute_dims(x, dims),
    "unsqueeze": jnp.expand_dims,
    "slice": lambda x, start, stop, step: lax.slice(x, start, stop, step),
    "pad": lambda x, padding: jnp.pad(x, padding),
    "tile": lambda x, repeats: jnp.tile(x, repeats),
    "repeat": jnp.repeat,
    "gather": lambda x, indices: jnp.take(x, indices, axis=0),
    "take_along": lambda x, indices: jnp.take_along_axis(x, indices, axis=-1),
    "scatter": lambda x, updates, indices: jnp.put_along_axis(
        x, indices, updates, axis=-1, inplace=False
    ),
}


def _reduced(reduction: Callable[..., Any]) -> Callable[..., Any]:
    """The reduction over all axes."""
    return lambda x: reduction(x, tuple(range(jnp.ndim(x))))


_ROWS = lax.GatherDimensionNumbers(
    offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)
)

LAX: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(lax, name)
        for name in (
            *("add", "pow", "abs", "sign", "square", "reciprocal", "floor", "ceil", "round"),
            *("sqrt", "rsqrt", "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "asin"),
            *("acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "atan2"),
            *("nextafter", "is_finite", "bitwise_and", "bitwise_or", "bitwise_xor", "real"),
            *("imag", "conj", "sort"),
        )
    },
    "subtract": lax.sub,
    "multiply": lax.mul,
    "divide": lax.div,
    "remainder": lax.rem,
    "maximum": lax.max,
    "minimum": lax.min,
    "negative": lax.neg,
    "sigmoid": lax.logistic,
    "equal": lax.eq,
    "not_equal": lax.ne,
    "less": lax.lt,
    "less_equal": lax.le,
    "greater": lax.gt,
    "greater_equal": lax.ge,
    "bitwise_invert": lax.bitwise_not,
    "left_shift": lax.shift_left,
    "right_shift": lax.shift_right_arithmetic,
    "where": lax.select,
    "clip": lambda x, low, high: lax.clamp(low, x, high),
    "as_complex": lax.complex,
    "sum": _reduced(lax.reduce_sum),
    "prod": _reduced(lax.reduce_prod),
    "max": _reduced(lax.reduce_max),
    "min": _reduced(lax.reduce_min),
    "any": _reduced(lax.reduce_or),
    "all": _reduced(lax.reduce_and),
    "argmax": _compiled(lambda x: lax.argmax(x, 0, int)),  # it has to be told the index dtype
    "argmin": _compiled(lambda x: lax.argmin(x, 0, int)),
    "cumulative_sum": lambda x: lax.cumsum(x, jnp.ndim(x) - 1),
    "cumulative_prod": lambda x: lax.cumprod(x, jnp.ndim(x) - 1),
    "matmul": lax.dot,
    "tensordot": lambda x, y, axes: lax.dot_general(
        x, y, (((jnp.ndim(x) - axes,), (0,)), ((), ()))
    ),
    "reshape": lambda x, shape: lax.reshape(x, shape),
    "broadcast_to": lambda x, shape: lax.broadcast_in_dim(
        x, shape, tuple(range(len(shape) - jnp.ndim(x), len(shape)))
    ),
    "transpose": lambda x: lax.transpose(x, (1, 0)),
    "permute": lambda x, dims: lax.transpose(x, dims),
    "squeeze": lambda x, axis: lax.squeeze(x, (axis,)),
    "unsqueeze": lambda x, axis: lax.expand_dims(x, (axis,)),
    "slice": lambda x, start, stop, step: lax.slice(x, start, stop, step),
    "flip": lambda x: lax.rev(x, (0, 1)),
    "pad": lambda x, padding: lax.pad(
        x, lax.full_like(x, 0, shape=()), [(*pair, 0) for pair in padding]
    ),
    "tile": lambda x, repeats: lax.tile(x, repeats),
    "concat": lambda xs: lax.concatenate(xs, 0),
    "stack": lambda xs: lax.stack(xs, 0),
    "gather": lambda x, indices: lax.gather(x, indices[:, None], _ROWS, (1, x.shape[1])),
}
"""The functions of jax.lax, which convert nothing."""


class Answer(NamedTuple):
    """A dtype of JAX, and whether it is weak: so a weak float32 is told from a weak float64."""

    dtype: np.dtype[Any]
    weak: bool

    @property
    def ours(self) -> DType:
        dtype = DType.from_numpy(self.dtype)
        return WEAK[dtype.family] if self.weak else dtype


@contextmanager
def settings(x64: bool = True, promotion: str = "standard") -> Iterator[None]:
    """JAX with or without 64 bits, in a promotion mode, silent."""
    with warnings.catch_warnings(), jax.enable_x64(x64), jax.numpy_dtype_promotion(promotion):
        warnings.simplefilter("ignore")  # of 64 bits asked for where they are off
        yield


def answers(
    op: str, asked: Sequence[Sequence[Operand]], lax: bool = False, **modes: Any
) -> list[Answer | None]:
    """The dtypes of an op's results, all traced at once and not run; None where it raises.

    XLA compiles less than JAX traces: on a CPU not gelu of float8, or matmul of int2.
    """
    function = (LAX if lax else OPS)[op]
    kinds = list(dict.fromkeys(one for each in asked for one in each if isinstance(one, tuple)))
    found: list[Answer | None] = []

    def traced(*arrays: Any) -> None:
        given = dict(zip(kinds, arrays, strict=True))
        for each in asked:
            values = [given[one] if isinstance(one, tuple) else one for one in each]
            args = [values] if op in ("concat", "stack") else values
            found.append(_answer(partial(function, *args, **CALLS[op].attrs)))

    with settings(**modes):
        jax.eval_shape(traced, *(_typed(*one) for one in kinds))
    return found


def _answer(question: Callable[[], Any]) -> Answer | None:
    try:
        made = question()
    except (TypeError, ValueError, IndexError, OverflowError, NotImplementedError):
        return None
    return Answer(np.dtype(made.dtype), bool(made.weak_type))


def _typed(dtype: DType, shape: tuple[int, ...] = ()) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, DTYPES[dtype], weak_type=dtype.weak)


def results(op: str, asked: Sequence[Sequence[Operand]], **modes: Any) -> list[DType | None]:
    """The dtypes of an op's results as graphir has them: one weak dtype of each kind."""
    return [got and got.ours for got in answers(op, asked, **modes)]


def result(op: str, *operands: Operand, **modes: Any) -> DType | None:
    """The dtype of one result."""
    return results(op, [operands], **modes)[0]


def result_type(*operands: Operand, **modes: Any) -> DType | None:
    """What jax.dtypes.result_type says; it knows a weak operand by its Python type."""
    given = [
        (_PYTHON.get(one[0]) or _typed(*one)) if isinstance(one, tuple) else one for one in operands
    ]

    def joined() -> Any:
        dtype, weak = jax.dtypes.result_type(*given, return_weak_type_flag=True)
        return jax.ShapeDtypeStruct((), dtype, weak_type=weak)

    with settings(**modes):
        got = _answer(joined)
    return got and got.ours


_PYTHON = {DType.weak_int: int, DType.weak_float: float, DType.weak_complex: complex}
