"""A private view of the file system for one process: no other process sees what it writes.

On Linux the process enters a mount namespace whose file systems are overlays: what is written, made
or removed, by Python or by compiled code, stays in memory that only this process has. A superuser
may do so, and others where the system lets users have namespaces of their own. An overlay shows
what others change below it later, so the folders and files that the running test has made are
copied first.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import re
import shutil
import stat
import sys
from collections.abc import Sequence
from posixpath import normpath
from typing import Any

open_file = open
"""The function itself: a test may have replaced it."""
MOST_BYTES = 1 << 26
"""The most bytes of files and of memory that are copied, and MOST_FILES the most files."""
MOST_FILES = 500
_SIZE = "256m"
"""The most that the process can write."""

_NEW_MOUNTS, _NEW_IPC, _NEW_USER = 0x00020000, 0x08000000, 0x10000000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 32, 4096, 16384, 1 << 18
_SCRATCH = "/sys"
"""A folder that every Linux has, hidden while the overlays are mounted."""
_SPECIAL = ("/proc", "/sys", "/dev")
"""Folders that are no storage; guards of processes must watch what is written there."""
_STORED_IN = "/dev/shm"


def is_storage(path: Any) -> bool:
    """Whether a path is in a file system of which a private view has an overlay."""
    if not isinstance(path, (str, bytes)):
        return False
    text = normpath(os.fsdecode(path))
    return _is_in(text, (_STORED_IN,)) or not _is_in(text, _SPECIAL)


def _is_in(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def enter_private_files(fresh: Sequence[str]) -> None:
    """Give this process, which has one thread, a private view of the file system.

    `fresh` are files and folders that other processes may change from now on. Raises OSError where
    the platform has no such views, or where there is too much to copy.
    """
    if not sys.platform.startswith("linux"):
        raise OSError(errno.ENOSYS, "no mount namespaces")
    folder = os.getcwd()
    is_superuser = _enter_namespaces()
    _mount("none", "/", "", _RECURSIVE | _PRIVATE)
    layers = _Layers(_mounts(), is_superuser)
    _mount("tmpfs", _SCRATCH, "tmpfs", 0, f"size={_SIZE},mode=755")
    os.mkdir(layers.root)
    layers.lay("/")
    os.chroot(layers.root)
    os.chdir("/")
    layers.close()
    _copy(fresh)
    os.chdir(folder)
    if not is_superuser:
        _drop_capabilities()


class _Layers:
    """The overlays and other mounts of a private view, below `root`, which becomes its root."""

    def __init__(self, mounts: dict[str, bool], is_superuser: bool) -> None:
        self.root = f"{_SCRATCH}/root"
        self._mounts, self._is_superuser = mounts, is_superuser
        self._files = {path: os.open(path, os.O_PATH) for path in mounts}
        self._count = 0

    def lay(self, path: str) -> None:
        """Lay a folder, with all that is mounted below it."""
        target = self.root + path.rstrip("/")
        prefix = path.rstrip("/") + "/"
        inner = [each for each in self._mounts if each.startswith(prefix) and each != path]
        if not is_storage(path) or not self._is_writable(path) or not os.path.isdir(path):
            self._bind(path, target)
            inner = [each for each in inner if each == _STORED_IN]
        elif inner and not self._is_superuser:  # an overlay needs a folder without mounts below it
            self._lay_entries(path)
            return
        else:
            self._overlay(path, target)
        for each in inner:
            if not any(each.startswith(f"{other}/") for other in inner):
                self.lay(each)

    def close(self) -> None:
        """Close the files that are open for the mounts."""
        for file in self._files.values():
            os.close(file)

    def _lay_entries(self, path: str) -> None:
        for entry in os.scandir(path):
            target = self.root + entry.path
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), target)
            elif entry.is_dir():
                os.mkdir(target)
                self.lay(entry.path)
            else:
                os.close(os.open(target, os.O_CREAT))
                self._bind(entry.path, target)

    def _is_writable(self, path: str) -> bool:
        outer = [each for each in self._mounts if _is_in(path, (each.rstrip("/"),))]
        return self._mounts[max(outer, key=len)]

    def _source(self, path: str) -> str:
        return f"/proc/self/fd/{self._files[path]}" if path in self._files else path

    def _overlay(self, path: str, target: str) -> None:
        parts = [f"{_SCRATCH}/{kind}{self._count}" for kind in ("upper", "work")]
        self._count += 1
        for part in parts:
            os.mkdir(part)
        status = os.stat(self._source(path))
        options = f"lowerdir={self._source(path)},upperdir={parts[0]},workdir={parts[1]}"
        options += "" if self._is_superuser else ",userxattr"
        _mount("overlay", target, "overlay", 0, options)
        os.chmod(parts[0], stat.S_IMODE(status.st_mode))

    def _bind(self, path: str, target: str) -> None:
        _mount(self._source(path), target, "", _BIND | _RECURSIVE)
        if self._is_writable(path) and not os.path.isdir(path):
            _mount("none", target, "", _REMOUNT | _BIND | _READ_ONLY)


def _mounts() -> dict[str, bool]:
    """Return the visible mounts, and whether they are mounted for writing."""
    mounts: dict[str, bool] = {}
    with open_file("/proc/self/mountinfo", "rb") as file:
        for line in file:
            words = line.split()
            path = os.fsdecode(words[4].decode("unicode_escape").encode("latin-1"))
            if os.path.lexists(path):
                mounts[path] = all(b"rw" in words[at].split(b",") for at in (5, -1))
    return mounts


def _enter_namespaces() -> bool:
    """Enter new namespaces; return whether this needed no namespace of users."""
    try:
        _call("unshare", _NEW_MOUNTS | _NEW_IPC)
        return True
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        _call("unshare", _NEW_MOUNTS | _NEW_IPC | _NEW_USER)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open_file(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    return False


def _drop_capabilities() -> None:
    """Give up what a new namespace of users grants: permissions of files hold as before."""
    _call("capset", (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)())


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    texts = [os.fsencode(text) if text else None for text in (source, target, kind)]
    _call("mount", *texts, ctypes.c_ulong(flags), os.fsencode(options) if options else None)


def _call(name: str, *args: Any) -> int:
    """Call a function of the C library; raise its error."""
    result = getattr(_library(), name)(*args)
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def _library() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_ssize_t
    library.mmap.argtypes = [
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int),
        ctypes.c_longlong,
    ]
    return library


# -- copies of what others may change


def _copy(paths: Sequence[str]) -> None:
    """Replace files and folders of the overlays by copies, which hide what is below them."""
    left = [MOST_FILES, MOST_BYTES]
    for path in paths:
        if not os.path.isdir(path) or os.path.islink(path):
            if os.path.isfile(path):
                _count(path, left)
                with contextlib.suppress(PermissionError):
                    os.close(os.open(path, os.O_RDWR))  # an overlay copies what is opened so
            continue
        for folder, _, names in os.walk(path):
            for name in names:
                _count(os.path.join(folder, name), left)
        copy = f"{path}.copy"
        shutil.copytree(path, copy, symlinks=True, copy_function=_copy_file)
        shutil.rmtree(path)
        os.rename(copy, path)


def _count(path: str, left: list[int]) -> None:
    left[0] -= 1
    left[1] -= os.lstat(path).st_size
    if min(left) < 0:
        raise OSError(errno.EFBIG, "too much to copy")


def _copy_file(source: str, target: str) -> str:
    if stat.S_ISREG(os.stat(source).st_mode):
        shutil.copy2(source, target)
    return target


# -- open files and shared memory


def reopen(number: int, is_private: bool) -> bool:
    """Reopen an open file in the private view, or replace it by a copy.

    Returns whether this was done: not for files of other kinds, too large ones, and those that
    `is_private` says this view does not have.
    """
    status = os.fstat(number)
    if stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode):
        flags = fcntl.fcntl(number, fcntl.F_GETFL)
        is_file = stat.S_ISREG(status.st_mode)
        offset = os.lseek(number, 0, os.SEEK_CUR) if is_file else 0
        try:
            new = _opened_again(number, flags) if is_private else -1
        except OSError:
            new = -1
        if new < 0 and is_file and status.st_size <= MOST_BYTES:
            new = _temporary_file()
            with contextlib.suppress(OSError):  # of a file that is open for writing only
                os.write(new, os.pread(number, status.st_size, 0))
        if new >= 0:
            if is_file:
                os.lseek(new, offset, os.SEEK_SET)
            os.dup2(new, number, os.get_inheritable(number))
            os.close(new)
            return True
    return False


def _opened_again(number: int, flags: int) -> int:
    path = os.readlink(f"/proc/self/fd/{number}")
    if path.endswith(" (deleted)") or not path.startswith("/") or not is_storage(path):
        return -1
    keep = os.O_RDWR | os.O_WRONLY | os.O_APPEND | os.O_DIRECTORY | os.O_PATH
    return os.open(path, flags & keep)


def _temporary_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("copy")
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def unshare_memory(is_private: bool) -> None:
    """Replace the memory that is shared for writing: by files of the private view, or by copies.

    Raises OSError for memory that cannot be read, such as that of a device, and for too much.
    """
    try:
        with open_file("/proc/self/maps", "rb") as file:
            lines = re.findall(rb"^.* rw.s .*$", file.read(), re.MULTILINE)
    except OSError:
        return
    for line in lines:
        addresses, _, offset, _, _, *names = line.split(maxsplit=5)
        start, end = (int(x, 16) for x in addresses.split(b"-"))
        name = os.fsdecode(names[0]).strip() if names and is_private else ""
        _unshare(start, end - start, int(offset, 16), name)


def _unshare(start: int, size: int, offset: int, path: str) -> None:
    if path.startswith("/") and not path.endswith(" (deleted)") and is_storage(path):
        with contextlib.suppress(OSError):
            file = os.open(path, os.O_RDWR)
            try:
                _map(start, size, _MAP_SHARED, file, offset)
            finally:
                os.close(file)
            return
    if size > MOST_BYTES:
        raise OSError(errno.EFBIG, "too much memory is shared")
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    try:
        data = os.pread(memory, size, start)
    finally:
        os.close(memory)
    _map(start, size, _MAP_PRIVATE | _MAP_ANONYMOUS, -1, 0)
    ctypes.memmove(start, data, len(data))


_MAP_SHARED, _MAP_PRIVATE, _MAP_FIXED, _MAP_ANONYMOUS = 1, 2, 16, 32


def _map(start: int, size: int, kind: int, file: int, offset: int) -> None:
    _call("mmap", start, size, 3, kind | _MAP_FIXED, file, offset)
