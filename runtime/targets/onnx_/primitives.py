"""ONNX: the nodes that each primitive op of a lowered graph becomes."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
# (A lambda's operands are values, which its line need not say.)

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from graphir.ops.dims import product
from graphir.public import DType, Symbol, ops
from graphir.runtime.targets.onnx_.body import OnnxBody, Row
from graphir.runtime.targets.onnx_.movement import MOVES, reshape, turned, with_shape
from graphir.runtime.targets.onnx_.values import (
    COMPARISONS,
    OnnxValue,
    atan2,
    cast_values,
    compared,
    direct,
    expm1,
    float_pow,
    floor_divide,
    fmod,
    greater,
    integer_pow,
    key,
    lesser,
    log1p,
    nextafter,
    or_of_bools,
    shifted,
    unkeyed,
)

# -- reductions


def _reduce(body: OnnxBody, symbol: Symbol, x: OnnxValue, kind: str = "ReduceSum") -> OnnxValue:
    keep = int(symbol.attrs["keepdims"])
    inputs = [x, body.ints(symbol.attrs["axis"])]
    return body.op(kind, inputs, x.dtype, keepdims=keep, noop_with_empty_axes=1)


def _total(reducing: str, of_bools: Row, adding: str, unit: int) -> Row:
    """Return a sum or a product.

    For integers it is the last element of a scan, since reductions pass through float64.
    """

    def row(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
        (x,), axes = args, symbol.attrs["axis"]
        if x.dtype is DType.bool:
            return of_bools(body, symbol, args)
        if x.dtype.is_float:
            return _reduce(body, symbol, x, reducing)
        other_axes = [i for i in range(symbol.args[0].rank) if i not in axes]
        matrix = _matrix(body, x, symbol.args[0], other_axes, axes)
        first = [product(symbol.args[0].shape[i] for i in other_axes), 1]
        units = body.op("Expand", [body.number(unit, x.dtype), body.shape(first)], x.dtype)
        longer = body.op("Concat", [units, matrix], x.dtype, axis=1)
        so_far = body.op(adding, [longer, body.number(1, DType.int64)], x.dtype)
        last = body.op("Gather", [so_far, body.ints([-1])], x.dtype, axis=1)
        return reshape(body, symbol, [last])

    return row


def _any_of(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    true = args[0].cast(DType.bool).cast(DType.int64)
    return _reduce(body, symbol, true) > 0


def _all_of(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    false = (~args[0].cast(DType.bool)).cast(DType.int64)
    return _reduce(body, symbol, false).equal(0)


def _not_empty(body: OnnxBody, symbol: Symbol, x: OnnxValue, axes: Sequence[int]) -> OnnxValue:
    """Return the operand, with a check that fails when the reduced axes are empty."""
    shape = symbol.args[0].shape
    sizes = [shape[i] for i in axes if not (isinstance(shape[i], int) and shape[i])]
    return body.require(x, body.shape(sizes) > 0) if sizes else x


def _extreme(largest: bool, nan: float) -> Row:
    """Return the maximum or minimum, one axis at a time, by sort keys.

    NaN wins over all values, and 0.0 is above -0.0.
    """

    def row(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
        axes = symbol.attrs["axis"]
        x = _not_empty(body, symbol, args[0], axes)
        keys = key(x, nan, zeros=True)
        for axis in axes:
            inputs = [keys, body.ints([1])]
            keys = body.op("TopK", inputs, keys.dtype, of=(0, 2), axis=axis, largest=int(largest))
        return reshape(body, symbol, [unkeyed(keys, x.dtype)])

    return row


def _located(kind: str, nan: float) -> Row:
    def row(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
        axis, x = symbol.attrs["axis"], args[0]
        x = _not_empty(body, symbol, x, range(symbol.args[0].rank) if axis is None else [axis])
        flat = key(x, nan)
        if axis is None:
            flat = body.op("Reshape", [flat, body.ints([-1])], flat.dtype)
        keep = int(symbol.attrs["keepdims"] and axis is not None)
        place = body.op(kind, [flat], DType.int64, axis=axis or 0, keepdims=keep)
        return reshape(body, symbol, [place]) if axis is None else place

    return row


def _cumulative(kind: str, of_bools: str) -> Row:
    def row(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
        x, axis = args[0], body.number(symbol.attrs["axis"], DType.int64)
        if symbol.dtype is not DType.bool:
            return body.op(kind, [x, axis], x.dtype)
        if of_bools == "any":
            return body.op("CumSum", [x.cast(DType.int64), axis], DType.int64) > 0
        return body.op("CumSum", [(~x).cast(DType.int64), axis], DType.int64).equal(0)

    return row


# -- rows


def _last(body: OnnxBody, x: OnnxValue, axis: int, kind: str = "ReduceSum") -> OnnxValue:
    return body.op(kind, [x, body.ints([axis])], x.dtype, keepdims=1)


def _below_max(body: OnnxBody, x: OnnxValue, axis: int) -> OnnxValue:
    """Return the values minus the maximum of their row; NaN where the maximum is infinite."""
    return x - _last(body, x, axis, "ReduceMax")


def _softmax(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    axis = symbol.attrs["axis"]
    powers = _below_max(body, args[0], axis).op("Exp")
    return powers / _last(body, powers, axis)


def _logsoftmax(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    axis = symbol.attrs["axis"]
    below = _below_max(body, args[0], axis)
    return below - _last(body, below.op("Exp"), axis).op("Log")


def _order(body: OnnxBody, symbol: Symbol, x: OnnxValue, largest: bool) -> OnnxValue:
    """Return the indices of the stable sorted order, by TopK."""
    axis, shape = symbol.attrs["axis"], cast(Any, symbol.shape)
    inputs = [key(x), body.size(shape[axis])]
    return body.op("TopK", inputs, DType.int64, of=(1, 2), axis=axis, largest=int(largest))


def _argsort(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    return _order(body, symbol, args[0], symbol.attrs["descending"])


def _sort(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    (x,), order = args, _order(body, symbol, args[0], False)
    return body.op("GatherElements", [x, order], x.dtype, axis=symbol.attrs["axis"])


def _searchsorted(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    """Return the insertion points: the number of sorted values below each, or not above it."""
    x, values = map(key, args)
    values = body.op("Unsqueeze", [values, body.ints([-1])], values.dtype)
    before = x < values if symbol.attrs["side"] == "left" else x <= values
    axes = body.ints([symbol.rank])
    return body.op("ReduceSum", [before.cast(DType.int64), axes], DType.int64, keepdims=0)


# -- contractions


def _product(body: OnnxBody, x: OnnxValue, y: OnnxValue) -> OnnxValue:
    if x.dtype is not DType.bool:
        return body.op("MatMul", [x, y], x.dtype)
    return ~body.op("MatMul", [x.cast(DType.int32), y.cast(DType.int32)], DType.int32).equal(0)


def _matmul(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    """Return the matrix product, without MatMul for empty vectors: onnxruntime errs there."""
    places = body.ints([0]), body.ints([1])
    whole = [
        body.op("Unsqueeze", [x, place], x.dtype) if operand.rank == 1 else x
        for x, operand, place in zip(args, symbol.args, places, strict=True)
    ]
    result = _product(body, *whole)
    return (
        result if symbol.args[0].rank > 1 < symbol.args[1].rank else reshape(body, symbol, [result])
    )


def _matrix(
    body: OnnxBody, x: OnnxValue, symbol: Symbol, rows: Sequence[int], columns: Sequence[int]
) -> OnnxValue:
    whole = turned(body, x, [*rows, *columns])
    sizes = [product(symbol.shape[i] for i in axes) for axes in (rows, columns)]
    return with_shape(body, whole, sizes)


ROWS: Mapping[str, Row] = {
    "sum": _total("ReduceSum", _any_of, "CumSum", 0),
    "prod": _total("ReduceProd", _all_of, "CumProd", 1),
    "max": _extreme(True, math.nan),
    "min": _extreme(False, -math.nan),
    "any": _any_of,
    "all": _all_of,
    "argmax": _located("ArgMax", math.nan),
    "argmin": _located("ArgMin", -math.nan),
    "cumulative_sum": _cumulative("CumSum", "any"),
    "cumulative_prod": _cumulative("CumProd", "all"),
    "softmax": _softmax,
    "logsoftmax": _logsoftmax,
    "sort": _sort,
    "argsort": _argsort,
    "searchsorted": _searchsorted,
    "matmul": _matmul,
}


def _of(function: Callable[..., OnnxValue]) -> Row:
    """Return the row of a function of values and of the op's attributes."""
    return lambda body, symbol, args: function(*args, **symbol.attrs)


