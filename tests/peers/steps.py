"""What random programs are made of: steps, operators, literals and the scalars of NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from graphir import DType, Symbol
from tests.peers import COMPARISONS as _COMPARISONS
from tests.peers import IN_PLACE as _IN_PLACE
from tests.peers import OPERATORS as _OPERATORS

Array: TypeAlias = np.ndarray[Any, Any]


class Value(NamedTuple):
    """An operand: what a step or input gave, counted around those that there are."""

    place: int


class Step(NamedTuple):
    """An op on values and literals; `to` is the dtype of a cast."""

    op: str
    operands: tuple[Any, ...]
    to: DType | None = None


class Program(NamedTuple):
    """Inputs, each of a dtype, and steps on them."""

    inputs: tuple[tuple[DType, Array], ...]
    steps: tuple[Step, ...]


IN_PLACE = {call.__name__: op for op, call in _IN_PLACE.items() if op != "matmul"}
"""In-place operators, by their names in the module operator, and the ops that they compute."""


def _augmented(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)
    return lambda x, y: function(x if isinstance(x, Symbol) else deepcopy(x), y)


OPERATORS = {**_OPERATORS, **{name: _augmented(name) for name in IN_PLACE}}
ARITHMETIC = ("add", "subtract", "multiply")
DIVISIONS = ("divide", "floor_divide", "remainder")
BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")
SHIFTS = ("left_shift", "right_shift")
REDUCTIONS = ("sum", "prod", "max", "min", "mean", "any", "all", "argmax", "argmin")
ROWS = ("sort", "argsort", "cumulative_sum", "cumulative_prod")
FUNCTIONS = (
    *("sign", "square", "reciprocal", "sqrt", "floor", "ceil", "trunc", "round"),
    *("is_nan", "is_inf", "is_finite", "logical_not", "real", "imag", "conj"),
)
COMPARISONS = tuple(_COMPARISONS)
MOVES: dict[str, Callable[[tuple[int, ...]], dict[str, Any]]] = {
    "reshape": lambda shape: {"shape": (*shape[1:], *shape[:1])},
    "broadcast_to": lambda shape: {"shape": (2, 3)},
    "transpose": lambda shape: {},
    "flip": lambda shape: {},
    "unsqueeze": lambda shape: {"axis": 0},
    "concat": lambda shape: {},
    "stack": lambda shape: {},
}
"""Movement, by the attributes that it has on an operand of a shape."""
OPS = (*ARITHMETIC * 4, "maximum", "minimum", *COMPARISONS, "negative", "abs", "where", "where")
OPS += (*("cast",) * 6, *MOVES, *DIVISIONS * 3, *("pow",) * 4, *BITWISE, *SHIFTS * 2)
OPS += (*IN_PLACE, *("clip",) * 4, "bitwise_invert", "positive", *FUNCTIONS, *REDUCTIONS, *ROWS)
UNARY = {*MOVES, *FUNCTIONS, *REDUCTIONS, *ROWS}
UNARY |= {"negative", "positive", "abs", "bitwise_invert"}
SHAPES = ((2, 3), (3,), ())

LITERALS = (
    *(True, False, 0, 1, -1, 2, 3, 100, 127, 128, -129, 255, 300, 2049, 70000, 2**24 + 1, 2**31),
    *(2**40, 2**63 - 1, -(2**63), 2**63, 2**64),
    *(0.5, 1.0, -0.0, 0.1, 1.5, 2049.0, 65520.0, 1e10, 1e39, 1e300, 1e-40, 1e-320),
    *(float("inf"), float("nan"), 1j, 0.1 + 1e39j),
)
REFUSALS = (TypeError, ValueError, OverflowError, IndexError, ZeroDivisionError)
SCALARS = (
    *(np.float64(1), np.float64(0.1), np.float32(0.1), np.float16(3), np.bool_(True)),
    *(np.int8(100), np.uint8(200), np.int64(2**40), np.complex64(1j)),
)
"""Scalars of NumPy, which are not Python's."""
