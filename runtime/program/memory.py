"""Memory that is used again: of scratch slots, and of large results that nobody holds any more."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from contextvars import Context
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from runtime.program.cost_model import (
    KEPT_RESULTS,
    KEPT_VIEWS,
    RECYCLED,
)
from runtime.references import counts_references

Array: TypeAlias = NDArray[Any]
Storage: TypeAlias = "np.dtype[Any]"


class ScratchView(NamedTuple):
    """Scratch memory that is needed: a slot, and how its first elements are read."""

    slot: int
    dtype: Storage
    shape: tuple[int, ...]


class Need:
    """The scratch memory that something needs; known by identity, as the key of what was found."""

    def __init__(self, views: Iterable[ScratchView]) -> None:
        self.views = tuple(views)


class Lane:
    """What one thread at a time works with: scratch memory, and a context where NumPy is silent.

    NumPy keeps its error state in a context variable, and entering a context that has it set costs
    a tenth of what np.errstate does.
    """

    def __init__(self) -> None:
        self.run = Context().run
        self.run(_ignore)
        self._buffers: list[Array] = []
        self._views: dict[Need, tuple[Array, ...]] = {}

    def views(self, need: Need) -> tuple[Array, ...]:
        """Scratch memory, as it is needed; the same that was there before."""
        scratch = self._views.get(need)
        if scratch is None:
            sizes = [math.prod(view.shape) * view.dtype.itemsize for view in need.views]
            for view, size in zip(need.views, sizes, strict=True):
                self._grow(view.slot, size)
            if len(self._views) >= KEPT_VIEWS:
                self._views.clear()
            scratch = self._views[need] = tuple(
                self._buffers[view.slot][:size].view(view.dtype).reshape(view.shape)
                for view, size in zip(need.views, sizes, strict=True)
            )
        return scratch

    def _grow(self, slot: int, size: int) -> None:
        while len(self._buffers) <= slot:
            self._buffers.append(np.empty(0, np.uint8))
        if self._buffers[slot].size < size:
            self._buffers[slot] = np.empty(size, np.uint8)
            self._views.clear()


def _ignore() -> None:
    np.seterr(all="ignore")


def take(free: list[Lane]) -> Lane:
    """One of the lanes that nobody uses, or a new one; it is given back by appending it."""
    try:
        return free.pop()
    except IndexError:
        return Lane()


class Recycler:
    """Arrays whose memory may have been that of others, which nobody holds any more.

    Small ones are simply new. What has been handed out is known by its number of references, so
    where there is no lock on these (free-threaded Python) all are new.
    """

    def __init__(self) -> None:
        self._memories: list[Array] = []

    def empty(self, shape: tuple[int, ...], dtype: Storage) -> Array:
        """An array of any contents."""
        size = math.prod(shape) * dtype.itemsize
        if size < RECYCLED or not counts_references():
            return np.empty(shape, dtype)
        return self._memory(size).view(dtype).reshape(shape)

    def _memory(self, size: int) -> Array:
        for _ in range(len(self._memories)):
            try:
                memory = self._memories.pop(0)
            except IndexError:  # another thread was here
                break
            free = sys.getrefcount(memory) == _ALONE
            if free and memory.size != size:
                continue  # of other sizes: given back
            self._memories.append(memory)
            if free:
                return memory
        memory = np.empty(size, np.uint8)
        self._memories.append(memory)
        memories = self._memories.copy()  # other threads change the list itself
        while sum(memory_.size for memory_ in memories) > max(KEPT_RESULTS, size):
            memories.pop(0)
        self._memories = memories
        return memory


def _alone() -> int:
    """The references to what only a local variable holds: 2, and 1 where loads borrow (3.14)."""
    memory = object()
    return sys.getrefcount(memory)


_ALONE = _alone()
