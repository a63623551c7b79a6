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
from collections.abc import Callable
from ctypes import CFUNCTYPE, c_int, c_int64, c_void_p
from functools import cache
from time import perf_counter, sleep
from typing import Any, NamedTuple

from graphir.runtime.native.drivers.records import BACKWARD, HEAD, SharedRanges
from graphir.runtime.native.probe import compiled_code

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
def thread_pool() -> _Pool:
    """Return the pool of this process, whose workers start at first use."""
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


def shared_ranges(block: int, helpers: int) -> SharedRanges:
    """Return how threads share a job, with addresses that the process keeps."""
    pool = thread_pool()
    return SharedRanges(block, helpers, pool.code.address, ctypes.addressof(pool.words))
