"""The background thread that compiles while other threads compute, and the lock of the compiler."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from contextlib import suppress
from threading import RLock, Thread
from typing import Any, TypeAlias

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