def _pow(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    x, y = args
    if x.dtype.is_float:
        return float_pow(x, y)
    exponent = symbol.args[1]
    bits = y.dtype.precision
    if exponent.op is ops.constant:
        bits = int(max(exponent.attrs["value"].ravel().tolist(), default=0)).bit_length()
    if y.dtype.family == "int":
        y = body.require(y, y >= 0)
    return integer_pow(x, y, bits)


def _cast(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    return cast_values(args[0], symbol.args[0].dtype, symbol.dtype, symbol.graph.tf32)


_DIRECT = {
    **{name: name.capitalize() for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "asin")},
    **{name: name.capitalize() for name in ("acos", "atan", "sinh", "cosh", "tanh", "asinh")},
    **{name: name.capitalize() for name in ("acosh", "atanh", "erf", "floor", "ceil", "round")},
    "subtract": "Sub",
    "divide": "Div",
}

ONNX: Mapping[str, Row] = {
    **ROWS,
    **MOVES,
    **{name: _of(direct(theirs)) for name, theirs in _DIRECT.items()},
    "add": _of(or_of_bools("Or", direct("Add"))),
    "multiply": _of(or_of_bools("And", direct("Mul"))),
    "maximum": _of(or_of_bools("Or", greater)),
    "minimum": _of(or_of_bools("And", lesser)),
    "where": lambda body, symbol, args: args[0].where(*args[1:]),
    "floor_divide": _of(floor_divide),
    "fmod": _of(fmod),
    "pow": _pow,
    "negative": _of(lambda x: -x),
    "abs": _of(lambda x: abs(x)),
    "expm1": _of(expm1),
    "log1p": _of(log1p),
    "gelu": _of(lambda x, approximate: x * 0.5 * ((x * math.sqrt(0.5)).op("Erf") + 1.0)),
    "atan2": _of(atan2),
    "nextafter": _of(nextafter),
    "signbit": _of(OnnxValue.negative),
    **{name: _of(compared(kind)) for name, kind in COMPARISONS.items()},
    "not_equal": _of(operator.ne),
    **dict.fromkeys(("logical_and", "bitwise_and"), _of(operator.and_)),
    **dict.fromkeys(("logical_or", "bitwise_or"), _of(operator.or_)),
    **dict.fromkeys(("logical_xor", "bitwise_xor"), _of(operator.xor)),
    **dict.fromkeys(("logical_not", "bitwise_invert"), _of(lambda x: ~x)),
    "left_shift": _of(shifted("LEFT")),
    "right_shift": _of(shifted("RIGHT")),
    "cast": _cast,
    "rebind": lambda body, symbol, args: body.shaped(args[0], symbol.shape),
}
"""The row of `as_complex` is missing: ONNX computes with real numbers alone."""

COMPOSITES = frozenset({"softmax", "logsoftmax", "argsort", "squeeze", "unsqueeze", "tile", "roll"})
"""The composite ops that ONNX has itself, or computes with fewer nodes."""
