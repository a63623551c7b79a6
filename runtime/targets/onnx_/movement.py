"""Movement and creation ops in ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphir.ops.dims import Size
from graphir.promotion.scalars import scalar
from graphir.public import DType, Symbol
from graphir.runtime.targets.emission import lacking
from graphir.runtime.targets.onnx_.body import OnnxBody, Row, onnx_dtype
from graphir.runtime.targets.onnx_.values import OnnxValue, cast_values, greater, lesser
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
