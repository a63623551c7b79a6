"""STABLEHLO: what each op is, a function of values that is called as those of kernels.py are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from runtime.targets import stablehlo_math as math
from runtime.targets import stablehlo_movement as movement
from runtime.targets import stablehlo_rows as rows
from runtime.targets.stablehlo_values import Value, where

Row = Callable[..., Value]


def _op(name: str) -> Row:
    """An elementwise op that StableHLO, or CHLO, has by this name."""
    return lambda x, *others: x.op(name, *others)


def _float_only(name: str) -> Row:
    """An op of floats that does nothing to integers."""
    return lambda x: x.op(name) if x.dtype.format else x


_DIRECT = {
    **{name: name for name in ("add", "subtract", "multiply", "divide", "negative", "atan2")},
    **{name: name for name in ("sqrt", "log", "tan", "tanh")},
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
    **{name: f"chlo.{name}" for name in ("asin", "acos", "atan", "sinh", "cosh", "erf")},
    **{name: f"chlo.{name}" for name in ("asinh", "acosh", "atanh")},
    "nextafter": "chlo.next_after",
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
    **{name: _op(theirs) for name, theirs in _DIRECT.items()},
    **{name: partial(math.compared, how) for name, how in _DIRECTIONS.items()},
    # -- arithmetic
    "floor_divide": math.floor_divide,
    "remainder": math.remainder,
    "pow": math.power,
    "maximum": math.maximum,
    "minimum": math.minimum,
    "positive": lambda x: x,
    "abs": math.magnitude,
    "sign": math.sign,
    "square": lambda x: x * x,
    "reciprocal": math.reciprocal,
    "relu": lambda x: x.op("maximum", 0),
    "floor": _float_only("floor"),
    "ceil": _float_only("ceil"),
    "trunc": lambda x: where(x < 0, x.op("ceil"), x.op("floor")) if x.dtype.format else x,
    "round": math.round_,
    # -- functions of floats
    "rsqrt": lambda x: 1 / x.op("sqrt"),
    "log2": partial(math.logarithm, base=2),
    "log10": partial(math.logarithm, base=10),
    "silu": lambda x: x * x.op("logistic"),
    "gelu": math.gelu,
    "hypot": lambda x, y: math.magnitude(math.complex_of(x, y)),
    "logaddexp": math.logaddexp,
    "copysign": math.copysign,
    # -- predicates, bits, selection
    "is_nan": lambda x: x.ne(x),
    "is_inf": math.is_inf,
    "is_finite": math.is_finite,
    "signbit": math.signbit,
    "left_shift": partial(math.shifted, "left"),
    "right_shift": partial(math.shifted, "right"),
    "where": where,
    "clip": lambda x, low, high: math.minimum(math.maximum(x, low), high),
    # -- complex numbers
    "real": math.real,
    "imag": math.imag,
    "conj": math.conj,
    "as_complex": math.complex_of,
    # -- reductions and rows
    "sum": rows.total,
    "prod": rows.product,
    "max": rows.greatest_of,
    "min": rows.least_of,
    "mean": rows.mean,
    "var": rows.var,
    "std": rows.std,
    "any": rows.reduced(Value.__or__, lambda dtype: False),
    "all": rows.reduced(Value.__and__, lambda dtype: True),
    "argmax": rows.located("max"),
    "argmin": rows.located("min"),
    "cumulative_sum": rows.accumulated(Value.__add__, 0),
    "cumulative_prod": rows.accumulated(Value.__mul__, 1),
    "softmax": rows.softmax,
    "logsoftmax": rows.logsoftmax,
    "layer_norm": rows.layer_norm,
    "sort": rows.sort,
    "argsort": rows.argsort,
    "searchsorted": rows.searchsorted,
    # -- contractions
    "matmul": rows.matmul,
    "tensordot": rows.tensordot,
    "outer": rows.outer,
    # -- movement
    "reshape": Value.reshape,
    "broadcast_to": Value.broadcast,
    "rebind": movement.rebind,
    "transpose": movement.transpose,
    "permute": movement.permute,
    "squeeze": movement.squeeze,
    "unsqueeze": movement.unsqueeze,
    "slice": movement.sliced,
    "flip": movement.flip,
    "roll": movement.roll,
    "pad": movement.pad,
    "tile": movement.tile,
    "repeat": movement.repeat,
    "concat": movement.concat,
    "stack": movement.stack,
    "gather": movement.gather,
    "take_along": movement.take_along,
    "scatter": movement.scatter,
}
