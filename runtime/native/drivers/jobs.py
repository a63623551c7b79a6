"""Jobs: work that threads of machine code share, for memory that differs by run."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, c_int64, c_void_p
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphir.runtime.native.drivers.records import BACKWARD, RECORDS, SharedRanges, job
from graphir.runtime.native.drivers.thread_pool import shared_ranges, thread_pool
from graphir.runtime.native.probe import compiled_code
from graphir.runtime.program.blocks import Range
from graphir.runtime.program.cost_model import KEPT_LAYOUTS, LINE, PAGE
from graphir.runtime.program.tier import RangeCall

_CALLS = """
define void @calls(ptr %own, ptr %unused, i64 %first, i64 %end) {
entry:
  %table = get ptr, %own[0]
  %scratch = get i64, %own[1]
  %place = get i64, %own[2]
  br label %next
next:
  %i = phi i64 [ %first, %entry ], [ %i1, %call ]
  %at = getelementptr i64, ptr %table, i64 $(mul i64 %i, 5)
  %kernel = get ptr, %at[0]
  %record = get ptr, %at[1]
  %context = get ptr, %at[2]
  %from = get i64, %at[3]
  %to = get i64, %at[4]
  br i1 $(icmp slt i64 %place, 0), label %call, label %placed
placed:
  put i64 %scratch, %record[%place]
  br label %call
call:
  call void %kernel(ptr %record, ptr %context, i64 %from, i64 %to)
  %i1 = add i64 %i, 1
  br i1 $(icmp ult i64 %i1, %end), label %next, label %exit
exit:
  ret void
}
"""
"""A kernel whose elements are calls. The record has the table of calls, the scratch memory of the
thread, and its place in the record of each call, or -1."""


def share(kernel: Any, records: NDArray[np.int64], size: int, shared: SharedRanges) -> None:
    """Run a kernel on all elements below `size`, in ranges, on several threads.

    `records` is the record that all threads read, or a matrix whose rows are those of the threads.
    """
    pool = thread_pool()
    step = records.strides[0] // records.itemsize if records.ndim > 1 else 0
    words = _head(kernel.address, ctypes.addressof(kernel.context), size, shared, step).copy()
    words[RECORDS] = records.ctypes.data
    pool.function(words.ctypes.data, shared.helpers, pool.words)


@lru_cache(KEPT_LAYOUTS)
def _head(
    address: int, context: int, size: int, shared: SharedRanges, step: int
) -> NDArray[np.int64]:
    return np.array(job(address, context, size, shared, step), np.int64)


def share_calls(calls: Sequence[RangeCall], threads: int) -> None:
    """Make calls in any order, on several threads."""
    words: list[int] = []
    for kernel, record, first, end, _ in calls:
        context = ctypes.addressof(kernel.context)
        words += kernel.address, record.ctypes.data, context, first, end
    table = np.array(words, np.int64)
    record = np.array([table.ctypes.data, 0, -1], np.int64)
    share(_calls(), record, len(calls), shared_ranges(1, threads - 1))


SCRATCH, OWN = -2, -1
"""The numbers, among those of memories, of the scratch memory of a job, and of its own records."""


class Job:
    """Work that several threads share, for memory that differs by run.

    `records` has the record of all threads, or a row for each. `patches` are the words, counted
    from the first record, to which a run adds the address of a memory, by its number. The job has
    `scratch` bytes of scratch memory. `more` are words that follow the records.
    """

    def __init__(
        self,
        kernel: Any,
        records: NDArray[np.int64],
        size: int,
        shared: SharedRanges,
        patches: Sequence[tuple[int, int]],
        scratch: int = 0,
        more: Sequence[int] | NDArray[np.int64] = (),
        alive: Any = None,
    ) -> None:
        step = records.strides[0] // records.itemsize if records.ndim > 1 else 0
        head = _head(kernel.address, ctypes.addressof(kernel.context), size, shared, step)
        self.words = np.concatenate([head, records.ravel(), np.asarray(more, np.int64)])
        self.words[RECORDS] = 8 * len(head)
        self.shared, self.scratch, self.alive = shared, scratch, (kernel, alive)
        words, numbers = np.array(patches, np.int64).reshape(-1, 2).T
        self.words[len(head) + words[numbers == OWN]] += 8 * len(head)
        self.positions = np.array([RECORDS, *len(head) + words])
        self.numbers = np.array([OWN, *numbers])

    def run(self, addresses: Sequence[int]) -> None:
        """Do the work, with memories at some addresses."""
        self.words[BACKWARD] ^= 1
        words, pool = self.words.copy(), thread_pool()
        scratch = _scratch(self.scratch)
        start = -(-scratch.ctypes.data // PAGE) * PAGE
        words[self.positions] += np.array([*addresses, start, words.ctypes.data])[self.numbers]
        pool.function(words.ctypes.data, self.shared.helpers, pool.words)
        _free[len(scratch)].append(scratch)


def _scratch(size: int) -> NDArray[np.uint8]:
    """Return memory of at least some bytes from an address that is a multiple of PAGE.

    What no thread writes to has no pages of the system. Fresh pages take long.
    """
    room = 1 << (size + PAGE - 1).bit_length()
    try:
        return _free[room].pop()
    except IndexError:
        return np.empty(room, np.uint8)


_free = defaultdict[int, list[NDArray[np.uint8]]](list)
"""The scratch memory that no job uses, by its size."""


def job_of_calls(
    kernel: Any,
    records: NDArray[np.int64],
    memories: int,
    ranges: Sequence[Range],
    threads: int,
    scratch: int = 0,
    place: int = -1,
) -> Job:
    """Return calls of a kernel as a job.

    Each call has one of the `records` and of the `ranges`. The first words of a record are bytes
    after the addresses of the memories. Each thread has `scratch` bytes of scratch memory in lines
    of the cache of its own, whose address goes to word `place` of the record of each call.
    """
    step, size = 2 * LINE // 8, records.shape[1]
    own, room = threads * step, scratch and -(-scratch // PAGE) * PAGE + 2 * LINE
    start, context = own + 5 * len(records), ctypes.addressof(kernel.context)
    heads, table = np.zeros((threads, step), np.int64), list[int]()
    patches: list[tuple[int, int]] = []
    for thread, head in enumerate(heads):
        head[:3] = 8 * own, thread * room, place
        patches.append((thread * step, OWN))
        if room:
            patches.append((thread * step + 1, SCRATCH))
    for k, each in enumerate(ranges):
        record = start + k * size
        table += [kernel.address, 8 * record, context, *each]
        patches.append((own + 5 * k + 1, OWN))
        patches += [(record + number, number) for number in range(memories)]
    more = np.concatenate([np.array(table, np.int64), records.ravel()])
    shared = shared_ranges(1, threads - 1)
    return Job(_calls(), heads, len(records), shared, patches, threads * room, more, kernel)


class Driver(NamedTuple):
    """A kernel that runs other kernels; its code lives as long as a caller holds this object."""

    address: int
    context: Any
    function: Callable[..., None]
    code: Any


def driver(text: str, name: str) -> Driver:
    """Return the function `name(record, context, first, end)` of a text, which reads no context.

    Two threads that ask for it at once may both compile it, so each holds its own for its call.
    """
    code = compiled_code(text, name)
    function = CFUNCTYPE(None, c_void_p, c_void_p, c_int64, c_int64)(code.address)
    return Driver(code.address, (c_void_p * 1)(), function, code)


@cache
def _calls() -> Driver:
    return driver(_CALLS, "calls")
