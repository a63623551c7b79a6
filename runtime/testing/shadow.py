"""Shadows: forked processes in which a test goes on, recorded, while the test itself goes on too.

A shadow starts where a function is called with dtypes that need a recording. It has a copy of all
memory, so what it does to arguments, globals and random states does not reach the tests. It ends
before any act that others could see: it opens no file for writing, starts no process and sends
nothing, and the files that the test has open are copies or closed.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import gc
import json
import os
import signal
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from typing import Any, NoReturn

MOST_BYTES = 1 << 26
"""The largest open file of which a shadow gets a copy."""


def can_fork() -> bool:
    """Whether this platform has the processes that shadows need."""
    return hasattr(os, "fork") and sys.platform != "win32"


class Shadow:
    """A running shadow, as its parent sees it: `messages` yields what it has sent."""

    def __init__(self, pid: int, file: int) -> None:
        self.pid, self._file, self._pending = pid, file, b""
        self.started = time.perf_counter()
        self.status: int | None = None
        """The exit status once the shadow has ended; that of a signal is negative."""

    def messages(self, wait: bool = False) -> Iterator[dict[str, Any]]:
        """Yield the messages that have come; with `wait`, all until the shadow ends."""
        os.set_blocking(self._file, wait)
        while self.status is None:
            try:
                data = os.read(self._file, 1 << 16)
            except BlockingIOError:
                return
            self._pending += data
            *lines, self._pending = self._pending.split(b"\n")
            yield from map(json.loads, lines)
            if not data:
                os.close(self._file)
                self.status = _wait(self.pid)

    def fileno(self) -> int:
        """Return the file descriptor of the messages."""
        return self._file


def _wait(pid: int) -> int:
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:  # the test has waited for all children
        return 0


class ShadowSide:
    """The shadow's own side: it sends messages and ends."""

    def __init__(self, file: int) -> None:
        self._file = file
        self.before_end: Callable[[], None] = _nothing

    def limit(self, seconds: float) -> None:
        """Let the process end after so many seconds from now on."""
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def send(self, message: dict[str, Any]) -> None:
        """Send a message to the parent."""
        data = memoryview(json.dumps(message).encode() + b"\n")
        while data:
            data = data[os.write(self._file, data) :]

    def end(self, reason: str = "") -> NoReturn:
        """End this process at once, without any cleaning up; send the reason, if any."""
        try:
            if reason:
                self.send({"left": reason})
            self.before_end()
        finally:
            os._exit(0)


def _nothing() -> None:
    return


def fork(seconds: float) -> Shadow | ShadowSide:
    """Fork a shadow; return the side that the caller is on.

    The shadow ends after some seconds of its processor, or four times as many of a clock.
    """
    reader, writer = os.pipe()
    with _quiet():
        pid = os.fork()
    if pid:
        os.close(writer)
        return Shadow(pid, reader)
    try:
        for number in (signal.SIGALRM, signal.SIGPROF):
            signal.signal(number, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, 4 * seconds)
        gc.disable()
        os.nice(10)  # the tests come first
        _use_one_thread()
        sys.settrace(None)
        sys.setprofile(None)
        sys.dont_write_bytecode = True
        side = ShadowSide(writer)
        os.close(reader)
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with contextlib.suppress(OSError):
                fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 1 << 20)
        _isolate_files(writer)
        if _shares_memory():
            side.end("a file is mapped for writing")
        sys.addaudithook(_guard(side))
    except BaseException:
        os._exit(1)
    return side


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


def _isolate_files(keep: int) -> None:
    """Replace the open files: a parent shares its files' offsets, pipes and sockets."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in _open_files():
        if number in (keep, null):
            continue
        with contextlib.suppress(OSError):
            _isolate(number, null)


def _open_files() -> list[int]:
    try:
        return sorted(int(name) for name in os.listdir("/dev/fd"))
    except OSError:
        return list(range(256))


def _isolate(number: int, null: int) -> None:
    status = os.fstat(number)
    if stat.S_ISCHR(status.st_mode) and number > 2:
        return
    if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
        os.dup2(null, number)
        return
    offset = os.lseek(number, 0, os.SEEK_CUR)
    copy = _temporary_file()
    with contextlib.suppress(OSError):  # of a file that is open for writing only
        os.write(copy, os.pread(number, status.st_size, 0))
    os.lseek(copy, offset, os.SEEK_SET)
    os.dup2(copy, number)
    os.close(copy)


def _temporary_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("shadow")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _shares_memory() -> bool:
    """Whether memory is shared with a file, whose writes would reach it."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            return any(
                " rw-s " in line and "/" in line and "/dev/zero" not in line for line in file
            )
    except OSError:
        return False


_ACTS = (
    *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.chmod", "os.chown", "os.chflags"),
    *("os.link", "os.symlink", "os.truncate", "os.utime", "os.setxattr", "os.removexattr"),
    *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "os.fork"),
    *("os.forkpty", "os.kill", "os.killpg", "os.lockf", "subprocess.Popen", "pty.spawn"),
    *("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo"),
    *("sqlite3.connect", "urllib.Request", "tempfile.mkstemp", "tempfile.mkdtemp"),
    *("syslog.syslog", "syslog.openlog", "signal.pthread_kill", "webbrowser.open"),
)
_FAMILIES = ("shutil.", "ftplib.", "smtplib.", "poplib.", "imaplib.", "telnetlib.", "winreg.")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def _guard(side: ShadowSide) -> Callable[[str, tuple[Any, ...]], None]:
    """Return an audit hook that ends the shadow before an act that others could see."""
    acts = frozenset(_ACTS)

    def guard(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = args
            if flags & _WRITING and path != os.devnull:
                side.end("it opens a file for writing")
        elif event in acts or event.startswith(_FAMILIES):
            side.end(f"it calls {event}")

    return guard
