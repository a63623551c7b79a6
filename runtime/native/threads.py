"""Threads that take ranges of elements beside their caller, without Python.

A job is a kernel and the counters from which threads take ranges of its elements. `share` gives the
job to idle workers, takes ranges itself, takes the job back from the workers that have not begun,
and waits for the others. No worker needs the interpreter lock, so a job may be short. Each thread
takes ranges from a part of its own before it helps with the other parts, so that in the next call
its core finds much of what it reads in its own cache. Every other run of a job goes backward: of
arrays that do not fit the cache, it first reads what the run before has read last.

A worker without work polls for 50 microseconds, in which a caller gets its help at once. Then it
waits for a lock, without using a processor, and after some milliseconds its thread ends. A process
that calls nothing, or whose programs have one thread, thus has no workers. A child process of a
fork starts its own.

The words of a job are the number of workers that have it, the number of parts, the number of
elements, those of a range, the kernel, its context, the words from the record of one thread to the
next, the address of the first, and whether it runs backward; then, for each part in a line of the
cache of its own, the first range that no thread has taken, the end, the worker, and the first
range. A worker is its state, its lock, and the address of the pool. Its state is the address of a
job, or one of `_NUMBERS`. The words of the pool are four functions of the system, the number of
polls, whether all workers have to end, and the number of workers; then the workers follow.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import platform
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, c_int, c_int64, c_void_p
from functools import cache, lru_cache
from time import perf_counter, sleep
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphir.runtime.native.abi.jobs import BACKWARD, HEAD, RECORDS, SharedRanges, job
from graphir.runtime.native.probe import compiled_code
from graphir.runtime.program.blocks import Range
from graphir.runtime.program.cost_model import KEPT_LAYOUTS, LINE, PAGE
from graphir.runtime.program.tier import RangeCall

POLLED = 50e-6
"""Seconds for which a worker polls."""

_WAIT = 20_000
"""Microseconds for which a worker waits after that."""

_WORKERS = 63
"""The most workers of a process."""

_POOL, _WORKER = 8, 8
"""The words of a pool before its workers, and of a worker, which has a cache line of its own."""

_ENDS, _WAITS = 5, 2
"""The word of a pool that ends its workers, and the state of a worker without a processor."""

_PAUSED = 10_000
"""The pauses whose time says how often a worker polls."""

_NUMBERS = {
    "POOL_WORDS": _POOL,
    "WORKER_WORDS": _WORKER,
    "HEAD_WORDS": HEAD,
    "BACKWARD_WORD": BACKWARD,
    "TIME": _WAIT,
    "ABSENT": 0,
    "POLLS": 1,
    "WAITS": _WAITS,
    "WORKS": 3,
    "JOBS": 15,
}
"""The numbers of `_TEXT`. The last are the states of a worker; any larger state is a job."""

_PAUSES = {
    **dict.fromkeys(("x86_64", "amd64"), "call void @llvm.x86.sse2.pause()"),
    **dict.fromkeys(("arm64", "aarch64"), "call void @llvm.aarch64.hint(i32 1)"),
}
"""The instruction between two polls, by the name of the machine."""

_TEXT = """
define void @ranges(ptr %job, i64 %number) {
entry:
  %parts = get i64, %job[1]
  %size = get i64, %job[2]
  %block = get i64, %job[3]
  %kernel = get ptr, %job[4]
  %context = get ptr, %job[5]
  %step = get i64, %job[6]
  %records = get ptr, %job[7]
  %is_backward = icmp ne i64 $(get i64, %job[BACKWARD_WORD]), 0
  %record = getelementptr i64, ptr %records, i64 $(mul i64 %number, %step)
  br label %part
part:
  %k = phi i64 [ 0, %entry ], [ %k1, %taken ]
  %part_number = urem i64 $(add i64 %number, %k), %parts
  %counter = getelementptr i64, ptr %job, i64 $(add i64 HEAD_WORDS, $(mul i64 %part_number, 8))
  %limit = get i64, %counter[1]
  %both_ends = add i64 $(get i64, %counter[3]), $(sub i64 %limit, 1)
  br label %take
take:
  %range = atomicrmw add ptr %counter, i64 1 seq_cst
  br i1 $(icmp slt i64 %range, %limit), label %run, label %taken
run:
  %mirror = sub i64 %both_ends, %range
  %place = select i1 %is_backward, i64 %mirror, i64 %range
  %first = mul i64 %place, %block
  %end = call i64 @llvm.smin(i64 $(add i64 %first, %block), i64 %size)
  call void %kernel(ptr %record, ptr %context, i64 %first, i64 %end)
  br label %take
taken:
  %k1 = add i64 %k, 1
  br i1 $(icmp ult i64 %k1, %parts), label %part, label %exit
exit:
  ret void
}
define void @work(ptr %worker) {
entry:
  %lock = get ptr, %worker[1]
  %pool = get ptr, %worker[2]
  %acquire = get ptr, %pool[1]
  %polls = get i64, %pool[4]
  %ends = getelementptr i64, ptr %pool, i64 5
  br label %anew
anew:
  br label %poll
poll:
  %i = phi i64 [ 0, %anew ], [ %i1, %again ]
  %state = load atomic i64, ptr %worker acquire, align 8
  br i1 $(icmp ugt i64 %state, JOBS), label %begin, label %idle
begin:
  %begins = cmpxchg ptr %worker, i64 %state, i64 WORKS seq_cst seq_cst
  br i1 $(extractvalue {i64, i1} %begins, 1), label %run, label %anew
run:
  %job = inttoptr i64 %state to ptr
  br label %find
find:
  %number = phi i64 [ 1, %run ], [ %number1, %other ]
  %at = add i64 HEAD_WORDS, $(mul i64 %number, 8)
  %number1 = add i64 %number, 1
  %part = getelementptr i64, ptr %job, i64 %at
  %its = get ptr, %part[2]
  br i1 $(icmp eq ptr %its, %worker), label %found, label %other
other:
  br label %find
found:
  call void @ranges(ptr %job, i64 %number)
  store atomic i64 POLLS, ptr %worker seq_cst, align 8
  %having = atomicrmw sub ptr %job, i64 1 seq_cst  ; the end of the job for its caller
  br label %anew
idle:
  %i1 = add i64 %i, 1
  %is_end = icmp ne i64 $(load atomic i64, ptr %ends acquire, align 8), 0
  br i1 %is_end, label %end, label %more
end:
  %ended = cmpxchg ptr %worker, i64 %state, i64 ABSENT seq_cst seq_cst
  br i1 $(extractvalue {i64, i1} %ended, 1), label %exit, label %again
more:
  br i1 $(icmp ult i64 %i1, %polls), label %again, label %tired
again:
  PAUSE
  br label %poll
tired:
  %tires = cmpxchg ptr %worker, i64 POLLS, i64 WAITS seq_cst seq_cst
  br i1 $(extractvalue {i64, i1} %tires, 1), label %wait, label %anew
wait:
  %woken = call i32 %acquire(ptr %lock, i64 TIME, i32 0)
  br i1 $(icmp eq i32 %woken, 1), label %anew, label %late
late:
  %leaves = cmpxchg ptr %worker, i64 WAITS, i64 ABSENT seq_cst seq_cst
  br i1 $(extractvalue {i64, i1} %leaves, 1), label %exit, label %claimed
claimed:  ; a caller is about to release the lock
  %released = call i32 %acquire(ptr %lock, i64 -1, i32 0)
  br label %anew
exit:
  ret void
}
define i64 @gives(ptr %job, ptr %worker, ptr %pool) {  ; 1 if the worker has the job now, else 0
entry:
  %word = ptrtoint ptr %job to i64
  %state = load atomic i64, ptr %worker acquire, align 8
  br i1 $(icmp ult i64 %state, WORKS), label %free, label %no
free:
  %given = cmpxchg ptr %worker, i64 %state, i64 %word seq_cst seq_cst
  br i1 $(extractvalue {i64, i1} %given, 1), label %wakes, label %no
wakes:
  switch i64 %state, label %yes [i64 ABSENT, label %start i64 WAITS, label %wake]
wake:
  %release = get ptr, %pool[2]
  call void %release(ptr $(get ptr, %worker[1]))
  br label %yes
start:
  %new = get ptr, %pool[0]
  %thread = call i64 %new(ptr @work, ptr %worker)
  br i1 $(icmp eq i64 %thread, -1), label %none, label %yes
none:  ; the system has no more threads
  store atomic i64 ABSENT, ptr %worker seq_cst, align 8
  br label %no
yes:
  ret i64 1
no:
  ret i64 0
}
define void @share(ptr %job, i64 %helpers, ptr %pool) {
entry:
  %word = ptrtoint ptr %job to i64
  %workers = getelementptr i64, ptr %pool, i64 POOL_WORDS
  %is_end = icmp ne i64 $(get i64, %pool[5]), 0
  %most = select i1 %is_end, i64 0, i64 %helpers
  %count = get i64, %pool[6]
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %give ]
  %n = phi i64 [ 0, %entry ], [ %n1, %give ]
  br i1 $(and i1 $(icmp ult i64 %k, %count), $(icmp ult i64 %n, %most)), label %give, label %here
