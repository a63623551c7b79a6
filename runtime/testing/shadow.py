"""Shadows: forked processes in which a test goes on, recorded, while the test itself goes on too.

A shadow starts where a function is called with dtypes that need a recording. It has a copy of all
memory, also of that which processes share, so what it does to arguments, globals and random states
does not reach the tests. It ends before any act that others could see (runtime.testing.isolation):
it opens no file for writing, starts no process and sends nothing. The files that the test has open
are copies or closed. A shadow is a child of a process that has ended, so that the test neither
waits for it nor gets a signal of its end.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import gc
import os
import sys
import warnings
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator, Iterator

# By name, and not from their modules: a test may have replaced these, and count their calls.
from os import close, getpid, kill, pipe, read, write
from os import fork as fork_process
from pickle import dumps, loads
from select import POLLIN, poll
from signal import (
    ITIMER_PROF,
    ITIMER_REAL,
    SIG_BLOCK,
    SIG_DFL,
    SIG_IGN,
    SIGALRM,
    SIGCHLD,
    SIGKILL,
    SIGPROF,
    getsignal,
    pthread_sigmask,
    setitimer,
    signal,
)
from time import monotonic, perf_counter, process_time
from typing import Any, NoReturn

from graphir.runtime.testing.isolation import (
    LIBRARY,
    Observer,
    isolate,
    observe_acts,
    open_file,
    visible_act,
)

_PLAIN, _LOOK = 0.1, 0.05
"""After so many seconds of its processor in which it recorded nothing, about as many as a new one
takes to start, a shadow asks its parent whether to go on; it looks at its clock so often."""
CRASHED = "its shadow crashed, or hung in compiled code"
_GO_ON, _END = b"+", b"-"
_IDLE, _HUNG = 2, 30
"""A shadow ends after so many times its seconds of the processor, if it waits all that time; its
parent ends it after so many of a clock."""


def why_no_shadows() -> str:
    """Return why no process of this platform or container can have shadows; "" if it can."""
    if not hasattr(os, "fork") or sys.platform == "win32":
        return "this platform has no fork"
    if getpid() == 1:
        return "a first process gets every orphan as its child: start an init (docker run --init)"
    return ""


def why_visible() -> str:
    """Return how a test could notice that a shadow starts now; "" if it could not."""
    if getsignal(SIGCHLD) not in (SIG_DFL, SIG_IGN):
        return "its test handles SIGCHLD"
    if SIGCHLD in pthread_sigmask(SIG_BLOCK, ()):
        return "its test blocks SIGCHLD"
    return ""


class Shadow:
    """A running shadow, as its parent sees it: `messages` yields what it has sent."""

    def __init__(self, file: int, answers: int, seconds: float) -> None:
        self._file, self._answers, self._pending, self._pid = file, answers, b"", 0
        self._until = perf_counter() + _HUNG * seconds
        self.has_ended = False
        self.reason = CRASHED
        """Why the shadow has ended; "" after its last test."""
        self.failure = ""
        """What a test raised in the shadow."""

    def messages(self, wait: bool = False) -> Iterator[dict[str, Any]]:
        """Yield the messages that have come; with `wait`, all until the shadow ends."""
        poller = poll()
        poller.register(self._file, POLLIN)
        while not self.has_ended:
            left = max(0.0, self._until - perf_counter()) if wait else 0.0
            ready = poller.poll(1000 * left)
            if not ready and not wait:
                return
            if not ready and self._pid:
                kill(self._pid, SIGKILL)  # it has the other end of the pipe, so it runs
            data = read(self._file, 1 << 16) if ready else b""
            self._pending += data
            *lines, self._pending = self._pending.split(b"\n")
            for line in lines:
                with contextlib.suppress(Exception):  # it ended as it sent this: any bytes
                    message = loads(b64decode(line))
                    self._pid = message.get("pid", self._pid)
                    yield message
            if not data:
                close(self._file)
                close(self._answers)
                self.has_ended = True

    def answer(self, goes_on: bool) -> None:
        """Let the shadow, which has asked, go on or end."""
        with contextlib.suppress(OSError):  # it has ended
            write(self._answers, _GO_ON if goes_on else _END)


class ShadowSide:
    """The shadow's own side: it sends messages and ends."""

    def __init__(self, file: int, answers: int) -> None:
        self._file, self._answers, self._pending = file, answers, b""
        self._is_sending = False
        self.idle_since: float | None = None
        """The processor's seconds since which nothing was recorded."""
        self.before_end: Callable[[str], None] = nothing_before_end

    def limit(self, seconds: float) -> None:
        """Let the process end after so many seconds of its processor, or more of waiting."""
        started, busy = monotonic(), _busy_seconds()

        def look(*_: Any) -> None:
            nonlocal started
            if self._is_sending:
                return
            if self.idle_since is not None and process_time() - self.idle_since > _PLAIN:
                started += self._wait_for_answer()
            if monotonic() - started - (_busy_seconds() - busy) > _IDLE * seconds:
                self.end("its recording waits for what does not come")

        signal(SIGALRM, look)
        setitimer(ITIMER_REAL, _LOOK, _LOOK)
        problem = f"its recording takes more than {seconds:g} s"

        def stop(*_: Any) -> None:
            self.end(problem)

        signal(SIGPROF, stop)
        setitimer(ITIMER_PROF, seconds)

    def _wait_for_answer(self) -> float:
        """Ask the parent whether to go on, and end if not; return the seconds of waiting."""
        asked = monotonic()
        setitimer(ITIMER_REAL, 0)
        self.send({"idle": True})
        if read(self._answers, 1) != _GO_ON:
            self.end()
        self.idle_since = process_time()
        setitimer(ITIMER_REAL, _LOOK, _LOOK)
        return monotonic() - asked

    def send(self, message: dict[str, Any], later: bool = False) -> None:
        """Send a message to the parent; with `later`, together with the next one."""
        self._pending += b64encode(dumps(message)) + b"\n"
        if later:
            return
        self._is_sending = True
        data, self._pending = memoryview(self._pending), b""
        while data:
            data = data[write(self._file, data) :]
        self._is_sending = False

    def end(self, reason: str = "") -> NoReturn:
        """End this process at once, without any cleaning up; send the reason, if any."""
        try:
            setitimer(ITIMER_PROF, 0)
            setitimer(ITIMER_REAL, 0)
            before_end, self.before_end = self.before_end, nothing_before_end
            before_end(reason)
            self.send({"end": reason, "seconds": process_time()})
        finally:
            os._exit(0)


