"""ONNX: the nodes that each primitive op of a lowered graph becomes."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
# (A lambda's operands are values, which its line need not say.)

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from graphir import Symbol, ops
from graphir.runtime.targets.onnx_ import functions as fn
from graphir.runtime.targets.onnx_.body import OnnxBody, Row
from graphir.runtime.targets.onnx_.casts import cast_values
from graphir.runtime.targets.onnx_.movement import MOVES
from graphir.runtime.targets.onnx_.rows import ROWS
from graphir.runtime.targets.onnx_.values import OnnxValue


def _of(function: Callable[..., OnnxValue]) -> Row:
    """Return the row of a function of values and of the op's attributes."""
    return lambda body, symbol, args: function(*args, **symbol.attrs)


def _logical(kind: str) -> Row:
    """Return the row of a logical op on bools."""

    def row(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
        first, *rest = args
        return first.op(kind, *rest)

    return row


def _pow(body: OnnxBody, symbol: Symbol, args: Sequence[OnnxValue]) -> OnnxValue:
    x, y = args
    if x.dtype.is_float:
        return fn.float_pow(x, y)
    exponent = symbol.args[1]
    bits = y.dtype.precision
    if exponent.op is ops.constant:
        bits = int(max(exponent.attrs["value"].ravel().tolist(), default=0)).bit_length()
    if y.dtype.family == "int":
        y = body.require(y, y >= 0)
    return fn.integer_pow(x, y, bits)


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
    **{name: _of(fn.direct(theirs)) for name, theirs in _DIRECT.items()},
    "add": _of(fn.or_of_bools("Or", fn.direct("Add"))),
    "multiply": _of(fn.or_of_bools("And", fn.direct("Mul"))),
    "maximum": _of(fn.or_of_bools("Or", fn.greater)),
    "minimum": _of(fn.or_of_bools("And", fn.lesser)),
    "where": lambda body, symbol, args: args[0].where(*args[1:]),
    "floor_divide": _of(fn.floor_divide),
    "fmod": _of(fn.fmod),
    "pow": _pow,
    "negative": _of(OnnxValue.__neg__),
    "abs": _of(OnnxValue.__abs__),
    "expm1": _of(fn.expm1),
    "log1p": _of(fn.log1p),
    "gelu": _of(lambda x, approximate: x * 0.5 * ((x * math.sqrt(0.5)).op("Erf") + 1.0)),
    "atan2": _of(fn.atan2),
    "nextafter": _of(fn.nextafter),
    "signbit": _of(OnnxValue.negative),
    "equal": _of(fn.compared("Equal")),
    "not_equal": _of(lambda x, y: ~fn.compared("Equal")(x, y)),
    "less": _of(fn.compared("Less")),
    "less_equal": _of(fn.compared("LessOrEqual")),
    "greater": _of(fn.compared("Greater")),
    "greater_equal": _of(fn.compared("GreaterOrEqual")),
    "logical_and": _logical("And"),
    "logical_or": _logical("Or"),
    "logical_xor": _logical("Xor"),
    "logical_not": _logical("Not"),
    "bitwise_and": _of(lambda x, y: x & y),
    "bitwise_or": _of(lambda x, y: x | y),
    "bitwise_xor": _of(lambda x, y: x ^ y),
    "bitwise_invert": _of(lambda x: ~x),
    "left_shift": _of(fn.shifted("LEFT")),
    "right_shift": _of(fn.shifted("RIGHT")),
    "cast": _cast,
    "rebind": lambda body, symbol, args: body.shaped(args[0], symbol.shape),
}
"""The row of `as_complex` is missing: ONNX computes with real numbers alone."""

COMPOSITES = frozenset({"softmax", "logsoftmax", "argsort", "squeeze", "unsqueeze", "tile", "roll"})
"""The composite ops that ONNX has itself, or computes with fewer nodes."""
