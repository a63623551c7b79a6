"""What graphs under the rules "max" mean, found independently of graphir.

It knows the published table of promotions, the NumPy function of each op, and exact conversions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np

from graphir import ExecutionError
from tests import GOLDEN

TABLE = json.loads((GOLDEN / "max.json").read_text())["table"]
# As printed these four cells contradict the lattice; their mirror images are right.
for _a in ("bool", "int8"):
    for _b in ("index", "address"):
        TABLE[_a][_b] = TABLE[_b][_a]

STORAGE: dict[str, Any] = {"bfloat16": ml_dtypes.bfloat16, "tensor_float32": np.float32}
STORAGE |= {"index": np.uint64, "address": np.uint64}
# Significant bits, least and greatest exponent of the normal numbers (IEEE 754-2019, table 3.5).
FORMATS = {
    "float16": (11, -14, 15),
    "bfloat16": (8, -126, 127),
    "tensor_float32": (11, -126, 127),
    "float32": (24, -126, 127),
    "float64": (53, -1022, 1023),
}
COMPUTED = dict.fromkeys(("float16", "bfloat16", "tensor_float32"), "float32")


@np.errstate(all="ignore")
def evaluate(graph: Any, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of a graph under "max" of ops in FUNCTIONS, casts, inputs and constants."""
    given, values = iter(inputs), dict[int, tuple[Any, str]]()
    needed = {symbol.index for symbol in graph.outputs}
    for symbol in reversed(graph.symbols):
        needed.update(arg.index for arg in symbol.args if symbol.index in needed)
    for symbol in graph.symbols:
        if symbol.op.name != "input" and symbol.index not in needed:
            continue
        operands = [values[arg.index] for arg in symbol.args]
        name, attrs, ties = symbol.op.name, symbol.attrs, graph.tf32
        if name == "input":
            found = next(given), str(symbol.dtype)
            found = convert(*found, found[1], ties), found[1]
        elif name == "constant":
            found = attrs["value"], str(symbol.dtype)
        elif name == "cast":
            found = convert(*operands[0], str(attrs["to"]), ties), str(attrs["to"])
        else:
            found = _computed(name, attrs, operands, ties)
        assert found[1] == str(symbol.dtype), repr(symbol)
        values[symbol.index] = found
    return [values[symbol.index][0] for symbol in graph.outputs]


def _computed(name: str, attrs: Any, operands: list[tuple[Any, str]], ties: str) -> Any:
    """The value of an op and its dtype: operands to their join, compute, round."""
    condition, joined = operands[: name == "where"], operands[name == "where" :]
    dtype = reduce(lambda a, b: TABLE[a][b], [dtype for _, dtype in joined])
    if name == "divide" and dtype not in FORMATS:
        dtype = "float64"
    if name.startswith(("sum", "prod", "cumulative")) and attrs["dtype"]:
        dtype = str(attrs["dtype"])
    wide = COMPUTED.get(dtype, dtype)
    arrays = [convert(convert(*one, dtype, ties), dtype, wide, ties) for one in joined]
    operands = _broadcast([x for x, _ in condition] + arrays)
    value = np.asarray(FUNCTIONS[name](*operands, **attrs))
    if name.startswith("arg"):
        dtype = str(attrs["dtype"] or "int64")
        return convert(value, "int64", dtype, ties), dtype
    if value.dtype == np.bool_:
        return value, "bool"
    return convert(value, wide, dtype, ties), dtype


def _broadcast(arrays: list[Any]) -> list[Any]:
    return [np.array(x, order="C") for x in np.broadcast_arrays(*arrays)]


def convert(array: Any, source: str, target: str, ties: str) -> Any:
    """The values of an array, one by one, in another dtype."""
    if source == target != "tensor_float32":
        return array
    storage = np.dtype(STORAGE.get(target, target))
    exact = array.astype(np.float64) if source in FORMATS else array
    converted = [_converted(value, target, storage, ties) for value in exact.ravel().tolist()]
    return np.array(converted, None if converted else storage).astype(storage).reshape(array.shape)


