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
from collections.abc import Callable
from ctypes import CFUNCTYPE, c_int, c_int64, c_void_p
from functools import cache
from time import perf_counter, sleep
from typing import Any, NamedTuple

from graphir.runtime.native.drivers.records import (
    JobHead,
    JobPart,
    Pool,
    SharedRanges,
    State,
    Worker,
    driver_text,
)
from graphir.runtime.native.probe import compiled_code
from graphir.runtime.program.cost_model import POLL_SECONDS, WAIT_MICROSECONDS, WORKERS

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