def _busy_seconds() -> float:
    """Return how long this process has computed, or waited for a processor."""
    busy = process_time()
    with (
        contextlib.suppress(OSError, ValueError),
        open_file("/proc/self/schedstat", encoding="ascii") as file,
    ):
        busy += int(file.read().split()[1]) / 1e9
    return busy


def nothing_before_end(_: str) -> None:
    """Do nothing before a shadow ends."""


def fork(seconds: float) -> Shadow | ShadowSide:
    """Fork a shadow; return the side that the caller is on.

    The shadow ends after some seconds of its processor, or twice as many of waiting. Raises OSError
    if this process may have no more files or processes.
    """
    files = [*pipe()]
    try:
        files += pipe()
        with _quiet():
            pid = fork_process()
    except OSError:
        for file in files:
            close(file)
        raise
    reader, writer, answers, answer = files
    if pid:
        close(writer)
        close(answers)
        _reap(pid)
        return Shadow(reader, answer, seconds)
    try:
        isolate((writer, answers))
        if fork_process():
            os._exit(0)
        gc.disable()
        os.nice(10)  # the tests come first
        _use_one_thread()
        sys.settrace(None)
        sys.setprofile(None)
        sys.dont_write_bytecode = True
        side = ShadowSide(writer, answers)
        side.send({"pid": getpid()})
        side.limit(seconds)
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with contextlib.suppress(OSError):
                fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 1 << 20)
        observe_acts(_guard(side))
    except BaseException:
        os._exit(1)
    return side


def _reap(pid: int) -> None:
    """Wait for a process to end, before any other thread can run `os.wait()`."""
    while LIBRARY.waitpid(pid, None, 0) == -1 and ctypes.get_errno() == errno.EINTR:
        pass


def _use_one_thread() -> None:
    """Let NumPy's OpenBLAS use one thread: several would wait for cores that the tests use."""
    core: Any = sys.modules.get("numpy._core._multiarray_umath")
    if core is None:
        return
    for name in ("scipy_openblas_set_num_threads64_", "openblas_set_num_threads"):
        with contextlib.suppress(OSError, AttributeError):
            getattr(ctypes.CDLL(core.__file__), name)(1)


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    """Context manager: no warning of the fork reaches a test that turns warnings into errors."""
    if "jax" not in sys.modules and sys.version_info < (3, 12):
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _guard(side: ShadowSide) -> Observer:
    """Return an observer that ends the shadow before an act that others could see."""

    def guard(event: str, args: tuple[Any, ...]) -> None:
        if act := visible_act(event, args):
            side.end(f"it {act}")

    return guard
