"""A thread that compiles while others compute, and the lock under which all compiling is done."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from contextlib import suppress
from threading import RLock, Thread
from typing import Any, TypeAlias

Job: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]

LOCK = RLock()
"""Held by who compiles or loads. A fork waits for it: no child begins inside LLVM."""

_jobs: dict[Job, None] = {}
_threads: list[Thread] = []
"""The one that does them, while it lives and may do more."""

_asking = RLock()
"""Held by who asks for a job or ends one: a signal's handler may ask while its thread does."""

locks: list[Any] = [LOCK, _asking]
"""What a fork waits for, in this order."""


def submit(function: Callable[..., Any], *args: Any) -> None:
    """Have it called soon, by another thread; asked again meanwhile, once.

    What is pending when a process forks is not done in the child, which may ask again.
    """
    with _asking:
        _jobs[function, args] = None
        if not any(each.is_alive() for each in _threads):
            thread = Thread(target=_work, daemon=True, name="graphir native")
            with suppress(RuntimeError):  # no more threads: asked again, it is tried again
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
    """What is to be done; None: this thread ends, and what is asked from now on is another's."""
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

atexit.register(LOCK.acquire)  # LLVM is not taken down while the thread is inside it
