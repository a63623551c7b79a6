"""Temporaries: the operands of operators that nothing but the expression references.

From 256 KiB on, an operator on an array that nothing else references writes its result into that
array (temporary elision), so that the result lies in memory as the array does. Traces and
recordings hold references of their own, so they compare the reference count of an operand with that
of a temporary in an experiment.

In a trace, an operand is a temporary if an experiment counts as many references to one. The
experiment has the methods of symbolic arrays, so that as many frames hold the operands, but its
methods call the functions here that return counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dis import opmap
from functools import cache
from sys import getrefcount
from types import FrameType
from typing import Any

import numpy as np

from graphir.hints import Array, ArrayOrNumber
from graphir.ir.symbol import Symbol
from graphir.numpy_api.arrays.boundary import caller_of_boundary
from graphir.numpy_api.arrays.memory import ArrayValue
from graphir.semantics.library_calls import Keywords

LEAST_BYTES = 256 * 1024
"""NumPy's NPY_MIN_ELIDE_BYTES: smaller arrays are faster to allocate than to check."""
_EITHER = frozenset((np.add, np.multiply, np.bitwise_and, np.bitwise_or, np.bitwise_xor))
"""The operators that NumPy takes for commutative: they write into the right operand too."""
ELIDING = _EITHER | {
    *(np.subtract, np.divide, np.floor_divide, np.left_shift, np.right_shift),
}
"""The ufuncs of the operators that write into a temporary."""


def elided(
    ufunc: np.ufunc, operands: Sequence[Any], temporary: Sequence[bool], dtype: np.dtype[Any]
) -> int | None:
    """Return the position of the operand into which NumPy writes the result of an operator.

    `temporary` says which operands nothing else references, and `dtype` is that of the result.
    """
    if ufunc not in ELIDING or not any(temporary):
        return None
    for place in (0, 1) if ufunc in _EITHER else (0,):
        if not temporary[place] or not isinstance(operands[place], np.ndarray):
            continue
        array: Array = operands[place]
        other = operands[1 - place]
        if array.nbytes < LEAST_BYTES or array.dtype != dtype:
            continue
        if not (array.flags.owndata and array.flags.writeable):
            continue
        if np.shape(other) in ((), array.shape) and _casts_safely(other, dtype):
            return place if _numpy_elides() else None
    return None


def runs_operator(frame: FrameType) -> bool:
    """Whether a frame is at an operator: NumPy's protocols do not tell it from the ufunc's call."""
    return frame.f_code.co_code[frame.f_lasti] == _BINARY_OP


_BINARY_OP = opmap["BINARY_OP"]


def _casts_safely(operand: ArrayOrNumber, dtype: np.dtype[Any]) -> bool:
    if isinstance(operand, (np.ndarray, np.generic)):
        return bool(np.can_cast(operand.dtype, dtype, "safe"))  # pyright: ignore
    return True  # a Python number, with which the result has the dtype of the array


@cache
def _numpy_elides() -> bool:
    """Whether this build of NumPy elides temporaries: an experiment."""
    x = np.zeros((2, LEAST_BYTES // 16))
    transposed = np.zeros(x.shape[::-1]).T
    return (x - transposed).flags.c_contiguous and (transposed.copy("K") - x).flags.f_contiguous


def reference_counts(operands: Sequence[Any]) -> list[int]:
    """Return the reference counts of an operator's operands."""
    return [getrefcount(value) for value in operands]


class _Temporary:
    """An object whose operators return the reference counts of their operands."""

    __slots__ = ("cell",)


def _counts_in_operator(_: None, *operands: Any) -> list[int]:
    return reference_counts(operands)


def _counts_in_ufunc(
    ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Keywords
) -> list[int]:
    return reference_counts(inputs)


def set_experiment(
    operator: Callable[[Any, Callable[..., Any]], Any], ufunc: Callable[[Any], Any]
) -> None:
    """Give the experiment the methods that symbolic arrays have.

    `operator(None, call)` makes a method that calls `call(None, *operands)` as it would call
    `operate`. `ufunc(call)` makes the method `__array_ufunc__`.
    """
    experiment: Any = _Temporary
    experiment.__add__ = operator(None, _counts_in_operator)
    experiment.__array_ufunc__ = ufunc(_counts_in_ufunc)


@cache
def _temporary_counts(is_ufunc: bool) -> list[int]:
    """Return the reference counts of two operands that nothing but the expression references.

    `is_ufunc` says that the left operand is an ndarray, whose operator calls a ufunc.
    """
    return (np.zeros(1) if is_ufunc else _Temporary()) + _Temporary()  # pyright: ignore


def elided_operand(
    ufunc: np.ufunc,
    operands: Sequence[Any],
    counts: Sequence[int],
    dtype: np.dtype[Any],
    is_ufunc: bool = False,
) -> Any:
    """Return the operand into whose memory NumPy writes the result of an operator, or None."""
    if len(operands) != 2:
        return None
    plain_operands = [x.layout if isinstance(x, ArrayValue) else x for x in operands]
    temporary = [
        count == alone and (not isinstance(value, ArrayValue) or value.owns_memory)
        for value, count, alone in zip(operands, counts, _temporary_counts(is_ufunc), strict=True)
    ]
    place = elided(ufunc, plain_operands, temporary, dtype)
    return None if place is None else operands[place]


def operands_of_layout(
    ufunc: np.ufunc, inputs: tuple[Any, ...], counts: Sequence[int], result: Any
) -> tuple[Any, ...]:
    """Return the operands that decide the layout of a ufunc's result.

    That is the temporary alone if an operator of the program, with an ndarray on its left, calls
    the ufunc.
    """
    if ufunc not in ELIDING or type(inputs[0]) is not np.ndarray or not isinstance(result, Symbol):
        return inputs
    if not runs_operator(caller_of_boundary()):
        return inputs
    into = elided_operand(ufunc, inputs, counts, result.dtype.to_numpy(), is_ufunc=True)
    return inputs if into is None else (into,)
