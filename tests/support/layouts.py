"""Arrays of the same values as another, lying in memory in other ways."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np


def strided(x: Any) -> Any:
    found = np.zeros([2 * size for size in x.shape], x.dtype)
    found = found[*[slice(None, None, 2)] * x.ndim, ...]
    found[...] = x
    return found


def backwards(x: Any) -> Any:
    turn = (slice(None, None, -1),) * x.ndim
    return x[turn].copy()[turn] if x.ndim else x


def fortran(x: Any) -> Any:
    return np.asfortranarray(x)


def transposed(x: Any) -> Any:
    return x.swapaxes(0, -1).copy().swapaxes(0, -1) if x.ndim else x


def repeated(x: Any) -> Any:
    """The first along each axis again and again, with strides of 0: other values."""
    return np.broadcast_to(x[(slice(0, 1),) * x.ndim], x.shape) if x.size else x


def rows_repeated(x: Any) -> Any:
    """The first row again and again: other values."""
    return np.broadcast_to(x[:1], x.shape) if x.ndim and x.size else x


def unaligned(x: Any) -> Any:
    found = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    found[...] = x
    return found


def read_only(x: Any) -> Any:
    found = x.copy()
    found.flags.writeable = False
    return found


def mapped(x: Any) -> Any:
    if not x.size:
        return x
    with tempfile.TemporaryFile() as file:
        found: Any = np.memmap(file, x.dtype, "w+", shape=x.shape)
    found[...] = x
    return found


def scalar(x: Any) -> Any:
    return x if x.ndim else x[()]


LAYOUTS: tuple[Callable[[Any], Any], ...] = (
    *(np.array, strided, backwards, fortran, transposed, repeated, rows_repeated),
    *(unaligned, read_only, mapped, scalar),
)
