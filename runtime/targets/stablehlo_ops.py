"""STABLEHLO: the lines that each op of a lowered graph of known sizes becomes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir import DType, Symbol, TensorType
from graphir.evaluation import apply
from runtime.targets.emission import lacking
from runtime.targets.stablehlo_text import Body, Value, ints

Row = Callable[[Body, Symbol, Sequence[Value]], Value]


def _same(name: str) -> Row:
    """An elementwise op, its operands broadcast."""

    def row(body: Body, symbol: Symbol, args: Sequence[Value]) -> Value:
        whole = [body.broadcast(arg, symbol.type) for arg in args]
        return body.op(name, whole, symbol.type)

    return row


def _zeros(dtype: DType, shape: Any) -> NDArray[Any]:
    return np.broadcast_to(np.zeros((), dtype.storage), shape)


def _known(body: Body, symbol: Symbol, args: Sequence[Value]) -> Value:
    """What depends on no value, computed here."""
    inferred = symbol.graph.infer(symbol.op, symbol.args, symbol.attrs)
    dtypes = [arg.dtype for arg in symbol.args]
    zeros = [_zeros(x.dtype, x.shape) for x in symbol.args]
    made = apply(symbol.op, inferred, dtypes, zeros, {}, symbol.graph.tf32)
    return body.constant(made, symbol.dtype)


def _compared(direction: str) -> Row:
    def row(body: Body, symbol: Symbol, args: Sequence[Value]) -> Value:
        if args[0].type.dtype is not args[1].type.dtype:
            raise lacking("StableHLO", symbol, "compares one dtype", "cast both to float64")
        whole = [body.broadcast(arg, symbol.type) for arg in args]
        how = f"#stablehlo<comparison_direction {direction}>"
        return body.op("compare", whole, symbol.type, comparison_direction=how)

    return row


def _cast(body: Body, symbol: Symbol, args: Sequence[Value]) -> Value:
    x, target = args[0], symbol.dtype
    if target is DType.bool:
        how = "#stablehlo<comparison_direction NE>"
        zero = body.number(0, x.type)
        return body.op("compare", [x, zero], symbol.type, comparison_direction=how)
    made = body.op("convert", [x], symbol.type)
    if target is not DType.tensor_float32 or x.type.dtype.exact_in(target):
        return made
    if symbol.graph.tf32 == "away" or not x.type.dtype.exact_in(DType.float32):
        fix = 'build the graph with tf32="even" and cast to float32 first'
        raise lacking("StableHLO", symbol, "rounds to tensor_float32 from float32, to even", fix)
    bits = {"exponent_bits": "8 : i32", "mantissa_bits": "10 : i32"}
    return body.op("reduce_precision", [made], symbol.type, **bits)


def _float_only(name: str) -> Row:
    """An op that is StableHLO's for floats, and nothing for integers."""

    def row(body: Body, symbol: Symbol, args: Sequence[Value]) -> Value:
        return args[0] if symbol.dtype.format is None else body.op(name, args, symbol.type)

    return row


def _reduced(name: str, init: Callable[[DType], Any]) -> Row:
    def row(body: Body, symbol: Symbol, args: Sequence[Value]) -> Value:
        attrs = symbol.attrs
        made = body.reduced(name, args[0], init(symbol.dtype), attrs["axis"])
        return _reshaped(body, made, symbol.type)

    return row


def _reshaped(body: Body, x: Value, type_: TensorType) -> Value:
    return x if x.type is type_ else body.op("reshape", [x], type_)


def _mean(body: Body, symbol: Symbol, args: Sequence[Value]) -> Value:
    total = _reduced("add", lambda dtype: 0)(body, symbol, args)
    sizes: Any = symbol.args[0].shape
    count = math.prod(sizes[i] for i in symbol.attrs["axis"])
    return body.op("divide", [total, body.number(count, symbol.type)], symbol.type)


def _least(dtype: DType) -> Any:
    return -np.inf if dtype.format else dtype.min


def _greatest(dtype: DType) -> Any:
    return np.inf if dtype.format else dtype.max


def _reshape(body: Body, symbol: Symbol, args: Sequence[Value]) -> Value:
    return _reshaped(body, args[0], symbol.type)


def _transposed(body: Body, symbol: Symbol, args: Sequence[Value]) -> Value:
    order = list(range(symbol.rank))
    one, other = symbol.attrs["axis1"], symbol.attrs["axis2"]
    order[one], order[other] = order[other], order[one]
    return body.op("transpose", args, symbol.type, permutation=ints(order))


def _slice(body: Body, symbol: Symbol, args: Sequence[Value]) -> Value:
    start, stop, step = (symbol.attrs[name] for name in ("start", "stop", "step"))
    parts = {"start_indices": ints(start), "limit_indices": ints(stop), "strides": ints(step)}
    return body.op("slice", args, symbol.type, **parts)


def _concat(body: Body, symbol: Symbol, args: Sequence[Value]) -> Value:
    axis = f"{symbol.attrs['axis']} : i64"
    return body.op("concatenate", args, symbol.type, dimension=axis)


def _stack(body: Body, symbol: Symbol, args: Sequence[Value]) -> Value:
    axis = symbol.attrs["axis"]
    shape = (*symbol.shape[:axis], 1, *symbol.shape[axis + 1 :])
    return _concat(
        body, symbol, [_reshaped(body, x, TensorType(x.type.dtype, shape)) for x in args]
    )


def _relu(body: Body, symbol: Symbol, args: Sequence[Value]) -> Value:
    return body.op("maximum", [args[0], body.number(0, symbol.type)], symbol.type)


def _over(body: Body, symbol: Symbol, x: Value) -> Value:
    return body.op("divide", [body.number(1, symbol.type), x], symbol.type)


