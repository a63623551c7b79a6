"""Jobs: work that threads of machine code share, for memory that differs by run.

A job is an array of 64-bit words: the head and the parts that threads count down (records.py), the
records of its kernel, and what these point to. A run copies the words and adds the addresses of its
memories to some of them, the relocations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, Array, Structure, addressof, c_int64, c_void_p
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphir.runtime.native.drivers.records import (
    BACKWARD,
    RECORDS,
    CallableCode,
    Relocation,
    SharedRanges,
    WordRecord,
    Words,
    driver_text,
    job_words,
    record,
    word,
    word_count,
    words_of_records,
)
from graphir.runtime.native.drivers.thread_pool import shared_ranges, thread_pool
from graphir.runtime.native.probe import compiled_code
from graphir.runtime.program.blocks import Range
from graphir.runtime.program.cost_model import LINE, PAGE

SCRATCH, OWN = -2, -1
"""The numbers, among those of memories, of the scratch memory of a job, and of its own records."""


class Driver(NamedTuple):
    """A kernel that runs other kernels; its code lives as long as a caller holds this object."""

    address: int
    context: Array[Any]
    function: Callable[..., None]
    code: Any


def driver(file: str, name: str, *records: type[Structure]) -> Driver:
    """Return the function `name(record, context, first, end)` of a file, which reads no context.

    `records` are those that the file names. Two threads that ask for the driver at once may both
    compile it, so each holds its own for its call.
    """
    code = compiled_code(driver_text(file, *records), name)
    function = CFUNCTYPE(None, c_void_p, c_void_p, c_int64, c_int64)(code.address)
    return Driver(code.address, (c_void_p * 1)(), function, code)


class Job:
    """Work that several threads share, for memory that differs by run.

    `records` has the record of all threads, or a row for each. `relocations` count words from the
    first record. The job has `scratch` bytes of scratch memory. `more` are words that follow the
    records. `alive` is what the words refer to by address.
    """

    def __init__(
        self,
        kernel: CallableCode,
        records: Words,
        size: int,
        shared: SharedRanges,
        relocations: Sequence[Relocation],
        scratch: int = 0,
        more: Sequence[int] | Words = (),
        alive: Any = None,
    ) -> None:
        step = records.strides[0] // records.itemsize if records.ndim > 1 else 0
        head = job_words(kernel.address, addressof(kernel.context), size, shared, step)
        self.words = np.concatenate([head, records.ravel(), np.asarray(more, np.int64)])
        self.words[RECORDS] = 8 * len(head)
        self.shared, self.scratch, self.alive = shared, scratch, (kernel, alive)
        words, numbers = np.array(relocations, np.int64).reshape(-1, 2).T
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
        pool.share(words.ctypes.data, self.shared.helpers, pool.address)
        _idle_scratch[len(scratch)].append(scratch)


def _scratch(size: int) -> NDArray[np.uint8]:
    """Return memory of at least some bytes from an address that is a multiple of PAGE.

    What no thread writes to has no pages of the system. Fresh pages take long.
    """
    capacity = 1 << (size + PAGE - 1).bit_length()
    try:
        return _idle_scratch[capacity].pop()
    except IndexError:
        return np.empty(capacity, np.uint8)


_idle_scratch = defaultdict[int, list[NDArray[np.uint8]]](list)
"""The scratch memory that no job uses, by its size."""


# -- calls of kernels as the elements of a job


@record
class CallsRecord(WordRecord):
    """The record of the driver `calls` for a thread: the address of the table of calls.

    `scratch` is the address of the scratch memory of the thread, which goes to word `scratch_word`
    of the record of each call, unless that is -1.
    """

    fields = "calls scratch scratch_word"


@record
class JobCall(WordRecord):
    """A call of a kernel on the elements `first` to `end`; the others are addresses."""

    fields = "kernel record context first end"


@cache
def _calls() -> Driver:
    return driver("drivers/calls.ll", "calls", CallsRecord, JobCall)


def job_of_calls(
    kernel: CallableCode,
    records: Words,
    memories: int,
    ranges: Sequence[Range],
    threads: int,
    scratch: int = 0,
    scratch_word: int = -1,
) -> Job:
    """Return calls of a kernel as a job.

    Each call has one of the `records` and of the `ranges`. The first words of a record are bytes
    after the addresses of the memories. Each thread has `scratch` bytes of scratch memory in lines
    of the cache of its own, whose address goes to word `scratch_word` of the record of each call.
    """
    step, size = 2 * LINE // 8, records.shape[1]
    table, capacity = threads * step, scratch and -(-scratch // PAGE) * PAGE + 2 * LINE
    start, context = table + word_count(JobCall) * len(records), addressof(kernel.context)
    own = np.zeros((threads, step), np.int64)
    relocations: list[Relocation] = []
    for thread, words in enumerate(own):
        head = CallsRecord(8 * table, thread * capacity, scratch_word)
        words[: word_count(CallsRecord)] = words_of_records([head])
        relocations.append((thread * step + word(CallsRecord, "calls"), OWN))
        if capacity:
            relocations.append((thread * step + word(CallsRecord, "scratch"), SCRATCH))
    calls: list[JobCall] = []
    for k, (first, end) in enumerate(ranges):
        place = start + k * size
        calls.append(JobCall(kernel.address, 8 * place, context, first, end))
        relocations.append((table + word_count(JobCall) * k + word(JobCall, "record"), OWN))
        relocations += [(place + number, number) for number in range(memories)]
    more, shared = words_of_records([*calls, records]), shared_ranges(1, threads - 1)
    capacity *= threads
    return Job(_calls(), own, len(records), shared, relocations, capacity, more, kernel)
