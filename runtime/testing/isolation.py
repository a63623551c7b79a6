"""The isolation of a shadow: it shares neither files nor memory, and does nothing that others see.

Open files and shared memory are replaced by copies. An audit hook tells of the acts of Python code
before they happen, so that a shadow ends before them. Compiled code has no such hook: on a Linux
with Landlock it is refused to open files for writing, and to make or remove some.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import stat
import struct
import sys
import tempfile
from collections.abc import Callable, Sequence
from os import getpid, listdir  # by name: a test may have replaced these
from typing import Any, TypeAlias

open_file = open
"""The function itself: a test may have replaced it."""
LIBRARY = ctypes.PyDLL(None, use_errno=True)
"""The C library, whose functions run while no other thread runs Python code."""
MOST_BYTES = 1 << 26
"""The most bytes of a file, or of a piece of shared memory, that are copied."""


def isolate(keep: Sequence[int]) -> None:
    """Let this process share nothing with others but the open files `keep`.

    Raises OSError for memory that cannot be read, such as that of a device, and for too much.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for number in _open_files():
        if number not in (*keep, null):
            with contextlib.suppress(OSError):
                is_device = stat.S_ISCHR(os.fstat(number).st_mode) and number > 2
                if not is_device and not _replace_by_copy(number):
                    os.dup2(null, number)
    _unshare_memory()
    forbid_writing()


# -- open files and shared memory


def _open_files() -> list[int]:
    try:
        return sorted(int(name) for name in listdir("/dev/fd"))
    except OSError:
        return list(range(256))


def _replace_by_copy(number: int) -> bool:
    """Replace an open file by a copy; return whether it is a file, and not too large."""
    status = os.fstat(number)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
        return False
    offset = os.lseek(number, 0, os.SEEK_CUR)
    copy = _temporary_file()
    with contextlib.suppress(OSError):  # of a file that is open for writing only
        os.write(copy, os.pread(number, status.st_size, 0))
    os.lseek(copy, offset, os.SEEK_SET)
    os.dup2(copy, number, os.get_inheritable(number))
    os.close(copy)
    return True


def _temporary_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("copy")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _unshare_memory() -> None:
    """Replace the memory that is shared for writing by copies."""
    try:
        with open_file("/proc/self/maps", "rb") as file:
            pieces = re.findall(rb"^(\w+)-(\w+) rw.s ", file.read(), re.MULTILINE)
    except OSError:
        return
    LIBRARY.mmap.restype = ctypes.c_ssize_t
    LIBRARY.mmap.argtypes = [
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int),
        ctypes.c_longlong,
    ]
    for piece in pieces:
        start, end = (int(address, 16) for address in piece)
        if end - start > MOST_BYTES:
            raise OSError(errno.EFBIG, "too much memory is shared")
        memory = os.open("/proc/self/mem", os.O_RDONLY)
        try:
            data = os.pread(memory, end - start, start)
        finally:
            os.close(memory)
        if LIBRARY.mmap(start, end - start, _READ_WRITE, _PRIVATE_FIXED_ANONYMOUS, -1, 0) == -1:
            raise OSError(ctypes.get_errno(), "mmap")
        ctypes.memmove(start, data, len(data))


_READ_WRITE, _PRIVATE_FIXED_ANONYMOUS = 3, 2 | 16 | 32


# -- acts that others could see


def forbid_writing(folder: str = "") -> None:
    """Let this process open no file for writing, make none and remove none, if Linux lets it.

    See https://docs.kernel.org/userspace-api/landlock.html. Files that are open stay so, and those
    in `folder` are left to the process.
    """
    if not sys.platform.startswith("linux"):
        return
    every = _LANDLOCK_WRITE | _LANDLOCK_MAKE_AND_REMOVE
    writes = struct.pack("=Q", every)
    rules = LIBRARY.syscall(_LANDLOCK_CREATE, writes, len(writes), 0)
    if rules == -1:  # a kernel, or a container, without Landlock
        return
    free = {os.devnull: _LANDLOCK_WRITE} | ({folder: every} if folder else {})
    for path, rights in free.items():
        place = os.open(path, os.O_PATH)
        LIBRARY.syscall(_LANDLOCK_ADD, rules, 1, struct.pack("=Qi", rights, place), 0)
        os.close(place)
    LIBRARY.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    LIBRARY.syscall(_LANDLOCK_RESTRICT, rules, 0)
    os.close(rules)


_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT, _NO_NEW_PRIVILEGES = 444, 445, 446, 38
_LANDLOCK_WRITE, _LANDLOCK_MAKE_AND_REMOVE = 0x0002, 0x1FF0

_ACTS = frozenset(
    (
        *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty"),
        *("os.killpg", "subprocess.Popen", "syslog.syslog", "syslog.openlog"),
        *("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"),
        *("socket.getaddrinfo", "os.lockf"),
        *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.chmod", "os.chown", "os.chflags"),
        *("os.link", "os.symlink", "os.truncate", "os.utime", "os.setxattr", "os.removexattr"),
        "sqlite3.connect",
    )
)
"""The audit events of acts that others see, whatever their arguments are."""
OBSERVED = _ACTS | {"open", "os.kill"}
"""The audit events that `visible_act` knows."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

Observer: TypeAlias = Callable[[str, tuple[Any, ...]], None]
_observers: list[Observer] = []


def observe_acts(observer: Observer) -> None:
    """Let a function observe the acts of this process that others could see, it alone."""
    if not _observers:
        sys.addaudithook(_audit)
    _observers[:] = [observer]


def _audit(event: str, args: tuple[Any, ...], observed: frozenset[str] = OBSERVED) -> None:
    """Pass an act on. Most events are `id()` and frames, millions in a recording.

    Python calls a function four times as fast as a method, of which it asks for an attribute.
    """
    if event in observed:
        for observer in _observers:
            observer(event, args)


def visible_act(event: str, args: tuple[Any, ...]) -> str:
    """Return the act of an audit event that others could see, so that a shadow ends; else ""."""
    if event == "open":
        path, _, flags = args
        if isinstance(flags, int) and flags & _WRITING and path != os.devnull:
            return "opens a file for writing"
    elif event in _ACTS or args[0] != getpid():
        return f"calls {event}"
    return ""
