"""Checks of `out=`: the arrays into which a program writes its results."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from graphir import DType, ExecutionError
from graphir.runtime.binding import numpy_name
from graphir.runtime.program.cost_model import COST

Array: TypeAlias = NDArray[Any]


def check_outputs(
    out: Any, dtypes: Sequence[DType], shapes: Sequence[tuple[int, ...]]
) -> list[Array]:
    """Return the arrays of `out` as a list, one array for each output.

    Raises ExecutionError if the count is wrong, or if an array has another dtype or shape than
    its output, is read-only, or shares memory with another array of `out`.
    """
    arrays: list[Any] = (
        list(cast("tuple[Any, ...]", out)) if isinstance(out, (tuple, list)) else [out]
    )
    if len(arrays) != len(dtypes):
        raise ExecutionError(
            f"out must have an array for each of {len(dtypes)} outputs",
            got=str(len(arrays)),
            fix="use a tuple of as many",
        )
    for i, (value, dtype, shape) in enumerate(zip(arrays, dtypes, shapes, strict=True)):
        what = f"out[{i}]" if len(arrays) > 1 else "out"
        if not isinstance(value, np.ndarray):
            raise ExecutionError(f"{what} must be a NumPy array", got=f"a {type(value).__name__}")
        array = cast(Array, value)
        if array.dtype != dtype.storage or array.shape != shape:
            raise ExecutionError(
                f"{what} must be {dtype.storage} of shape {shape}",
                got=f"{array.dtype} of shape {array.shape}",
                fix=f"use np.empty({shape}, {numpy_name(dtype)})",
            )
        if not array.flags.writeable:
            raise ExecutionError(f"{what} is read-only", fix="use a writeable array")
    for (i, array), (j, other) in combinations(enumerate(arrays), 2):
        if _overlap(array, other):
            raise ExecutionError(
                f"out[{i}] and out[{j}] share memory", fix="use an array of its own for each"
            )
    return arrays


def _overlap(array: Array, other: Array) -> bool:
    try:
        return np.shares_memory(array, other, max_work=cast(Any, COST.OVERLAP))
    except np.exceptions.TooHardError:
        return True


def writable_at_once(out: Array, inputs: Sequence[Any]) -> bool:
    """Whether a program may write results into `out` while it still reads the inputs."""
    return out.flags.c_contiguous and not any(np.may_share_memory(out, array) for array in inputs)
