"""When code is compiled: by a background thread, or at first use; the lock of the compiler.

The thread compiles while other threads compute. `PaidKernels` are the kernels of an op on whole
arrays: each is compiled once NumPy has spent more time on its kind than compiling takes.
"""

from __future__ import annotations

import atexit
import os
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from threading import RLock, Thread
from time import perf_counter_ns
from typing import Any, Generic, TypeAlias, TypeVar

from graphir.hints import Array
from graphir.runtime.program.cost_model import COST
from graphir.runtime.workers import IMPORTS

Job: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]

LOCK = RLock()
"""The lock of each thread that compiles or loads code. A fork waits for it, so that no child
process starts inside LLVM."""

_jobs: dict[Job, None] = {}
_threads: list[Thread] = []
"""The thread that runs the jobs, as long as it may take further jobs; else empty."""

_asking = RLock()
"""The lock of the job queue. It is reentrant, because a signal handler may submit a job while its
thread holds the lock."""

locks: list[Any] = [LOCK, _asking]
"""The locks that a fork acquires, in this order."""


def submit(function: Callable[..., Any], *args: Any) -> None:
    """Let the background thread call `function(*args)` soon; an equal pending job is not repeated.

    A child process of a fork drops the pending jobs, and may submit them again.
    """
    with _asking:
        _jobs[function, args] = None
        if not any(thread.is_alive() for thread in _threads):
            thread = Thread(target=_work, daemon=True, name="graphir native")
            with suppress(RuntimeError):  # no more threads: the next submission tries again
                thread.start()
                _threads[:] = [thread]


def _work() -> None:
    while job := _next():
        try:
            job[0](*job[1])
        finally:
            with _asking:
                _jobs.pop(job, None)


def _next() -> Job | None:
    """Return the next job; or None: then this thread ends, and a later job gets another thread."""
    with _asking:
        if not _jobs:
            _threads.clear()
        return next(iter(_jobs), None)


def _before_fork() -> None:
    for lock in locks:
        lock.__enter__()


def _after_fork() -> None:
    for lock in reversed(locks):
        lock.__exit__(None, None, None)


def _in_child() -> None:
    _jobs.clear()
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)

atexit.register(LOCK.acquire)  # the process must not tear down LLVM while the thread is inside it


# -- failures of LLVM


class UnusableError(Exception):
    """Raised if this process cannot use machine code; the message says why."""


def failure_reason(error: Exception) -> str:
    """Return an error of LLVM as a reason to stay in NumPy, and log the first in the process."""
    why = str(error) if isinstance(error, UnusableError) else f"{type(error).__name__}: {error}"
    if not _logged:
        with IMPORTS:
            import logging

        log = logging.getLogger("graphir.native")
        log.warning("no machine code, NumPy computes instead: %s", why)
        _logged.append(why)
    return why


_logged: list[str] = []


# -- kernels of ops on whole arrays, each compiled once it pays

Kind = TypeVar("Kind")
Code = TypeVar("Code")


class PaidKernels(Generic[Kind, Code]):
    """The kernels of an op by kind, in the form in which they run; None if NumPy is faster.

    With `now`, the first use of a kind compiles its kernel. `numpy_time` has the nanoseconds that
    NumPy has spent on each kind; `why` is the reason if LLVM fails. A subclass has the method that
    compiles a kernel.
    """

    def __init__(self, now: bool) -> None:
        self.now, self.why = now, ""
        self.numpy_time = defaultdict[Kind, float](float)
        self.kernels: dict[Kind, Code | None] = {}

    def compiled(self, kind: Kind) -> Code | None:
        """Return what a run needs, a compiled kernel at least; None where NumPy is faster."""
        raise NotImplementedError

    def kernel(self, kind: Kind) -> Code | None:
        """Return the kernel of a kind; None if there is none yet."""
        if self.why or not (self.now or self.numpy_time[kind] > COST.COMPILE_COST):
            return None
        if kind not in self.kernels and not self.now:
            submit(self.compile, kind)
            return None
        return self.compile(kind)

    def compile(self, kind: Kind) -> Code | None:
        """Return the kernel of a kind, compiled now; None if LLVM fails: `why` has the reason."""
        if kind in self.kernels:
            return self.kernels[kind]
        with LOCK:
            if kind not in self.kernels and not self.why:
                try:
                    self.kernels[kind] = self.compiled(kind)
                except Exception as error:  # any failure of LLVM: NumPy is the fallback
                    self.why = failure_reason(error)
            return self.kernels.get(kind)

    def by_numpy(self, kind: Kind, function: Callable[..., Array], *operands: Any) -> Array:
        """Return the result of a function of NumPy, and charge its time to a kind."""
        start = perf_counter_ns()
        result = function(*operands)
        self.numpy_time[kind] += perf_counter_ns() - start
        return result
