"""What programs of the Python target do beside NumPy's functions; program_text.py copies it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir.dtypes import DTypeLike


class RefusalError(Exception):
    """What graphir's own errors are in a program that runs without graphir: their text."""

    def __init__(
        self, problem: str, *, op: str = "", reason: str = "", got: str = "", fix: str = ""
    ) -> None:
        what = ": ".join(filter(None, [op, problem, reason]))
        super().__init__("; ".join(filter(None, [what, got and f"got {got}", fix])))


class ExecutionError(RefusalError, ValueError):
    """A value that an op cannot compute with."""


class GraphError(RefusalError, ValueError):
    """A setting that has no meaning."""


class PromotionError(RefusalError, TypeError):
    """A dtype that a conversion does not take."""


def cast_first(dtype: str) -> str:
    """The way out of an op that does not take a dtype, and takes this one."""
    return f"cast first, for example .astype(np.{dtype})"


def checked_input(name: str, x: Any, dtype: DTypeLike, shape: tuple[int, ...]) -> Any:
    """An input, C-contiguous; TypeError or ValueError unless it has this dtype and shape."""
    if not hasattr(x, "dtype"):
        raise TypeError(f"{name} is an array of {np.dtype(dtype)}, not a {type(x).__name__}")
    if x.dtype != dtype:
        raise TypeError(f"{name} is {np.dtype(dtype)}; the array is {x.dtype}")
    if x.shape != shape:
        raise ValueError(f"{name} has shape {shape}; the array has {x.shape}")
    return np.asarray(x, order="C")


def integers(start: float, step: float, size: int, least: int, greatest: int) -> Any:
    """Start + i * step modulo 2**64, as uint64; ValueError where one is out of range."""
    if isinstance(start, float) or isinstance(step, float):
        raise ValueError(f"{start} and {step} are not both integers")
    for value in (start, start + step * (size - 1)) if size else ():
        if not least <= value <= greatest:
            raise ValueError(f"{value} is not in [{least}, {greatest}]")
    return np.arange(size, dtype=np.uint64) * np.uint64(step % 2**64) + np.uint64(start % 2**64)


def sort_along(x: NDArray[Any], axis: int, descending: bool) -> Any:
    """The elements sorted along an axis, NaN last; descending, the reverse of that."""
    # An unstable sort would order 0.0 and -0.0, which compare equal, by its implementation.
    result = np.sort(x, axis=axis, kind="stable" if x.dtype.kind in "fc" else None)
    return np.flip(result, axis).copy() if descending else result


def sort_places(x: NDArray[Any], axis: int, descending: bool, stable: bool = True) -> Any:
    """The indices (int64) that sort along an axis; descending puts NaN first."""
    if descending:
        return x.shape[axis] - 1 - np.flip(sort_places(np.flip(x, axis), axis, False), axis)
    order = np.argsort(x, axis=axis, kind="stable" if stable else None)
    return order.astype(np.int64, copy=False)
