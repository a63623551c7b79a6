"""One thread that compiles while others compute."""

from __future__ import annotations

import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

_lock = Lock()
_queue: SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]]] = SimpleQueue()
_started = False


def submit(function: Callable[..., Any], *args: Any) -> None:
    """Have it called soon, by another thread."""
    global _started
    _queue.put((function, args))
    with _lock:
        if not _started:
            Thread(target=_work, daemon=True, name="graphir native").start()
            _started = True


def _work() -> None:
    while True:
        function, args = _queue.get()
        function(*args)
        del function, args


def _forked() -> None:
    """A child has none of its parent's threads."""
    global _started, _lock, _queue
    _started, _lock, _queue = False, Lock(), SimpleQueue()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
