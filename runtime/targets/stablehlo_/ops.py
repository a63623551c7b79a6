"""STABLEHLO: the table of primitive ops as functions of values, with the kernels' parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from graphir.runtime.targets.stablehlo_ import contractions, movement, order, rows
from graphir.runtime.targets.stablehlo_ import elementwise as math
from graphir.runtime.targets.stablehlo_.values import HloValue, where

Row = Callable[..., HloValue]


def _op(name: str) -> Row:
    """Return the row of an elementwise op of StableHLO or CHLO."""

    def row(x: HloValue, *others: HloValue) -> HloValue:
        return x.op(name, *others)

    return row


_DIRECT = {
    **{name: name for name in ("add", "subtract", "multiply", "atan2")},
    **{name: name for name in ("sqrt", "cbrt", "log", "tan", "tanh")},
    **{name: name for name in ("floor", "ceil", "sign")},
    "negative": "negate",
    "round": "round_nearest_even",
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
COMPOSITES = frozenset({"sigmoid", "cbrt"})
"""The composite ops that StableHLO has itself."""

STABLEHLO: Mapping[str, Row] = {
    **{name: _op(theirs) for name, theirs in _DIRECT.items()},
    **{name: partial(order.compared, how) for name, how in _DIRECTIONS.items()},
    # -- arithmetic
    "divide": HloValue.__truediv__,
    "floor_divide": math.floor_divide,
    "fmod": math.fmod,
    "pow": math.power,
    "maximum": order.maximum,
    "minimum": order.minimum,
    "abs": math.magnitude,
    "reciprocal": math.reciprocal,
    # -- functions of floats
    "gelu": math.gelu,
    # -- predicates, bits, selection
    "signbit": math.signbit,
    "left_shift": partial(math.shifted, "left"),
    "right_shift": partial(math.shifted, "right"),
    "where": where,
    # -- complex numbers
    "real": math.real,
    "imag": math.imag,
    "as_complex": math.complex_of,
    # -- reductions and rows
    "sum": rows.total,
    "prod": rows.product,
    "max": rows.greatest_of,
    "min": rows.least_of,
    "any": rows.any_of,
    "all": rows.all_of,
    "argmax": rows.located("max"),
    "argmin": rows.located("min"),
    "cumulative_sum": rows.accumulated(HloValue.__add__, 0),
    "cumulative_prod": rows.accumulated(HloValue.__mul__, 1),
    "sort": rows.sort,
    "argsort": rows.argsort,
    "searchsorted": rows.searchsorted,
    # -- contractions
    "matmul": contractions.matmul,
    # -- movement
    "reshape": HloValue.reshape,
    "broadcast_to": HloValue.broadcast,
    "rebind": movement.rebind,
    "permute": movement.permute,
    "slice": movement.sliced,
    "flip": movement.flip,
    "pad": movement.pad,
    "concat": movement.concat,
    "gather": movement.gather,
    "take_along": movement.take_along,
    "scatter": movement.scatter,
    "index_add": movement.index_add,
}
