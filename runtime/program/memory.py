"""Memory of a program: scratch slots of threads, large results for reuse, and arrays for `out=`."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from contextvars import Context
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

from graphir.hints import Array
from graphir.public import DType, ExecutionError
from graphir.runtime.binding import numpy_name
from graphir.runtime.program.cost_model import COST, LINE
from graphir.runtime.results import counts_references

Storage: TypeAlias = "np.dtype[Any]"


def long_axes(shape: Iterable[int]) -> list[int]:
    """Return the sizes of a shape's axes without those of size 1."""
    return [size for size in shape if size != 1]


class Box(NamedTuple):
    """A slice of each axis of an array: first elements, ends and positive steps."""

    start: tuple[int, ...]
    stop: tuple[int, ...]
    step: tuple[int, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """The index that selects the slice."""
        return (*map(slice, *self), ...)

    @property
    def rows(self) -> slice:
        """The slice of the first axis."""
        return slice(self.start[0], self.stop[0], self.step[0])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the slice."""
        return tuple([len(range(*bound)) for bound in zip(*self, strict=True)])

    def key_in(self, shape: tuple[int, ...]) -> tuple[Any, ...] | None:
        """Return the index that selects the slice in another shape.

        The answer is None unless the two shapes differ in axes of size 1 alone.
        """
        if long_axes(self.shape) != long_axes(shape):
            return None
        entries: list[slice | int | None] = []
        parts = zip(map(slice, *self), self.shape, strict=True)
        for size in shape:
            if size == 1:
                entries.append(None)
                continue
            for part, count in parts:
                entries.append(part if count != 1 else part.start)
                if count != 1:
                    break
        return (*entries, *[part.start for part, _ in parts], ...)

    def is_contiguous(self, shape: tuple[int, ...]) -> bool:
        """Whether the slice of a contiguous array of some shape is contiguous."""
        inner = False
        for size, full, step in zip(self.shape, shape, self.step, strict=True):
            if (size > 1 and step > 1) or (inner and size < full):
                return False
            inner = inner or size > 1
        return True

    def is_disjoint(self, other: Box) -> bool:
        """Whether the slices of two boxes of one array have no common element."""
        return any(
            a >= d or c >= b or (step == by and (a - c) % step != 0)
            for (a, b, step), (c, d, by) in zip(
                zip(*self, strict=True), zip(*other, strict=True), strict=True
            )
        )

    def is_minor(self, shape: tuple[int, ...]) -> bool:
        """Whether a copy around the slice of an array is a whole one: it is small, or has steps."""
        return 2 * math.prod(self.shape) < math.prod(shape) or any(step != 1 for step in self.step)

    def copy_around(
        self,
        array: Array,
        copied_rows: Sequence[slice] | None = None,
        empty: Callable[..., Array] = np.empty,
    ) -> Array:
        """Return a copy of an array whose elements in the slice are not initialized.

        If the slice is small or has steps, the copy is a whole one. With `copied_rows`, the
        copy has these slices of rows alone. `empty` makes the memory of the copy.
        """
        copy = empty(array.shape, array.dtype)
        if copied_rows is not None:
            for rows in copied_rows:
                copy[rows] = array[rows]
        elif self.is_minor(array.shape):
            copy[...] = array
        else:
            before: list[slice] = []
            bounds = zip(array.shape, map(slice, self.start, self.stop), strict=True)
            for size, part in bounds:
                for edge in (slice(0, part.start), slice(part.stop, size)):
                    copy[*before, edge] = array[*before, edge]
                before.append(part)
        return copy


class Store(NamedTuple):
    """A slice of an array as the memory of a region's result, in place of an update of the slice.

    `source` is the cell of the array and `target` the cell of the array after the update. These are
    the same memory if the update is `in_place`. `shape` is the shape of the array. `copied_rows`
    are the rows that a copy has to have (see updates.py), or None for all rows.
    """

    source: int
    target: int
    box: Box
    shape: tuple[int, ...]
    in_place: bool
    copied_rows: tuple[slice, ...] | None = None

    @property
    def is_contiguous(self) -> bool:
        """Whether the slice is contiguous."""
        return self.box.is_contiguous(self.shape)

    def array(self, source: Array, empty: Callable[..., Array] = np.empty) -> Array:
        """Return the array to write into: `source` itself, or a copy of what the slice leaves."""
        return source if self.in_place else self.box.copy_around(source, self.copied_rows, empty)


class ScratchView(NamedTuple):
    """A view of scratch memory: a slot, and the dtype and shape of the view on its first bytes."""

    slot: int
    dtype: Storage
    shape: tuple[int, ...]


class Need:
    """The views of scratch memory that a block or function needs.

    A workspace uses the object itself, compared by identity, as the key of its cache of views.
    """

    def __init__(self, views: Iterable[ScratchView]) -> None:
        self.views = tuple(views)

    @property
    def bytes(self) -> int:
        """The bytes of all slots together."""
        slots: dict[int, int] = {}
        for view in self.views:
            size = math.prod(view.shape) * view.dtype.itemsize
            slots[view.slot] = max(size, slots.get(view.slot, 0))
        return sum(slots.values())


class Workspace:
    """The working state of one thread at a time: scratch memory, and a context without warnings.

    NumPy keeps its error state in a context variable. `run` calls a function in a context in which
    that variable says "ignore"; entering the context costs a tenth of np.errstate.
    """

    def __init__(self) -> None:
        self.run = Context().run
        self.run(_ignore)
        self._buffers: list[Array] = []
        self._views: dict[Need, tuple[Array, ...]] = {}

    def views(self, need: Need) -> tuple[Array, ...]:
        """Return the views of scratch memory for a need, from the cache if they exist already."""
        scratch = self._views.get(need)
        if scratch is None:
            sizes = [math.prod(view.shape) * view.dtype.itemsize for view in need.views]
            for view, size in zip(need.views, sizes, strict=True):
                self._grow(view.slot, size)
            if len(self._views) >= COST.KEPT_VIEWS:
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


def take(free: list[Workspace]) -> Workspace:
    """Take a free workspace, or make one; the user appends it to the list later."""
    try:
        return free.pop()
    except IndexError:
        return Workspace()


Key = TypeVar("Key")
Value = TypeVar("Value")


def lookup(
    table: dict[Key, Value], key: Key, make: Callable[[], Value | None], limit: int
) -> Value | None:
    """Return the value of a key, or else what `make` returns, which is kept unless it is None.

    A table that has `most` values is cleared first.
    """
    value = table.get(key)
    if value is None:
        value = make()
        if value is not None:
            if len(table) >= limit:
                table.clear()
            table[key] = value
    return value


class _Memory:
    """Memory of a result, and how often it was free but had another size than was asked for."""

    def __init__(self, size: int) -> None:
        self.array: Array = np.empty(size, np.uint8)
        self.unfit = 0


class Recycler:
    """An allocator that reuses the memory of large results that nobody references any more.

    Small arrays are always new. The recycler finds unreferenced memory by its reference count;
    where reference counts are not exact (free-threaded Python), all arrays are new.
    """

    def __init__(self) -> None:
        self.memories: list[_Memory] = []

    def empty(self, shape: tuple[int, ...], dtype: Storage) -> Array:
        """Return an uninitialized array."""
        size = math.prod(shape) * dtype.itemsize
        if size < COST.RECYCLED or not counts_references():
            return np.empty(shape, dtype)
        array = self._array(size + LINE)
        start = -array.ctypes.data % LINE
        return array[start : start + size].view(dtype).reshape(shape)

    def _array(self, size: int) -> Array:
        for _ in range(len(self.memories)):
            try:
                memory = self.memories.pop(0)
            except IndexError:  # another thread took the last memory
                break
            array = memory.array  # which another thread may see twice in the list, and have too
            is_free = sys.getrefcount(array) == _ALONE + 1
            fits = array.size == size
            memory.unfit += is_free and not fits
            if memory.unfit > COST.UNFIT_RESULTS:
                continue  # sizes have changed: release it
            self.memories.append(memory)
            if is_free and fits:
                memory.unfit = 0
                return array
        memory = _Memory(size)
        array = memory.array
        self.memories.append(memory)
        memories = self.memories.copy()  # other threads change the list itself
        while sum([memory.array.size for memory in memories]) > max(COST.KEPT_RESULTS, size):
            memories.pop(0)
        self.memories = memories
        return array


class ProgramMemory:
    """The memory of a program, or of several: free workspaces, and large results for reuse.

    The list `free` and the recycler change by atomic operations alone, so threads may share them.
    """

    def __init__(self) -> None:
        self.free: list[Workspace] = []
        self.recycler = Recycler()


def _alone() -> int:
    """Return the reference count of an object that only a local variable references.

    `sys.getrefcount` answers 2, or 1 where loads of locals borrow the reference (Python 3.14).
    """
    memory = object()
    return sys.getrefcount(memory)


_ALONE = _alone()


def check_outputs(
    out: Array | Sequence[Array], dtypes: Sequence[DType], shapes: Sequence[tuple[int, ...]]
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
        name = f"out[{i}]" if len(arrays) > 1 else "out"
        if not isinstance(value, np.ndarray):
            raise ExecutionError(f"{name} must be a NumPy array", got=f"a {type(value).__name__}")
        array = cast(Array, value)
        if array.dtype != dtype.storage or array.shape != shape:
            raise ExecutionError(
                f"{name} must be {dtype.storage} of shape {shape}",
                got=f"{array.dtype} of shape {array.shape}",
                fix=f"use np.empty({shape}, {numpy_name(dtype)})",
            )
        if not array.flags.writeable:
            raise ExecutionError(f"{name} is read-only", fix="use a writeable array")
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
