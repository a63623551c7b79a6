"""Shadows: forked processes in which a test goes on, recorded, while the test itself goes on too.

A shadow starts where a function is called with dtypes that need a recording. It has a copy of all
memory, also of that which processes share, so what it does to arguments, globals and random states
does not reach the tests. It writes to files of its own (see runtime.testing.private_files) where
the platform has them, and ends before any act that others could see: it starts no process and sends
nothing; without files of its own, it opens no file for writing. The files that the test has open
are copies or closed. A shadow is a child of a process that has ended, so that the test neither
waits for it nor gets a signal of its end.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import gc
import json
import os
import stat
import sys
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence

# By name, and not from their modules: a test may have replaced these, and count their calls.
from os import close, getpid, kill, listdir, pipe, read, write
from os import fork as fork_process
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
from threading import active_count
from time import monotonic, perf_counter, process_time
from typing import Any, NoReturn, TypeAlias

from graphir.runtime.testing.private_files import (
    enter_private_files,
    is_storage,
    open_file,
    reopen,
    unshare_memory,
)

_LIBRARY = ctypes.PyDLL(None, use_errno=True)
"""The C library, whose functions run while no other thread runs Python code."""
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
    if _catches(SIGCHLD):
        return "its test handles SIGCHLD"
    if active_count() > 1 and any(_waits_for_children()):
        return "another thread waits for processes"
    if _adopts_orphans():
        return "its test is a subreaper of processes"
    return ""


def _catches(number: int) -> bool:
    """Whether this process has a handler of a signal, be it one that Python does not know."""
    with contextlib.suppress(OSError), open_file("/proc/self/status", encoding="ascii") as file:
        caught = next((line.split()[1] for line in file if line.startswith("SigCgt:")), "0")
        return bool(int(caught, 16) >> (number - 1) & 1)
    return False


def _waits_for_children() -> Iterator[bool]:
    with contextlib.suppress(OSError):
        for thread in listdir("/proc/self/task"):
            with open_file(f"/proc/self/task/{thread}/wchan", encoding="ascii") as file:
                yield file.read() == "do_wait"


_GET_CHILD_SUBREAPER = 37


def _adopts_orphans() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    answer = ctypes.c_int()
    _LIBRARY.prctl(_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0)
    return bool(answer.value)


class Shadow:
    """A running shadow, as its parent sees it: `messages` yields what it has sent."""

    def __init__(self, file: int, answers: int, seconds: float, is_private: bool) -> None:
        self._file, self._answers, self._pending, self._pid = file, answers, b"", 0
        self._until = perf_counter() + _HUNG * seconds
        self.is_private = is_private
        """Whether the shadow has files of its own."""
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
                with contextlib.suppress(ValueError):  # a signal has ended it as it sent this
                    message = json.loads(line)
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
        self.idle_since: float | None = None
        """The processor's seconds since which nothing was recorded."""
        self.before_end: Callable[[str], None] = nothing_before_end

    def limit(self, seconds: float) -> None:
        """Let the process end after so many seconds of its processor, or more of waiting."""
        started, busy = monotonic(), _busy_seconds()

        def look(*_: Any) -> None:
            nonlocal started
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
        self._pending += json.dumps(message).encode() + b"\n"
        if later:
            return
        data, self._pending = memoryview(self._pending), b""
        while data:
            data = data[write(self._file, data) :]

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


def fork(seconds: float, fresh: Callable[[], Sequence[str]]) -> Shadow | ShadowSide:
    """Fork a shadow; return the side that the caller is on.

    The shadow ends after some seconds of its processor, or twice as many of waiting. It gets
    copies of the `fresh` files and folders, which the test may change while the shadow runs.
    Raises OSError if this process may have no more files or processes.
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
        return Shadow(reader, answer, seconds, _status(pid) == _PRIVATE)
    try:
        is_private = _isolate((writer, answers), fresh)
        if fork_process():
            os._exit(_PRIVATE if is_private else 0)
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
        observe_acts(_guard(side, is_private))
    except BaseException:
        os._exit(1)
    return side


_PRIVATE = 3
"""The status of the process between a test and its shadow, if it has files of its own."""


def _status(pid: int) -> int:
    """Wait for a process before any other thread can run `os.wait()`; return its exit status."""
    status = ctypes.c_int()
    while _LIBRARY.waitpid(pid, ctypes.byref(status), 0) == -1:
        if ctypes.get_errno() != errno.EINTR:
            return 0
    return status.value >> 8


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


# -- isolation


def _isolate(keep: Sequence[int], fresh: Callable[[], Sequence[str]]) -> bool:
    """Let this process share nothing with others but `keep`; return whether it has own files."""
    try:
        enter_private_files(fresh())
        is_private = True
    except OSError:
        is_private = False
    null = os.open(os.devnull, os.O_RDWR)
    for number in _open_files():
        if number not in (*keep, null):
            with contextlib.suppress(OSError):
                is_device = stat.S_ISCHR(os.fstat(number).st_mode) and number > 2
                if not is_device and not reopen(number, is_private):
                    os.dup2(null, number)
    unshare_memory(is_private)
    return is_private


def _open_files() -> list[int]:
    try:
        return sorted(int(name) for name in listdir("/dev/fd"))
    except OSError:
        return list(range(256))


_PROCESSES = frozenset(
    (
        *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty"),
        *("os.killpg", "subprocess.Popen", "syslog.syslog", "syslog.openlog"),
        *("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"),
        *("socket.getaddrinfo", "os.lockf"),
    )
)
_FILES = frozenset(
    (
        *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.chmod", "os.chown", "os.chflags"),
        *("os.link", "os.symlink", "os.truncate", "os.utime", "os.setxattr", "os.removexattr"),
        "sqlite3.connect",
    )
)
_ACTS = frozenset(("open", "os.kill")) | _PROCESSES | _FILES
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


_Observer: TypeAlias = Callable[[str, tuple[Any, ...]], None]
_observers: list[_Observer] = []


def observe_acts(observer: _Observer) -> None:
    """Let a function observe the acts of this process that others could see, it alone."""
    if not _observers:
        sys.addaudithook(_audit)
    _observers[:] = [observer]


def _audit(event: str, args: tuple[Any, ...], acts: frozenset[str] = _ACTS) -> None:
    """Pass an act on. Most events are `id()` and frames, millions in a recording.

    Python calls a function four times as fast as a method, of which it asks for an attribute.
    """
    if event in acts:
        for observer in _observers:
            observer(event, args)


def visible_act(event: str, args: tuple[Any, ...], is_private: bool) -> str:
    """Return the act of an audit event that others could see, so that a shadow ends; else ""."""
    if event == "open":
        path, _, flags = args
        is_visible = isinstance(flags, int) and flags & _WRITING and path != os.devnull
        if is_visible and not (is_private and (isinstance(path, int) or is_storage(path))):
            return "opens a file for writing"
    elif event in _PROCESSES or (event in _FILES and not is_private):
        return f"calls {event}"
    elif event == "os.kill" and args[0] != getpid():
        return "calls os.kill"
    return ""


def _guard(side: ShadowSide, is_private: bool) -> _Observer:
    """Return an observer that ends the shadow before an act that others could see."""

    def guard(event: str, args: tuple[Any, ...]) -> None:
        act = visible_act(event, args, is_private)
        if act:
            side.end(f"it {act}")

    return guard