def _reciprocal(body: Body, symbol: Symbol, args: Sequence[Value]) -> Value:
    if symbol.dtype.is_integer:
        raise lacking("StableHLO", symbol, "has no reciprocal of integers", "cast to a float")
    return _over(body, symbol, args[0])


def _part(name: str) -> Row:
    """A part of a complex number; a real number is its own, and has 0 beside."""

    def row(body: Body, symbol: Symbol, args: Sequence[Value]) -> Value:
        if args[0].type.dtype.is_complex:
            return body.op(name, args, symbol.type)
        return args[0] if name == "real" else body.number(0, symbol.type)

    return row


def _is_finite(body: Body, symbol: Symbol, args: Sequence[Value]) -> Value:
    if args[0].type.dtype.format is None:
        return body.number(True, symbol.type)
    if args[0].type.dtype.is_complex:
        raise lacking("StableHLO", symbol, "asks real numbers alone", "ask .real and .imag")
    return body.op("is_finite", args, symbol.type)


def _is_nan(body: Body, symbol: Symbol, args: Sequence[Value]) -> Value:
    how = "#stablehlo<comparison_direction NE>"
    return body.op("compare", [args[0], args[0]], symbol.type, comparison_direction=how)


def _matmul(body: Body, symbol: Symbol, args: Sequence[Value]) -> Value:
    """The product of two matrices."""
    if [arg.type.rank for arg in args] != [2, 2] or symbol.dtype is DType.bool:
        fix = "reshape to two axes, or cast bool first"
        raise lacking("StableHLO", symbol, "multiplies matrices of numbers here", fix)
    batches = "lhs_batching_dimensions = [], rhs_batching_dimensions = []"
    summed = "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]"
    exact = "#stablehlo<precision HIGHEST>"
    return body.op(
        "dot_general",
        args,
        symbol.type,
        dot_dimension_numbers=f"#stablehlo.dot<{batches}, {summed}>",
        precision_config=f"[{exact}, {exact}]",
    )


def _clip(body: Body, symbol: Symbol, args: Sequence[Value]) -> Value:
    x, low, high = (body.broadcast(arg, symbol.type) for arg in args)
    return body.op("minimum", [body.op("maximum", [x, low], symbol.type), high], symbol.type)


def _silu(body: Body, symbol: Symbol, args: Sequence[Value]) -> Value:
    gate = body.op("logistic", args, symbol.type)
    return body.op("multiply", [args[0], gate], symbol.type)


def _outer(body: Body, symbol: Symbol, args: Sequence[Value]) -> Value:
    places = ("0", "1")
    whole = [
        body.op("broadcast_in_dim", [x], symbol.type, broadcast_dimensions=f"array<i64: {i}>")
        for x, i in zip(args, places, strict=True)
    ]
    return body.op("multiply", whole, symbol.type)


_DIRECT = {
    **{name: name for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum")},
    **{
        name: name
        for name in (
            "abs",
            "sqrt",
            "log",
            "tan",
            "tanh",
        )
    },
    "negative": "negate",
    "exp": "exponential",
    "expm1": "exponential_minus_one",
    "log1p": "log_plus_one",
    "sin": "sine",
    "cos": "cosine",
    "sigmoid": "logistic",
    "logical_and": "and",
    "logical_or": "or",
    "logical_xor": "xor",
    "logical_not": "not",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "bitwise_invert": "not",
    "atan2": "atan2",
    "where": "select",
    "as_complex": "complex",
    "sign": "sign",
}
_DIRECTIONS = {
    "equal": "EQ",
    "not_equal": "NE",
    "less": "LT",
    "less_equal": "LE",
    "greater": "GT",
    "greater_equal": "GE",
}

STABLEHLO: Mapping[str, Row] = {
    **{name: _same(theirs) for name, theirs in _DIRECT.items()},
    **{name: _compared(direction) for name, direction in _DIRECTIONS.items()},
    **dict.fromkeys(("constant", "full", "range", "eye", "shape_of"), _known),
    **dict.fromkeys(("reshape", "squeeze", "unsqueeze"), _reshape),
    "positive": lambda body, symbol, args: args[0],
    "rebind": lambda body, symbol, args: args[0],
    "cast": _cast,
    "square": lambda body, symbol, args: body.op("multiply", [args[0], args[0]], symbol.type),
    "reciprocal": _reciprocal,
    "relu": _relu,
    "rsqrt": lambda body, symbol, args: _over(body, symbol, body.op("sqrt", args, symbol.type)),
    "silu": _silu,
    "floor": _float_only("floor"),
    "ceil": _float_only("ceil"),
    "round": _float_only("round_nearest_even"),
    "clip": _clip,
    "sum": _reduced("add", lambda dtype: 0),
    "prod": _reduced("multiply", lambda dtype: 1),
    "max": _reduced("maximum", _least),
    "min": _reduced("minimum", _greatest),
    "any": _reduced("or", lambda dtype: False),
    "all": _reduced("and", lambda dtype: True),
    "mean": _mean,
    "outer": _outer,
    "broadcast_to": lambda body, symbol, args: body.broadcast(args[0], symbol.type),
    "transpose": _transposed,
    "permute": lambda body, symbol, args: body.op(
        "transpose", args, symbol.type, permutation=ints(symbol.attrs["dims"])
    ),
    "slice": _slice,
    "flip": lambda body, symbol, args: body.op(
        "reverse", args, symbol.type, dimensions=ints(symbol.attrs["axis"])
    ),
    "concat": _concat,
    "real": _part("real"),
    "imag": _part("imag"),
    "is_finite": _is_finite,
    "is_nan": _is_nan,
    "matmul": _matmul,
    "stack": _stack,
}
"""Ops that are not here StableHLO has not, or not yet."""
