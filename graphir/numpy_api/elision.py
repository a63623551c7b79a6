"""Temporary elision: the results of operators that NumPy writes into the memory of an operand.

From 256 KiB on, an operator on an array that nothing else references writes its result into that
array, so that the result lies in memory as the array does. Traces and recordings hold references
of their own, so they compare the reference count of an operand with that of a temporary in an
experiment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dis import opmap
from functools import cache
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir.hints import ArrayOrNumber

Array = NDArray[Any]

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
