"""Tiling of iteration spaces into blocks, operands addressed by block, and threads over blocks.

A region numbers the elements of its shape in row-major order. A block is a range of these numbers.
Each kind of operand answers a block with a 1-d array, as a view if its layout allows.
"""

from __future__ import annotations

import itertools
import math
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import ArrayLike

from graphir.hints import Array
from graphir.public import ExecutionError
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.memory import Workspace, take
from graphir.runtime.workers import run_aside

Range: TypeAlias = tuple[int, int]


def in_order(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Return an array in C order that shows a layout, without memory for all of its elements."""
    strides = [dtype.itemsize * math.prod(shape[k + 1 :]) for k in range(len(shape))]
    return strided(np.empty(1, dtype), tuple(shape), strides)


def strided(array: Array, shape: tuple[int, ...], strides: Sequence[int]) -> Array:
    """Return an array of any shape and strides, in bytes, that begins where `array` begins.

    NumPy's as_strided hands the name of the dtype on, and refuses that of float8_e5m2 (<f1).
    """
    plain = array.view(f"V{array.itemsize}")
    return as_strided(plain, shape, strides).view(array.dtype)


class Uniform(Sequence[Range]):
    """The blocks of `block` elements that cover `size` elements; the last block may be smaller."""

    def __init__(self, size: int, block: int) -> None:
        self.size, self.block = size, block

    def __len__(self) -> int:
        return -(-self.size // self.block)

    @overload
    def __getitem__(self, index: int) -> Range: ...
    @overload
    def __getitem__(self, index: slice) -> list[Range]: ...
    def __getitem__(self, index: int | slice) -> Range | list[Range]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index >= len(self):
            raise IndexError(index)
        return index * self.block, min((index + 1) * self.block, self.size)


def boxes(a: int, b: int, shape: Sequence[int]) -> Iterator[tuple[slice | int, ...]]:
    """Yield the indices of the boxes that together are elements a to b, in row-major order."""
    inner = math.prod(shape[1:])
    (first, low), (last, high) = divmod(a, inner), divmod(b, inner)
    if first == last:
        yield from ((first, *rest) for rest in boxes(low, high, shape[1:]))
        return
    if low:
        yield from ((first, *rest) for rest in boxes(low, inner, shape[1:]))
        first += 1
    if first < last:
        yield (slice(first, last),)
    if high:
        yield from ((last, *rest) for rest in boxes(0, high, shape[1:]))


class FlatSpace:
    """A contiguous operand or result."""

    def __init__(self, array: Array) -> None:
        self.array = array.reshape(-1)

    def block(self, a: int, b: int) -> Array:
        """Return elements a to b as a view."""
        return self.array[a:b]


class Same:
    """An operand of one element."""

    def __init__(self, array: Array) -> None:
        self.array = array.reshape(())

    def block(self, a: int, b: int) -> Array:
        """Return the element as a 0-d array."""
        return self.array


class Tiled:
    """An operand broadcast along leading axes, stored as several contiguous copies of its period.

    `period` is the number of elements before the operand repeats. The copies exceed `block` by a
    period at least, so that every block is a view.
    """

    def __init__(self, array: Array, period: int, block: int) -> None:
        self.period = period
        self.array = np.tile(array.reshape(-1), -(-block // period) + 1)

    def block(self, a: int, b: int) -> Array:
        """Return elements a to b as a view of the copies."""
        start = a % self.period
        return self.array[start : start + b - a]


class Strided:
    """An operand of any other layout, copied block by block."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def block(self, a: int, b: int) -> Array:
        """Return a contiguous copy of elements a to b."""
        copy = np.empty(b - a, self.array.dtype)
        at = 0
        for box in boxes(a, b, self.array.shape):
            part = self.array[box]
            copy[at : at + part.size].reshape(part.shape)[...] = part
            at += part.size
        return copy


class RowSpace:
    """An operand or a result of any layout whose blocks have whole rows of the first axis.

    `row` is the number of elements of the iteration space for each element of the first axis. A
    block is a view of the array's own shape, or a contiguous copy of that view with `copied`.
    """

    def __init__(self, array: Array, shape: tuple[int, ...], row: int, copied: bool) -> None:
        self.array = array if array.shape == shape else np.broadcast_to(array, shape)
        self.row, self.copied = row, copied

    def block(self, a: int, b: int) -> Array:
        """Return the rows that elements a to b make up."""
        part = self.array[a // self.row : b // self.row]
        return np.ascontiguousarray(part) if self.copied else part


class Entering:
    """An operand converted on load."""

    def __init__(self, operand: Operand, function: Callable[[Array], Array]) -> None:
        self.operand, self.function = operand, function

    def block(self, a: int, b: int) -> Array:
        """Return elements a to b after the conversion."""
        return self.function(self.operand.block(a, b))


Operand: TypeAlias = "FlatSpace | Same | Tiled | Strided | RowSpace | Entering"


def laid_out(array: Array, shape: tuple[int, ...], block: int) -> Operand:
    """Return an array as an operand of the iteration space of `shape`, to which it broadcasts.

    `block` is the number of elements of the longest block.
    """
    if array.shape == shape and array.flags.c_contiguous:
        return FlatSpace(array)
    if array.size == 1:
        return Same(array)
    dims = array.shape
    while dims and dims[0] == 1:
        dims = dims[1:]
    period = math.prod(dims)
    if dims == shape[len(shape) - len(dims) :] and period <= block:
        return Tiled(array, period, block)
    return Strided(np.broadcast_to(array, shape))


def aligned(value: ArrayLike, size: int = 0) -> Array:
    """Return an array as machine code reads it: a copy if it is not aligned.

    An array that is strided, and small beside `size` elements, is a copy too, such as the columns
    of a table of points.
    """
    array = np.asarray(value)
    is_small = array.size * COST.SMALL_INPUT <= size
    if not array.flags.aligned or (is_small and not array.flags.c_contiguous):
        return array.copy()
    return array


class _Helpers:
    """Threads that help in one call; a thread that starts after the call's end does nothing."""

    def __init__(self, work: Callable[[], None], count: int) -> None:
        self._work: Callable[[], None] | None = work
        self._lock, self._running, self._idle = Lock(), 0, Lock()
        self._idle.acquire()
        try:
            for _ in range(count):
                run_aside(self._help)
        except RuntimeError:  # the system has no more threads: the caller does their share
            return

    def _help(self) -> None:
        with self._lock:
            work = self._work
            self._running += work is not None
        if work:
            work()
            del work
            with self._lock:
                self._running -= 1
                if not self._running and self._idle.locked():
                    self._idle.release()

    def end(self) -> None:
        """Keep further threads from beginning, and wait for the running ones.

        An exception of a signal handler is raised only after all threads are done.
        """
        interrupt: BaseException | None = None
        while self._work or self._running:
            try:
                with self._lock:
                    self._work = None
                while self._running:
                    self._idle.acquire()
            except BaseException as error:
                interrupt = error
        if interrupt:
            raise interrupt


def share(
    count: int,
    work: Callable[[Workspace, Iterator[int]], None],
    threads: int,
    workspace: Workspace,
    free: list[Workspace],
) -> None:
    """Run `work` on the numbers below `count`, in this thread and in up to `threads` - 1 helpers.

    This thread uses `workspace`; each helper takes one from `free`. Each thread repeatedly takes
    the next number. An exception in a thread stops the other threads; `share` raises it once all of
    them are done.
    """
    if min(threads, count) <= 1:
        work(workspace, iter(range(count)))
        return
    left = itertools.count()
    errors: list[BaseException] = []

    def numbers() -> Iterator[int]:
        for i in left:
            if i >= count or errors:
                return
            yield i

    def helper() -> None:
        other = take(free)
        try:
            other.run(work, other, numbers())
        except BaseException as error:
            errors.append(error)
        finally:
            free.append(other)

    helpers = _Helpers(helper, min(threads, count) - 1)
    try:
        work(workspace, numbers())
    except BaseException as error:
        errors.insert(0, error)
    finally:
        helpers.end()
    try:
        if errors:
            raise errors[0]
    finally:
        errors.clear()  # or the error, whose traceback has this frame, would keep all arrays


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def require_count(name: str, value: int | None) -> int | None:
    """Return a count as an int, or None for None.

    Raises ExecutionError unless the count, the argument `name`, is an integer of at least 1.
    """
    if value is None:
        return None
    try:
        count = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        count = 0
    if count < 1:
        raise ExecutionError(f"{name} is a count of at least 1", got=f"{value!r}")
    return count