give:
  %had = atomicrmw add ptr %job, i64 1 seq_cst
  %worker = getelementptr i64, ptr %workers, i64 $(mul i64 %k, WORKER_WORDS)
  %n1_part = add i64 HEAD_WORDS, $(mul i64 $(add i64 %n, 1), 8)
  %part = getelementptr i64, ptr %job, i64 %n1_part
  put ptr %worker, %part[2]
  %gives = call i64 @gives(ptr %job, ptr %worker, ptr %pool)
  %misses = atomicrmw sub ptr %job, i64 $(sub i64 1, %gives) seq_cst
  %n1 = add i64 %n, %gives
  %k1 = add i64 %k, 1
  br label %next
here:
  call void @ranges(ptr %job, i64 0)
  br label %back
back:
  %m = phi i64 [ 0, %here ], [ %m1, %took ]
  br i1 $(icmp ult i64 %m, %k), label %take, label %wait
take:
  %other = getelementptr i64, ptr %workers, i64 $(mul i64 %m, WORKER_WORDS)
  %takes = cmpxchg ptr %other, i64 %word, i64 POLLS seq_cst seq_cst
  %fewer = zext i1 $(extractvalue {i64, i1} %takes, 1) to i64
  %has = atomicrmw sub ptr %job, i64 %fewer seq_cst
  br label %took
