"""One thread that compiles while others compute, and the lock under which all compiling is done."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from queue import SimpleQueue
from threading import RLock, Thread
from typing import Any, TypeAlias

Job: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]

LOCK = RLock()
"""Held by who compiles or loads. A fork waits for it: no child begins inside LLVM."""


class _Queue:
    """Jobs, each there once, and the thread that does them."""

    def __init__(self) -> None:
        # a signal's handler, or a finalizer, may ask while its thread does
        self.lock, self.jobs, self.waiting = RLock(), set[Job](), SimpleQueue[Job]()
        self.started = False

    def put(self, job: Job) -> None:
        with self.lock:
            if job in self.jobs:
                return
            if not self.started:
                try:
                    Thread(target=self._work, daemon=True, name="graphir native").start()
                except RuntimeError:  # no more threads: asked again, it is tried again
                    return
                self.started = True
            self.jobs.add(job)
            self.waiting.put(job)

    def _work(self) -> None:
        while True:
            job = self.waiting.get()
            job[0](*job[1])
            with self.lock:
                self.jobs.discard(job)
            del job


_queue = _Queue()
_held: list[AbstractContextManager[Any]] = []


def submit(function: Callable[..., Any], *args: Any) -> None:
    """Have it called soon, by another thread; asked again meanwhile, once.

    What is pending when a process forks is not done in the child, which may ask again.
    """
    _queue.put((function, args))


def _before_fork() -> None:
    LOCK.acquire()
    ffi: Any = sys.modules.get("llvmlite.binding.ffi")
    lock = getattr(getattr(ffi, "lib", None), "_lock", None)
    if lock is not None:  # whoever frees memory of LLVM holds that one alone
        lock.__enter__()
        _held.append(lock)


def _after_fork() -> None:
    if _held:
        _held.pop().__exit__(None, None, None)
    LOCK.release()


def _in_child() -> None:
    global _queue
    _after_fork()
    _queue = _Queue()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)

atexit.register(LOCK.acquire)  # LLVM is not taken down while the thread is inside it
