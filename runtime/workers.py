"""Threads that run short functions beside their caller, and wait a moment for the next function.

To wake a thread that waits for a lock takes a fifth of the time to start a thread. A worker without
work ends after some milliseconds, so that a process that calls nothing has no further threads. A
fork ends the idle workers; the child starts its own.
"""

from __future__ import annotations

import os
from _thread import start_new_thread
from collections.abc import Callable
from threading import Lock, RLock

WAIT = 0.02
"""Seconds that a worker waits for work, without using a processor, before its thread ends."""

LATE = 1.0
"""Seconds after which a worker ends whose work does not come; nobody waits for this work."""

IMPORTS = RLock()
"""The lock of a thread that imports modules in the middle of a run. A fork waits for it, since its
child would wait for ever for a module that another thread of the parent was importing."""

_idle: list[_Worker] = []
"""The workers that wait, the last to have worked at the end. Only atomic operations change it."""


def run_aside(work: Callable[[], None]) -> None:
    """Let another thread call a function soon; raises RuntimeError if there are no more threads.

    The function must not raise. An interrupt of the caller may keep it from being called.
    """
    try:
        worker = _idle.pop()
    except IndexError:
        start_new_thread(_Worker(work).run, ())
    else:
        worker.take(work)


class _Worker:
    """A thread that calls one function after another.

    The lock is open for a moment after `take` alone.
    """

    def __init__(self, work: Callable[[], None] | None) -> None:
        self._work, self._lock = work, Lock()
        self._lock.acquire()

    def take(self, work: Callable[[], None] | None) -> None:
        """Let the thread, which waits, call a function; None ends the thread."""
        self._work = work
        self._lock.release()

    def run(self) -> None:
        """Call the functions that the worker takes, until it waits too long."""
        while work := self._work:
            self._work = None
            work()
            del work  # with all arrays that it refers to
            _idle.append(self)
            if self._lock.acquire(timeout=WAIT):
                continue
            try:
                _idle.remove(self)
            except (
                ValueError
            ):  # somebody takes it at this moment, unless an interrupt comes between
                self._lock.acquire(timeout=LATE)


def _dismiss() -> None:
    """End the idle workers: a fork copies the thread that calls it alone."""
    while _idle:
        try:
            worker = _idle.pop()
        except IndexError:  # another thread took the last one
            return
        worker.take(None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_dismiss, after_in_child=_idle.clear)
    os.register_at_fork(
        before=IMPORTS.acquire, after_in_parent=IMPORTS.release, after_in_child=IMPORTS.release
    )