def _converted(value: Any, target: str, storage: Any, ties: str) -> Any:
    if target == "bool":
        return value != 0
    if target in FORMATS:
        return _rounded(value, *FORMATS[target], ties == "away" and target == "tensor_float32")
    limits = np.iinfo(storage)
    if isinstance(value, float):
        whole = 0 if math.isnan(value) else value if math.isinf(value) else math.trunc(value)
        return storage.type(limits.max if whole > limits.max else max(whole, limits.min))
    return np.array(value % 2**limits.bits, np.uint64).astype(storage)


def _rounded(value: Any, bits: int, low: int, high: int, away: bool) -> float:
    """To the nearest of a binary format; ties to even, or away from zero."""
    if value == 0 or not math.isfinite(value):
        return float(value)
    exact = abs(Fraction(value))
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    exponent -= exact < Fraction(2) ** exponent
    step = Fraction(2) ** (max(exponent, low) - bits + 1)
    count = math.floor(exact / step + Fraction(1, 2)) if away else round(exact / step)
    size = float(count * step) if count * step < 2 ** (high + 1) else math.inf
    return math.copysign(size, value)


@np.errstate(all="ignore")
def same(one: Any, other: Any) -> bool:
    """Equal in dtype, shape and bits; any NaN equals any NaN, and -0.0 is not 0.0."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind == "c":
        return same(one.real, other.real) and same(one.imag, other.imag)
    bits = f"u{one.itemsize}"
    equal = np.atleast_1d(one).view(bits) == np.atleast_1d(other).view(bits)
    return bool(np.all(equal | (np.not_equal(one, one) & np.not_equal(other, other))))


def _reduction(function: Any) -> Any:
    return lambda x, axis, keepdims, dtype=None: function(x, axis=axis, keepdims=keepdims)


def _sum(function: Any) -> Any:
    return lambda x, axis, keepdims, dtype: function(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def _whole(function: Any) -> Any:
    """A function that returns integers as they are: NumPy before 2.1 returned floats."""
    return lambda x: x if x.dtype.kind in "bui" else function(x)


FUNCTIONS: dict[str, Any] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "fmod": np.fmod,
    "pow": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "negative": np.negative,
    "abs": np.abs,
    "positive": np.array,
    "sign": np.sign,
    "square": np.square,
    "reciprocal": np.reciprocal,
    "floor": _whole(np.floor),
    "ceil": _whole(np.ceil),
    "trunc": _whole(np.trunc),
    "round": _whole(np.rint),
    "relu": lambda x: np.maximum(x, np.zeros_like(x)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sqrt": np.sqrt,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "log10": np.log10,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "logaddexp": np.logaddexp,
    "copysign": np.copysign,
    "nextafter": np.nextafter,
    "signbit": lambda x: np.signbit(x) if x.dtype.kind == "f" else x < np.zeros_like(x),
    "is_nan": np.isnan,
    "is_inf": np.isinf,
    "is_finite": np.isfinite,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "greater": np.greater,
    "less_equal": np.less_equal,
    "greater_equal": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "logical_not": np.logical_not,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_invert": np.invert,
    "where": np.where,
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
    "clip": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "sum": _sum(np.sum),
    "prod": _sum(np.prod),
    "max": _reduction(np.max),
    "min": _reduction(np.min),
    "any": _reduction(np.any),
    "all": _reduction(np.all),
    "argmax": _reduction(np.argmax),
    "argmin": _reduction(np.argmin),
    "cumulative_sum": lambda x, axis, dtype: np.cumsum(x, axis, x.dtype),
    "cumulative_prod": lambda x, axis, dtype: np.cumprod(x, axis, x.dtype),
}


def outcome(run: Any, *inputs: Any) -> Any:
    """The outputs as a tuple, or ExecutionError itself where running raises it."""
    try:
        found = run(*inputs)
    except ExecutionError:
        return ExecutionError
    return found if isinstance(found, tuple) else (found,)


def agree(one: Any, other: Any) -> bool:
    """Equal in dtype, shape and bits, all NaN alike; or both an error."""
    if one is ExecutionError or other is ExecutionError:
        return one is other
    return len(one) == len(other) and all(map(same, one, other))
