"""ONNX: the nodes that each primitive op of a lowered graph becomes."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
# (A lambda's operands are values, which its line need not say.)

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from graphir.ops.dims import Size, product
from graphir.promotion.scalars import scalar
from graphir.public import DType, Symbol, ops
from graphir.runtime.targets.emission import lacking
from graphir.runtime.targets.onnx_.body import OnnxBody, Row, onnx_dtype
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
from graphir.semantics.data_movement import ranged

# -- movement


def with_shape(body: OnnxBody, x: OnnxValue, shape: Sequence[Size]) -> OnnxValue:
    """Return the elements in another shape."""
    return body.op("Reshape", [x, body.shape(shape)], x.dtype, allowzero=1)


def reshape(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    """Return the elements in the shape of a symbol."""
    return with_shape(body, args[0], symbol.shape)


def _expand(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    x = args[0]
    if any(isinstance(n, int) and n == 0 for n in symbol.shape):  # Expand leaves an axis of one
        x = body.number(0, x.dtype)
    return body.op("Expand", [x, body.shape(symbol.shape)], x.dtype)


def turned(body: OnnxBody, x: OnnxValue, order: Sequence[int]) -> OnnxValue:
    """Return the value with its axes in another order."""
    return x if [*order] == sorted(order) else body.op("Transpose", [x], x.dtype, perm=order)


def _along(kind: str) -> Row:
    """Return the function that adds an op whose axis is an operand."""

    def row(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
        return body.op(kind, [args[0], body.ints([symbol.attrs["axis"]])], args[0].dtype)

    return row


def _sliced(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    """Return a slice; a check at run time asserts the bounds of a symbolic axis."""
    (x,), attrs = args, symbol.attrs
    limits = list(zip(attrs["start"], attrs["stop"], symbol.args[0].shape, strict=True))
    if any(not isinstance(limit_, int) for limit in limits for limit_ in limit):
        start, stop, size = (body.shape(limit_) for limit_ in zip(*limits, strict=True))
        x = body.require(x, (start <= stop) & (stop <= size))
    parts = [body.shape(attrs["start"]), body.shape(attrs["stop"])]
    axes, step = body.ints(range(symbol.rank)), body.shape(attrs["step"])
    return body.op("Slice", [x, *parts, axes, step], x.dtype) if symbol.rank else x


def reversed_along(body: OnnxBody, x: OnnxValue, axes: Sequence[int]) -> OnnxValue:
    """Return x reversed along axes."""
    if not axes:
        return x
    ends = [[value] * len(axes) for value in (-1, -(2**63), -1)]
    start, stop, step = map(body.ints, ends)
    return body.op("Slice", [x, start, stop, body.ints(axes), step], x.dtype)


def _positions_below(body: OnnxBody, size: Size) -> OnnxValue:
    """Return the numbers 0, 1, ... below a size."""
    end = body.op("Reshape", [body.size(size), body.ints([])], DType.int64)
    ends = [body.number(0, DType.int64), end, body.number(1, DType.int64)]
    return body.op("Range", ends, DType.int64)


def _rolled(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    axis = symbol.attrs["axis"]
    shape: Any = symbol.shape
    size = shape[axis]
    places = (_positions_below(body, size) - symbol.attrs["shift"]) % greater(body.size(size), 1)
    return body.op("Gather", [args[0], places], args[0].dtype, axis=axis)


def _padded(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    padding = symbol.attrs["padding"]
    if not padding:
        return args[0]
    sizes = body.shape([*(before for before, _ in padding), *(after for _, after in padding)])
    value = scalar(symbol.attrs["value"], symbol.dtype, symbol.graph.tf32)
    number = body.number(value, args[0].dtype)
    return body.op("Pad", [args[0], sizes, number], args[0].dtype, mode="constant")


def _tiled(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    repeats = body.shape(symbol.attrs["repeats"])
    return body.op("Tile", [args[0], repeats], args[0].dtype) if symbol.rank else args[0]


def _indexed(kind: str) -> Row:
    """Return the function of an op whose last operand has the indices.

    An index beyond int64 stays out of range.
    """

    def row(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
        *data, places = args
        inputs = [data[0], _places(places), *data[1:]]
        return body.op(kind, inputs, data[0].dtype, axis=symbol.attrs["axis"])

    return row


def _places(indices: OnnxValue) -> OnnxValue:
    if indices.dtype is DType.uint64:
        indices = lesser(indices, DType.int64.max)
    return indices.cast(DType.int64)


def _index_add(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    """Return x with updates added at indices, an index for each update.

    The ScatterND of onnxruntime would lose sums where its threads meet.
    """
    x, updates, indices = args
    if x.dtype.is_float and x.dtype.bits < 32:
        why = "has no engine that adds narrow floats at indices"
        raise lacking("ONNX", symbol, why, "cast to float32 before, and back after")
    if x.dtype is DType.bool:  # whose sum is or
        wide = [x.cast(DType.int64), updates.cast(DType.int64), indices]
        return _index_add(body, symbol, wide).cast(DType.bool)
    axis, index_shape = symbol.attrs["axis"] or 0, symbol.args[2].shape
    is_flat = symbol.attrs["axis"] is None
    shape = (symbol.size,) if is_flat else symbol.shape
    x = with_shape(body, x, shape) if is_flat else x
    before, after = shape[:axis], shape[axis + 1 :]
    updates = body.op("Expand", [updates, body.shape((*before, *index_shape, *after))], x.dtype)
    count = symbol.args[2].size
    updates = with_shape(body, updates, (*before, count, *after))
    places = with_shape(body, _places(indices), (count, *(1 for _ in after)))
    places = body.op("Expand", [places, body.shape((*before, count, *after))], DType.int64)
    inputs = [x, places, updates]
    result = body.op("ScatterElements", inputs, x.dtype, axis=axis, reduction="add")
    return with_shape(body, result, symbol.shape) if is_flat else result


# -- creation


def _constant(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    return body.constant(symbol.attrs["value"], onnx_dtype(symbol.dtype), body.prefix)


def _full(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    value = scalar(symbol.attrs["value"], symbol.dtype, symbol.graph.tf32)
    return _expand(body, symbol, [body.number(value, onnx_dtype(symbol.dtype))])


def _range_of(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    start, step, size = (symbol.attrs[name] for name in ("start", "step", "size"))
    places = _positions_below(body, size)
    ranged(symbol.dtype, start, step, 0)  # which refuses numbers that are not of the dtype
    if symbol.dtype.is_float:
        line = places.cast(DType.float64) * float(step) + float(start)
        return cast_values(line, line.dtype, symbol.dtype, symbol.graph.tf32)
    places = body.require(places, body.size(size) <= _longest(symbol.dtype, start, step))
    return (places * _wrapped(step) + _wrapped(start)).cast(onnx_dtype(symbol.dtype))


def _longest(dtype: DType, start: int, step: int) -> int:
    """Return the number of range values from `start` on that fit a dtype."""
    room = (dtype.max - start if step > 0 else start - dtype.min) // abs(step) if step else 2**62
    return min(int(room) + 1, 2**62) if dtype.min <= start <= dtype.max else 0


def _wrapped(value: int) -> int:
    return (int(value) + 2**63) % 2**64 - 2**63


def _eye(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    rows, columns = (_positions_below(body, symbol.attrs[name]) for name in ("rows", "columns"))
    rows = body.op("Unsqueeze", [rows + symbol.attrs["offset"], body.ints([1])], DType.int64)
    return cast_values(rows.equal(columns), DType.bool, symbol.dtype, symbol.graph.tf32)


MOVES: Mapping[str, Row] = {
    "reshape": reshape,
    "broadcast_to": _expand,
    "permute": lambda body, symbol, args: turned(body, args[0], symbol.attrs["dims"]),
    "squeeze": _along("Squeeze"),
    "unsqueeze": _along("Unsqueeze"),
    "slice": _sliced,
    "flip": lambda body, symbol, args: reversed_along(body, args[0], symbol.attrs["axis"]),
    "roll": _rolled,
    "pad": _padded,
    "tile": _tiled,
    "concat": lambda body, symbol, args: body.op(
        "Concat", args, args[0].dtype, axis=symbol.attrs["axis"]
    ),
    "gather": _indexed("Gather"),
    "take_along": _indexed("GatherElements"),
    "scatter": _indexed("ScatterElements"),
    "index_add": _index_add,
    "constant": _constant,
    "full": _full,
    "range": _range_of,
    "eye": _eye,
    "shape_of": lambda body, symbol, args: body.op("Shape", args, DType.int64),
}


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
