"""Threads that take ranges of elements beside their caller, without Python.

A job is a kernel and the counters from which threads take ranges of its elements. The driver
`share` (thread_pool.ll) gives the job to idle workers, takes ranges itself, takes the job back from
the workers that have not begun, and waits for the others. No worker needs the interpreter lock, so
a job may be short. Each thread takes ranges from a part of its own before it helps with the other
parts, so that in the next call its core finds much of what it reads in its own cache. Every other
run of a job goes backward: of arrays that do not fit the cache, it first reads what the run before
has read last.

A worker without work polls for 50 microseconds, in which a caller gets its help at once. Then it
waits for a lock, without using a processor, and after some milliseconds its thread ends. A process
that calls nothing, or whose programs have one thread, thus has no workers. A child process of a
fork starts its own.

The protocol: which function of the driver changes the state of a worker, in which value, and from
what to what (JOB is the address of a job). Each change is an atomic exchange that fails if another
thread came first, or, where the state belongs to the worker alone, a store.

| function, value       | before | after  |                                             |
|-----------------------|--------|--------|---------------------------------------------|
| give, given           | ABSENT | JOB    | a caller starts a thread                    |
| give, given           | POLLS  | JOB    | a caller gives a job                        |
| give, given           | WAITS  | JOB    | a caller gives a job and releases the lock  |
| give                  | JOB    | ABSENT | the system has no thread to start           |
| take_back, takes      | JOB    | POLLS  | its caller did the job alone                |
| run_job, begins       | JOB    | WORKS  | the worker begins the job                   |
| run_job               | WORKS  | POLLS  | the worker has done the job                 |
| wait_for_lock, tires  | POLLS  | WAITS  | no job came for a while                     |
| wait_for_lock, leaves | WAITS  | ABSENT | none came for long                          |
| work, ended           | POLLS  | ABSENT | the process ends                            |
"""

from __future__ import annotations

import atexit
import ctypes
import os
import platform
from collections import defaultdict
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, Array, Structure, addressof, c_int, c_int64, c_void_p
from functools import cache
from time import perf_counter, sleep
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphir.runtime.native.drivers.records import (
    BACKWARD,
    RECORDS,
    CallableCode,
    JobHead,
    JobPart,
    Pool,
    Relocation,
    SharedRanges,
    State,
    WordRecord,
    Words,
    Worker,
    driver_text,
    job_words,
    record,
    word,
    word_count,
    words_of_records,
)
from graphir.runtime.native.probe import compiled_code
from graphir.runtime.program.blocks import Range
from graphir.runtime.program.cost_model import LINE, PAGE, POLL_SECONDS, WAIT_MICROSECONDS, WORKERS

_PAUSES = 10_000
"""The pauses whose time says how often a worker polls."""

_PAUSE_BY_MACHINE = {
    **dict.fromkeys(("x86_64", "amd64"), "call void @llvm.x86.sse2.pause()"),
    **dict.fromkeys(("arm64", "aarch64"), "call void @llvm.aarch64.hint(i32 1)"),
}
"""The instruction between two polls, by the name of the machine."""


class PoolMemory(ctypes.Structure):
    """The memory of a pool: its head, and its workers."""

    _fields_ = (("head", Pool), ("workers", Worker * WORKERS))
    head: Pool
    workers: ctypes.Array[Worker]


class ThreadPool(NamedTuple):
    """The memory of the workers, the driver `share(job, helpers, pool)`, and its code."""

    memory: PoolMemory
    share: Callable[..., None]
    code: Any

    @property
    def address(self) -> int:
        """The address of the memory."""
        return ctypes.addressof(self.memory)

    def clear(self) -> None:
        """Let there be no workers, as in the child process of a fork."""
        new, acquire = (_python(f"PyThread_{name}") for name in ("allocate_lock", "acquire_lock"))
        for worker in self.memory.workers:
            lock = CFUNCTYPE(c_void_p)(new)()
            CFUNCTYPE(c_int, c_void_p, c_int)(acquire)(lock, 0)
            worker.state, worker.lock, worker.pool = State.ABSENT, lock or 0, self.address

    def end(self) -> None:
        """End all workers, at the end of the process, which frees their code."""
        self.memory.head.ends = 1
        release = CFUNCTYPE(None, c_void_p)(_python("PyThread_release_lock"))
        for worker in self.memory.workers:
            if worker.state == State.WAITS:
                release(worker.lock)
        late = perf_counter() + 1
        while any(worker.state for worker in self.memory.workers) and perf_counter() < late:
            sleep(0.001)  # a worker that has left this array returns in less


@cache
def thread_pool() -> ThreadPool:
    """Return the pool of this process, whose workers start when a job needs them."""
    pause = _PAUSE_BY_MACHINE.get(platform.machine().lower(), "")
    texts = {"PAUSE": pause, "WAIT_MICROSECONDS": f"{WAIT_MICROSECONDS}"}
    text = driver_text("drivers/thread_pool.ll", JobHead, JobPart, Worker, Pool, State, texts=texts)
    code = compiled_code(text, "share", "pauses")
    start = perf_counter()
    CFUNCTYPE(None, c_int64)(code.addresses["pauses"])(_PAUSES)
    polls = int(POLL_SECONDS * _PAUSES / (perf_counter() - start))
    names = "PyThread_start_new_thread", "PyThread_acquire_lock_timed", "PyThread_release_lock"
    memory = PoolMemory(Pool(*map(_python, names), _relax(), polls, 0, WORKERS))
    share = CFUNCTYPE(None, c_void_p, c_int64, c_void_p)(code.address)
    pool = ThreadPool(memory, share, code)
    pool.clear()
    atexit.register(pool.end)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=pool.clear)
    return pool


def shared_ranges(block: int, helpers: int) -> SharedRanges:
    """Return how threads share a job, with addresses that the process keeps."""
    pool = thread_pool()
    return SharedRanges(block, helpers, pool.code.address, pool.address)


def _python(name: str) -> int:
    """Return the address of a function of Python."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), c_void_p).value or 0


def _relax() -> int:
    """Return the address of the function of the system that lets other threads run."""
    if os.name == "nt":
        return ctypes.cast(ctypes.WinDLL("kernel32").SwitchToThread, c_void_p).value or 0
    return ctypes.cast(ctypes.CDLL(None).sched_yield, c_void_p).value or 0


# -- jobs, whose memory differs by run
#
# A job is an array of 64-bit words: the head and the parts that threads count down (records.py),
# the records of its kernel, and what these point to. A run copies the words and adds the addresses
# of its memories to some of them, the relocations.

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
