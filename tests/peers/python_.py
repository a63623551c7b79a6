"""Python's own numbers: bool, int, float, complex, and the operators of the language."""

from __future__ import annotations

import cmath
import operator
from collections.abc import Callable
from typing import Any

from graphir import DType
from tests.peers import OPERATORS as _OPERATORS

DTYPES: dict[DType, type] = {
    DType.bool: bool,
    DType.weak_int: int,
    DType.weak_float: float,
    DType.weak_complex: complex,
}
_OURS = {theirs: ours for ours, theirs in DTYPES.items()}
_BITS = 256


def _pow(x: Any, y: Any) -> Any:
    if isinstance(x, int) and isinstance(y, int) and y > _BITS and abs(x) > 1:
        raise OverflowError("the power is beyond 64 bits, and may be beyond the memory")
    return x**y


def _left_shift(x: Any, y: Any) -> Any:
    if isinstance(x, int) and isinstance(y, int) and y > _BITS:
        return _left_shift(x, _BITS)  # beyond 64 bits as well, and not beyond the memory
    return x << y


OPERATORS = {**_OPERATORS, "pow": _pow, "left_shift": _left_shift}
OPS: dict[str, Callable[..., Any]] = {
    "logical_not": operator.not_,
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "conj": lambda x: x.conjugate(),
    "is_nan": cmath.isnan,
    "is_inf": cmath.isinf,
    "is_finite": cmath.isfinite,
}


def dtype_of(x: Any) -> DType | None:
    """The dtype of a number; None of an int beyond 64 bits, which graphir has not."""
    return None if type(x) is int and not -(2**63) <= x < 2**63 else _OURS.get(type(x))