took:
  %m1 = add i64 %m, 1
  br label %back
wait:
  %i = phi i64 [ 0, %back ], [ %i1, %pause ], [ %i1, %yield ]
  %i1 = add i64 %i, 1
  br i1 $(icmp eq i64 $(load atomic i64, ptr %job acquire, align 8), 0), label %exit, label %busy
busy:
  br i1 $(icmp ult i64 %i, $(get i64, %pool[4])), label %pause, label %yield
pause:
  PAUSE
  br label %wait
yield:  ; a worker's processor may have to run something else
  %yields = get ptr, %pool[3]
  %unused = call i32 %yields()
  br label %wait
exit:
  ret void
}
"""


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

_PAUSING = """
define void @pauses(i64 %count) {
entry:
  br label %pause
pause:
  %i = phi i64 [ 0, %entry ], [ %i1, %pause ]
  PAUSE
  %i1 = add i64 %i, 1
  br i1 $(icmp ult i64 %i1, %count), label %pause, label %exit
exit:
  ret void
}
"""


class _Pool(NamedTuple):
    """The words of the workers, the function `share`, and its code."""

    words: Any
    function: Callable[..., None]
    code: Any

    def clear(self) -> None:
        """Let there be no workers, as in the child process of a fork."""
        new, acquire = (_python(f"PyThread_{name}") for name in ("allocate_lock", "acquire_lock"))
        for place in self._workers:
            lock = CFUNCTYPE(c_void_p)(new)()
            CFUNCTYPE(c_int, c_void_p, c_int)(acquire)(lock, 0)
            self.words[place : place + 3] = 0, lock or 0, ctypes.addressof(self.words)

    def end(self) -> None:
        """End all workers, at the end of the process, which frees their code."""
        self.words[_ENDS] = 1
        release = CFUNCTYPE(None, c_void_p)(_python("PyThread_release_lock"))
        for place in self._workers:
            if self.words[place] == _WAITS:
                release(self.words[place + 1])
        late = perf_counter() + 1
        while any(self.words[place] for place in self._workers) and perf_counter() < late:
            sleep(0.001)  # a worker that has left this array returns in less

    @property
    def _workers(self) -> range:
        """The places of the workers in the words."""
        return range(_POOL, len(self.words), _WORKER)


@cache
def _pool() -> _Pool:
    pause = _PAUSES.get(platform.machine().lower(), "")
    pauses = compiled_code(_PAUSING.replace("PAUSE", pause), "pauses")
    text = _TEXT
    for name, number in _NUMBERS.items():
        text = re.sub(rf"\b{name}\b", str(number), text)
    code = compiled_code(text.replace("PAUSE", pause), "share")
    start = perf_counter()
    CFUNCTYPE(None, c_int64)(pauses.address)(_PAUSED)
    polls = int(POLLED * _PAUSED / (perf_counter() - start))
    words = (c_int64 * (_POOL + _WORKERS * _WORKER))()
    names = "PyThread_start_new_thread", "PyThread_acquire_lock_timed", "PyThread_release_lock"
    words[:_POOL] = *map(_python, names), _yields(), polls, 0, _WORKERS, 0
    pool = _Pool(words, CFUNCTYPE(None, c_void_p, c_int64, c_void_p)(code.address), code)
    pool.clear()
    atexit.register(pool.end)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=pool.clear)
    return pool


def _python(name: str) -> int:
    """Return the address of a function of Python."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), c_void_p).value or 0


def _yields() -> int:
    """Return the address of the function of the system that lets other threads run."""
    if os.name == "nt":
        return ctypes.cast(ctypes.WinDLL("kernel32").SwitchToThread, c_void_p).value or 0
    return ctypes.cast(ctypes.CDLL(None).sched_yield, c_void_p).value or 0


def share(kernel: Any, records: NDArray[np.int64], size: int, shared: SharedRanges) -> None:
    """Run a kernel on all elements below `size`, in ranges, on several threads.

    `records` is the record that all threads read, or a matrix whose rows are those of the threads.
    """
    pool = _pool()
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
        words, pool = self.words.copy(), _pool()
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


def shared_ranges(block: int, helpers: int) -> SharedRanges:
    """Return how threads share a job, with addresses that the process keeps."""
    pool = _pool()
    return SharedRanges(block, helpers, pool.code.address, ctypes.addressof(pool.words))
